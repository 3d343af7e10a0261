//! [`Plain`]: any schema as an object's, in the words of JSON Schema 2020-12.
//!
//! The root is an object with properties and no union, which Messages and Chat Completions insist on
//! and which loses little: arguments are always an object. Older drafts' words become today's,
//! `$schema` and what else names a document go, and what cannot be read is left out.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::combine::{absorb, absorb_alternatives};
use super::reference::{DEFINITIONS, is_to_definition, target};

/// How deep schemas may stand in one another; deeper ones accept anything of their kind. No tool that
/// a model can fill in comes near it, and it keeps the stack small.
const MAX_DEPTH: usize = 32;

/// About how many bytes a form may have; what comes behind accepts anything of its kind. References
/// that stand in for one another would otherwise make gigabytes of a page. Real tools have a few
/// thousand.
const MAX_SIZE: usize = 512 * 1024;

/// What a schema counts for [`MAX_SIZE`] besides what it says.
const NODE_SIZE: usize = 16;

/// How many schemas may make up the root, through references and unions; the others are not looked
/// at. Real roots are made of fewer than ten.
const MAX_ROOT_PARTS: usize = 256;

/// Words that say which document this is or that lead to places found by walking through it, and old
/// ones without a place in today's drafts.
const DROPPED: [&str; 12] = [
    "$schema",
    "$id",
    "id",
    "$comment",
    "$vocabulary",
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$recursiveAnchor",
    "$recursiveRef",
    "additionalItems",
    "dependencies",
];

/// What hosts refuse at the root.
const NOT_AT_ROOT: [&str; 7] = ["$ref", "allOf", "anyOf", "oneOf", "not", "enum", "const"];

/// Keywords whose value is one schema.
const ONE_SCHEMA: [&str; 11] = [
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords whose value is a list of schemas.
const SCHEMA_LIST: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];

/// Keywords whose value is schemas by name.
const NAMED_SCHEMAS: [&str; 5] =
    ["properties", "patternProperties", "dependentSchemas", DEFINITIONS[0], DEFINITIONS[1]];

/// The kinds of JSON values, as schemas name them.
const KINDS: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];

/// What becomes of references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum References {
    /// Those to definitions at the root, and to the root itself, stay.
    Kept,
    /// Those to definitions at the root stay.
    ToDefinitions,
    /// None stays.
    Inlined,
}

/// One schema on its way to its plain form.
///
/// A reference that may not stay is replaced with what it points to; within itself it is cut. One
/// that leads out of the schema or nowhere is left out.
pub(super) struct Plain<'a> {
    root: &'a Value,
    references: References,
    size: usize,
    /// The references that are being followed.
    trail: Vec<String>,
}

impl<'a> Plain<'a> {
    pub(super) fn of(schema: &'a Value, references: References) -> Value {
        let mut plain = Self { root: schema, references, size: 0, trail: Vec::new() };
        let mut parts = 0;
        let object = plain.root_object(schema, &mut parts).unwrap_or_default();
        plain.trail.clear();
        let mut root = plain.fields(&object, 0);
        root.entry("type").or_insert_with(|| "object".into());
        root.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        Value::Object(root)
    }

    /// The object that a root, or a part of one, is: its references followed and its unions joined.
    /// Nothing if it is no object.
    fn root_object(&mut self, schema: &Value, parts: &mut usize) -> Option<Map<String, Value>> {
        *parts += 1;
        if *parts > MAX_ROOT_PARTS || self.trail.len() > MAX_DEPTH {
            return None;
        }
        let Value::Object(fields) = schema else { return (*schema == true).then(Map::new) };
        let is_object = match fields.get("type") {
            Some(Value::String(kind)) => kind == "object" || !KINDS.contains(&kind.as_str()),
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => true,
        };
        if !is_object {
            return None;
        }
        let mut object = fields.clone();
        object.retain(|keyword, _| !NOT_AT_ROOT.contains(&keyword.as_str()));
        object.insert("type".into(), "object".into());
        if let Some(reference) = fields.get("$ref").and_then(Value::as_str)
            && let Some(target) = target(self.root, reference)
            && !self.trail.iter().any(|passed| passed == reference)
        {
            self.trail.push(reference.to_owned());
            let target = self.root_object(target, parts);
            self.trail.pop();
            absorb(&mut object, &target?);
        }
        for part in list(fields, "allOf") {
            if let Some(part) = self.root_object(part, parts) {
                absorb(&mut object, &part);
            }
        }
        for union in ["anyOf", "oneOf"] {
            let objects: Vec<_> =
                list(fields, union).filter_map(|part| self.root_object(part, parts)).collect();
            absorb_alternatives(&mut object, &objects);
        }
        Some(object)
    }

