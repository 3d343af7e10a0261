//! [`find_violation`]: a tool call that a model wrote into its text (SPEC M18).
//!
//! Some models fall back on the markup that they were trained with and write `<invoke name="Read">`
//! where they should make a call. This recognises that, and nothing else: it knows no stream and no
//! request, repairs nothing, and reads no arguments.
//!
//! Text that shows or discusses such markup is an answer like any other, and to mistake it is worse
//! than to miss a call: the run would be asked again and then given up. So markup counts when
//! - it is outside of code fences, code spans, indented code and quotes ([`code`]);
//! - it names an offered tool, exactly;
//! - it is built like a call: arguments, an end or the end of the text follow its name, and no prose;
//! - it stands like a call: at the beginning of its line, or behind the end of a sentence, and with
//!   no sentence that goes on behind it on its last line; an entry of a list is no such place.
//!
//! The text is read once, forwards, by each of the three steps (code, marks, calls), and none looks
//! further back or ahead than a bound or than what it then skips: the time is linear in the text.

mod code;
mod marks;
mod payload;

use std::collections::HashSet;

use crate::message::Violation;
use marks::{Kind, Mark};

/// How many calls of one text are named. The first already decides; the rest is for people.
const MAX_CALLS: usize = 32;

/// The tools among `offered` that `text` tries to call by markup, if it does.
///
/// Whether a call was also made properly is the caller's to know: such an answer is no violation.
///
/// ```
/// use ai::find_violation;
///
/// let text = "I look.\n<invoke name=\"Read\">\n<parameter name=\"path\">a</parameter>\n</invoke>";
/// let violation = find_violation(text, &["Read", "Bash"]);
/// assert_eq!(violation.map(|violation| violation.tools), Some(vec!["Read".to_owned()]));
///
/// assert_eq!(find_violation("Use the <invoke name=\"Read\"> tag.", &["Read"]), None);
/// ```
pub fn find_violation(text: &str, offered: &[&str]) -> Option<Violation> {
    if offered.is_empty() {
        return None;
    }
    let marks = marks::outside(text, &code::ranges(text));
    if marks.is_empty() {
        return None;
    }
    let offered: HashSet<&str> = offered.iter().copied().collect();
    let tools: Vec<String> = Reading::new(text, &marks)
        .calls()
        .filter(|name| offered.contains(name))
        .take(MAX_CALLS)
        .map(str::to_owned)
        .collect();
    (!tools.is_empty()).then_some(Violation { tools })
}

/// Where a mark stands on its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Nothing is before it but marks.
    Beginning,
    /// Behind words that end there.
    AfterSentence,
    /// Behind words that go on: the mark is one of them.
    InSentence,
}

/// What comes behind the tag that opens a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    /// Nothing: the answer was cut, or needs no arguments.
    Missing,
    /// Tags, JSON, or the call's end.
    Arguments,
    /// Words.
    Words,
}

/// The marks of a text with what surrounds them.
struct Reading<'a> {
    text: &'a str,
    marks: &'a [Mark<'a>],
    places: Vec<Place>,
    /// By mark: nothing but marks is behind it on its last line.
    ends_line: Vec<bool>,
    /// By mark: the first closing mark behind it.
    closings: Vec<Option<usize>>,
}

