//! A Chat Completions stream's payloads, read into blocks.
//!
//! The wire has no blocks: adjacent deltas of one kind are one. The message is choice 0. The end
//! marker is a `finish_reason` for every choice, but usage, more content and errors may come after
//! it, so the end is only told when the bytes end or `[DONE]` comes.

use std::collections::BTreeMap;

use serde_json::Value;

use super::calls::{Calls, LEGACY_INDEX};
use super::reasoning_details::ReasoningDetails;
use super::thinking_tags::ThinkingTags;
use super::usage::Usage;
use super::wire::{CallDelta, Choice, Chunk, Content, Delta, Part};
use crate::compat::Compat;
use crate::error::{ErrorKind, ProviderError};
use crate::error_response;
use crate::message::StopReason;
use crate::providers::blocks::{Blocks, Handle, Prose};
use crate::providers::lenient::{Count, Maybe};
use crate::providers::payload::{self, Payload};
use crate::providers::stop_word;

/// The most choices whose ends are watched. Nobody offers more.
const MAX_CHOICES: usize = 1024;

/// The state between two payloads.
#[derive(Debug)]
pub(crate) struct Decoder {
    compat: Compat,
    /// The stream has named its model; some name several, and the first one counts.
    has_model: bool,
    /// The block of prose that grows at the moment.
    prose: Option<(Prose, Handle)>,
    tags: Option<ThinkingTags>,
    calls: Calls,
    details: ReasoningDetails,
    /// Thinking came in a field of its own, so that its copy in the details does not count.
    has_plain_reasoning: bool,
    /// The model's own refusal came instead of text.
    refused: bool,
    /// Whether each choice that was seen has finished.
    choices: BTreeMap<u64, bool>,
    /// An error that came inside a chunk with choices: usage may follow it.
    error: Option<ProviderError>,
}

