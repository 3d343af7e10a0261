//! `cargo xtask bench`: the product beside other agents, on the benchmark that is shared with them.
//!
//! Owns how our product is run there. The benchmark itself (its mock model, what it measures, the
//! other agents) is a folder outside this repository, which is read and never changed.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::command;
use crate::workspace::{self, Metadata};

/// Adds our product to the benchmark's peers and calls the benchmark's own entry.
const DRIVER: &str = include_str!("bench_driver.py");

/// Where the benchmark keeps its runs and results.
const WORK_VARIABLE: &str = "PEER_WORK";

/// What is measured when no scenario is named; the rest are probes of single faults.
const MEASURED: [&str; 6] = ["hello", "fixloop", "long", "bigtool", "firehose", "badjson"];

/// Scenarios that end in well under a second, so that more runs are affordable.
const SHORT: [&str; 3] = ["hello", "fixloop", "badjson"];

/// What to run.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    /// Our name as a peer, with the variant.
    peer: String,
    scenarios: Vec<String>,
    /// For the benchmark's own command line.
    options: Vec<String>,
}

/// Runs scenarios, or the workspace's own benches for `criterion`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let root = workspace::root()?;
    if let Some(("criterion", rest)) =
        args.split_first().map(|(first, rest)| (first.as_str(), rest))
    {
        // Only bench targets: without the pattern every crate's tests are built in release, too.
        return command::run(
            command::cargo(&root).args(["bench", "--workspace", "--bench", "*"]).args(rest),
        );
    }
    let plan = plan(args)?;
    let folder = match workspace::shared(&root) {
        Ok(shared) => shared.join("bench"),
        Err(path) => path.join("bench"),
    };
    if !folder.join("run_peer.py").is_file() {
        bail!(
            "no benchmark at {}; {} names the folder that holds it",
            folder.display(),
            workspace::SHARED_VARIABLE
        );
    }
    let work = std::env::var_os(WORK_VARIABLE)
        .map_or_else(|| std::env::temp_dir().join("coding-agent-bench"), PathBuf::from);
    let binary = binary(&root)?;

    let mut failures = Vec::new();
    for scenario in &plan.scenarios {
        let mut driver = Command::new("python3");
        driver
            .args(["-c", DRIVER, &plan.peer, scenario])
            .args(defaults(scenario))
            .args(&plan.options)
            .env("BENCH_FOLDER", &folder)
            .env("BENCH_BINARY", &binary)
            .env(WORK_VARIABLE, &work);
        if let Err(error) = measure(&mut driver) {
            eprintln!("xtask: {scenario}: {error:#}");
            failures.push(scenario.as_str());
        }
    }
    eprintln!("rows and runs are under {}", work.display());
    if !failures.is_empty() {
        bail!("failed: {}", failures.join(", "));
    }
    Ok(())
}

/// Reads `[--variant NAME] [SCENARIO…] [OPTIONS]`: from the first other option on, everything
/// belongs to the benchmark.
fn plan(args: &[String]) -> Result<Plan> {
    let mut peer = "ours".to_owned();
    let mut scenarios = Vec::new();
    let mut args = args.iter();
    let mut options = Vec::new();
    while let Some(argument) = args.next() {
        if argument == "--variant" {
            let variant = args.next().context("--variant needs a name")?;
            peer = format!("ours:{variant}");
        } else if argument.starts_with('-') {
            options.push(argument.clone());
            options.extend(args.by_ref().cloned());
        } else {
            scenarios.push(argument.clone());
        }
    }
    if scenarios.is_empty() {
        scenarios = MEASURED.map(str::to_owned).to_vec();
    }
    Ok(Plan { peer, scenarios, options })
}

/// How often a scenario runs unless the caller says otherwise; the last of two equal options wins.
fn defaults(scenario: &str) -> [&'static str; 4] {
    if SHORT.contains(&scenario) {
        ["--runs", "5", "--warmup", "1"]
    } else if MEASURED.contains(&scenario) {
        ["--runs", "3", "--warmup", "0"]
    } else {
        ["--runs", "1", "--warmup", "0"]
    }
}

/// The program to measure: the one that the environment names, else a fresh release build.
fn binary(root: &Path) -> Result<PathBuf> {
    if let Some(path) = std::env::var_os(workspace::BINARY_VARIABLE) {
        let path = PathBuf::from(path);
        // Absolute, because every run has a folder of its own.
        return path.canonicalize().with_context(|| format!("no program at {}", path.display()));
    }
    command::run(command::cargo(root).args(["build", "--release", "--package", "coding-agent"]))?;
    Metadata::read(root)?.binary("release")
}

/// Runs one scenario and prints what each run ended with, and the medians.
fn measure(driver: &mut Command) -> Result<()> {
    let mut child = driver
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start python3, which the benchmark is written in")?;
    let output = child.stdout.take().context("python3 has no standard output")?;
    for line in BufReader::new(output).lines() {
        let line = line.context("cannot read the benchmark's output")?;
        match serde_json::from_str::<Value>(&line) {
            Ok(row) => println!("{}", ending(&row)),
            Err(_) => println!("{line}"),
        }
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("the benchmark failed ({status})");
    }
    Ok(())
}

/// What a run came to, apart from its figures: a fast run that did not do its work is no good run.
fn ending(row: &Value) -> String {
    let mut text = format!("run {}: exit {}", row["run"], row["exit"]);
    if row["timeout"] == true {
        text += ", timed out";
    }
    text += &format!(", {} model requests", row["requests"]["main"]);
    if row["scenario"] == "fixloop" {
        text += if row["fixed"] == true { ", fixed" } else { ", NOT FIXED" };
    }
    match row["left"].as_array().map(Vec::len) {
        None | Some(0) => {}
        Some(count) => text += &format!(", {count} processes left running"),
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(line: &str, peer: &str, scenarios: &str, options: &str) {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let expected =
            Plan { peer: peer.to_owned(), scenarios: words(scenarios), options: words(options) };
        assert_eq!(plan(&words(line)).unwrap(), expected, "{line}");
    }

    #[test]
    fn scenarios_come_first_and_options_belong_to_the_benchmark() {
        check("", "ours", "hello fixloop long bigtool firehose badjson", "");
        check("hello badjson", "ours", "hello badjson", "");
        check("long --turns 20 --runs 1", "ours", "long", "--turns 20 --runs 1");
        check("--variant openai-chat hello --cold", "ours:openai-chat", "hello", "--cold");
        assert!(plan(&["--variant".to_owned()]).is_err());
    }

    #[test]
    fn a_run_says_how_it_ended() {
        for (row, expected) in [
            (
                json!({"run": 0, "exit": 0, "requests": {"main": 3}, "scenario": "fixloop",
                       "fixed": true, "left": []}),
                "run 0: exit 0, 3 model requests, fixed",
            ),
            (
                json!({"run": 1, "exit": -9, "requests": {"main": 1}, "scenario": "fixloop",
                       "fixed": false, "left": ["sleep 9"], "timeout": true}),
                "run 1: exit -9, timed out, 1 model requests, NOT FIXED, 1 processes left running",
            ),
        ] {
            assert_eq!(ending(&row), expected);
        }
    }
}
