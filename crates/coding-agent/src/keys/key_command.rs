//! [`KeyCommand`]: a command of the user's that prints a key.
//!
//! It is the user's own configuration, never a project's, and runs with the user's environment. It
//! runs in a process group of its own, which is killed when its time is up or nobody waits for it any
//! more, and in `/`, so that nothing in a project (a version manager's file, a `.netrc`) takes part.
//! It has no standard input: what wants to ask a person has to do so by a window or an agent.

use std::fmt;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::time::timeout;

use crate::keys::cover::cover_keys;
use crate::keys::secret::{NotAKey, Secret};

/// How long a command may take: a password manager that unlocks takes a second or two, and the person
/// waits for the first answer meanwhile.
pub const KEY_COMMAND_TIMEOUT: Duration = Duration::from_secs(10);

/// How much of either output is read: more than any key, little enough for a command gone wild.
const MAX_OUTPUT_BYTES: usize = 64 * 1024;

/// How long output is still read after the command has ended. What it left running in the background
/// may hold the pipe for ever.
const DRAIN: Duration = Duration::from_millis(200);

/// How much of what the command complains about is shown, in characters: the cause, not the manual.
const MAX_SHOWN_CHARS: usize = 500;

/// Words of the command's output that are shorter than this may stand in any message.
const SHORTEST_COVERED: usize = 4;

/// A command that prints a key. The command itself may hold a secret, so nothing shows it either.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyCommand(String);

/// Why a command gave no key. Never holds what it printed.
#[derive(Debug, thiserror::Error)]
pub enum KeyCommandError {
    /// There is no shell, or no process can be made.
    #[error("it cannot be started: {0}")]
    Unstarted(io::Error),
    /// It was killed.
    #[error("it did not end within {} s", KEY_COMMAND_TIMEOUT.as_secs())]
    TimedOut,
    /// It says itself that it failed.
    #[error("it failed with {status}{said}")]
    Failed {
        /// How it ended.
        status: ExitStatus,
        /// What it said on standard error, with keys covered; begins with `: ` unless empty.
        said: String,
    },
    /// It printed more than is read.
    #[error("it printed more than {} KiB", MAX_OUTPUT_BYTES / 1024)]
    TooMuch,
    /// What it printed is no key.
    #[error("what it printed is no key: {problem}{said}")]
    NoKey {
        /// What is wrong with it.
        problem: NotAKey,
        /// What it said on standard error, as above.
        said: String,
    },
}

impl KeyCommand {
    /// A command for `/bin/sh -c`.
    pub fn new(command: impl Into<String>) -> Self {
        Self(command.into())
    }

    /// The command itself, for the file that keeps it.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }

    /// Runs it. Dropping the future kills it.
    ///
    /// # Errors
    /// When it prints no key within its bounds.
    pub async fn run(&self) -> Result<Secret, KeyCommandError> {
        let mut child = Command::new("/bin/sh")
            .arg("-c")
            .arg(&self.0)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(KeyCommandError::Unstarted)?;
        let group = Group::led_by(child.id());
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (mut printed, mut said) = (Vec::new(), Vec::new());
        let ended = timeout(KEY_COMMAND_TIMEOUT, async {
            let reads = futures::future::join(read(stdout, &mut printed), read(stderr, &mut said));
            let mut reads = std::pin::pin!(reads);
            tokio::select! {
                biased;
                _ = &mut reads => child.wait().await,
                status = child.wait() => {
                    // Late output is worth this long and no error.
                    let _ = timeout(DRAIN, reads).await;
                    status
                }
            }
        });
        let status = match ended.await {
            Ok(status) => status.map_err(KeyCommandError::Unstarted)?,
            Err(_) => return Err(KeyCommandError::TimedOut),
        };
        group.has_ended();
        if printed.len() > MAX_OUTPUT_BYTES {
            return Err(KeyCommandError::TooMuch);
        }
        let printed = String::from_utf8_lossy(&printed);
        let said = || shown(&String::from_utf8_lossy(&said), &printed);
        if !status.success() {
            return Err(KeyCommandError::Failed { status, said: said() });
        }
        Secret::parse(&printed).map_err(|problem| KeyCommandError::NoKey { problem, said: said() })
    }
}

