//! An error as a provider sends it, turned into a [`ProviderError`] (SPEC M12).
//!
//! Owns the shapes of error bodies, the words that name a category, and the forms of retry hints.
//! Works on bytes, so that a recorded answer is read like a live one; also what a stream carries in
//! place of an event. Nothing above this module looks at a provider's words again.
//!
//! The order of evidence: words that mean one thing only (`insufficient_quota`), then the message
//! where a category is only ever said in prose (a window that is full), then the status.

use std::time::Duration;

use serde_json::Value;

use crate::error::{ErrorKind, ProviderError};
use crate::message::Timestamp;
use crate::retry_hint;

/// Where hosts put what is for people.
const MESSAGE_FIELDS: [&str; 7] =
    ["message", "Message", "msg", "detail", "error_description", "error_message", "error_msg"];

/// Where hosts put how long to wait, beside the message, and how long a bare number's one is.
const RETRY_FIELDS: &[(&str, Duration)] = &[
    ("retry_after", Duration::from_secs(1)),
    ("retryAfter", Duration::from_secs(1)),
    ("retry_after_seconds", Duration::from_secs(1)),
    ("retryAfterSeconds", Duration::from_secs(1)),
    ("resets_in_seconds", Duration::from_secs(1)),
    ("retry_after_ms", Duration::from_millis(1)),
    ("retryAfterMs", Duration::from_millis(1)),
];

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
    let should_retry = header(headers, "x-should-retry").and_then(|value| value.parse().ok());
    let mut hints = headers.to_vec();
    hints.append(&mut facts.headers);
    ProviderError {
        kind,
        status,
        should_retry,
        retry_after: should_retry
            .unwrap_or_else(|| kind.is_retryable())
            .then(|| retry_hint::find(now, kind, &hints, &facts.retry_delays, &facts.message))
            .flatten(),
        request_id: request_id(headers).or(facts.request_id),
        message,
    }
}

