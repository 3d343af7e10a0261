//! A generateContent request as a [`Conversation`].

use serde_json::Value;

use crate::conversation::{Call, Conversation, Entry, string};

/// Reads a body that has passed the checks; the model is the path's.
pub(crate) fn read(model: &str, body: &Value) -> Conversation {
    let list = |name: &str| body[name].as_array().map_or(&[][..], Vec::as_slice);
    let contents = list("contents");
    let mut entries = Vec::with_capacity(contents.len());
    for content in contents {
        let parts = content["parts"].as_array().map_or(&[][..], Vec::as_slice);
        if content["role"] == "model" {
            let calls = parts
                .iter()
                .filter_map(|part| part.get("functionCall"))
                .map(|call| {
                    let arguments = call
                        .get("args")
                        .cloned()
                        .unwrap_or_else(|| Value::Object(Default::default()));
                    Call::new(string(&call["id"]), string(&call["name"]), arguments)
                })
                .collect();
            entries.push(Entry::Assistant { text: texts(parts), calls });
            continue;
        }
        for response in parts.iter().filter_map(|part| part.get("functionResponse")) {
            entries.push(Entry::Result {
                call_id: string(&response["id"]),
                text: result_text(&response["response"]),
                is_error: Some(response["response"].get("error").is_some()),
            });
        }
        if parts.iter().any(|part| part.get("text").is_some()) {
            entries.push(Entry::User { text: texts(parts) });
        }
    }
    let declarations =
        list("tools").iter().filter_map(|tool| tool["functionDeclarations"].as_array()).flatten();
    let system = body["systemInstruction"]["parts"].as_array().map_or(&[][..], Vec::as_slice);
    Conversation {
        model: model.to_owned(),
        system: texts(system),
        tools: declarations.map(|declaration| string(&declaration["name"])).collect(),
        messages: contents.len(),
        entries,
    }
}

/// The texts of parts that are said, not thought, joined by line ends.
fn texts(parts: &[Value]) -> String {
    let texts: Vec<&str> = parts
        .iter()
        .filter(|part| part["thought"] != true)
        .filter_map(|part| part["text"].as_str())
        .filter(|text| !text.is_empty())
        .collect();
    texts.join("\n")
}

/// The texts of a result's object, which has no form of its own; all of it where it has none.
fn result_text(response: &Value) -> String {
    let texts: Vec<&str> = response
        .as_object()
        .into_iter()
        .flat_map(|fields| fields.values())
        .filter_map(Value::as_str)
        .collect();
    if texts.is_empty() { response.to_string() } else { texts.join("\n") }
}
