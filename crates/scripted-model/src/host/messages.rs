//! What hosts of Messages ask beyond the body's shape.

use std::collections::HashSet;

use serde_json::Value;

use super::{Checked, Host, list};
use crate::refusal::Refusal;

pub(super) fn check(host: &Host, model: &str, body: &Value) -> Checked {
    let messages = list(&body["messages"]);
    for (index, message) in messages.iter().enumerate() {
        let blocks = list(&message["content"]);
        check_server_tools(&format!("messages.{index}"), blocks)?;
        for (block_index, block) in blocks.iter().enumerate() {
            check_block(host, model, &format!("messages.{index}.content.{block_index}"), block)?;
        }
    }
    match messages.last() {
        Some(last) if last["role"] == "assistant" => Err(Refusal::at(
            "messages",
            "this model does not support assistant message prefill, the conversation must end with \
             a user message",
        )),
        Some(_) | None => Ok(()),
    }
}

fn check_block(host: &Host, model: &str, place: &str, block: &Value) -> Checked {
    match block["type"].as_str() {
        Some("thinking") => {
            host.check_signature(place, model, block["signature"].as_str().unwrap_or_default())
        }
        Some("redacted_thinking") => {
            host.check_signature(place, model, block["data"].as_str().unwrap_or_default())
        }
        Some("image") if block["source"]["type"] == "base64" => {
            let mime_type = block["source"]["media_type"].as_str().unwrap_or_default();
            host.check_image(&format!("{place}.source.media_type"), mime_type)
        }
        Some("tool_result") => {
            for (index, inner) in list(&block["content"]).iter().enumerate() {
                check_block(host, model, &format!("{place}.content.{index}"), inner)?;
            }
            Ok(())
        }
        Some(_) | None => Ok(()),
    }
}

/// The provider's own tools: each use has its result in the same message, and each result its use.
fn check_server_tools(place: &str, blocks: &[Value]) -> Checked {
    let mut open: HashSet<&str> = HashSet::new();
    for block in blocks {
        let kind = block["type"].as_str().unwrap_or_default();
        if matches!(kind, "server_tool_use" | "mcp_tool_use") {
            open.insert(block["id"].as_str().unwrap_or_default());
        } else if kind != "tool_result" && kind.ends_with("_tool_result") {
            let id = block["tool_use_id"].as_str().unwrap_or_default();
            if !open.remove(id) {
                return Err(Refusal::at(place, format!("a `{kind}` has no use of the id {id}")));
            }
        }
    }
    match open.into_iter().next() {
        Some(id) => Err(Refusal::at(
            place,
            format!("tool use with id {id} was found without a corresponding result block"),
        )),
        None => Ok(()),
    }
}
