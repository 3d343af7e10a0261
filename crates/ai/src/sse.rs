//! [`SseDecoder`]: server-sent events out of bytes, without I/O.
//!
//! The format is the one of the HTML standard, "Server-sent events": lines of `field: value`, a blank
//! line ends an event. Bytes may come in any pieces, the last event may lack its blank line. What is
//! no field of that format is not thrown away but handed out as [`SseItem::Stray`], because hosts
//! put bare JSON errors into streams. An event of one `data` line that came in one piece is lent
//! from that piece; nothing is searched twice. Knows nothing of what the data means.

use memchr::memchr;

pub use crate::lines::TooLong;
use crate::lines::{Line, Lines, MAX_LINE_BYTES};

/// A buffer grown beyond this by one large event is given back instead of kept for the next.
const KEPT_CAPACITY: usize = 1024 * 1024;

/// The longest event name that is kept; a longer one is no name of any API and is cut.
const MAX_EVENT_NAME: usize = 256;

pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What a stream of server-sent events is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SseItem<'a> {
    /// An event that had data.
    Event {
        /// Its name; empty when the stream did not say.
        name: &'a str,
        /// Its data, several lines joined with LF.
        data: &'a [u8],
        /// Its blank line came; otherwise the stream ended on it, perhaps in the middle.
        terminated: bool,
    },
    /// A line that is no field, no comment and not blank.
    Stray(&'a [u8]),
}

/// Decodes server-sent events. See the module's documentation for what it promises.
#[derive(Clone, Debug, Default)]
pub struct SseDecoder {
    lines: Lines,
    past_first_line: bool,
    pending: Pending,
}

/// The event that is being collected.
#[derive(Clone, Debug, Default)]
struct Pending {
    name: String,
    /// The data lines so far, but for what is still lent from the current piece.
    data: Vec<u8>,
    has_data: bool,
}

impl SseDecoder {
    /// A decoder at the beginning of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in the next bytes and hands out what they complete.
    ///
    /// # Errors
    /// [`TooLong`] when one event exceeds 64 MiB; the decoder is of no use afterwards.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(SseItem<'_>)) -> Result<(), TooLong> {
        let Self { lines, past_first_line, pending } = self;
        let mut lent: Option<&[u8]> = None;
        lines.push(bytes, |line| match line {
            Line::InChunk(line) => {
                pending.take_line(unmarked(line, past_first_line), &mut lent, sink)
            }
            Line::Joined(line) => {
                pending.settle(&mut lent)?;
                let mut own = None;
                pending.take_line(unmarked(line, past_first_line), &mut own, sink)?;
                pending.settle(&mut own)
            }
        })?;
        pending.settle(&mut lent)
    }

    /// Ends the stream: a last line without its end and a last event without its blank line are
    /// handed out.
    ///
    /// # Errors
    /// [`TooLong`] as in [`Self::push`].
    pub fn finish(&mut self, sink: &mut dyn FnMut(SseItem<'_>)) -> Result<(), TooLong> {
        let mut lent = None;
        let rest = self.lines.take_rest();
        if let Some(rest) = &rest {
            let line = unmarked(rest, &mut self.past_first_line);
            self.pending.take_line(line, &mut lent, sink)?;
        }
        self.pending.dispatch(lent, false, sink);
        Ok(())
    }
}

/// The line without the byte-order mark that may stand before the first one.
fn unmarked<'line>(line: &'line [u8], past_first_line: &mut bool) -> &'line [u8] {
    if std::mem::replace(past_first_line, true) {
        line
    } else {
        line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line)
    }
}

