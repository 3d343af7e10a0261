//! An error as a provider sends it, turned into a [`ProviderError`] (SPEC M12).
//!
//! Owns the shapes of error bodies, the words that name a category, and the forms of retry hints.
//! Works on bytes, so that a recorded answer is read like a live one; also what a stream carries in
//! place of an event. Nothing above this module looks at a provider's words again.
//!
//! The order of evidence: words that mean one thing only (`insufficient_quota`), then the message
//! where a category is only ever said in prose (a window that is full), then the status.

use serde_json::Value;

use crate::error::{ErrorKind, ProviderError};
use crate::message::Timestamp;
use crate::retry_hint;

/// A message is for reading; some hosts put whole stack traces or the request into it.
const MAX_MESSAGE_CHARS: usize = 2_000;

/// Gateways put the upstream's error, as JSON text, into their own; deeper nesting was never seen.
const MAX_NESTING: usize = 4;

/// Makes the typed error of an error answer.
///
/// `status` is the HTTP status, or `None` for an error inside a stream. `headers` have lower-case
/// names. `body` may be anything: JSON of any host's shape, a web page, text, nothing.
pub fn from_body(status: Option<u16>, headers: &[(String, String)], body: &[u8]) -> ProviderError {
    from_body_at(Timestamp::now(), status, headers, body)
}

/// The same with the clock as an argument: some retry hints are points in time.
pub(crate) fn from_body_at(
    now: Timestamp,
    status: Option<u16>,
    headers: &[(String, String)],
    body: &[u8],
) -> ProviderError {
    let text = String::from_utf8_lossy(body);
    let text = text.trim().trim_start_matches('\u{feff}');
    let mut facts = Facts::default();
    match serde_json::from_str::<Value>(text) {
        Ok(json) => facts.read(&json, 0),
        Err(_) => facts.message = prose(text),
    }
    if let Some(amazon) = header(headers, "x-amzn-errortype") {
        facts.word(amazon.split(':').next().unwrap_or_default());
    }
    let status = status.filter(|status| *status >= 400).or(facts.status).or(status);
    let kind = classify(status, &facts);
    let message = match facts.message.is_empty() {
        false => shorten(&facts.message),
        true => match status {
            Some(200..=299) => "expected an event stream, got something else".to_owned(),
            Some(status) => format!("http status {status} without a message"),
            None => "the provider reported an error without a message".to_owned(),
        },
    };
    ProviderError {
        kind,
        status,
        retry_after: retry_hint::find(now, kind, headers, &facts.retry_delays, &facts.message),
        request_id: ["request-id", "x-request-id", "x-amzn-requestid", "apim-request-id"]
            .into_iter()
            .find_map(|name| header(headers, name).map(str::to_owned))
            .or(facts.request_id),
        message,
    }
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(candidate, _)| candidate == name)
        .map(|(_, value)| value.trim())
        .filter(|value| !value.is_empty())
}

/// What a body says, gathered from wherever its host puts it.
#[derive(Debug, Default)]
struct Facts {
    message: String,
    /// The body calls itself an error, whatever the status.
    is_error: bool,
    /// Types, codes, statuses and reasons, in lower case.
    words: Vec<String>,
    /// A code that is an HTTP status.
    status: Option<u16>,
    request_id: Option<String>,
    retry_delays: Vec<String>,
}

impl Facts {
    fn word(&mut self, word: &str) {
        if !word.is_empty() {
            self.words.push(word.to_lowercase());
        }
    }

    fn say(&mut self, message: &str) {
        let message = message.trim();
        if message.is_empty() || self.message.contains(message) {
            return;
        }
        if !self.message.is_empty() {
            self.message.push_str(": ");
        }
        self.message.push_str(message);
    }

