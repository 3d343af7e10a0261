//! The rules that a Chat Completions request is held to.
//!
//! **Invariant:** what passes here is accepted by OpenAI, as far as the body's shape decides it. Empty
//! text is refused although OpenAI takes it, because other hosts of the same API do not.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::openai::{Checked, MAX_TOOLS, check_name, check_schema, check_text, check_tool_choice};
use crate::refusal::Refusal;

/// Longest id of a call.
const MAX_CALL_ID: usize = 40;

/// Checks a request's body.
pub(crate) fn check_body(body: &Value) -> Checked {
    let Value::Object(body) = body else {
        return Err(Refusal::at("body", "expected an object"));
    };
    if body.get("model").and_then(Value::as_str).is_none_or(str::is_empty) {
        return Err(Refusal::at("model", "you must provide a model"));
    }
    if body.get("stream") != Some(&Value::Bool(true)) {
        return Err(Refusal::at("stream", "a scripted model only streams; expected true"));
    }
    if body.contains_key("max_tokens") && body.contains_key("max_completion_tokens") {
        return Err(Refusal::at("max_tokens", "cannot be set beside max_completion_tokens"));
    }
    for name in ["max_tokens", "max_completion_tokens"] {
        if body.get(name).is_some_and(|value| value.as_u64().is_none_or(|tokens| tokens == 0)) {
            return Err(Refusal::at(name, "expected an integer of at least 1"));
        }
    }
    let in_range = |value: &Value| value.as_f64().is_some_and(|it| (0.0..=2.0).contains(&it));
    if body.get("temperature").is_some_and(|value| !in_range(value)) {
        return Err(Refusal::at("temperature", "expected a number from 0 to 2"));
    }
    let tools = check_tools(body)?;
    if tools.is_empty() {
        for name in ["tool_choice", "parallel_tool_calls"] {
            if body.contains_key(name) {
                return Err(Refusal::at(name, "is only allowed when tools are specified"));
            }
        }
    }
    if let Some(choice) = body.get("tool_choice") {
        check_tool_choice(choice, &choice["function"]["name"], &tools)?;
    }
    check_messages(body.get("messages"))
}

/// The names of the functions that are offered.
fn check_tools(body: &Map<String, Value>) -> Result<HashSet<&str>, Refusal> {
    let mut names = HashSet::new();
    let Some(tools) = body.get("tools") else {
        return Ok(names);
    };
    let Value::Array(tools) = tools else {
        return Err(Refusal::at("tools", "expected an array"));
    };
    if tools.is_empty() || tools.len() > MAX_TOOLS {
        return Err(Refusal::at("tools", format!("expected from 1 to {MAX_TOOLS} tools")));
    }
    for (index, tool) in tools.iter().enumerate() {
        let place = format!("tools[{index}]");
        if tool["type"] != "function" {
            return Err(Refusal::at(format!("{place}.type"), "expected 'function'"));
        }
        let function = &tool["function"];
        let name = function["name"].as_str().unwrap_or_default();
        check_name(&format!("{place}.function.name"), name)?;
        if !names.insert(name) {
            return Err(Refusal::at(
                format!("{place}.function.name"),
                format!("names must be unique, {name:?} is twice"),
            ));
        }
        let is_strict = function["strict"] == true;
        let place = format!("{place}.function.parameters");
        match function.get("parameters") {
            None if is_strict => return Err(Refusal::at(place, "required in strict mode")),
            None => {}
            Some(schema) => check_schema(&place, schema, is_strict)?,
        }
    }
    Ok(names)
}

fn check_messages(messages: Option<&Value>) -> Checked {
    let Some(Value::Array(messages)) = messages else {
        return Err(Refusal::at("messages", "expected an array"));
    };
    if messages.is_empty() {
        return Err(Refusal::at("messages", "expected at least one message"));
    }
    // The calls of the assistant message that the tool messages here may answer, and those open.
    let mut calls: Vec<&str> = Vec::new();
    let mut open: Vec<&str> = Vec::new();
    let mut caller = 0;
    for (index, message) in messages.iter().enumerate() {
        let place = format!("messages[{index}]");
        let role = message["role"].as_str();
        if role == Some("tool") {
            check_result(&place, message, &calls, &mut open)?;
            continue;
        }
        if !open.is_empty() {
            return Err(unanswered(caller, &open));
        }
        calls.clear();
        match role {
            Some("system" | "developer") => check_input(&place, message, &["text"])?,
            Some("user") => {
                check_input(&place, message, &["text", "image_url", "input_audio", "file"])?;
            }
            Some("assistant") => {
                calls = check_assistant(&place, message)?;
                open.clone_from(&calls);
                caller = index;
            }
            Some(role) => {
                return Err(Refusal::at(
                    format!("{place}.role"),
                    format!("expected system, developer, user, assistant or tool, got {role:?}"),
                ));
            }
            None => return Err(Refusal::at(format!("{place}.role"), "a role is required")),
        }
    }
    if open.is_empty() { Ok(()) } else { Err(unanswered(caller, &open)) }
}

