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