    /// Reads an error in any of the known shapes: wrapped in `error` or not, in an array, as a
    /// string, with the upstream's error inside.
    fn read(&mut self, value: &Value, depth: usize) {
        if depth > MAX_NESTING {
            return;
        }
        match value {
            Value::Array(items) => {
                if let Some(first) = items.first() {
                    self.read(first, depth + 1);
                }
            }
            Value::String(text) => match nested(text) {
                Some(inner) => self.read(&inner, depth + 1),
                None => self.say(text),
            },
            Value::Object(fields) => {
                self.is_error |= fields.contains_key("error")
                    || fields.get("type").is_some_and(|name| name == "error");
                // The error itself first, so that its words and message lead.
                for wrapper in ["error", "errors", "response"] {
                    if let Some(inner) = fields.get(wrapper)
                        && (wrapper != "response" || inner.get("error").is_some())
                    {
                        self.read(inner, depth + 1);
                    }
                }
                for name in ["type", "code", "status", "reason", "object", "__type"] {
                    match fields.get(name) {
                        Some(Value::String(word)) => {
                            self.word(word);
                            self.take_status(word.parse().ok());
                        }
                        Some(Value::Number(number)) => {
                            self.word(&number.to_string());
                            self.take_status(number.as_u64());
                        }
                        Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_))
                        | None => {}
                    }
                }
                for name in ["message", "Message", "msg", "detail", "error_description"] {
                    match fields.get(name) {
                        Some(Value::String(text)) => match nested(text) {
                            Some(inner) => self.read(&inner, depth + 1),
                            None => self.say(text),
                        },
                        Some(list @ Value::Array(_)) => self.read(list, depth + 1),
                        Some(inner @ Value::Object(_)) => self.read(inner, depth + 1),
                        Some(Value::Null | Value::Bool(_) | Value::Number(_)) | None => {}
                    }
                }
                self.read_details(fields.get("details"));
                if let Some(filter) = fields.get("innererror").and_then(|inner| inner.get("code")) {
                    self.word(filter.as_str().unwrap_or_default());
                }
                if let Some(metadata) = fields.get("metadata") {
                    self.read_gateway(metadata, depth);
                }
                for name in ["request_id", "requestId"] {
                    if let Some(id) = fields.get(name).and_then(Value::as_str) {
                        self.request_id.get_or_insert_with(|| id.to_owned());
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Google's `details`: typed objects, of which a reason and a delay are of use.
    fn read_details(&mut self, details: Option<&Value>) {
        for detail in details.and_then(Value::as_array).into_iter().flatten() {
            if let Some(reason) = detail.get("reason").and_then(Value::as_str) {
                self.word(reason);
            }
            if let Some(delay) = detail.get("retryDelay").and_then(Value::as_str) {
                self.retry_delays.push(delay.to_owned());
            }
            for violation in
                detail.get("violations").and_then(Value::as_array).into_iter().flatten()
            {
                if let Some(id) = violation.get("quotaId").and_then(Value::as_str) {
                    self.word(id);
                }
            }
        }
    }

    /// OpenRouter's `metadata`: the upstream's own error as `raw`, moderation as `reasons`.
    fn read_gateway(&mut self, metadata: &Value, depth: usize) {
        if metadata.get("reasons").is_some_and(Value::is_array)
            && metadata.get("flagged_input").is_some()
        {
            self.word("content_filter");
        }
        if let Some(raw) = metadata.get("raw") {
            self.read(raw, depth + 1);
        }
    }

    fn take_status(&mut self, code: Option<u64>) {
        let code = code.and_then(|code| u16::try_from(code).ok());
        if self.status.is_none() {
            self.status = code.filter(|code| (400..600).contains(code));
        }
    }

    fn says_any(&self, words: &[&str]) -> bool {
        self.words.iter().any(|said| words.contains(&said.as_str()))
    }
}

/// An object written as JSON text.
fn nested(text: &str) -> Option<Value> {
    let text = text.trim();
    if !text.starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// The readable part of a body that is not JSON: a page's title, or the text itself.
fn prose(text: &str) -> String {
    if !text.starts_with('<') {
        return text.to_owned();
    }
    // ASCII lower case keeps byte positions.
    let lower = text.to_ascii_lowercase();
    let inside = |tag: &str| {
        let open = lower.find(&format!("<{tag}"))?;
        let start = open + lower.get(open..)?.find('>')? + 1;
        let end = start + lower.get(start..)?.find("</")?;
        let words: Vec<&str> = text.get(start..end)?.split_whitespace().collect();
        (!words.is_empty()).then(|| words.join(" "))
    };
    match inside("title").or_else(|| inside("h1")) {
        Some(title) => format!("got a web page instead of an answer: {title}"),
        None => "got a web page instead of an answer".to_owned(),
    }
}

fn shorten(message: &str) -> String {
    match message.char_indices().nth(MAX_MESSAGE_CHARS) {
        None => message.to_owned(),
        Some((cut, _)) => format!("{}…", message.get(..cut).unwrap_or_default()),
    }
}

/// Words that mean one category wherever they stand: types, codes, gRPC statuses, exception names
/// and the numbers of hosts that number their errors. In the order in which they are tried.
const WORDS: &[(ErrorKind, &[&str])] = &[
    (
        ErrorKind::ContentFilter,
        &[
            "content_filter",
            "content_filtered",
            "content_policy_violation",
            "responsibleaipolicyviolation",
            "data_inspection_failed",
            "datainspectionfailed",
            "1301",
        ],
    ),
    (
        ErrorKind::ContextOverflow,
        &[
            "context_length_exceeded",
            "model_context_window_exceeded",
            "exceed_context_size_error",
            "too_many_prompt_tokens",
            "request_too_large",
            "1261",
        ],
    ),
    (
        ErrorKind::Quota,
        &[
            "insufficient_quota",
            "insufficient_balance",
            "insufficient_credits",
            "exceeded_current_quota_error",
            "billing_error",
            "billing_hard_limit_reached",
            "billing_not_active",
            "arrearage",
            "1113",
        ],
    ),
    (
        ErrorKind::Auth,
        &[
            "authentication_error",
            "invalid_authentication_error",
            "incorrect_api_key_error",
            "invalid_api_key",
            "invalidapikey",
            "api_key_invalid",
            "api_key_expired",
            "access_token_expired",
            "token_expired",
            "unauthenticated",
            "unauthorized",
            "unrecognizedclientexception",
            "invalidsignatureexception",
            "expiredtokenexception",
        ],
    ),
    (
        ErrorKind::Permission,
        &[
            "permission_error",
            "permission_denied",
            "permission_denied_error",
            "service_disabled",
            "accessdeniedexception",
            "access_denied",
            "unsupported_country_region_territory",
        ],
    ),
    (
        ErrorKind::NotFound,
        &[
            "not_found_error",
            "not_found",
            "model_not_found",
            "previous_response_not_found",
            "resource_not_found_error",
            "resourcenotfoundexception",
            "deploymentnotfound",
            "notfounderror",
            "1211",
        ],
    ),
    (
        ErrorKind::Overloaded,
        &[
            "overloaded_error",
            "engine_overloaded_error",
            "service_tier_capacity_exceeded",
            "server_overloaded",
            "serviceunavailableexception",
            "modelnotreadyexception",
        ],
    ),
    (
        ErrorKind::RateLimit,
        &[
            "rate_limit_error",
            "rate_limit_exceeded",
            "rate_limit_reached_error",
            "rate_limited",
            "too_many_requests",
            "resource_exhausted",
            "throttlingexception",
            "throttling",
            "1302",
        ],
    ),
    (
        ErrorKind::Timeout,
        &["timeout_error", "deadline_exceeded", "modeltimeoutexception", "request_timeout"],
    ),
];

/// Words that hosts also use for other things, and so count only without a status.
const GENERIC_WORDS: &[(ErrorKind, &[&str])] = &[
    (ErrorKind::Overloaded, &["unavailable", "unavailable_error"]),
    (
        ErrorKind::InvalidRequest,
        &[
            "invalid_request_error",
            "invalid_argument",
            "invalid-argument",
            "failed_precondition",
            "validationexception",
            "tool_use_failed",
            "bad_request",
        ],
    ),
    (
        ErrorKind::Server,
        &[
            "api_error",
            "server_error",
            "internal",
            "internal_server_error",
            "internalserverexception",
            "modelstreamerrorexception",
        ],
    ),
];

/// How hosts without a code for it say that the window is full. All lower case.
const FULL_WINDOW: &[&str] = &[
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "maximum context length",
    "model's context length",
    "context length of only",
    "context length exceeded",
    "exceed context limit",
    "exceeds the context",
    "exceed the context",
    "exceeds the available context size",
    "context window exceeds",
    "context window limit",
    "maximum prompt length",
    "model token limit",
    "input token count",
    "input tokens exceeded",
    "total length of all messages is too long",
    "reduce the length of the messages",
    "range of input length should be",
    "`max_new_tokens` must be <=",
    "larger than the maximum context",
    "longer than the maximum model length",
];

/// How an empty account is said in prose. All lower case.
const NO_CREDIT: &[&str] = &[
    "credit balance is too low",
    "insufficient balance",
    "insufficient credits",
    "insufficient funds",
    "requires more credits",
    "doesn't have any credits",
    "used all available credits",
    "monthly spending limit",
];

/// How a bad key is said by hosts that answer it like any bad request. All lower case.
const BAD_KEY: &[&str] = &["incorrect api key", "api key not valid", "invalid api key"];

/// How a missing model is said by hosts that answer it like any bad request. All lower case.
const NO_SUCH_MODEL: &[&str] = &["model not found"];

fn classify(status: Option<u16>, facts: &Facts) -> ErrorKind {
    let message = facts.message.to_lowercase();
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| message.contains(phrase));
    for (kind, words) in WORDS {
        if facts.says_any(words) {
            // "You sent more in one request than you may send in a minute": waiting never helps,
            // sending less does.
            if *kind == ErrorKind::RateLimit && status == Some(413) {
                return ErrorKind::ContextOverflow;
            }
            return *kind;
        }
    }
    // Limits per minute also speak of tokens that are too many; those are no full window.
    if !matches!(status, Some(401 | 403 | 429)) && says(FULL_WINDOW) {
        return ErrorKind::ContextOverflow;
    }
    if says(NO_CREDIT) {
        return ErrorKind::Quota;
    }
    if matches!(status, None | Some(400 | 422)) {
        if says(BAD_KEY) {
            return ErrorKind::Auth;
        }
        if says(NO_SUCH_MODEL) {
            return ErrorKind::NotFound;
        }
    }
    match status {
        Some(401) => ErrorKind::Auth,
        Some(402) => ErrorKind::Quota,
        Some(403) => ErrorKind::Permission,
        Some(404 | 405 | 410) => ErrorKind::NotFound,
        Some(408 | 504 | 524) => ErrorKind::Timeout,
        Some(413) => ErrorKind::ContextOverflow,
        Some(429) => ErrorKind::RateLimit,
        Some(503 | 529) => ErrorKind::Overloaded,
        Some(status) if status >= 500 => ErrorKind::Server,
        Some(status) if status >= 400 => ErrorKind::InvalidRequest,
        // A good status with a body that is neither a stream nor an error.
        Some(200..=299) if !facts.is_error => ErrorKind::MalformedStream,
        // A redirect: we do not follow it with a request that carries a key and a conversation.
        Some(status) if status >= 300 => ErrorKind::NotFound,
        Some(_) | None => GENERIC_WORDS
            .iter()
            .find(|(_, words)| facts.says_any(words))
            .map_or(ErrorKind::Server, |(kind, _)| *kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_700_000_000_000);

    fn read(status: Option<u16>, headers: &[(&str, &str)], body: &str) -> ProviderError {
        let headers: Vec<(String, String)> =
            headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        from_body_at(NOW, status, &headers, body.as_bytes())
    }

    /// SPEC M12
    #[test]
    fn each_shape_gives_its_kind_and_message() {
        use ErrorKind::*;
        for (status, body, kind, message) in [
            (
                Some(400),
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"no such field"}}"#,
                InvalidRequest,
                "no such field",
            ),
            (
                Some(429),
                r#"{"error":{"message":"you are out","type":"insufficient_quota","code":"insufficient_quota"}}"#,
                Quota,
                "you are out",
            ),
            (
                Some(429),
                r#"[{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}]"#,
                RateLimit,
                "slow down",
            ),
            (Some(401), r#"{"detail":"who are you"}"#, Auth, "who are you"),
            (
                Some(400),
                r#"{"code":"invalid-argument","error":"Incorrect API key provided"}"#,
                Auth,
                "Incorrect API key provided",
            ),
            (Some(404), r#"{"error":"no model of this name"}"#, NotFound, "no model of this name"),
            (
                Some(400),
                r#"{"object":"error","message":"bad value","type":"x","code":400}"#,
                InvalidRequest,
                "bad value",
            ),
            (
                Some(502),
                r#"{"error":{"message":"Provider returned error","code":502,"metadata":{"raw":"{\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}"}}}"#,
                Overloaded,
                "Provider returned error: busy",
            ),
            (
                Some(400),
                r#"{"error":{"message":"filtered","type":null,"code":"content_filter","innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#,
                ContentFilter,
                "filtered",
            ),
            (
                Some(400),
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to go on"}}"#,
                Quota,
                "Your credit balance is too low to go on",
            ),
            (
                Some(422),
                r#"{"detail":[{"loc":["body","x"],"msg":"field required","type":"missing"}]}"#,
                InvalidRequest,
                "field required",
            ),
            (
                None,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                Overloaded,
                "Overloaded",
            ),
            (None, r#"{"error":{"message":"x","code":429}}"#, RateLimit, "x"),
            (None, r#"{"error":{"message":"x","status":"UNAVAILABLE"}}"#, Overloaded, "x"),
            // Found against a server that says one thing by status and another in gRPC's words.
            (Some(429), r#"{"error":{"message":"x","status":"UNAVAILABLE"}}"#, RateLimit, "x"),
            (None, r#"{"error":{"type":"api_error","message":"oops"}}"#, Server, "oops"),
            (
                None,
                r#"{"error":{"type":"invalid_request_error","message":"bad"}}"#,
                InvalidRequest,
                "bad",
            ),
            (
                Some(502),
                "<html><head><title>502 Bad\n Gateway</title></head><body>…</body></html>",
                Server,
                "got a web page instead of an answer: 502 Bad Gateway",
            ),
            (Some(503), "", Overloaded, "http status 503 without a message"),
            (Some(500), "upstream said no", Server, "upstream said no"),
            (Some(529), "{}", Overloaded, "http status 529 without a message"),
            (
                Some(413),
                "<html><h1>Too large</h1></html>",
                ContextOverflow,
                "got a web page instead of an answer: Too large",
            ),
        ] {
            let error = read(status, &[], body);
            assert_eq!((error.kind, error.message.as_str()), (kind, message), "{status:?} {body}");
        }
    }

    #[test]
    fn a_request_id_is_found_in_headers_and_bodies() {
        for (headers, body, id) in [
            (vec![("request-id", "req_h")], r#"{"request_id":"req_b"}"#, Some("req_h")),
            (vec![("x-request-id", "x")], "", Some("x")),
            (vec![], r#"{"error":{"message":"m"},"request_id":"req_b"}"#, Some("req_b")),
            (vec![], r#"{"error":{"message":"m"},"request_id":null}"#, None),
        ] {
            assert_eq!(read(Some(500), &headers, body).request_id.as_deref(), id);
        }
    }

    #[test]
    fn hostile_bodies_are_bounded() {
        let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        assert_eq!(read(Some(500), &[], &deep).kind, ErrorKind::Server);
        let long = read(Some(400), &[], &"é".repeat(10_000));
        assert_eq!(long.message.chars().count(), MAX_MESSAGE_CHARS + 1);
    }
}
