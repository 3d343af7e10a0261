//! `cargo xtask mutate`: the suite that mutates streams, for long.
//!
//! Owns how many cases that is and that they run in release. What a case is, the suite knows.

use anyhow::{Context, Result, bail};

use crate::command;
use crate::workspace;

/// What is tried when nobody says how much: minutes of a release build.
const CASES: u64 = 1_000_000;

/// Where the suite reads how many cases to try, and which one to try alone.
const CASES_VARIABLE: &str = "MUTATIONS";
const CASE_VARIABLE: &str = "MUTATION";

/// Tries many cases, or one again.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let (variable, number) = choice(args)?;
    let root = workspace::root()?;
    let mut cargo = command::cargo(&root);
    cargo
        .args(["test", "--release", "--package", workspace::SUITES, "--test", "decoding"])
        .args(["mutations", "--", "--nocapture"])
        .env(variable, number.to_string());
    if let Ok(shared) = workspace::shared(&root) {
        cargo.env(workspace::SHARED_VARIABLE, shared);
    }
    command::run(&mut cargo)
}

/// The variable that tells the suite what is wanted, and its value.
fn choice(args: &[String]) -> Result<(&'static str, u64)> {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let (variable, number) = match words[..] {
        [] => return Ok((CASES_VARIABLE, CASES)),
        ["--cases", number] => (CASES_VARIABLE, number),
        ["--case", number] => (CASE_VARIABLE, number),
        _ => bail!("mutate takes --cases N or --case N"),
    };
    Ok((variable, number.parse().with_context(|| format!("`{number}` is no number"))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_cases_or_as_many_as_wanted_or_one_again() {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for (line, expected) in [
            ("", Some(("MUTATIONS", 1_000_000))),
            ("--cases 5", Some(("MUTATIONS", 5))),
            ("--case 5", Some(("MUTATION", 5))),
            ("--cases", None),
            ("--cases many", None),
            ("5", None),
        ] {
            assert_eq!(choice(&words(line)).ok(), expected, "{line}");
        }
    }
}
