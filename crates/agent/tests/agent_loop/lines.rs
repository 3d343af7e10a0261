//! Events and results as words that can be compared.

use std::sync::Arc;

use agent::{AgentEvent, EndReason, MessageHead, Run};
use ai::{Message, ToolErrorKind};
use futures::StreamExt;

/// One line an event; updates of one block are one line.
pub(crate) fn line(event: &AgentEvent) -> String {
    let of = |message: &Message| match message {
        Message::User(_) => format!("user({})", text(message)),
        Message::Assistant(answer) => {
            let stop = serde_json::to_value(answer.stop_reason).unwrap();
            format!("assistant({})", stop.as_str().unwrap())
        }
        Message::ToolResult(result) => format!("result({})", result.tool_call_id),
    };
    match event {
        AgentEvent::AgentStart { run } => format!("agent_start {run}"),
        AgentEvent::TurnStart { turn, .. } => format!("turn_start {turn}"),
        AgentEvent::MessageStart { message: MessageHead::Whole(message) } => {
            format!("message_start {}", of(message))
        }
        AgentEvent::MessageStart { .. } => "message_start assistant".into(),
        AgentEvent::MessageUpdate { event, .. } => {
            let json = serde_json::to_value(event).unwrap();
            format!("update {} {}", json["type"].as_str().unwrap(), json["index"])
        }
        AgentEvent::MessageEnd { message } => format!("message_end {}", of(message)),
        AgentEvent::MessageDiscard { .. } => "message_discard".into(),
        AgentEvent::ToolExecutionStart { tool_call_id, title, .. } => {
            format!("tool_start {tool_call_id}: {title}")
        }
        AgentEvent::ToolExecutionUpdate { tool_call_id, partial, .. } => {
            format!("tool_update {tool_call_id} {}", partial.content[0].as_text().unwrap())
        }
        AgentEvent::ToolExecutionEnd { tool_call_id, is_error, .. } => {
            format!("tool_end {tool_call_id}{}", if *is_error { " error" } else { "" })
        }
        AgentEvent::TurnEnd { turn, tool_results, has_more_tool_calls, .. } => {
            format!("turn_end {turn} results={} more={has_more_tool_calls}", tool_results.len())
        }
        AgentEvent::AgentEnd { messages, reason, .. } => {
            format!("agent_end messages={} {}", messages.len(), reason_kind(reason))
        }
        AgentEvent::Retry { attempt, kind, .. } => format!("retry {attempt} {}", kind.as_str()),
        AgentEvent::Error { turn, kind, message, .. } => format!("error {turn} {kind}: {message}"),
        AgentEvent::Lagged { .. } => "lagged".into(),
        _ => unreachable!("no other event is known"),
    }
}

pub(crate) fn reason_kind(reason: &EndReason) -> String {
    let json = serde_json::to_value(reason).unwrap();
    let cause = json.get("cause").map(|cause| format!("({})", cause.as_str().unwrap()));
    format!("{}{}", json["kind"].as_str().unwrap(), cause.unwrap_or_default())
}

pub(crate) fn text(message: &Message) -> String {
    message.content().iter().filter_map(|block| block.as_text()).collect()
}

pub(crate) async fn lines(mut run: Run) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    while let Some(event) = run.next().await {
        lines.push(line(&event));
    }
    lines
}

#[track_caller]
pub(crate) fn assert_lines(lines: &[String], expected: &str) {
    let expected: Vec<&str> = expected.trim().lines().map(str::trim).collect();
    assert_eq!(lines.join("\n"), expected.join("\n"));
}

/// What the results of a run say, by call.
pub(crate) fn results(messages: &[Arc<Message>]) -> Vec<(String, Option<ToolErrorKind>, String)> {
    let results = messages.iter().filter_map(|message| match &**message {
        Message::ToolResult(result) => {
            Some((result.tool_call_id.clone(), result.error_kind, text(message)))
        }
        _ => None,
    });
    results.collect()
}
