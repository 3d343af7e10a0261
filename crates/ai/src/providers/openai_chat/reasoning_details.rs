//! [`ReasoningDetails`]: OpenRouter's list of reasoning entries, collected for replay.
//!
//! The list holds the text that is also in `reasoning`, and what is nowhere else: signatures and
//! ciphers. It is kept only for those, merged from its pieces, in order, with every field as it
//! came, because its host wants it back unchanged.

use serde_json::{Map, Value, json};

/// The entries so far.
#[derive(Debug, Default)]
pub(super) struct ReasoningDetails {
    entries: Vec<Map<String, Value>>,
}

/// Fields that grow piece by piece; of all others the last value stands.
const GROWING: [&str; 2] = ["text", "summary"];

/// Fields that only this list has, which make it worth keeping.
const IRREPLACEABLE: [&str; 2] = ["signature", "data"];

impl ReasoningDetails {
    /// Takes in one entry of a chunk and returns its readable text.
    pub(super) fn push(&mut self, entry: Map<String, Value>) -> String {
        let text = GROWING.iter().filter_map(|key| text_of(&entry, key)).collect::<String>();
        match self.entries.last_mut() {
            Some(last) if continues(last, &entry) => merge(last, entry),
            Some(_) | None => self.entries.push(entry),
        }
        text
    }

    /// The list as an opaque block, if it holds what the thinking text does not.
    pub(super) fn into_opaque(self) -> Option<Value> {
        let irreplaceable = self
            .entries
            .iter()
            .any(|entry| IRREPLACEABLE.iter().any(|key| text_of(entry, key).is_some()));
        irreplaceable.then(|| json!({ "reasoning_details": self.entries }))
    }
}

/// A cipher is never a continuation: entries of one index may each have one.
fn continues(last: &Map<String, Value>, next: &Map<String, Value>) -> bool {
    let same = |key: &str| last.get(key) == next.get(key);
    same("type") && same("index") && !next.contains_key("data")
}

fn merge(last: &mut Map<String, Value>, next: Map<String, Value>) {
    for (key, value) in next {
        match (last.get_mut(&key), value) {
            (Some(Value::String(text)), Value::String(more)) if GROWING.contains(&key.as_str()) => {
                text.push_str(&more);
            }
            (Some(_), Value::Null) => {}
            (Some(_), Value::String(empty)) if empty.is_empty() => {}
            (Some(slot), value) => *slot = value,
            (None, value) => {
                last.insert(key, value);
            }
        }
    }
}

fn text_of<'a>(entry: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    entry.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}
