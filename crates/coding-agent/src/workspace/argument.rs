//! What the text of a path argument may mean, decided without looking at any file.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A path argument that names nothing that could be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// No text.
    #[error("the path is empty")]
    Empty,
    /// No file can have such a name.
    #[error("the path holds a NUL character")]
    Nul,
    /// `~` where nobody has a home.
    #[error("~ means nothing here: no home directory is known")]
    NoHome,
    /// A `file://` address of another machine.
    #[error("{address} is on another machine: only local files can be opened")]
    AnotherMachine {
        /// The address.
        address: String,
    },
    /// A `file://` address with a broken escape.
    #[error("{address} is not a file address: % is not followed by two hex digits")]
    BrokenEscape {
        /// The address.
        address: String,
    },
    /// Links that lead in a circle, or more of them than the system would follow.
    #[error("{} is a symbolic link that leads back to itself", .path.display())]
    LinkLoop {
        /// The path that was to be followed.
        path: PathBuf,
    },
    /// A file stands where the path needs a directory.
    #[error("{} is a file, not a directory", .path.display())]
    NotADirectory {
        /// The file.
        path: PathBuf,
    },
    /// Something on the way cannot be looked at.
    #[error("{} cannot be looked at: {message}", .path.display())]
    Unreadable {
        /// How far the path was followed.
        path: PathBuf,
        /// What the system says.
        message: String,
    },
}

/// The absolute paths that one argument may mean; nothing in them is resolved yet.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Spellings {
    /// The first of these that exists is meant.
    pub(super) candidates: Vec<PathBuf>,
    /// What is meant when none exists.
    pub(super) otherwise: PathBuf,
}

pub(super) fn spellings(
    argument: &str,
    cwd: &Path,
    home: Option<&Path>,
) -> Result<Spellings, PathError> {
    let trimmed = argument.trim();
    if trimmed.is_empty() {
        return Err(PathError::Empty);
    }
    if argument.contains('\0') {
        return Err(PathError::Nul);
    }
    if let Some(rest) = trimmed.strip_prefix("file://") {
        let path = address_path(trimmed, rest)?;
        return Ok(Spellings { candidates: Vec::new(), otherwise: path });
    }
    let literal = expand(argument, cwd, home)?;
    let bare = match trimmed.strip_prefix('@') {
        Some(rest) if !rest.is_empty() => rest,
        Some(_) | None => trimmed,
    };
    let mut candidates = vec![literal];
    if trimmed != argument {
        candidates.push(expand(trimmed, cwd, home)?);
    }
    Ok(Spellings { candidates, otherwise: expand(bare, cwd, home)? })
}

/// Other people's homes (`~name`) are not looked up: such a text is a file's name.
fn expand(text: &str, cwd: &Path, home: Option<&Path>) -> Result<PathBuf, PathError> {
    if text == "~" || text.starts_with("~/") {
        let home = home.ok_or(PathError::NoHome)?;
        return Ok(home.join(text.trim_start_matches('~').trim_start_matches('/')));
    }
    Ok(cwd.join(text))
}

/// The path of a `file://` address (RFC 8089): no host or `localhost`, then an escaped path.
fn address_path(address: &str, rest: &str) -> Result<PathBuf, PathError> {
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return Err(PathError::AnotherMachine { address: address.to_owned() });
    }
    let broken = || PathError::BrokenEscape { address: address.to_owned() };
    let mut decoded = Vec::with_capacity(path.len());
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                let (high, low) = digit().zip(digit()).ok_or_else(broken)?;
                decoded.push(u8::try_from(high * 16 + low).map_err(|_| broken())?);
            }
            _ => decoded.push(byte),
        }
    }
    match decoded.contains(&0) {
        true => Err(PathError::Nul),
        false => Ok(PathBuf::from(OsString::from_vec(decoded))),
    }
}
