//! An answer as Messages events.

use ai::StopReason;
use serde_json::{Value, json};

use crate::dialect::{Answer, CallIds};
use crate::rendered::{Rendered, pieces};
use crate::script::{Block, DEFAULT_CHUNK_CHARS, Stop, own_word};
use crate::signature::sign;

/// The whole body of an answer.
pub(crate) fn render(answer: &Answer<'_>) -> Rendered {
    let turn = answer.turn;
    let usage = answer.usage;
    let chunk = turn.chunk_chars.unwrap_or(DEFAULT_CHUNK_CHARS).get();
    let input = json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
    });
    let mut out = Rendered::default();

    let mut started = input.clone();
    started["output_tokens"] = usage.output.min(1).into();
    event(
        &mut out,
        json!({"type": "message_start", "message": {
            "id": format!("msg_{:08}", answer.request),
            "type": "message",
            "role": "assistant",
            "model": answer.conversation.model,
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": started,
        }}),
    );
    event(&mut out, json!({"type": "ping"}));

    let mut ids = CallIds::new("toolu_", answer.conversation);
    for (index, block) in turn.content.iter().enumerate() {
        render_block(&mut out, index, block, chunk, &mut ids);
        event(&mut out, json!({"type": "content_block_stop", "index": index}));
    }

    out.begin_end_marker();
    let mut ended = input;
    ended["output_tokens"] = usage.output.into();
    event(
        &mut out,
        json!({
            "type": "message_delta",
            "delta": {"stop_reason": stop_word(turn.stop.as_ref(), turn.has_calls()), "stop_sequence": null},
            "usage": ended,
        }),
    );
    event(&mut out, json!({"type": "message_stop"}));
    out
}

fn render_block(
    out: &mut Rendered,
    index: usize,
    block: &Block,
    chunk: usize,
    ids: &mut CallIds<'_>,
) {
    let start = |out: &mut Rendered, block: Value| {
        event(out, json!({"type": "content_block_start", "index": index, "content_block": block}));
    };
    match block {
        Block::Text { text } => {
            start(out, json!({"type": "text", "text": ""}));
            deltas(out, index, "text_delta", "text", pieces(text, chunk));
        }
        Block::Thinking { text, signature, redacted } => {
            let signature = signature.clone().unwrap_or_else(|| sign(text));
            if *redacted {
                start(out, json!({"type": "redacted_thinking", "data": signature}));
                return;
            }
            start(out, json!({"type": "thinking", "thinking": "", "signature": ""}));
            deltas(out, index, "thinking_delta", "thinking", pieces(text, chunk));
            let delta = json!({"type": "signature_delta", "signature": signature});
            event(out, json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        Block::ToolCall { id, name, arguments } => {
            let id = ids.take(id.as_ref());
            start(out, json!({"type": "tool_use", "id": id, "name": name, "input": {}}));
            // The real API opens arguments with an empty piece.
            let empty = json!({"type": "input_json_delta", "partial_json": ""});
            event(out, json!({"type": "content_block_delta", "index": index, "delta": empty}));
            let text = arguments.text();
            deltas(out, index, "input_json_delta", "partial_json", pieces(&text, chunk));
        }
    }
}

fn deltas<'t>(
    out: &mut Rendered,
    index: usize,
    kind: &str,
    field: &str,
    pieces: impl Iterator<Item = &'t str>,
) {
    let before = format!(
        "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":{index},\
         \"delta\":{{\"type\":\"{kind}\",\"{field}\":"
    );
    for piece in pieces {
        out.delta(&before, piece, "}}");
    }
}

fn event(out: &mut Rendered, data: Value) {
    let head = format!("event: {}\n", data["type"].as_str().unwrap_or_default());
    out.event(&head, &data);
}

fn stop_word(stop: Option<&Stop>, has_calls: bool) -> &str {
    match stop {
        Some(Stop::Raw(word)) => word,
        Some(Stop::Reason(reason)) => match reason {
            StopReason::Stop => "end_turn",
            StopReason::Length => "max_tokens",
            StopReason::ToolUse => "tool_use",
            StopReason::ContextOverflow => "model_context_window_exceeded",
            StopReason::Refusal => "refusal",
            StopReason::IterationLimit | StopReason::Error | StopReason::Aborted => {
                own_word(*reason)
            }
        },
        None if has_calls => "tool_use",
        None => "end_turn",
    }
}
