//! Anthropic's Messages API, as a server.
//!
//! Owns the rules that a request is held to, the events of an answer and the shapes of errors. It is
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
pub(crate) const PATH: &str = "/v1/messages";

/// Checks the key and the version.
pub(crate) fn check_headers<'h>(header: impl Fn(&str) -> Option<&'h str>) -> Result<(), Refusal> {
    let given = |name: &str| header(name).is_some_and(|value| !value.trim().is_empty());
    if !given("x-api-key") && !given("authorization") {
        return Err(Refusal::whole(RefusalKind::Authentication, "x-api-key header is required"));
    }
    if !given("anthropic-version") {
        return Err(Refusal::at("anthropic-version", "header is required"));
    }
    Ok(())
}

/// A refusal in the API's words.
pub(crate) fn refusal_body(refusal: &Refusal, request_id: &str) -> Value {
    let kind = match refusal.kind {
        RefusalKind::InvalidRequest | RefusalKind::MethodNotAllowed => "invalid_request_error",
        RefusalKind::Authentication => "authentication_error",
        RefusalKind::PermissionDenied => "permission_error",
        RefusalKind::NotFound => "not_found_error",
        RefusalKind::TooLarge => "request_too_large",
    };
    error_body(kind, &refusal.to_string(), Some(request_id))
}

/// What the API says with a status.
pub(crate) fn status_body(code: u16, request_id: &str) -> Value {
    let (kind, message) = match code {
        401 => ("authentication_error", "invalid x-api-key"),
        402 => ("billing_error", "your credit balance is too low"),
        403 => ("permission_error", "your key has no permission for this"),
        404 => ("not_found_error", "there is no such model"),
        408 | 504 => ("timeout_error", "the request took too long"),
        413 => ("request_too_large", "the request is too large"),
        429 => ("rate_limit_error", "the rate limit of tokens a minute was passed"),
        529 => ("overloaded_error", "Overloaded"),
        500..=599 => ("api_error", "Internal server error"),
        _ => ("invalid_request_error", "the request is not accepted"),
    };
    error_body(kind, message, Some(request_id))
}

/// The error event inside a stream.
pub(crate) fn error_event(body: Option<&Value>) -> Vec<u8> {
    let body = match body {
        Some(body) => body.to_string(),
        None => error_body("overloaded_error", "Overloaded", None).to_string(),
    };
    format!("event: error\ndata: {body}\n\n").into_bytes()
}

fn error_body(kind: &str, message: &str, request_id: Option<&str>) -> Value {
    let mut body = json!({"type": "error", "error": {"type": kind, "message": message}});
    if let Some(request_id) = request_id {
        body["request_id"] = request_id.into();
    }
    body
}