impl Decoder {
    /// A decoder for a host of this dialect.
    pub(crate) fn new(compat: Compat) -> Self {
        Self {
            tags: compat.thinking_tags.then(ThinkingTags::default),
            compat,
            has_model: false,
            prose: None,
            calls: Calls::default(),
            details: ReasoningDetails::default(),
            has_plain_reasoning: false,
            refused: false,
            choices: BTreeMap::new(),
            error: None,
        }
    }

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
            let told = !payload.terminated && self.has_finished();
            if !told {
                self.error.get_or_insert(error);
            }
            self.finish(blocks);
        }
    }

    /// The bytes are at their end.
    pub(crate) fn finish(&mut self, blocks: &mut Blocks) {
        if let Some(mut tags) = self.tags.take() {
            tags.finish(&mut |prose, text| self.grow(prose, text, blocks));
        }
        if let Some(details) = std::mem::take(&mut self.details).into_opaque() {
            self.end_prose(blocks);
            blocks.opaque(details);
        }
        if let Some(error) = self.error.take() {
            blocks.fail(error);
            return;
        }
        if !self.has_finished() {
            blocks.fail(ProviderError::new(
                ErrorKind::TruncatedStream,
                "the stream ended without a finish_reason",
            ));
            return;
        }
        let word = blocks.stop_raw.as_deref().unwrap_or_default();
        match stop_word::stop_reason(word) {
            Ok(StopReason::Stop) if self.refused => blocks.done(StopReason::Refusal),
            Ok(reason) => blocks.done(reason),
            Err(error) => blocks.fail(error),
        }
    }

    /// Whether every choice has its reason to have ended; usage may still come, or an end mark.
    pub(crate) fn has_finished(&self) -> bool {
        self.choices.contains_key(&0) && self.choices.values().all(|finished| *finished)
    }

    fn chunk(&mut self, chunk: Maybe<Chunk<'_>>, payload: Payload<'_>, blocks: &mut Blocks) {
        let Some(chunk) = chunk.0 else {
            if let Some(error) = payload::error_in(payload.data) {
                self.error.get_or_insert(error);
                self.finish(blocks);
            }
            return;
        };
        if !self.has_model && !chunk.model.is_empty() {
            self.has_model = true;
            blocks.name_model(chunk.model.as_str());
        }
        self.count(&chunk.usage, blocks);
        let groq = chunk.x_groq.0.unwrap_or_default();
        self.count(&groq.usage, blocks);
        let is_error = chunk.error.0
            || groq.error.0
            || payload.name == "error"
            || chunk.object.as_str() == "error"
            || chunk.kind.as_str() == "error"
            || (chunk.choices.is_none() && payload::error_in(payload.data).is_some());
        if is_error && self.error.is_none() {
            self.error = Some(error_of(payload.data, groq.error.0 && !chunk.error.0));
        }
        let choices = chunk.choices.unwrap_or_default().0;
        let is_bare_error = is_error && choices.is_empty();
        for choice in choices {
            self.choice(choice, blocks);
        }
        if is_bare_error {
            self.finish(blocks);
        }
    }

    fn choice(&mut self, choice: Choice<'_>, blocks: &mut Blocks) {
        let index = choice.index.or_zero();
        let finished = !choice.finish_reason.is_empty();
        if self.choices.len() < MAX_CHOICES || self.choices.contains_key(&index) {
            *self.choices.entry(index).or_default() |= finished;
        }
        self.count(&choice.usage, blocks);
        if !choice.error.is_null() {
            self.error.get_or_insert_with(|| payload::error_under("error", &choice.error));
        }
        if index != 0 {
            return;
        }
        // A whole message in place of deltas is taken once; beside deltas it only repeats them.
        match (choice.delta.0, choice.message.0) {
            (Some(delta), _) => self.delta(delta, blocks),
            (None, Some(mut message)) if blocks.is_empty() => {
                // Its calls are all there, so that their order is their position.
                let calls = message.tool_calls.0.iter_mut().filter_map(|call| call.0.as_mut());
                for (position, call) in (0_u64..).zip(calls) {
                    call.index = Count(Some(position));
                }
                self.delta(*message, blocks);
            }
            (None, Some(_) | None) => {}
        }
        if finished {
            blocks.stop_raw = Some(choice.finish_reason.0.into_owned());
        }
    }

    fn delta(&mut self, delta: Delta<'_>, blocks: &mut Blocks) {
        let mut detailed = String::new();
        for entry in delta.reasoning_details.0 {
            if let Value::Object(entry) = entry {
                if !blocks.hold(entry.values().map(size_of_text).sum()) {
                    return;
                }
                detailed.push_str(&self.details.push(entry));
            }
        }
        let plain =
            [&delta.reasoning_content, &delta.reasoning, &delta.reasoning_text, &delta.thinking]
                .into_iter()
                .find(|text| !text.is_empty());
        match plain {
            Some(text) => {
                self.has_plain_reasoning = true;
                self.grow(Prose::Thinking, text.as_str(), blocks);
            }
            None if !self.has_plain_reasoning => self.grow(Prose::Thinking, &detailed, blocks),
            None => {}
        }
        self.sign(delta.reasoning_opaque.as_str(), blocks);
        match delta.content {
            Content::Text(text) => self.text(&text, blocks),
            Content::Parts(parts) => parts.into_iter().for_each(|part| self.part(part, blocks)),
        }
        if !delta.refusal.is_empty() {
            self.refused = true;
            self.grow(Prose::Text, delta.refusal.as_str(), blocks);
        }
        for call in delta.tool_calls.0.into_iter().filter_map(|call| call.0) {
            self.call(&call, blocks);
        }
        if delta.function_call.0.is_some() {
            let index = Count(Some(LEGACY_INDEX));
            let call = CallDelta { index, function: delta.function_call, ..CallDelta::default() };
            self.call(&call, blocks);
        }
    }

    fn part(&mut self, part: Part<'_>, blocks: &mut Blocks) {
        match part {
            Part::Text(text) => self.text(&text, blocks),
            Part::Thinking { text, signature } => {
                self.grow(Prose::Thinking, &text, blocks);
                self.sign(&signature, blocks);
            }
        }
    }

    fn text(&mut self, text: &str, blocks: &mut Blocks) {
        if text.is_empty() {
            return;
        }
        match self.tags.take() {
            Some(mut tags) => {
                tags.push(text, &mut |prose, text| self.grow(prose, text, blocks));
                self.tags = Some(tags);
            }
            None => self.grow(Prose::Text, text, blocks),
        }
    }

    /// Appends to the block of this kind that grows, or begins one behind the others.
    fn grow(&mut self, prose: Prose, text: &str, blocks: &mut Blocks) {
        if text.is_empty() {
            return;
        }
        let handle = self.handle(prose, blocks);
        blocks.grow_prose(handle, text);
    }

    fn sign(&mut self, signature: &str, blocks: &mut Blocks) {
        if !signature.is_empty() {
            let handle = self.handle(Prose::Thinking, blocks);
            blocks.sign(handle, signature);
        }
    }

    fn handle(&mut self, prose: Prose, blocks: &mut Blocks) -> Handle {
        match self.prose {
            Some((growing, handle)) if growing == prose => handle,
            Some(_) | None => {
                self.end_prose(blocks);
                let handle = blocks.begin_prose(prose);
                self.prose = Some((prose, handle));
                handle
            }
        }
    }

    fn end_prose(&mut self, blocks: &mut Blocks) {
        if let Some((_, handle)) = self.prose.take() {
            blocks.end(handle);
        }
    }

    /// Calls stay open to the end of the stream, as their deltas may interleave.
    fn call(&mut self, call: &CallDelta<'_>, blocks: &mut Blocks) {
        self.end_prose(blocks);
        self.calls.push(call, blocks);
    }

    /// The last counts that were sent stand: where there are several they are cumulative.
    fn count(&mut self, usage: &Maybe<Box<Usage>>, blocks: &mut Blocks) {
        if let Some(tokens) = usage.0.as_ref().and_then(|usage| usage.tokens(&self.compat)) {
            blocks.usage = tokens;
        }
    }
}

/// The error of a chunk that has one, wherever in it.
fn error_of(data: &[u8], is_in_groq_corner: bool) -> ProviderError {
    if is_in_groq_corner
        && let Ok(chunk) = serde_json::from_slice::<Value>(data)
        && let Some(error) = chunk.pointer("/x_groq/error")
    {
        return payload::error_under("error", error);
    }
    error_response::from_body(None, &[], data)
}

fn size_of_text(value: &Value) -> usize {
    value.as_str().map_or(0, str::len)
}
