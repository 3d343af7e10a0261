//! A Messages request as a [`Conversation`].

use serde_json::Value;

use crate::conversation::{Call, Conversation, Entry, string, texts};

/// Reads a body that has passed the checks.
pub(crate) fn read(body: &Value) -> Conversation {
    let list = |name: &str| body[name].as_array().map_or(&[][..], Vec::as_slice);
    let messages = list("messages");
    let mut entries = Vec::with_capacity(messages.len());
    for message in messages {
        let content = &message["content"];
        let blocks = content.as_array().map_or(&[][..], Vec::as_slice);
        let of_type = |name: &'static str| blocks.iter().filter(move |block| block["type"] == name);
        if message["role"] == "assistant" {
            let calls = of_type("tool_use")
                .map(|block| {
                    Call::new(string(&block["id"]), string(&block["name"]), block["input"].clone())
                })
                .collect();
            entries.push(Entry::Assistant { text: texts(content), calls });
            continue;
        }
        for block in of_type("tool_result") {
            entries.push(Entry::Result {
                call_id: string(&block["tool_use_id"]),
                text: texts(&block["content"]),
                is_error: Some(block["is_error"] == true),
            });
        }
        if content.is_string() || of_type("text").next().is_some() {
            entries.push(Entry::User { text: texts(content) });
        }
    }
    Conversation {
        model: string(&body["model"]),
        system: texts(&body["system"]),
        tools: list("tools").iter().map(|tool| string(&tool["name"])).collect(),
        messages: messages.len(),
        entries,
    }
}
