//! What OpenAI's two APIs have in common: the key, the shapes of errors, names and strict schemas.
//!
//! Knows no message, no item and no event; those differ.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::refusal::{Refusal, RefusalKind};

/// What a check says.
pub(crate) type Checked = Result<(), Refusal>;

/// Longest name of a function.
const MAX_FUNCTION_NAME: usize = 64;

/// Most tools in one request.
pub(crate) const MAX_TOOLS: usize = 128;

/// Checks the key.
pub(crate) fn check_headers<'h>(header: impl Fn(&str) -> Option<&'h str>) -> Result<(), Refusal> {
    let bearer = header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    // Azure, which speaks the same, has a header of its own.
    let key = bearer.or_else(|| header("api-key"));
    if key.is_none_or(|key| key.trim().is_empty()) {
        return Err(Refusal::whole(
            RefusalKind::Authentication,
            "no API key was given, it belongs in an Authorization header: `Bearer KEY`",
        ));
    }
    Ok(())
}

/// A refusal in the API's words.
pub(crate) fn refusal_body(refusal: &Refusal) -> Value {
    let code = match refusal.kind {
        RefusalKind::InvalidRequest | RefusalKind::TooLarge => Value::Null,
        RefusalKind::Authentication => "invalid_api_key".into(),
        RefusalKind::PermissionDenied => "forbidden".into(),
        RefusalKind::NotFound => "unknown_url".into(),
        RefusalKind::MethodNotAllowed => "method_not_supported".into(),
    };
    let param = if refusal.place.is_empty() { Value::Null } else { refusal.place.clone().into() };
    error_body("invalid_request_error", &refusal.to_string(), param, code)
}

/// What the API says with a status.
pub(crate) fn status_body(status: u16) -> Value {
    let (kind, code, message): (_, Option<&str>, _) = match status {
        401 => ("invalid_request_error", Some("invalid_api_key"), "incorrect API key provided"),
        402 => ("insufficient_quota", Some("insufficient_quota"), "insufficient balance"),
        403 => ("invalid_request_error", Some("forbidden"), "your key has no permission for this"),
        404 => ("invalid_request_error", Some("model_not_found"), "there is no such model"),
        429 => {
            ("tokens", Some("rate_limit_exceeded"), "the rate limit of tokens a minute was passed")
        }
        503 | 529 => ("server_error", None, "the server is overloaded"),
        500..=599 => ("server_error", None, "the server had an error"),
        _ => ("invalid_request_error", None, "the request is not accepted"),
    };
    error_body(kind, message, Value::Null, code.map_or(Value::Null, Value::from))
}

fn error_body(kind: &str, message: &str, param: Value, code: Value) -> Value {
    json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
}

/// What strict mode does not know.
const NOT_STRICT: [&str; 21] = [
    "allOf",
    "contains",
    "default",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "if",
    "maxContains",
    "maxLength",
    "maxProperties",
    "minContains",
    "minLength",
    "minProperties",
    "not",
    "oneOf",
    "patternProperties",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];

/// What may not stand at the root of a schema.
const NOT_AT_ROOT: [&str; 5] = ["oneOf", "anyOf", "allOf", "enum", "not"];

/// Checks a function's schema: its root, and all of it in strict mode.
pub(crate) fn check_schema(place: &str, schema: &Value, is_strict: bool) -> Checked {
    if schema["type"] != "object" {
        return Err(Refusal::at(place, "schema must be of type 'object'"));
    }
    if let Some(word) = NOT_AT_ROOT.iter().find(|word| schema.get(**word).is_some()) {
        return Err(Refusal::at(place, format!("{word:?} is not permitted at the top level")));
    }
    if is_strict { check_strict(place, schema) } else { Ok(()) }
}

/// Strict mode's demands on a schema: it says what it is in words that strict mode knows, and every
/// object is closed and requires all it has.
fn check_strict(place: &str, schema: &Value) -> Checked {
    let Value::Object(node) = schema else {
        return Err(Refusal::at(place, "strict mode requires an object"));
    };
    if let Some(word) = NOT_STRICT.iter().find(|word| node.contains_key(**word)) {
        return Err(Refusal::at(place, format!("{word:?} is not permitted in strict mode")));
    }
    if node.contains_key("$ref") {
        if node.len() > 1 {
            return Err(Refusal::at(place, "$ref cannot have keywords beside it in strict mode"));
        }
        return Ok(());
    }
    let kinds = match node.get("type") {
        Some(Value::Array(kinds)) => kinds.as_slice(),
        Some(kind) => std::slice::from_ref(kind),
        None if node.contains_key("anyOf") => &[],
        None => return Err(Refusal::at(place, "schema must have a 'type' in strict mode")),
    };
    let properties = node.get("properties").and_then(Value::as_object);
    if kinds.iter().any(|kind| kind == "object") {
        if node.get("additionalProperties") != Some(&Value::Bool(false)) {
            return Err(Refusal::at(place, "additionalProperties must be false in strict mode"));
        }
        let required = node.get("required").and_then(Value::as_array);
        for name in properties.into_iter().flat_map(Map::keys) {
            let listed = required.is_some_and(|names| names.iter().any(|it| it == name));
            if !listed {
                return Err(Refusal::at(
                    place,
                    format!("strict mode requires every property, {name:?} is not required"),
                ));
            }
        }
    }
    if kinds.iter().any(|kind| kind == "array") && !node.contains_key("items") {
        return Err(Refusal::at(place, "array schema missing items"));
    }
    let named = ["properties", "$defs", "definitions"];
    for (name, inner) in named.iter().filter_map(|key| node.get(*key)?.as_object()).flatten() {
        check_strict(&format!("{place}.{name}"), inner)?;
    }
    for inner in node.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
        check_strict(place, inner)?;
    }
    node.get("items").map_or(Ok(()), |inner| check_strict(&format!("{place}.items"), inner))
}

/// Checks what a request says of the choice: a word, or a function that is on offer, whose name is in
/// `chosen`.
pub(crate) fn check_tool_choice(choice: &Value, chosen: &Value, names: &HashSet<&str>) -> Checked {
    let place = "tool_choice";
    match choice {
        Value::String(word) if ["auto", "none", "required"].contains(&word.as_str()) => Ok(()),
        Value::Object(_) if choice["type"] == "function" => {
            let name = chosen.as_str().unwrap_or_default();
            if names.contains(name) {
                return Ok(());
            }
            Err(Refusal::at(place, format!("tool choice {name:?} not found in 'tools'")))
        }
        // The provider's own tools, and lists of those that are allowed.
        Value::Object(fields) if fields.get("type").is_some_and(Value::is_string) => Ok(()),
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => {
            Err(Refusal::at(place, "expected auto, none, required or one of the tools"))
        }
    }
}

/// Checks the name of a function.
pub(crate) fn check_name(place: &str, name: &str) -> Checked {
    let fits = (1..=MAX_FUNCTION_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if fits {
        Ok(())
    } else {
        Err(Refusal::at(
            place,
            format!(
                "expected a string that matches ^[a-zA-Z0-9_-]{{1,{MAX_FUNCTION_NAME}}}$, got {name:?}"
            ),
        ))
    }
}

/// Checks that a text is none that another host of the API would refuse for being empty.
pub(crate) fn check_text(place: &str, text: &str) -> Checked {
    if text.trim().is_empty() {
        return Err(Refusal::at(place, "text must not be empty"));
    }
    Ok(())
}
