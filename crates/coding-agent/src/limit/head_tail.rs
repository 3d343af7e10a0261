//! [`HeadTail`]: the beginning and the end of a text of any length, in constant memory.

use std::collections::VecDeque;

/// The share of the head is one part in this many. The end of an output says how it went, so it
/// gets more than the beginning.
const HEAD_PART: usize = 3;

/// Keeps the first and the last bytes that are pushed into it and counts what is between.
#[derive(Clone, Debug)]
pub struct HeadTail {
    head_limit: usize,
    tail_limit: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    bytes: u64,
    newlines: u64,
}

/// A text with its middle left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shaped {
    /// The text. Bytes that are not UTF-8 are shown as U+FFFD.
    pub text: String,
    /// How many bytes are missing; zero when the text is whole.
    pub left_out: u64,
}

impl HeadTail {
    /// Keeps `limit` bytes, a third of them from the beginning.
    pub fn new(limit: usize) -> Self {
        let head_limit = limit / HEAD_PART;
        Self {
            head_limit,
            tail_limit: limit - head_limit,
            head: Vec::new(),
            tail: VecDeque::new(),
            bytes: 0,
            newlines: 0,
        }
    }

    /// Keeps `limit` bytes of a text that is there already.
    pub fn of(text: &str, limit: usize) -> Self {
        let mut this = Self::new(limit);
        this.push(text.as_bytes());
        this
    }

    /// Adds to the end.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.newlines += newlines(bytes);
        let into_head = bytes.len().min(self.head_limit - self.head.len());
        let (head, rest) = bytes.split_at(into_head);
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.tail_limit)..];
        let evicted = (self.tail.len() + rest.len()).saturating_sub(self.tail_limit);
        self.tail.drain(..evicted);
        self.tail.extend(rest);
    }

    /// How many bytes were pushed.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The last bytes, at most `limit` and whole lines where that leaves anything.
    pub fn end(&self, limit: usize) -> String {
        let tail = self.tail.iter().copied();
        let whole = (self.head.len() + self.tail.len()) as u64 == self.bytes;
        let end: Vec<u8> =
            if whole { self.head.iter().copied().chain(tail).collect() } else { tail.collect() };
        let end = match end.len() <= limit && whole {
            true => &end,
            false => tidy_start(&end[end.len().saturating_sub(limit)..]),
        };
        String::from_utf8_lossy(end).into_owned()
    }

    /// The text, with a line in place of what is missing; `hint` says how to get it.
    pub fn shaped(&self, hint: &str) -> Shaped {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        if (self.head.len() + tail.len()) as u64 == self.bytes {
            let whole = [self.head.as_slice(), &tail].concat();
            return Shaped { text: String::from_utf8_lossy(&whole).into_owned(), left_out: 0 };
        }
        let head = tidy_end(&self.head);
        let tail = tidy_start(&tail);
        let left_out = self.bytes - (head.len() + tail.len()) as u64;
        let lines = self.newlines - newlines(head) - newlines(tail);
        let mut text = String::from_utf8_lossy(head).into_owned();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&match lines {
            0 => format!("[… {left_out} bytes left out here: {hint} …]"),
            1 => format!("[… {left_out} bytes (1 line) left out here: {hint} …]"),
            _ => format!("[… {left_out} bytes ({lines} lines) left out here: {hint} …]"),
        });
        if !tail.is_empty() {
            text.push('\n');
            text.push_str(&String::from_utf8_lossy(tail));
        }
        Shaped { text, left_out }
    }
}

fn newlines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// Without the part of a line that a cut left at the end, if that costs less than half; else
/// without the part of a character.
fn tidy_end(bytes: &[u8]) -> &[u8] {
    match memchr::memrchr(b'\n', bytes) {
        Some(at) if at + 1 >= bytes.len() / 2 => &bytes[..=at],
        Some(_) | None => {
            // Only the last character can be cut, and it is at most four bytes long.
            let start = (1..=4.min(bytes.len()))
                .map(|back| bytes.len() - back)
                .find(|&at| !is_continuation(bytes[at]));
            match start {
                Some(at) if std::str::from_utf8(&bytes[at..]).is_err() => &bytes[..at],
                Some(_) | None => bytes,
            }
        }
    }
}

/// Without the part of a line that a cut left at the start, if that costs less than half; else
/// without the part of a character.
fn tidy_start(bytes: &[u8]) -> &[u8] {
    match memchr::memchr(b'\n', bytes) {
        Some(at) if at < bytes.len() / 2 => &bytes[at + 1..],
        Some(_) | None => {
            let part = bytes.iter().take(3).take_while(|&&byte| is_continuation(byte)).count();
            &bytes[part..]
        }
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pushed(limit: usize, text: &str, chunk: usize) -> HeadTail {
        let mut head_tail = HeadTail::new(limit);
        for chunk in text.as_bytes().chunks(chunk) {
            head_tail.push(chunk);
        }
        head_tail
    }

    #[test]
    fn the_chunks_do_not_matter() {
        let text: String = (0..40).map(|n| format!("line {n} äöü\n")).collect();
        for limit in [0, 1, 5, 30, 100, 400, 10_000] {
            let expected = HeadTail::of(&text, limit).shaped("hint");
            for chunk in [1, 2, 7, 64, 1_000] {
                let shaped = pushed(limit, &text, chunk).shaped("hint");
                assert_eq!(shaped, expected, "limit {limit}, chunk {chunk}");
                assert!(!shaped.text.contains('\u{fffd}'));
            }
        }
    }

    #[test]
    fn the_end_is_whole_lines() {
        assert_eq!(pushed(100, "one\ntwo\nthree\n", 3).end(100), "one\ntwo\nthree\n");
        assert_eq!(pushed(12, "one\ntwo\nthree\n", 3).end(8), "three\n");
        assert_eq!(pushed(100, "", 3).end(8), "");
    }
}
