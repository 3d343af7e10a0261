//! The prompt: what was given as an argument, and what is piped in.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::program::failure::Failure;

/// A prompt longer than this is a mistake: it fills the window of every model.
const MAX_PROMPT_BYTES: u64 = 32 << 20;

/// How long a pipe may stay silent when there is a prompt besides. A program that starts this one and
/// never closes its end would otherwise hang it; one that is slow to start is waited for.
const SILENT_PIPE: Duration = Duration::from_secs(3);

/// The whole prompt.
pub(crate) fn read(argument: &str) -> Result<String, Failure> {
    let piped = read_piped(!argument.trim().is_empty() && argument != "-")?;
    let argument = if argument == "-" { "" } else { argument };
    let prompt = match (argument.trim().is_empty(), piped.trim().is_empty()) {
        (false, false) => format!("{argument}\n\n{piped}"),
        (false, true) => argument.to_owned(),
        (true, _) => piped,
    };
    if prompt.trim().is_empty() {
        return Err(Failure::usage("the prompt is empty")
            .hint("coding-agent -p \"what to do\", or pipe the prompt in"));
    }
    Ok(prompt)
}

fn read_piped(prompt_given: bool) -> Result<String, Failure> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return Ok(String::new());
    }
    let unreadable = |error: &io::Error| {
        Failure::usage(format!("cannot read standard input: {error}"))
            .hint("redirect it from /dev/null if there is nothing to add to the prompt")
    };
    let handle = stdin.as_fd().try_clone_to_owned().map_err(|error| unreadable(&error))?;
    let mut input = File::from(handle);
    let is_file = input.metadata().is_ok_and(|metadata| metadata.is_file());
    if prompt_given && !is_file && is_silent(&input) {
        eprintln!(
            "note: nothing came from standard input for {} s; going on without it",
            SILENT_PIPE.as_secs()
        );
        return Ok(String::new());
    }
    let mut bytes = Vec::new();
    match input.by_ref().take(MAX_PROMPT_BYTES + 1).read_to_end(&mut bytes) {
        Ok(_) => {}
        // A directory, or a descriptor that is open for writing only: there is nothing to add.
        Err(error) if prompt_given && bytes.is_empty() => {
            eprintln!("note: standard input cannot be read ({error}); going on without it");
        }
        Err(error) => return Err(unreadable(&error)),
    }
    if u64::try_from(bytes.len()).is_ok_and(|length| length > MAX_PROMPT_BYTES) {
        return Err(Failure::usage(format!(
            "the prompt is longer than {} MiB, which no model can read",
            MAX_PROMPT_BYTES >> 20
        ))
        .hint("put it into a file and ask about the file"));
    }
    String::from_utf8(bytes).map_err(|_| {
        Failure::usage("standard input is not UTF-8 text")
            .hint("put it into a file and ask about the file")
    })
}

fn is_silent(input: &File) -> bool {
    let mut fds = [PollFd::new(input, PollFlags::IN)];
    let wait = Timespec { tv_sec: SILENT_PIPE.as_secs().cast_signed(), tv_nsec: 0 };
    poll(&mut fds, Some(&wait)) == Ok(0)
}
