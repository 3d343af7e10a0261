//! A tool's schema in the form that a host takes (SPEC M15).
//!
//! Schemas come from anywhere: from types, from people, from MCP servers, of any draft of JSON
//! Schema. Hosts refuse a whole request for one keyword in one tool that they do not know. So every
//! schema is brought into one plain form first ([`plain`]), and from there into what the host asks for
//! ([`openapi`], [`grammar`]); [`strict`] says whether a host may hold the model to it.
//!
//! **Invariant:** a form takes demands away and adds none, as far as its target can say it: what the
//! schema accepts, its form accepts. (One exception: where a target needs a type and the schema has
//! none, it is taken to be the one that the schema's words are about.) Arguments are checked against
//! the schema itself when they come ([`crate::ArgumentValidator`]), so a demand that the model was not
//! told of is still made.
//!
//! All of it is pure: the same schema gives the same bytes, keys stay in their order, and a form
//! taken twice is the form taken once.

mod combine;
mod grammar;
mod openapi;
mod plain;
mod reference;
mod strict;

use serde_json::{Map, Value};

use crate::compat::SchemaForm;
use plain::{Plain, References};

pub(crate) use strict::allows_strict;

/// What a tool takes, in this form. Nothing for a tool without arguments where the form has no word
/// for an object without properties.
pub(crate) fn tool_schema(schema: &Value, form: SchemaForm) -> Option<Value> {
    match form {
        SchemaForm::JsonSchema => Some(Plain::of(schema, References::Kept)),
        SchemaForm::NoReferences => Some(Plain::of(schema, References::Inlined)),
        SchemaForm::Grammar => Some(grammar::reduce(Plain::of(schema, References::ToDefinitions))),
        SchemaForm::OpenApi => openapi::reduce_root(&Plain::of(schema, References::Inlined)),
    }
}

/// What a tool takes, where an API insists on a schema.
pub(crate) fn required_tool_schema(schema: &Value, form: SchemaForm) -> Value {
    tool_schema(schema, form).unwrap_or_else(|| {
        let mut fields = Map::new();
        fields.insert("type".into(), "object".into());
        fields.insert("properties".into(), Value::Object(Map::new()));
        Value::Object(fields)
    })
}

/// What values a schema means, where it does not say: the kinds of the values that it lists, or the
/// kind that its keywords are about.
fn implied_kinds(fields: &Map<String, Value>) -> Vec<&'static str> {
    /// Keywords that are about one kind of value alone.
    const TELLING: [(&str, &[&str]); 4] = [
        ("object", &["properties", "required", "additionalProperties", "patternProperties"]),
        ("array", &["items", "prefixItems", "minItems", "maxItems", "uniqueItems"]),
        ("string", &["minLength", "maxLength", "pattern", "format"]),
        ("number", &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
    ];
    let listed = fields.get("enum").and_then(Value::as_array).map(Vec::as_slice);
    let listed = listed.or_else(|| fields.get("const").map(std::slice::from_ref));
    if let Some(values) = listed {
        let mut kinds = Vec::new();
        for kind in values.iter().map(kind_of) {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        return kinds;
    }
    TELLING
        .iter()
        .find(|(_, keywords)| keywords.iter().any(|keyword| fields.contains_key(*keyword)))
        .map(|(kind, _)| *kind)
        .into_iter()
        .collect()
}

/// The narrowest kind of a value.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Whether nothing fits a schema: the plain form of `false`.
fn is_impossible(schema: &Value) -> bool {
    schema.as_object().is_some_and(|fields| {
        fields.len() == 1 && fields.get("not").and_then(Value::as_object).is_some_and(Map::is_empty)
    })
}

#[cfg(test)]
#[path = "schema_form/tests.rs"]
mod tests;
