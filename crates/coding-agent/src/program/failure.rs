//! [`Failure`]: an error as its user reads it: what happened, and what to do next.

use std::fmt::{self, Display};
use std::io;

use crate::program::exit::Exit;

/// Ends the program with a message.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// Something that the user can put right before starting again.
    pub(crate) fn usage(message: impl Display) -> Self {
        Self { exit: Exit::Usage, message: message.to_string(), hint: None }
    }

    /// Something that went wrong on the way.
    pub(crate) fn failed(message: impl Display) -> Self {
        Self { exit: Exit::Failed, message: message.to_string(), hint: None }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Writing to standard output failed. A reader that has gone away is told nothing.
    pub(crate) fn output(error: &io::Error) -> Self {
        let message = match error.kind() {
            io::ErrorKind::BrokenPipe => String::new(),
            _ => format!("cannot write to standard output: {error}"),
        };
        Self::failed(message)
    }

    /// Tells the user.
    pub(crate) fn report(&self) {
        if !self.message.is_empty() {
            eprintln!("{self}");
        }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message.trim_end())?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}
