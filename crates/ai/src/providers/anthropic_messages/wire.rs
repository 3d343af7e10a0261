//! What a Messages stream looks like on the wire, as far as it matters here.

use serde::Deserialize;
use serde_json::Value;

use crate::message::Usage as Tokens;
use crate::providers::lenient::{Count, List, Maybe, Present, Text};

/// One event. Which fields are there depends on `type`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    pub(super) index: Count,
    /// Boxed, because it is large and rare, and an event is moved about for each delta.
    pub(super) message: Maybe<Box<Message<'a>>>,
    pub(super) content_block: Value,
    pub(super) delta: Maybe<Delta<'a>>,
    pub(super) usage: Maybe<Box<Usage>>,
    pub(super) error: Present,
    /// `error` where a gateway sends another API's errors.
    pub(super) object: Text<'a>,
}

/// The message that `message_start` announces; some hosts send it whole.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) model: Text<'a>,
    pub(super) content: List<Value>,
    pub(super) stop_reason: Text<'a>,
    pub(super) usage: Maybe<Box<Usage>>,
}

/// What a block grows by, or what `message_delta` tells.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Delta<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    pub(super) text: Text<'a>,
    pub(super) thinking: Text<'a>,
    pub(super) signature: Text<'a>,
    pub(super) partial_json: Text<'a>,
    pub(super) stop_reason: Text<'a>,
}

/// Token counts. Later events overlay earlier ones, count by count.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Usage {
    input_tokens: Count,
    output_tokens: Count,
    cache_read_input_tokens: Count,
    cache_creation_input_tokens: Count,
    output_tokens_details: Maybe<OutputDetails>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct OutputDetails {
    thinking_tokens: Count,
}

impl Copy for Maybe<OutputDetails> {}

impl Usage {
    /// These counts, with `later` ones in their place where it has any.
    pub(super) fn overlaid_by(self, later: Self) -> Self {
        Self {
            input_tokens: later.input_tokens.or(self.input_tokens),
            output_tokens: later.output_tokens.or(self.output_tokens),
            cache_read_input_tokens: later.cache_read_input_tokens.or(self.cache_read_input_tokens),
            cache_creation_input_tokens: later
                .cache_creation_input_tokens
                .or(self.cache_creation_input_tokens),
            output_tokens_details: Maybe(
                later.output_tokens_details.0.or(self.output_tokens_details.0),
            ),
        }
    }

    /// The counts as this crate has them; on this wire they are disjoint already.
    pub(super) fn tokens(self) -> Tokens {
        Tokens {
            input: self.input_tokens.or_zero(),
            output: self.output_tokens.or_zero(),
            cache_read: self.cache_read_input_tokens.or_zero(),
            cache_write: self.cache_creation_input_tokens.or_zero(),
            reasoning: self
                .output_tokens_details
                .0
                .map_or(0, |details| details.thinking_tokens.or_zero()),
        }
    }
}
