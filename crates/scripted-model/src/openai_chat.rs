//! OpenAI's Chat Completions API, as a server.
//!
//! Owns the rules that a request is held to, the chunks of an answer and the shapes of errors. It is
//! written against the API's documentation alone: nothing of the client's encoder is used here.

mod check;
mod read;
mod render;

use serde_json::{Value, json};

use crate::refusal::{Refusal, RefusalKind};

pub(crate) use check::check_body;
pub(crate) use read::read;
pub(crate) use render::render;

/// The path that answers.
pub(crate) const PATH: &str = "/v1/chat/completions";

/// Checks the key.
pub(crate) fn check_headers<'h>(header: impl Fn(&str) -> Option<&'h str>) -> Result<(), Refusal> {
    let key = header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    if key.is_none_or(|key| key.trim().is_empty()) {
        return Err(Refusal::whole(
            RefusalKind::Authentication,
            "no API key was given, it belongs in an Authorization header: `Bearer KEY`",
        ));
    }
    Ok(())
}

/// A refusal in the API's words.
pub(crate) fn refusal_body(refusal: &Refusal) -> Value {
    let code = match refusal.kind {
        RefusalKind::InvalidRequest | RefusalKind::TooLarge => Value::Null,
        RefusalKind::Authentication => "invalid_api_key".into(),
        RefusalKind::NotFound => "unknown_url".into(),
        RefusalKind::MethodNotAllowed => "method_not_supported".into(),
    };
    let param = if refusal.place.is_empty() { Value::Null } else { refusal.place.clone().into() };
    error_body("invalid_request_error", &refusal.to_string(), param, code)
}

/// What the API says with a status.
pub(crate) fn status_body(status: u16) -> Value {
    let (kind, code, message): (_, Option<&str>, _) = match status {
        401 => ("invalid_request_error", Some("invalid_api_key"), "incorrect API key provided"),
        402 => ("insufficient_quota", Some("insufficient_quota"), "insufficient balance"),
        403 => ("invalid_request_error", Some("forbidden"), "your key has no permission for this"),
        404 => ("invalid_request_error", Some("model_not_found"), "there is no such model"),
        429 => {
            ("tokens", Some("rate_limit_exceeded"), "the rate limit of tokens a minute was passed")
        }
        503 | 529 => ("server_error", None, "the server is overloaded"),
        500..=599 => ("server_error", None, "the server had an error"),
        _ => ("invalid_request_error", None, "the request is not accepted"),
    };
    error_body(kind, message, Value::Null, code.map_or(Value::Null, Value::from))
}

/// The error event inside a stream.
pub(crate) fn error_event(body: Option<&Value>) -> Vec<u8> {
    let body = match body {
        Some(body) => body.to_string(),
        None => status_body(503).to_string(),
    };
    format!("data: {body}\n\n").into_bytes()
}

fn error_body(kind: &str, message: &str, param: Value, code: Value) -> Value {
    json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
}
