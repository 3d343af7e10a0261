//! [`Blocks`]: the one owner of the event grammar, shared by every API's decoder.
//!
//! A decoder says what the wire said (a block begins, grows, ends; the stream is done or failed) and
//! this turns it into events that always follow the grammar: one `start` first, blocks opened at
//! their first content so that empty ones never show, stream-local indices, tool-call ids unique
//! within the message, everything open closed before the one `done` or `error`, nothing after it.
//! Knows no wire format.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::api::Api;
use crate::error::{ErrorKind, ProviderError};
use crate::event::StreamEvent;
use crate::message::{StopReason, ToolCall, Usage};
use crate::providers::json_extent::JsonExtent;

/// The most blocks that one message may have. A sane one has a few dozen; the assembler believes
/// no index beyond this either.
const MAX_BLOCKS: usize = 10_000;

/// The most bytes that one message may have, prose included: whoever reads the stream keeps them all.
/// More than any model can write in one answer.
const MAX_HELD_BYTES: usize = 64 * 1024 * 1024;

/// Names a block that was begun. Valid for the [`Blocks`] that gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handle(usize);

/// What kind of prose a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prose {
    Text,
    Thinking,
}

/// The grammar's owner. See the module's documentation.
#[derive(Debug)]
pub(crate) struct Blocks {
    provider: String,
    api: Api,
    model: String,
    /// What the provider told of the tokens so far; goes into the end event, whichever it is.
    pub(crate) usage: Usage,
    /// The provider's word for the end, as far as it was said.
    pub(crate) stop_raw: Option<String>,
    phase: Phase,
    blocks: Vec<Block>,
    next_index: usize,
    call_ids: HashSet<String>,
    /// How often an id was taken already, so that making many equal ones unique stays linear.
    repeats: HashMap<String, usize>,
    held: usize,
    events: Vec<StreamEvent>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Started,
    Ended,
}

#[derive(Debug)]
enum Block {
    Text { index: Option<usize> },
    Thinking { index: Option<usize>, signature: Option<String>, redacted: bool },
    Call(Box<Call>),
    Ended,
}

#[derive(Debug)]
struct Call {
    index: usize,
    /// The id on the wire until the call opens, then the unique one.
    id: String,
    name: String,
    arguments: String,
    extent: JsonExtent,
    signature: Option<String>,
    /// What it carries is text, whatever it looks like.
    is_text: bool,
    opened: bool,
}

impl Blocks {
    /// The blocks of a message whose stream has not begun. `model` is what was asked for.
    pub(crate) fn new(provider: String, api: Api, model: String) -> Self {
        Self {
            provider,
            api,
            model,
            usage: Usage::default(),
            stop_raw: None,
            phase: Phase::Waiting,
            blocks: Vec::new(),
            next_index: 0,
            call_ids: HashSet::new(),
            repeats: HashMap::new(),
            held: 0,
            events: Vec::new(),
        }
    }

    /// Moves the events that are ready to `out`.
    pub(crate) fn drain_into(&mut self, out: &mut Vec<StreamEvent>) {
        if out.is_empty() {
            std::mem::swap(out, &mut self.events);
        } else {
            out.append(&mut self.events);
        }
    }

    /// Whether the end event was made.
    pub(crate) fn has_ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// Whether no block was begun yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The provider says which model answers. It may say so again until the first block shows,
    /// which is why `start` waits for that.
    pub(crate) fn name_model(&mut self, model: &str) {
        if !model.is_empty() {
            model.clone_into(&mut self.model);
        }
    }

    fn start(&mut self) {
        if self.phase != Phase::Waiting {
            return;
        }
        self.phase = Phase::Started;
        self.events.push(StreamEvent::Start {
            provider: std::mem::take(&mut self.provider),
            api: self.api.as_str().to_owned(),
            model: std::mem::take(&mut self.model),
        });
    }

    /// Begins a block of prose. Nothing shows before it has content.
    pub(crate) fn begin_prose(&mut self, prose: Prose) -> Handle {
        self.begin(match prose {
            Prose::Text => Block::Text { index: None },
            Prose::Thinking => Block::Thinking { index: None, signature: None, redacted: false },
        })
    }

