//! What in a file comes closest to a text that is not in it, so that the next attempt succeeds.
//!
//! Lines are compared by their words. The longest line of the text is looked for in the whole file
//! once; only around its best places is the whole text compared. So the cost grows with the file's
//! size and not with the text's.

use std::borrow::Cow;
use std::fmt;

use similar::{ChangeTag, TextDiff};

/// Around how many places the whole text is compared: repeated lines are common, and the rest of
/// the text tells them apart.
const MAX_CANDIDATES: usize = 32;

/// How alike text and place must be, from 0 to 1: below this, showing the place would mislead.
const ALIKE: f32 = 0.4;

/// How many lines of the difference are shown: a model needs to see where it went wrong, not the
/// whole text that it just wrote.
const MAX_SHOWN_LINES: usize = 30;

/// How much of each is shown, in bytes.
const MAX_SHOWN_LINE_BYTES: usize = 300;

/// How many lines of the text are compared with the file's.
const MAX_COMPARED_LINES: usize = 400;

/// The place, in words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Closest {
    first: usize,
    last: usize,
    only_space: bool,
    /// Lines marked `-` for the text, `+` for the file, with the file's line numbers.
    difference: String,
}

impl fmt::Display for Closest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => write!(f, "closest is line {}", self.first)?,
            false => write!(f, "closest are lines {}-{}", self.first, self.last)?,
        }
        if self.only_space {
            f.write_str(", where only white space differs")?;
        }
        write!(f, " (- old_text, + the file):\n{}", self.difference)
    }
}

pub(super) fn find(file: &[u8], text: &str) -> Option<Closest> {
    let file: Vec<&[u8]> = file.split(|&byte| byte == b'\n').map(trim_return).collect();
    let text = text.strip_suffix('\n').unwrap_or(text);
    let text: Vec<&[u8]> = text
        .split('\n')
        .take(MAX_COMPARED_LINES)
        .map(|line| trim_return(line.as_bytes()))
        .collect();
    let wanted: Vec<Wanted<'_>> = text.iter().map(|line| Wanted::new(line)).collect();
    let (anchor_index, anchor) =
        wanted.iter().enumerate().rev().max_by_key(|(_, line)| line.weight())?;

    let mut candidates: Vec<(f32, usize)> = Vec::with_capacity(MAX_CANDIDATES + 1);
    for (index, line) in file.iter().enumerate() {
        let alike = anchor.alike(line);
        let least = candidates.last().map_or(0.0, |last| last.0);
        if alike > 0.0 && (candidates.len() < MAX_CANDIDATES || alike > least) {
            let at = candidates.partition_point(|candidate| candidate.0 >= alike);
            candidates.insert(at, (alike, index));
            candidates.truncate(MAX_CANDIDATES);
        }
    }
    let scored = candidates.into_iter().map(|(_, index)| {
        let start = index.saturating_sub(anchor_index);
        (score(&wanted, &file[start..]), start)
    });
    // Of equals the first, so that the answer does not depend on the order of candidates.
    let best = |a: &(f32, usize), b: &(f32, usize)| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1));
    let (score, start) = scored.max_by(best)?;
    if score < ALIKE {
        return None;
    }
    let place = &file[start..file.len().min(start + text.len())];
    Some(Closest {
        first: start + 1,
        last: start + place.len(),
        only_space: text.len() == place.len()
            && text.iter().zip(place).all(|(text, line)| words(text).eq(words(line)))
            && text.iter().zip(place).all(|(text, line)| solid(text).eq(solid(line))),
        difference: difference(&text, place, start),
    })
}

/// A line of the text with what comparing needs.
struct Wanted<'a> {
    trimmed: &'a [u8],
    words: Vec<&'a [u8]>,
}

impl<'a> Wanted<'a> {
    fn new(line: &'a [u8]) -> Self {
        let mut words: Vec<_> = words(line).collect();
        words.sort_unstable();
        Self { trimmed: line.trim_ascii(), words }
    }

    /// How much the line says.
    fn weight(&self) -> usize {
        self.trimmed.len()
    }

    /// From 0 to 1: 1 for equal but for the space around, else by the words in common.
    fn alike(&self, line: &[u8]) -> f32 {
        if line.trim_ascii() == self.trimmed {
            return 1.0;
        }
        let (mut all, mut common) = (0_usize, 0_usize);
        for word in words(line) {
            all += 1;
            common += usize::from(self.words.binary_search(&word).is_ok());
        }
        let common = common.min(self.words.len());
        // Counts of words in a line are far below the 2^24 that a float keeps exactly.
        2.0 * common as f32 / (all + self.words.len()).max(1) as f32 * 0.99
    }
}

fn score(wanted: &[Wanted<'_>], file: &[&[u8]]) -> f32 {
    let (mut sum, mut most) = (0.0, 0.0);
    for (index, line) in wanted.iter().enumerate() {
        let weight = 1.0 + line.words.len() as f32;
        most += weight;
        sum += weight * file.get(index).map_or(0.0, |found| line.alike(found));
    }
    sum / most
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80;
    line.split(move |byte| !is_word(byte)).filter(|word| !word.is_empty())
}

fn solid(line: &[u8]) -> impl Iterator<Item = u8> {
    line.iter().copied().filter(|byte| !byte.is_ascii_whitespace())
}

fn trim_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn difference(text: &[&[u8]], place: &[&[u8]], start: usize) -> String {
    let text: Vec<_> = text.iter().map(|line| shown(line)).collect();
    let place: Vec<_> = place.iter().map(|line| shown(line)).collect();
    let (text, place): (Vec<&str>, Vec<&str>) =
        (text.iter().map(AsRef::as_ref).collect(), place.iter().map(AsRef::as_ref).collect());
    let diff = TextDiff::from_slices(&text, &place);
    let lines: Vec<String> = diff
        .iter_all_changes()
        .map(|change| {
            let line = change.value();
            let number = change.new_index().map_or(0, |index| start + index + 1);
            match change.tag() {
                ChangeTag::Equal => format!("  {number}\t{line}"),
                ChangeTag::Delete => format!("-\t{line}"),
                ChangeTag::Insert => format!("+ {number}\t{line}"),
            }
        })
        .collect();
    // Where the first difference is, with one line before it.
    let first = lines.iter().position(|line| !line.starts_with(' ')).unwrap_or(0);
    let from = first.saturating_sub(1);
    let mut shown = lines[from..].iter().take(MAX_SHOWN_LINES).cloned().collect::<Vec<_>>();
    if lines.len() - from > MAX_SHOWN_LINES {
        shown.push("…".to_owned());
    }
    shown.join("\n")
}

fn shown(line: &[u8]) -> Cow<'_, str> {
    if line.len() <= MAX_SHOWN_LINE_BYTES {
        return String::from_utf8_lossy(line);
    }
    let cut = (0..=MAX_SHOWN_LINE_BYTES).rev().find(|&at| line[at] & 0xc0 != 0x80).unwrap_or(0);
    Cow::Owned(format!("{}…", String::from_utf8_lossy(&line[..cut])))
}
