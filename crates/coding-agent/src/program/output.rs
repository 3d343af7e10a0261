//! Standard output: lines of JSON and text, for readers that may go away.

use std::io::{self, BufWriter, StdoutLock, Write};

use agent::{AbortCause, RunCancel};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::FileType;
use rustix::io::Errno;
use serde::Serialize;

use crate::program::failure::Failure;

/// How much stack a thread needs that makes one system call.
const WATCHING_STACK: usize = 64 * 1024;

/// Cancels `run` when nobody can read standard output any more: a command of ten minutes would
/// otherwise run on for a reader that went away in its first second.
///
/// A thread of its own waits for that, since a descriptor that is shared with other programs must not
/// be made non-blocking. It ends with the program.
pub(crate) fn cancel_without_reader(run: RunCancel) {
    let stdout = io::stdout();
    // Only these lose their readers; a file or a terminal needs no thread.
    let kind = rustix::fs::fstat(&stdout).map(|stat| FileType::from_raw_mode(stat.st_mode));
    if !matches!(kind, Ok(FileType::Fifo | FileType::Socket)) {
        return;
    }
    let watching = move || {
        let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
        while let Ok(_) | Err(Errno::INTR) = poll(&mut fds, None) {
            if fds.iter().any(|fd| fd.revents().intersects(PollFlags::ERR | PollFlags::HUP)) {
                run.cancel(AbortCause::Host);
                return;
            }
        }
    };
    // Without it a lost reader is noticed at the next write.
    let _ = std::thread::Builder::new().stack_size(WATCHING_STACK).spawn(watching);
}

/// Writes to standard output. Nothing is seen before [`Output::flush`].
pub(crate) struct Output(BufWriter<StdoutLock<'static>>);

impl Output {
    pub(crate) fn new() -> Self {
        Self(BufWriter::with_capacity(64 * 1024, io::stdout().lock()))
    }

    /// One line of JSON.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        serde_json::to_writer(&mut self.0, value)
            .map_err(|error| Failure::output(&error.into()))?;
        self.0.write_all(b"\n").map_err(|error| Failure::output(&error))
    }

    /// JSON for people.
    pub(crate) fn pretty_json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        serde_json::to_writer_pretty(&mut self.0, value)
            .map_err(|error| Failure::output(&error.into()))?;
        self.0.write_all(b"\n").map_err(|error| Failure::output(&error))
    }

    /// Text as it is, and a line end if it has none.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Failure> {
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        write!(self.0, "{text}{end}").map_err(|error| Failure::output(&error))
    }

    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.0.flush().map_err(|error| Failure::output(&error))
    }
}
