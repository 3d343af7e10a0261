//! The rules that a Responses request is held to.
//!
//! **Invariant:** what passes here is accepted by the real API, as far as the body's shape decides it.
//! Empty text is refused although the real API takes it, and so is what the user says between a call
//! and its output, because other hosts of the same API refuse both.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::openai::{Checked, MAX_TOOLS, check_name, check_schema, check_text, check_tool_choice};
use crate::openai_responses::item_id::is_behind_reasoning;
use crate::refusal::Refusal;
use crate::signature::is_forged;

/// What a body may have at its top; the real API refuses anything else.
const FIELDS: [&str; 27] = [
    "background",
    "context_management",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "parallel_tool_calls",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
];

/// Fields that name what an earlier request left at the server, which here keeps nothing.
const MEMORY_FIELDS: [&str; 2] = ["previous_response_id", "conversation"];

/// Longest id of a call, and of an item.
const MAX_ID: usize = 64;

/// The least that an answer may be given.
const MIN_OUTPUT_TOKENS: u64 = 16;

/// What `reasoning.effort` may be.
const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// What `reasoning.summary` may be.
const SUMMARIES: [&str; 3] = ["auto", "concise", "detailed"];

/// Checks a request's body.
pub(crate) fn check_body(body: &Value) -> Checked {
    let Value::Object(body) = body else {
        return Err(Refusal::at("body", "expected an object"));
    };
    if let Some(field) = body.keys().find(|field| MEMORY_FIELDS.contains(&field.as_str())) {
        return Err(Refusal::at(field, "not found: a scripted model keeps no answers"));
    }
    check_fields("", body, &FIELDS)?;
    check_parameters(body)?;
    check_reasoning_parameters(body.get("reasoning"))?;
    check_tools(body)?;
    if let Some(instructions) = body.get("instructions") {
        match instructions.as_str() {
            Some(text) => check_text("instructions", text)?,
            None => return Err(Refusal::at("instructions", "expected a string")),
        }
    }
    let is_stored = body.get("store") != Some(&Value::Bool(false));
    match body.get("input") {
        Some(Value::String(text)) => check_text("input", text),
        Some(Value::Array(items)) if items.is_empty() => {
            Err(Refusal::at("input", "expected at least one item"))
        }
        Some(Value::Array(items)) => History { is_stored, ..History::default() }.check(items),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            Err(Refusal::at("input", "expected a string or an array of items"))
        }
    }
}

/// Checks that an object has no field but these. `place` is empty for the body itself.
fn check_fields(place: &str, object: &Map<String, Value>, known: &[&str]) -> Checked {
    match object.keys().find(|field| !known.contains(&field.as_str())) {
        Some(field) if place.is_empty() => Err(Refusal::at(field, "unknown parameter")),
        Some(field) => Err(Refusal::at(format!("{place}.{field}"), "unknown parameter")),
        None => Ok(()),
    }
}

fn check_parameters(body: &Map<String, Value>) -> Checked {
    if body.get("model").and_then(Value::as_str).is_none_or(str::is_empty) {
        return Err(Refusal::at("model", "you must provide a model"));
    }
    if body.get("stream") != Some(&Value::Bool(true)) {
        return Err(Refusal::at("stream", "a scripted model only streams; expected true"));
    }
    for name in ["store", "parallel_tool_calls", "background"] {
        if body.get(name).is_some_and(|value| !value.is_boolean()) {
            return Err(Refusal::at(name, "expected a boolean"));
        }
    }
    let is_enough =
        |value: &Value| value.as_u64().is_some_and(|tokens| tokens >= MIN_OUTPUT_TOKENS);
    if body.get("max_output_tokens").is_some_and(|value| !is_enough(value)) {
        return Err(Refusal::at(
            "max_output_tokens",
            format!("expected an integer of at least {MIN_OUTPUT_TOKENS}"),
        ));
    }
    for (name, most) in [("temperature", 2.0), ("top_p", 1.0)] {
        let in_range = |value: &Value| value.as_f64().is_some_and(|it| (0.0..=most).contains(&it));
        if body.get(name).is_some_and(|value| !in_range(value)) {
            return Err(Refusal::at(name, format!("expected a number from 0 to {most}")));
        }
    }
    let is_texts =
        |value: &Value| value.as_array().is_some_and(|it| it.iter().all(Value::is_string));
    if body.get("include").is_some_and(|value| !is_texts(value)) {
        return Err(Refusal::at("include", "expected an array of strings"));
    }
    Ok(())
}

