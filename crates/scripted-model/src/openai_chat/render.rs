//! An answer as Chat Completions chunks.
//!
//! Thinking is sent as `reasoning_content`, as the hosts do that stream it in this API. A thinking
//! block's signature has no place in it and is not sent.

use ai::StopReason;
use serde_json::{Value, json};

use crate::dialect::{Answer, CallIds};
use crate::rendered::{Rendered, pieces};
use crate::script::{Block, DEFAULT_CHUNK_CHARS, Stop, own_word};

/// When every answer says that it was made, in seconds since 1970: the same script gives the same
/// bytes.
const CREATED: u64 = 1_700_000_000;

/// The whole body of an answer.
pub(crate) fn render(answer: &Answer<'_>) -> Rendered {
    let turn = answer.turn;
    let chunk = turn.chunk_chars.unwrap_or(DEFAULT_CHUNK_CHARS).get();
    let mut chunks = Chunks::new(answer);

    chunks.send(json!({"role": "assistant", "content": ""}), Value::Null);
    let mut ids = CallIds::new("call_", answer.conversation);
    let mut calls = 0_usize;
    for block in &turn.content {
        match block {
            Block::Text { text } => chunks.grow(r#"{"content":"#, pieces(text, chunk), "}"),
            // Nobody sends a block of which there is nothing to see in this API.
            Block::Thinking { redacted: true, .. } => {}
            Block::Thinking { text, .. } => {
                chunks.grow(r#"{"reasoning_content":"#, pieces(text, chunk), "}");
            }
            Block::ToolCall { id, name, arguments } => {
                let id = ids.take(id.as_ref());
                let function = json!({"name": name, "arguments": ""});
                let call =
                    json!({"index": calls, "id": id, "type": "function", "function": function});
                chunks.send(json!({"tool_calls": [call]}), Value::Null);
                let before =
                    format!(r#"{{"tool_calls":[{{"index":{calls},"function":{{"arguments":"#);
                chunks.grow(&before, pieces(&arguments.text(), chunk), "}}]}");
                calls += 1;
            }
        }
    }
    chunks.out.begin_end_marker();
    chunks.send(json!({}), stop_word(turn.stop.as_ref(), turn.has_calls()).into());
    chunks.finish(answer)
}

/// The chunks so far, and what all of them share.
struct Chunks {
    out: Rendered,
    head: Value,
    with_usage: bool,
}

impl Chunks {
    fn new(answer: &Answer<'_>) -> Self {
        let head = json!({
            "id": format!("chatcmpl-{:08}", answer.request),
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": answer.conversation.model,
            "system_fingerprint": "fp_scripted",
        });
        let with_usage = answer.body["stream_options"]["include_usage"] == true;
        Self { out: Rendered::default(), head, with_usage }
    }

    fn chunk(&self, choices: Value, usage: Value) -> Value {
        let mut chunk = self.head.clone();
        chunk["choices"] = choices;
        if self.with_usage {
            chunk["usage"] = usage;
        }
        chunk
    }

    fn send(&mut self, delta: Value, finish_reason: Value) {
        let choice = json!({
            "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason,
        });
        let chunk = self.chunk(json!([choice]), Value::Null);
        self.out.event("", &chunk);
    }

    /// One chunk for each piece, written into a delta between `before` and `after`.
    fn grow<'t>(&mut self, before: &str, pieces: impl Iterator<Item = &'t str>, after: &str) {
        let head = self.head.to_string();
        let head = head.strip_suffix('}').unwrap_or(&head);
        let before = format!(r#"data: {head},"choices":[{{"index":0,"delta":{before}"#);
        let usage = if self.with_usage { r#","usage":null"# } else { "" };
        let after = format!(r#"{after},"logprobs":null,"finish_reason":null}}]{usage}}}"#);
        for piece in pieces {
            self.out.delta(&before, piece, &after);
        }
    }

    fn finish(mut self, answer: &Answer<'_>) -> Rendered {
        if self.with_usage {
            let usage = answer.usage;
            // This API counts what was cached among what was read.
            let prompt = usage.input + usage.cache_read + usage.cache_write;
            let usage = json!({
                "prompt_tokens": prompt,
                "completion_tokens": usage.output,
                "total_tokens": prompt + usage.output,
                "prompt_tokens_details": {"cached_tokens": usage.cache_read},
                "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
            });
            let chunk = self.chunk(json!([]), usage);
            self.out.event("", &chunk);
        }
        self.out.literal("[DONE]");
        self.out
    }
}

fn stop_word(stop: Option<&Stop>, has_calls: bool) -> &str {
    match stop {
        Some(Stop::Raw(word)) => word,
        Some(Stop::Reason(reason)) => match reason {
            StopReason::Stop => "stop",
            StopReason::Length => "length",
            StopReason::ToolUse => "tool_calls",
            // OpenAI has no word for it; this is Mistral's.
            StopReason::ContextOverflow => "model_length",
            StopReason::Refusal => "content_filter",
            StopReason::IterationLimit | StopReason::Error | StopReason::Aborted => {
                own_word(*reason)
            }
        },
        None if has_calls => "tool_calls",
        None => "stop",
    }
}
