//! A Messages stream's payloads, read into blocks.
//!
//! One block on the wire is one block here, under the wire's index. Block types that this crate does
//! not model (server tools and their results, compaction, fallback, whatever comes next) are kept
//! whole as opaque ones. The end marker is `message_stop`.

use serde_json::{Map, Value};

use super::wire::{Delta, Event, Message, Usage};
use crate::error::{ErrorKind, ProviderError};
use crate::error_response;
use crate::message::StopReason;
use crate::providers::blocks::{Blocks, Handle, Prose};
use crate::providers::lenient::Maybe;
use crate::providers::payload::{self, Payload};
use crate::providers::stop_word;

/// The most blocks that may be open at once. The API opens one at a time; searching them stays cheap.
const MAX_OPEN_BLOCKS: usize = 1024;

/// The state between two payloads.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    usage: Usage,
    /// The blocks that are open on the wire, by their index there. Never many at once.
    open: Vec<(u64, Open)>,
    has_calls: bool,
}

#[derive(Debug)]
enum Open {
    Prose(Prose, Handle),
    Call {
        handle: Handle,
        /// The input as the block's start gave it, in case no delta follows.
        input: Option<Value>,
    },
    Opaque {
        block: Map<String, Value>,
        /// The input's text so far, for server tools, whose input streams.
        input: String,
    },
}

impl Decoder {
    /// Reads the next payload.
    pub(crate) fn payload(&mut self, payload: Payload<'_>, blocks: &mut Blocks) {
        if payload.is_done_mark() {
            return;
        }
        let failure = payload::read(payload, |payload| {
            let event = payload::parse::<Maybe<Event<'_>>>(payload.data)?;
            self.event(event, payload, blocks);
            Ok(())
        });
        if let Some(error) = failure {
            self.fail(blocks, error);
        }
    }

    /// The bytes are at their end.
    pub(crate) fn finish(&mut self, blocks: &mut Blocks) {
        self.fail(
            blocks,
            ProviderError::new(ErrorKind::TruncatedStream, "the stream ended without message_stop"),
        );
    }

    fn event(&mut self, event: Maybe<Event<'_>>, payload: Payload<'_>, blocks: &mut Blocks) {
        let Some(event) = event.0 else {
            if let Some(error) = payload::error_in(payload.data) {
                self.fail(blocks, error);
            }
            return;
        };
        let kind = if event.kind.is_empty() { payload.name } else { event.kind.as_str() };
        match kind {
            "message_start" => {
                if let Some(message) = event.message.0 {
                    self.message_start(*message, blocks);
                }
            }
            "content_block_start" => {
                let index = event.index.0.unwrap_or_else(|| self.next_wire_index());
                self.block_start(index, event.content_block, blocks);
            }
            "content_block_delta" => {
                if let Some(delta) = event.delta.0 {
                    self.block_delta(event.index.0, &delta, payload, blocks);
                }
            }
            "content_block_stop" => {
                if let Some(at) = self.position(event.index.0) {
                    let (_, open) = self.open.remove(at);
                    close(open, blocks);
                }
            }
            "message_delta" => {
                if let Some(delta) = event.delta.0 {
                    self.stop_word(delta.stop_reason.as_str(), blocks);
                }
                self.count(event.usage, blocks);
            }
            "message_stop" => self.message_stop(blocks),
            // The host does not stream: the message is there, whole. (As an event's name the word says
            // nothing.)
            "message" if !event.kind.is_empty() => {
                if let Ok(Maybe(Some(message))) = serde_json::from_slice(payload.data) {
                    self.message_start(message, blocks);
                    self.message_stop(blocks);
                }
            }
            "error" => self.fail(blocks, error_response::from_body(None, &[], payload.data)),
            // Pings, and whatever the API will come to send.
            _ => {
                let may_be_error =
                    event.error.0 || event.kind.is_empty() || event.object.as_str() == "error";
                if may_be_error && let Some(error) = payload::error_in(payload.data) {
                    self.fail(blocks, error);
                }
            }
        }
    }

    fn message_start(&mut self, message: Message<'_>, blocks: &mut Blocks) {
        blocks.name_model(message.model.as_str());
        self.count(message.usage, blocks);
        self.stop_word(message.stop_reason.as_str(), blocks);
        for block in message.content.0 {
            let index = self.next_wire_index();
            self.block_start(index, block, blocks);
            if let Some(at) = self.position(Some(index)) {
                let (_, open) = self.open.remove(at);
                close(open, blocks);
            }
        }
    }