    fn schema(&mut self, schema: &Value, depth: usize) -> Value {
        self.size += NODE_SIZE;
        if depth > MAX_DEPTH || self.size > MAX_SIZE {
            return Value::Object(outline(schema));
        }
        let fields = match schema {
            Value::Object(fields) => fields,
            Value::Bool(false) => {
                return Value::Object(with("not", Value::Object(Map::new())));
            }
            Value::Bool(true)
            | Value::Null
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => return Value::Object(Map::new()),
        };
        let Some(reference) = fields.get("$ref") else {
            return Value::Object(self.fields(fields, depth));
        };
        let reference = reference.as_str().unwrap_or_default();
        let root = self.root;
        let target = target(root, reference);
        if target.is_some() && self.keeps(reference) {
            return Value::Object(self.fields(fields, depth));
        }
        // What is said beside a reference comes before what it points to.
        let mut merged = fields.clone();
        merged.shift_remove("$ref");
        match target {
            Some(Value::Bool(false)) => self.schema(&Value::Bool(false), depth),
            Some(target) if self.trail.iter().any(|passed| passed == reference) => {
                absorb(&mut merged, &outline(target));
                Value::Object(self.fields(&merged, depth))
            }
            Some(Value::Object(target)) => {
                absorb(&mut merged, target);
                self.trail.push(reference.to_owned());
                let schema = self.schema(&Value::Object(merged), depth + 1);
                self.trail.pop();
                schema
            }
            Some(_) | None => Value::Object(self.fields(&merged, depth)),
        }
    }

    fn keeps(&self, reference: &str) -> bool {
        match self.references {
            References::Kept => reference == "#" || is_to_definition(reference),
            References::ToDefinitions => is_to_definition(reference),
            References::Inlined => false,
        }
    }

    fn fields(&mut self, fields: &Map<String, Value>, depth: usize) -> Map<String, Value> {
        let mut plain = Map::new();
        for (keyword, value) in fields {
            match (keyword.as_str(), value) {
                (word, _) if DROPPED.contains(&word) => {}
                // Only those at the root are ever referred to.
                (word, _)
                    if DEFINITIONS.contains(&word)
                        && (depth > 0 || self.references == References::Inlined) => {}
                (word, Value::Object(named)) if NAMED_SCHEMAS.contains(&word) => {
                    let named = named.iter().map(|(name, schema)| {
                        self.size += name.len();
                        (name.clone(), self.schema(schema, depth + 1))
                    });
                    let named = named.collect();
                    plain.insert(keyword.clone(), Value::Object(named));
                }
                // A tuple, as drafts before 2020-12 wrote it.
                ("items", Value::Array(items)) => {
                    let items = items.iter().map(|item| self.schema(item, depth + 1)).collect();
                    plain.insert("prefixItems".into(), Value::Array(items));
                    if let Some(rest) = fields.get("additionalItems") {
                        plain.insert("items".into(), self.schema(rest, depth + 1));
                    }
                }
                ("additionalProperties" | "unevaluatedProperties", Value::Bool(_)) => {
                    plain.insert(keyword.clone(), value.clone());
                }
                (word, Value::Object(_) | Value::Bool(_)) if ONE_SCHEMA.contains(&word) => {
                    plain.insert(keyword.clone(), self.schema(value, depth + 1));
                }
                (word, Value::Array(schemas))
                    if SCHEMA_LIST.contains(&word) && !schemas.is_empty() =>
                {
                    let schemas = schemas.iter().map(|it| self.schema(it, depth + 1)).collect();
                    plain.insert(keyword.clone(), Value::Array(schemas));
                }
                // Draft 4 said with a flag what is now a limit of its own.
                ("minimum" | "maximum", limit) => {
                    let (word, exclusive) = match keyword.as_str() {
                        "minimum" => ("minimum", "exclusiveMinimum"),
                        _ => ("maximum", "exclusiveMaximum"),
                    };
                    let is_exclusive = fields.get(exclusive) == Some(&Value::Bool(true));
                    let word = if is_exclusive { exclusive } else { word };
                    if limit.is_number() {
                        plain.insert(word.into(), limit.clone());
                    }
                }
                _ => {
                    if let Some(value) = said(keyword, value) {
                        self.size += keyword.len() + size_of(&value);
                        plain.insert(keyword.clone(), value);
                    }
                }
            }
        }
        plain
    }
}

