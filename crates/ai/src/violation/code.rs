//! Where a text is code or a quotation: fences, code spans, indented code, quoted lines.
//!
//! After CommonMark 0.31, sections 4.4, 4.5, 5.1 and 6.1, and more generous where models are: a fence
//! may be indented at will, stand behind a list's mark, or open at the end of a line of words.

use std::collections::HashMap;
use std::ops::Range;

/// Indentation from which a line that follows a blank one is code.
const CODE_INDENT: usize = 4;

/// The shortest run of backticks or tildes that opens a fence.
const FENCE: usize = 3;

/// The byte ranges of `text` that are code or quoted, in order and apart.
pub(super) fn ranges(text: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut fence: Option<Fence> = None;
    let mut paragraph: Option<usize> = None;
    // Code may be indented where a paragraph could begin, but not among a call's own lines.
    let mut may_indent = true;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let range = start..start + line.len();
        start = range.end;
        let content = line.trim_start();
        if let Some(open) = &fence {
            if open.is_closed_by(content) {
                fence = None;
            }
            ranges.push(range);
            continue;
        }
        let indent = line.chars().take_while(|c| matches!(c, ' ' | '\t'));
        let indent: usize = indent.map(|c| if c == '\t' { CODE_INDENT } else { 1 }).sum();
        let opened = Fence::opened_by(content);
        let begins_paragraph = paragraph.is_none();
        let is_code = opened.is_some()
            || content.starts_with('>')
            || (begins_paragraph && may_indent && indent >= CODE_INDENT);
        if content.is_empty() || is_code {
            if let Some(begin) = paragraph.take() {
                spans(text, begin..range.start, &mut ranges);
            }
            if is_code && !content.is_empty() {
                ranges.push(range);
            }
            fence = opened;
            continue;
        }
        may_indent = !content.starts_with(['<', '[']);
        match Fence::opened_at_end_of(content) {
            Some((at, opened)) => {
                let at = range.end - (content.len() - at);
                spans(text, paragraph.take().unwrap_or(range.start)..at, &mut ranges);
                ranges.push(at..range.end);
                fence = Some(opened);
            }
            None => paragraph = paragraph.or(Some(range.start)),
        }
    }
    if let Some(begin) = paragraph {
        spans(text, begin..text.len(), &mut ranges);
    }
    ranges
}

struct Fence {
    mark: char,
    length: usize,
}

impl Fence {
    /// The fence that a line opens, without its indentation.
    fn opened_by(line: &str) -> Option<Self> {
        let line = without_list_mark(line);
        let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let length = run(line, mark);
        let info = &line[length..];
        (length >= FENCE && (mark == '~' || !info.contains('`'))).then_some(Self { mark, length })
    }

    /// A fence that a line opens behind its words, and where: nothing is behind it but a language.
    fn opened_at_end_of(line: &str) -> Option<(usize, Self)> {
        let at = line.find("```")?;
        let length = run(&line[at..], '`');
        let info = line[at + length..].trim_end();
        info.chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '+'))
            .then_some((at, Self { mark: '`', length }))
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let length = run(line, self.mark);
        length >= self.length && line[length..].trim().is_empty()
    }
}

/// How many of the ASCII character `mark` the text begins with.
fn run(text: &str, mark: char) -> usize {
    text.len() - text.trim_start_matches(mark).len()
}

fn without_list_mark(line: &str) -> &str {
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = if digits.len() < line.len() {
        digits.strip_prefix(['.', ')'])
    } else {
        line.strip_prefix(['-', '*', '+'])
    };
    rest.filter(|rest| rest.starts_with(' ')).map_or(line, str::trim_start)
}

/// Appends a paragraph's code spans: from a run of backticks to the next of the same length. A run
/// that has none is plain text.
fn spans(text: &str, paragraph: Range<usize>, ranges: &mut Vec<Range<usize>>) {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for at in memchr::memchr_iter(b'`', &text.as_bytes()[paragraph.clone()]) {
        let at = paragraph.start + at;
        match runs.last_mut() {
            Some(run) if run.end == at => run.end += 1,
            Some(_) | None => runs.push(at..at + 1),
        }
    }
    // By run: the next of the same length.
    let mut partners = vec![None; runs.len()];
    let mut seen = HashMap::new();
    for (index, run) in runs.iter().enumerate().rev() {
        partners[index] = seen.insert(run.len(), index);
    }
    let mut index = 0;
    while index < runs.len() {
        match partners[index] {
            Some(partner) => {
                ranges.push(runs[index].start..runs[partner].end);
                index = partner + 1;
            }
            None => index += 1,
        }
    }
}