fn check_reasoning_parameters(reasoning: Option<&Value>) -> Checked {
    let Some(reasoning) = reasoning else {
        return Ok(());
    };
    let Value::Object(reasoning) = reasoning else {
        return Err(Refusal::at("reasoning", "expected an object"));
    };
    check_fields("reasoning", reasoning, &["effort", "summary", "context", "mode"])?;
    for (name, known) in [("effort", &EFFORTS[..]), ("summary", &SUMMARIES[..])] {
        let is_known = |value: &Value| {
            value.is_null() || value.as_str().is_some_and(|word| known.contains(&word))
        };
        if reasoning.get(name).is_some_and(|value| !is_known(value)) {
            return Err(Refusal::at(
                format!("reasoning.{name}"),
                format!("expected one of {}", known.join(", ")),
            ));
        }
    }
    Ok(())
}

fn check_tools(body: &Map<String, Value>) -> Checked {
    let tools = match body.get("tools") {
        None => &[][..],
        Some(Value::Array(tools)) if tools.len() <= MAX_TOOLS => tools,
        Some(_) => {
            return Err(Refusal::at("tools", format!("expected an array of at most {MAX_TOOLS}")));
        }
    };
    let needs_tools =
        body.get("tool_choice").is_some_and(|choice| choice != "auto" && choice != "none");
    if tools.is_empty() && needs_tools {
        return Err(Refusal::at("tool_choice", "is only allowed when tools are specified"));
    }
    let mut names = HashSet::new();
    for (index, tool) in tools.iter().enumerate() {
        let place = format!("tools[{index}]");
        let Value::Object(tool) = tool else {
            return Err(Refusal::at(place, "expected an object"));
        };
        match tool.get("type").and_then(Value::as_str) {
            Some("function") => {}
            // The provider's own.
            Some(_) => continue,
            None => return Err(Refusal::at(format!("{place}.type"), "is required")),
        }
        check_fields(
            &place,
            tool,
            &["type", "name", "description", "parameters", "strict", "defer_loading"],
        )?;
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
        check_name(&format!("{place}.name"), name)?;
        if !names.insert(name) {
            return Err(Refusal::at(
                format!("{place}.name"),
                format!("names must be unique, {name:?} is twice"),
            ));
        }
        let place = format!("{place}.parameters");
        match tool.get("parameters") {
            Some(schema) => {
                check_schema(&place, schema, tool.get("strict") == Some(&Value::Bool(true)))?;
            }
            None => return Err(Refusal::at(place, "is required")),
        }
    }
    match body.get("tool_choice") {
        Some(choice) => check_tool_choice(choice, &choice["name"], &names),
        None => Ok(()),
    }
}

/// What the items so far have said.
#[derive(Default)]
struct History<'a> {
    is_stored: bool,
    calls: HashSet<&'a str>,
    /// The calls without an output yet.
    open: Vec<&'a str>,
    /// Whether an output has come since the last call. Until then what the model says is of the answer
    /// that made the call, and may come behind it.
    answer_is_over: bool,
    /// Where reasoning is that waits for its item.
    reasoning: Option<String>,
}

impl<'a> History<'a> {
    fn check(mut self, items: &'a [Value]) -> Checked {
        for (index, item) in items.iter().enumerate() {
            self.check_item(&format!("input[{index}]"), item)?;
        }
        self.expect_no_reasoning()?;
        self.expect_no_open_call("input")
    }

