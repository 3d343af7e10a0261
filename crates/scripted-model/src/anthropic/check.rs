//! The rules that a Messages request is held to.
//!
//! **Invariant:** what passes here is accepted by the real API, as far as the body's shape decides it.
//! Where the real API mends a request on its own (it joins messages of one role), this refuses it,
//! because a client that needs mending has lost count of its history.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::refusal::Refusal;
use crate::signature::is_forged;

type Checked = Result<(), Refusal>;

/// What a body may have at its top; the real API refuses anything else.
const FIELDS: [&str; 22] = [
    "model",
    "messages",
    "max_tokens",
    "stream",
    "system",
    "tools",
    "tool_choice",
    "thinking",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "metadata",
    "service_tier",
    "container",
    "mcp_servers",
    "context_management",
    "output_config",
    "output_format",
    "cache_control",
    "inference_geo",
    "speed",
];

/// Longest name of a tool.
const MAX_TOOL_NAME: usize = 128;

/// How many places of a request may be marked for the cache.
const MAX_CACHE_MARKS: usize = 4;

/// The least that thinking may be given.
const MIN_THINKING_TOKENS: u64 = 1024;

/// Checks a request's body.
pub(crate) fn check_body(body: &Value) -> Checked {
    let Value::Object(body) = body else {
        return Err(Refusal::at("body", "input should be an object"));
    };
    if let Some(field) = body.keys().find(|field| !FIELDS.contains(&field.as_str())) {
        return Err(Refusal::at(field, "extra inputs are not permitted"));
    }
    check_parameters(body)?;
    check_system(body.get("system"))?;
    let tools = check_tools(body.get("tools"))?;
    check_tool_choice(body, &tools)?;
    check_messages(body.get("messages"))?;
    let marks = body.values().map(cache_marks).sum::<usize>();
    if marks > MAX_CACHE_MARKS {
        return Err(Refusal::at(
            "",
            format!("at most {MAX_CACHE_MARKS} blocks may have cache_control, found {marks}"),
        ));
    }
    Ok(())
}

fn check_parameters(body: &Map<String, Value>) -> Checked {
    match body.get("model").map(Value::as_str) {
        None => return Err(Refusal::at("model", "field required")),
        Some(None) => return Err(Refusal::at("model", "input should be a string")),
        Some(Some("")) => return Err(Refusal::at("model", "string should not be empty")),
        Some(Some(_)) => {}
    }
    let max_tokens = match body.get("max_tokens").map(Value::as_u64) {
        None => return Err(Refusal::at("max_tokens", "field required")),
        Some(None | Some(0)) => {
            return Err(Refusal::at("max_tokens", "input should be an integer greater than 0"));
        }
        Some(Some(max_tokens)) => max_tokens,
    };
    if body.get("stream") != Some(&Value::Bool(true)) {
        return Err(Refusal::at("stream", "a scripted model only streams; input should be true"));
    }
    let in_unit_range = |value: &Value| value.as_f64().is_some_and(|it| (0.0..=1.0).contains(&it));
    for name in ["temperature", "top_p"] {
        if body.get(name).is_some_and(|value| !in_unit_range(value)) {
            return Err(Refusal::at(name, "range: 0..1"));
        }
    }
    let Some(thinking) = body.get("thinking") else {
        return Ok(());
    };
    match thinking["type"].as_str() {
        Some("disabled") => return Ok(()),
        Some("adaptive") => {}
        Some("enabled") => match thinking["budget_tokens"].as_u64() {
            Some(budget) if budget < MIN_THINKING_TOKENS => {
                return Err(Refusal::at(
                    "thinking.enabled.budget_tokens",
                    format!("input should be greater than or equal to {MIN_THINKING_TOKENS}"),
                ));
            }
            Some(budget) if budget >= max_tokens => {
                return Err(Refusal::at(
                    "max_tokens",
                    "must be greater than thinking.budget_tokens",
                ));
            }
            Some(_) => {}
            None => return Err(Refusal::at("thinking.enabled.budget_tokens", "field required")),
        },
        Some(_) | None => {
            return Err(Refusal::at(
                "thinking.type",
                "input should be enabled, adaptive or disabled",
            ));
        }
    }
    if body.get("temperature").is_some_and(|value| value.as_f64() != Some(1.0)) {
        return Err(Refusal::at("temperature", "may only be 1 when thinking is enabled"));
    }
    if body.contains_key("top_k") {
        return Err(Refusal::at("top_k", "must be unset when thinking is enabled"));
    }
    Ok(())
}

