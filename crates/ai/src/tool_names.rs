//! Names and ids of tools, made valid for the API that they are sent to (SPEC M15).
//!
//! A name that every API takes is left alone, so the usual case costs nothing and changes nothing.
//! Any other is rewritten by a function of itself only, so that the same history gives the same
//! bytes whatever else is on offer.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::compat::ToolIdForm;

/// The shorter of the APIs' limits on a tool's name (OpenAI: 64, Anthropic: 128).
const MAX_NAME: usize = 64;

/// OpenAI's limit on a call's id in Chat Completions; others take longer ones, and this one too.
const MAX_ID: usize = 40;

/// What Mistral wants, exactly.
const NINE: usize = 9;

/// The name under which a tool is offered and its calls are replayed.
///
/// It begins with a letter or `_`, as Google asks.
pub(crate) fn wire_name(name: &str) -> String {
    if name.starts_with(|first: char| first.is_ascii_digit() || first == '-') {
        return rewritten(&format!("_{name}"), MAX_NAME);
    }
    valid(name, MAX_NAME)
}

/// `text` if it is `[a-zA-Z0-9_-]{1,longest}`, else its valid characters and a hash of the whole.
fn valid(text: &str, longest: usize) -> String {
    if !text.is_empty() && text.len() <= longest && text.chars().all(fits) {
        return text.to_owned();
    }
    rewritten(text, longest)
}

fn fits(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// The valid characters of `text` and a hash of the whole.
fn rewritten(text: &str, longest: usize) -> String {
    let suffix = format!("_{:08x}", hash(text) & 0xffff_ffff);
    let mut kept: String =
        text.chars().map(|c| if fits(c) { c } else { '_' }).take(longest - suffix.len()).collect();
    kept.push_str(&suffix);
    kept
}

/// FNV-1a, 64 bits: small, and the same on every machine and in every version.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn nine_alphanumerics(text: &str) -> String {
    if text.len() == NINE && text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return text.to_owned();
    }
    let mut rest = hash(text);
    (0..NINE)
        .map(|_| {
            let digit = u32::try_from(rest % 36).unwrap_or_default();
            rest /= 36;
            char::from_digit(digit, 36).unwrap_or('0')
        })
        .collect()
}

/// Gives each call of a conversation an id that the target accepts and that no other call has.
///
/// Ids may repeat between messages, and results belong to the calls of the last assistant message:
/// so the table of names is the last message's, while uniqueness is the whole conversation's.
#[derive(Debug)]
pub(crate) struct ToolIds {
    form: ToolIdForm,
    used: HashSet<String>,
    /// How often an id was taken already: hosts that count from zero in each message repeat the same
    /// few for a whole conversation, which must stay linear.
    repeats: HashMap<String, u32>,
    /// What each id of the last message became, in the order of its calls: a message of the decoder's
    /// has each id once, but a history may come from elsewhere.
    current: HashMap<String, VecDeque<String>>,
}

impl ToolIds {
    pub(crate) fn new(form: ToolIdForm) -> Self {
        Self { form, used: HashSet::new(), repeats: HashMap::new(), current: HashMap::new() }
    }

    /// An assistant message begins: ids before it are no longer referred to.
    pub(crate) fn begin_message(&mut self) {
        self.current.clear();
    }

    /// The id to send for a call.
    pub(crate) fn call(&mut self, id: &str) -> String {
        let mut wire = self.shaped(id);
        if !self.used.insert(wire.clone()) {
            let mut repeat = self.repeats.get(id).copied().unwrap_or(1);
            while !self.used.insert(wire.clone()) {
                repeat = repeat.saturating_add(1);
                wire = self.shaped(&format!("{id}_{repeat}"));
            }
            self.repeats.insert(id.to_owned(), repeat);
        }
        self.current.entry(id.to_owned()).or_default().push_back(wire.clone());
        wire
    }

    /// The id to send with a result. One without its call is the projection's failure, not ours:
    /// it is sent as it would have been.
    pub(crate) fn result(&mut self, id: &str) -> String {
        let wire = match self.current.get_mut(id) {
            Some(wires) if wires.len() > 1 => wires.pop_front(),
            Some(wires) => wires.front().cloned(),
            None => None,
        };
        wire.unwrap_or_else(|| self.shaped(id))
    }

    fn shaped(&self, id: &str) -> String {
        match self.form {
            ToolIdForm::Plain => valid(id, MAX_ID),
            ToolIdForm::NineAlphanumerics => nine_alphanumerics(id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC M15
    #[test]
    fn names_are_valid_and_found_again() {
        let long = "x".repeat(65);
        let names =
            ["Read", "mcp__server__tool", "a.b/c d", "", "größe", "2fa", "-x", "9.9", &long];
        for name in names {
            let wire = wire_name(name);
            assert!(!wire.is_empty() && wire.len() <= MAX_NAME, "{wire}");
            assert!(
                wire.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'),
                "{wire}"
            );
            assert!(!wire.starts_with(|c: char| c.is_ascii_digit() || c == '-'), "{wire}");
            assert_eq!(wire_name(&wire), wire, "valid names are left alone");
        }
        assert_eq!(wire_name("a.b"), "a_b_0466522c");
        assert_ne!(wire_name("a.b"), wire_name("a/b"));
        assert_ne!(wire_name("2fa"), wire_name("_2fa"));
    }

    /// SPEC M17: the same calls have the same ids in every request.
    #[test]
    fn ids_that_repeat_are_counted() {
        let mut ids = ToolIds::new(ToolIdForm::Plain);
        let mut sent = |id: &str| {
            ids.begin_message();
            ids.call(id)
        };
        let wanted = ["call_0", "call_0_3", "call_0_2", "call_0_4", "call_0_3_2"];
        assert_eq!(["call_0", "call_0_3", "call_0", "call_0", "call_0_3"].map(&mut sent), wanted);
    }

    /// SPEC M7
    #[test]
    fn ids_are_valid_unique_and_the_same_for_call_and_result() {
        for form in [ToolIdForm::Plain, ToolIdForm::NineAlphanumerics] {
            let mut ids = ToolIds::new(form);
            let mut seen = HashSet::new();
            for _ in 0..3 {
                ids.begin_message();
                for id in ["functions.add:0", "call_1", "abcdefghi", &"long".repeat(40)] {
                    let wire = ids.call(id);
                    assert_eq!(ids.result(id), wire);
                    assert!(wire.len() <= MAX_ID, "{wire}");
                    if form == ToolIdForm::NineAlphanumerics {
                        assert_eq!(wire.len(), NINE, "{wire}");
                    }
                    assert!(seen.insert(wire));
                }
            }
            assert!(seen.contains("abcdefghi"));
        }
    }
}
