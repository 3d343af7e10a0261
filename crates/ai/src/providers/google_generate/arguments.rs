//! [`Arguments`]: a call's arguments that come piece by piece, each with the path of its place.
//!
//! Paths are the singular ones of RFC 9535: `$.a.b`, `$.a[0]`, `$['a b']`. Text for a place that has
//! text grows it. A piece that has no place is a failure: arguments that miss something must not run.

use serde_json::{Map, Value};

/// The deepest place. A schema that nests deeper is no tool's, and JSON readers stop there as well.
const MAX_DEPTH: usize = 100;

/// The most items that are skipped in a call's lists. Hosts fill lists in order; an index far beyond
/// the end would make us hold what nobody sent.
const MAX_SKIPPED: usize = 256;

/// The arguments so far.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    fields: Map<String, Value>,
    /// How many items were made only because a later one came.
    skipped: usize,
}

/// A piece that has no place in the arguments.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Misplaced;

#[derive(Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

impl Arguments {
    /// Takes in arguments that came as an object.
    pub(super) fn merge(&mut self, whole: Map<String, Value>) {
        self.fields.extend(whole);
    }

    /// Takes in one entry of `partialArgs`.
    pub(super) fn push(&mut self, piece: &Value) -> Result<(), Misplaced> {
        let path = piece.get("jsonPath").and_then(Value::as_str).ok_or(Misplaced)?;
        let value = if piece.get("nullValue").is_some() {
            Value::Null
        } else if let Some(value) = ["stringValue", "numberValue", "boolValue"]
            .iter()
            .find_map(|key| piece.get(*key).filter(|value| !value.is_null()))
        {
            value.clone()
        } else {
            // It only says that its place goes on, or that it does not.
            return Ok(());
        };
        let mut steps = steps(path).ok_or(Misplaced)?.into_iter();
        let Some(Step::Key(first)) = steps.next() else { return Err(Misplaced) };
        let mut place = self.fields.entry(first).or_insert(Value::Null);
        for step in steps {
            place = below(place, step, &mut self.skipped).ok_or(Misplaced)?;
        }
        match (place, value) {
            (Value::String(text), Value::String(more)) => text.push_str(&more),
            (place, value) => *place = value,
        }
        Ok(())
    }

    /// The arguments as JSON text.
    pub(super) fn into_text(self) -> String {
        Value::Object(self.fields).to_string()
    }
}

/// The place one step further; made where there is nothing yet.
fn below<'p>(place: &'p mut Value, step: Step, skipped: &mut usize) -> Option<&'p mut Value> {
    match step {
        Step::Key(key) => {
            if place.is_null() {
                *place = Value::Object(Map::new());
            }
            Some(place.as_object_mut()?.entry(key).or_insert(Value::Null))
        }
        Step::Index(index) => {
            if place.is_null() {
                *place = Value::Array(Vec::new());
            }
            let items = place.as_array_mut()?;
            if index >= items.len() {
                *skipped = skipped.saturating_add(index - items.len());
                if *skipped > MAX_SKIPPED {
                    return None;
                }
                items.resize(index.saturating_add(1), Value::Null);
            }
            items.get_mut(index)
        }
    }
}

fn steps(path: &str) -> Option<Vec<Step>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if steps.len() == MAX_DEPTH {
            return None;
        }
        let (step, after) = match rest.strip_prefix('.') {
            Some(name) => {
                let (name, after) = name.split_at(name.find(['.', '[']).unwrap_or(name.len()));
                (Step::Key(name.to_owned()), after)
            }
            None => bracketed(rest.strip_prefix('[')?)?,
        };
        if step == Step::Key(String::new()) {
            return None;
        }
        steps.push(step);
        rest = after;
    }
    Some(steps)
}

/// The step that begins behind `[`, and what follows its `]`.
fn bracketed(text: &str) -> Option<(Step, &str)> {
    let quote = text.chars().next().filter(|first| matches!(first, '\'' | '"'));
    let Some(quote) = quote else {
        let (index, after) = text.split_once(']')?;
        return Some((Step::Index(index.parse().ok()?), after));
    };
    let mut name = String::new();
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => name.push(letters.next()?.1),
            _ if letter == quote => {
                let after = text.get(at + 1..)?.strip_prefix(']')?;
                return Some((Step::Key(name), after));
            }
            _ => name.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// SPEC M6
    #[test]
    fn pieces_are_put_in_their_places() {
        let mut arguments = Arguments::default();
        for piece in [
            json!({"jsonPath": "$.city", "stringValue": "Bos", "willContinue": true}),
            json!({"jsonPath": "$.list[0].name", "stringValue": "a"}),
            json!({"jsonPath": "$.city", "stringValue": "ton"}),
            json!({"jsonPath": "$.city", "stringValue": ""}),
            json!({"jsonPath": "$.list[1]", "numberValue": 2}),
            json!({"jsonPath": "$['a.b'][\"it's\"]", "boolValue": false}),
            json!({"jsonPath": "$['\\'']", "nullValue": "NULL_VALUE"}),
            json!({"jsonPath": "$.later", "willContinue": true}),
        ] {
            assert_eq!(arguments.push(&piece), Ok(()), "{piece}");
        }
        assert_eq!(
            arguments.into_text(),
            r#"{"city":"Boston","list":[{"name":"a"},2],"a.b":{"it's":false},"'":null}"#
        );
    }

    /// SPEC M6
    #[test]
    fn a_piece_without_a_place_is_a_failure() {
        let deep = format!("${}", ".a".repeat(MAX_DEPTH + 1));
        for path in [
            "",
            "$",
            "a",
            "$[0]",
            "$.a[",
            "$.a[x]",
            "$..a",
            "$['a]",
            "$.a[257]",
            "$.a[99999999999]",
            "$.s.t",
            &deep,
        ] {
            let mut arguments = Arguments::default();
            assert_eq!(arguments.push(&json!({"jsonPath": "$.s", "stringValue": "s"})), Ok(()));
            let piece = json!({"jsonPath": path, "stringValue": "x"});
            assert_eq!(arguments.push(&piece), Err(Misplaced), "{path}");
        }
        assert_eq!(Arguments::default().push(&json!({"stringValue": "x"})), Err(Misplaced));
    }
}