fn check_system(system: Option<&Value>) -> Checked {
    match system {
        None => Ok(()),
        Some(Value::String(text)) => check_text("system", text),
        Some(Value::Array(blocks)) => {
            for (index, block) in blocks.iter().enumerate() {
                let place = format!("system.{index}");
                if block["type"] != "text" {
                    return Err(Refusal::at(place, "input should be a text block"));
                }
                check_text_block(&place, block)?;
            }
            Ok(())
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) => {
            Err(Refusal::at("system", "input should be a string or a list of text blocks"))
        }
    }
}

/// The names of the tools that are offered.
fn check_tools(tools: Option<&Value>) -> Result<HashSet<&str>, Refusal> {
    let mut names = HashSet::new();
    let Some(tools) = tools else {
        return Ok(names);
    };
    let Value::Array(tools) = tools else {
        return Err(Refusal::at("tools", "input should be a list"));
    };
    for (index, tool) in tools.iter().enumerate() {
        let place = format!("tools.{index}");
        let Some(name) = tool["name"].as_str() else {
            return Err(Refusal::at(format!("{place}.name"), "field required"));
        };
        if !is_name(name, MAX_TOOL_NAME) {
            return Err(Refusal::at(
                format!("{place}.name"),
                format!("string should match ^[a-zA-Z0-9_-]{{1,{MAX_TOOL_NAME}}}$, got {name:?}"),
            ));
        }
        if !names.insert(name) {
            return Err(Refusal::at("tools", format!("names must be unique, {name:?} is twice")));
        }
        // Tools of the provider's own carry a dated type and no schema.
        let is_custom = tool.get("type").is_none_or(|kind| kind == "custom");
        if is_custom {
            check_schema(&format!("{place}.input_schema"), tool.get("input_schema"))?;
        }
    }
    Ok(names)
}

fn check_schema(place: &str, schema: Option<&Value>) -> Checked {
    let Some(schema) = schema else {
        return Err(Refusal::at(place, "field required"));
    };
    let Value::Object(schema) = schema else {
        return Err(Refusal::at(place, "input should be an object"));
    };
    match schema.get("type") {
        None => return Err(Refusal::at(format!("{place}.type"), "field required")),
        Some(kind) if kind != "object" => {
            return Err(Refusal::at(format!("{place}.type"), "input should be 'object'"));
        }
        Some(_) => {}
    }
    for keyword in ["oneOf", "allOf", "anyOf"] {
        if schema.contains_key(keyword) {
            return Err(Refusal::at(place, format!("{keyword} is not supported at the top")));
        }
    }
    Ok(())
}

fn check_tool_choice(body: &Map<String, Value>, tools: &HashSet<&str>) -> Checked {
    let Some(choice) = body.get("tool_choice") else {
        return Ok(());
    };
    let thinks = body
        .get("thinking")
        .is_some_and(|thinking| thinking["type"] == "enabled" || thinking["type"] == "adaptive");
    match choice["type"].as_str() {
        Some("none") => return Ok(()),
        Some("auto") => {}
        Some("any") if !thinks => {}
        Some("tool") if !thinks => {
            let name = choice["name"].as_str().unwrap_or_default();
            if !tools.contains(name) {
                return Err(Refusal::at("tool_choice", format!("tool {name:?} is not in tools")));
            }
        }
        Some("any" | "tool") => {
            return Err(Refusal::at(
                "tool_choice",
                "thinking may not be enabled with forced calls",
            ));
        }
        Some(_) | None => {
            return Err(Refusal::at("tool_choice.type", "input should be auto, any, tool or none"));
        }
    }
    if tools.is_empty() {
        return Err(Refusal::at("tool_choice", "may only be specified with tools"));
    }
    Ok(())
}

