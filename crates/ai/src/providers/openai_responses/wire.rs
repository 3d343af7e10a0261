//! What a Responses stream looks like on the wire, as far as it matters here.

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
    pub(super) output_index: Count,
    pub(super) content_index: Count,
    pub(super) summary_index: Count,
    pub(super) item_id: Text<'a>,
    pub(super) delta: Text<'a>,
    pub(super) text: Text<'a>,
    pub(super) refusal: Text<'a>,
    pub(super) arguments: Text<'a>,
    pub(super) input: Text<'a>,
    /// Boxed like `response`, because they are large and rare, and an event is moved about for each
    /// delta.
    pub(super) part: Maybe<Box<Part<'a>>>,
    pub(super) item: Value,
    pub(super) response: Maybe<Box<Response<'a>>>,
    pub(super) error: Present,
    /// `response` where the host does not stream and this is the whole one; `error` where a gateway
    /// sends another API's errors.
    pub(super) object: Text<'a>,
}

/// One part of a message's or a reasoning item's content.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Part<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    pub(super) text: Text<'a>,
    pub(super) refusal: Text<'a>,
}

/// The response as it stands; the last one is the whole.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Response<'a> {
    #[serde(borrow)]
    pub(super) model: Text<'a>,
    pub(super) status: Text<'a>,
    pub(super) incomplete_details: Maybe<IncompleteDetails<'a>>,
    pub(super) error: Value,
    pub(super) output: List<Value>,
    pub(super) usage: Maybe<Usage>,
}

/// Why a response is not complete.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct IncompleteDetails<'a> {
    #[serde(borrow)]
    pub(super) reason: Text<'a>,
}

/// Token counts: cached ones are among the input's, reasoning is among the output's.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Usage {
    input_tokens: Count,
    output_tokens: Count,
    total_tokens: Count,
    input_tokens_details: Maybe<InputDetails>,
    output_tokens_details: Maybe<OutputDetails>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct InputDetails {
    cached_tokens: Count,
    cache_write_tokens: Count,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OutputDetails {
    reasoning_tokens: Count,
}

impl Usage {
    /// The disjoint counts; nothing when the host sent the object without any.
    pub(super) fn tokens(&self) -> Option<Tokens> {
        let counts = [self.input_tokens, self.output_tokens, self.total_tokens];
        if counts.iter().all(|count| count.0.is_none()) {
            return None;
        }
        let input_details = self.input_tokens_details.0.as_ref();
        let cache_read = input_details.map_or(0, |details| details.cached_tokens.or_zero());
        let cache_write = input_details.map_or(0, |details| details.cache_write_tokens.or_zero());
        let output_details = self.output_tokens_details.0.as_ref();
        let input = self.input_tokens.or_zero();
        let output = match (self.output_tokens.0, self.total_tokens.0) {
            (Some(output), _) => output,
            (None, Some(total)) => total.saturating_sub(input),
            (None, None) => 0,
        };
        Some(Tokens {
            // Some hosts report more cached tokens than input tokens; the rest is then nothing.
            input: input.saturating_sub(cache_read).saturating_sub(cache_write),
            output,
            cache_read,
            cache_write,
            reasoning: output_details.map_or(0, |details| details.reasoning_tokens.or_zero()),
        })
    }
}