/// The provider's name for a request, out of its answer's headers (with lower-case names).
pub(crate) fn request_id(headers: &[(String, String)]) -> Option<String> {
    ["request-id", "x-request-id", "x-amzn-requestid", "apim-request-id", "cf-ray"]
        .into_iter()
        .find_map(|name| header(headers, name).map(str::to_owned))
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
    retry_delays: Vec<Duration>,
    /// The upstream's headers, as gateways pass them on inside the body.
    headers: Vec<(String, String)>,
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
                for name in ["type", "code", "status", "reason", "object", "__type", "error_code"] {
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
                for name in MESSAGE_FIELDS {
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
                for (name, unit) in RETRY_FIELDS {
                    if let Some(delay) = fields.get(*name) {
                        self.retry_delays.extend(retry_hint::of_field(delay, *unit));
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
                self.retry_delays.extend(retry_hint::duration(delay));
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
        let headers = metadata.get("headers").and_then(Value::as_object);
        self.headers.extend(headers.into_iter().flatten().map(|(name, value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            (name.to_ascii_lowercase(), value)
        }));
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
            "contentpolicyviolationerror",
            "moderation_blocked",
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
            "model_max_prompt_tokens_exceeded",
            "context_window_exceeded",
            "contextwindowexceedederror",
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
            "quota_exceeded",
            "servicequotaexceededexception",
            "usage_limit_reached",
            "usage_not_included",
            "allocationquota.freetieronly",
            "throttling.allocationquota",
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
            "model_decommissioned",
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
            "capacity_exceeded",
            "engine_overloaded",
        ],
    ),
    (
        ErrorKind::RateLimit,
        &[
            "rate_limit_error",
            "rate_limit_exceeded",
            "rate_limit_reached_error",
            "rate_limited",
            "rate_limit",
            "too_many_requests",
            "too_many_requests_error",
            "resource_exhausted",
            "throttlingexception",
            "throttling",
            "throttling.ratequota",
            "ratelimiterror",
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
    (
        ErrorKind::Overloaded,
        &["unavailable", "unavailable_error", "service_unavailable", "overloaded"],
    ),
    (ErrorKind::Timeout, &["timeout", "gateway_timeout"]),
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
    "input tokens exceed",
    "token limit exceeded",
    "exceeds model context",
    "context overflow",
    "total length of all messages is too long",
    "reduce the length of the messages",
    "range of input length should be",
    "`max_new_tokens` must be <=",
    "larger than the maximum context",
    "longer than the maximum model length",
    "maximum input length",
    "exceeds model's maximum",
    "greater than the context length",
    "exceeds the limit of context",
    "context size has been exceeded",
    "context window of this model",
    "context window is full",
    "prompt token count of",
    "too many input tokens",
    "`inputs` must have less than",
    "exceeds the model's context",
];

/// How a filter is said by hosts that answer it like any bad request. All lower case.
const FILTERED: &[&str] = &[
    "content filtering policy",
    "content management policy",
    "flagged as potentially violating",
    "violates usage guidelines",
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
const BAD_KEY: &[&str] =
    &["incorrect api key", "api key not valid", "invalid api key", "api key expired"];

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
    if matches!(status, None | Some(400 | 403 | 422)) && says(FILTERED) {
        return ErrorKind::ContentFilter;
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
        Some(403 | 451) => ErrorKind::Permission,
        Some(404 | 405 | 410) => ErrorKind::NotFound,
        Some(408 | 504 | 522 | 524) => ErrorKind::Timeout,
        Some(413) => ErrorKind::ContextOverflow,
        Some(429) => ErrorKind::RateLimit,
        // 498 is Groq's: the cheaper tier has no capacity.
        Some(498 | 503 | 529) => ErrorKind::Overloaded,
        // The model behind the host failed, the connection to it was too early, the host gave up.
        Some(424 | 425 | 499) => ErrorKind::Server,
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

    /// The status says it where no word does, whatever stands in front of the host.
    ///
    /// SPEC M12
    #[test]
    fn each_status_has_its_kind() {
        use ErrorKind::*;
        for (statuses, kind) in [
            (&[400, 406, 409, 415, 422, 431][..], InvalidRequest),
            (&[401], Auth),
            (&[402], Quota),
            (&[403, 451], Permission),
            (&[404, 405, 410], NotFound),
            (&[408, 504, 522, 524], Timeout),
            (&[413], ContextOverflow),
            (&[429], RateLimit),
            (&[498, 503, 529], Overloaded),
            (&[424, 425, 499, 500, 501, 502, 520, 521, 523, 525, 526, 530, 599], Server),
        ] {
            for status in statuses {
                for body in
                    ["", "no", "<html><body>no</body></html>", "{}", "[]", "{\"error\":null}"]
                {
                    assert_eq!(read(Some(*status), &[], body).kind, kind, "{status} {body}");
                }
            }
        }
    }

    /// How hosts say one thing in their own ways, beyond what the recordings hold.
    ///
    /// SPEC M12
    #[test]
    fn each_hosts_words_have_their_kind() {
        use ErrorKind::*;
        for (status, body, kind) in [
            // The window is full.
            (
                400,
                r#"{"error":{"message":"m","code":"model_max_prompt_tokens_exceeded"}}"#,
                ContextOverflow,
            ),
            (
                400,
                r#"{"error":{"message":"Input tokens exceed the configured limit of 8 tokens."}}"#,
                ContextOverflow,
            ),
            (400, r#"{"error":"the input length exceeds the context length"}"#, ContextOverflow),
            (
                400,
                r#"{"error":{"message":"prompt token count of 9 exceeds the limit of 8"}}"#,
                ContextOverflow,
            ),
            (
                400,
                r#"{"error":"Input validation error: `inputs` must have less than 8 tokens"}"#,
                ContextOverflow,
            ),
            (
                400,
                r#"{"message":"ValidationException: Input is too long for requested model."}"#,
                ContextOverflow,
            ),
            (
                500,
                r#"{"error":"the number of tokens to keep is greater than the context length"}"#,
                ContextOverflow,
            ),
            (
                429,
                r#"{"error":{"message":"maximum context length: tokens per minute"}}"#,
                RateLimit,
            ),
            (
                413,
                r#"{"error":{"message":"too large: TPM","code":"rate_limit_exceeded"}}"#,
                ContextOverflow,
            ),
            // Money, not speed.
            (429, r#"{"error":{"type":"usage_limit_reached","resets_in_seconds":9}}"#, Quota),
            (403, r#"{"error":"your team has used all available credits"}"#, Quota),
            (429, r#"{"code":"Throttling.AllocationQuota","message":"m"}"#, Quota),
            (429, r#"{"error":{"code":"1113","message":"m"}}"#, Quota),
            // Speed.
            (429, r#"{"code":"Throttling.RateQuota","message":"m"}"#, RateLimit),
            (429, r#"{"success":false,"errors":[{"code":3040,"message":"Capacity"}]}"#, RateLimit),
            (400, r#"{"message":"m","__type":"ThrottlingException"}"#, RateLimit),
            // No room.
            (400, r#"{"error":{"type":"overloaded_error","message":"m"}}"#, Overloaded),
            (429, r#"{"error":{"type":"engine_overloaded_error","message":"m"}}"#, Overloaded),
            // The key.
            (400, r#"{"error":{"message":"API key expired. Please renew the API key."}}"#, Auth),
            (403, r#"{"message":"m","__type":"ExpiredTokenException"}"#, Auth),
            // The model.
            (400, r#"{"error":{"code":"model_decommissioned","message":"m"}}"#, NotFound),
            // A filter.
            (400, r#"{"error":{"code":"DataInspectionFailed","message":"m"}}"#, ContentFilter),
            (
                400,
                r#"{"error":{"type":"invalid_request_error","message":"Output blocked by content filtering policy"}}"#,
                ContentFilter,
            ),
            (
                400,
                r#"{"error":{"code":"invalid_prompt","message":"flagged as potentially violating our policy"}}"#,
                ContentFilter,
            ),
            (
                403,
                r#"{"error":{"code":403,"message":"m","metadata":{"reasons":["x"],"flagged_input":"y"}}}"#,
                ContentFilter,
            ),
            // The model behind the host.
            (424, r#"{"message":"m","__type":"ModelErrorException"}"#, Server),
        ] {
            assert_eq!(read(Some(status), &[], body).kind, kind, "{status} {body}");
        }
    }

    /// SPEC M13
    #[test]
    fn what_a_body_says_about_waiting_is_a_hint() {
        for (headers, body, milliseconds) in [
            (
                vec![],
                r#"[{"error":{"code":429,"details":[{"@type":"t/google.rpc.RetryInfo","retryDelay":"34.07s"}]}}]"#,
                Some(34_070),
            ),
            (vec![], r#"{"error":{"message":"m","retry_after":3}}"#, Some(3_000)),
            (vec![], r#"{"message":"m","retry_after_ms":"250"}"#, Some(250)),
            (
                vec![],
                r#"{"error":{"code":429,"message":"m","metadata":{"headers":{"X-RateLimit-Remaining":"0","X-RateLimit-Reset":"1700000005000"}}}}"#,
                Some(5_000),
            ),
            (vec![], r#"{"error":{"message":"Please try again in 1m0.5s."}}"#, Some(60_500)),
            (vec![("retry-after", "9")], r#"{"retry_after":3}"#, Some(9_000)),
            (vec![("retry-after", "9"), ("x-should-retry", "false")], "", None),
            (vec![], "", None),
        ] {
            let hint = read(Some(429), &headers, body).retry_after;
            assert_eq!(hint.map(|wait| wait.as_millis()), milliseconds, "{body}");
        }
        let forced = read(Some(400), &[("x-should-retry", "true"), ("retry-after", "2")], "");
        assert_eq!(
            (forced.should_retry, forced.retry_after),
            (Some(true), Some(Duration::from_secs(2)))
        );
        assert_eq!(read(Some(400), &[("retry-after", "2")], "").retry_after, None);
        assert_eq!(read(Some(500), &[("x-should-retry", "maybe")], "").should_retry, None);
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
