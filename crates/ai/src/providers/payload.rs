//! One JSON payload of a stream: how it is read, mended where hosts break JSON, and searched for an
//! error.

use memchr::memchr;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::error::{ErrorKind, ProviderError};
use crate::error_response;

/// One payload as its framing cut it out of the stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payload<'a> {
    /// The event's name; empty when the framing gave none.
    pub(crate) name: &'a str,
    /// The JSON text.
    pub(crate) data: &'a [u8],
    /// The framing's end of the payload came; otherwise the stream may have been cut inside it.
    pub(crate) terminated: bool,
}

impl Payload<'_> {
    /// The mark that ends many streams and proves nothing (SPEC M5).
    pub(crate) fn is_done_mark(&self) -> bool {
        self.data.trim_ascii() == b"[DONE]"
    }

    /// Why this payload, which is not JSON, fails the stream; nothing when it may be ignored.
    fn failure(&self, error: &serde_json::Error) -> Option<ProviderError> {
        if self.data.trim_ascii().is_empty() || KEEP_ALIVES.contains(&self.name) {
            return None;
        }
        if self.name == "error" && self.terminated {
            return Some(error_response::from_body(None, &[], self.data));
        }
        Some(if self.terminated {
            ProviderError::new(
                ErrorKind::MalformedStream,
                format!("an event of the stream is not JSON: {error}"),
            )
        } else {
            ProviderError::new(ErrorKind::TruncatedStream, "the stream ended inside an event")
        })
    }
}

/// Hands a payload to `take`, which parses it before it changes anything; where that fails, hands on
/// what can be mended of it. Gives back why the payload fails the stream, if it does.
pub(crate) fn read(
    payload: Payload<'_>,
    mut take: impl FnMut(Payload<'_>) -> Result<(), serde_json::Error>,
) -> Option<ProviderError> {
    let error = take(payload).err()?;
    let mended = mended(payload.data);
    if mended.is_some_and(|data| take(Payload { data: &data, ..payload }).is_ok()) {
        return None;
    }
    payload.failure(&error)
}

/// The payloads of an event whose data is one JSON value a line: some hosts leave out the blank lines
/// between their events. Nothing where the lines are one value, as they are where they are one event.
pub(crate) fn one_a_line(event: Payload<'_>) -> Option<impl Iterator<Item = Payload<'_>>> {
    memchr(b'\n', event.data)?;
    if is_json(event.data) {
        return None;
    }
    let is_one = |line: Payload<'_>| line.is_done_mark() || is_json(line.data);
    // The last one may be cut, like any other event.
    lines(event).all(|line| !line.terminated || is_one(line)).then(|| lines(event))
}

fn lines(event: Payload<'_>) -> impl Iterator<Item = Payload<'_>> {
    let end = event.data.as_ptr_range().end;
    event.data.split(|byte| *byte == b'\n').map(move |data| {
        let is_last = data.as_ptr_range().end == end;
        Payload { data, terminated: event.terminated || !is_last, ..event }
    })
}

fn is_json(data: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(data).is_ok()
}

/// Parses a payload's text. Checked as a whole, UTF-8 costs a fraction of what it costs string by
/// string.
pub(crate) fn parse<'a, T: Deserialize<'a>>(data: &'a [u8]) -> Result<T, serde_json::Error> {
    match std::str::from_utf8(data) {
        Ok(text) => serde_json::from_str(text),
        // Strings that nobody reads may hold anything; the error names the place of another.
        Err(_) => serde_json::from_slice(data),
    }
}

/// Events whose only purpose is to keep a connection open.
const KEEP_ALIVES: [&str; 3] = ["ping", "keepalive", "heartbeat"];

/// The payload as JSON again, where it broke only in ways that can be mended without guessing:
/// bytes that are not UTF-8 and halves of surrogate pairs become replacement characters, and of
/// keys that are there twice the last one stays.
fn mended(data: &[u8]) -> Option<Vec<u8>> {
    let text = without_lone_surrogates(&String::from_utf8_lossy(data));
    let value: Value = serde_json::from_str(&text).ok()?;
    serde_json::to_vec(&value).ok()
}

/// Replaces `\uD800`-style escapes that have no partner, which JSON allows and UTF-8 does not.
fn without_lone_surrogates(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let (kept, length) = match surrogate(escape) {
            Some(Half::High) if escape.get(6..).and_then(surrogate) == Some(Half::Low) => (12, 12),
            Some(Half::High | Half::Low) => (0, 6),
            None => {
                let second = escape.chars().nth(1).map_or(0, char::len_utf8);
                (1 + second, 1 + second)
            }
        };
        if kept == 0 {
            out.push('\u{fffd}');
        }
        out.push_str(escape.get(..kept).unwrap_or_default());
        rest = escape.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    High,
    Low,
}

fn surrogate(escape: &str) -> Option<Half> {
    let digits = escape.strip_prefix("\\u")?.get(..4)?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xd800..=0xdbff => Some(Half::High),
        0xdc00..=0xdfff => Some(Half::Low),
        _ => None,
    }
}

/// The error that this JSON text is, in any of the shapes that hosts use.
pub(crate) fn error_in(data: &[u8]) -> Option<ProviderError> {
    let value: Value = serde_json::from_slice(data).ok()?;
    is_error(&value).then(|| error_response::from_body(None, &[], data))
}

/// The error under `error`, as if it had been a body of its own.
pub(crate) fn error_under(key: &'static str, error: &Value) -> ProviderError {
    let body = serde_json::json!({ key: error }).to_string();
    error_response::from_body(None, &[], body.as_bytes())
}

fn is_error(value: &Value) -> bool {
    let object = match value {
        Value::Array(items) => return items.first().is_some_and(is_error),
        Value::Object(object) => object,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return false,
    };
    let says_error = |key: &str| object.get(key).and_then(Value::as_str) == Some("error");
    let has_text = |key: &&str| object.get(*key).is_some_and(Value::is_string);
    let has_list =
        |key: &str| object.get(key).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    object.get("error").is_some_and(|error| !error.is_null())
        || has_list("errors")
        || says_error("object")
        || says_error("type")
        || MESSAGES.iter().any(has_text)
        || object.get("detail").is_some_and(|detail| !detail.is_null())
}

/// Fields that nothing but an error has at the top.
const MESSAGES: [&str; 5] = ["message", "Message", "msg", "error_message", "error_msg"];