    /// Appends to a block of prose.
    pub(crate) fn grow_prose(&mut self, handle: Handle, delta: &str) {
        if delta.is_empty() || !self.hold(delta.len()) {
            return;
        }
        self.start();
        let (next, delta) = (self.next_index, delta.to_owned());
        match self.blocks.get_mut(handle.0) {
            Some(Block::Text { index }) => {
                if index.is_none() {
                    self.next_index += 1;
                    self.events.push(StreamEvent::TextStart { index: next });
                }
                let index = *index.get_or_insert(next);
                self.events.push(StreamEvent::TextDelta { index, delta });
            }
            Some(Block::Thinking { index, .. }) => {
                if index.is_none() {
                    self.next_index += 1;
                    self.events.push(StreamEvent::ThinkingStart { index: next });
                }
                let index = *index.get_or_insert(next);
                self.events.push(StreamEvent::ThinkingDelta { index, delta });
            }
            Some(Block::Call(_) | Block::Ended) | None => {}
        }
    }

    /// Gives a thinking block its signature, in place of an earlier one. It shows now if it has not
    /// before: its place is before what follows, whether its end comes or not.
    pub(crate) fn sign(&mut self, handle: Handle, text: &str) {
        if text.is_empty() || !self.hold(text.len()) {
            return;
        }
        if !matches!(self.blocks.get(handle.0), Some(Block::Thinking { .. })) {
            return;
        }
        self.start();
        if let Some(Block::Thinking { index, signature, .. }) = self.blocks.get_mut(handle.0) {
            *signature = Some(text.to_owned());
            if index.is_none() {
                *index = Some(self.next_index);
                self.events.push(StreamEvent::ThinkingStart { index: self.next_index });
                self.next_index += 1;
            }
        }
    }

    /// A thinking block whose text the provider withheld, whole. Without its cipher there is nothing.
    pub(crate) fn redacted(&mut self, data: &str) {
        if data.is_empty() {
            return;
        }
        let handle = self.begin_prose(Prose::Thinking);
        self.sign(handle, data);
        if let Some(Block::Thinking { redacted, .. }) = self.blocks.get_mut(handle.0) {
            *redacted = true;
        }
        self.end(handle);
    }

    /// Begins a tool call. It shows as soon as its name is known; its place is taken now.
    pub(crate) fn begin_call(&mut self, id: &str, name: &str) -> Handle {
        self.hold(id.len().saturating_add(name.len()));
        let index = self.next_index;
        self.next_index += 1;
        let handle = self.begin(Block::Call(Box::new(Call {
            index,
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: String::new(),
            extent: JsonExtent::default(),
            signature: None,
            is_text: false,
            opened: false,
        })));
        if !name.is_empty() {
            self.open_call(handle);
        }
        handle
    }

    /// Tells a call what it did not know yet: an id before it shows, a name before it has one.
    pub(crate) fn identify_call(&mut self, handle: Handle, id: &str, name: &str) {
        let Some(Block::Call(call)) = self.blocks.get(handle.0) else { return };
        let takes_id = !call.opened && call.id.is_empty() && !id.is_empty();
        let takes_name = call.name.is_empty() && !name.is_empty();
        let taken = if takes_id { id.len() } else { 0 } + if takes_name { name.len() } else { 0 };
        if taken == 0 || !self.hold(taken) {
            return;
        }
        let Some(Block::Call(call)) = self.blocks.get_mut(handle.0) else { return };
        if takes_id {
            id.clone_into(&mut call.id);
        }
        if takes_name {
            name.clone_into(&mut call.name);
            self.open_call(handle);
        }
    }

    /// Gives a call that shows already its whole name: the one that it shows with was a piece.
    pub(crate) fn rename_call(&mut self, handle: Handle, name: &str) {
        if !self.hold(name.len()) {
            return;
        }
        if let Some(Block::Call(call)) = self.blocks.get_mut(handle.0) {
            name.clone_into(&mut call.name);
        }
    }

