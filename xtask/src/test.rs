//! `cargo xtask test`: the stages of the project's tests, timed and summed up.
//!
//! Owns which stages there are, in which order they run and what they need from the environment.
//! Knows nothing of what the tests check.
//!
//! **Invariant:** every stage selects the whole workspace, so that all share one set of dependency
//! features and nothing is compiled twice.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};

use crate::command;
use crate::workspace::{self, Metadata, TestTarget};

/// Suites over the recorded streams. They have a stage of their own, which shows their tables.
const STREAM_SUITES: [&str; 2] = ["streams", "errors"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Everything that later stages need, the program included.
    Build,
    /// Tests inside the crates.
    Unit,
    /// The examples in the documentation.
    Doctests,
    /// The package `tests`, against the built program.
    Suite,
    /// The package `tests`, against the recorded streams.
    Streams,
}

impl Stage {
    fn name(self) -> &'static str {
        match self {
            Self::Build => "build",
            Self::Unit => "unit",
            Self::Doctests => "doctests",
            Self::Suite => "suite",
            Self::Streams => "streams",
        }
    }
}

/// What became of a stage.
#[derive(Debug)]
enum Outcome {
    Passed,
    Skipped(String),
    Failed,
}

/// Has the recorded streams split at every position; without it the larger ones are split at some.
pub(crate) const ALL_SPLITS: &str = "--all-splits";

/// What the suite of recorded streams is told that with.
const ALL_SPLITS_VARIABLE: &str = "ALL_SPLITS";

/// Runs what `args` choose: a stage's name, then whatever `cargo test` takes after its selection.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut args = args.to_vec();
    let given = args.len();
    args.retain(|argument| argument != ALL_SPLITS);
    let all_splits = args.len() < given;
    let (stages, arguments) = choose(&args);
    let root = workspace::root()?;
    let metadata = Metadata::read(&root)?;
    let session = Session {
        targets: metadata.test_targets(),
        binary: metadata.binary("debug")?,
        shared: workspace::shared(&root),
        arguments,
        all_splits,
        root,
    };

    let mut summary = Vec::new();
    for stage in stages {
        eprintln!("\n== {}", stage.name());
        let start = Instant::now();
        let outcome = session.stage(stage).unwrap_or_else(|error| {
            eprintln!("xtask: {}: {error:#}", stage.name());
            Outcome::Failed
        });
        let broken = stage == Stage::Build && matches!(outcome, Outcome::Failed);
        summary.push((stage, outcome, start.elapsed()));
        if broken {
            break;
        }
    }
    conclude(&summary)
}

/// Splits the stage's name from the rest. Anything but a stage's name is a filter over all stages.
fn choose(args: &[String]) -> (Vec<Stage>, Vec<String>) {
    use Stage::{Build, Doctests, Streams, Suite, Unit};
    let named = match args.first().map(String::as_str) {
        Some("unit") => Some(vec![Build, Unit, Doctests]),
        Some("suite") => Some(vec![Build, Suite]),
        Some("streams") => Some(vec![Build, Streams]),
        Some("all") => Some(vec![Build, Unit, Doctests, Suite, Streams]),
        _ => None,
    };
    match named {
        Some(stages) => (stages, args[1..].to_vec()),
        None => (vec![Build, Unit, Doctests, Suite, Streams], args.to_vec()),
    }
}

/// What all stages of one call share.
struct Session {
    root: PathBuf,
    targets: Vec<TestTarget>,
    binary: PathBuf,
    /// The shared folder, or where it was looked for.
    shared: Result<PathBuf, PathBuf>,
    /// The caller's own arguments to `cargo test`.
    arguments: Vec<String>,
    /// Whether [`ALL_SPLITS`] was among them.
    all_splits: bool,
}

impl Session {
    fn stage(&self, stage: Stage) -> Result<Outcome> {
        match stage {
            Stage::Build => command::run(self.cargo("build").args(["--bins", "--tests"]))
                .map(|()| Outcome::Passed),
            Stage::Unit => {
                let names = self.target_names(|target| target.package != workspace::SUITES);
                let mut cargo = self.cargo("test");
                cargo.args(["--lib", "--bins"]);
                self.test(cargo, &names, &[])
            }
            Stage::Doctests => {
                let mut cargo = self.cargo("test");
                cargo.arg("--doc");
                self.test(cargo, &[], &[])
            }
            Stage::Suite => {
                let names = self.target_names(|target| {
                    target.package == workspace::SUITES && !is_stream_suite(target)
                });
                self.suite(names, &[])
            }
            Stage::Streams => self.streams(),
        }
    }

    fn streams(&self) -> Result<Outcome> {
        if let Err(path) = &self.shared {
            let reason = format!(
                "no recorded streams at {}; {} names their folder",
                path.display(),
                workspace::SHARED_VARIABLE
            );
            if workspace::is_ci() {
                bail!("{reason}");
            }
            return Ok(Outcome::Skipped(reason));
        }
        let names = self
            .target_names(|target| target.package == workspace::SUITES && is_stream_suite(target));
        // The suites print what passed of each api's streams, which the harness would swallow.
        self.suite(names, &["--nocapture"])
    }

    fn suite(&self, names: Vec<String>, harness: &[&str]) -> Result<Outcome> {
        if names.is_empty() {
            return Err(anyhow!("package `{}` has no such suites", workspace::SUITES));
        }
        self.test(self.cargo("test"), &names, harness)
    }

