//! One command from its start to its end.
//!
//! [`Course`] decides, from what has happened and the time, what is to be done; [`Started`] waits
//! for things to happen and does it.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use agent::{ToolCall, ToolError, ToolOutput};
use ai::ContentBlock;
use rustix::process::Pid;
use serde_json::Value;
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep_until};

use super::Bash;
use super::ending::{Cause, Ending, seconds};
use super::environment;
use super::output::Output;
use super::processes::Running;

/// How much is read at once: what a pipe holds.
const READ_BYTES: usize = 64 * 1024;

/// How long a finished command's output is still waited for when something keeps the pipe open:
/// what was written before the end arrives within this time.
const DRAIN: Duration = Duration::from_millis(100);

/// How much is read at most after that time: what the pipe holds by then, a few times over, but not
/// what a busy child goes on writing.
const MAX_DRAIN_BYTES: usize = 1024 * 1024;

/// How often a group that was asked to end is looked at, once its leader has ended.
const GROUP_POLL: Duration = Duration::from_millis(10);

/// How long a killed command may take to be gone. Only one that hangs in the kernel takes longer.
const KILLED_WAIT: Duration = Duration::from_secs(2);

/// A command that runs.
pub(super) struct Started {
    child: Child,
    pipe: Receiver,
    group: Running,
    cwd: PathBuf,
    at: Instant,
}

/// Starts `command` under bash, or under sh where there is no bash.
pub(super) fn start(bash: &Bash, command: &str) -> Result<Started, ToolError> {
    let cwd = bash.cwd.clone();
    if command.contains('\0') {
        return Err(ToolError::failed("the command holds a NUL character"));
    }
    if !cwd.is_dir() {
        let cwd = cwd.display();
        return Err(ToolError::failed(format!(
            "the working directory {cwd} does not exist any more"
        )));
    }
    let at = Instant::now();
    let spawned = match spawn(bash, "bash", command) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => spawn(bash, "sh", command),
        other => other,
    };
    let (child, pipe) = spawned.map_err(|error| {
        ToolError::failed(match error.kind() {
            io::ErrorKind::ArgumentListTooLong => {
                "the command is too long: put it into a file and run that".to_owned()
            }
            _ => format!("cannot start a shell: {error}"),
        })
    })?;
    // A child that is not yet waited for has a number, and it is never zero.
    let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let id = id.ok_or_else(|| ToolError::failed("cannot start a shell: it has no process id"))?;
    Ok(Started { child, pipe, group: bash.processes.add(id), cwd, at })
}

fn spawn(bash: &Bash, shell: &str, command: &str) -> io::Result<(Child, Receiver)> {
    let (reader, writer) = io::pipe()?;
    let reader = Receiver::from_owned_fd(OwnedFd::from(reader))?;
    let child = Command::new(environment::on_path(&bash.environment, shell))
        .arg("-c")
        .arg(command)
        .current_dir(&bash.cwd)
        .env_clear()
        .envs(bash.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .process_group(0)
        .spawn()?;
    Ok((child, reader))
}

/// Where a command is on its way to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    /// It runs, until its time is up.
    Running { deadline: Instant },
    /// Its group was asked to end and is killed at this time.
    Asked { kill_at: Instant, leader: Leader },
    /// Its group was killed; the leader is waited for until this time.
    Killed { give_up: Instant },
    /// Its leader has ended; the rest of its output is waited for until this time.
    Draining { until: Instant },
    /// Nothing is waited for any more.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leader {
    Runs,
    Ended,
}

impl Course {
    fn running(self) -> bool {
        match self {
            Self::Running { .. } => true,
            Self::Asked { .. } | Self::Killed { .. } | Self::Draining { .. } | Self::Over => false,
        }
    }

