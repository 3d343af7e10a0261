//! Whether a host may hold the model to a schema, token by token, as OpenAI's strict mode does.
//!
//! Strict mode asks for closed objects that require all they have. A schema that has an optional
//! property, or is open, would mean something else in that form, so it is offered without. The words
//! allowed here are those that every host with strict mode takes; OpenAI itself takes a few more.

use serde_json::{Map, Value};

use super::reference::is_to_definition;

/// How deep objects and arrays may stand in one another.
const MAX_DEPTH: usize = 5;

/// How many properties there may be in all.
const MAX_PROPERTIES: usize = 100;

/// How many values may be listed in all.
const MAX_VALUES: usize = 500;

/// How many bytes the names and the listed values may have together. The API counts characters.
const MAX_TEXT: usize = 15_000;

/// What a schema may say. No limits on numbers, lengths or formats: not every host knows them.
const KEYWORDS: [&str; 11] = [
    "type",
    "title",
    "description",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "anyOf",
    "$defs",
];

/// Whether a schema in plain form, with its references kept, may be offered as strict.
pub(crate) fn allows_strict(schema: &Value) -> bool {
    schema.as_object().is_some_and(|root| {
        let mut sum = Sum::default();
        let is_whole = root.get("$defs").is_none_or(|named| sum.allow_all(named, 1));
        is_whole
            && sum.allow(root, 0)
            && sum.properties <= MAX_PROPERTIES
            && sum.values <= MAX_VALUES
            && sum.text <= MAX_TEXT
    })
}

/// What a schema comes to, all parts together.
#[derive(Default)]
struct Sum {
    properties: usize,
    values: usize,
    text: usize,
}

impl Sum {
    fn allow_all(&mut self, named: &Value, depth: usize) -> bool {
        named.as_object().is_some_and(|named| {
            named.iter().all(|(name, schema)| {
                self.text += name.len();
                schema.as_object().is_some_and(|fields| self.allow(fields, depth))
            })
        })
    }

    fn allow(&mut self, fields: &Map<String, Value>, depth: usize) -> bool {
        if depth > MAX_DEPTH {
            return false;
        }
        if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
            // Nothing may stand beside a reference.
            return fields.len() == 1 && (reference == "#" || is_to_definition(reference));
        }
        if !fields.keys().all(|keyword| KEYWORDS.contains(&keyword.as_str())) {
            return false;
        }
        let listed = fields.get("enum").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let listed = listed.iter().chain(fields.get("const"));
        for value in listed {
            self.values += 1;
            self.text += value.as_str().map_or(0, str::len);
        }
        match (fields.get("type"), fields.get("anyOf")) {
            (None, Some(Value::Array(choices))) => choices
                .iter()
                .all(|choice| choice.as_object().is_some_and(|it| self.allow(it, depth))),
            (Some(Value::String(kind)), None) => self.allow_kind(kind, fields, depth),
            (Some(Value::Array(kinds)), None) => kinds
                .iter()
                .all(|kind| kind.as_str().is_some_and(|kind| self.allow_kind(kind, fields, depth))),
            (Some(_) | None, _) => false,
        }
    }

    fn allow_kind(&mut self, kind: &str, fields: &Map<String, Value>, depth: usize) -> bool {
        match kind {
            "object" => {
                let (Some(Value::Object(properties)), Some(Value::Array(required))) =
                    (fields.get("properties"), fields.get("required"))
                else {
                    return false;
                };
                self.properties += properties.len();
                // Before they are looked at one by one, and one by one among the required.
                self.properties <= MAX_PROPERTIES
                    && fields.get("additionalProperties") == Some(&Value::Bool(false))
                    && required.len() == properties.len()
                    && properties.keys().all(|name| required.iter().any(|it| it == name))
                    && properties.iter().all(|(name, schema)| {
                        self.text += name.len();
                        schema.as_object().is_some_and(|it| self.allow(it, depth + 1))
                    })
            }
            "array" => fields
                .get("items")
                .and_then(Value::as_object)
                .is_some_and(|items| self.allow(items, depth + 1)),
            "string" | "number" | "integer" | "boolean" | "null" => true,
            _ => false,
        }
    }
}