    /// Appends to a call's argument text.
    pub(crate) fn grow_call(&mut self, handle: Handle, delta: &str) {
        if delta.is_empty() || !self.hold(delta.len()) {
            return;
        }
        let Some(Block::Call(call)) = self.blocks.get_mut(handle.0) else { return };
        call.extent.push(delta);
        call.arguments.push_str(delta);
        if call.opened {
            self.events
                .push(StreamEvent::ToolcallDelta { index: call.index, delta: delta.to_owned() });
        }
    }

    /// Gives a call the provider's signature that is replayed with it.
    pub(crate) fn sign_call(&mut self, handle: Handle, text: &str) {
        if text.is_empty() || !self.hold(text.len()) {
            return;
        }
        if let Some(Block::Call(call)) = self.blocks.get_mut(handle.0) {
            call.signature = Some(text.to_owned());
        }
    }

    /// What this call carries is text and not JSON arguments.
    pub(crate) fn take_as_text(&mut self, handle: Handle) {
        if let Some(Block::Call(call)) = self.blocks.get_mut(handle.0) {
            call.is_text = true;
        }
    }

    /// Whether a call's argument text is a complete JSON value, so that nothing can follow it.
    pub(crate) fn is_call_complete(&self, handle: Handle) -> bool {
        match self.blocks.get(handle.0) {
            Some(Block::Call(call)) => call.extent.is_complete(),
            Some(Block::Text { .. } | Block::Thinking { .. } | Block::Ended) | None => true,
        }
    }

    /// Whether a call has argument text.
    pub(crate) fn has_arguments(&self, handle: Handle) -> bool {
        match self.blocks.get(handle.0) {
            Some(Block::Call(call)) => !call.arguments.is_empty(),
            Some(Block::Text { .. } | Block::Thinking { .. } | Block::Ended) | None => false,
        }
    }

    /// A block that only its own API understands, whole.
    pub(crate) fn opaque(&mut self, data: Value) {
        self.begin(Block::Ended);
        if self.has_ended() {
            return;
        }
        self.start();
        let index = self.next_index;
        self.next_index += 1;
        self.events.push(StreamEvent::Opaque { index, api: self.api.as_str().to_owned(), data });
    }

    /// Takes note of bytes that the decoder itself holds for a block. `false` when that is too much;
    /// the stream has then failed.
    pub(crate) fn hold(&mut self, bytes: usize) -> bool {
        if self.has_ended() {
            return false;
        }
        self.held = self.held.saturating_add(bytes);
        if self.held > MAX_HELD_BYTES {
            self.fail(ProviderError::new(
                ErrorKind::MalformedStream,
                format!("the message has more than {MAX_HELD_BYTES} bytes"),
            ));
            return false;
        }
        true
    }

    /// A block is complete. One that never had content never showed.
    pub(crate) fn end(&mut self, handle: Handle) {
        if self.has_ended() {
            return;
        }
        if let Some(Block::Call(call)) = self.blocks.get(handle.0)
            && !call.opened
            && !(call.id.is_empty() && call.arguments.is_empty())
        {
            self.open_call(handle);
        }
        let Some(slot) = self.blocks.get_mut(handle.0) else { return };
        match std::mem::replace(slot, Block::Ended) {
            Block::Text { index: Some(index) } => self.events.push(StreamEvent::TextEnd { index }),
            Block::Thinking { index: Some(index), signature, redacted } => {
                self.events.push(StreamEvent::ThinkingEnd { index, signature, redacted });
            }
            Block::Call(call) if call.opened => {
                let Call { index, id, name, arguments, signature, is_text, .. } = *call;
                let mut call = if is_text {
                    ToolCall::of_text(id, name, arguments)
                } else {
                    ToolCall::parse(id, name, arguments)
                };
                call.signature = signature;
                self.events.push(StreamEvent::ToolcallEnd { index, call });
            }
            Block::Text { index: None }
            | Block::Thinking { index: None, .. }
            | Block::Call(_)
            | Block::Ended => {}
        }
    }

