//! [`Fold`]: what a terminal would have left of an output.
//!
//! Escape sequences are taken out, a carriage return begins the line anew, a backspace takes a
//! character back. It works on pieces of any size, in constant memory, and passes over output that
//! needs nothing of this in one step.

/// How much of an unfinished line is held back in case a carriage return takes it away, in bytes.
/// A longer line is no progress line; it is passed on and a carriage return then ends it.
const MAX_HELD_BYTES: usize = 16 * 1024;

/// How long a terminal's own text (a title, a link) may be, in bytes, before it is taken for
/// output after all: an unfinished one must not swallow the rest.
const MAX_STRING_BYTES: usize = 4 * 1024;

const BACKSPACE: u8 = 0x08;
const BELL: u8 = 0x07;
const ESCAPE: u8 = 0x1b;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Text.
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// In ESC [ …, up to a letter.
    Control,
    /// In ESC ] … and its like, up to BEL or ESC \.
    String { length: usize },
    /// After ESC in such a string.
    StringEscape,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Fold {
    state: State,
    line: Vec<u8>,
    /// A carriage return came, and nothing yet to take the line's place.
    returned: bool,
}

impl Fold {
    /// Takes a piece of output and hands on what is final of it.
    pub(super) fn push(&mut self, bytes: &[u8], out: &mut impl FnMut(&[u8])) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.state == State::Text {
                let plain = plain(rest);
                self.text(&rest[..plain], out);
                rest = &rest[plain..];
            }
            if let Some((&byte, after)) = rest.split_first() {
                self.special(byte, out);
                rest = after;
            }
        }
    }

    /// Hands on the last line, which has no end.
    pub(super) fn finish(&mut self, out: &mut impl FnMut(&[u8])) {
        out(&self.line);
        *self = Self::default();
    }

    /// The line that is not final yet.
    pub(super) fn held(&self) -> &[u8] {
        &self.line
    }

    fn text(&mut self, text: &[u8], out: &mut impl FnMut(&[u8])) {
        if text.is_empty() {
            return;
        }
        if std::mem::take(&mut self.returned) && text[0] != b'\n' {
            self.line.clear();
        }
        let lines = memchr::memrchr(b'\n', text).map_or(0, |at| at + 1);
        let (lines, unfinished) = text.split_at(lines);
        if !lines.is_empty() {
            out(&self.line);
            self.line.clear();
            out(lines);
        }
        self.line.extend_from_slice(unfinished);
        if self.line.len() > MAX_HELD_BYTES {
            out(&self.line);
            self.line.clear();
        }
    }

    fn special(&mut self, byte: u8, out: &mut impl FnMut(&[u8])) {
        self.state = match (self.state, byte) {
            (State::Text, ESCAPE) => State::Escape,
            (State::Text, b'\r') => {
                self.returned = true;
                State::Text
            }
            (State::Text, BACKSPACE) => {
                // A character of several bytes goes as a whole.
                while self.line.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
                State::Text
            }
            (State::Text, _) => {
                self.text(&[byte], out);
                State::Text
            }
            (State::Escape, b'[') => State::Control,
            (State::Escape, b']' | b'P' | b'X' | b'^' | b'_') => State::String { length: 0 },
            // Bytes between ESC and its letter, as in the choice of a character set.
            (State::Escape, 0x20..=0x2f) => State::Escape,
            (State::Escape, ESCAPE) => State::Escape,
            (State::Escape, _) => State::Text,
            (State::Control, b'K') => {
                // The line is erased: from here to its end, which after a return is all of it.
                if self.returned {
                    self.line.clear();
                }
                State::Text
            }
            (State::Control, 0x40..=0x7e) => State::Text,
            // A line end never belongs to a sequence: this one was torn.
            (State::Control, b'\n') => {
                self.text(b"\n", out);
                State::Text
            }
            (State::Control, ESCAPE) => State::Escape,
            (State::Control, _) => State::Control,
            (State::String { .. }, BELL) => State::Text,
            (State::String { .. }, ESCAPE) => State::StringEscape,
            (State::String { length: MAX_STRING_BYTES.. }, _) => State::Text,
            (State::String { length }, _) => State::String { length: length + 1 },
            // ESC \ ends a string; any other ESC begins a sequence, whose letter this is.
            (State::StringEscape, b'[') => State::Control,
            (State::StringEscape, _) => State::Text,
        };
    }
}

/// How many bytes from the start are plain text.
fn plain(bytes: &[u8]) -> usize {
    memchr::memchr3(b'\r', ESCAPE, BACKSPACE, bytes).unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(input: &[u8], chunk: usize) -> Vec<u8> {
        let mut fold = Fold::default();
        let mut output = Vec::new();
        for chunk in input.chunks(chunk) {
            fold.push(chunk, &mut |bytes| output.extend_from_slice(bytes));
        }
        fold.finish(&mut |bytes| output.extend_from_slice(bytes));
        output
    }

    /// SPEC B5
    #[test]
    fn what_a_terminal_would_show_is_left() {
        let cases: [(&[u8], &[u8]); 20] = [
            (b"plain\ntext\n", b"plain\ntext\n"),
            (b"no end", b"no end"),
            (b"dos\r\nlines\r\n", b"dos\nlines\n"),
            (b" 10%\r 50%\r100%\ndone\n", b"100%\ndone\n"),
            (b"10%\r20%\r", b"20%"),
            (b"before\n10%\r\n20%\n", b"before\n10%\n20%\n"),
            (b"\x1b[1;31mred\x1b[0m and \x1b[Kplain\n", b"red and plain\n"),
            (b"wait\r\x1b[Kdone\n", b"done\n"),
            (b"gone\r\x1b[K\n", b"\n"),
            (b"\x1b]0;title\x07text\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", b"textlink\n"),
            (b"\x1b(Bset\x1b=\x1b>\n", b"set\n"),
            (b"ab\x08c \xc3\xa9\x08e\n", b"ac e\n"),
            (b"\x08\x08x\n", b"x\n"),
            (b"torn \x1b[31\nnext\n", b"torn \nnext\n"),
            (b"torn at the end\x1b[3", b"torn at the end"),
            (b"\xff\xfe\r\n", b"\xff\xfe\n"),
            (b"\r\r\n", b"\n"),
            (b"a\r\r\nb", b"a\nb"),
            (b"", b""),
            (b"\n\n", b"\n\n"),
        ];
        for (input, output) in cases {
            for chunk in [1, 2, 3, 1_000] {
                let folded = folded(input, chunk);
                assert_eq!(
                    folded.escape_ascii().to_string(),
                    output.escape_ascii().to_string(),
                    "{} by {chunk}",
                    input.escape_ascii()
                );
            }
        }
    }

    #[test]
    fn a_long_line_is_not_held_back() {
        let mut fold = Fold::default();
        let mut passed = 0;
        for _ in 0..100 {
            fold.push(&[b'x'; 1_000], &mut |bytes| passed += bytes.len());
            assert!(fold.held().len() <= MAX_HELD_BYTES);
        }
        fold.finish(&mut |bytes| passed += bytes.len());
        assert_eq!(passed, 100_000);
    }

    #[test]
    fn an_unfinished_title_does_not_swallow_the_rest() {
        let input = [b"\x1b]0;".as_slice(), &[b't'; MAX_STRING_BYTES + 1], b"\ntext\n"].concat();
        assert!(folded(&input, 100).ends_with(b"\ntext\n"));
    }
}
