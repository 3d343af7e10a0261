//! A Chat Completions request as a [`Conversation`].

use serde_json::Value;

use crate::conversation::{Call, Conversation, Entry, string, texts};

/// Reads a body that has passed the checks.
pub(crate) fn read(body: &Value) -> Conversation {
    let list = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let mut system = Vec::new();
    let mut entries = Vec::with_capacity(messages.len());
    for message in messages {
        let text = texts(&message["content"]);
        match message["role"].as_str() {
            Some("system" | "developer") => system.push(text),
            Some("assistant") => {
                let calls = list(&message["tool_calls"])
                    .iter()
                    .map(|call| {
                        let function = &call["function"];
                        let arguments = string(&function["arguments"]);
                        Call::new(
                            string(&call["id"]),
                            string(&function["name"]),
                            serde_json::from_str(&arguments).unwrap_or(Value::String(arguments)),
                        )
                    })
                    .collect();
                entries.push(Entry::Assistant { text, calls });
            }
            Some("tool") => entries.push(Entry::Result {
                call_id: string(&message["tool_call_id"]),
                text,
                is_error: None,
            }),
            Some(_) | None => entries.push(Entry::User { text }),
        }
    }
    Conversation {
        model: string(&body["model"]),
        system: system.join("\n"),
        tools: list(&body["tools"]).iter().map(|tool| string(&tool["function"]["name"])).collect(),
        messages: messages.len(),
        entries,
    }
}
