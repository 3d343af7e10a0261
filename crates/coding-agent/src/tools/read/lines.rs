//! Some lines of a text, streamed: numbered, bounded, and with a word about the rest.

use std::io::{self, BufRead};

use tokio_util::sync::CancellationToken;

/// How many lines one call shows at most, and when it does not say: a long source file.
pub(super) const MAX_LINES: u64 = 2_000;

/// How many bytes one call shows at most, numbers included: about 12,000 tokens, and less than the
/// limit layer would cut.
const MAX_BYTES: usize = 48 * 1024;

/// How much of one line is shown, in bytes: longer ones are data or minified, and are not read.
const MAX_LINE_BYTES: usize = 2_000;

/// Below this size the rest of a file is counted in lines; above, counting would cost more than
/// the number is worth.
const COUNTED_BYTES: u64 = 10_000_000;

/// Which lines are asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// The first, from 1.
    pub(super) offset: u64,
    /// How many, from 1.
    pub(super) limit: u64,
}

/// What was found.
#[derive(Debug)]
pub(super) struct Excerpt {
    text: String,
    /// The number of the first line that was not shown.
    next: u64,
    rest: Rest,
    lossy: bool,
}

/// What follows the lines that were shown.
#[derive(Debug)]
enum Rest {
    /// The file ends.
    End { final_newline: bool },
    /// So many lines.
    Lines(u64),
    /// So many bytes.
    Bytes(u64),
    /// Nobody knows how much: the file is longer than it said.
    More,
}

/// Reads the lines of `window` from the start of a text of about `size` bytes.
///
/// # Errors
/// What the reader fails with, and `Interrupted` when cancelled.
pub(super) fn excerpt(
    reader: &mut impl BufRead,
    window: Window,
    size: u64,
    cancel: &CancellationToken,
) -> io::Result<Excerpt> {
    let mut reader = Lines { reader, cancel, consumed: 0, final_newline: true };
    let mut excerpt = Excerpt { text: String::new(), next: 1, rest: Rest::More, lossy: false };
    while excerpt.next < window.offset {
        if reader.skip()?.is_none() {
            excerpt.rest = Rest::End { final_newline: reader.final_newline };
            return Ok(excerpt);
        }
        excerpt.next += 1;
    }
    loop {
        let before = reader.consumed;
        if excerpt.next - window.offset == window.limit {
            excerpt.rest = reader.rest(size, before, 0)?;
            return Ok(excerpt);
        }
        let Some(line) = reader.read()? else {
            excerpt.rest = Rest::End { final_newline: reader.final_newline };
            return Ok(excerpt);
        };
        let kept = match excerpt.next == 1 {
            true => line.kept.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&line.kept),
            false => &line.kept,
        };
        let shown = String::from_utf8_lossy(kept);
        let mut numbered = format!("{}\t{shown}", excerpt.next);
        if line.left_out > 0 {
            numbered.push_str(&format!(" [… {} more bytes in this line]", line.left_out));
        }
        numbered.push('\n');
        if excerpt.text.len() + numbered.len() > MAX_BYTES {
            excerpt.rest = reader.rest(size, before, 1)?;
            return Ok(excerpt);
        }
        excerpt.lossy |= std::str::from_utf8(kept).is_err();
        excerpt.text.push_str(&numbered);
        excerpt.next += 1;
    }
}

impl Excerpt {
    /// How many lines the file has, if the file ended before the window began.
    pub(super) fn past_end(&self) -> Option<u64> {
        let total = self.next - 1;
        (total > 0 && self.text.is_empty()).then_some(total)
    }

    /// How many lines are shown.
    pub(super) fn shown_lines(&self) -> u64 {
        memchr::memchr_iter(b'\n', self.text.as_bytes()).count() as u64
    }

    /// How many lines the file has, if that is known.
    pub(super) fn total_lines(&self) -> Option<u64> {
        match self.rest {
            Rest::End { .. } => Some(self.next - 1),
            Rest::Lines(left) => Some(self.next - 1 + left),
            Rest::Bytes(_) | Rest::More => None,
        }
    }

