//! The whole of an edit, decided on bytes: every piece located in the original, or a reason in
//! words why nothing may be changed.

use std::fmt;
use std::ops::Range;

use super::Replacement;
use super::closest::{self, Closest};
use super::locate::{MAX_PLACES, MAX_REPLACED, Original};
use super::splice;

/// How many of several places are listed: enough to see what is repeated.
const MAX_LISTED: usize = 10;

/// What is to be written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// The file's new content.
    pub(super) after: Vec<u8>,
    /// How many pieces were replaced.
    pub(super) replacements: usize,
}

/// Why an edit cannot be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum EditError {
    #[error("edits is empty: there is nothing to do")]
    NoEdits,
    #[error(
        "{0}old_text is empty: to fill or replace a whole file use Write, to insert give the line beside the place"
    )]
    EmptyOldText(Which),
    #[error("{0}old_text and new_text are the same: nothing would change")]
    Nothing(Which),
    #[error(
        "{which}old_text occurs {count} times, at lines {lines}: add lines around it to tell which, or set replace_all"
    )]
    Several { which: Which, count: String, lines: String },
    #[error("{0}old_text occurs more than {MAX_REPLACED} times: use a command such as sed")]
    TooMany(Which),
    #[error("{0}old_text does not occur in it{1}")]
    NotFound(Which, Nearby),
    #[error("edits {first} and {second} overlap at line {line}: make them one")]
    Overlap { first: usize, second: usize, line: usize },
}

/// Which of the edits is meant; said only where there are several.
#[derive(Clone, Copy, Debug)]
pub(super) struct Which {
    number: usize,
    of: usize,
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.of {
            1 => Ok(()),
            of => write!(f, "edit {} of {of}: ", self.number),
        }
    }
}

/// What comes closest to a text that is not there.
#[derive(Debug)]
pub(super) struct Nearby(Option<Closest>);

impl fmt::Display for Nearby {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(closest) => write!(f, "; {closest}"),
            None => f.write_str(", nor anything like it: read it again"),
        }
    }
}

struct Splice {
    edit: usize,
    range: Range<usize>,
    bytes: Vec<u8>,
}

/// The content that `edits` make of `before`.
pub(super) fn plan(before: &[u8], edits: &[Replacement]) -> Result<Plan, EditError> {
    if edits.is_empty() {
        return Err(EditError::NoEdits);
    }
    let original = Original::new(before);
    let mut splices = Vec::new();
    for (index, edit) in edits.iter().enumerate() {
        let which = Which { number: index + 1, of: edits.len() };
        splices.extend(locate(&original, edit, which)?);
    }
    splices.sort_by_key(|splice| (splice.range.start, splice.range.end));
    for pair in splices.windows(2) {
        if let [first, second] = pair
            && first.range.end > second.range.start
        {
            return Err(EditError::Overlap {
                first: first.edit.min(second.edit),
                second: first.edit.max(second.edit),
                line: original.line_of(second.range.start),
            });
        }
    }
    let mut after = Vec::with_capacity(before.len());
    let mut from = 0;
    for splice in &splices {
        after.extend_from_slice(&before[from..splice.range.start]);
        after.extend_from_slice(&splice.bytes);
        from = splice.range.end;
    }
    after.extend_from_slice(&before[from..]);
    Ok(Plan { after, replacements: splices.len() })
}

fn locate(
    original: &Original<'_>,
    edit: &Replacement,
    which: Which,
) -> Result<Vec<Splice>, EditError> {
    let (old_text, new_text) = (edit.old_text.as_str(), edit.new_text.as_str());
    if old_text.is_empty() {
        return Err(EditError::EmptyOldText(which));
    }
    if old_text == new_text {
        return Err(EditError::Nothing(which));
    }
    let all = edit.replace_all.unwrap_or(false);
    let (places, matched) =
        if all { original.every_place(old_text) } else { original.places(old_text) };
    if places.is_empty() {
        return Err(EditError::NotFound(which, Nearby(closest::find(original.bytes, old_text))));
    }
    if places.len() > 1 && !all {
        return Err(several(original, &places, which));
    }
    if places.len() > MAX_REPLACED {
        return Err(EditError::TooMany(which));
    }
    let splices: Vec<_> = places
        .into_iter()
        .map(|range| {
            let bytes = splice::replacement(original.bytes, &range, matched, old_text, new_text);
            Splice { edit: which.number, range, bytes }
        })
        .collect();
    // The texts may differ in line ends only, which the file decides.
    if splices.iter().all(|splice| original.bytes[splice.range.clone()] == splice.bytes) {
        return Err(EditError::Nothing(which));
    }
    Ok(splices)
}

fn several(original: &Original<'_>, places: &[Range<usize>], which: Which) -> EditError {
    let listed = places.iter().take(MAX_LISTED);
    let mut lines: Vec<_> = listed.map(|range| original.line_of(range.start).to_string()).collect();
    if places.len() > MAX_LISTED {
        lines.push("…".to_owned());
    }
    let count = match places.len() {
        MAX_PLACES => format!("{MAX_PLACES} or more"),
        count => count.to_string(),
    };
    EditError::Several { which, count, lines: lines.join(", ") }
}
