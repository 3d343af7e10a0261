//! Every model provider's stream, turned into one vocabulary.
//!
//! A [`Provider`] answers a [`Request`] with a [`ModelStream`]: iterate its [`StreamEvent`]s as they
//! come, or await the [`AssistantMessage`] that they come to. Decoding is sans-IO, so a captured
//! stream decodes without a network.
//!
//! This crate knows HTTP and wire formats. It knows nothing of tools being run, of sessions or of
//! workspaces.

#[cfg(feature = "http")]
mod alarm;
mod api;
mod api_key;
mod assembler;
mod aws_event_stream;
mod builtin_providers;
mod compat;
mod decode;
mod encode;
mod error;
pub mod error_response;
mod event;
#[cfg(feature = "http")]
mod flood;
mod history;
mod json_array;
mod lines;
mod message;
#[cfg(feature = "http")]
mod model_service;
#[cfg(feature = "http")]
mod offered_names;
mod provider;
mod provider_entry;
mod providers;
mod replay;
mod request;
#[cfg(feature = "http")]
mod retry;
mod retry_hint;
mod sse;
mod stream;
mod timeouts;
mod tool_names;
#[cfg(feature = "http")]
mod transport;
mod validate;
mod violation;
mod violation_watch;

pub use api::{Api, UnknownApi};
pub use api_key::ApiKey;
pub use assembler::Assembler;
pub use builtin_providers::{BUILTIN_PROVIDERS, BuiltinProvider};
pub use compat::{Compat, MaxTokensField, ReasoningReplay, SystemRole, ToolIdForm};
pub use decode::{DecodeOptions, Framing, StreamDecoder, UnknownFraming};
pub use encode::encode_request;
pub use error::{ErrorKind, ProviderError};
pub use event::StreamEvent;
pub use history::History;
pub use message::{
    AssistantMessage, ContentBlock, Message, MessageId, Origin, StopReason, Timestamp, ToolCall,
    ToolErrorKind, ToolResultMessage, Usage, UserMessage, Violation,
};
#[cfg(feature = "http")]
pub use model_service::{BoxModelService, ModelService};
pub use provider::{ModelStream, Provider};
pub use provider_entry::{AuthScheme, KeyNeed, ProviderEntry, shown_address};
pub use request::{Request, ToolSpec};
#[cfg(feature = "http")]
pub use retry::{RetryDecision, RetryLayer, RetryPolicy, RetryService};
pub use sse::{SseDecoder, SseItem, TooLong};
pub use stream::{EventStream, Fold};
pub use timeouts::Timeouts;
#[cfg(feature = "http")]
pub use transport::{HttpClient, HttpProvider};
pub use validate::{ArgumentProblem, ArgumentValidator, InvalidArguments, InvalidSchema};
pub use violation::find_violation;
pub use violation_watch::ViolationWatch;