/// The value of a keyword that holds no schema; nothing if it is not what the keyword takes.
fn said(keyword: &str, value: &Value) -> Option<Value> {
    let fits = match keyword {
        "type" => return kinds(value),
        "required" => {
            let mut seen = HashSet::new();
            let names = value.as_array()?.iter().filter_map(Value::as_str);
            return Some(names.filter(|name| seen.insert(*name)).collect());
        }
        "enum" => value.as_array().is_some_and(|values| !values.is_empty()),
        "$ref" | "title" | "description" | "format" | "pattern" | "contentEncoding"
        | "contentMediaType" => value.is_string(),
        "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
        "multipleOf" => value.as_f64().is_some_and(|step| step > 0.0),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => value.is_u64(),
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" | "nullable" => value.is_boolean(),
        "dependentRequired" => value.is_object(),
        "examples" => value.is_array(),
        word => {
            !ONE_SCHEMA.contains(&word)
                && !SCHEMA_LIST.contains(&word)
                && !NAMED_SCHEMAS.contains(&word)
        }
    };
    fits.then(|| value.clone())
}

/// The kinds that a `type` names, in one word where it is one.
fn kinds(value: &Value) -> Option<Value> {
    let is_kind = |value: &Value| value.as_str().is_some_and(|word| KINDS.contains(&word));
    match value {
        Value::String(_) => is_kind(value).then(|| value.clone()),
        Value::Array(words) => {
            let mut kinds: Vec<Value> = Vec::new();
            for word in words.iter().filter(|word| is_kind(word)) {
                if !kinds.contains(word) {
                    kinds.push(word.clone());
                }
            }
            match kinds.len() {
                // A word that is not known may have meant anything.
                _ if !words.iter().all(is_kind) => None,
                0 => None,
                1 => kinds.pop(),
                _ => Some(Value::Array(kinds)),
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// What is left of a schema that is cut: its kind, if it is of one kind.
fn outline(schema: &Value) -> Map<String, Value> {
    match schema.get("type") {
        Some(kind @ Value::String(word)) if KINDS.contains(&word.as_str()) => {
            with("type", kind.clone())
        }
        Some(_) | None => Map::new(),
    }
}

fn with(keyword: &str, value: Value) -> Map<String, Value> {
    Map::from_iter([(keyword.to_owned(), value)])
}

fn list<'v>(fields: &'v Map<String, Value>, keyword: &str) -> impl Iterator<Item = &'v Value> {
    fields.get(keyword).and_then(Value::as_array).into_iter().flatten()
}

/// About how many bytes a value takes.
fn size_of(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(size_of).sum(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| name.len() + size_of(value)).sum()
        }
    }
}

/// Calls `visit` with each schema directly inside one in plain form.
pub(super) fn for_each_inner(
    fields: &mut Map<String, Value>,
    mut visit: impl FnMut(&mut Map<String, Value>),
) {
    for (keyword, value) in fields {
        match value {
            Value::Object(schema) if ONE_SCHEMA.contains(&keyword.as_str()) => visit(schema),
            Value::Object(named) if NAMED_SCHEMAS.contains(&keyword.as_str()) => {
                named.values_mut().filter_map(Value::as_object_mut).for_each(&mut visit);
            }
            Value::Array(schemas) if SCHEMA_LIST.contains(&keyword.as_str()) => {
                schemas.iter_mut().filter_map(Value::as_object_mut).for_each(&mut visit);
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => {}
        }
    }
}