    /// Names of integration tests, once each: cargo selects by name alone.
    fn target_names(&self, wanted: impl Fn(&TestTarget) -> bool) -> Vec<String> {
        let names: BTreeSet<&String> = self
            .targets
            .iter()
            .filter(|target| wanted(target))
            .map(|target| &target.name)
            .collect();
        names.into_iter().cloned().collect()
    }

    fn test(&self, mut cargo: Command, names: &[String], harness: &[&str]) -> Result<Outcome> {
        for name in names {
            cargo.args(["--test", name]);
        }
        cargo.args(with_harness(&self.arguments, harness));
        command::run(&mut cargo).map(|()| Outcome::Passed)
    }

    fn cargo(&self, subcommand: &str) -> Command {
        let mut cargo = command::cargo(&self.root);
        cargo.args([subcommand, "--workspace"]);
        if subcommand == "test" {
            cargo.arg("--no-fail-fast");
        }
        // No test may depend on, or spend, what the developer has configured.
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(is_users_own) {
                cargo.env_remove(name);
            }
        }
        cargo.env(workspace::BINARY_VARIABLE, &self.binary);
        if let Ok(shared) = &self.shared {
            cargo.env(workspace::SHARED_VARIABLE, shared);
        }
        if self.all_splits {
            cargo.env(ALL_SPLITS_VARIABLE, "1");
        }
        cargo
    }
}

fn is_stream_suite(target: &TestTarget) -> bool {
    STREAM_SUITES.contains(&target.name.as_str())
}

/// Whether a variable configures the product for its user.
fn is_users_own(name: &str) -> bool {
    name.ends_with("_API_KEY")
        || name.ends_with("_BASE_URL")
        || (name.starts_with("CODING_AGENT_") && name != workspace::SHARED_VARIABLE)
}

/// The caller's arguments with ours for the test harness put behind the one `--`.
fn with_harness(arguments: &[String], harness: &[&str]) -> Vec<String> {
    let mut all = arguments.to_vec();
    if !harness.is_empty() {
        if !all.iter().any(|argument| argument == "--") {
            all.push("--".to_owned());
        }
        all.extend(harness.iter().map(|&argument| argument.to_owned()));
    }
    all
}

fn conclude(summary: &[(Stage, Outcome, Duration)]) -> Result<()> {
    eprintln!("\n== summary");
    let mut failures = Vec::new();
    for (stage, outcome, elapsed) in summary {
        let shown = match outcome {
            Outcome::Passed => "ok".to_owned(),
            Outcome::Skipped(reason) => format!("skipped: {reason}"),
            Outcome::Failed => {
                failures.push(stage.name());
                "FAILED".to_owned()
            }
        };
        eprintln!("{:<9}{:>7.1} s  {shown}", stage.name(), elapsed.as_secs_f64());
    }
    let total: Duration = summary.iter().map(|(_, _, elapsed)| *elapsed).sum();
    eprintln!("{:<9}{:>7.1} s", "total", total.as_secs_f64());
    if !failures.is_empty() {
        bail!("failed: {}", failures.join(", "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_stage_is_chosen_by_its_name_and_the_rest_is_passed_on() {
        use Stage::{Build, Doctests, Streams, Suite, Unit};
        let all = vec![Build, Unit, Doctests, Suite, Streams];
        for (line, stages, rest) in [
            ("", all.clone(), ""),
            ("all", all.clone(), ""),
            ("unit sse -- --exact", vec![Build, Unit, Doctests], "sse -- --exact"),
            ("suite", vec![Build, Suite], ""),
            ("streams anthropic", vec![Build, Streams], "anthropic"),
            ("byte_order_mark", all.clone(), "byte_order_mark"),
            ("-- --ignored", all.clone(), "-- --ignored"),
        ] {
            assert_eq!(choose(&words(line)), (stages, words(rest)), "{line}");
        }
    }

    #[test]
    fn harness_arguments_share_one_separator() {
        for (line, harness, expected) in [
            ("name", &[][..], "name"),
            ("name", &["--nocapture"][..], "name -- --nocapture"),
            ("name -- --exact", &["--nocapture"][..], "name -- --exact --nocapture"),
        ] {
            assert_eq!(with_harness(&words(line), harness), words(expected), "{line}");
        }
    }

    #[test]
    fn the_users_keys_and_settings_do_not_reach_tests() {
        let names = ["ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "CODING_AGENT_MODEL", "PATH", "CI"];
        let removed: Vec<_> = names.into_iter().filter(|name| is_users_own(name)).collect();
        assert_eq!(removed, names[..3]);
        assert!(!is_users_own(workspace::SHARED_VARIABLE));
    }

    #[test]
    fn a_failed_stage_fails_the_whole() {
        let passed = (Stage::Unit, Outcome::Passed, Duration::ZERO);
        let skipped = (Stage::Streams, Outcome::Skipped("absent".into()), Duration::ZERO);
        let failed = (Stage::Suite, Outcome::Failed, Duration::ZERO);
        assert!(conclude(&[passed, skipped]).is_ok());
        let error = conclude(&[failed]).map_err(|error| error.to_string());
        assert_eq!(error, Err("failed: suite".to_owned()));
    }
}
