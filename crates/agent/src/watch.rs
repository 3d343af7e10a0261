//! Watching: how events get from a run to whoever wants to see them.
//!
//! A run never waits for a watcher. Each has a bounded buffer of its own, in which the deltas of one
//! block merge while it is not read; one that falls behind all the same loses events and is told
//! from which number on. Dropping a watcher, or never reading it, changes nothing.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use ai::StreamEvent;
use futures::Stream;

use crate::event::AgentEvent;

/// Events that one unread buffer holds at most. Deltas merge, so this many are thousands of calls.
pub const MAX_BUFFERED_EVENTS: usize = 10_000;

/// Bytes of merged deltas that one unread buffer holds at most.
pub const MAX_BUFFERED_BYTES: usize = 32 << 20;

/// The writing end: tells every watcher.
#[derive(Clone, Default)]
pub(crate) struct Broadcast(Arc<Mutex<Channel>>);

#[derive(Default)]
struct Channel {
    sent: u64,
    closed: bool,
    watchers: Vec<Weak<Mutex<Buffer>>>,
}

#[derive(Default)]
struct Buffer {
    events: VecDeque<AgentEvent>,
    bytes: usize,
    closed: bool,
    updates: Updates,
    waker: Option<Waker>,
}

/// Whether a reader is told of an answer while it grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Updates {
    #[default]
    Told,
    LeftOut,
}

/// A stream of a run's events. It ends when the run has.
#[derive(Debug)]
pub struct Watcher {
    buffer: Arc<Mutex<Buffer>>,
}

impl fmt::Debug for Broadcast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broadcast").field("sent", &lock(&self.0).sent).finish_non_exhaustive()
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("events", &self.events.len()).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watcher {
    /// The same stream without `message_update`: for a reader who wants what is whole. It is not
    /// even woken while an answer grows.
    #[must_use]
    pub fn without_message_updates(self) -> Self {
        self.attention().leave_out_message_updates();
        self
    }

    /// A say in what this watcher is told, for whoever passes it on.
    pub(crate) fn attention(&self) -> Attention {
        Attention(Arc::clone(&self.buffer))
    }
}

/// A say in what a watcher is told. It keeps the watcher's buffer, so it goes where the watcher goes.
#[derive(Debug)]
pub(crate) struct Attention(Arc<Mutex<Buffer>>);

impl Attention {
    pub(crate) fn leave_out_message_updates(&self) {
        lock(&self.0).updates = Updates::LeftOut;
    }
}

impl Broadcast {
    /// A watcher of everything from now on.
    pub(crate) fn watch(&self) -> Watcher {
        let mut channel = lock(&self.0);
        let buffer = Arc::new(Mutex::new(Buffer { closed: channel.closed, ..Buffer::default() }));
        channel.watchers.push(Arc::downgrade(&buffer));
        Watcher { buffer }
    }

    /// Tells every watcher.
    pub(crate) fn send(&self, event: AgentEvent) {
        let mut channel = lock(&self.0);
        channel.sent += 1;
        let seq = channel.sent;
        channel.watchers.retain(|watcher| watcher.strong_count() > 0);
        let mut event = Some(event);
        let last = channel.watchers.len().saturating_sub(1);
        for (position, watcher) in channel.watchers.iter().enumerate() {
            let Some(buffer) = watcher.upgrade() else { continue };
            // The last one gets the event itself; usually there is only one.
            let event = if position == last { event.take() } else { event.clone() };
            if let Some(event) = event {
                let waker = lock(&buffer).push(event, seq);
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
        }
    }

    /// Ends every watcher's stream.
    pub(crate) fn close(&self) {
        let mut channel = lock(&self.0);
        channel.closed = true;
        for buffer in channel.watchers.iter().filter_map(Weak::upgrade) {
            let waker = {
                let mut buffer = lock(&buffer);
                buffer.closed = true;
                buffer.waker.take()
            };
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

impl Buffer {
    fn push(&mut self, event: AgentEvent, seq: u64) -> Option<Waker> {
        if self.updates == Updates::LeftOut && matches!(event, AgentEvent::MessageUpdate { .. }) {
            return None;
        }
        let bytes = delta_bytes(&event);
        if self.bytes + bytes > MAX_BUFFERED_BYTES {
            self.lag(seq);
        }
        if let Some(event) = self.merge(event) {
            if self.events.len() >= MAX_BUFFERED_EVENTS {
                self.lag(seq);
            }
            self.events.push_back(event);
        }
        self.bytes += bytes;
        self.waker.take()
    }

    /// Grows the last unread event by a delta of the same block, or puts a tool's newer output in
    /// the place of its older one; else gives the event back.
    fn merge(&mut self, event: AgentEvent) -> Option<AgentEvent> {
        match (self.events.back_mut(), event) {
            (
                Some(AgentEvent::MessageUpdate { message_id: last_id, event: last }),
                AgentEvent::MessageUpdate { message_id, event },
            ) if message_id == *last_id => append_delta(last, event)
                .map(|event| AgentEvent::MessageUpdate { message_id, event }),
            (
                Some(AgentEvent::ToolExecutionUpdate {
                    tool_call_id: last_id, partial: last, ..
                }),
                AgentEvent::ToolExecutionUpdate { tool_call_id, partial, .. },
            ) if tool_call_id == *last_id => {
                *last = partial;
                None
            }
            (_, event) => Some(event),
        }
    }

    /// Gives up what is unread. What comes from now on follows a note that says what is missing.
    fn lag(&mut self, seq: u64) {
        let earlier = self.events.iter().find_map(|event| match event {
            AgentEvent::Lagged { from_seq } => Some(*from_seq),
            _ => None,
        });
        let lost = u64::try_from(self.events.len()).unwrap_or(u64::MAX);
        let from_seq = earlier.unwrap_or(seq.saturating_sub(lost));
        self.events.clear();
        self.bytes = 0;
        self.events.push_back(AgentEvent::Lagged { from_seq });
    }
}

/// Appends to `last` if both are deltas of one block; else gives the event back.
fn append_delta(last: &mut StreamEvent, event: StreamEvent) -> Option<StreamEvent> {
    match (last, event) {
        (
            StreamEvent::TextDelta { index, delta },
            StreamEvent::TextDelta { index: i, delta: new },
        )
        | (
            StreamEvent::ThinkingDelta { index, delta },
            StreamEvent::ThinkingDelta { index: i, delta: new },
        )
        | (
            StreamEvent::ToolcallDelta { index, delta },
            StreamEvent::ToolcallDelta { index: i, delta: new },
        ) if *index == i => {
            delta.push_str(&new);
            None
        }
        (_, event) => Some(event),
    }
}

fn delta_bytes(event: &AgentEvent) -> usize {
    match event {
        AgentEvent::MessageUpdate {
            event:
                StreamEvent::TextDelta { delta, .. }
                | StreamEvent::ThinkingDelta { delta, .. }
                | StreamEvent::ToolcallDelta { delta, .. },
            ..
        } => delta.len(),
        _ => 0,
    }
}

impl Stream for Watcher {
    type Item = AgentEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        let mut buffer = lock(&self.buffer);
        if let Some(event) = buffer.events.pop_front() {
            buffer.bytes = buffer.bytes.saturating_sub(delta_bytes(&event));
            return Poll::Ready(Some(event));
        }
        if buffer.closed {
            return Poll::Ready(None);
        }
        buffer.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}
