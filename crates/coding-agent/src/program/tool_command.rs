//! `tool list` and `tool run`: the tools without a model.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use agent::{RunCancel, ToolCall, ToolOutput};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::program::cli::{SessionArguments, ToolRunArguments};
use crate::program::exit::Exit;
use crate::program::failure::Failure;
use crate::program::output::{Output, cancel_without_reader};
use crate::program::session::Session;
use crate::program::signals::{Signals, cancel_on_signals};

/// A line of a batch longer than this is refused: no tool takes arguments of that size.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// One line of a batch.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchLine {
    name: String,
    #[serde(default = "no_arguments")]
    args: Value,
}

fn no_arguments() -> Value {
    json!({})
}

/// Prints what the model is told of the tools.
pub(crate) fn list(arguments: &SessionArguments) -> Result<Exit, Failure> {
    let session = Session::open(arguments)?;
    session.check_mode()?;
    let mut output = Output::new();
    output.pretty_json(&session.tools.specs())?;
    output.flush()?;
    Ok(Exit::Completed)
}

/// Runs one call, or each line of a batch before the next is read.
pub(crate) async fn run(
    session: &SessionArguments,
    arguments: &ToolRunArguments,
) -> Result<Exit, Failure> {
    let session = Session::open(session)?;
    session.check_mode()?;
    session.report_notes();
    let cancel = RunCancel::new();
    let _signals = cancel_on_signals(
        Signals::listen()?,
        cancel.clone(),
        session.processes.clone(),
        session.config.cancel_grace,
    );
    cancel_without_reader(cancel.clone());
    let mut calls = Calls { session, cancel, output: Output::new(), made: 0, failed: false };
    match (&arguments.name, &arguments.args, &arguments.batch) {
        (Some(name), Some(args), _) => {
            let args = serde_json::from_str(args).map_err(|error| {
                Failure::usage(format!("--args is not JSON: {error}"))
                    .hint(r#"for example --args '{"path": "README.md"}'"#)
            })?;
            calls.make(name, args).await?;
        }
        (_, _, Some(batch)) => calls.batch(batch).await?,
        (_, _, None) => {
            return Err(Failure::usage("no call was given")
                .hint("coding-agent tool run NAME --args JSON, or --batch FILE"));
        }
    }
    Ok(calls.exit())
}

type Lines = BufReader<Box<dyn Read + Send>>;

/// The next line with its end, empty at the end of the input, and the rest.
fn read_line(mut lines: Lines) -> io::Result<(Vec<u8>, Lines)> {
    let mut line = Vec::new();
    lines.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)?;
    Ok((line, lines))
}

struct Calls {
    session: Session,
    cancel: RunCancel,
    output: Output,
    made: usize,
    failed: bool,
}

impl Calls {
    async fn batch(&mut self, file: &Path) -> Result<(), Failure> {
        let input: Box<dyn Read + Send> = if file == Path::new("-") {
            Box::new(io::stdin())
        } else {
            let file = File::open(file).map_err(|error| {
                Failure::usage(format!("cannot read {}: {error}", file.display()))
            })?;
            Box::new(file)
        };
        let mut lines: Lines = BufReader::new(input);
        for number in 1.. {
            // Whoever writes the lines may take long over one; a signal must not wait for it.
            let reading = tokio::task::spawn_blocking(move || read_line(lines));
            let Some(read) = self.cancel.token().run_until_cancelled(reading).await else { break };
            let line = match read.map_err(io::Error::other).and_then(|read| read) {
                Ok((line, rest)) => {
                    lines = rest;
                    line
                }
                Err(error) => {
                    let message = format!("line {number} of the batch cannot be read: {error}");
                    return Err(Failure::usage(message));
                }
            };
            if line.is_empty() {
                break;
            }
            if u64::try_from(line.len()).is_ok_and(|length| length >= MAX_LINE_BYTES) {
                return Err(Failure::usage(format!(
                    "line {number} of the batch is longer than {} MiB",
                    MAX_LINE_BYTES >> 20
                )));
            }
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let call: BatchLine = serde_json::from_slice(&line).map_err(|error| {
                // The reader counts lines, too, and has seen only this one.
                let error = error.to_string().replace("line 1 column", "column");
                Failure::usage(format!("line {number} of the batch is no call: {error}"))
                    .hint(r#"a line is {"name": "Read", "args": {"path": "README.md"}}"#)
            })?;
            self.make(&call.name, call.args).await?;
        }
        Ok(())
    }

    async fn make(&mut self, name: &str, args: Value) -> Result<(), Failure> {
        self.made += 1;
        let Some(tool) = self.session.tools.get(name) else {
            let known: Vec<&str> =
                self.session.tools.iter().map(|tool| tool.spec().name.as_str()).collect();
            let message = format!("there is no tool {name}; the tools are {}", known.join(", "));
            let output = ToolOutput::error(ai::ToolErrorKind::NotFound, message);
            return self.print(&output);
        };
        let mut call = ToolCall::new(format!("call_{}", self.made), name, args);
        call.cancel = self.cancel.token().child_token();
        let grace = agent::CancelGrace::After(self.session.config.cancel_grace);
        let output = tool.call_with_grace(call, grace).await.map_err(Failure::failed)?;
        self.print(&output)
    }

    fn print(&mut self, output: &ToolOutput) -> Result<(), Failure> {
        self.failed |= output.is_error;
        let mut line = json!({"content": output.content, "is_error": output.is_error});
        if let Some(kind) = output.error_kind {
            line["error_kind"] = json!(kind);
        }
        line["details"] = output.details.clone();
        self.output.json(&line)?;
        self.output.flush()
    }

    fn exit(&self) -> Exit {
        match self.cancel.cause() {
            Some(agent::AbortCause::User) => Exit::Interrupted,
            Some(agent::AbortCause::Signal) => Exit::Terminated,
            Some(_) => Exit::Failed,
            None if self.session.permission.unanswered() > 0 => Exit::Unanswered,
            None if self.failed => Exit::Failed,
            None => Exit::Completed,
        }
    }
}
