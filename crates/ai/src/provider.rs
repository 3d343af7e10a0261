//! [`Provider`]: whoever can answer a request with a stream.

use std::sync::Arc;

use crate::event::StreamEvent;
use crate::message::AssistantMessage;
use crate::request::Request;
use crate::stream::EventStream;

/// A model's answer: events, or the message that they come to.
pub type ModelStream = EventStream<StreamEvent, AssistantMessage>;

/// Somebody who answers requests.
///
/// Answering never fails to return: a failure is an event, and the stream's result is always a
/// message, with `stop_reason` `error` or `aborted` when it failed. Dropping the stream ends the
/// request and frees its connection.
///
/// ```
/// use ai::{Assembler, EventStream, MessageId, ModelStream, Provider, Request, StopReason};
/// use ai::{StreamEvent, Timestamp, Usage};
///
/// /// Answers everything with the name of the model that was asked.
/// struct Parrot;
///
/// impl Provider for Parrot {
///     fn name(&self) -> &str {
///         "parrot"
///     }
///
///     fn api(&self) -> &str {
///         "parrot-talk"
///     }
///
///     fn stream(&self, request: Request) -> ModelStream {
///         let events = [
///             StreamEvent::Start {
///                 provider: self.name().into(),
///                 api: self.api().into(),
///                 model: request.model.clone(),
///             },
///             StreamEvent::TextStart { index: 0 },
///             StreamEvent::TextDelta { index: 0, delta: request.model },
///             StreamEvent::TextEnd { index: 0 },
///             StreamEvent::Done {
///                 stop_reason: StopReason::Stop,
///                 stop_raw: None,
///                 usage: Usage::default(),
///                 violation: None,
///             },
///         ];
///         EventStream::new(
///             futures::stream::iter(events),
///             Assembler::new(MessageId::random(), Timestamp::now()),
///         )
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let message = Parrot.stream(Request::new("polly-1", Default::default())).result().await;
/// assert_eq!(message.text(), "polly-1");
/// # });
/// ```
pub trait Provider: Send + Sync {
    /// The name of the provider entry, such as `anthropic`.
    fn name(&self) -> &str;

    /// The wire format, such as `anthropic-messages`.
    fn api(&self) -> &str;

    /// Asks. Nothing is sent before the stream is polled.
    fn stream(&self, request: Request) -> ModelStream;
}

impl<P: Provider + ?Sized> Provider for Arc<P> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn api(&self) -> &str {
        (**self).api()
    }

    fn stream(&self, request: Request) -> ModelStream {
        (**self).stream(request)
    }
}
