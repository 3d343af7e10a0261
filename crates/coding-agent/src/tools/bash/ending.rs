//! How a command ended, in words for the model and as data for programs.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use ai::ToolErrorKind;
use rustix::process::Signal;
use serde_json::{Value, json};

/// The signals that commands die of, by the names that people know.
const SIGNALS: [(Signal, &str); 16] = [
    (Signal::HUP, "SIGHUP"),
    (Signal::INT, "SIGINT"),
    (Signal::QUIT, "SIGQUIT"),
    (Signal::ILL, "SIGILL"),
    (Signal::TRAP, "SIGTRAP"),
    (Signal::ABORT, "SIGABRT"),
    (Signal::BUS, "SIGBUS"),
    (Signal::FPE, "SIGFPE"),
    (Signal::KILL, "SIGKILL"),
    (Signal::USR1, "SIGUSR1"),
    (Signal::SEGV, "SIGSEGV"),
    (Signal::USR2, "SIGUSR2"),
    (Signal::PIPE, "SIGPIPE"),
    (Signal::ALARM, "SIGALRM"),
    (Signal::TERM, "SIGTERM"),
    (Signal::XCPU, "SIGXCPU"),
];

/// Why a command that was still running was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Its time was up.
    TimedOut(Duration),
    /// The call was cancelled.
    Cancelled,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// By itself, with this code.
    Exited(i32),
    /// By a signal that was not ours.
    Signalled(i32),
    /// By us.
    Ended(Cause),
}

impl Ending {
    pub(super) fn new(status: ExitStatus, cause: Option<Cause>) -> Self {
        match (cause, status.code(), status.signal()) {
            (Some(cause), ..) => Self::Ended(cause),
            (None, Some(code), _) => Self::Exited(code),
            // A status is a code or a signal.
            (None, None, signal) => Self::Signalled(signal.unwrap_or_default()),
        }
    }

    pub(super) fn error_kind(self) -> Option<ToolErrorKind> {
        match self {
            Self::Exited(0) => None,
            Self::Exited(_) | Self::Signalled(_) => Some(ToolErrorKind::Failed),
            Self::Ended(Cause::TimedOut(_)) => Some(ToolErrorKind::TimedOut),
            Self::Ended(Cause::Cancelled) => Some(ToolErrorKind::Aborted),
        }
    }

    /// `exit 1`, `killed by SIGSEGV`, `timed out after 2 s`, `cancelled`.
    pub(super) fn words(self) -> String {
        match self {
            Self::Exited(code) => format!("exit {code}"),
            Self::Signalled(signal) => format!("killed by {}", name(signal)),
            Self::Ended(Cause::TimedOut(after)) => format!("timed out after {}", seconds(after)),
            Self::Ended(Cause::Cancelled) => "cancelled".to_owned(),
        }
    }

    /// `{ended: exited|signalled|timed_out|cancelled, exit_code, signal}`.
    pub(super) fn details(self) -> Value {
        let (ended, code, signal) = match self {
            Self::Exited(code) => ("exited", Some(code), None),
            Self::Signalled(signal) => ("signalled", None, Some(name(signal))),
            Self::Ended(Cause::TimedOut(_)) => ("timed_out", None, None),
            Self::Ended(Cause::Cancelled) => ("cancelled", None, None),
        };
        json!({"ended": ended, "exit_code": code, "signal": signal})
    }
}

/// Seconds with as many digits as mean something.
pub(super) fn seconds(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if duration.subsec_millis() == 0 && duration.as_secs() > 0 {
        format!("{} s", duration.as_secs())
    } else if seconds < 0.1 {
        format!("{seconds:.2} s")
    } else {
        format!("{seconds:.1} s")
    }
}

fn name(signal: i32) -> String {
    let known = SIGNALS.iter().find(|(known, _)| known.as_raw() == signal);
    known.map_or_else(|| format!("signal {signal}"), |(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC B6
    #[test]
    fn every_ending_has_its_words() {
        let timed_out = Cause::TimedOut(Duration::from_millis(1_500));
        // Raw statuses as wait(2) gives them: the code in the second byte, a signal in the first.
        let cases = [
            (0, None, "exit 0", None),
            (7 << 8, None, "exit 7", Some(ToolErrorKind::Failed)),
            (11, None, "killed by SIGSEGV", Some(ToolErrorKind::Failed)),
            (63, None, "killed by signal 63", Some(ToolErrorKind::Failed)),
            (15, Some(timed_out), "timed out after 1.5 s", Some(ToolErrorKind::TimedOut)),
            (0, Some(Cause::Cancelled), "cancelled", Some(ToolErrorKind::Aborted)),
        ];
        for (status, cause, words, kind) in cases {
            let ending = Ending::new(ExitStatus::from_raw(status), cause);
            assert_eq!((ending.words().as_str(), ending.error_kind()), (words, kind));
        }
    }

    #[test]
    fn durations_are_short() {
        let cases =
            [(4, "0.00 s"), (40, "0.04 s"), (123, "0.1 s"), (2_000, "2 s"), (61_500, "61.5 s")];
        for (millis, words) in cases {
            assert_eq!(seconds(Duration::from_millis(millis)), words);
        }
    }
}
