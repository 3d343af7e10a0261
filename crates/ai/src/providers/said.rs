//! Messages for the encoders' tests: what a history is made of, in one word each.

use serde_json::Value;

use crate::encode::encode_request;
use crate::message::{
    AssistantMessage, ContentBlock, Message, MessageId, Origin, StopReason, Timestamp,
    ToolErrorKind, ToolResultMessage, Usage, UserMessage,
};
use crate::provider_entry::ProviderEntry;
use crate::request::Request;

pub(super) fn user(content: Vec<ContentBlock>) -> Message {
    Message::User(UserMessage {
        id: MessageId::from("u"),
        timestamp: Timestamp(0),
        content,
        origin: Origin::User,
    })
}

pub(super) fn says(text: &str) -> Message {
    user(vec![ContentBlock::text(text)])
}

/// An answer that came from this entry's `model`.
pub(super) fn answer_of(
    entry: &ProviderEntry,
    model: &str,
    content: Vec<ContentBlock>,
) -> AssistantMessage {
    AssistantMessage {
        id: MessageId::from("a"),
        timestamp: Timestamp(0),
        content,
        provider: entry.name.clone(),
        api: entry.api.as_str().into(),
        model: model.into(),
        asked_model: None,
        usage: Usage::default(),
        stop_reason: StopReason::Stop,
        stop_raw: None,
        interrupted: false,
        violation: None,
        error: None,
    }
}

pub(super) fn result(id: &str, content: Vec<ContentBlock>) -> Message {
    came_to(id, content, None)
}

pub(super) fn failed(id: &str, content: Vec<ContentBlock>) -> Message {
    came_to(id, content, Some(ToolErrorKind::Failed))
}

fn came_to(id: &str, content: Vec<ContentBlock>, error_kind: Option<ToolErrorKind>) -> Message {
    Message::ToolResult(ToolResultMessage {
        id: MessageId::from("r"),
        timestamp: Timestamp(0),
        content,
        tool_call_id: id.into(),
        tool_name: "Read".into(),
        is_error: error_kind.is_some(),
        error_kind,
    })
}

pub(super) fn image() -> ContentBlock {
    ContentBlock::Image { mime_type: "image/png".into(), data: "QUJD".into() }
}

pub(super) fn request_of(model: &str, messages: Vec<Message>) -> Request {
    Request::new(model, messages.into_iter().collect())
}

pub(super) fn request(messages: Vec<Message>) -> Request {
    request_of("model-1", messages)
}

/// The body as JSON.
pub(super) fn encoded(request: &Request, entry: &ProviderEntry) -> Value {
    serde_json::from_slice(&encode_request(request, entry)).unwrap()
}
