//! A generateContent stream's payloads, read into blocks.
//!
//! The wire has parts, not blocks: adjacent text parts of one kind are one block, and a part with a
//! signature ends its block. The message is candidate 0. The end marker is a `finishReason`, which
//! may come on several chunks with more content between them and of which the last counts, or the
//! reason why the prompt was blocked; so the end is only told when the bytes end.
//!
//! Text has no signature of its own here: one that came with text follows its block as an opaque
//! one, `{"thoughtSignature": …}`, and one that came with an empty text part keeps that part.

use serde_json::{Map, Value, json};

use super::METADATA;
use super::arguments::Arguments;
use super::wire::{Candidate, Chunk, Part};
use crate::error::{ErrorKind, ProviderError};
use crate::error_response;
use crate::message::StopReason;
use crate::providers::blocks::{Blocks, Handle, Prose};
use crate::providers::lenient::Maybe;
use crate::providers::payload::{self, Payload};
use crate::providers::stop_word;

/// How much of the host's own explanation of an end is shown. Real ones are a sentence, or the call
/// that could not be read.
const MAX_EXPLANATION: usize = 500;

/// The state between two payloads.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// The stream has named its model.
    has_model: bool,
    /// The block of prose that grows at the moment.
    prose: Option<(Prose, Handle)>,
    /// The call whose arguments are still coming.
    streamed: Option<Streamed>,
    has_calls: bool,
    end: Option<End>,
    /// The host's sentence about the end.
    explanation: String,
    /// What was last said about the answer as a whole, since hosts repeat it with every chunk.
    metadata: Map<String, Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Finished,
    PromptBlocked,
}

#[derive(Debug)]
struct Streamed {
    handle: Handle,
    id: String,
    arguments: Arguments,
}

impl Decoder {
    /// Reads the next payload.
    pub(crate) fn payload(&mut self, payload: Payload<'_>, blocks: &mut Blocks) {
        if payload.is_done_mark() {
            self.finish(blocks);
            return;
        }
        let failure = payload::read(payload, |payload| {
            let chunk = payload::parse::<Maybe<Chunk<'_>>>(payload.data)?;
            self.chunk(chunk, payload, blocks);
            Ok(())
        });
        if let Some(error) = failure {
            // A stream that was cut behind its end has its end; only what followed is lost.
            if !payload.terminated && self.end.is_some() {
                self.finish(blocks);
            } else {
                self.fail(error, blocks);
            }
        }
    }

    /// The bytes are at their end.
    pub(crate) fn finish(&mut self, blocks: &mut Blocks) {
        let Some(end) = self.end else {
            let error = ProviderError::new(
                ErrorKind::TruncatedStream,
                "the stream ended without a finishReason",
            );
            self.fail(error, blocks);
            return;
        };
        let reason = match end {
            End::PromptBlocked => Ok(StopReason::Refusal),
            End::Finished => stop_word::stop_reason(blocks.stop_raw.as_deref().unwrap_or_default()),
        };
        match reason {
            Ok(StopReason::Stop) => {
                self.end_call(blocks);
                let has_calls = self.has_calls;
                blocks.done(if has_calls { StopReason::ToolUse } else { StopReason::Stop });
            }
            Ok(reason) => {
                self.cut_call(blocks);
                blocks.done(reason);
            }
            Err(mut error) => {
                if !self.explanation.is_empty() {
                    error.message = format!("{}: {}", error.message, self.explanation);
                }
                self.fail(error, blocks);
            }
        }
    }

    fn fail(&mut self, error: ProviderError, blocks: &mut Blocks) {
        self.cut_call(blocks);
        blocks.fail(error);
    }

    fn chunk(&mut self, chunk: Maybe<Chunk<'_>>, payload: Payload<'_>, blocks: &mut Blocks) {
        let Some(chunk) = chunk.0 else {
            if let Some(error) = payload::error_in(payload.data) {
                self.fail(error, blocks);
            }
            return;
        };
        let is_bare = chunk.candidates.0.is_empty() && chunk.usage_metadata.0.is_none();
        if !self.has_model && !chunk.model_version.is_empty() {
            self.has_model = true;
            blocks.name_model(chunk.model_version.as_str());
        }
        if let Some(tokens) = chunk.usage_metadata.0.and_then(|usage| usage.tokens()) {
            blocks.usage = tokens;
        }
        if let Some(feedback) = chunk.prompt_feedback.0
            && !feedback.block_reason.is_empty()
        {
            self.end = Some(End::PromptBlocked);
            blocks.stop_raw = Some(format!("promptFeedback:{}", feedback.block_reason.as_str()));
        }
        for candidate in chunk.candidates.0.into_iter().filter_map(|candidate| candidate.0) {
            if candidate.index.or_zero() == 0 {
                self.candidate(candidate, blocks);
            }
        }
        if chunk.error.0 || payload.name == "error" {
            self.fail(error_response::from_body(None, &[], payload.data), blocks);
        } else if is_bare && let Some(error) = payload::error_in(payload.data) {
            self.fail(error, blocks);
        }
    }