    /// The lines, and what is left and how to get it.
    pub(super) fn with_footer(mut self, window: Window) -> String {
        let (first, last, next) = (window.offset, self.next - 1, self.next);
        if self.text.is_empty() {
            return "[the file is empty]".to_owned();
        }
        if self.lossy {
            self.text.push_str("[bytes that are not UTF-8 are shown as \u{fffd}]\n");
        }
        let footer = match self.rest {
            Rest::End { final_newline: true } => {
                format!("[lines {first}-{last} of {last}: end of file]")
            }
            Rest::End { final_newline: false } => {
                format!("[lines {first}-{last} of {last}: end of file, without a final newline]")
            }
            Rest::Lines(left) => {
                let total = last + left;
                let lines = if left == 1 { "line" } else { "lines" };
                format!(
                    "[lines {first}-{last} of {total}: {left} {lines} left, go on with offset {next}]"
                )
            }
            Rest::Bytes(left) => {
                format!("[lines {first}-{last}: {left} bytes left, go on with offset {next}]")
            }
            Rest::More => {
                format!("[lines {first}-{last}: there is more, go on with offset {next}]")
            }
        };
        self.text.push_str(&footer);
        self.text
    }
}

struct Lines<'a, R> {
    reader: &'a mut R,
    cancel: &'a CancellationToken,
    /// Bytes so far.
    consumed: u64,
    /// The last byte so far was a line end.
    final_newline: bool,
}

struct Line {
    kept: Vec<u8>,
    left_out: u64,
}

impl<R: BufRead> Lines<'_, R> {
    /// Passes over the part of a line that is in the buffer, handing it to `part` without its line
    /// end. `None` at the end of the text, else whether the line ended.
    fn advance(&mut self, part: impl FnOnce(&[u8])) -> io::Result<Option<bool>> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "cancelled"));
        }
        let buffer = self.reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(None);
        }
        let newline = memchr::memchr(b'\n', buffer);
        part(&buffer[..newline.unwrap_or(buffer.len())]);
        let used = newline.map_or(buffer.len(), |at| at + 1);
        self.final_newline = newline.is_some();
        self.reader.consume(used);
        self.consumed += used as u64;
        Ok(Some(newline.is_some()))
    }

    /// Passes over one line; `None` where there is none.
    fn skip(&mut self) -> io::Result<Option<()>> {
        let mut any = None;
        while let Some(ended) = self.advance(|_| ())? {
            any = Some(());
            if ended {
                break;
            }
        }
        Ok(any)
    }

    /// The next line without its line end; `None` where there is none.
    fn read(&mut self) -> io::Result<Option<Line>> {
        let mut kept = Vec::new();
        let mut length: u64 = 0;
        let mut any = false;
        loop {
            let ended = self.advance(|part| {
                length += part.len() as u64;
                // One more than is shown, for a carriage return.
                let room = MAX_LINE_BYTES + 1 - kept.len();
                kept.extend_from_slice(&part[..part.len().min(room)]);
            })?;
            match ended {
                Some(_) => any = true,
                None if !any => return Ok(None),
                None => break,
            }
            if ended == Some(true) {
                break;
            }
        }
        if kept.len() as u64 == length && kept.last() == Some(&b'\r') {
            kept.pop();
            length -= 1;
        }
        if kept.len() > MAX_LINE_BYTES {
            let cut = (0..=MAX_LINE_BYTES).rev().find(|&at| kept[at] & 0xc0 != 0x80).unwrap_or(0);
            kept.truncate(cut);
        }
        let left_out = length - kept.len() as u64;
        Ok(Some(Line { kept, left_out }))
    }

    /// What is left of a text of about `size` bytes when the shown part ends at byte `shown` and
    /// `unshown` lines were read after it.
    fn rest(&mut self, size: u64, shown: u64, unshown: u64) -> io::Result<Rest> {
        if size >= COUNTED_BYTES {
            return Ok(Rest::Bytes(size.saturating_sub(shown)));
        }
        let mut lines = unshown;
        while self.skip()?.is_some() {
            lines += 1;
            if self.consumed > COUNTED_BYTES {
                return Ok(Rest::More);
            }
        }
        match lines {
            0 => Ok(Rest::End { final_newline: self.final_newline }),
            _ => Ok(Rest::Lines(lines)),
        }
    }
}