/// What is known between two messages.
#[derive(Default)]
struct History<'a> {
    /// Every call's id so far.
    calls: HashSet<&'a str>,
    /// The calls of the message before, in order, with no result yet.
    unanswered: Vec<&'a str>,
}

fn check_messages(messages: Option<&Value>) -> Checked {
    let Some(messages) = messages else {
        return Err(Refusal::at("messages", "field required"));
    };
    let Value::Array(messages) = messages else {
        return Err(Refusal::at("messages", "input should be a list"));
    };
    if messages.is_empty() {
        return Err(Refusal::at("messages", "at least one message is required"));
    }
    let mut history = History::default();
    let mut previous = None;
    for (index, message) in messages.iter().enumerate() {
        let place = format!("messages.{index}");
        let role = match message["role"].as_str() {
            Some(role @ ("user" | "assistant")) => role,
            Some(_) | None => {
                return Err(Refusal::at(
                    format!("{place}.role"),
                    "input should be 'user' or 'assistant'",
                ));
            }
        };
        if previous.is_none() && role != "user" {
            return Err(Refusal::at(&place, "the first message must be the user's"));
        }
        if previous == Some(role) {
            return Err(Refusal::at(
                &place,
                format!("roles must alternate between user and assistant, got {role} twice"),
            ));
        }
        previous = Some(role);
        let is_last = index + 1 == messages.len();
        if role == "user" {
            check_user(&place, message, &mut history)?;
        } else {
            check_assistant(&place, message, is_last, &mut history)?;
        }
    }
    if history.unanswered.is_empty() {
        Ok(())
    } else {
        Err(unanswered(&format!("messages.{}", messages.len() - 1), &history.unanswered))
    }
}

fn unanswered(place: &str, ids: &[&str]) -> Refusal {
    Refusal::at(
        place,
        format!(
            "`tool_use` ids were found without `tool_result` blocks immediately after: {}; each \
             `tool_use` block must have its `tool_result` block at the start of the next message",
            ids.join(", ")
        ),
    )
}

/// A message's content: its text, or its blocks.
enum Content<'a> {
    Text(&'a str),
    Blocks(&'a [Value]),
}

fn content<'a>(place: &str, message: &'a Value) -> Result<Content<'a>, Refusal> {
    match message.get("content") {
        Some(Value::String(text)) => {
            check_text(&format!("{place}.content"), text)?;
            Ok(Content::Text(text))
        }
        Some(Value::Array(blocks)) if blocks.is_empty() => {
            Err(Refusal::at(place, "messages must have non-empty content"))
        }
        Some(Value::Array(blocks)) => Ok(Content::Blocks(blocks)),
        None => Err(Refusal::at(format!("{place}.content"), "field required")),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) => Err(
            Refusal::at(format!("{place}.content"), "input should be a string or a list of blocks"),
        ),
    }
}

