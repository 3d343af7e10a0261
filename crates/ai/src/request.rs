//! What a model is asked: the same request for every provider.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::history::History;
use crate::thinking::ThinkingLevel;
use crate::tool_choice::ToolChoice;

/// One request to a model. Cheap to clone: its large parts are shared.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Request {
    /// The model, as its provider names it.
    pub model: String,
    /// The system prompt; empty for none.
    pub system_prompt: Arc<str>,
    /// The conversation, oldest first. It must already satisfy the pairing of calls and results;
    /// what an API asks beyond that is the encoder's business.
    pub messages: History,
    /// The tools on offer.
    pub tools: Arc<[ToolSpec]>,
    /// Whether the model may, must or must not call a tool.
    pub tool_choice: ToolChoice,
    /// Words for this one request, such as a note that never becomes part of the conversation; empty
    /// for none. The model reads them last, as the user's. Nothing before them changes on the wire,
    /// so that what a provider has cached of the conversation stays good.
    pub volatile_text: Arc<str>,
    /// The cap on output tokens, thinking included. `None` leaves it to the provider entry.
    pub max_output_tokens: Option<u32>,
    /// Sampling temperature. `None` leaves it to the provider.
    pub temperature: Option<f64>,
    /// How much the model shall think. `None` leaves it to the model; a level that it does not have
    /// becomes the nearest ([`ThinkingPlan`](crate::ThinkingPlan)).
    pub thinking: Option<ThinkingLevel>,
}

impl Request {
    /// A request for this conversation, without tools.
    pub fn new(model: impl Into<String>, messages: History) -> Self {
        Self { model: model.into(), messages, ..Self::default() }
    }
}

/// A tool as the model sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name that the model calls it by.
    pub name: String,
    /// What it does, written for the model.
    pub description: String,
    /// The JSON Schema of its arguments: an object.
    pub input_schema: Value,
}
