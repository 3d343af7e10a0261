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

use ai::{ContentBlock, StreamEvent};
use futures::Stream;

use crate::event::AgentEvent;
use crate::tool_call::Partial;

/// Events that one unread buffer holds at most. Deltas merge, so this many are thousands of calls.
pub const MAX_BUFFERED_EVENTS: usize = 10_000;

/// Bytes of deltas and of tools' progress that one unread buffer holds at most. What other events
/// hold is shared with the history.
pub const MAX_BUFFERED_BYTES: usize = 32 << 20;

/// Over how many unread progress reports of other calls a newer one of the same call still finds its
/// older one: more calls than usually work at once.
const MERGED_OVER: usize = 64;

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
    unread: VecDeque<Unread>,
    bytes: usize,
    closed: bool,
    updates: Updates,
    waker: Option<Waker>,
}

/// An event that waits to be read, perhaps several merged into one.
struct Unread {
    /// The number of the first that went into it.
    seq: u64,
    event: AgentEvent,
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
        f.debug_struct("Buffer").field("unread", &self.unread.len()).finish_non_exhaustive()
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

    /// Tells every watcher. After the end nobody is told anything, whoever still has something to
    /// say.
    pub(crate) fn send(&self, event: AgentEvent) {
        let mut channel = lock(&self.0);
        if channel.closed {
            return;
        }
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
        if self.bytes + own_bytes(&event) > MAX_BUFFERED_BYTES {
            self.lag(seq);
        }
        if let Some(event) = self.merge(event) {
            if self.unread.len() >= MAX_BUFFERED_EVENTS {
                self.lag(seq);
            }
            self.bytes += own_bytes(&event);
            self.unread.push_back(Unread { seq, event });
        }
        self.waker.take()
    }

    /// Grows the last unread event by a delta of the same block, or puts a tool's newer output in
    /// the place of its older one; else gives the event back.
    fn merge(&mut self, event: AgentEvent) -> Option<AgentEvent> {
        match event {
            AgentEvent::MessageUpdate { message_id, event } => {
                if let Some(Unread {
                    event: AgentEvent::MessageUpdate { message_id: last_id, event: last },
                    ..
                }) = self.unread.back_mut()
                    && message_id == *last_id
                {
                    let before = delta_bytes(last);
                    let rest = append_delta(last, event);
                    self.bytes += delta_bytes(last) - before;
                    return rest.map(|event| AgentEvent::MessageUpdate { message_id, event });
                }
                Some(AgentEvent::MessageUpdate { message_id, event })
            }
            AgentEvent::ToolExecutionUpdate { tool_call_id, tool_name, partial } => {
                let unread = self.unread.iter_mut().rev().take(MERGED_OVER);
                let older = unread.map_while(|unread| match &mut unread.event {
                    AgentEvent::ToolExecutionUpdate { tool_call_id, partial, .. } => {
                        Some((&*tool_call_id, partial))
                    }
                    _ => None,
                });
                if let Some((_, older)) = older.into_iter().find(|(id, _)| **id == tool_call_id) {
                    self.bytes = self.bytes.saturating_sub(partial_bytes(older));
                    self.bytes += partial_bytes(&partial);
                    *older = partial;
                    return None;
                }
                Some(AgentEvent::ToolExecutionUpdate { tool_call_id, tool_name, partial })
            }
            other => Some(other),
        }
    }

