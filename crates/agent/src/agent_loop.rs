//! [`agent_loop`]: the stateless entry. A context goes in, events and new messages come out, and
//! the caller's own context stays as it was.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ai::{EventStream, Fold, Message, Usage, UserMessage};
use futures::{Stream, StreamExt};

use crate::cancel::RunCancel;
use crate::config::AgentLoopConfig;
use crate::context::AgentContext;
use crate::driver::Driver;
use crate::end_reason::{AbortCause, EndReason};
use crate::event::AgentEvent;
use crate::watch::{Attention, Broadcast, Watcher};

/// Runs the model on `prompts` in `context` until it is done and nothing waits.
///
/// The run is a task of its own that goes on whether or not anybody reads its events. Dropping the
/// [`Run`] asks it to end, with the cause `dropped`; it still closes its calls first. Must be called
/// within a Tokio runtime.
pub fn agent_loop(
    prompts: Vec<UserMessage>,
    context: AgentContext,
    config: AgentLoopConfig,
) -> Run {
    let cancel = RunCancel::new();
    let events = Broadcast::default();
    let watcher = events.watch();
    let run = Run {
        attention: watcher.attention(),
        events: EventStream::new(watcher, RunFold::default()),
        broadcast: events.clone(),
        guard: CancelOnDrop(cancel.clone()),
    };
    tokio::spawn(Driver::new(prompts, context, config, cancel, events).run());
    run
}

/// A run that goes on: a stream of its events, with [`RunOutcome`] as its result.
#[derive(Debug)]
pub struct Run {
    events: EventStream<AgentEvent, RunOutcome>,
    attention: Attention,
    broadcast: Broadcast,
    guard: CancelOnDrop,
}

impl Run {
    /// What the run came to, when it has. Events that were not read are passed over.
    pub async fn result(self) -> RunOutcome {
        let Self { events, guard, .. } = self;
        let outcome = events.result().await;
        drop(guard);
        outcome
    }

    /// The same run, its own events without `message_update`: for a reader who wants what is whole.
    /// It is not even woken while an answer grows.
    #[must_use]
    pub fn without_message_updates(self) -> Self {
        self.attention.leave_out_message_updates();
        self
    }

    /// A second stream of the events from now on. Whatever its reader does changes nothing.
    pub fn watch(&self) -> Watcher {
        self.broadcast.watch()
    }

    /// A handle that cancels this run and may outlive it.
    pub fn cancel(&self) -> RunCancel {
        self.guard.0.clone()
    }
}

impl Stream for Run {
    type Item = AgentEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        self.events.poll_next_unpin(cx)
    }
}

#[derive(Debug)]
struct CancelOnDrop(RunCancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel(AbortCause::Dropped);
    }
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq)]
pub struct RunOutcome {
    /// What the run added to the history, and nothing else.
    pub messages: Vec<Arc<Message>>,
    /// Why it ended.
    pub reason: EndReason,
    /// Tokens of all its answers, discarded ones included.
    pub usage: Usage,
}

/// Takes the outcome from the last event. Without one the runtime was shut down under the run.
#[derive(Default)]
struct RunFold(Option<RunOutcome>);

impl Fold<AgentEvent, RunOutcome> for RunFold {
    fn push(&mut self, event: &AgentEvent) {
        if let AgentEvent::AgentEnd { messages, reason, usage, .. } = event {
            self.0 = Some(RunOutcome {
                messages: messages.clone(),
                reason: reason.clone(),
                usage: *usage,
            });
        }
    }

    fn finish(self: Box<Self>) -> RunOutcome {
        self.0.unwrap_or(RunOutcome {
            messages: Vec::new(),
            reason: EndReason::Aborted { cause: AbortCause::Host },
            usage: Usage::default(),
        })
    }
}
