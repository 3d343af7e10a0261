//! OpenAI's Chat Completions API, as a server.
//!
//! Owns the rules that a request is held to and the chunks of an answer; keys and errors are
//! [`crate::openai`]'s. It is written against the API's documentation alone: nothing of the client's encoder is used here.

mod check;
mod read;
mod render;

use serde_json::Value;

use crate::openai::status_body;

pub(crate) use check::check_body;
pub(crate) use read::read;
pub(crate) use render::render;

/// The path that answers.
pub(crate) const PATH: &str = "/v1/chat/completions";

/// The error event inside a stream.
pub(crate) fn error_event(body: Option<&Value>) -> Vec<u8> {
    let body = match body {
        Some(body) => body.to_string(),
        None => status_body(503).to_string(),
    };
    format!("data: {body}\n\n").into_bytes()
}
