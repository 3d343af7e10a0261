//! A Responses request as a [`Conversation`].

use serde_json::Value;

use crate::conversation::{Call, Conversation, Entry, string, texts};

/// Reads a body that has passed the checks. What the model said, thought and called without a break
/// is one answer.
pub(crate) fn read(body: &Value) -> Conversation {
    let list = |name: &str| body[name].as_array().map_or(&[][..], Vec::as_slice);
    let mut system: Vec<String> =
        body["instructions"].as_str().map(str::to_owned).into_iter().collect();
    let mut history = History::default();
    let mut messages = list("input").len();
    if let Some(text) = body["input"].as_str() {
        messages = 1;
        history.push(Entry::User { text: text.to_owned() });
    }
    for item in list("input") {
        match (item["type"].as_str(), item["role"].as_str()) {
            (Some("function_call"), _) => {
                let arguments = string(&item["arguments"]);
                let call = Call::new(
                    string(&item["call_id"]),
                    string(&item["name"]),
                    serde_json::from_str(&arguments).unwrap_or(Value::String(arguments)),
                );
                history.call(call);
            }
            (Some("function_call_output"), _) => history.push(Entry::Result {
                call_id: string(&item["call_id"]),
                text: texts(&item["output"]),
                is_error: None,
            }),
            (_, Some("system" | "developer")) => system.push(texts(&item["content"])),
            (_, Some("user")) => history.push(Entry::User { text: texts(&item["content"]) }),
            (_, Some("assistant")) => history.say(&texts(&item["content"])),
            // Reasoning, and what the provider's own tools left behind.
            (_, _) => history.is_answering = true,
        }
    }
    history.end_answer();
    Conversation {
        model: string(&body["model"]),
        system: system.join("\n"),
        tools: list("tools").iter().map(|tool| string(&tool["name"])).collect(),
        messages,
        entries: history.entries,
    }
}

/// The history so far, with the answer that it is in.
#[derive(Default)]
struct History {
    entries: Vec<Entry>,
    is_answering: bool,
    text: String,
    calls: Vec<Call>,
}

impl History {
    fn say(&mut self, text: &str) {
        self.is_answering = true;
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
    }

    fn call(&mut self, call: Call) {
        self.is_answering = true;
        self.calls.push(call);
    }

    /// Adds what is not the model's, and ends its answer.
    fn push(&mut self, entry: Entry) {
        self.end_answer();
        self.entries.push(entry);
    }

    fn end_answer(&mut self) {
        if std::mem::take(&mut self.is_answering) {
            self.entries.push(Entry::Assistant {
                text: std::mem::take(&mut self.text),
                calls: std::mem::take(&mut self.calls),
            });
        }
    }
}
