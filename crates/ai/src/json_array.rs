//! [`JsonArray`]: the items of one JSON array that arrives in lines.
//!
//! It counts brackets outside strings, so each byte is looked at once, and knows nothing else of
//! JSON: whether an item is valid is decided when it is read. Only objects and arrays are items; what
//! else stands between them is passed over. What follows the array is ignored.

use crate::lines::{MAX_LINE_BYTES, TooLong};

/// Cuts an array into its items.
#[derive(Debug, Default)]
pub(crate) struct JsonArray {
    /// The item that has begun.
    item: Vec<u8>,
    depth: usize,
    in_string: bool,
    escaped: bool,
    closed: bool,
}

impl JsonArray {
    /// Takes in the next line and hands each item that ends in it to `sink`.
    pub(crate) fn push(&mut self, line: &[u8], sink: &mut dyn FnMut(&[u8])) -> Result<(), TooLong> {
        for byte in line.iter().chain(b"\n") {
            if self.closed {
                return Ok(());
            }
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.closed = self.depth == 0;
                }
                _ => {}
            }
            let opens = self.depth == 2 && matches!(byte, b'{' | b'[');
            if self.item.is_empty() && !opens {
                continue;
            }
            if self.item.len() == MAX_LINE_BYTES {
                return Err(TooLong);
            }
            self.item.push(*byte);
            if self.depth == 1 && !self.in_string {
                sink(&self.item);
                self.item.clear();
            }
        }
        Ok(())
    }

    /// The item that was cut off, if there is one.
    pub(crate) fn into_rest(self) -> Option<Vec<u8>> {
        Some(self.item).filter(|rest| !rest.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC M4
    #[test]
    fn items_are_cut_at_their_own_brackets() {
        for (body, items, rest) in [
            ("[]", &[][..], None),
            ("[{}]", &["{}"], None),
            (
                r#"[{"a":"]}\"["},{"b":[1,{}]}]{"c":1}"#,
                &[r#"{"a":"]}\"["}"#, r#"{"b":[1,{}]}"#],
                None,
            ),
            ("[{\"a\":\n1}\n,\n{}", &["{\"a\":\n1}", "{}"], None),
            ("[1, \"x\", [2]]", &["[2]"], None),
            ("[{}, {\"a\": \"}", &["{}"], Some("{\"a\": \"}\n")),
        ] {
            let mut array = JsonArray::default();
            let mut seen = Vec::new();
            for line in body.split('\n') {
                let pushed = array.push(line.as_bytes(), &mut |item| {
                    seen.push(String::from_utf8_lossy(item).into_owned());
                });
                assert_eq!(pushed, Ok(()), "{body}");
            }
            assert_eq!(seen, items, "{body}");
            let cut = array.into_rest().map(|rest| String::from_utf8_lossy(&rest).into_owned());
            assert_eq!(cut.as_deref(), rest, "{body}");
        }
    }
}
