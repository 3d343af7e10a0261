//! [`JsonExtent`]: whether text that arrives in pieces is a whole JSON object or array yet.
//!
//! It counts brackets outside strings, so each byte is looked at once, and it knows nothing else
//! of JSON: whether the text is valid is decided when it is parsed.

/// How far a JSON text has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct JsonExtent {
    depth: usize,
    in_string: bool,
    escaped: bool,
    complete: bool,
}

impl JsonExtent {
    /// Takes in the next piece.
    pub(crate) fn push(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.complete |= self.depth == 0;
                }
                _ => {}
            }
        }
    }

    /// Whether the outermost bracket was closed.
    pub(crate) fn is_complete(self) -> bool {
        self.complete
    }
}
