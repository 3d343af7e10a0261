//! A Responses stream's payloads, read into blocks.
//!
//! Items are told apart by their place in the output and never by their ids, which some hosts make
//! anew for each event. Items that this crate does not model (the host's own tools and what they
//! found, compaction, whatever comes next) are kept whole as opaque ones. The end marker is the
//! response itself, completed, incomplete or failed.

use serde_json::{Map, Value};

use super::item::{CallForm, Item, Source, fill_call, fill_part, grow_part, has_refusal, text};
use super::wire::{Event, Response};
use crate::error::{ErrorKind, ProviderError};
use crate::error_response;
use crate::message::StopReason;
use crate::providers::blocks::Blocks;
use crate::providers::lenient::Maybe;
use crate::providers::payload::{self, Payload};
use crate::providers::stop_word;

/// The most items that may be open at once. The API opens one at a time; searching them stays cheap.
const MAX_OPEN_ITEMS: usize = 1024;

/// The state between two payloads.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// The items that are open, by their place in the output. Never many at once.
    open: Vec<Open>,
    /// An item came, open or whole.
    any: bool,
    /// How many messages and how many calls came.
    messages: usize,
    calls: usize,
    /// The model's own refusal came instead of text.
    has_refusal: bool,
    /// The model was named; the first name is the one that answers.
    is_named: bool,
    /// An `error` event came. The failed response that follows says how the host calls this end, so
    /// the stream fails with whatever comes next, if only its own end.
    error: Option<ProviderError>,
}

