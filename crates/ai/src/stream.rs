//! [`EventStream`]: iterate what happens, or await what it comes to.
//!
//! The stream works while it is polled and not otherwise, so that back-pressure reaches the socket;
//! dropping it ends what feeds it. A [`Fold`] sees each event as it passes and makes the result of
//! them, so iterating and [`EventStream::result`] cannot disagree.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::{Stream, StreamExt};

/// Makes one result of a stream's events.
pub trait Fold<E, R>: Send {
    /// Takes note of an event that is about to be handed out.
    fn push(&mut self, event: &E);

    /// The result; also asked for when the stream ended before its last event.
    fn finish(self: Box<Self>) -> R;
}

/// A stream of events with a result.
///
/// `result()` may be asked for at once, half-way or after the last event: the answer is the same.
pub struct EventStream<E, R> {
    events: Pin<Box<dyn Stream<Item = E> + Send>>,
    fold: Box<dyn Fold<E, R>>,
    ended: bool,
}

impl<E, R> EventStream<E, R> {
    /// A stream over `events` whose result `fold` makes.
    pub fn new(
        events: impl Stream<Item = E> + Send + 'static,
        fold: impl Fold<E, R> + 'static,
    ) -> Self {
        Self { events: Box::pin(events), fold: Box::new(fold), ended: false }
    }

    /// Reads what is left and returns what the whole stream came to.
    pub async fn result(mut self) -> R {
        while self.next().await.is_some() {}
        self.fold.finish()
    }

    /// The same stream, with `see` called for each event as it passes.
    #[must_use]
    pub fn inspect_events(self, see: impl FnMut(&E) + Send + 'static) -> Self
    where
        E: 'static,
    {
        Self { events: Box::pin(self.events.inspect(see)), ..self }
    }

    /// The events alone, without the fold.
    pub fn into_events(self) -> Pin<Box<dyn Stream<Item = E> + Send>> {
        self.events
    }
}

impl<E, R> Stream for EventStream<E, R> {
    type Item = E;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<E>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let event = ready!(self.events.poll_next_unpin(cx));
        match &event {
            Some(event) => self.fold.push(event),
            None => self.ended = true,
        }
        Poll::Ready(event)
    }
}

impl<E, R> fmt::Debug for EventStream<E, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").field("ended", &self.ended).finish_non_exhaustive()
    }
}