    /// When to look again, if nothing happens before.
    fn wake(self, now: Instant) -> Instant {
        match self {
            Self::Running { deadline } => deadline,
            Self::Asked { kill_at, leader: Leader::Runs } => kill_at,
            Self::Asked { kill_at, leader: Leader::Ended } => kill_at.min(now + GROUP_POLL),
            Self::Killed { give_up } => give_up,
            Self::Draining { until } => until,
            Self::Over => now,
        }
    }

    /// The leader has ended.
    fn leader_ended(self, now: Instant) -> Self {
        match self {
            Self::Running { .. } | Self::Killed { .. } => Self::Draining { until: now + DRAIN },
            Self::Asked { kill_at, .. } => Self::Asked { kill_at, leader: Leader::Ended },
            Self::Draining { .. } | Self::Over => self,
        }
    }

    /// The pipe has no writers any more.
    fn pipe_closed(self) -> Self {
        match self {
            Self::Draining { .. } => Self::Over,
            Self::Running { .. } | Self::Asked { .. } | Self::Killed { .. } | Self::Over => self,
        }
    }
}

/// What is known of a command when nothing is waited for any more.
struct Outcome {
    status: Option<ExitStatus>,
    cause: Option<Cause>,
    /// Something still holds the pipe.
    open: bool,
}

impl Started {
    /// Waits for the command's end, or brings it about.
    pub(super) async fn finish(
        mut self,
        timeout: Duration,
        kill_grace: Duration,
        call: &ToolCall,
    ) -> Result<ToolOutput, ToolError> {
        let mut output = Output::new();
        let outcome =
            self.attend(timeout, kill_grace, call, &mut output).await.map_err(|error| {
                ToolError::failed(format!("the command was lost sight of and killed: {error}"))
            })?;
        Ok(self.result(outcome, output))
    }