fn check_user<'a>(place: &str, message: &'a Value, history: &mut History<'a>) -> Checked {
    let blocks = match content(place, message)? {
        Content::Text(_) => &[],
        Content::Blocks(blocks) => blocks,
    };
    let call_message = std::mem::take(&mut history.unanswered);
    let mut open = call_message.clone();
    let mut results_over = false;
    for (index, block) in blocks.iter().enumerate() {
        let place = format!("{place}.content.{index}");
        match block["type"].as_str() {
            Some("text") => check_text_block(&place, block)?,
            Some("image" | "document") => check_source(&place, block)?,
            Some("search_result" | "container_upload") => {}
            Some("tool_result") => {
                let id = block["tool_use_id"].as_str().unwrap_or_default();
                if !call_message.contains(&id) {
                    return Err(Refusal::at(
                        place,
                        format!(
                            "unexpected `tool_use_id` in a `tool_result` block: {id}; it must have \
                             its `tool_use` block in the message before"
                        ),
                    ));
                }
                let Some(position) = open.iter().position(|it| *it == id) else {
                    return Err(Refusal::at(
                        place,
                        format!("each `tool_use` must have one result, {id} has several"),
                    ));
                };
                if results_over {
                    return Err(unanswered(&place, &open));
                }
                open.remove(position);
                check_result(&place, block)?;
                continue;
            }
            other => return Err(unknown_type(&place, other)),
        }
        results_over = true;
    }
    if open.is_empty() { Ok(()) } else { Err(unanswered(place, &open)) }
}

fn check_result(place: &str, block: &Value) -> Checked {
    let is_error = match block.get("is_error") {
        None => false,
        Some(Value::Bool(is_error)) => *is_error,
        Some(_) => {
            return Err(Refusal::at(format!("{place}.is_error"), "input should be a boolean"));
        }
    };
    let place = format!("{place}.content");
    let is_empty = match block.get("content") {
        None => true,
        Some(Value::String(text)) => text.trim().is_empty(),
        Some(Value::Array(blocks)) => {
            for (index, block) in blocks.iter().enumerate() {
                let place = format!("{place}.{index}");
                match block["type"].as_str() {
                    Some("text") => check_text_block(&place, block)?,
                    Some("image" | "document") => check_source(&place, block)?,
                    Some("search_result" | "tool_reference") => {}
                    other => return Err(unknown_type(&place, other)),
                }
            }
            blocks.is_empty()
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) => {
            return Err(Refusal::at(place, "input should be a string or a list of blocks"));
        }
    };
    if is_empty && is_error {
        return Err(Refusal::at(place, "cannot be empty if `is_error` is true"));
    }
    Ok(())
}

fn check_assistant<'a>(
    place: &str,
    message: &'a Value,
    is_last: bool,
    history: &mut History<'a>,
) -> Checked {
    let mut last_text = None;
    match content(place, message)? {
        Content::Text(text) => last_text = Some(text),
        Content::Blocks(blocks) => {
            for (index, block) in blocks.iter().enumerate() {
                let place = format!("{place}.content.{index}");
                last_text = None;
                match block["type"].as_str() {
                    Some("text") => {
                        check_text_block(&place, block)?;
                        last_text = block["text"].as_str();
                    }
                    Some("thinking") => check_thinking(&place, block)?,
                    Some("redacted_thinking") => {
                        if block["data"].as_str().is_none_or(str::is_empty) {
                            return Err(Refusal::at(format!("{place}.data"), "field required"));
                        }
                        check_unmarked(&place, block)?;
                    }
                    Some("tool_use") => check_call(&place, block, history)?,
                    // What the provider's own tools left behind comes back as it was.
                    Some(
                        "server_tool_use" | "mcp_tool_use" | "container_upload" | "compaction"
                        | "fallback",
                    ) => {}
                    Some(kind) if kind.ends_with("_tool_result") => {}
                    other => return Err(unknown_type(&place, other)),
                }
            }
            if let Some(last) = blocks.last()
                && is_last
                && (last["type"] == "thinking" || last["type"] == "redacted_thinking")
            {
                return Err(Refusal::at(place, "the final block may not be thinking"));
            }
        }
    }
    if is_last && last_text.is_some_and(|text| text.ends_with(char::is_whitespace)) {
        return Err(Refusal::at(
            "messages",
            "final assistant content cannot end with trailing whitespace",
        ));
    }
    Ok(())
}

