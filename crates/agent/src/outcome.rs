//! The outcome layer: every call ends in exactly one output.
//!
//! Outermost of the onion. The call runs in a task of its own, so that a panic is an error result
//! and a tool that ignores cancellation can be abandoned without being dropped in the middle: its
//! inner layers still finish, in their own time, after the run has gone on without them.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use ai::ToolErrorKind;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::task::JoinError;
use tower::{Layer, Service, ServiceExt};

use crate::tool::ToolOutput;
use crate::tool_call::{Progress, ToolCall};
use crate::tool_service::{ToolFault, ToolFaultKind};

/// How long a call may take to notice that it was cancelled before it is abandoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CancelGrace {
    /// Abandoned after this time; zero abandons at once.
    After(Duration),
    /// Never abandoned: the run waits for the tool, however long.
    Unlimited,
}

impl Default for CancelGrace {
    fn default() -> Self {
        Self::After(CANCEL_GRACE)
    }
}

/// The grace unless configured otherwise (SPEC L11): long enough for a command to be killed and to
/// say so, short enough for a person who waits.
pub const CANCEL_GRACE: Duration = Duration::from_millis(500);

/// What the model reads of a call that the run went on without.
pub const ABANDONED: &str = "cancelled, outcome unknown";

/// What the model reads of a call that never began.
pub const NOT_DISPATCHED: &str = "tool call aborted before dispatch";

/// Makes [`Outcome`] services.
#[derive(Clone, Copy, Debug, Default)]
pub struct OutcomeLayer {
    grace: CancelGrace,
}

impl OutcomeLayer {
    /// A layer that abandons calls after `grace`.
    pub fn new(grace: CancelGrace) -> Self {
        Self { grace }
    }
}

impl<S> Layer<S> for OutcomeLayer {
    type Service = Outcome<S>;

    fn layer(&self, inner: S) -> Outcome<S> {
        Outcome { inner, grace: self.grace }
    }
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Outcome<S> {
    inner: S,
    grace: CancelGrace,
}

impl<S> Service<ToolCall> for Outcome<S>
where
    S: Service<ToolCall, Response = ToolOutput, Error = ToolFault> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = ToolOutput;
    type Error = ToolFault;
    type Future = BoxFuture<'static, Result<ToolOutput, ToolFault>>;

    /// Always ready: the inner service's readiness belongs to the call and is awaited in its task.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ToolFault>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut call: ToolCall) -> Self::Future {
        let inner = self.inner.clone();
        let grace = self.grace;
        Box::pin(async move {
            if call.cancel.is_cancelled() {
                return Ok(ToolOutput::error(ToolErrorKind::Aborted, NOT_DISPATCHED));
            }
            let outer = call.cancel.clone();
            // Whoever drops this future tells the tool so.
            call.cancel = outer.child_token();
            let _told = call.cancel.clone().drop_guard();
            let reporting = Reporting::wrap(&mut call.progress);
            let mut task = tokio::spawn(inner.oneshot(call));
            let joined = tokio::select! {
                joined = &mut task => joined,
                () = outer.cancelled() => match grace {
                    CancelGrace::Unlimited => task.await,
                    CancelGrace::After(grace) => {
                        match tokio::time::timeout(grace, &mut task).await {
                            Ok(joined) => joined,
                            Err(_) => {
                                drop(reporting);
                                return Ok(ToolOutput::error(ToolErrorKind::Aborted, ABANDONED));
                            }
                        }
                    }
                },
            };
            drop(reporting);
            match joined {
                Ok(Ok(output)) => Ok(output),
                Ok(Err(fault)) => match fault.kind {
                    ToolFaultKind::Host => Err(fault),
                    ToolFaultKind::Call => {
                        Ok(ToolOutput::error(ToolErrorKind::Failed, fault.message))
                    }
                },
                Err(error) => Ok(ToolOutput::error(ToolErrorKind::Failed, describe(error))),
            }
        })
    }
}

/// While this lives, the call's reports are passed on; afterwards nobody hears of it any more. A
/// report that is being passed on is waited for, so that none arrives after the call's end.
struct Reporting(Arc<Mutex<bool>>);

impl Reporting {
    fn wrap(progress: &mut Progress) -> Self {
        let open = Arc::new(Mutex::new(true));
        if progress.is_heard() {
            let outer = progress.clone();
            let flag = Arc::clone(&open);
            *progress = Progress::new(move |partial| {
                let open = flag.lock().unwrap_or_else(PoisonError::into_inner);
                if *open {
                    outer.report(partial);
                }
            });
        }
        Self(open)
    }
}

impl Drop for Reporting {
    fn drop(&mut self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = false;
    }
}

fn describe(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(payload) => format!("the tool panicked: {}", panic_message(payload.as_ref())),
        Err(_) => "the tool's task was cancelled with the program".to_owned(),
    }
}

/// What a panic said, where it said it with a string.
pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
