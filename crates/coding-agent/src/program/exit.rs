//! [`Exit`]: how the program ends.

use std::process::ExitCode;

use agent::{AbortCause, EndReason};

/// How the program ends. The numbers are part of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The run completed.
    Completed,
    /// It failed: a model's error, a full window, a refusal, a limit.
    Failed,
    /// The command line, the configuration or the surroundings are wrong.
    Usage,
    /// It completed, but a call was denied because nobody could be asked.
    Unanswered,
    /// Ctrl-C.
    Interrupted,
    /// SIGTERM or SIGHUP.
    Terminated,
}

impl Exit {
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Completed => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Unanswered => 3,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }

    /// The end that a run's reason calls for. `unanswered` calls were denied for want of a person.
    pub(crate) fn of_run(reason: &EndReason, unanswered: usize) -> Self {
        match reason {
            EndReason::Completed if unanswered > 0 => Self::Unanswered,
            EndReason::Completed => Self::Completed,
            EndReason::Aborted { cause: AbortCause::User } => Self::Interrupted,
            EndReason::Aborted { cause: AbortCause::Signal } => Self::Terminated,
            _ => Self::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.number())
    }
}
