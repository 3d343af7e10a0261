//! Every model provider's stream, turned into one vocabulary.
//!
//! A [`Provider`] answers a [`Request`] with a [`ModelStream`]: iterate its [`StreamEvent`]s as they
//! come, or await the [`AssistantMessage`] that they come to. Four APIs are spoken ([`Api`]), and some
//! twenty hosts of them are known by name ([`BUILTIN_PROVIDERS`]); any other host of one of the APIs is
//! a [`ProviderEntry`] away. A history that one provider made is accepted by every other.
//!
//! # Streaming from any provider
//!
//! The provider's name is data, so this function asks all of them.
//!
//! ```no_run
//! use ai::{ApiKey, BuiltinProvider, HttpClient, HttpProvider, Message, Origin, Provider, Request};
//! use ai::{StreamEvent, ThinkingLevel, Timeouts, UserMessage};
//! use futures::StreamExt;
//!
//! async fn ask(provider: &str, model: &str, question: &str) -> Option<()> {
//!     let builtin = BuiltinProvider::find(provider)?;
//!     let mut entry = builtin.entry();
//!     // This crate reads no environment: where a key comes from is the caller's business.
//!     let key = builtin.key_variables.iter().find_map(|name| std::env::var(name).ok());
//!     entry.api_key = key.map(ApiKey::new);
//!
//!     let provider = HttpProvider::new(entry, HttpClient::new(Timeouts::default()));
//!     let question = UserMessage::text(question, Origin::User);
//!     let mut request = Request::new(model, [Message::from(question)].into_iter().collect());
//!     request.thinking = Some(ThinkingLevel::Low);
//!
//!     let mut stream = provider.stream(request);
//!     while let Some(event) = stream.next().await {
//!         match event {
//!             StreamEvent::TextDelta { delta, .. } => print!("{delta}"),
//!             StreamEvent::ToolcallEnd { call, .. } => println!("calls {}", call.name),
//!             // A failure is an event like any other; the stream's result says the same.
//!             StreamEvent::Error { error, .. } => eprintln!("{error}"),
//!             _ => {}
//!         }
//!     }
//!     // Nothing is asked again: what was iterated is what the result is made of.
//!     let answer = stream.result().await;
//!     println!("{} tokens", answer.usage.output);
//!     Some(())
//! }
//! ```
//!
//! Retries, limits of rate and fallbacks are `tower` layers around a [`ModelService`]; [`RetryLayer`]
//! and [`SpendMeter`] are here, others are the caller's.
//!
//! # Assembling a message
//!
//! Events carry only what is new. [`Assembler`] is what makes a message of them, whoever they come
//! from; here from bytes that somebody captured, without a network.
//!
//! ```
//! use ai::{Api, Assembler, DecodeOptions, Fold, MessageId, StopReason, StreamDecoder, Timestamp};
//!
//! let captured = br#"data: {"choices":[{"delta":{"content":"4"}}]}
//!
//! data: {"choices":[{"delta":{"content":"2"},"finish_reason":"stop"}]}
//!
//! "#;
//! let mut decoder = StreamDecoder::new(Api::OpenaiChat, DecodeOptions::default());
//! let mut assembler = Assembler::new(MessageId::random(), Timestamp::now());
//! let mut events = Vec::new();
//! // However the bytes are cut.
//! for piece in captured.chunks(7) {
//!     decoder.push(piece, &mut events);
//!     events.drain(..).for_each(|event| assembler.push(&event));
//! }
//! decoder.finish(&mut events);
//! events.drain(..).for_each(|event| assembler.push(&event));
//!
//! let message = Box::new(assembler).finish();
//! assert_eq!((message.text().as_str(), message.stop_reason), ("42", StopReason::Stop));
//! ```
//!
//! # A provider of one's own
//!
//! A host that speaks one of the four APIs needs no code: a [`ProviderEntry`] with its [`Compat`] says
//! what is particular about it. What speaks something else implements [`Provider`]; its events go
//! through an [`EventStream`], and everything above works as with any other.
//!
//! ```
//! use ai::{Assembler, EventStream, Message, MessageId, ModelStream, Provider, Request, StopReason};
//! use ai::{StreamEvent, Timestamp, Usage};
//!
//! /// Says how long the conversation is.
//! struct Counter;
//!
//! impl Provider for Counter {
//!     fn name(&self) -> &str {
//!         "counter"
//!     }
//!
//!     fn api(&self) -> &str {
//!         "counting"
//!     }
//!
//!     // Nothing happens before the stream is polled, and dropping it ends what it does.
//!     fn stream(&self, request: Request) -> ModelStream {
//!         let delta = format!("{} messages", request.messages.len());
//!         let events = [
//!             StreamEvent::Start { provider: "counter".into(), api: "counting".into(), model: request.model },
//!             StreamEvent::TextStart { index: 0 },
//!             StreamEvent::TextDelta { index: 0, delta },
//!             StreamEvent::TextEnd { index: 0 },
//!             StreamEvent::Done {
//!                 stop_reason: StopReason::Stop,
//!                 stop_raw: None,
//!                 usage: Usage::default(),
//!                 violation: None,
//!             },
//!         ];
//!         let result = Assembler::new(MessageId::random(), Timestamp::now());
//!         EventStream::new(futures::stream::iter(events), result)
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let answer = Counter.stream(Request::new("any", Default::default())).result().await;
//! assert_eq!(answer.text(), "0 messages");
//! # });
//! ```
//!
//! # What is where
//!
//! | for | look at |
//! | --- | --- |
//! | asking | [`Request`], [`ToolSpec`], [`ThinkingLevel`], [`HttpProvider`], [`Timeouts`] |
//! | answers | [`StreamEvent`], [`AssistantMessage`], [`ContentBlock`], [`StopReason`], [`ProviderError`] |
//! | hosts | [`ProviderEntry`], [`Compat`], [`BUILTIN_PROVIDERS`] |
//! | models | [`catalogue`], [`ModelInfo`], [`Price`] |
//! | captured traffic | [`StreamDecoder`], [`encode_request`], [`error_response`] |
//! | tools | [`ArgumentValidator`], [`find_violation`] |
//!
//! The feature `http`, on by default, is the transport; without it types, encoders and decoders remain,
//! which need no network, no TLS and no runtime.
//!
//! This crate knows HTTP and wire formats. It knows nothing of tools being run, of sessions or of
//! workspaces, and has no global state: a client made by the caller is the only thing that lasts.