    fn block_start(&mut self, index: u64, block: Value, blocks: &mut Blocks) {
        if let Some(at) = self.open.iter().position(|(open, _)| *open == index) {
            let (_, open) = self.open.remove(at);
            close(open, blocks);
        }
        let Value::Object(block) = block else { return };
        let text = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
        let open = match text("type") {
            "text" => {
                let handle = blocks.begin_prose(Prose::Text);
                blocks.grow_prose(handle, text("text"));
                Open::Prose(Prose::Text, handle)
            }
            "thinking" => {
                let handle = blocks.begin_prose(Prose::Thinking);
                blocks.grow_prose(handle, text("thinking"));
                blocks.sign(handle, text("signature"));
                Open::Prose(Prose::Thinking, handle)
            }
            "redacted_thinking" => {
                blocks.redacted(text("data"));
                return;
            }
            "tool_use" => {
                self.has_calls = true;
                let handle = blocks.begin_call(text("id"), text("name"));
                let input = block.get("input").filter(|input| !is_empty(input)).cloned();
                Open::Call { handle, input }
            }
            kind => {
                // Another model than the one that was asked has taken over, and says so first.
                if kind == "fallback" {
                    let model = block.get("to").and_then(|to| to.get("model"));
                    blocks.name_model(model.and_then(Value::as_str).unwrap_or_default());
                }
                if !blocks.hold(payload_size(&block)) {
                    return;
                }
                Open::Opaque { block, input: String::new() }
            }
        };
        self.keep_open(index, open, blocks);
    }

    /// A delta for a block that was never opened, or that is of another kind, opens one.
    fn block_delta(
        &mut self,
        index: Option<u64>,
        delta: &Delta<'_>,
        payload: Payload<'_>,
        blocks: &mut Blocks,
    ) {
        if let Some(at) = self.position(index)
            && let Some((_, Open::Opaque { block, input })) = self.open.get_mut(at)
        {
            grow_opaque(block, input, delta, payload, blocks);
            return;
        }
        match delta.kind.as_str() {
            "text_delta" => {
                let handle = self.prose(index, Prose::Text, blocks);
                blocks.grow_prose(handle, delta.text.as_str());
            }
            "thinking_delta" => {
                let handle = self.prose(index, Prose::Thinking, blocks);
                blocks.grow_prose(handle, delta.thinking.as_str());
            }
            "signature_delta" => {
                let handle = self.prose(index, Prose::Thinking, blocks);
                blocks.sign(handle, delta.signature.as_str());
            }
            "input_json_delta" => {
                let handle = self.call(index, blocks);
                blocks.grow_call(handle, delta.partial_json.as_str());
            }
            // Citations and what is to come: the block is whole without them.
            _ => {}
        }
    }

    fn prose(&mut self, index: Option<u64>, wanted: Prose, blocks: &mut Blocks) -> Handle {
        if let Some(at) = self.position(index)
            && let Some((_, Open::Prose(prose, handle))) = self.open.get(at)
            && *prose == wanted
        {
            return *handle;
        }
        let handle = blocks.begin_prose(wanted);
        self.replace(index, Open::Prose(wanted, handle), blocks);
        handle
    }

    fn call(&mut self, index: Option<u64>, blocks: &mut Blocks) -> Handle {
        if let Some(at) = self.position(index)
            && let Some((_, Open::Call { handle, .. })) = self.open.get(at)
        {
            return *handle;
        }
        self.has_calls = true;
        let handle = blocks.begin_call("", "");
        self.replace(index, Open::Call { handle, input: None }, blocks);
        handle
    }

    fn replace(&mut self, index: Option<u64>, open: Open, blocks: &mut Blocks) {
        let index = index.unwrap_or_else(|| self.next_wire_index());
        if let Some(at) = self.open.iter().position(|(open, _)| *open == index) {
            let (_, old) = self.open.remove(at);
            close(old, blocks);
        }
        self.keep_open(index, open, blocks);
    }