#[derive(Debug)]
struct Open {
    index: u64,
    /// The id under which the item was announced, for events that have no index.
    id: String,
    item: Item,
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
            ProviderError::new(
                ErrorKind::TruncatedStream,
                "the stream ended before the response was completed",
            ),
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
        let ending = match kind {
            // `done` is what the name is where the same events come through a socket.
            "response.completed" | "response.done" => Some("completed"),
            "response.incomplete" => Some("incomplete"),
            "response.failed" => Some("failed"),
            "response.cancelled" => Some("cancelled"),
            _ => None,
        };
        if ending.is_some() {
            let response = event.response.0.unwrap_or_default();
            return self.end(ending, *response, blocks);
        }
        if let Some(error) = self.error.take() {
            return self.fail(blocks, error);
        }
        match kind {
            "" if event.object.as_str() == "response" => {
                if let Ok(Maybe(Some(response))) = serde_json::from_slice(payload.data) {
                    self.end(None, response, blocks);
                }
            }
            "error" | "response.error" => {
                self.error = Some(error_response::from_body(None, &[], payload.data))
            }
            "response.output_item.added" => {
                if let Value::Object(item) = event.item {
                    self.announce(event.output_index.0, &item, blocks);
                }
            }
            "response.output_item.done" => {
                if let Value::Object(item) = event.item {
                    self.item_done(event.output_index.0, item, blocks);
                }
            }
            _ => self.within_item(kind, &event, payload, blocks),
        }
    }

    /// An event that is neither about the response nor about a whole item.
    fn within_item(
        &mut self,
        kind: &str,
        event: &Event<'_>,
        payload: Payload<'_>,
        blocks: &mut Blocks,
    ) {
        let delta = event.delta.as_str();
        let content = event.content_index.or_zero();
        let summary = event.summary_index.or_zero();
        match kind {
            "response.output_text.delta" => self.grow_text(event, delta, blocks),
            "response.refusal.delta" => {
                self.has_refusal |= !delta.is_empty();
                self.grow_text(event, delta, blocks);
            }
            "response.reasoning_summary_text.delta" => {
                self.grow_thinking(event, Source::Summary, summary, delta, blocks);
            }
            "response.reasoning_text.delta" => {
                self.grow_thinking(event, Source::Raw, content, delta, blocks);
            }
            "response.function_call_arguments.delta" => {
                self.grow_call(event, CallForm::Json, delta, blocks);
            }
            "response.custom_tool_call_input.delta" => {
                self.grow_call(event, CallForm::Text, delta, blocks);
            }
            "response.output_text.done" => self.fill_text(event, event.text.as_str(), blocks),
            "response.refusal.done" => {
                self.has_refusal |= !event.refusal.is_empty();
                self.fill_text(event, event.refusal.as_str(), blocks);
            }
            "response.content_part.done" => {
                if let Some(part) = &event.part.0 {
                    match part.kind.as_str() {
                        "output_text" => self.fill_text(event, part.text.as_str(), blocks),
                        "refusal" => {
                            self.has_refusal |= !part.refusal.is_empty();
                            self.fill_text(event, part.refusal.as_str(), blocks);
                        }
                        _ => {}
                    }
                }
            }
            "response.reasoning_summary_text.done" => {
                self.fill_thinking(event, Source::Summary, summary, blocks);
            }
            "response.reasoning_text.done" => {
                self.fill_thinking(event, Source::Raw, content, blocks);
            }
            "response.function_call_arguments.done" => {
                self.fill_arguments(event, CallForm::Json, event.arguments.as_str(), blocks);
            }
            "response.custom_tool_call_input.done" => {
                self.fill_arguments(event, CallForm::Text, event.input.as_str(), blocks);
            }
            // Created, queued, in progress, keep-alives, what the host's own tools are doing, and
            // whatever the API will come to send.
            _ => {
                // A tool that the host runs may fail, and the response goes on.
                let may_be_error = !kind.starts_with("response.")
                    && (event.error.0 || event.kind.is_empty() || event.object.as_str() == "error");
                if let Some(response) = &event.response.0 {
                    self.note(response, blocks);
                } else if may_be_error && let Some(error) = payload::error_in(payload.data) {
                    self.fail(blocks, error);
                }
            }
        }
    }

    fn grow_text(&mut self, event: &Event<'_>, delta: &str, blocks: &mut Blocks) {
        let item =
            self.item_for(event, |_| Item::message(), |item| item.is_of_type("message"), blocks);
        if let Some(Item::Message(parts)) = item {
            grow_part(parts, event.content_index.or_zero(), delta, blocks);
        }
    }

    /// What is complete opens nothing: the item's own end brings it again.
    fn fill_text(&mut self, event: &Event<'_>, whole: &str, blocks: &mut Blocks) {
        if let Some(Item::Message(parts)) = self.open_item(event) {
            fill_part(parts, event.content_index.or_zero(), whole, blocks);
        }
    }

    fn grow_thinking(
        &mut self,
        event: &Event<'_>,
        source: Source,
        part: u64,
        delta: &str,
        blocks: &mut Blocks,
    ) {
        let item =
            self.item_for(event, Item::reasoning, |item| item.is_of_type("reasoning"), blocks);
        if let Some(Item::Reasoning(reasoning)) = item {
            reasoning.grow(source, part, delta, blocks);
        }
    }

    fn fill_thinking(&mut self, event: &Event<'_>, source: Source, part: u64, blocks: &mut Blocks) {
        if let Some(Item::Reasoning(reasoning)) = self.open_item(event) {
            reasoning.fill(source, part, event.text.as_str(), blocks);
        }
    }

    fn grow_call(&mut self, event: &Event<'_>, wanted: CallForm, delta: &str, blocks: &mut Blocks) {
        let begin = |blocks: &mut Blocks| Item::call("", "", wanted, blocks);
        let is_wanted = |item: &Item| matches!(item, Item::Call { form, .. } if *form == wanted);
        let item = self.item_for(event, begin, is_wanted, blocks);
        if let Some(Item::Call { handle, .. }) = item {
            blocks.grow_call(*handle, delta);
        }
    }

    fn fill_arguments(
        &mut self,
        event: &Event<'_>,
        wanted: CallForm,
        whole: &str,
        blocks: &mut Blocks,
    ) {
        if let Some(Item::Call { handle, form }) = self.open_item(event)
            && *form == wanted
        {
            fill_call(*handle, whole, blocks);
        }
    }

    fn open_item(&mut self, event: &Event<'_>) -> Option<&mut Item> {
        let at = self.position(event.output_index.0, event.item_id.as_str())?;
        self.open.get_mut(at).map(|open| &mut open.item)
    }

    /// The open item that a delta is for. One that was never announced, or is of another kind, is
    /// begun.
    fn item_for(
        &mut self,
        event: &Event<'_>,
        begin: impl FnOnce(&mut Blocks) -> Item,
        is_wanted: impl FnOnce(&Item) -> bool,
        blocks: &mut Blocks,
    ) -> Option<&mut Item> {
        let at = self.position(event.output_index.0, event.item_id.as_str());
        let is_there =
            at.and_then(|at| self.open.get(at)).is_some_and(|open| is_wanted(&open.item));
        if !is_there {
            if event.delta.is_empty() {
                return None;
            }
            let index = event.output_index.0.unwrap_or_else(|| self.next_index());
            self.abandon(index, blocks);
            let item = begin(blocks);
            self.keep_open(Open { index, id: event.item_id.as_str().to_owned(), item }, blocks);
            return self.open.last_mut().map(|open| &mut open.item);
        }
        at.and_then(|at| self.open.get_mut(at)).map(|open| &mut open.item)
    }

    fn announce(&mut self, index: Option<u64>, item: &Map<String, Value>, blocks: &mut Blocks) {
        let index = index.unwrap_or_else(|| self.next_index());
        self.abandon(index, blocks);
        let id = text(item, "id").to_owned();
        let item = Item::announced(item, blocks);
        self.keep_open(Open { index, id, item }, blocks);
    }

    fn item_done(&mut self, index: Option<u64>, whole: Map<String, Value>, blocks: &mut Blocks) {
        self.any = true;
        let kind = text(&whole, "type");
        let item = match self.position(index, text(&whole, "id")) {
            Some(at) if self.open.get(at).is_some_and(|open| open.item.is_of_type(kind)) => {
                self.open.remove(at).item
            }
            Some(_) | None => {
                if let Some(index) = index {
                    self.abandon(index, blocks);
                }
                let item = Item::announced(&whole, blocks);
                self.count(&item);
                item
            }
        };
        self.has_refusal |= has_refusal(&whole);
        item.end(whole, blocks);
    }

    fn count(&mut self, item: &Item) {
        match item {
            Item::Message(_) => self.messages += 1,
            Item::Call { .. } => self.calls += 1,
            Item::Reasoning(_) | Item::Other => {}
        }
    }

    fn abandon(&mut self, index: u64, blocks: &mut Blocks) {
        if let Some(at) = self.open.iter().position(|open| open.index == index) {
            self.open.remove(at).item.abandon(blocks);
        }
    }

    fn keep_open(&mut self, open: Open, blocks: &mut Blocks) {
        self.any = true;
        self.count(&open.item);
        self.open.push(open);
        if self.open.len() > MAX_OPEN_ITEMS {
            let error = format!("more than {MAX_OPEN_ITEMS} items are open at once");
            self.fail(blocks, ProviderError::new(ErrorKind::MalformedStream, error));
        }
    }

    /// Where the open item of this place is; without a place, the one of this id, else the last.
    fn position(&self, index: Option<u64>, id: &str) -> Option<usize> {
        match index {
            Some(index) => self.open.iter().rposition(|open| open.index == index),
            None => self
                .open
                .iter()
                .rposition(|open| !id.is_empty() && open.id == id)
                .or_else(|| self.open.len().checked_sub(1)),
        }
    }

    /// A place that no open item has.
    fn next_index(&self) -> u64 {
        self.open.iter().map(|open| open.index.saturating_add(1)).max().unwrap_or_default()
    }

    /// Takes note of what a response says of itself before its end, too.
    fn note(&mut self, response: &Response<'_>, blocks: &mut Blocks) {
        if !self.is_named {
            blocks.name_model(response.model.as_str());
            self.is_named = !response.model.is_empty();
        }
        if let Some(tokens) = response.usage.0.as_ref().and_then(super::wire::Usage::tokens) {
            blocks.usage = tokens;
        }
    }

    /// The response is there as far as it will be. Its output is read where the stream did not
    /// bring it: some hosts leave it empty, others bring nothing, or not all, before it.
    fn end(&mut self, ending: Option<&str>, mut response: Response<'_>, blocks: &mut Blocks) {
        self.note(&response, blocks);
        let was_streamed = self.any;
        let (mut messages, mut calls) = (0, 0);
        for (index, item) in (0_u64..).zip(std::mem::take(&mut response.output.0)) {
            let Value::Object(whole) = item else { continue };
            let kind = text(&whole, "type");
            let is_open =
                self.open.iter().any(|open| open.index == index && open.item.is_of_type(kind));
            // Places need not be the same here, so what is told apart are the kinds.
            let is_new = match kind {
                "message" => {
                    messages += 1;
                    messages > self.messages
                }
                kind if CallForm::of(kind).is_some() => {
                    calls += 1;
                    calls > self.calls
                }
                _ => false,
            };
            if is_open || is_new || !was_streamed {
                self.item_done(Some(index), whole, blocks);
            }
        }
        for open in self.open.drain(..) {
            open.item.abandon(blocks);
        }
        let status = match response.status.as_str() {
            // A host that forgot to say so in the response says it in the event.
            "" => ending.unwrap_or("completed"),
            behind @ ("queued" | "in_progress") => ending.unwrap_or(behind),
            status => status,
        };
        let details = response.incomplete_details.0.unwrap_or_default();
        let reason = details.reason.as_str();
        let stop_raw =
            if reason.is_empty() { status.to_owned() } else { format!("{status}:{reason}") };
        blocks.stop_raw = Some(stop_raw);
        if let Some(error) = self.error.take() {
            return blocks.fail(error);
        }
        match self.stop_reason(status, reason, &response.error) {
            Ok(reason) => blocks.done(reason),
            Err(error) => blocks.fail(error),
        }
    }

    fn stop_reason(
        &self,
        status: &str,
        reason: &str,
        error: &Value,
    ) -> Result<StopReason, ProviderError> {
        match status {
            _ if is_said(error) => Err(payload::error_under("error", error)),
            "failed" => Err(ProviderError::new(
                ErrorKind::Server,
                "the provider says that the response failed, and not why",
            )),
            "cancelled" => {
                Err(ProviderError::new(ErrorKind::Server, "the provider cancelled the response"))
            }
            "completed" if self.calls > 0 => Ok(StopReason::ToolUse),
            "completed" if self.has_refusal => Ok(StopReason::Refusal),
            "incomplete" if !reason.is_empty() => stop_word::stop_reason(reason),
            _ => stop_word::stop_reason(status),
        }
    }

    /// Calls are closed with the arguments that they have. An error that the host told of before is
    /// the reason for whatever went wrong after it.
    fn fail(&mut self, blocks: &mut Blocks, error: ProviderError) {
        for open in self.open.drain(..) {
            open.item.abandon(blocks);
        }
        blocks.fail(self.error.take().unwrap_or(error));
    }
}

/// Whether there is an error; some hosts have an empty one where there is none.
fn is_said(error: &Value) -> bool {
    match error {
        Value::Object(fields) => !fields.is_empty(),
        Value::String(text) => !text.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => false,
    }
}
