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
mod compat;
mod error;
mod event;
mod history;
mod message;
mod provider;
mod request;
mod stream;
mod validate;

pub use api::{Api, UnknownApi};
pub use assembler::Assembler;
pub use compat::Compat;
pub use error::{ErrorKind, ProviderError};
pub use event::StreamEvent;
pub use history::History;
pub use message::{
    AssistantMessage, ContentBlock, Message, MessageId, Origin, StopReason, Timestamp, ToolCall,
    ToolErrorKind, ToolResultMessage, Usage, UserMessage, Violation,
};
pub use provider::{ModelStream, Provider};
pub use request::{Request, ToolSpec};
pub use stream::{EventStream, Fold};
pub use validate::{ArgumentValidator, InvalidArguments};
