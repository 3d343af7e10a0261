//! The project's chores, under one entry: `cargo xtask COMMAND`.
//!
//! Each command is one module. This one owns the choice among them and knows nothing of what they do.

use std::process::ExitCode;

use anyhow::{Result, bail};

mod bench;
mod ci;
mod command;
mod doc;
mod lint;
mod mutate;
mod spec;
mod test;
mod workspace;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test [unit|suite|streams|all] [CARGO TEST ARGS]   tests; all by default, a name filters them
       [--all-splits]                               the recorded streams cut at every position
  lint                                              formatting, clippy, documentation, file rules
  spec [--check]                                    behaviours of docs/behaviours.md without a test
  bench [--variant openai-chat] [SCENARIO…] [OPTIONS]
                                                    beside other agents, on their mock model
  bench criterion [CARGO BENCH ARGS]                the workspace's own benches
  mutate [--cases N | --case N]                     mutated streams, a million unless told otherwise
  doc [CARGO DOC ARGS]                              documentation, warnings denied
  ci                                                lint, spec --check and test, as one answer
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<()> {
    let Some((command, rest)) = args.split_first() else {
        bail!("no command given\n\n{USAGE}");
    };
    match command.as_str() {
        "test" => test::run(rest),
        "lint" => lint::run(rest),
        "spec" => spec::run(rest),
        "bench" => bench::run(rest),
        "mutate" => mutate::run(rest),
        "doc" => doc::run(rest),
        "ci" => ci::run(rest),
        "help" | "--help" | "-h" => {
            print!("{USAGE}");
            Ok(())
        }
        other => bail!("unknown command `{other}`\n\n{USAGE}"),
    }
}
