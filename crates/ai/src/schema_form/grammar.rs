//! Schemas for hosts that turn them into a grammar for their sampler, as llama.cpp does.
//!
//! Their converters refuse the whole request for a pattern that is not anchored or that has a class
//! such as `\d`, for a repetition of thousands, and for a schema without a type, which `not` alone is;
//! what else they do not know they pass over.

use serde_json::{Map, Value};

use super::implied_kinds;
use super::plain::for_each_inner;

/// The most repetitions that a grammar may ask for. llama.cpp refuses 2000 and counts those that
/// stand in one another together.
const MAX_REPETITIONS: u64 = 500;

/// Keywords that become repetitions.
const REPEATING: [&str; 4] = ["minLength", "maxLength", "minItems", "maxItems"];

/// Keywords that say what a value is without a type.
pub(super) const TELLING: [&str; 7] = ["type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"];

/// What a value may be that may be anything.
const ANYTHING: [&str; 6] = ["string", "number", "boolean", "object", "array", "null"];

/// Takes a schema in plain form.
pub(super) fn reduce(mut schema: Value) -> Value {
    if let Value::Object(fields) = &mut schema {
        reduce_fields(fields);
    }
    schema
}

fn reduce_fields(fields: &mut Map<String, Value>) {
    fields.retain(|keyword, value| {
        let is_many = value.as_u64().is_some_and(|count| count > MAX_REPETITIONS);
        keyword != "pattern"
            && keyword != "not"
            && !(is_many && REPEATING.contains(&keyword.as_str()))
    });
    if !TELLING.iter().any(|keyword| fields.contains_key(*keyword)) {
        let kind = match implied_kinds(fields).as_slice() {
            [only] => Value::from(*only),
            _ => ANYTHING.into_iter().map(Value::from).collect(),
        };
        fields.insert("type".into(), kind);
    }
    for_each_inner(fields, reduce_fields);
}
