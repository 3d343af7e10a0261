//! An answer as generateContent chunks.
//!
//! A thinking block's signature comes where Gemini 3 puts it: with the first call behind the thinking,
//! or else in an empty text at the answer's end. A call comes in one piece, because this API does not
//! stream its arguments.

use ai::StopReason;
use serde_json::{Value, json};

use crate::dialect::{Answer, CallIds};
use crate::google_generate::call_mark::{PREFIX, marked};
use crate::rendered::{Rendered, pieces};
use crate::script::{Arguments, Block, DEFAULT_CHUNK_CHARS, Stop, own_word};
use crate::signature::sign_base64;

/// What the answer ends with when a call's arguments are no JSON, which this API cannot say.
const MALFORMED: &str = "MALFORMED_FUNCTION_CALL";

/// The whole body of an answer.
pub(crate) fn render(answer: &Answer<'_>) -> Rendered {
    let turn = answer.turn;
    let chunk = turn.chunk_chars.unwrap_or(DEFAULT_CHUNK_CHARS).get();
    let mut chunks = Chunks::new(answer);
    let mut ids = CallIds::new(PREFIX, answer.conversation);
    let mut signature: Option<String> = None;
    let mut malformed = None;
    for block in &turn.content {
        match block {
            Block::Text { text } => chunks.grow(text, false, chunk),
            Block::Thinking { text, signature: given, redacted } => {
                if let Some(signature) = signature.take() {
                    chunks.part(json!({"text": "", "thoughtSignature": signature}));
                }
                if !redacted {
                    chunks.grow(text, true, chunk);
                }
                signature = Some(given.clone().unwrap_or_else(|| sign_base64(text)));
            }
            Block::ToolCall { id, name, arguments } => {
                let Some(args) = json_of(arguments) else {
                    malformed = Some(format!("Malformed function call: {name}"));
                    continue;
                };
                let made = ids.take(id.as_ref());
                let made = match (&signature, id) {
                    (Some(signature), None) => marked(&made, signature),
                    (Some(_) | None, Some(_)) | (None, None) => made,
                };
                let mut part = json!({"functionCall": {"name": name, "args": args, "id": made}});
                if let Some(signature) = signature.take() {
                    part["thoughtSignature"] = signature.into();
                }
                chunks.part(part);
            }
        }
    }
    chunks.out.begin_end_marker();
    let word = match (&turn.stop, &malformed) {
        (None, Some(_)) => MALFORMED,
        (stop, _) => stop_word(stop.as_ref()),
    };
    chunks.finish(answer, signature, word, malformed)
}

/// A call's arguments as JSON, if they are any.
fn json_of(arguments: &Arguments) -> Option<Value> {
    match arguments {
        Arguments::Object(object) => Some(Value::Object(object.clone())),
        Arguments::Raw(text) => serde_json::from_str(text).ok(),
    }
}

/// The chunks so far, and what all of them share.
struct Chunks {
    out: Rendered,
    /// The fields behind the candidates, as JSON with its closing brace.
    tail: String,
    tail_fields: Value,
}

impl Chunks {
    fn new(answer: &Answer<'_>) -> Self {
        let prompt = prompt_tokens(answer);
        let tail_fields = json!({
            // Until the end only the prompt is counted.
            "usageMetadata": {"promptTokenCount": prompt, "totalTokenCount": prompt},
            "modelVersion": answer.conversation.model,
            "responseId": format!("scripted{:08}", answer.request),
        });
        let tail = tail_fields.to_string();
        let tail = tail.strip_prefix('{').unwrap_or(&tail).to_owned();
        Self { out: Rendered::with_crlf(), tail, tail_fields }
    }

    fn chunk(&self, candidate: Value) -> Value {
        let mut chunk = json!({"candidates": [candidate]});
        if let (Some(chunk), Some(tail)) = (chunk.as_object_mut(), self.tail_fields.as_object()) {
            chunk.extend(tail.clone());
        }
        chunk
    }

    /// A chunk with one part.
    fn part(&mut self, part: Value) {
        let content = json!({"parts": [part], "role": "model"});
        let chunk = self.chunk(json!({"content": content, "index": 0}));
        self.out.block(&chunk);
    }

    /// One chunk for each piece of a text.
    fn grow(&mut self, text: &str, is_thought: bool, chunk: usize) {
        let thought = if is_thought { r#","thought":true"# } else { "" };
        let after = format!(r#"{thought}}}],"role":"model"}},"index":0}}],{}"#, self.tail);
        for piece in pieces(text, chunk) {
            self.out.delta(r#"data: {"candidates":[{"content":{"parts":[{"text":"#, piece, &after);
        }
    }

    fn finish(
        mut self,
        answer: &Answer<'_>,
        signature: Option<String>,
        word: &str,
        message: Option<String>,
    ) -> Rendered {
        let mut part = json!({"text": ""});
        if let Some(signature) = signature {
            part["thoughtSignature"] = signature.into();
        }
        let mut candidate = json!({
            "content": {"parts": [part], "role": "model"},
            "finishReason": word,
            "index": 0,
        });
        if let Some(message) = message {
            candidate["finishMessage"] = message.into();
        }
        let mut chunk = self.chunk(candidate);
        let usage = answer.usage;
        let prompt = prompt_tokens(answer);
        let mut counts = json!({
            "promptTokenCount": prompt,
            // This API does not count thoughts among what was said.
            "candidatesTokenCount": usage.output.saturating_sub(usage.reasoning),
            "totalTokenCount": prompt + usage.output.max(usage.reasoning),
        });
        for (name, tokens) in
            [("thoughtsTokenCount", usage.reasoning), ("cachedContentTokenCount", usage.cache_read)]
        {
            // What is nothing is not sent.
            if tokens > 0 {
                counts[name] = tokens.into();
            }
        }
        chunk["usageMetadata"] = counts;
        self.out.event("", &chunk);
        self.out
    }
}

/// What was read, of which this API counts what was cached as a part.
fn prompt_tokens(answer: &Answer<'_>) -> u64 {
    let usage = answer.usage;
    usage.input + usage.cache_read + usage.cache_write
}

fn stop_word(stop: Option<&Stop>) -> &str {
    match stop {
        None => "STOP",
        Some(Stop::Raw(word)) => word,
        Some(Stop::Reason(reason)) => match reason {
            // The calls themselves say that they want to be made.
            StopReason::Stop | StopReason::ToolUse => "STOP",
            StopReason::Length => "MAX_TOKENS",
            StopReason::Refusal => "SAFETY",
            // Google has no word for a full context: it refuses the request.
            StopReason::ContextOverflow
            | StopReason::IterationLimit
            | StopReason::Error
            | StopReason::Aborted => own_word(*reason),
        },
    }
}
