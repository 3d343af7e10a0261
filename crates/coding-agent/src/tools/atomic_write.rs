//! Replacing a file's content so that there is always a whole one: the old or the new.
//!
//! The new content goes into a temporary file beside the old one, is synced, and takes the name in
//! one step; the directory is synced after it. Mode and owner are kept. Where taking the name would
//! break something - other names of the same file, an owner that cannot be given, or extended
//! attributes, such as access lists and capabilities - the content is written in place instead, with the old one saved beside it until that is done.
//!
//! Whatever fails, the old content stays and no temporary file does. Only a crash in the middle of
//! writing in place leaves the saved copy, which holds the old content.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, Gid, Uid};
use tempfile::NamedTempFile;

/// What the names of temporary files begin with. A dot hides them; they live for milliseconds.
const TEMPORARY_PREFIX: &str = ".coding-agent-";

/// The mode of a new file before the process's own mask, as for every other program.
const NEW_FILE_MODE: u32 = 0o666;

/// How many bytes of names of attributes are looked at; a file that has more has some.
const MAX_ATTRIBUTE_NAMES: usize = 4_096;

/// The bits of a mode that are kept.
const MODE_BITS: u32 = 0o7777;

/// How the content came to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// There was no file.
    Created,
    /// The file was exchanged for a new one.
    Replaced,
    /// The file itself was written to.
    InPlace,
}

/// Why a file was not written. The old content, if there was any, is still there unless the
/// message says otherwise.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    #[error("it is a directory")]
    IsDirectory,
    #[error("it is a device, FIFO or socket, not a file")]
    Special,
    #[error(
        "its mode does not let you write to it; change that first (`chmod u+w`) if it may be changed"
    )]
    ReadOnly,
    #[error("something else created it in the meantime; read it first")]
    Appeared,
    #[error("no temporary file can be made in its directory: {0}")]
    Temporary(io::Error),
    #[error("{0}")]
    Failed(#[from] io::Error),
    #[error(
        "writing failed ({cause}) and so did putting the old content back ({second}); the old content is in {saved}"
    )]
    Damaged { cause: io::Error, second: io::Error, saved: String },
    #[error("it has its new content, but the directory could not be synced: {0}")]
    Unsynced(io::Error),
}

/// Gives the file at `path`, which has no links in it, this content. Its directory must exist.
pub(super) fn write(path: &Path, content: &[u8]) -> Result<Written, WriteError> {
    let directory = path.parent().ok_or(WriteError::IsDirectory)?;
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => Err(WriteError::IsDirectory),
        Ok(metadata) if !metadata.is_file() => Err(WriteError::Special),
        Ok(metadata) => {
            let flags = AtFlags::EACCESS;
            match rustix::fs::accessat(CWD, path, Access::WRITE_OK, flags).map_err(io::Error::from)
            {
                Ok(()) => exchange(path, directory, &metadata, content),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    Err(WriteError::ReadOnly)
                }
                Err(error) => Err(error.into()),
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => create(path, directory, content),
        Err(error) => Err(error.into()),
    }
}

fn create(path: &Path, directory: &Path, content: &[u8]) -> Result<Written, WriteError> {
    let mode = Permissions::from_mode(NEW_FILE_MODE);
    let temporary = temporary(directory, mode, content)?;
    temporary.as_file().sync_all()?;
    temporary.persist_noclobber(path).map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => WriteError::Appeared,
        _ => WriteError::Failed(error.error),
    })?;
    sync_directory(directory)?;
    Ok(Written::Created)
}

fn exchange(
    path: &Path,
    directory: &Path,
    old: &Metadata,
    content: &[u8],
) -> Result<Written, WriteError> {
    if old.nlink() > 1 || has_attributes(path) {
        return in_place(path, directory, content);
    }
    let temporary = temporary(directory, Permissions::from_mode(0o600), content)?;
    if !give_owner(temporary.as_file(), old)? {
        drop(temporary);
        return in_place(path, directory, content);
    }
    // After the owner: changing that takes set-user-id bits away.
    temporary.as_file().set_permissions(Permissions::from_mode(old.mode() & MODE_BITS))?;
    temporary.as_file().sync_all()?;
    temporary.persist(path).map_err(|error| error.error)?;
    sync_directory(directory)?;
    Ok(Written::Replaced)
}

fn in_place(path: &Path, directory: &Path, content: &[u8]) -> Result<Written, WriteError> {
    let old = fs::read(path)?;
    let saved = temporary(directory, Permissions::from_mode(0o600), &old)?;
    saved.as_file().sync_all()?;
    let mut file = File::options().write(true).open(path)?;
    if let Err(cause) = overwrite(&mut file, content) {
        return match overwrite(&mut file, &old) {
            Ok(()) => Err(cause.into()),
            Err(second) => {
                let saved = saved.into_temp_path().keep().map_err(|error| error.error)?;
                Err(WriteError::Damaged { cause, second, saved: saved.display().to_string() })
            }
        };
    }
    Ok(Written::InPlace)
}

fn overwrite(file: &mut File, content: &[u8]) -> io::Result<()> {
    io::Seek::rewind(file)?;
    file.write_all(content)?;
    file.set_len(content.len() as u64)?;
    file.sync_all()
}

fn temporary(
    directory: &Path,
    mode: Permissions,
    content: &[u8],
) -> Result<NamedTempFile, WriteError> {
    let mut temporary = tempfile::Builder::new()
        .prefix(TEMPORARY_PREFIX)
        .permissions(mode)
        .tempfile_in(directory)
        .map_err(WriteError::Temporary)?;
    temporary.write_all(content)?;
    Ok(temporary)
}

