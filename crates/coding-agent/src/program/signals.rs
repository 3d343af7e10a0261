//! Signals: the first one ends the run, a second one or the passing of time ends the program.

use std::time::Duration;

use agent::{AbortCause, RunCancel};
use coding_agent::Processes;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::sleep;

use crate::program::exit::Exit;
use crate::program::failure::Failure;

/// How much longer than the loop's grace a cancelled program may take to end. What is left by then is
/// an answer that nobody reads: a full pipe would keep the program for ever.
const LEAVE_AFTER: Duration = Duration::from_secs(2);

/// Cancels `run` at SIGINT, SIGTERM or SIGHUP for as long as the returned guard lives. A second
/// signal, or an end that does not come within `grace` and a little more, does not wait for anybody:
/// it kills the session's commands and ends the program. `signals` are listened to before the run
/// begins: one that came in between would end the program and leave the run's processes.
pub(crate) fn cancel_on_signals(
    mut signals: Signals,
    run: RunCancel,
    processes: Processes,
    grace: Duration,
) -> SignalGuard {
    let task = tokio::spawn(async move {
        let (cause, exit) = signals.next().await;
        run.cancel(cause);
        let patience = sleep(grace.saturating_add(LEAVE_AFTER));
        let exit = tokio::select! {
            (_, second) = signals.next() => second,
            () = patience => exit,
        };
        processes.kill_all();
        leave(exit);
    });
    SignalGuard(task)
}

/// The signals that end the program. Once it listens to them they do nothing by themselves any more,
/// so whatever takes time has to listen.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    pub(crate) fn listen() -> Result<Self, Failure> {
        let listen = |kind| {
            signal(kind)
                .map_err(|error| Failure::failed(format!("cannot listen to signals: {error}")))
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    /// The next one, and what the program ends with.
    pub(crate) async fn next(&mut self) -> (AbortCause, Exit) {
        tokio::select! {
            Some(()) = self.interrupt.recv() => (AbortCause::User, Exit::Interrupted),
            Some(()) = self.terminate.recv() => (AbortCause::Signal, Exit::Terminated),
            Some(()) = self.hang_up.recv() => (AbortCause::Signal, Exit::Terminated),
            else => std::future::pending().await,
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the person asked twice or waited long enough, and the commands are killed by now"
)]
fn leave(exit: Exit) -> ! {
    std::process::exit(i32::from(exit.number()))
}

/// Stops listening when it is dropped.
pub(crate) struct SignalGuard(tokio::task::JoinHandle<()>);

impl Drop for SignalGuard {
    fn drop(&mut self) {
        self.0.abort();
    }
}
