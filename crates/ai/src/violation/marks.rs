//! The marks of a text: the tags and tokens that models write calls with.
//!
//! Knows how each is spelled and where it ends, and not whether it is meant. A family's spelling is
//! here and nowhere else:
//! - `<invoke name="X">`, also with a namespace, and `<function name="X">`, `<tool_call name="X">`;
//! - `<function=X>`;
//! - the same with a word in bars, `<｜DSML｜invoke name="X">`;
//! - `<tool_call>`, `<tool_calls>`, `<function_call>`, `<function_calls>`, alone or with JSON, or with
//!   the bare name of the tool;
//! - special tokens, `<|tool_call_begin|>functions.X:0` and `<｜tool▁call▁begin｜>X`, and
//!   `[TOOL_CALLS]`.

use std::ops::Range;

use super::payload;

/// The longest tag. A call's tag has a name and perhaps an id.
const MAX_TAG_BYTES: usize = 512;

/// The longest name of a tool. APIs allow 64 to 128.
const MAX_NAME_BYTES: usize = 128;

/// A tag or token, with its payload where that names the tools.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mark<'a> {
    pub(super) kind: Kind<'a>,
    pub(super) start: usize,
    pub(super) end: usize,
    /// Where the line begins on which the mark does.
    pub(super) line: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    /// A tag that names a tool and has a body, unless it closes itself.
    Element { name: &'a str, closed: bool },
    /// A mark whose content names the tools; `token` for those that no prose has.
    Payload { names: Vec<&'a str>, token: bool },
    /// What is put around calls.
    Wrapper,
    /// The end of a call or of a wrapper.
    Close,
}

/// The marks that begin outside of `code`, in order.
pub(super) fn outside<'a>(text: &'a str, code: &[Range<usize>]) -> Vec<Mark<'a>> {
    let bytes = text.as_bytes();
    let mut marks = Vec::new();
    let mut code = code.iter().peekable();
    let (mut at, mut line, mut counted) = (0, 0, 0);
    while let Some(found) = memchr::memchr2(b'<', b'[', &bytes[at..]) {
        let start = at + found;
        while code.next_if(|range| range.end <= start).is_some() {}
        if let Some(range) = code.peek()
            && range.contains(&start)
        {
            at = range.end;
            continue;
        }
        let begins = bytes.get(start + 1).is_some_and(|next| may_begin(bytes[start], *next));
        let Some((kind, end)) = begins.then(|| mark(text, start)).flatten() else {
            at = start + 1;
            continue;
        };
        if let Some(newline) = memchr::memrchr(b'\n', &bytes[counted..start]) {
            line = counted + newline + 1;
        }
        counted = start;
        at = end.max(start + 1);
        marks.push(Mark { kind, start, end, line });
    }
    marks
}

/// Whether these two bytes may begin a mark: most brackets are told apart by that.
fn may_begin(bracket: u8, next: u8) -> bool {
    match bracket {
        b'<' => next.is_ascii_alphabetic() || matches!(next, b'/' | b'|') || !next.is_ascii(),
        _ => next == b'T',
    }
}

/// The mark that begins at `start`, and where it ends.
fn mark(text: &str, start: usize) -> Option<(Kind<'_>, usize)> {
    let from = &text[start..];
    let at = |rest: &str| text.len() - rest.len();
    if let Some(rest) = from.strip_prefix("[TOOL_CALLS]") {
        return Some(token_payload(rest, at));
    }
    let rest = from.strip_prefix('<')?;
    let (closes, rest) = without_slash(rest);
    let Some((word, rest)) = barred(rest) else {
        return tag(text, start, closes, rest);
    };
    if let Some(rest) = rest.strip_prefix('>') {
        return token(word, closes, rest, at);
    }
    let (closes_within, rest) = without_slash(rest);
    tag(text, start, closes || closes_within, rest)
}