fn check_thinking(place: &str, block: &Value) -> Checked {
    let Some(text) = block["thinking"].as_str() else {
        return Err(Refusal::at(format!("{place}.thinking"), "field required"));
    };
    let signature = match block["signature"].as_str() {
        None | Some("") => {
            return Err(Refusal::at(format!("{place}.signature"), "field required"));
        }
        Some(signature) => signature,
    };
    if is_forged(signature, text) {
        return Err(Refusal::at(place, "invalid `signature` in `thinking` block"));
    }
    check_unmarked(place, block)
}

fn check_unmarked(place: &str, block: &Value) -> Checked {
    if block.get("cache_control").is_some() {
        return Err(Refusal::at(
            format!("{place}.cache_control"),
            "extra inputs are not permitted",
        ));
    }
    Ok(())
}

fn check_call<'a>(place: &str, block: &'a Value, history: &mut History<'a>) -> Checked {
    let id = block["id"].as_str().unwrap_or_default();
    if !is_name(id, usize::MAX) {
        return Err(Refusal::at(
            format!("{place}.id"),
            format!("string should match ^[a-zA-Z0-9_-]+$, got {id:?}"),
        ));
    }
    if !history.calls.insert(id) {
        return Err(Refusal::at(place, format!("`tool_use` ids must be unique, {id} is twice")));
    }
    let name = block["name"].as_str().unwrap_or_default();
    if !is_name(name, MAX_TOOL_NAME) {
        return Err(Refusal::at(
            format!("{place}.name"),
            format!("string should match ^[a-zA-Z0-9_-]{{1,{MAX_TOOL_NAME}}}$, got {name:?}"),
        ));
    }
    if !block["input"].is_object() {
        return Err(Refusal::at(format!("{place}.input"), "input should be an object"));
    }
    history.unanswered.push(id);
    Ok(())
}

fn check_text_block(place: &str, block: &Value) -> Checked {
    match block["text"].as_str() {
        Some(text) => check_text(&format!("{place}.text"), text),
        None => Err(Refusal::at(format!("{place}.text"), "field required")),
    }
}

fn check_text(place: &str, text: &str) -> Checked {
    if text.is_empty() {
        return Err(Refusal::at(place, "text must be non-empty"));
    }
    if text.trim().is_empty() {
        return Err(Refusal::at(place, "text must contain non-whitespace text"));
    }
    Ok(())
}

fn check_source(place: &str, block: &Value) -> Checked {
    let source = &block["source"];
    let place = format!("{place}.source");
    let filled = |name: &str| source[name].as_str().is_some_and(|text| !text.is_empty());
    let complete = match source["type"].as_str() {
        Some("base64" | "text") => filled("media_type") && filled("data"),
        Some("url") => filled("url"),
        Some("file") => filled("file_id"),
        Some("content") => true,
        other => return Err(unknown_type(&place, other)),
    };
    if complete { Ok(()) } else { Err(Refusal::at(place, "the source lacks its data")) }
}

fn unknown_type(place: &str, kind: Option<&str>) -> Refusal {
    match kind {
        Some(kind) => Refusal::at(
            place,
            format!(
                "input tag {kind:?} found using 'type' does not match any of the expected tags"
            ),
        ),
        None => Refusal::at(format!("{place}.type"), "field required"),
    }
}

fn is_name(text: &str, max: usize) -> bool {
    (1..=max).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// How many objects in a value are marked for the cache. What is inside a schema or a call's input
/// is data and does not count.
fn cache_marks(value: &Value) -> usize {
    match value {
        Value::Object(object) => {
            let own = usize::from(object.get("cache_control").is_some_and(Value::is_object));
            let inner: usize = object
                .iter()
                .filter(|(name, _)| !matches!(name.as_str(), "input" | "input_schema" | "source"))
                .map(|(_, value)| cache_marks(value))
                .sum();
            own + inner
        }
        Value::Array(values) => values.iter().map(cache_marks).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
