//! Google's generateContent API, as a server.
//!
//! Owns the rules that a request is held to, the events of an answer and the shapes of errors. It is
//! written against the API's documentation and recorded answers alone: nothing of the client's encoder
//! is used here.

mod call_mark;
mod check;
mod read;
mod render;
mod schema;

use serde_json::{Value, json};

use crate::refusal::{Refusal, RefusalKind};
use crate::target::Target;

pub(crate) use check::{FOREIGN_SIGNATURES, check_body, is_said_by_user};
pub(crate) use read::read;
pub(crate) use render::render;

/// What comes before the model in a path that answers.
const PATH_BEGIN: &str = "/v1beta/models/";

/// What comes behind it.
const PATH_END: &str = ":streamGenerateContent";

/// The type of the details that name what is wrong with a request.
const BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";

/// The model of a path that answers; `None` for any other path.
pub(crate) fn model_of(path: &str) -> Option<&str> {
    let model = path.strip_prefix(PATH_BEGIN)?.strip_suffix(PATH_END)?;
    (!model.is_empty() && !model.contains('/')).then_some(model)
}

/// Checks the key, which may also be in the query, and that events are asked for.
pub(crate) fn check_target<'h>(
    target: &Target,
    header: impl Fn(&str) -> Option<&'h str>,
) -> Result<(), Refusal> {
    let given = header("x-goog-api-key").is_some_and(|key| !key.trim().is_empty());
    if !given && !target.has_key {
        return Err(Refusal::whole(
            RefusalKind::PermissionDenied,
            "the method does not allow callers without an identity, a key belongs in the \
             x-goog-api-key header",
        ));
    }
    if !target.asks_for_events {
        return Err(Refusal::whole(
            RefusalKind::InvalidRequest,
            "a scripted model only streams events, expected alt=sse in the query",
        ));
    }
    Ok(())
}

/// A refusal in the API's words.
pub(crate) fn refusal_body(refusal: &Refusal) -> Value {
    let status = match refusal.kind {
        RefusalKind::InvalidRequest | RefusalKind::TooLarge => "INVALID_ARGUMENT",
        RefusalKind::Authentication => "UNAUTHENTICATED",
        RefusalKind::PermissionDenied => "PERMISSION_DENIED",
        RefusalKind::NotFound => "NOT_FOUND",
        RefusalKind::MethodNotAllowed => "UNIMPLEMENTED",
    };
    let mut details = Vec::new();
    if !refusal.place.is_empty() {
        let violation = json!({"field": refusal.place, "description": refusal.message});
        details.push(json!({"@type": BAD_REQUEST, "fieldViolations": [violation]}));
    }
    error_body(refusal.status(), status, &refusal.to_string(), details)
}

/// What the API says with a status.
pub(crate) fn status_body(code: u16) -> Value {
    let (status, message) = match code {
        401 => ("UNAUTHENTICATED", "the request has invalid authentication credentials"),
        403 => ("PERMISSION_DENIED", "your key has no permission for this"),
        404 => ("NOT_FOUND", "there is no such model"),
        429 => ("RESOURCE_EXHAUSTED", "you exceeded your current quota"),
        499 => ("CANCELLED", "the request was cancelled"),
        500 => ("INTERNAL", "an internal error has occurred"),
        504 => ("DEADLINE_EXCEEDED", "the deadline passed before the request was done"),
        501..=599 => ("UNAVAILABLE", "the model is overloaded"),
        _ => ("INVALID_ARGUMENT", "the request is not accepted"),
    };
    error_body(code, status, message, Vec::new())
}

/// The error event inside a stream.
pub(crate) fn error_event(body: Option<&Value>) -> Vec<u8> {
    let body = match body {
        Some(body) => body.to_string(),
        None => status_body(503).to_string(),
    };
    format!("data: {body}\r\n\r\n").into_bytes()
}

fn error_body(code: u16, status: &str, message: &str, details: Vec<Value>) -> Value {
    let mut body = json!({"error": {"code": code, "message": message, "status": status}});
    if !details.is_empty() {
        body["error"]["details"] = details.into();
    }
    body
}
