//! The schemas that Google takes as `parameters`: a subset of OpenAPI 3.0's, not JSON Schema.

use serde_json::{Map, Value};

use crate::refusal::Refusal;

/// What a schema may have; the real API refuses anything else, at any depth.
const FIELDS: [&str; 22] = [
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "maxItems",
    "minItems",
    "properties",
    "required",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "pattern",
    "example",
    "anyOf",
    "propertyOrdering",
    "default",
    "items",
    "minimum",
    "maximum",
];

/// The types, which are also taken in lower case.
const TYPES: [&str; 7] = ["STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"];

/// Checks a schema and all within.
pub(crate) fn check_schema(place: &str, schema: &Value) -> Result<(), Refusal> {
    let Value::Object(schema) = schema else {
        return Err(Refusal::at(place, "expected an object"));
    };
    if let Some(field) = schema.keys().find(|field| !FIELDS.contains(&field.as_str())) {
        return Err(Refusal::at(place, format!("unknown name {field:?}: cannot find field")));
    }
    let kind = check_type(place, schema)?;
    if let Some(words) = schema.get("enum") {
        let is_texts = words.as_array().is_some_and(|it| it.iter().all(Value::is_string));
        if !is_texts || kind.as_deref() != Some("STRING") {
            return Err(Refusal::at(
                format!("{place}.enum"),
                "expected strings, and only for the type STRING",
            ));
        }
    }
    if kind.as_deref() == Some("ARRAY") && !schema.contains_key("items") {
        return Err(Refusal::at(format!("{place}.items"), "missing field"));
    }
    if let Some(items) = schema.get("items") {
        check_schema(&format!("{place}.items"), items)?;
    }
    check_properties(place, schema)?;
    if schema.contains_key("anyOf") && schema.len() > 1 {
        return Err(Refusal::at(place, "when using any_of, it must be the only field set"));
    }
    match schema.get("anyOf") {
        None => Ok(()),
        Some(Value::Array(choices)) => choices
            .iter()
            .enumerate()
            .try_for_each(|(index, it)| check_schema(&format!("{place}.anyOf[{index}]"), it)),
        Some(_) => Err(Refusal::at(format!("{place}.anyOf"), "expected an array")),
    }
}

/// The type in upper case; only `anyOf` stands without one.
fn check_type(place: &str, schema: &Map<String, Value>) -> Result<Option<String>, Refusal> {
    let place = format!("{place}.type");
    match schema.get("type") {
        Some(Value::String(kind)) => {
            let kind = kind.to_ascii_uppercase();
            if TYPES.contains(&kind.as_str()) {
                return Ok(Some(kind));
            }
            Err(Refusal::at(place, format!("expected one of {}", TYPES.join(", "))))
        }
        Some(Value::Array(_)) => {
            Err(Refusal::at(place, "the field is not repeating, cannot start a list"))
        }
        None if schema.contains_key("anyOf") => Ok(None),
        None => Err(Refusal::at(place, "missing field")),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) => {
            Err(Refusal::at(place, "expected a string"))
        }
    }
}

/// An object without properties is open, but to have none is refused.
fn check_properties(place: &str, schema: &Map<String, Value>) -> Result<(), Refusal> {
    let properties = match schema.get("properties") {
        Some(Value::Object(properties)) => Some(properties),
        None => None,
        Some(_) => return Err(Refusal::at(format!("{place}.properties"), "expected an object")),
    };
    if properties.is_some_and(Map::is_empty) {
        return Err(Refusal::at(
            format!("{place}.properties"),
            "should be non-empty for the type OBJECT",
        ));
    }
    for (name, inner) in properties.into_iter().flatten() {
        check_schema(&format!("{place}.properties[{name}]"), inner)?;
    }
    let required = match schema.get("required") {
        None => return Ok(()),
        Some(Value::Array(required)) => required,
        Some(_) => return Err(Refusal::at(format!("{place}.required"), "expected an array")),
    };
    for (index, name) in required.iter().enumerate() {
        let is_defined =
            name.as_str().is_some_and(|name| properties.is_some_and(|it| it.contains_key(name)));
        if !is_defined {
            return Err(Refusal::at(
                format!("{place}.required[{index}]"),
                "the property is not defined",
            ));
        }
    }
    Ok(())
}

/// Checks the references in a JSON Schema: nothing stands beside one, and it leads somewhere.
pub(crate) fn check_references(place: &str, root: &Value, schema: &Value) -> Result<(), Refusal> {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get("$ref") {
                if fields.keys().any(|word| !word.starts_with('$')) {
                    return Err(Refusal::at(place, "no other property may be set beside $ref"));
                }
                let target = reference.strip_prefix('#').and_then(|path| root.pointer(path));
                if target.is_none() {
                    return Err(Refusal::at(place, format!("reference {reference:?} not found")));
                }
            }
            fields.iter().try_for_each(|(name, inner)| {
                check_references(&format!("{place}.{name}"), root, inner)
            })
        }
        Value::Array(items) => {
            items.iter().try_for_each(|inner| check_references(place, root, inner))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}
