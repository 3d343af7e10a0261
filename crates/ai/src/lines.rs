//! [`Lines`]: bytes in any pieces, whole lines out.
//!
//! A line ends with LF, CRLF or CR. A line that lies whole in one piece is lent from that piece;
//! only a line cut by the end of a piece is copied. Each byte is looked at once. Knows nothing of
//! what a line means.

use memchr::memchr2;

/// The longest line that is taken in. The longest sane one is an event that carries a generated
/// image; a host that sends more without a line end is broken or hostile.
pub(crate) const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// A buffer grown beyond this by one long line is given back instead of kept for the next.
const KEPT_CAPACITY: usize = 1024 * 1024;

/// A line or an event is longer than 64 MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a line or event is longer than {MAX_LINE_BYTES} bytes")]
pub struct TooLong;

/// One line without its end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Line<'chunk, 'joined> {
    /// It lies in the piece that was just pushed.
    InChunk(&'chunk [u8]),
    /// It was cut between pieces.
    Joined(&'joined [u8]),
}

impl<'line> Line<'line, 'line> {
    pub(crate) fn bytes(self) -> &'line [u8] {
        match self {
            Self::InChunk(bytes) | Self::Joined(bytes) => bytes,
        }
    }
}

/// Cuts bytes into lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    partial: Vec<u8>,
    /// The last piece ended with a CR; an LF that comes next belongs to it.
    skip_line_feed: bool,
}

impl Lines {
    /// Hands each line that ends in `chunk` to `sink`, in order.
    pub(crate) fn push<'chunk>(
        &mut self,
        chunk: &'chunk [u8],
        mut sink: impl FnMut(Line<'chunk, '_>) -> Result<(), TooLong>,
    ) -> Result<(), TooLong> {
        let mut rest = chunk;
        if self.skip_line_feed && !rest.is_empty() {
            self.skip_line_feed = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = memchr2(b'\n', b'\r', rest) {
            let (line, ended) = rest.split_at(end);
            rest = match ended {
                [b'\r', b'\n', after @ ..] => after,
                [b'\r'] => {
                    self.skip_line_feed = true;
                    &[]
                }
                [_, after @ ..] => after,
                [] => &[],
            };
            if self.partial.is_empty() {
                sink(Line::InChunk(line))?;
            } else {
                self.keep(line)?;
                sink(Line::Joined(&self.partial))?;
                self.partial.clear();
                self.partial.shrink_to(KEPT_CAPACITY);
            }
        }
        self.keep(rest)
    }

    /// The bytes after the last line end, if there are any.
    pub(crate) fn take_rest(&mut self) -> Option<Vec<u8>> {
        Some(std::mem::take(&mut self.partial)).filter(|rest| !rest.is_empty())
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        if self.partial.len().saturating_add(bytes.len()) > MAX_LINE_BYTES {
            return Err(TooLong);
        }
        self.partial.extend_from_slice(bytes);
        Ok(())
    }
}
