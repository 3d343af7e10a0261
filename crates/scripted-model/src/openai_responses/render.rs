//! An answer as Responses events.
//!
//! Thinking is sent as a reasoning item with its text as the summary; its signature is the encrypted
//! content, which is sent only when the request includes it.

use ai::StopReason;
use serde_json::{Map, Value, json};

use crate::dialect::{Answer, CallIds};
use crate::openai_responses::ENCRYPTED_REASONING;
use crate::openai_responses::item_id::item_id;
use crate::rendered::{Rendered, pieces};
use crate::script::{Block, DEFAULT_CHUNK_CHARS, Stop, own_word};
use crate::signature::sign;

/// When every answer says that it was made, in seconds since 1970: the same script gives the same
/// bytes.
const CREATED: u64 = 1_700_000_000;

/// The whole body of an answer.
pub(crate) fn render(answer: &Answer<'_>) -> Rendered {
    let turn = answer.turn;
    let chunk = turn.chunk_chars.unwrap_or(DEFAULT_CHUNK_CHARS).get();
    let finish = finish(turn.stop.as_ref());
    let mut events = Events { out: Rendered::default(), sequence: 0 };
    let begun = response(answer, "in_progress");
    events.send("response.created", json!({"response": begun}));
    events.send("response.in_progress", json!({"response": begun}));

    let include = answer.body["include"].as_array().map_or(&[][..], Vec::as_slice);
    let with_encrypted = include.iter().any(|it| it == ENCRYPTED_REASONING);
    let mut ids = CallIds::new("call_", answer.conversation);
    let mut output: Vec<Value> = Vec::with_capacity(turn.content.len());
    for (index, block) in turn.content.iter().enumerate() {
        let behind_reasoning =
            with_encrypted && output.last().is_some_and(|item| item["type"] == "reasoning");
        let is_last = index + 1 == turn.content.len();
        // What the model was at when it was stopped is not complete.
        let status = if is_last { finish.item_status } else { "completed" };
        let place = |prefix| item_id(prefix, answer.request, index, behind_reasoning);
        let item = match block {
            Block::Text { text } => message(&mut events, index, place("msg"), text, status, chunk),
            Block::Thinking { text, signature, redacted } => {
                let shown = if *redacted { "" } else { text.as_str() };
                let encrypted = signature.clone().unwrap_or_else(|| sign(shown));
                let id = item_id("rs", answer.request, index, false);
                reasoning(&mut events, index, id, shown, with_encrypted.then_some(encrypted), chunk)
            }
            Block::ToolCall { id, name, arguments } => {
                let head = CallHead { id: place("fc"), call_id: ids.take(id.as_ref()), name };
                call(&mut events, index, &head, &arguments.text(), status, chunk)
            }
        };
        events.send("response.output_item.done", json!({"output_index": index, "item": item}));
        output.push(item);
    }

    events.out.begin_end_marker();
    let usage = answer.usage;
    // This API counts what was cached among what was read.
    let input = usage.input + usage.cache_read + usage.cache_write;
    let mut ended = response(answer, finish.status);
    ended["output"] = output.into();
    ended["incomplete_details"] = finish.incomplete_details;
    ended["error"] = finish.error;
    ended["usage"] = json!({
        "input_tokens": input,
        "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": input + usage.output,
    });
    events.send(&format!("response.{}", finish.status), json!({"response": ended}));
    events.out
}

/// The answer as a whole, which comes at the begin and, with more in it, at the end.
fn response(answer: &Answer<'_>, status: &str) -> Value {
    let asked = |name: &str, otherwise: Value| answer.body.get(name).cloned().unwrap_or(otherwise);
    json!({
        "id": format!("resp_{:08}", answer.request),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": null,
        "incomplete_details": null,
        "instructions": asked("instructions", Value::Null),
        "max_output_tokens": asked("max_output_tokens", Value::Null),
        "model": answer.conversation.model,
        "output": [],
        "parallel_tool_calls": asked("parallel_tool_calls", true.into()),
        "previous_response_id": null,
        "store": asked("store", true.into()),
        "usage": null,
        "metadata": {},
    })
}

/// The events so far.
struct Events {
    out: Rendered,
    sequence: usize,
}

impl Events {
    fn send(&mut self, kind: &str, fields: Value) {
        let mut data = Map::new();
        data.insert("type".to_owned(), kind.into());
        data.insert("sequence_number".to_owned(), self.sequence.into());
        if let Value::Object(fields) = fields {
            data.extend(fields);
        }
        self.sequence += 1;
        self.out.event(&format!("event: {kind}\n"), &Value::Object(data));
    }

