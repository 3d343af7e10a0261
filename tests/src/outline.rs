//! Events in a form that two runs have in common.

use std::collections::HashMap;

use serde_json::{Value, json};

/// One short line an event: its type and what tells it from its neighbours. Deltas of one block
/// that follow each other are one line, as they may be merged on their way.
pub fn outline(events: &[Value]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for event in events {
        let line = line(event);
        if line.contains("_delta") && lines.last() == Some(&line) {
            continue;
        }
        lines.push(line);
    }
    lines
}

fn line(event: &Value) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let kind = text(&event["type"]);
    let rest = match kind.as_str() {
        "agent_status" => text(&event["status"]),
        "turn_start" => format!("{}", event["turn"]),
        "turn_end" => format!(
            "{} results={} more={}",
            event["turn"],
            event["tool_results"].as_array().map_or(0, Vec::len),
            event["has_more_tool_calls"]
        ),
        "message_start" | "message_end" => {
            let message = &event["message"];
            match text(&message["role"]).as_str() {
                "tool_result" => format!("tool_result {}", text(&message["tool_call_id"])),
                role => role.to_owned(),
            }
        }
        "message_update" => {
            format!("{} {}", text(&event["event"]["type"]), event["event"]["index"])
        }
        "tool_execution_start" => {
            format!("{} {}", text(&event["tool_call_id"]), text(&event["title"]))
        }
        "tool_execution_update" => text(&event["tool_call_id"]),
        "tool_execution_end" => {
            format!("{} is_error={}", text(&event["tool_call_id"]), event["is_error"])
        }
        "retry" => format!("attempt={} {}", event["attempt"], text(&event["kind"])),
        "error" => text(&event["kind"]),
        "agent_end" => format!(
            "{} messages={}",
            text(&event["reason"]["kind"]),
            event["messages"].as_array().map_or(0, Vec::len)
        ),
        _ => String::new(),
    };
    format!("{kind} {rest}").trim_end().to_owned()
}

/// The value with what differs from run to run replaced: ids by their order of appearance,
/// timestamps by 0, and `place`, wherever it stands in a text, by `PLACE`.
pub fn normal(mut value: Value, place: &str) -> Value {
    let mut ids = HashMap::new();
    normalise(&mut value, place, &mut ids);
    value
}

fn normalise(value: &mut Value, place: &str, ids: &mut HashMap<String, String>) {
    match value {
        Value::String(text) => {
            if is_uuid(text) {
                let next = format!("id-{}", ids.len() + 1);
                *text = ids.entry(text.clone()).or_insert(next).clone();
            } else if text.contains(place) {
                *text = text.replace(place, "PLACE");
            }
        }
        Value::Array(items) => {
            for item in items {
                normalise(item, place, ids);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                if name == "timestamp" && field.as_u64().is_some_and(|at| at > 0) {
                    *field = json!(0);
                }
                normalise(field, place, ids);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.char_indices().all(|(at, c)| match at {
            8 | 13 | 18 | 23 => c == '-',
            _ => c.is_ascii_hexdigit(),
        })
}
