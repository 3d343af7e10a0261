//! Why a run ended, and what failed in it.

use std::fmt;

use ai::ErrorKind;
use serde::{Deserialize, Serialize};

/// Why a run ended (SPEC Q6).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EndReason {
    /// The model was done and nothing waited.
    Completed,
    /// As `Completed`, but an answer of the run was cut by the cap on output tokens.
    MaxTokens,
    /// A hook rejected the input.
    Blocked {
        /// The hook's reason.
        message: String,
    },
    /// The run was cancelled.
    Aborted {
        /// By whom.
        cause: AbortCause,
    },
    /// Something failed.
    Error {
        /// What kind of failure.
        cause: FailureKind,
        /// What happened.
        message: String,
        /// In which turn, from 1; 0 before the first.
        turn: u32,
    },
    /// The model's window is full.
    ContextOverflow,
    /// The model or a filter refused.
    Refusal,
    /// The limit of turns was reached before the model was done.
    IterationLimit,
    /// The program ended in the middle; said by recovery only.
    Interrupted,
}

/// Who cancelled a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AbortCause {
    /// The person.
    User,
    /// The agent that started this one.
    Parent,
    /// A hook.
    Hook,
    /// The host, such as a program that closes.
    Host,
    /// The agent was disposed of.
    Disposed,
    /// Nobody held the run any more.
    Dropped,
    /// The process was told to end.
    Signal,
}

/// What kind of failure ended a run: a provider's, or one of our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FailureKind {
    /// The model request failed.
    Provider(ErrorKind),
    /// Something on this side failed.
    Run(RunFailure),
}

/// Failures on this side of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunFailure {
    /// The model wrote its calls as text, twice.
    ProtocolViolation,
    /// The log could not be written.
    Log,
    /// The host failed, such as a helper that is gone.
    Host,
    /// A hook failed that the run may not go on without.
    Hook,
    /// A defect: code panicked that is not a tool's.
    Panic,
}

impl FailureKind {
    /// The kind as it stands in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Provider(kind) => kind.as_str(),
            Self::Run(RunFailure::ProtocolViolation) => "protocol_violation",
            Self::Run(RunFailure::Log) => "log",
            Self::Run(RunFailure::Host) => "host",
            Self::Run(RunFailure::Hook) => "hook",
            Self::Run(RunFailure::Panic) => "panic",
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