/// Reads to the end or the bound, whichever comes first. A pipe that breaks is at its end.
async fn read(pipe: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>) {
    if let Some(pipe) = pipe {
        let one_more = u64::try_from(MAX_OUTPUT_BYTES).unwrap_or(u64::MAX).saturating_add(1);
        let _ = pipe.take(one_more).read_to_end(into).await;
    }
}

/// What a command said, on one line, without what it printed and what looks like a key.
fn shown(said: &str, printed: &str) -> String {
    let mut said = said.to_owned();
    let words = printed.split_whitespace().filter(|word| word.len() >= SHORTEST_COVERED);
    for word in words {
        if said.contains(word) {
            said = said.replace(word, "[key]");
        }
    }
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        return String::new();
    }
    let line = cover_keys(&lines.join("; "));
    let short: String = line
        .chars()
        .take(MAX_SHOWN_CHARS)
        .map(|char| if char.is_control() { '\u{fffd}' } else { char })
        .collect();
    let cut = if short.len() < line.len() { "…" } else { "" };
    format!(": {short}{cut}")
}

/// Kills the command's process group unless the command has ended by itself.
struct Group(Option<Pid>);

impl Group {
    fn led_by(leader: Option<u32>) -> Self {
        Self(leader.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    /// The leader was taken note of: its number may be given to another process.
    fn has_ended(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // A group that is gone needs no signal.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

impl fmt::Debug for KeyCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyCommand(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn run(command: &str) -> Result<String, String> {
        let key = KeyCommand::new(command).run().await;
        key.map(|key| key.reveal().to_owned()).map_err(|error| error.to_string())
    }

    /// SPEC M20
    #[tokio::test]
    async fn a_command_prints_the_key_or_says_why_not() {
        for (command, expected) in [
            ("echo sk-1234", Ok("sk-1234")),
            ("pwd", Ok("/")),
            ("printf '  sk-1234\\r\\n\\n'; echo noise >&2", Ok("sk-1234")),
            ("echo sk-1234; sleep 60 &", Ok("sk-1234")),
            ("true", Err("what it printed is no key: it is empty")),
            ("echo locked >&2", Err("what it printed is no key: it is empty: locked")),
            (
                "echo two words",
                Err(
                    "what it printed is no key: it holds white space or characters that no key has",
                ),
            ),
            ("exit 3", Err("it failed with exit status: 3")),
            (
                "echo hunter22; echo 'no entry hunter22,'; echo 'not hunter22 nor sk-abcdefgh12345678' >&2; exit 1",
                Err("it failed with exit status: 1: not [key] nor [key]"),
            ),
            (
                "printf 'one\\n\\033[31mtwo\\n' >&2; exit 1",
                Err("it failed with exit status: 1: one; \u{fffd}[31mtwo"),
            ),
            ("kill -9 $$", Err("it failed with signal: 9 (SIGKILL)")),
            ("yes", Err("it printed more than 64 KiB")),
        ] {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(run(command).await, expected, "{command}");
        }
        assert!(!format!("{:?}", KeyCommand::new("echo sk-1234")).contains("sk-1234"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_command_that_hangs_is_given_up() {
        assert_eq!(run("sleep 60").await, Err("it did not end within 10 s".to_owned()));
    }

    /// What a command started ends with it when nobody waits for it any more, its time being up or
    /// the run being cancelled.
    #[tokio::test]
    async fn a_command_that_is_given_up_is_killed_with_all_that_it_started() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(made.success());
        let command = format!("exec >{}; sleep 60 & echo up; sleep 60", fifo.display());
        let (is_up, up) = tokio::sync::oneshot::channel();
        let reader = std::thread::spawn(move || {
            let mut fifo = std::fs::File::open(fifo).unwrap();
            let mut line = [0; 3];
            std::io::Read::read_exact(&mut fifo, &mut line).unwrap();
            is_up.send(line).unwrap();
            // Ends when nobody holds the other end any more.
            std::io::Read::read(&mut fifo, &mut line).unwrap()
        });
        tokio::select! {
            ended = run(&command) => panic!("{ended:?}"),
            line = up => assert_eq!(&line.unwrap(), b"up\n"),
        }
        assert_eq!(reader.join().unwrap(), 0);
    }
}