    fn keep_open(&mut self, index: u64, open: Open, blocks: &mut Blocks) {
        self.open.push((index, open));
        if self.open.len() > MAX_OPEN_BLOCKS {
            let error = format!("more than {MAX_OPEN_BLOCKS} blocks are open at once");
            self.fail(blocks, ProviderError::new(ErrorKind::MalformedStream, error));
        }
    }

    /// Where the open block of this index is; without an index, the block opened last.
    fn position(&self, index: Option<u64>) -> Option<usize> {
        match index {
            Some(index) => self.open.iter().rposition(|(open, _)| *open == index),
            None => self.open.len().checked_sub(1),
        }
    }

    /// An index that no open block has.
    fn next_wire_index(&self) -> u64 {
        self.open.iter().map(|(index, _)| index.saturating_add(1)).max().unwrap_or_default()
    }

    fn stop_word(&mut self, word: &str, blocks: &mut Blocks) {
        if !word.is_empty() {
            blocks.stop_raw = Some(word.to_owned());
        }
    }

    fn count(&mut self, usage: Maybe<Box<Usage>>, blocks: &mut Blocks) {
        if let Some(usage) = usage.0 {
            self.usage = self.usage.overlaid_by(*usage);
            blocks.usage = self.usage.tokens();
        }
    }

    /// Calls are closed with the input that they have; half an opaque block is worth nothing.
    fn fail(&mut self, blocks: &mut Blocks, error: ProviderError) {
        for (_, open) in self.open.drain(..) {
            match open {
                Open::Prose(..) | Open::Call { .. } => close(open, blocks),
                Open::Opaque { .. } => {}
            }
        }
        blocks.fail(error);
    }

    fn message_stop(&mut self, blocks: &mut Blocks) {
        for (_, open) in self.open.drain(..) {
            close(open, blocks);
        }
        let reason = match &blocks.stop_raw {
            Some(word) => stop_word::stop_reason(word),
            None if self.has_calls => Ok(StopReason::ToolUse),
            None => Ok(StopReason::Stop),
        };
        match reason {
            Ok(reason) => blocks.done(reason),
            Err(error) => blocks.fail(error),
        }
    }
}

/// Ends a block. A call whose input came with its start and not in deltas gets it now.
fn close(open: Open, blocks: &mut Blocks) {
    match open {
        Open::Prose(_, handle) => blocks.end(handle),
        Open::Call { handle, input } => {
            if let Some(input) = input
                && !blocks.has_arguments(handle)
            {
                match input {
                    // Some hosts put the text of the object where the object belongs.
                    Value::String(text) => blocks.grow_call(handle, &text),
                    object => blocks.grow_call(handle, &object.to_string()),
                }
            }
            blocks.end(handle);
        }
        Open::Opaque { mut block, input } => {
            if !input.is_empty() {
                let input = serde_json::from_str(&input).unwrap_or(Value::String(input));
                block.insert("input".to_owned(), input);
            }
            blocks.opaque(Value::Object(block));
        }
    }
}

/// Merges a delta into an opaque block: text is appended, lists grow, everything else is replaced.
fn grow_opaque(
    block: &mut Map<String, Value>,
    input: &mut String,
    delta: &Delta<'_>,
    payload: Payload<'_>,
    blocks: &mut Blocks,
) {
    if !blocks.hold(payload.data.len()) {
        return;
    }
    if delta.kind.as_str() == "input_json_delta" {
        input.push_str(delta.partial_json.as_str());
        return;
    }
    let Ok(Value::Object(mut event)) = serde_json::from_slice(payload.data) else { return };
    let Some(Value::Object(fields)) = event.remove("delta") else { return };
    for (key, value) in fields.into_iter().filter(|(key, _)| key != "type") {
        match (block.get_mut(&key), value) {
            (Some(Value::String(text)), Value::String(more)) => text.push_str(&more),
            (Some(Value::Array(items)), Value::Array(more)) => items.extend(more),
            (Some(slot), value) => *slot = value,
            (None, value) => {
                block.insert(key, value);
            }
        }
    }
}

/// Whether this input is only the place where deltas will put it.
fn is_empty(input: &Value) -> bool {
    match input {
        Value::Object(object) => object.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => false,
    }
}

/// Roughly what a block costs to hold.
fn payload_size(block: &Map<String, Value>) -> usize {
    serde_json::to_string(block).map_or(0, |text| text.len())
}