fn without_slash(text: &str) -> (bool, &str) {
    text.strip_prefix('/').map_or((false, text), |rest| (true, rest))
}

/// A word between two bars, as special tokens have it, and what is behind.
fn barred(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix(['|', '｜'])?;
    let length = word_length(rest, |c| c.is_alphanumeric() || matches!(c, '_' | '▁' | '/'));
    let after = rest[length..].strip_prefix(['|', '｜'])?;
    Some((&rest[..length], after))
}

/// How many bytes at the beginning are a word, which is no longer than a name may be.
fn word_length(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.char_indices()
        .find(|(at, c)| *at >= MAX_NAME_BYTES || !belongs(*c))
        .map_or(text.len(), |(at, _)| at)
}

/// A special token: `word` is what it says, `rest` what is behind it.
fn token<'a>(
    word: &str,
    closes: bool,
    rest: &'a str,
    at: impl Fn(&str) -> usize,
) -> Option<(Kind<'a>, usize)> {
    let word = word.replace('▁', "_");
    match word.trim_start_matches('/') {
        "tool_call" | "tool_calls" if closes || word.starts_with('/') => {
            Some((Kind::Close, at(rest)))
        }
        "tool_call_end" | "tool_calls_end" | "tool_calls_section_end" => {
            Some((Kind::Close, at(rest)))
        }
        "tool_call_begin" | "tool_call_start" | "tool_call" | "tool_calls" => {
            Some(token_payload(rest, at))
        }
        "tool_calls_begin" | "tool_calls_section_begin" => Some((Kind::Wrapper, at(rest))),
        _ => None,
    }
}

/// What is behind a special token: JSON, or a name with more tokens and its arguments.
fn token_payload<'a>(rest: &'a str, at: impl Fn(&str) -> usize) -> (Kind<'a>, usize) {
    let content = rest.trim_start();
    if content.starts_with(['{', '[']) {
        return json(content, true, &at).unwrap_or_else(|end| (Kind::Wrapper, end));
    }
    let (mut name, mut behind) = bare_name(content);
    if name == "function"
        && let Some((_, after)) = separator(behind)
    {
        (name, behind) = bare_name(after);
    }
    // In the form of a token, a name is followed by another token, by arguments or by nothing.
    let follows = behind.trim_start();
    let is_call = behind.is_empty()
        || behind.starts_with(['\n', '\r'])
        || follows.starts_with(['<', '[', '{']);
    if name.is_empty() || !is_call {
        return (Kind::Wrapper, at(rest));
    }
    let arguments = separator(follows).map_or(follows, |(_, after)| after).trim_start();
    let end = if arguments.starts_with('{') {
        at(arguments) + payload::read(arguments).length
    } else {
        at(behind)
    };
    (Kind::Payload { names: vec![tool_name(name)], token: true }, end)
}

/// A token between a name and its arguments, and what is behind it.
fn separator(text: &str) -> Option<(&str, &str)> {
    if let Some(rest) = text.strip_prefix("[ARGS]") {
        return Some(("[ARGS]", rest));
    }
    let (word, rest) = barred(text.strip_prefix('<')?)?;
    let is_separator = matches!(word, "tool_call_argument_begin" | "tool_sep" | "tool▁sep");
    Some((word, rest.strip_prefix('>').filter(|_| is_separator)?))
}

