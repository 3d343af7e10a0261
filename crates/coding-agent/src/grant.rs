//! [`Grant`]: what the permission layer hands a tool for exactly one call.
//!
//! A grant travels in the call's extensions. It names each file by the text that the arguments
//! use, so that a tool looks up what it was asked for and gets what was judged, and never resolves
//! a path itself. It ends with the call.
//!
//! It holds paths for now: directory handles, which another process cannot exchange between the
//! judgement and the opening, take their place with the sandbox, behind the same methods.
//!
//! **Invariant:** a built-in tool reaches nothing that its grant does not name; without a grant it
//! does nothing.
//!
//! ```
//! use coding_agent::{Access, Grant, Workspace};
//!
//! let directory = tempfile::tempdir()?;
//! let workspace = Workspace::new(directory.path(), &[])?;
//! let notes = workspace.resolve("notes.md")?;
//! let grant = Grant::builder().allow_file("notes.md", notes.clone(), Access::Read).build();
//!
//! assert_eq!(grant.file("notes.md", Access::Read), Ok(&notes));
//! assert!(grant.file("notes.md", Access::Write).is_err());
//! assert!(grant.command().is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;

use agent::{ToolCall, ToolError};
use ai::ToolErrorKind;

use crate::workspace::ResolvedPath;

/// What may be done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Its content, or the names in it, may be read.
    Read,
    /// It may be created or changed. Reading is granted apart.
    Write,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "reading",
            Self::Write => "writing",
        })
    }
}

/// What one call may reach. See the module's documentation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    files: Vec<GrantedFile>,
    command: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct GrantedFile {
    argument: String,
    path: ResolvedPath,
    access: Access,
}

impl Grant {
    /// Starts with nothing granted.
    pub fn builder() -> GrantBuilder {
        GrantBuilder(Self::default())
    }

    /// The grant of a call.
    ///
    /// # Errors
    /// When the call has none: it went past the permission layer.
    pub fn of(call: &ToolCall) -> Result<&Self, ToolError> {
        call.extensions.get().ok_or_else(|| denied(format!("nothing was granted to {}", call.name)))
    }

    /// The file that `argument` was granted as.
    ///
    /// # Errors
    /// When that file was not granted for that access.
    pub fn file(&self, argument: &str, access: Access) -> Result<&ResolvedPath, ToolError> {
        let granted =
            self.files.iter().find(|file| file.argument == argument && file.access == access);
        granted
            .map(|file| &file.path)
            .ok_or_else(|| denied(format!("{access} {argument} was not granted")))
    }

    /// That the call's command may run.
    ///
    /// # Errors
    /// When it was not granted.
    pub fn command(&self) -> Result<(), ToolError> {
        match self.command {
            true => Ok(()),
            false => Err(denied("running a command was not granted".to_owned())),
        }
    }
}

/// Collects what one call may reach.
#[derive(Clone, Debug)]
pub struct GrantBuilder(Grant);

impl GrantBuilder {
    /// Grants the file that the call's arguments name as `argument`.
    #[must_use]
    pub fn allow_file(
        mut self,
        argument: impl Into<String>,
        path: ResolvedPath,
        access: Access,
    ) -> Self {
        self.0.files.push(GrantedFile { argument: argument.into(), path, access });
        self
    }

    /// Grants running the call's command.
    #[must_use]
    pub fn allow_command(mut self) -> Self {
        self.0.command = true;
        self
    }

    /// The grant, to be put into the call's extensions.
    pub fn build(self) -> Grant {
        self.0
    }
}

fn denied(message: String) -> ToolError {
    ToolError::new(ToolErrorKind::Denied, message)
}