#[cfg(feature = "http")]
mod alarm;
mod api;
mod api_key;
mod assembler;
mod aws_event_stream;
mod builtin_providers;
pub mod catalogue;
mod compat;
mod cost;
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
mod model_list;
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
mod schema_form;
#[cfg(feature = "http")]
mod spend_meter;
mod sse;
mod stream;
mod thinking;
mod timeouts;
mod tool_choice;
mod tool_names;
#[cfg(feature = "http")]
mod transport;
mod validate;
mod violation;
mod violation_watch;

pub use api::{Api, UnknownApi};
pub use api_key::ApiKey;
pub use assembler::Assembler;
pub use builtin_providers::{BUILTIN_PROVIDERS, BuiltinProvider, HostVariable};
pub use catalogue::{Modality, ModelInfo};
pub use compat::{
    Compat, ImageTypes, MaxTokensField, ReasoningReplay, SchemaForm, SystemRole, ThinkingField,
    ToolIdForm,
};
pub use cost::{InvalidPrice, Price, PriceAbove};
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
#[cfg(feature = "http")]
pub use spend_meter::{SpendMeter, SpendService};
pub use sse::{SseDecoder, SseItem, TooLong};
pub use stream::{EventStream, Fold};
pub use thinking::{
    InvalidThinking, LevelValue, Thinking, ThinkingForm, ThinkingLevel, ThinkingPlan,
    UnknownThinkingLevel,
};
pub use timeouts::Timeouts;
pub use tool_choice::ToolChoice;
#[cfg(feature = "http")]
pub use transport::{HttpClient, HttpProvider};
pub use validate::{ArgumentProblem, ArgumentValidator, InvalidArguments, InvalidSchema};
pub use violation::find_violation;
pub use violation_watch::ViolationWatch;