    async fn attend(
        &mut self,
        timeout: Duration,
        kill_grace: Duration,
        call: &ToolCall,
        output: &mut Output,
    ) -> io::Result<Outcome> {
        let mut buffer = vec![0; READ_BYTES];
        let mut course = Course::Running { deadline: self.at + timeout };
        let mut outcome = Outcome { status: None, cause: None, open: true };
        while course != Course::Over {
            let wake = course.wake(Instant::now());
            let report = output.report_due(&call.progress);
            // In this order: a command that prints without end is still ended.
            tokio::select! {
                biased;
                () = call.cancel.cancelled(), if course.running() => {
                    outcome.cause = Some(Cause::Cancelled);
                    self.group.terminate();
                    course = Course::Asked { kill_at: Instant::now() + kill_grace, leader: Leader::Runs };
                }
                () = sleep_until(wake) => {
                    course = self.woken(course, kill_grace, &mut outcome.cause);
                    if course == Course::Over && outcome.open {
                        outcome.open = self.drain(&mut buffer, output)?;
                    }
                }
                () = sleep_until(report.unwrap_or(wake)), if report.is_some() => {
                    output.report(&call.progress);
                }
                status = self.child.wait(), if outcome.status.is_none() => {
                    outcome.status = Some(status?);
                    self.group.leader_is_gone();
                    course = course.leader_ended(Instant::now());
                    if let Course::Asked { .. } = course && !self.group.has_members() {
                        course = Course::Draining { until: Instant::now() + DRAIN };
                    }
                    if !outcome.open {
                        course = course.pipe_closed();
                    }
                }
                ready = self.pipe.readable(), if outcome.open => {
                    ready?;
                    match self.pipe.try_read(&mut buffer) {
                        Ok(0) => {
                            outcome.open = false;
                            course = course.pipe_closed();
                        }
                        Ok(count) => output.push(&buffer[..count]),
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        Ok(outcome)
    }

    /// What a course becomes when its time has come.
    fn woken(&self, course: Course, kill_grace: Duration, cause: &mut Option<Cause>) -> Course {
        let now = Instant::now();
        match course {
            Course::Running { deadline } => {
                *cause = Some(Cause::TimedOut(deadline - self.at));
                self.group.terminate();
                Course::Asked { kill_at: now + kill_grace, leader: Leader::Runs }
            }
            Course::Asked { kill_at, leader } => {
                if now >= kill_at {
                    self.group.kill();
                    return match leader {
                        Leader::Runs => Course::Killed { give_up: now + KILLED_WAIT },
                        Leader::Ended => Course::Draining { until: now + DRAIN },
                    };
                }
                match self.group.has_members() {
                    true => course,
                    false => Course::Draining { until: now + DRAIN },
                }
            }
            Course::Killed { .. } | Course::Draining { .. } | Course::Over => Course::Over,
        }
    }

    /// Reads what is in the pipe now, and tells whether something still holds it.
    fn drain(&mut self, buffer: &mut [u8], output: &mut Output) -> io::Result<bool> {
        let mut left = MAX_DRAIN_BYTES;
        while left > 0 {
            match self.pipe.try_read(buffer) {
                Ok(0) => return Ok(false),
                Ok(count) => {
                    output.push(&buffer[..count]);
                    left = left.saturating_sub(count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn result(self, outcome: Outcome, output: Output) -> ToolOutput {
        let Self { pipe, group, cwd, at, .. } = self;
        let Outcome { status, cause, open } = outcome;
        let took = at.elapsed();
        let group_id = group.id().as_raw_nonzero();
        // What was killed may still be on its way out; only what nobody killed is left running.
        let left_running = match (status, cause) {
            (None, _) => true,
            (Some(_), Some(_)) => false,
            (Some(_), None) => group.has_members(),
        };
        let reader = open.then(|| tokio::spawn(discard(pipe)).abort_handle());
        let mut notes = Vec::new();
        match (status, left_running) {
            (None, _) => notes.push(format!(
                "[it could not be killed: process group {group_id} may still be running]"
            )),
            (Some(_), true) => notes.push(format!(
                "[still running in the background: process group {group_id}; what it prints now is discarded]"
            )),
            (Some(_), false) if open => notes.push(
                "[a process that left the command's process group still holds its output; what it prints now is discarded]"
                    .to_owned(),
            ),
            (Some(_), false) => {}
        }
        if left_running {
            group.leave(reader);
        }
        let ending = match (status, cause) {
            (Some(status), cause) => Ending::new(status, cause),
            (None, cause) => Ending::Ended(cause.unwrap_or(Cause::Cancelled)),
        };
        let (text, printed) = output.finish();
        let mut details = ending.details();
        if let (Value::Object(details), Value::Object(printed)) = (&mut details, printed) {
            details.extend(printed);
            let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            details.insert("duration_ms".to_owned(), millis.into());
            details.insert("cwd".to_owned(), cwd.to_string_lossy().into());
            details.insert("left_running".to_owned(), left_running.into());
        }
        let text = with_notes(text, notes, ending, took, &cwd);
        let error_kind = ending.error_kind();
        ToolOutput {
            content: vec![ContentBlock::text(text)],
            is_error: error_kind.is_some(),
            error_kind,
            details,
            ..ToolOutput::default()
        }
    }
}

/// The output first, then how it ended: `[exit 0 · 0.1 s · in /work]`.
fn with_notes(
    mut text: String,
    notes: Vec<String>,
    ending: Ending,
    took: Duration,
    cwd: &Path,
) -> String {
    if text.is_empty() {
        text.push_str("(no output)");
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    for note in notes {
        text.push_str(&note);
        text.push('\n');
    }
    text.push_str(&format!("[{} · {} · in {}]", ending.words(), seconds(took), cwd.display()));
    text
}

/// Reads until nobody writes any more, so that what runs on does not die of a closed pipe.
async fn discard(pipe: Receiver) {
    let mut buffer = vec![0; READ_BYTES];
    while pipe.readable().await.is_ok() {
        match pipe.try_read(&mut buffer) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}