    fn check_item(&mut self, place: &str, item: &'a Value) -> Checked {
        let Value::Object(fields) = item else {
            return Err(Refusal::at(place, "expected an object"));
        };
        let kind = match fields.get("type") {
            None if fields.contains_key("role") => "message",
            None => return Err(Refusal::at(format!("{place}.type"), "is required")),
            Some(kind) => kind.as_str().unwrap_or_default(),
        };
        match kind {
            "message" => {
                check_fields(place, fields, &["type", "id", "role", "content", "status", "phase"])?;
                self.check_message(place, item)
            }
            "function_call" => {
                let known = ["type", "id", "call_id", "name", "arguments", "status", "namespace"];
                check_fields(place, fields, &known)?;
                self.check_call(place, item)
            }
            "function_call_output" => {
                check_fields(place, fields, &["type", "id", "call_id", "output", "status"])?;
                self.check_output(place, item)
            }
            "reasoning" => {
                let known = ["type", "id", "summary", "content", "encrypted_content", "status"];
                check_fields(place, fields, &known)?;
                self.check_reasoning(place, item)
            }
            "item_reference" => Err(Refusal::at(
                place,
                format!("item {} not found: a scripted model keeps no items", item["id"]),
            )),
            // What the provider's own tools left behind comes back as it was.
            "compaction" | "mcp_list_tools" | "mcp_approval_request" | "mcp_approval_response" => {
                self.reasoning = None;
                Ok(())
            }
            kind if kind.ends_with("_call") => self.take_reasoning(place, item, ""),
            kind if kind.ends_with("_output") => {
                self.reasoning = None;
                Ok(())
            }
            kind => Err(Refusal::at(
                format!("{place}.type"),
                format!("expected the type of an item, got {kind:?}"),
            )),
        }
    }

    fn check_message(&mut self, place: &str, item: &'a Value) -> Checked {
        let (kinds, is_answer): (&[&str], _) = match item["role"].as_str() {
            Some("assistant") => (&["output_text", "refusal"], true),
            Some("user") => (&["input_text", "input_image", "input_file", "input_audio"], false),
            Some("system" | "developer") => (&["input_text"], false),
            Some(role) => {
                return Err(Refusal::at(
                    format!("{place}.role"),
                    format!("expected assistant, developer, system or user, got {role:?}"),
                ));
            }
            None => return Err(Refusal::at(format!("{place}.role"), "a role is required")),
        };
        if self.answer_is_over || !is_answer {
            self.expect_no_open_call(place)?;
        }
        if is_answer {
            self.take_reasoning(place, item, "msg")?;
        } else {
            self.expect_no_reasoning()?;
        }
        check_content(&format!("{place}.content"), item.get("content"), kinds)
    }

    fn check_call(&mut self, place: &str, item: &'a Value) -> Checked {
        if self.answer_is_over {
            self.expect_no_open_call(place)?;
        }
        self.answer_is_over = false;
        self.take_reasoning(place, item, "fc")?;
        let id = call_id(place, item)?;
        if !self.calls.insert(id) {
            return Err(Refusal::at(
                format!("{place}.call_id"),
                format!("ids of calls must be unique, {id:?} is twice"),
            ));
        }
        self.open.push(id);
        check_name(&format!("{place}.name"), item["name"].as_str().unwrap_or_default())?;
        let place = format!("{place}.arguments");
        match item["arguments"].as_str().map(serde_json::from_str::<Map<String, Value>>) {
            Some(Ok(_)) => Ok(()),
            Some(Err(error)) => {
                Err(Refusal::at(place, format!("expected the text of a JSON object: {error}")))
            }
            None => Err(Refusal::at(place, "expected a string")),
        }
    }

    fn check_output(&mut self, place: &str, item: &'a Value) -> Checked {
        self.expect_no_reasoning()?;
        let id = call_id(place, item)?;
        let Some(position) = self.open.iter().position(|it| *it == id) else {
            let message = if self.calls.contains(id) {
                format!("tool call {id} has an output already")
            } else {
                format!("no tool call found for function call output with call_id {id}")
            };
            return Err(Refusal::at(format!("{place}.call_id"), message));
        };
        self.open.remove(position);
        self.answer_is_over = true;
        let place = format!("{place}.output");
        match item.get("output") {
            // An empty output is an output.
            Some(Value::String(_)) => Ok(()),
            output => check_content(&place, output, &["input_text", "input_image", "input_file"]),
        }
    }

