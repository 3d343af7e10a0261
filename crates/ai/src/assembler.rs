//! [`Assembler`]: the one accumulator that turns events into a message.
//!
//! Everybody who wants the message so far, or the message at the end, uses this. It trusts no
//! stream: a delta for a block that was never opened opens it, a block that was never closed is
//! closed at the end, and a stream without an end is a truncated one.

use serde_json::Map;

use crate::error::{ErrorKind, ProviderError};
use crate::event::StreamEvent;
use crate::message::{
    AssistantMessage, ContentBlock, MessageId, StopReason, Timestamp, ToolCall, Usage,
};
use crate::stream::Fold;

/// Collects a stream's events into an [`AssistantMessage`].
#[derive(Clone, Debug)]
pub struct Assembler {
    message: AssistantMessage,
    /// By stream index. Indices are small and dense; gaps stay `None`.
    blocks: Vec<Option<Block>>,
    ended: bool,
}

/// A sane stream opens a few dozen blocks; beyond this, indices are not taken at their word.
const MAX_BLOCKS: usize = 10_000;

#[derive(Clone, Debug)]
enum Block {
    Text(String),
    Thinking {
        text: String,
        signature: Option<String>,
        redacted: bool,
    },
    /// A call whose end has not come: the argument text so far.
    OpenCall {
        id: String,
        name: String,
        raw: String,
    },
    Complete(ContentBlock),
}

impl Assembler {
    /// An assembler for a message of this identity.
    pub fn new(id: MessageId, timestamp: Timestamp) -> Self {
        Self {
            message: AssistantMessage {
                id,
                timestamp,
                content: Vec::new(),
                provider: String::new(),
                api: String::new(),
                model: String::new(),
                asked_model: None,
                usage: Usage::default(),
                stop_reason: StopReason::Error,
                stop_raw: None,
                interrupted: false,
                violation: None,
                error: None,
            },
            blocks: Vec::new(),
            ended: false,
        }
    }

    /// The same for an answer of the model that was asked for by this name.
    #[must_use]
    pub fn asking(mut self, model: &str) -> Self {
        self.message.asked_model = Some(model.into());
        self
    }

