//! What is written where a piece was found: the new text, in the file's own line ends.

use std::ops::Range;

use super::locate::{Matched, without_carriage_returns};

/// How far around a piece its line end is looked for: no line of a text is that long, and a file
/// without line ends is not searched again for each of many pieces.
const NEAR_BYTES: usize = 64 * 1024;

/// A line's text and its line end; the last piece of a text has none.
type Line<'a> = (&'a [u8], Option<&'a [u8]>);

/// The bytes for `range` of `original`, where `old_text` was found.
///
/// Lines that the new text has in common with the old, at its beginning and its end, keep their
/// bytes. The lines between get the line ends of those whose place they take, further ones that of
/// the line before. A text that itself says which line ends it means, and was found with them, is
/// taken at its word.
pub(super) fn replacement(
    original: &[u8],
    range: &Range<usize>,
    matched: Matched,
    old_text: &str,
    new_text: &str,
) -> Vec<u8> {
    if matched == Matched::Exactly && (old_text.contains('\r') || new_text.contains('\r')) {
        return new_text.as_bytes().to_vec();
    }
    let new_text = without_carriage_returns(new_text);
    let (old, new) = (lines(&original[range.clone()]), lines(new_text.as_bytes()));
    let same =
        |(old, new): &(&Line<'_>, &Line<'_>)| old.0 == new.0 && old.1.is_some() == new.1.is_some();
    let prefix = old.iter().zip(&new).take_while(same).count();
    let most = old.len().min(new.len()) - prefix;
    let suffix = old.iter().rev().zip(new.iter().rev()).take(most).take_while(same).count();

    let mut bytes = Vec::with_capacity(new_text.len());
    let mut line_end = old[..prefix].last().and_then(|line| line.1);
    for line in &old[..prefix] {
        push(&mut bytes, *line);
    }
    for (index, (text, end)) in new[..new.len() - suffix].iter().enumerate().skip(prefix) {
        let replaced = old[..old.len() - suffix].get(index).and_then(|line| line.1);
        let chosen = *line_end
            .insert(replaced.or(line_end).unwrap_or_else(|| line_end_near(original, range)));
        push(&mut bytes, (text, end.map(|_| chosen)));
    }
    for line in &old[old.len() - suffix..] {
        push(&mut bytes, *line);
    }
    bytes
}

fn push(bytes: &mut Vec<u8>, (text, end): Line<'_>) {
    bytes.extend_from_slice(text);
    bytes.extend_from_slice(end.unwrap_or_default());
}

/// The lines of a text; the last one, which may be empty, has no line end.
fn lines(text: &[u8]) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = memchr::memchr2(b'\r', b'\n', rest) {
        let length = if rest[at..].starts_with(b"\r\n") { 2 } else { 1 };
        let (line, after) = rest.split_at(at + length);
        lines.push((&line[..at], Some(&line[at..])));
        rest = after;
    }
    lines.push((rest, None));
    lines
}

/// The line end of the line that a piece without any is in, or of the one before, or else of the
/// file's first.
fn line_end_near<'a>(original: &'a [u8], range: &Range<usize>) -> &'a [u8] {
    let after = &original[range.end..original.len().min(range.end + NEAR_BYTES)];
    let before_start = range.start.saturating_sub(NEAR_BYTES);
    let before = &original[before_start..range.start];
    let start = &original[..original.len().min(NEAR_BYTES)];
    let newline = memchr::memchr(b'\n', after)
        .map(|at| range.end + at)
        .or_else(|| memchr::memrchr(b'\n', before).map(|at| before_start + at))
        .or_else(|| memchr::memchr(b'\n', start));
    match newline {
        Some(at) if original[..at].ends_with(b"\r") => &original[at - 1..=at],
        Some(at) => &original[at..=at],
        // The old Macintosh's line ends, when there is no other.
        None => match memchr::memchr(b'\r', start) {
            Some(at) => &original[at..=at],
            None => b"\n",
        },
    }
}
