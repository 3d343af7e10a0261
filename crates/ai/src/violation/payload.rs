//! Which tools a call's JSON names, as far as the JSON goes.
//!
//! Reads `{"name": …}`, a list of those, and `{"function": {"name": …}}`, with the name's other
//! common keys. It is lenient, because the text may be cut anywhere and need not be JSON at all: it
//! stops at the first character that JSON cannot have there.

/// What a payload came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Payload<'a> {
    /// The names, in order.
    pub(super) names: Vec<&'a str>,
    /// How many bytes were read.
    pub(super) length: usize,
}

/// How deep names are looked for: arguments may be nested at will, names are not.
const LIST: usize = 1;

/// Reads the JSON that `text` begins with.
pub(super) fn read(text: &str) -> Payload<'_> {
    let bytes = text.as_bytes();
    let base = if bytes.first() == Some(&b'[') { LIST } else { 0 };
    let mut names = Vec::new();
    let (mut depth, mut at) = (0_usize, 0_usize);
    let mut key: Option<&str> = None;
    let mut in_function = false;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' | b'[' => {
                if depth == base + 1 {
                    in_function = *byte == b'{' && key == Some("function");
                }
                depth += 1;
                key = None;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                key = None;
                if depth == 0 {
                    return Payload { names, length: at + 1 };
                }
            }
            b'"' => {
                let end = string_end(bytes, at + 1);
                let string = &text[at + 1..end];
                // Past the closing quote; at the end of a string that was cut.
                at = (end + 1).min(bytes.len());
                if bytes[at..].trim_ascii_start().first() == Some(&b':') {
                    key = Some(string);
                    continue;
                }
                let names_call = match key {
                    Some("name") => depth == base + 1 || (depth == base + 2 && in_function),
                    Some("tool" | "tool_name" | "function") => depth == base + 1,
                    Some(_) | None => false,
                };
                if names_call {
                    names.push(string);
                }
                key = None;
                continue;
            }
            b',' => key = None,
            b':' | b'-' | b'+' | b'.' => {}
            other if other.is_ascii_alphanumeric() || other.is_ascii_whitespace() => {}
            _ => break,
        }
        at += 1;
    }
    Payload { names, length: at }
}

/// Where the string that began before `at` ends: at its quote, or with the text.
fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        at += found;
        if bytes[at] == b'"' {
            return at;
        }
        at += 2;
    }
    bytes.len()
}