    /// Takes in the next event. Costs what the event is long.
    pub fn push(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::Retry { .. } => {}
            StreamEvent::Start { provider, api, model } => {
                self.message.provider.clone_from(provider);
                self.message.api.clone_from(api);
                self.message.model.clone_from(model);
            }
            StreamEvent::TextStart { index } => {
                self.open(*index, || Block::Text(String::new()));
            }
            StreamEvent::TextDelta { index, delta } => {
                if let Some(Block::Text(text)) = self.open(*index, || Block::Text(String::new())) {
                    text.push_str(delta);
                }
            }
            StreamEvent::TextEnd { .. } => {}
            StreamEvent::ThinkingStart { index } => {
                self.open(*index, Block::empty_thinking);
            }
            StreamEvent::ThinkingDelta { index, delta } => {
                if let Some(Block::Thinking { text, .. }) = self.open(*index, Block::empty_thinking)
                {
                    text.push_str(delta);
                }
            }
            StreamEvent::ThinkingEnd { index, signature: end, redacted: withheld } => {
                if let Some(Block::Thinking { signature, redacted, .. }) =
                    self.open(*index, Block::empty_thinking)
                {
                    signature.clone_from(end);
                    *redacted = *withheld;
                }
            }
            StreamEvent::ToolcallStart { index, id, name } => {
                self.open(*index, || Block::OpenCall {
                    id: id.clone(),
                    name: name.clone(),
                    raw: String::new(),
                });
            }
            StreamEvent::ToolcallDelta { index, delta } => {
                if let Some(Block::OpenCall { raw, .. }) = self.open(*index, || Block::OpenCall {
                    id: String::new(),
                    name: String::new(),
                    raw: String::new(),
                }) {
                    raw.push_str(delta);
                }
            }
            StreamEvent::ToolcallEnd { index, call } => {
                self.set(*index, ContentBlock::ToolCall(call.clone()));
            }
            StreamEvent::Opaque { index, api, data } => {
                self.set(*index, ContentBlock::Opaque { api: api.clone(), data: data.clone() });
            }
            StreamEvent::Done { stop_reason, stop_raw, usage, violation } => {
                self.ended = true;
                self.message.stop_reason = *stop_reason;
                self.message.stop_raw.clone_from(stop_raw);
                self.message.usage = *usage;
                self.message.violation.clone_from(violation);
            }
            StreamEvent::Error { error, stop_raw, usage } => {
                self.ended = true;
                self.message.stop_reason = match error.kind {
                    ErrorKind::Aborted => StopReason::Aborted,
                    _ => StopReason::Error,
                };
                self.message.stop_raw.clone_from(stop_raw);
                self.message.usage = *usage;
                self.message.error = Some(error.clone());
            }
        }
    }

    /// The message so far, as it would be drawn now: with open blocks, and with calls whose
    /// arguments are still arriving left without arguments.
    pub fn snapshot(&self) -> AssistantMessage {
        let mut message = self.message.clone();
        message.content = self
            .blocks
            .iter()
            .flatten()
            .map(|block| match block {
                Block::OpenCall { id, name, .. } => ContentBlock::ToolCall(ToolCall {
                    id: id.clone(),
                    name: name.clone(),
                    arguments: Map::new(),
                    raw_arguments: None,
                    arguments_error: None,
                    arguments_note: None,
                    signature: None,
                }),
                Block::Text(_) | Block::Thinking { .. } | Block::Complete(_) => {
                    block.clone().close()
                }
            })
            .collect();
        message
    }

    /// The argument text of the call at `index` so far, if that call is still open.
    pub fn partial_arguments(&self, index: usize) -> Option<&str> {
        match self.blocks.get(index)?.as_ref()? {
            Block::OpenCall { raw, .. } => Some(raw),
            Block::Text(_) | Block::Thinking { .. } | Block::Complete(_) => None,
        }
    }

    /// The finished message. Without an end event the stream was cut: the message is an error of
    /// kind `truncated_stream`.
    pub fn finish(mut self) -> AssistantMessage {
        if !self.ended {
            self.message.stop_reason = StopReason::Error;
            self.message.error = Some(ProviderError::new(
                ErrorKind::TruncatedStream,
                "the stream ended without its end marker",
            ));
        }
        self.close()
    }

    /// The message of a stream that was cancelled: text and thinking as far as they came, marked
    /// interrupted. Half a tool call is not kept (SPEC L12).
    pub fn abort(mut self) -> AssistantMessage {
        self.message.stop_reason = StopReason::Aborted;
        self.message.interrupted = true;
        self.message.error =
            Some(ProviderError::new(ErrorKind::Aborted, "the request was cancelled"));
        self.close()
    }

    /// A call that never ended is kept only when the answer as a whole arrived; in a broken or
    /// cancelled one it is half a call, which nobody may run or replay.
    fn close(mut self) -> AssistantMessage {
        let whole = self.message.error.is_none();
        let model = self.message.model.as_str();
        // What is said twice, or of an answer that never began, says nothing.
        self.message.asked_model.take_if(|asked| model.is_empty() || **asked == *model);
        self.message.content = self
            .blocks
            .into_iter()
            .flatten()
            .filter(|block| whole || !matches!(block, Block::OpenCall { .. }))
            .filter(|block| !block.is_empty())
            .map(Block::close)
            .collect();
        self.message
    }

    fn open(&mut self, index: usize, block: impl FnOnce() -> Block) -> Option<&mut Block> {
        if index >= MAX_BLOCKS {
            return None;
        }
        if self.blocks.len() <= index {
            self.blocks.resize_with(index + 1, || None);
        }
        self.blocks.get_mut(index).map(|slot| slot.get_or_insert_with(block))
    }

    fn set(&mut self, index: usize, content: ContentBlock) {
        let block = Block::Complete(content);
        if let Some(slot) = self.open(index, || block.clone()) {
            *slot = block;
        }
    }
}

impl Block {
    fn empty_thinking() -> Self {
        Self::Thinking { text: String::new(), signature: None, redacted: false }
    }

    /// Opened and never filled: dropped, so that it is never replayed (SPEC M8).
    fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Thinking { text, signature, .. } => text.is_empty() && signature.is_none(),
            Self::OpenCall { .. } | Self::Complete(_) => false,
        }
    }

    fn close(self) -> ContentBlock {
        match self {
            Self::Text(text) => ContentBlock::Text { text },
            Self::Thinking { text, signature, redacted } => {
                ContentBlock::Thinking { text, signature, redacted }
            }
            Self::OpenCall { id, name, raw } => {
                ContentBlock::ToolCall(ToolCall::parse(id, name, raw))
            }
            Self::Complete(content) => content,
        }
    }
}

impl Fold<StreamEvent, AssistantMessage> for Assembler {
    fn push(&mut self, event: &StreamEvent) {
        Self::push(self, event);
    }

    fn finish(self: Box<Self>) -> AssistantMessage {
        Self::finish(*self)
    }
}
