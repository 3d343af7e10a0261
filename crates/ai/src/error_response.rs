//! Error bodies, typed.

use serde_json::Value;

use crate::error::{ErrorKind, ProviderError};

/// The error that a response body tells of.
pub(crate) fn from_body(
    status: Option<u16>,
    _headers: &[(String, String)],
    body: &[u8],
) -> ProviderError {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    let value = value.get(0).unwrap_or(&value);
    let error = value.get("error").filter(|error| !error.is_null()).unwrap_or(value);
    let text = |key: &str| error.get(key).and_then(Value::as_str);
    let message = text("message").or(error.as_str()).unwrap_or("the provider reported an error");
    let code = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let kind = match (text("type"), status.or(code)) {
        (Some("overloaded_error"), _) | (_, Some(503 | 529)) => ErrorKind::Overloaded,
        (Some("rate_limit_error"), _) | (_, Some(429)) => ErrorKind::RateLimit,
        (Some("invalid_request_error"), _) | (_, Some(400)) => ErrorKind::InvalidRequest,
        (_, Some(401)) => ErrorKind::Auth,
        (_, Some(403)) => ErrorKind::Permission,
        (_, Some(404)) => ErrorKind::NotFound,
        _ => ErrorKind::Server,
    };
    ProviderError { status, ..ProviderError::new(kind, message) }
}