impl<'a> Reading<'a> {
    fn new(text: &'a str, marks: &'a [Mark<'a>]) -> Self {
        let mut places: Vec<Place> = Vec::with_capacity(marks.len());
        let mut before = 0;
        for mark in marks {
            let head = text[mark.line.max(before)..mark.start].trim();
            places.push(match (head.chars().next_back(), places.last()) {
                (None, Some(place)) if before > mark.line => *place,
                (None, _) => Place::Beginning,
                (Some(last), _) if goes_on(last) || is_list_mark(head) => Place::InSentence,
                (Some(_), _) => Place::AfterSentence,
            });
            before = mark.end;
        }
        let mut ends_line = vec![true; marks.len()];
        let mut closings = vec![None; marks.len()];
        let (mut next_start, mut next_ends, mut closing) = (text.len(), true, None);
        for (index, mark) in marks.iter().enumerate().rev() {
            let tail = &text[mark.end..next_start];
            let ends = match tail.split_once('\n') {
                Some((tail, _)) => tail.trim().is_empty(),
                None => tail.trim().is_empty() && next_ends,
            };
            ends_line[index] = ends;
            closings[index] = closing;
            if mark.kind == Kind::Close {
                closing = Some(index);
            }
            (next_start, next_ends) = (mark.start, ends);
        }
        Self { text, marks, places, ends_line, closings }
    }

    /// The names of what is called, offered or not, in order.
    fn calls(&self) -> impl Iterator<Item = &'a str> {
        let mut next = 0;
        std::iter::from_fn(move || {
            while let Some(mark) = self.marks.get(next) {
                let index = next;
                next += 1;
                match &mark.kind {
                    Kind::Payload { names, token } if self.is_payload_call(index, *token) => {
                        return Some(names.as_slice());
                    }
                    Kind::Element { name, closed } => {
                        let end = if *closed { Some(index) } else { self.closings[index] };
                        if self.is_element_call(index, end) {
                            // What the arguments hold is text of the model's, not further calls.
                            next = end.map_or(next, |end| end.max(next));
                            return Some(std::slice::from_ref(name));
                        }
                    }
                    Kind::Payload { .. } | Kind::Wrapper | Kind::Close => {}
                }
            }
            None
        })
        .flatten()
        .copied()
    }

    /// Special tokens are no words of anybody's, so what is before them says little.
    fn is_payload_call(&self, index: usize, token: bool) -> bool {
        let mark = &self.marks[index];
        match self.places[index] {
            Place::Beginning => {
                self.ends_line[index] || self.text[mark.start..mark.end].contains('\n')
            }
            Place::AfterSentence => self.ends_line[index],
            Place::InSentence => token && self.ends_line[index],
        }
    }

    fn is_element_call(&self, index: usize, end: Option<usize>) -> bool {
        let mark = &self.marks[index];
        let on_one_line = end.is_some_and(|end| self.marks[end].line == mark.line);
        let ends_line = end.is_none_or(|end| self.ends_line[end]);
        match (self.places[index], self.body(index, end)) {
            (Place::InSentence, _) | (Place::AfterSentence, Body::Missing) => false,
            (Place::Beginning, Body::Missing) => true,
            (Place::Beginning, Body::Arguments) => !on_one_line || ends_line,
            (Place::AfterSentence, Body::Arguments) => ends_line,
            (Place::Beginning | Place::AfterSentence, Body::Words) => on_one_line && ends_line,
        }
    }

    fn body(&self, index: usize, end: Option<usize>) -> Body {
        if end == Some(index) {
            return Body::Arguments;
        }
        let body = self.text[self.marks[index].end..].trim_start();
        let at = self.text.len() - body.len();
        if end.is_some_and(|end| self.marks[end].start == at) {
            return Body::Arguments;
        }
        let mut chars = body.chars();
        match (chars.next(), chars.next()) {
            (None, _) => Body::Missing,
            (Some('{'), _) => Body::Arguments,
            // A tag, or the beginning of one.
            (Some('<'), None | Some('|' | '｜')) => Body::Arguments,
            (Some('<'), Some(letter)) if letter.is_alphabetic() => Body::Arguments,
            (Some(_), _) => Body::Words,
        }
    }
}

/// Whether a sentence whose last character before a mark is this one has the mark as its next word.
fn goes_on(last: char) -> bool {
    last.is_alphanumeric() || matches!(last, ',' | ';' | '(' | '"' | '\'' | '`' | '“' | '‘' | '«')
}

/// Whether a line that begins so is an entry of a list or a table. Calls are not put into lists;
/// explanations of them are.
fn is_list_mark(head: &str) -> bool {
    let number = head.trim_end_matches(['.', ')']);
    matches!(head, "-" | "*" | "+" | "•" | "|")
        || (number.len() < head.len() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
#[path = "violation/tests.rs"]
mod tests;
