//! Opening a file for reading without ever waiting for it.
//!
//! What is no regular file is never opened: a FIFO, a device or a socket may wait for ever, or do
//! something when it is opened. The kind is asked of the path first and of the handle again, since
//! the file may have been exchanged in between; that is also why the handle does not block.

use std::fs::{File, FileType, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use agent::ToolError;
use rustix::fs::OFlags;

use super::near_names;
use crate::workspace::ResolvedPath;

/// What is at a path.
pub(super) enum Found {
    /// A regular file, open for reading.
    File(File, Metadata),
    /// A directory.
    Directory,
    /// Nothing.
    Missing,
    /// Something that is not read or written: what it is, in words.
    Special(&'static str),
}

pub(super) fn find(path: &Path) -> io::Result<Found> {
    let metadata = match path.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Missing),
        Err(error) => return Err(error),
    };
    if metadata.is_dir() {
        return Ok(Found::Directory);
    }
    if !metadata.is_file() {
        return Ok(Found::Special(kind(metadata.file_type())));
    }
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
    // The bits are the system's own `int`, whatever its sign.
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let metadata = file.metadata()?;
    match metadata.is_file() {
        true => Ok(Found::File(file, metadata)),
        false => Ok(Found::Special(kind(metadata.file_type()))),
    }
}

/// The file at a path that must be a regular one.
pub(super) fn open(path: &ResolvedPath) -> Result<(File, Metadata), ToolError> {
    let shown = &path.shown;
    match find(&path.path).map_err(|error| unreadable(path, &error))? {
        Found::File(file, metadata) => Ok((file, metadata)),
        Found::Directory => Err(ToolError::failed(format!("{shown} is a directory"))),
        Found::Missing => Err(near_names::missing(path)),
        Found::Special(kind) => Err(special(path, kind)),
    }
}

pub(super) fn special(path: &ResolvedPath, kind: &str) -> ToolError {
    ToolError::failed(format!("{} is {kind}, not a file", path.shown))
}

pub(super) fn unreadable(path: &ResolvedPath, error: &io::Error) -> ToolError {
    let shown = &path.shown;
    ToolError::failed(match error.kind() {
        io::ErrorKind::WouldBlock => format!("{shown} has nothing to read without waiting"),
        _ => format!("cannot read {shown}: {error}"),
    })
}

fn kind(file_type: FileType) -> &'static str {
    if file_type.is_fifo() {
        "a FIFO"
    } else if file_type.is_socket() {
        "a socket"
    } else if file_type.is_symlink() {
        "a symbolic link"
    } else {
        "a device"
    }
}