impl Pending {
    fn take_line<'line>(
        &mut self,
        line: &'line [u8],
        lent: &mut Option<&'line [u8]>,
        sink: &mut dyn FnMut(SseItem<'_>),
    ) -> Result<(), TooLong> {
        if line.is_empty() {
            self.dispatch(lent.take(), true, sink);
            return Ok(());
        }
        let (field, value) = match memchr(b':', line) {
            Some(colon) => {
                let value = line.get(colon + 1..).unwrap_or_default();
                (line.get(..colon).unwrap_or_default(), value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &b""[..]),
        };
        match field {
            b"data" => {
                if self.has_data || lent.is_some() {
                    self.settle(lent)?;
                    self.keep(b"\n")?;
                    self.keep(value)?;
                } else {
                    *lent = Some(value);
                }
            }
            b"event" => {
                let name = value.get(..MAX_EVENT_NAME).unwrap_or(value);
                self.name.clear();
                self.name.push_str(&String::from_utf8_lossy(name));
            }
            // A comment, and the two fields that are about resuming.
            b"" | b"id" | b"retry" => {}
            _ => sink(SseItem::Stray(line)),
        }
        Ok(())
    }

    /// Copies what is still lent, before the piece that it lies in goes away.
    fn settle(&mut self, lent: &mut Option<&[u8]>) -> Result<(), TooLong> {
        if let Some(value) = lent.take() {
            self.keep(value)?;
            self.has_data = true;
        }
        Ok(())
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        if self.data.len().saturating_add(bytes.len()) > MAX_LINE_BYTES {
            return Err(TooLong);
        }
        self.data.extend_from_slice(bytes);
        Ok(())
    }

    fn dispatch(
        &mut self,
        lent: Option<&[u8]>,
        terminated: bool,
        sink: &mut dyn FnMut(SseItem<'_>),
    ) {
        let data = lent.or_else(|| self.has_data.then_some(&self.data[..]));
        if let Some(data) = data {
            sink(SseItem::Event { name: &self.name, data, terminated });
        }
        self.name.clear();
        self.data.clear();
        self.data.shrink_to(KEPT_CAPACITY);
        self.has_data = false;
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_LINE_BYTES, SseDecoder, SseItem, TooLong};

    /// An item on one line: `name|data`, with `~` behind an event whose blank line did not come.
    fn shown(item: SseItem<'_>) -> String {
        match item {
            SseItem::Event { name, data, terminated } => format!(
                "{name}|{}{}",
                String::from_utf8_lossy(data),
                if terminated { "" } else { "~" }
            ),
            SseItem::Stray(line) => format!("stray {}", String::from_utf8_lossy(line)),
        }
    }

    fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let mut decoder = SseDecoder::new();
        let mut items = Vec::new();
        for piece in pieces {
            decoder.push(piece, &mut |item| items.push(shown(item))).expect("within the limit");
        }
        decoder.finish(&mut |item| items.push(shown(item))).expect("within the limit");
        items
    }

    /// SPEC M4
    #[test]
    fn events_are_the_same_however_the_bytes_are_cut() {
        let cases: &[(&str, &[&str])] = &[
            ("", &[]),
            ("data: a\n\n", &["|a"]),
            ("data:a\n\n", &["|a"]),
            ("data:  a\n\n", &["| a"]),
            ("data: a\r\n\r\ndata: b\r\n\r\n", &["|a", "|b"]),
            ("data: a\r\rdata: b\r\r", &["|a", "|b"]),
            ("data: a\r\n\rdata: b\n\r\n", &["|a", "|b"]),
            ("data: a\ndata: b\ndata\ndata: c\n\n", &["|a\nb\n\nc"]),
            ("event: x\ndata: a\n\ndata: b\n\n", &["x|a", "|b"]),
            ("event: x\n\ndata: b\n\n", &["|b"]),
            ("data: a\nevent: x\n\n", &["x|a"]),
            (": keep-alive\n\n:\n\nid: 1\nretry: 5\ndata: a\n\n", &["|a"]),
            ("data:\n\n", &["|"]),
            ("\u{feff}data: a\n\n\u{feff}data: b\n\n", &["|a", "stray \u{feff}data: b"]),
            ("data: a\n\ndata: last\n", &["|a", "|last~"]),
            ("data: a\n\ndata: last", &["|a", "|last~"]),
            ("data: zwölf 🦀\n\n", &["|zwölf 🦀"]),
            (
                "{\"error\":\n {\"message\": \"no\"}}",
                &["stray {\"error\":", "stray  {\"message\": \"no\"}}"],
            ),
            ("data: a\n\n{\"error\": 1}\n", &["|a", "stray {\"error\": 1}"]),
            ("data: a\noops\n\n", &["stray oops", "|a"]),
        ];
        for (body, expected) in cases {
            let body = body.as_bytes();
            assert_eq!(decode([body]), *expected, "{body:?} in one piece");
            assert_eq!(decode(body.chunks(1)), *expected, "{body:?} byte by byte");
            for at in 0..body.len() {
                let (head, tail) = body.split_at(at);
                assert_eq!(decode([head, tail]), *expected, "{body:?} split at {at}");
            }
        }
    }

    /// SPEC M4
    #[test]
    fn an_event_of_8_mb_arrives_whole_in_small_pieces() {
        let data = "x".repeat(8 * 1024 * 1024);
        let body = format!("data: {data}\n\n");
        let mut decoder = SseDecoder::new();
        let mut lengths = Vec::new();
        for piece in body.as_bytes().chunks(1400) {
            decoder
                .push(piece, &mut |item| match item {
                    SseItem::Event { data, .. } => lengths.push(data.len()),
                    SseItem::Stray(_) => lengths.push(0),
                })
                .expect("within the limit");
        }
        assert_eq!(lengths, [data.len()]);
    }

    /// SPEC M4
    #[test]
    fn an_event_beyond_the_limit_is_refused() {
        let line = [b"data: ".to_vec(), vec![b'x'; 1024 * 1024], b"\n".to_vec()].concat();
        let mut decoder = SseDecoder::new();
        let refused_after = (1..).find(|_| decoder.push(&line, &mut |_| ()) == Err(TooLong));
        assert_eq!(refused_after, Some(MAX_LINE_BYTES / (1024 * 1024)));
    }
}
