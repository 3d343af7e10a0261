//! Schemas in the subset of OpenAPI 3.0 that Google's `parameters` take, and what imitates them.
//!
//! It has one type a schema, `nullable` instead of a null type, lists of values for texts only, and no
//! reference, no open or closed object, no tuple. A choice stands alone: beside `anyOf` nothing else is
//! taken. See the
//! [API's reference](https://ai.google.dev/api/caching#Schema).

use serde_json::{Map, Value};

use super::combine::{absorb, absorb_alternatives};
use super::{implied_kinds, is_impossible, kind_of};
use crate::replay::PARAGRAPH;

/// What a value may be that may be anything. An array would need to say what is in it.
const ANYTHING: [&str; 4] = ["string", "number", "boolean", "object"];

/// The formats that are taken, by type.
const FORMATS: [(&str, &[&str]); 3] = [
    ("string", &["date-time", "enum"]),
    ("integer", &["int32", "int64"]),
    ("number", &["float", "double"]),
];

/// What a pattern has that this API's expressions (RE2) do not: looking around, and back.
const UNKNOWN_IN_PATTERNS: [&str; 5] = ["(?=", "(?!", "(?<", "\\1", "\\k"];

/// Takes a root in plain form without references. Nothing is left of an object that has no
/// properties, which is refused at the root.
pub(super) fn reduce_root(schema: &Value) -> Option<Value> {
    let root = reduce(schema);
    root.get("properties").is_some().then_some(root)
}

fn reduce(schema: &Value) -> Value {
    let Value::Object(fields) = schema else { return anything() };
    let mut fields = fields.clone();
    while let Some(Value::Array(parts)) = fields.shift_remove("allOf") {
        parts.iter().filter_map(Value::as_object).for_each(|part| absorb(&mut fields, part));
    }
    let union = ["anyOf", "oneOf"].into_iter().find_map(|word| match fields.get(word) {
        Some(Value::Array(choices)) => Some(choices.clone()),
        Some(_) | None => None,
    });
    fields.retain(|keyword, _| keyword != "anyOf" && keyword != "oneOf");

    let declared: Vec<&str> = match fields.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            implied_kinds(&fields)
        }
    };
    let mut is_nullable = fields.get("nullable") == Some(&Value::Bool(true));
    let mut kinds: Vec<String> = declared.into_iter().map(str::to_owned).collect();
    if kinds.len() > 1 || is_nullable {
        is_nullable |= kinds.iter().any(|kind| kind == "null");
        kinds.retain(|kind| kind != "null");
    }
    match (union, kinds.as_slice()) {
        (Some(choices), []) => {
            let choices = choices.iter().filter(|choice| !is_impossible(choice)).map(reduce);
            choice_of(choices.collect(), is_nullable, &fields)
        }
        (Some(choices), [only]) if only == "object" => {
            let objects = choices.iter().filter_map(object_of);
            absorb_alternatives(&mut fields, &objects.collect::<Vec<_>>());
            typed("object", &fields, is_nullable)
        }
        (Some(_) | None, [only]) => typed(only, &fields, is_nullable),
        (None, []) => choice_of(vec![anything()], is_nullable, &fields),
        (Some(_) | None, several) => {
            let choices = several.iter().map(|kind| {
                let mut fields = fields.clone();
                // These are said once, of the whole choice.
                fields.retain(|word, _| {
                    !["description", "title", "default"].contains(&word.as_str())
                });
                typed(kind, &fields, false)
            });
            choice_of(choices.collect(), is_nullable, &fields)
        }
    }
}

/// A choice of an object, if it is one.
fn object_of(choice: &Value) -> Option<Map<String, Value>> {
    let fields = choice.as_object()?;
    let is_object = fields.get("type").is_none_or(|kind| {
        kind == "object"
            || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "object"))
    });
    is_object.then(|| fields.clone())
}

/// A choice of schemas in this form, with what was said of all of them.
fn choice_of(schemas: Vec<Value>, is_nullable: bool, said: &Map<String, Value>) -> Value {
    let mut is_nullable = is_nullable;
    let mut choices: Vec<Map<String, Value>> = Vec::new();
    let flat = schemas.into_iter().flat_map(|mut schema| match schema.get_mut("anyOf") {
        Some(Value::Array(inner)) => std::mem::take(inner),
        Some(_) | None => vec![schema],
    });
    let mut is_null_alone = false;
    for schema in flat {
        let Value::Object(mut choice) = schema else { continue };
        if choice.get("type").is_some_and(|kind| kind == "null") {
            is_nullable = true;
            is_null_alone = true;
            continue;
        }
        is_nullable |= choice.shift_remove("nullable").is_some();
        if !choices.contains(&choice) {
            choices.push(choice);
        }
    }
    let Some(first) = choices.first_mut() else {
        return if is_null_alone { typed("null", said, false) } else { anything() };
    };
    // Beside a choice nothing may be said: what is said of all is said of the first.
    if let Some(description) = said.get("description") {
        first.entry("description").or_insert_with(|| description.clone());
    }
    if is_nullable {
        first.insert("nullable".into(), true.into());
    }
    match choices.len() {
        1 => Value::Object(choices.swap_remove(0)),
        _ => {
            let choices = choices.into_iter().map(Value::Object).collect();
            Value::Object(Map::from_iter([("anyOf".to_owned(), Value::Array(choices))]))
        }
    }
}

