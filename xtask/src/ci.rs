//! `cargo xtask ci`: everything that a change must pass.
//!
//! Owns only that all of it runs, so that one answer names every failure.

use anyhow::{Result, bail};

use crate::{lint, spec, test};

/// Runs lints, the check of behaviour numbers, and all tests.
pub(crate) fn run(args: &[String]) -> Result<()> {
    if let Some(argument) = args.first() {
        bail!("ci takes no arguments, got `{argument}`");
    }
    let mut failures = Vec::new();
    for (name, result) in [
        ("lint", lint::run(&[])),
        ("spec", spec::run(&["--check".to_owned()])),
        ("test", test::run(&[test::ALL_SPLITS.to_owned()])),
    ] {
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
