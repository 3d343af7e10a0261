//! Projection: from a history to what a provider accepts (SPEC L9).
//!
//! The last step before every request, after every hook, so that no hook, cancel or crash can make a
//! history that bricks the session: empty answers are left out, orphan results are left out, results
//! stand directly behind their call in the calls' order, and a missing result is filled in. It is a
//! pure function, and projecting twice changes nothing more.

use std::collections::HashMap;
use std::sync::Arc;

use ai::{
    AssistantMessage, ContentBlock, History, Message, MessageId, ToolErrorKind, ToolResultMessage,
};

/// What stands in for a result that is not in the history.
pub const MISSING_RESULT: &str = "no result was recorded for this call";

/// The messages of `history` in a form that satisfies the pairing and emptiness rules of every
/// provider.
///
/// A result belongs to the nearest call of its id before it: ids may be used again in later
/// messages.
pub fn project(history: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let results = match_results(history);
    let mut projected = Vec::with_capacity(history.len());
    for (position, message) in history.iter().enumerate() {
        match &**message {
            Message::User(user) if user.content.is_empty() => {}
            Message::User(_) => projected.push(Arc::clone(message)),
            Message::ToolResult(_) => {}
            Message::Assistant(assistant) if assistant.content.is_empty() => {}
            Message::Assistant(assistant) => {
                projected.push(Arc::clone(message));
                for call in assistant.tool_calls() {
                    let result = results.get(&(position, call.id.as_str())).map_or_else(
                        || Arc::new(missing_result(assistant, call)),
                        |result| Arc::clone(result),
                    );
                    projected.push(result);
                }
            }
        }
    }
    projected
}

/// For each call, by its message's position and its id, the first result that names it.
fn match_results(history: &[Arc<Message>]) -> HashMap<(usize, &str), &Arc<Message>> {
    let mut latest: HashMap<&str, usize> = HashMap::new();
    let mut results = HashMap::new();
    for (position, message) in history.iter().enumerate() {
        match &**message {
            Message::User(_) => {}
            Message::Assistant(assistant) => {
                for call in assistant.tool_calls() {
                    latest.insert(&call.id, position);
                }
            }
            Message::ToolResult(result) => {
                if let Some(&call) = latest.get(result.tool_call_id.as_str()) {
                    results.entry((call, result.tool_call_id.as_str())).or_insert(message);
                }
            }
        }
    }
    results
}

/// Carries the answer's time and an id made from the call's, so that the same history always gives
/// the same bytes.
fn missing_result(assistant: &AssistantMessage, call: &ai::ToolCall) -> Message {
    Message::ToolResult(ToolResultMessage {
        id: MessageId::from(format!("{}/{}", assistant.id, call.id)),
        timestamp: assistant.timestamp,
        content: vec![ContentBlock::text(MISSING_RESULT)],
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        is_error: true,
        error_kind: Some(ToolErrorKind::Aborted),
    })
}

/// Projects a history that only grows, at the cost of what is new.
///
/// It must be asked only when every call so far has its results, which is when requests are made:
/// then what comes later cannot change what was projected before.
#[derive(Debug, Default)]
pub(crate) struct Projector {
    consumed: usize,
    projected: History,
}

impl Projector {
    pub(crate) fn project(&mut self, history: &History) -> History {
        let new = history.get(self.consumed..).unwrap_or_default();
        for message in project(new) {
            self.projected.push(message);
        }
        self.consumed = history.len();
        self.projected.clone()
    }
}