    fn candidate(&mut self, candidate: Candidate<'_>, blocks: &mut Blocks) {
        for part in candidate.content.0.unwrap_or_default().parts.0 {
            match part {
                Part::Prose { text, is_thought, signature } => {
                    let prose = if is_thought { Prose::Thinking } else { Prose::Text };
                    self.prose(prose, text.as_str(), signature.as_str(), blocks);
                }
                Part::Other(part) => self.part(part, blocks),
            }
        }
        let metadata = [
            candidate.grounding_metadata,
            candidate.url_context_metadata,
            candidate.citation_metadata,
        ];
        for (key, value) in METADATA.into_iter().zip(metadata) {
            if value.is_object() && self.metadata.get(key) != Some(&value) {
                self.metadata.insert(key.to_owned(), value.clone());
                blocks.opaque(json!({ key: value }));
            }
        }
        if !candidate.finish_reason.is_empty() {
            self.end = Some(End::Finished);
            blocks.stop_raw = Some(candidate.finish_reason.0.into_owned());
            self.explanation =
                candidate.finish_message.as_str().chars().take(MAX_EXPLANATION).collect();
        }
    }

    fn part(&mut self, mut part: Map<String, Value>, blocks: &mut Blocks) {
        let signature = text_of(&part, "thoughtSignature").to_owned();
        if let Some(Value::Object(call)) = part.get_mut("functionCall").map(Value::take) {
            self.call(call, &signature, blocks);
            return;
        }
        let prose = if part.get("thought") == Some(&Value::Bool(true)) {
            Prose::Thinking
        } else {
            Prose::Text
        };
        // Whatever else stands beside text.
        if part.get("text").is_some_and(Value::is_string) {
            self.prose(prose, text_of(&part, "text"), &signature, blocks);
            return;
        }
        self.end_prose(blocks);
        self.end_call(blocks);
        if blocks.hold(size_of(&part)) {
            blocks.opaque(Value::Object(part));
        }
    }

    fn prose(&mut self, prose: Prose, text: &str, signature: &str, blocks: &mut Blocks) {
        if text.is_empty() && signature.is_empty() {
            return;
        }
        self.end_call(blocks);
        let handle = match self.prose {
            Some((growing, handle)) if growing == prose => handle,
            Some(_) | None => {
                self.end_prose(blocks);
                let handle = blocks.begin_prose(prose);
                self.prose = Some((prose, handle));
                handle
            }
        };
        blocks.grow_prose(handle, text);
        if signature.is_empty() {
            return;
        }
        blocks.sign(handle, signature);
        self.end_prose(blocks);
        match prose {
            Prose::Text if text.is_empty() => {
                blocks.opaque(json!({"text": "", "thoughtSignature": signature}));
            }
            Prose::Text => blocks.opaque(json!({"thoughtSignature": signature})),
            Prose::Thinking => {}
        }
    }

    /// A call comes whole, or as a beginning, pieces of arguments and an end that has no name.
    fn call(&mut self, mut call: Map<String, Value>, signature: &str, blocks: &mut Blocks) {
        self.end_prose(blocks);
        let (id, name) = (text_of(&call, "id").to_owned(), text_of(&call, "name").to_owned());
        let continues = call.get("willContinue") == Some(&Value::Bool(true));
        let pieces = match call.remove("partialArgs") {
            Some(Value::Array(pieces)) => pieces,
            Some(_) | None => Vec::new(),
        };
        let whole = call.remove("args").filter(|whole| !whole.is_null());
        let goes_on = self
            .streamed
            .as_ref()
            .is_some_and(|open| name.is_empty() || (!id.is_empty() && id == open.id));
        if !goes_on {
            self.end_call(blocks);
            if id.is_empty() && name.is_empty() && whole.is_none() && pieces.is_empty() {
                return;
            }
            self.has_calls = true;
            let handle = blocks.begin_call(&id, &name);
            if !continues && pieces.is_empty() {
                blocks.grow_call(handle, &whole.map(|whole| whole.to_string()).unwrap_or_default());
                blocks.sign_call(handle, signature);
                blocks.end(handle);
                return;
            }
            self.streamed = Some(Streamed { handle, id, arguments: Arguments::default() });
        }
        let Some(open) = &mut self.streamed else { return };
        blocks.sign_call(open.handle, signature);
        if let Some(Value::Object(whole)) = whole {
            if !blocks.hold(size_of(&whole)) {
                return;
            }
            open.arguments.merge(whole);
        }
        for piece in pieces {
            let size = |key: &str| piece.get(key).and_then(Value::as_str).map_or(0, str::len);
            if !blocks.hold(size("jsonPath").saturating_add(size("stringValue"))) {
                return;
            }
            if open.arguments.push(&piece).is_err() {
                let error = "a piece of a call's arguments has no place among them";
                self.fail(ProviderError::new(ErrorKind::MalformedStream, error), blocks);
                return;
            }
        }
        if !continues {
            self.end_call(blocks);
        }
    }

    /// The call that is still coming is complete: what follows it says so, where it does not itself.
    fn end_call(&mut self, blocks: &mut Blocks) {
        if let Some(Streamed { handle, arguments, .. }) = self.streamed.take() {
            blocks.grow_call(handle, &arguments.into_text());
            blocks.end(handle);
        }
    }

    /// The call that is still coming will never be complete. Its arguments are left without their
    /// end, so that nobody takes them for whole.
    fn cut_call(&mut self, blocks: &mut Blocks) {
        if let Some(Streamed { handle, arguments, .. }) = self.streamed.take() {
            let mut text = arguments.into_text();
            text.pop();
            blocks.grow_call(handle, &text);
            blocks.end(handle);
        }
    }

    fn end_prose(&mut self, blocks: &mut Blocks) {
        if let Some((_, handle)) = self.prose.take() {
            blocks.end(handle);
        }
    }
}

fn text_of<'a>(fields: &'a Map<String, Value>, key: &str) -> &'a str {
    fields.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Roughly what arguments cost to hold.
fn size_of(arguments: &Map<String, Value>) -> usize {
    serde_json::to_string(arguments).map_or(0, |text| text.len())
}
