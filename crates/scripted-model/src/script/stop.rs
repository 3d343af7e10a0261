//! [`Stop`]: why a scripted answer ends.

use ai::StopReason;
use serde::{Deserialize, Serialize};

/// Why a scripted answer ends: one of our own reasons, said in the words of the API that is spoken,
/// or a word that is sent as it is.
///
/// In a file it is a string: `stop`, `length`, `tool_use`, `context_overflow` and `refusal` are ours,
/// every other word is sent as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Stop {
    /// One of our own reasons, said in the words of the API that is spoken.
    Reason(StopReason),
    /// A word of the provider's, known or not.
    Raw(String),
}

impl From<StopReason> for Stop {
    fn from(reason: StopReason) -> Self {
        Self::Reason(reason)
    }
}

impl From<&str> for Stop {
    fn from(word: &str) -> Self {
        match word {
            "stop" => Self::Reason(StopReason::Stop),
            "length" => Self::Reason(StopReason::Length),
            "tool_use" => Self::Reason(StopReason::ToolUse),
            "context_overflow" => Self::Reason(StopReason::ContextOverflow),
            "refusal" => Self::Reason(StopReason::Refusal),
            other => Self::Raw(other.to_owned()),
        }
    }
}

impl From<String> for Stop {
    fn from(word: String) -> Self {
        Self::from(word.as_str())
    }
}

impl From<Stop> for String {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Reason(reason) => own_word(reason).to_owned(),
            Stop::Raw(word) => word,
        }
    }
}

/// The reason's name in scripts. The last three are said by no model; they are names all the same,
/// so that a test can send them as an unknown word.
pub(crate) fn own_word(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Stop => "stop",
        StopReason::Length => "length",
        StopReason::ToolUse => "tool_use",
        StopReason::ContextOverflow => "context_overflow",
        StopReason::Refusal => "refusal",
        StopReason::IterationLimit => "iteration_limit",
        StopReason::Error => "error",
        StopReason::Aborted => "aborted",
    }
}