    /// One event for each piece, beside the same fields, which are not empty.
    fn grow(&mut self, kind: &str, fields: &Value, text: &str, chunk: usize) {
        let fields = fields.to_string();
        let fields = fields.strip_prefix('{').unwrap_or(&fields);
        for piece in pieces(text, chunk) {
            let sequence = self.sequence;
            let before = format!(
                "event: {kind}\ndata: {{\"type\":\"{kind}\",\"sequence_number\":{sequence},\"delta\":"
            );
            self.out.delta(&before, piece, &format!(",{fields}"));
            self.sequence += 1;
        }
    }
}

fn message(
    events: &mut Events,
    index: usize,
    id: String,
    text: &str,
    status: &str,
    chunk: usize,
) -> Value {
    let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []});
    let item = |status: &str, content: Value| json!({"id": id, "type": "message", "status": status, "role": "assistant", "content": content});
    let added = json!({"output_index": index, "item": item("in_progress", json!([]))});
    events.send("response.output_item.added", added);
    let place = json!({"item_id": id, "output_index": index, "content_index": 0});
    events.send("response.content_part.added", with(&place, "part", part("")));
    let growing = with(&place, "logprobs", json!([]));
    events.grow("response.output_text.delta", &growing, text, chunk);
    events.send("response.output_text.done", with(&growing, "text", text.into()));
    events.send("response.content_part.done", with(&place, "part", part(text)));
    item(status, json!([part(text)]))
}

fn reasoning(
    events: &mut Events,
    index: usize,
    id: String,
    text: &str,
    encrypted: Option<String>,
    chunk: usize,
) -> Value {
    let item = |summary: Value| {
        let mut item = json!({"id": id, "type": "reasoning", "summary": summary});
        if let Some(encrypted) = &encrypted {
            item["encrypted_content"] = encrypted.as_str().into();
        }
        item
    };
    let added = json!({"output_index": index, "item": item(json!([]))});
    events.send("response.output_item.added", added);
    if text.is_empty() {
        return item(json!([]));
    }
    let part = |text: &str| json!({"type": "summary_text", "text": text});
    let place = json!({"item_id": id, "output_index": index, "summary_index": 0});
    events.send("response.reasoning_summary_part.added", with(&place, "part", part("")));
    events.grow("response.reasoning_summary_text.delta", &place, text, chunk);
    events.send("response.reasoning_summary_text.done", with(&place, "text", text.into()));
    events.send("response.reasoning_summary_part.done", with(&place, "part", part(text)));
    item(json!([part(text)]))
}

/// What a call says before its arguments.
struct CallHead<'a> {
    id: String,
    call_id: String,
    name: &'a str,
}

fn call(
    events: &mut Events,
    index: usize,
    head: &CallHead<'_>,
    arguments: &str,
    status: &str,
    chunk: usize,
) -> Value {
    let CallHead { id, call_id, name } = head;
    let item = |status: &str, arguments: &str| {
        json!({
            "id": id, "type": "function_call", "status": status, "arguments": arguments,
            "call_id": call_id, "name": name,
        })
    };
    let added = json!({"output_index": index, "item": item("in_progress", "")});
    events.send("response.output_item.added", added);
    let place = json!({"item_id": id, "output_index": index});
    events.grow("response.function_call_arguments.delta", &place, arguments, chunk);
    let done = with(&place, "arguments", arguments.into());
    events.send("response.function_call_arguments.done", done);
    item(status, arguments)
}

fn with(fields: &Value, name: &str, value: Value) -> Value {
    let mut fields = fields.clone();
    fields[name] = value;
    fields
}

/// How an answer ends.
struct Finish {
    /// Of the answer, and the last word of the last event's name.
    status: &'static str,
    /// Of the last item.
    item_status: &'static str,
    incomplete_details: Value,
    error: Value,
}

fn finish(stop: Option<&Stop>) -> Finish {
    let completed = || Finish {
        status: "completed",
        item_status: "completed",
        incomplete_details: Value::Null,
        error: Value::Null,
    };
    let incomplete = |reason: &str| Finish {
        status: "incomplete",
        item_status: "incomplete",
        incomplete_details: json!({"reason": reason}),
        ..completed()
    };
    match stop {
        None => completed(),
        Some(Stop::Raw(word)) => incomplete(word),
        Some(Stop::Reason(reason)) => match reason {
            // The calls themselves say that they want to be made.
            StopReason::Stop | StopReason::ToolUse => completed(),
            StopReason::Length => incomplete("max_output_tokens"),
            StopReason::Refusal => incomplete("content_filter"),
            StopReason::ContextOverflow => Finish {
                status: "failed",
                item_status: "incomplete",
                error: json!({
                    "code": "context_length_exceeded",
                    "message": "your input exceeds the context window of this model",
                }),
                ..completed()
            },
            StopReason::IterationLimit | StopReason::Error | StopReason::Aborted => {
                incomplete(own_word(*reason))
            }
        },
    }
}