    fn check_reasoning(&mut self, place: &str, item: &'a Value) -> Checked {
        if self.answer_is_over {
            self.expect_no_open_call(place)?;
        }
        check_item_id(place, item, "rs")?;
        let Some(summary) = item["summary"].as_array() else {
            return Err(Refusal::at(format!("{place}.summary"), "expected an array"));
        };
        let mut shown = String::new();
        for (index, part) in summary.iter().enumerate() {
            let place = format!("{place}.summary[{index}]");
            if part["type"] != "summary_text" {
                return Err(Refusal::at(format!("{place}.type"), "expected 'summary_text'"));
            }
            let Some(text) = part["text"].as_str() else {
                return Err(Refusal::at(format!("{place}.text"), "is required"));
            };
            shown.push_str(text);
        }
        let encrypted = item["encrypted_content"].as_str().filter(|it| !it.is_empty());
        match encrypted {
            None if !self.is_stored => {
                return Err(Refusal::at(
                    format!("{place}.encrypted_content"),
                    "is required: items are not persisted when `store` is false",
                ));
            }
            Some(encrypted) if is_forged(encrypted, &shown) => {
                return Err(Refusal::at(
                    format!("{place}.encrypted_content"),
                    "the encrypted content could not be verified",
                ));
            }
            Some(_) | None => {}
        }
        self.reasoning = Some(place.to_owned());
        Ok(())
    }

    /// Checks the id of an item of an answer, of which any begins with an empty `prefix`, and that the reasoning it came with is before it.
    fn take_reasoning(&mut self, place: &str, item: &Value, prefix: &str) -> Checked {
        let id = check_item_id(place, item, prefix)?;
        let reasoning = self.reasoning.take();
        if is_behind_reasoning(id) && reasoning.is_none() {
            return Err(Refusal::at(
                place,
                format!("item '{id}' was provided without its required 'reasoning' item"),
            ));
        }
        Ok(())
    }

    fn expect_no_reasoning(&self) -> Checked {
        match &self.reasoning {
            Some(place) => Err(Refusal::at(
                place,
                "a 'reasoning' item was provided without its required following item",
            )),
            None => Ok(()),
        }
    }

    fn expect_no_open_call(&self, place: &str) -> Checked {
        if self.open.is_empty() {
            return Ok(());
        }
        Err(Refusal::at(
            place,
            format!("no tool output found for function call {}", self.open.join(", ")),
        ))
    }
}

fn call_id<'a>(place: &str, item: &'a Value) -> Result<&'a str, Refusal> {
    match item["call_id"].as_str() {
        Some(id) if (1..=MAX_ID).contains(&id.chars().count()) => Ok(id),
        Some(_) | None => Err(Refusal::at(
            format!("{place}.call_id"),
            format!("expected a string of 1 to {MAX_ID} characters"),
        )),
    }
}

/// An item's own id, which may be absent and is then empty.
fn check_item_id<'i>(place: &str, item: &'i Value, prefix: &str) -> Result<&'i str, Refusal> {
    let Some(id) = item.get("id") else {
        return Ok("");
    };
    let id = id.as_str().unwrap_or_default();
    if !id.starts_with(prefix) || id.chars().count() > MAX_ID {
        return Err(Refusal::at(
            format!("{place}.id"),
            format!(
                "expected an id of at most {MAX_ID} characters that begins with '{prefix}', \
                 got {id:?}"
            ),
        ));
    }
    Ok(id)
}

fn check_content(place: &str, content: Option<&Value>, kinds: &[&str]) -> Checked {
    let parts = match content {
        Some(Value::String(text)) => return check_text(place, text),
        Some(Value::Array(parts)) => parts,
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            return Err(Refusal::at(place, "expected a string or an array of parts"));
        }
    };
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
        let filled = |name: &str| part[name].as_str().is_some_and(|text| !text.is_empty());
        match kind {
            "input_text" | "output_text" => {
                check_text(&format!("{place}.text"), part["text"].as_str().unwrap_or_default())?;
            }
            "refusal" => {
                let text = part["refusal"].as_str().unwrap_or_default();
                check_text(&format!("{place}.refusal"), text)?;
            }
            // The address is a string here, not an object as in Chat.
            "input_image" if !filled("image_url") && !filled("file_id") => {
                return Err(Refusal::at(format!("{place}.image_url"), "expected a string"));
            }
            _ => {}
        }
    }
    Ok(())
}
