//! Signals: the first one ends the run, a second one ends the program.

use agent::{AbortCause, RunCancel};
use coding_agent::Processes;
use tokio::signal::unix::{SignalKind, signal};

use crate::program::exit::Exit;
use crate::program::failure::Failure;

/// Cancels `run` at SIGINT, SIGTERM or SIGHUP for as long as the returned guard lives. A second
/// signal does not wait for anybody: it kills the session's commands and ends the program.
pub(crate) fn cancel_on_signals(
    run: RunCancel,
    processes: Processes,
) -> Result<SignalGuard, Failure> {
    let listen = |kind| {
        signal(kind).map_err(|error| Failure::failed(format!("cannot listen to signals: {error}")))
    };
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let mut hang_up = listen(SignalKind::hangup())?;
    let task = tokio::spawn(async move {
        let mut seen = false;
        loop {
            let (cause, exit) = tokio::select! {
                Some(()) = interrupt.recv() => (AbortCause::User, Exit::Interrupted),
                Some(()) = terminate.recv() => (AbortCause::Signal, Exit::Terminated),
                Some(()) = hang_up.recv() => (AbortCause::Signal, Exit::Terminated),
                else => return,
            };
            if seen {
                processes.kill_all();
                leave(exit);
            }
            seen = true;
            run.cancel(cause);
        }
    });
    Ok(SignalGuard(task))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the person asked twice: nothing is waited for, and the commands are killed by now"
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
