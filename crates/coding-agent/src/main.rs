//! The program `coding-agent`.

mod program;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use crate::program::cli::Cli;
use crate::program::{Exit, Failure};

fn main() -> ExitCode {
    let closed = program::stdout_is_closed();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    if closed {
        Failure::usage("standard output is closed: nobody would see the answer")
            .hint("redirect it to a file, or to /dev/null if it is not wanted")
            .report();
        return Exit::Usage.into();
    }
    log_if_asked();
    // The loop, the model's socket and the tools are few tasks that mostly wait: on one thread they
    // hand over to each other without waking another. What blocks is `spawn_blocking`'s, and what
    // writes to standard output, which may be stuck, is this thread's.
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            Failure::failed(format!("the program cannot start its threads: {error}")).report();
            return Exit::Failed.into();
        }
    };
    let exit = match runtime.block_on(program::run(cli)) {
        Ok(exit) => exit,
        Err(failure) => {
            failure.report();
            failure.exit
        }
    };
    // A thread that still waits for standard input must not keep the program.
    runtime.shutdown_background();
    exit.into()
}

/// Help and version are answers; everything else is a mistake.
fn usage(error: &clap::Error) -> ExitCode {
    let exit = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Completed,
        _ => Exit::Usage,
    };
    // Where even this cannot be printed, the exit code has to do.
    let _ = error.print();
    exit.into()
}

/// Diagnostics for developers, on standard error, only where the variable asks for them.
fn log_if_asked() {
    let Ok(level) = std::env::var("CODING_AGENT_LOG") else { return };
    match level.parse::<tracing::Level>() {
        Ok(level) => {
            tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).init();
        }
        Err(_) => eprintln!("note: CODING_AGENT_LOG takes error, warn, info, debug or trace"),
    }
}
