//! What a generateContent stream looks like on the wire.
//!
//! Parts stay JSON: which field a part has decides what it is, and one of an unknown kind is kept
//! whole.

use serde::Deserialize;
use serde_json::Value;

use crate::message::Usage as Tokens;
use crate::providers::lenient::{Count, List, Maybe, Present, Text};

/// One chunk.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) model_version: Text<'a>,
    pub(super) candidates: List<Maybe<Candidate<'a>>>,
    pub(super) prompt_feedback: Maybe<PromptFeedback<'a>>,
    pub(super) usage_metadata: Maybe<Usage>,
    pub(super) error: Present,
}

/// One of the answers; nobody asks for several.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Candidate<'a> {
    pub(super) index: Count,
    pub(super) content: Maybe<Content>,
    #[serde(borrow)]
    pub(super) finish_reason: Text<'a>,
    pub(super) finish_message: Text<'a>,
    pub(super) grounding_metadata: Value,
    pub(super) url_context_metadata: Value,
    pub(super) citation_metadata: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Content {
    pub(super) parts: List<Value>,
}

/// What the host thinks of the prompt.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PromptFeedback<'a> {
    #[serde(borrow)]
    pub(super) block_reason: Text<'a>,
}

/// Token counts, cumulative. What the host's own tools read of pages and files is counted by itself
/// (`toolUsePromptTokenCount`) and belongs to no prompt of ours.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Usage {
    prompt_token_count: Count,
    cached_content_token_count: Count,
    candidates_token_count: Count,
    thoughts_token_count: Count,
    total_token_count: Count,
}

impl Usage {
    /// The disjoint counts; nothing when the host sent the object without any.
    pub(super) fn tokens(&self) -> Option<Tokens> {
        let counts = [self.prompt_token_count, self.candidates_token_count, self.total_token_count];
        if counts.iter().all(|count| count.0.is_none()) {
            return None;
        }
        let cache_read = self.cached_content_token_count.or_zero();
        let reasoning = self.thoughts_token_count.or_zero();
        Some(Tokens {
            input: self.prompt_token_count.or_zero().saturating_sub(cache_read),
            // Thoughts are counted beside the candidates.
            output: self.candidates_token_count.or_zero().saturating_add(reasoning),
            cache_read,
            cache_write: 0,
            reasoning,
        })
    }
}