/// A tag in angle brackets whose words begin at `rest`.
fn tag<'a>(text: &'a str, start: usize, closes: bool, rest: &'a str) -> Option<(Kind<'a>, usize)> {
    let begin = text.len() - rest.len();
    let word = |from: &'a str| &from[..word_length(from, |c| c.is_ascii_alphabetic() || c == '_')];
    let first = word(rest);
    // A namespace, such as a vendor's.
    let local = rest[first.len()..].strip_prefix(':').unwrap_or(rest);
    let name = word(local);
    let attributes = &local[name.len()..];
    if !matches!(
        name,
        "invoke" | "function" | "function_call" | "function_calls" | "tool_call" | "tool_calls"
    ) {
        return None;
    }
    let bytes = text.as_bytes();
    let window = &bytes[begin..bytes.len().min(start + MAX_TAG_BYTES)];
    // A tag that the text's end cuts has no bracket to end with.
    let close = match memchr::memchr2(b'>', b'<', window) {
        Some(close) if window[close] == b'>' => begin + close,
        None if begin + window.len() == bytes.len() => bytes.len(),
        Some(_) | None => return None,
    };
    let end = (close + 1).min(bytes.len());
    let attributes = text.get(text.len() - attributes.len()..close)?;
    if closes {
        return attributes.trim().is_empty().then_some((Kind::Close, end));
    }
    let closed = attributes.ends_with('/');
    let attributes = attributes.strip_suffix('/').unwrap_or(attributes);
    if name == "function"
        && let Some(name) = attributes.strip_prefix('=')
    {
        let name = tool_name(name.trim().trim_matches(['"', '\'']));
        return Some((Kind::Element { name, closed }, end));
    }
    if let Some(name) = name_attribute(attributes) {
        return Some((Kind::Element { name: tool_name(name), closed }, end));
    }
    if !attributes.is_empty() || matches!(name, "invoke" | "function") {
        return None;
    }
    Some(wrapper_payload(text, end, name == "tool_call"))
}

/// The value of a tag's attribute `name`, also of one that is cut before its closing quote.
fn name_attribute(attributes: &str) -> Option<&str> {
    let value = attributes.match_indices("name").find_map(|(at, word)| {
        let before = attributes[..at].chars().next_back()?;
        let value = attributes[at + word.len()..].trim_start().strip_prefix('=')?;
        before.is_whitespace().then(|| value.trim_start())
    })?;
    match value.chars().next().filter(|quote| matches!(quote, '"' | '\'')) {
        Some(quote) => value[1..].split(quote).next(),
        None => value.split_whitespace().next(),
    }
}

/// What is behind a wrapper's tag that ends at `end`: JSON, or with `bare` the name of a tool.
fn wrapper_payload(text: &str, end: usize, bare: bool) -> (Kind<'_>, usize) {
    let at = |rest: &str| text.len() - rest.len();
    let content = text[end..].trim_start();
    if content.starts_with(['{', '[']) {
        return json(content, false, &at).unwrap_or_else(|end| (Kind::Wrapper, end));
    }
    let (name, behind) = bare_name(content);
    let follows = behind.trim_start();
    if !bare || name.is_empty() || !(follows.is_empty() || follows.starts_with(['<', '{'])) {
        return (Kind::Wrapper, end);
    }
    let end = if follows.starts_with('{') {
        at(follows) + payload::read(follows).length
    } else {
        at(behind)
    };
    (Kind::Payload { names: vec![tool_name(name)], token: false }, end)
}

/// JSON that names tools, or where it ends that names none.
fn json<'a>(
    content: &'a str,
    token: bool,
    at: &impl Fn(&str) -> usize,
) -> Result<(Kind<'a>, usize), usize> {
    let payload::Payload { names, length } = payload::read(content);
    let end = at(content) + length;
    if names.is_empty() {
        return Err(end);
    }
    Ok((Kind::Payload { names: names.into_iter().map(tool_name).collect(), token }, end))
}

/// A name without quotes at the beginning of a text, and what is behind it.
fn bare_name(text: &str) -> (&str, &str) {
    text.split_at(word_length(text, |c| {
        c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/')
    }))
}

/// A tool's name without what templates put around it: `functions.Read:0` is `Read`.
fn tool_name(name: &str) -> &str {
    let name = name.strip_prefix("functions.").unwrap_or(name);
    match name.rsplit_once(':') {
        Some((own, number))
            if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            own
        }
        Some(_) | None => name,
    }
}