fn anything() -> Value {
    let choice = |kind: &str| Value::Object(Map::from_iter([("type".to_owned(), kind.into())]));
    let choices = ANYTHING.into_iter().map(choice).collect();
    Value::Object(Map::from_iter([("anyOf".to_owned(), Value::Array(choices))]))
}

/// What a schema says of values of one kind.
fn typed(kind: &str, fields: &Map<String, Value>, is_nullable: bool) -> Value {
    let mut out = Map::new();
    for (keyword, value) in fields {
        match (keyword.as_str(), kind) {
            ("type", _) => {
                out.insert("type".into(), kind.into());
            }
            ("title" | "description" | "default", _)
            | ("minLength" | "maxLength", "string")
            | ("minimum" | "maximum", "number" | "integer")
            | ("minItems" | "maxItems", "array")
            | ("minProperties" | "maxProperties", "object") => {
                out.insert(keyword.clone(), value.clone());
            }
            ("pattern", "string") if is_known_pattern(value) => {
                out.insert(keyword.clone(), value.clone());
            }
            ("format", _) if is_known_format(value, kind) => {
                out.insert(keyword.clone(), value.clone());
            }
            ("enum" | "const", "string") => {
                let texts = listed(fields, kind);
                // Empty texts are refused.
                if !texts.is_empty() && !texts.contains(&&Value::from("")) {
                    out.insert("enum".into(), texts.into_iter().cloned().collect());
                }
            }
            ("items" | "prefixItems", "array") => {
                out.entry("items").or_insert_with(|| item(fields));
            }
            ("properties", "object") => {
                let properties: Map<String, Value> = possible_properties(fields)
                    .map(|(name, schema)| (name.clone(), reduce(schema)))
                    .collect();
                if !properties.is_empty() {
                    out.insert(keyword.clone(), Value::Object(properties));
                }
            }
            ("required", "object") => {
                let known = fields.get("properties").and_then(Value::as_object);
                let is_known = |name: &&Value| {
                    let schema = name.as_str().and_then(|name| known?.get(name));
                    schema.is_some_and(|schema| !is_impossible(schema))
                };
                let names = value.as_array().into_iter().flatten().filter(is_known);
                let names: Vec<Value> = names.cloned().collect();
                if !names.is_empty() {
                    out.insert(keyword.clone(), Value::Array(names));
                }
            }
            _ => {}
        }
    }
    out.entry("type").or_insert_with(|| kind.into());
    if kind == "array" {
        out.entry("items").or_insert_with(anything);
    }
    if !out.contains_key("enum") {
        say_values(&mut out, &listed(fields, kind));
    }
    if is_nullable {
        out.insert("nullable".into(), true.into());
    }
    Value::Object(out)
}

/// The values of this kind that a schema lists.
fn listed<'a>(fields: &'a Map<String, Value>, kind: &str) -> Vec<&'a Value> {
    let values = match (fields.get("const"), fields.get("enum")) {
        (Some(only), _) => std::slice::from_ref(only),
        (None, Some(Value::Array(values))) => values,
        (None, Some(_) | None) => &[],
    };
    let is_of_kind = |value: &&Value| {
        let of = kind_of(value);
        of != "null" && (of == kind || (of == "integer" && kind == "number"))
    };
    values.iter().filter(is_of_kind).collect()
}

/// Tells the model in words which values there are, where the form cannot list them.
fn say_values(out: &mut Map<String, Value>, values: &[&Value]) {
    if values.is_empty() {
        return;
    }
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    let values = format!("One of: {}", values.join(", "));
    match out.get_mut("description") {
        Some(Value::String(description)) => {
            description.push_str(PARAGRAPH);
            description.push_str(&values);
        }
        Some(_) | None => {
            out.insert("description".into(), values.into());
        }
    }
}

/// What is in an array: any of what a tuple has.
fn item(fields: &Map<String, Value>) -> Value {
    let parts = fields.get("prefixItems").and_then(Value::as_array).into_iter().flatten();
    let parts = parts.chain(fields.get("items"));
    let parts: Vec<Value> = parts.filter(|part| !is_impossible(part)).map(reduce).collect();
    choice_of(parts, false, &Map::new())
}

/// The properties that an object may have.
fn possible_properties(fields: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    let properties = fields.get("properties").and_then(Value::as_object).into_iter().flatten();
    properties.filter(|(_, schema)| !is_impossible(schema))
}

fn is_known_format(format: &Value, kind: &str) -> bool {
    FORMATS.iter().any(|(of, formats)| {
        *of == kind && format.as_str().is_some_and(|format| formats.contains(&format))
    })
}

fn is_known_pattern(pattern: &Value) -> bool {
    pattern
        .as_str()
        .is_some_and(|text| !UNKNOWN_IN_PATTERNS.iter().any(|unknown| text.contains(unknown)))
}
