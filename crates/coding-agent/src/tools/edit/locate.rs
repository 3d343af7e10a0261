//! Finding a piece of text in a file's bytes: exactly, or with any kind of line end.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Range;

use memchr::memmem::Finder;

/// After so many places a search for one stops: nobody reads a longer list of them.
pub(super) const MAX_PLACES: usize = 100;

/// How many pieces one edit replaces at most: each costs memory, and whoever needs more needs `sed`.
pub(super) const MAX_REPLACED: usize = 100_000;

/// How a piece was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Matched {
    /// Byte for byte.
    Exactly,
    /// With line ends of other kinds.
    LineEnds,
}

/// A file's bytes, with what searching them needs.
pub(super) struct Original<'a> {
    pub(super) bytes: &'a [u8],
    unix: OnceCell<Unix>,
}

/// The same text with every line end a single `\n`.
struct Unix {
    bytes: Vec<u8>,
    /// Where in `bytes` a line end is that has two bytes in the original, ascending.
    pairs: Vec<usize>,
}

impl<'a> Original<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, unix: OnceCell::new() }
    }

    /// Every place where `text` is, up to [`MAX_PLACES`], also overlapping ones: one is unique.
    pub(super) fn places(&self, text: &str) -> (Vec<Range<usize>>, Matched) {
        let exact = self.exact(text, 1, MAX_PLACES);
        if !exact.is_empty() || !text.contains(['\n', '\r']) {
            return (exact, Matched::Exactly);
        }
        (self.loose(text, 1, MAX_PLACES), Matched::LineEnds)
    }

    /// Every place where `text` is, one after the other, up to one more than [`MAX_REPLACED`]. A text that does not say which line ends
    /// it means has all of them.
    pub(super) fn every_place(&self, text: &str) -> (Vec<Range<usize>>, Matched) {
        let step = text.len();
        if text.contains('\r') || !text.contains('\n') {
            let exact = self.exact(text, step, MAX_REPLACED + 1);
            if !exact.is_empty() || !text.contains('\r') {
                return (exact, Matched::Exactly);
            }
        }
        (self.loose(text, unix(text.as_bytes()).bytes.len(), MAX_REPLACED + 1), Matched::LineEnds)
    }

    /// The number of the line that a byte is in, from 1.
    pub(super) fn line_of(&self, at: usize) -> usize {
        memchr::memchr_iter(b'\n', &self.bytes[..at]).count() + 1
    }

    fn exact(&self, text: &str, step: usize, most: usize) -> Vec<Range<usize>> {
        find(self.bytes, text.as_bytes(), step)
            .map(|start| start..start + text.len())
            // A match that begins between \r and \n would tear a line end apart.
            .filter(|range| !(text.starts_with('\n') && self.bytes[..range.start].ends_with(b"\r")))
            .take(most)
            .collect()
    }

    fn loose(&self, text: &str, step: usize, most: usize) -> Vec<Range<usize>> {
        let original = self.unix.get_or_init(|| unix(self.bytes));
        let text = unix(text.as_bytes()).bytes;
        let position = |at: usize| at + original.pairs.partition_point(|&pair| pair < at);
        find(&original.bytes, &text, step)
            .map(|start| position(start)..position(start + text.len()))
            .take(most)
            .collect()
    }
}

/// Where `needle` begins; the search goes on `step` bytes after each place.
fn find(haystack: &[u8], needle: &[u8], step: usize) -> impl Iterator<Item = usize> {
    let finder = Finder::new(needle);
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + finder.find(haystack.get(from..)?)?;
        from = start + step.max(1);
        Some(start)
    })
}

fn unix(bytes: &[u8]) -> Unix {
    let mut unix = Vec::with_capacity(bytes.len());
    let mut pairs = Vec::new();
    let mut from = 0;
    for at in memchr::memchr_iter(b'\r', bytes) {
        unix.extend_from_slice(&bytes[from..at]);
        if bytes.get(at + 1) == Some(&b'\n') {
            pairs.push(unix.len());
        } else {
            unix.push(b'\n');
        }
        from = at + 1;
    }
    unix.extend_from_slice(&bytes[from..]);
    Unix { bytes: unix, pairs }
}

/// `text` with every `\r\n` as `\n`.
pub(super) fn without_carriage_returns(text: &str) -> Cow<'_, str> {
    match text.contains("\r\n") {
        true => Cow::Owned(text.replace("\r\n", "\n")),
        false => Cow::Borrowed(text),
    }
}
