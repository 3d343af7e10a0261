//! OpenAI's Responses API, as a server.
//!
//! Owns the rules that a request is held to and the events of an answer; keys and errors are
//! [`crate::openai`]'s. It is written against the API's documentation and recorded answers alone:
//! nothing of the client's encoder is used here.

mod check;
mod item_id;
mod read;
mod render;

use serde_json::{Value, json};

pub(crate) use check::check_body;
pub(crate) use read::read;
pub(crate) use render::render;

/// The path that answers.
pub(crate) const PATH: &str = "/v1/responses";

/// What `include` names to get reasoning that the client can bring back.
const ENCRYPTED_REASONING: &str = "reasoning.encrypted_content";

/// The error event inside a stream. A body of the script's own may name another event by its `type`.
pub(crate) fn error_event(body: Option<&Value>) -> Vec<u8> {
    let overloaded = || {
        json!({"type": "error", "error": {
            "type": "server_error",
            "code": "server_is_overloaded",
            "message": "the server is overloaded",
            "param": null,
        }})
    };
    let body = body.cloned().unwrap_or_else(overloaded);
    let name = body["type"].as_str().unwrap_or("error");
    format!("event: {name}\ndata: {body}\n\n").into_bytes()
}