    /// The answer is complete.
    pub(crate) fn done(&mut self, stop_reason: StopReason) {
        self.end_all();
        if self.has_ended() {
            return;
        }
        self.phase = Phase::Ended;
        self.events.push(StreamEvent::Done {
            stop_reason,
            stop_raw: self.stop_raw.take(),
            usage: self.usage,
            violation: None,
        });
    }

    /// The answer failed. What is open is closed as it is.
    pub(crate) fn fail(&mut self, error: ProviderError) {
        self.end_all();
        if self.has_ended() {
            return;
        }
        self.phase = Phase::Ended;
        self.events.push(StreamEvent::Error {
            error,
            stop_raw: self.stop_raw.take(),
            usage: self.usage,
        });
    }

    fn end_all(&mut self) {
        if self.has_ended() {
            return;
        }
        self.start();
        for block in 0..self.blocks.len() {
            self.end(Handle(block));
        }
        self.blocks.clear();
    }

    fn begin(&mut self, block: Block) -> Handle {
        let handle = Handle(self.blocks.len());
        if handle.0 >= MAX_BLOCKS {
            self.fail(ProviderError::new(
                ErrorKind::MalformedStream,
                format!("the message has more than {MAX_BLOCKS} blocks"),
            ));
        } else if !self.has_ended() {
            self.blocks.push(block);
        }
        handle
    }

    fn open_call(&mut self, handle: Handle) {
        self.start();
        let Some(Block::Call(call)) = self.blocks.get_mut(handle.0) else { return };
        call.opened = true;
        let wire_id = std::mem::take(&mut call.id);
        let index = call.index;
        let id = unique_id(wire_id, index, &mut self.call_ids, &mut self.repeats);
        call.id.clone_from(&id);
        let name = call.name.clone();
        self.events.push(StreamEvent::ToolcallStart { index, id, name });
        if !call.arguments.is_empty() {
            let delta = call.arguments.clone();
            self.events.push(StreamEvent::ToolcallDelta { index, delta });
        }
    }
}

/// An id that no other call of the message has: the wire's own where possible.
fn unique_id(
    wire_id: String,
    index: usize,
    taken: &mut HashSet<String>,
    repeats: &mut HashMap<String, usize>,
) -> String {
    let base = if wire_id.is_empty() { format!("call_{index}") } else { wire_id };
    if taken.insert(base.clone()) {
        return base;
    }
    let repeat = repeats.entry(base.clone()).or_insert(1);
    loop {
        *repeat += 1;
        let id = format!("{base}_{repeat}");
        if taken.insert(id.clone()) {
            return id;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC M4
    #[test]
    fn a_message_without_end_is_bounded_whatever_it_is_made_of() {
        const PIECES: usize = 80;
        let piece = "x".repeat(1024 * 1024);
        type Grow = fn(&mut Blocks, Handle, &str);
        let ways: [(&str, Grow); 3] = [
            ("prose", Blocks::grow_prose),
            ("arguments", Blocks::grow_call),
            ("late ids", |blocks, _, id| {
                let call = blocks.begin_call("", "");
                blocks.identify_call(call, id, "");
            }),
        ];
        for (name, grow) in ways {
            let mut blocks = Blocks::new("p".into(), Api::OpenaiChat, "m".into());
            let handle = match name {
                "prose" => blocks.begin_prose(Prose::Text),
                _ => blocks.begin_call("c", "f"),
            };
            let mut pieces = 0;
            let mut events = Vec::new();
            while pieces < PIECES && !blocks.has_ended() {
                grow(&mut blocks, handle, &piece);
                pieces += 1;
                events.clear();
                blocks.drain_into(&mut events);
            }
            assert!(pieces <= MAX_HELD_BYTES / piece.len() + 1, "{name}: {pieces}");
            let Some(StreamEvent::Error { error, .. }) = events.last() else {
                panic!("{name}: {:?}", events.last());
            };
            assert_eq!(error.kind, ErrorKind::MalformedStream, "{name}");
        }
    }
}