/// Whether a file has extended attributes of its own: a new file would have none. A label that the
/// system itself gives each file is not one.
fn has_attributes(path: &Path) -> bool {
    let mut names = [0; MAX_ATTRIBUTE_NAMES];
    match rustix::fs::llistxattr(path, &mut names[..]) {
        Ok(length) => names[..length]
            .split(|&byte| byte == 0)
            .any(|name| !name.is_empty() && !name.starts_with(b"security.selinux")),
        // More names than fit are some.
        Err(rustix::io::Errno::RANGE) => true,
        // A file system without attributes.
        Err(_) => false,
    }
}

/// Whether `file` now belongs to whom the old one belongs to.
fn give_owner(file: &File, old: &Metadata) -> io::Result<bool> {
    let new = file.metadata()?;
    if (new.uid(), new.gid()) == (old.uid(), old.gid()) {
        return Ok(true);
    }
    let (owner, group) = (Uid::from_raw(old.uid()), Gid::from_raw(old.gid()));
    Ok(rustix::fs::fchown(file, Some(owner), Some(group)).is_ok())
}

/// Makes a change of names in a directory last. File systems that cannot are not asked twice.
pub(super) fn sync_directory(directory: &Path) -> Result<(), WriteError> {
    match File::open(directory).and_then(|directory| directory.sync_all()) {
        Ok(()) => Ok(()),
        Err(error) => match error.kind() {
            // A directory may be written to and not read; then it cannot be opened to be synced.
            io::ErrorKind::InvalidInput
            | io::ErrorKind::Unsupported
            | io::ErrorKind::PermissionDenied => Ok(()),
            _ => Err(WriteError::Unsynced(error)),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = directory.read_dir().unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// SPEC F5
    #[test]
    fn a_file_is_replaced_whole_and_keeps_its_mode() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("script.sh");
        assert_eq!(write(&path, b"one").unwrap(), Written::Created);
        fs::set_permissions(&path, Permissions::from_mode(0o754)).unwrap();
        let before = path.metadata().unwrap();
        assert_eq!(write(&path, b"two!").unwrap(), Written::Replaced);
        let after = path.metadata().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two!");
        assert_eq!(after.mode() & MODE_BITS, 0o754);
        assert_ne!(after.ino(), before.ino());
        assert_eq!(names(directory.path()), ["script.sh"]);
    }

    /// SPEC F5
    #[test]
    fn hard_links_stay_linked() {
        let directory = tempfile::tempdir().unwrap();
        let (path, other) = (directory.path().join("a"), directory.path().join("b"));
        fs::write(&path, "a long old content").unwrap();
        fs::hard_link(&path, &other).unwrap();
        assert_eq!(write(&path, b"new").unwrap(), Written::InPlace);
        assert_eq!(fs::read(&other).unwrap(), b"new");
        assert_eq!(path.metadata().unwrap().ino(), other.metadata().unwrap().ino());
        assert_eq!(names(directory.path()), ["a", "b"]);
    }

    /// SPEC F5
    #[test]
    fn extended_attributes_stay() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        fs::write(&path, "old").unwrap();
        let flags = rustix::fs::XattrFlags::empty();
        if rustix::fs::setxattr(&path, "user.note", b"kept", flags).is_err() {
            eprintln!("skipped: this file system has no extended attributes");
            return;
        }
        assert_eq!(write(&path, b"new").unwrap(), Written::InPlace);
        let mut value = [0; 4];
        assert_eq!(rustix::fs::getxattr(&path, "user.note", &mut value[..]), Ok(4));
        assert_eq!((&value, fs::read(&path).unwrap().as_slice()), (b"kept", &b"new"[..]));
    }

    /// SPEC F5
    #[test]
    fn what_is_no_file_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let link = directory.path().join("link");
        symlink("nowhere", &link).unwrap();
        let missing = directory.path().join("none/file");
        let cases = [
            (directory.path(), "it is a directory"),
            (&socket, "it is a device, FIFO or socket, not a file"),
            (&link, "it is a device, FIFO or socket, not a file"),
        ];
        for (path, message) in cases {
            assert_eq!(write(path, b"x").unwrap_err().to_string(), message);
        }
        assert!(matches!(write(&missing, b"x").unwrap_err(), WriteError::Temporary(_)));
        assert_eq!(names(directory.path()), ["link", "socket"]);
    }

    /// SPEC F5
    #[test]
    fn a_failure_leaves_the_old_content_and_no_temporary_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("busy");
        fs::write(&path, "old").unwrap();
        let error = {
            // The name is taken by a directory between the look and the exchange.
            let metadata = path.metadata().unwrap();
            fs::remove_file(&path).unwrap();
            fs::create_dir(&path).unwrap();
            fs::write(path.join("inner"), "kept").unwrap();
            exchange(&path, directory.path(), &metadata, b"new").unwrap_err()
        };
        assert!(matches!(error, WriteError::Failed(_)), "{error}");
        let error = create(&path, directory.path(), b"new").unwrap_err();
        assert!(matches!(error, WriteError::Appeared), "{error}");
        assert_eq!(fs::read(path.join("inner")).unwrap(), b"kept");
        assert_eq!(names(directory.path()), ["busy"]);
    }

    /// SPEC F5
    #[test]
    fn a_write_protected_file_or_directory_is_respected() {
        if rustix::process::geteuid().is_root() {
            eprintln!("skipped: nothing is write-protected from root");
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
        assert!(matches!(write(&path, b"new").unwrap_err(), WriteError::ReadOnly));
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        fs::set_permissions(directory.path(), Permissions::from_mode(0o555)).unwrap();
        let error = write(&path, b"new").unwrap_err();
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(error, WriteError::Temporary(_)), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }
}