    /// Gives up what is unread. What comes from now on follows a note that says what is missing.
    fn lag(&mut self, seq: u64) {
        let first = self.unread.front().map_or(seq, |unread| match unread.event {
            AgentEvent::Lagged { from_seq } => from_seq,
            _ => unread.seq,
        });
        self.unread.clear();
        self.bytes = 0;
        self.unread.push_back(Unread { seq, event: AgentEvent::Lagged { from_seq: first } });
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

/// What an event holds that is nobody else's.
fn own_bytes(event: &AgentEvent) -> usize {
    match event {
        AgentEvent::MessageUpdate { event, .. } => delta_bytes(event),
        AgentEvent::ToolExecutionUpdate { partial, .. } => partial_bytes(partial),
        _ => 0,
    }
}

fn delta_bytes(event: &StreamEvent) -> usize {
    match event {
        StreamEvent::TextDelta { delta, .. }
        | StreamEvent::ThinkingDelta { delta, .. }
        | StreamEvent::ToolcallDelta { delta, .. } => delta.len(),
        _ => 0,
    }
}

fn partial_bytes(partial: &Partial) -> usize {
    partial
        .content
        .iter()
        .map(|block| match block {
            ContentBlock::Text { text } | ContentBlock::Thinking { text, .. } => text.len(),
            ContentBlock::Image { data, .. } => data.len(),
            _ => 0,
        })
        .sum()
}

impl Stream for Watcher {
    type Item = AgentEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        let mut buffer = lock(&self.buffer);
        if let Some(Unread { event, .. }) = buffer.unread.pop_front() {
            buffer.bytes = buffer.bytes.saturating_sub(own_bytes(&event));
            return Poll::Ready(Some(event));
        }
        if buffer.closed {
            return Poll::Ready(None);
        }
        buffer.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, StreamExt};
    use serde_json::Value;

    use super::*;

    fn turn(turn: u32) -> AgentEvent {
        AgentEvent::TurnStart { run: 1, turn }
    }

    fn delta(text: &str) -> AgentEvent {
        let event = StreamEvent::TextDelta { index: 0, delta: text.to_owned() };
        AgentEvent::MessageUpdate { message_id: "m".into(), event }
    }

    fn progress(call: &str, text: &str) -> AgentEvent {
        let content = vec![ContentBlock::text(text)];
        AgentEvent::ToolExecutionUpdate {
            tool_call_id: call.into(),
            tool_name: "Bash".into(),
            partial: Partial { content, details: Value::Null },
        }
    }

    fn heard(watcher: &mut Watcher) -> Vec<AgentEvent> {
        std::iter::from_fn(|| watcher.next().now_or_never().flatten()).collect()
    }

    /// SPEC L14: the note names the first missing event, however many were merged into one.
    #[test]
    fn a_watcher_that_lags_is_told_from_where() {
        let events = Broadcast::default();
        let mut watcher = events.watch();
        events.send(turn(1));
        assert_eq!(heard(&mut watcher), [turn(1)]);
        events.send(turn(2));
        for _ in 0..100 {
            events.send(delta("x"));
        }
        let large = "y".repeat(MAX_BUFFERED_BYTES);
        events.send(delta(&large));
        assert_eq!(heard(&mut watcher), [AgentEvent::Lagged { from_seq: 2 }, delta(&large)]);
        let many = u32::try_from(MAX_BUFFERED_EVENTS).unwrap();
        (0..=2 * many).for_each(|number| events.send(turn(number)));
        let last = heard(&mut watcher);
        assert_eq!(last.first(), Some(&AgentEvent::Lagged { from_seq: 104 }));
        assert_eq!(last.last(), Some(&turn(2 * many)));
    }

    /// SPEC L14: calls that report in turns do not fill the buffer.
    #[test]
    fn newer_progress_takes_the_place_of_older() {
        let events = Broadcast::default();
        let mut watcher = events.watch();
        for number in 0..3 {
            events.send(progress("a", &format!("a{number}")));
            events.send(progress("b", &format!("b{number}")));
        }
        events.send(turn(1));
        events.send(progress("a", "last"));
        let expected = [progress("a", "a2"), progress("b", "b2"), turn(1), progress("a", "last")];
        assert_eq!(heard(&mut watcher), expected);
        assert_eq!(lock(&watcher.buffer).bytes, 0);
    }

    /// SPEC L2: an abandoned call that still has something to say says it to nobody.
    #[test]
    fn nothing_is_heard_after_the_end() {
        let events = Broadcast::default();
        let mut watcher = events.watch();
        events.send(turn(1));
        events.close();
        events.send(turn(2));
        assert_eq!(heard(&mut watcher), [turn(1)]);
        assert_eq!(heard(&mut events.watch()), []);
    }
}
