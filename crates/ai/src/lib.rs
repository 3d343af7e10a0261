//! Every model provider's stream, turned into one vocabulary.
//!
//! A [`Provider`] answers a [`Request`] with a [`ModelStream`]: iterate its [`StreamEvent`]s as they
//! come, or await the [`AssistantMessage`] that they come to. Decoding is sans-IO, so a captured
//! stream decodes without a network.
//!
//! This crate knows HTTP and wire formats. It knows nothing of tools being run, of sessions or of
//! workspaces.

mod api;
mod assembler;
mod aws_event_stream;
mod compat;
mod decode;
mod error;
mod error_response;
mod event;
mod history;
mod lines;
mod message;
mod provider;
mod providers;
mod request;
mod sse;
mod stream;

pub use api::{Api, UnknownApi};
pub use assembler::Assembler;
pub use compat::Compat;
pub use decode::{DecodeOptions, Framing, StreamDecoder, UnknownFraming};
pub use error::{ErrorKind, ProviderError};
pub use event::StreamEvent;
pub use history::History;
pub use message::{
    AssistantMessage, ContentBlock, Message, MessageId, Origin, StopReason, Timestamp, ToolCall,
    ToolErrorKind, ToolResultMessage, Usage, UserMessage, Violation,
};
pub use provider::{ModelStream, Provider};
pub use request::{Request, ToolSpec};
pub use sse::{SseDecoder, SseItem, TooLong};
pub use stream::{EventStream, Fold};
