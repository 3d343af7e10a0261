//! [`Rendered`]: one answer's body, whole, with the places where its events begin and end.
//!
//! Owns the framing of server-sent events. Knows no API and no fault: those are laid over the places
//! by [`crate::plan`].

use serde_json::Value;

/// One answer's body.
#[derive(Debug)]
pub(crate) struct Rendered {
    pub(crate) bytes: Vec<u8>,
    pub(crate) events: Vec<EventMark>,
    /// Where the events begin that say that the answer is complete.
    pub(crate) end_marker: usize,
    /// What ends an event: the end of its last line and an empty line.
    event_end: &'static str,
}

/// Where one event is in the body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventMark {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// It carries a piece of a block, or a block that comes in one piece.
    pub(crate) is_delta: bool,
}

impl Default for Rendered {
    fn default() -> Self {
        Self::with_event_end("\n\n")
    }
}

impl Rendered {
    /// A body whose lines end in CRLF, as Google's do.
    pub(crate) fn with_crlf() -> Self {
        Self::with_event_end("\r\n\r\n")
    }

    const fn with_event_end(event_end: &'static str) -> Self {
        Self { bytes: Vec::new(), events: Vec::new(), end_marker: 0, event_end }
    }

    /// Appends an event: `head` is what comes before its data, such as an `event:` line.
    pub(crate) fn event(&mut self, head: &str, data: &Value) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(head.as_bytes());
        self.bytes.extend_from_slice(b"data: ");
        self.bytes.extend_from_slice(data.to_string().as_bytes());
        self.finish_event(start, false);
    }

    /// Appends an event that carries a whole block.
    pub(crate) fn block(&mut self, data: &Value) {
        self.event("", data);
        if let Some(event) = self.events.last_mut() {
            event.is_delta = true;
        }
    }

    /// Appends a delta that is the same as its siblings but for one string.
    pub(crate) fn delta(&mut self, before: &str, text: &str, after: &str) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(before.as_bytes());
        self.bytes.extend_from_slice(Value::from(text).to_string().as_bytes());
        self.bytes.extend_from_slice(after.as_bytes());
        self.finish_event(start, true);
    }

    /// Appends an event whose data is not JSON.
    pub(crate) fn literal(&mut self, data: &str) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(b"data: ");
        self.bytes.extend_from_slice(data.as_bytes());
        self.finish_event(start, false);
    }

    /// From here on the events say that the answer is complete.
    pub(crate) fn begin_end_marker(&mut self) {
        self.end_marker = self.bytes.len();
    }

    fn finish_event(&mut self, start: usize, is_delta: bool) {
        self.bytes.extend_from_slice(self.event_end.as_bytes());
        self.events.push(EventMark { start, end: self.bytes.len(), is_delta });
    }
}

/// `text` in pieces of `chars` characters; nothing for an empty text.
pub(crate) fn pieces(text: &str, chars: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.char_indices().nth(chars).map_or(rest.len(), |(index, _)| index);
        let (piece, remainder) = rest.split_at(end);
        rest = remainder;
        Some(piece)
    })
}
