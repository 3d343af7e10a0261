//! Stream events: one grammar for every provider.
//!
//! A stream is `retry* start (block events)* (done | error)`, with nothing after its end. A block is
//! opened, grown and closed under its `index`, which is local to the stream and has nothing to do
//! with a provider's ids. Events carry only what is new; [`crate::Assembler`] keeps the message so
//! far, so that streaming n bytes costs O(n).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{ErrorKind, ProviderError};
use crate::message::{StopReason, ToolCall, Usage, Violation, is_false};

/// One event of a model's stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum StreamEvent {
    /// An attempt failed before it brought anything and will be made again.
    Retry {
        /// The attempt that failed, from 1.
        attempt: u32,
        /// Milliseconds until the next one.
        after_ms: u64,
        /// Why.
        kind: ErrorKind,
        /// Why, for people: what failed, where, and what to look at.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
    /// The answer begins.
    Start {
        /// The provider entry's name.
        provider: String,
        /// The wire format.
        api: String,
        /// The model as the provider named it, or as it was asked for.
        model: String,
    },
    /// A text block opens.
    TextStart {
        /// The block's place in this stream.
        index: usize,
    },
    /// Text is appended to a block.
    TextDelta {
        /// The block's place in this stream.
        index: usize,
        /// What is new.
        delta: String,
    },
    /// A text block is complete.
    TextEnd {
        /// The block's place in this stream.
        index: usize,
    },
    /// A thinking block opens.
    ThinkingStart {
        /// The block's place in this stream.
        index: usize,
    },
    /// Text is appended to a thinking block.
    ThinkingDelta {
        /// The block's place in this stream.
        index: usize,
        /// What is new.
        delta: String,
    },
    /// A thinking block is complete.
    ThinkingEnd {
        /// The block's place in this stream.
        index: usize,
        /// The provider's proof or cipher.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
        /// The provider withheld the text.
        #[serde(default, skip_serializing_if = "is_false")]
        redacted: bool,
    },
    /// A tool call opens.
    ToolcallStart {
        /// The block's place in this stream.
        index: usize,
        /// The call's id, unique within the message.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// Argument text is appended to a tool call.
    ToolcallDelta {
        /// The block's place in this stream.
        index: usize,
        /// What is new: a piece of JSON text, cut anywhere between two characters.
        delta: String,
    },
    /// A tool call is complete.
    ToolcallEnd {
        /// The block's place in this stream.
        index: usize,
        /// The whole call, its arguments parsed.
        call: ToolCall,
    },
    /// A block that only its own API understands, whole.
    Opaque {
        /// The block's place in this stream.
        index: usize,
        /// The API that made it.
        api: String,
        /// The provider's own JSON.
        data: Value,
    },
    /// The answer is complete.
    Done {
        /// Why it ended.
        stop_reason: StopReason,
        /// The provider's own word for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stop_raw: Option<String>,
        /// What it cost in tokens.
        usage: Usage,
        /// The text is a tool call that was not made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        violation: Option<Violation>,
    },
    /// The answer failed.
    Error {
        /// What went wrong.
        error: ProviderError,
        /// The provider's own word for the end, where it sent one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stop_raw: Option<String>,
        /// What it cost in tokens, as far as the provider told.
        #[serde(default)]
        usage: Usage,
    },
}

impl StreamEvent {
    /// A failure of which nothing but the error is known.
    pub fn failed(error: ProviderError) -> Self {
        Self::Error { error, stop_raw: None, usage: Usage::default() }
    }

    /// Whether nothing comes after this event.
    pub fn is_end(&self) -> bool {
        match self {
            Self::Done { .. } | Self::Error { .. } => true,
            Self::Retry { .. }
            | Self::Start { .. }
            | Self::TextStart { .. }
            | Self::TextDelta { .. }
            | Self::TextEnd { .. }
            | Self::ThinkingStart { .. }
            | Self::ThinkingDelta { .. }
            | Self::ThinkingEnd { .. }
            | Self::ToolcallStart { .. }
            | Self::ToolcallDelta { .. }
            | Self::ToolcallEnd { .. }
            | Self::Opaque { .. } => false,
        }
    }
}