fn unanswered(caller: usize, ids: &[&str]) -> Refusal {
    Refusal::at(
        format!("messages[{caller}]"),
        format!(
            "an assistant message with 'tool_calls' must be followed by tool messages responding to \
             each 'tool_call_id'; these had no response: {}",
            ids.join(", ")
        ),
    )
}

fn check_result<'a>(
    place: &str,
    message: &'a Value,
    calls: &[&'a str],
    open: &mut Vec<&'a str>,
) -> Checked {
    let Some(id) = message["tool_call_id"].as_str() else {
        return Err(Refusal::at(format!("{place}.tool_call_id"), "is required"));
    };
    if !calls.contains(&id) {
        return Err(Refusal::at(
            format!("{place}.role"),
            format!(
                "messages with role 'tool' must be a response to a preceding message with \
                 'tool_calls', and {id:?} is none of its calls"
            ),
        ));
    }
    let Some(position) = open.iter().position(|it| *it == id) else {
        return Err(Refusal::at(
            format!("{place}.tool_call_id"),
            format!("{id:?} has a response already"),
        ));
    };
    open.remove(position);
    match message.get("content") {
        Some(Value::String(_)) => Ok(()),
        Some(Value::Array(parts)) => check_parts(place, parts, &["text"]),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            Err(Refusal::at(format!("{place}.content"), "expected a string or an array of parts"))
        }
    }
}

fn check_input(place: &str, message: &Value, kinds: &[&str]) -> Checked {
    match message.get("content") {
        Some(Value::String(text)) => check_text(&format!("{place}.content"), text),
        Some(Value::Array(parts)) => check_parts(place, parts, kinds),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            Err(Refusal::at(format!("{place}.content"), "expected a string or an array of parts"))
        }
    }
}

fn check_parts(place: &str, parts: &[Value], kinds: &[&str]) -> Checked {
    let place = format!("{place}.content");
    if parts.is_empty() {
        return Err(Refusal::at(place, "expected at least one part"));
    }
    for (index, part) in parts.iter().enumerate() {
        let place = format!("{place}[{index}]");
        let kind = part["type"].as_str().unwrap_or_default();
        if !kinds.contains(&kind) {
            return Err(Refusal::at(
                format!("{place}.type"),
                format!("expected {}, got {kind:?}", kinds.join(" or ")),
            ));
        }
        match kind {
            "text" | "refusal" => {
                check_text(&format!("{place}.{kind}"), part[kind].as_str().unwrap_or_default())?;
            }
            "image_url" if part["image_url"]["url"].as_str().is_none_or(str::is_empty) => {
                return Err(Refusal::at(format!("{place}.image_url.url"), "is required"));
            }
            _ if part.get(kind).is_none() => {
                return Err(Refusal::at(format!("{place}.{kind}"), "is required"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The ids of the message's calls, in order.
fn check_assistant<'a>(place: &str, message: &'a Value) -> Result<Vec<&'a str>, Refusal> {
    let mut ids = Vec::new();
    match message.get("tool_calls") {
        None => {}
        Some(Value::Array(calls)) if !calls.is_empty() => {
            for (index, call) in calls.iter().enumerate() {
                let id = check_call(&format!("{place}.tool_calls[{index}]"), call)?;
                if ids.contains(&id) {
                    return Err(Refusal::at(
                        format!("{place}.tool_calls[{index}].id"),
                        format!("ids must be unique in a message, {id:?} is twice"),
                    ));
                }
                ids.push(id);
            }
        }
        Some(_) => {
            return Err(Refusal::at(
                format!("{place}.tool_calls"),
                "expected an array of at least one call",
            ));
        }
    }
    let has_calls = !ids.is_empty();
    match message.get("content") {
        Some(Value::String(text)) if text.is_empty() && has_calls => {}
        Some(Value::String(text)) => check_text(&format!("{place}.content"), text)?,
        Some(Value::Array(parts)) => check_parts(place, parts, &["text", "refusal"])?,
        Some(Value::Null) | None if has_calls || message["refusal"].is_string() => {}
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            return Err(Refusal::at(
                format!("{place}.content"),
                "expected a string, which only a message with tool_calls may lack",
            ));
        }
    }
    Ok(ids)
}

fn check_call<'a>(place: &str, call: &'a Value) -> Result<&'a str, Refusal> {
    let id = match call["id"].as_str() {
        Some(id) if (1..=MAX_CALL_ID).contains(&id.len()) => id,
        Some(_) | None => {
            return Err(Refusal::at(
                format!("{place}.id"),
                format!("expected a string of 1 to {MAX_CALL_ID} bytes"),
            ));
        }
    };
    if call["type"] != "function" {
        return Err(Refusal::at(format!("{place}.type"), "expected 'function'"));
    }
    let function = &call["function"];
    check_name(&format!("{place}.function.name"), function["name"].as_str().unwrap_or_default())?;
    let arguments = function["arguments"].as_str().map(serde_json::from_str::<Map<String, Value>>);
    match arguments {
        Some(Ok(_)) => Ok(id),
        Some(Err(error)) => Err(Refusal::at(
            format!("{place}.function.arguments"),
            format!("expected the text of a JSON object: {error}"),
        )),
        None => Err(Refusal::at(format!("{place}.function.arguments"), "expected a string")),
    }
}
