//! `cargo xtask lint`: what can be said about the sources without running them.
//!
//! Owns the rules on files that no tool checks: names that say nothing, `mod.rs`, and length. Knows
//! nothing of behaviour. All checks run, so that one call names every failure.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{command, doc, workspace};

/// A file longer than this is listed: by then it usually holds a second concept. Not a failure,
/// because a long table of data is fine.
const LONG_FILE_LINES: usize = 800;

/// Names that say nothing of what a file holds.
const EMPTY_NAMES: [&str; 6] = ["mod", "utils", "helpers", "common", "types", "manager"];

/// Runs every check.
pub(crate) fn run(args: &[String]) -> Result<()> {
    if let Some(argument) = args.first() {
        bail!("lint takes no arguments, got `{argument}`");
    }
    let root = workspace::root()?;
    let checks = [
        ("files", files(&root)),
        ("format", command::run(command::cargo(&root).args(["fmt", "--all", "--check"]))),
        ("clippy", clippy(&root, &["--workspace", "--all-targets"])),
        // Without its transport `ai` must still decode: nothing else builds it that way.
        ("clippy of ai without http", clippy(&root, &["--package", "ai", "--no-default-features"])),
        ("documentation", doc::run(&[])),
        ("dependencies", dependencies(&root)),
    ];
    let mut failures = Vec::new();
    for (name, result) in checks {
        if let Err(error) = result {
            eprintln!("xtask: {name}: {error:#}");
            failures.push(name);
        }
    }
    if !failures.is_empty() {
        bail!("failed: {}", failures.join(", "));
    }
    Ok(())
}

fn clippy(root: &Path, selection: &[&str]) -> Result<()> {
    command::run(command::cargo(root).arg("clippy").args(selection).args(["--", "-D", "warnings"]))
}

fn files(root: &Path) -> Result<()> {
    let mut bad = 0;
    for path in workspace::rust_files(root)? {
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        if let Some(name) = empty_name(&path) {
            eprintln!(
                "{shown}: `{name}` says nothing of what the file holds; name it after its concept"
            );
            bad += 1;
        }
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {shown}"))?;
        let lines = text.lines().count();
        if lines > LONG_FILE_LINES {
            eprintln!(
                "{shown}: {lines} lines; more than {LONG_FILE_LINES} is usually two concepts"
            );
        }
    }
    if bad > 0 {
        bail!("{bad} file names that are not allowed");
    }
    Ok(())
}

/// The forbidden name that a path's file or one of its folders has.
fn empty_name(path: &Path) -> Option<&'static str> {
    path.iter()
        .filter_map(|part| Path::new(part).file_stem())
        .find_map(|stem| EMPTY_NAMES.into_iter().find(|name| stem == *name))
}

/// Licences, sources and duplicates, by deny.toml. Needs a tool that a bare machine does not have,
/// so its absence is said and is no failure. Advisories are left out: they need the network.
fn dependencies(root: &Path) -> Result<()> {
    let installed = Command::new("cargo-deny")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !installed {
        eprintln!("cargo-deny is not installed: licences and duplicates are not checked");
        return Ok(());
    }
    command::run(command::cargo(root).args(["deny", "check", "bans", "licenses", "sources"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_say_nothing_are_found() {
        for (path, expected) in [
            ("crates/ai/src/message.rs", None),
            ("crates/ai/src/providers/mod.rs", Some("mod")),
            ("crates/ai/src/utils.rs", Some("utils")),
            ("tests/tests/common/server.rs", Some("common")),
            ("crates/ai/src/modes.rs", None),
        ] {
            assert_eq!(empty_name(Path::new(path)), expected, "{path}");
        }
    }
}
