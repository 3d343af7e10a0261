//! The workspace as its chores see it: where it is, what it builds, which sources it has, and where
//! the recorded streams are.
//!
//! Knows nothing of what the chores do with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;

use crate::command;

/// Names the folder of recorded streams and of the benchmark; see [`shared`].
pub(crate) const SHARED_VARIABLE: &str = "CODING_AGENT_SHARED";

/// Names the binary that the end-to-end suites run, and that `bench` takes instead of building one.
pub(crate) const BINARY_VARIABLE: &str = "CODING_AGENT_BIN";

/// The package with the end-to-end suites.
pub(crate) const SUITES: &str = "tests";

/// Folders at the top that hold our sources. `target` is the one that matters to leave out.
const SOURCES: [&str; 3] = ["crates", "tests", "xtask"];

/// The workspace's root.
pub(crate) fn root() -> Result<PathBuf> {
    let package = match std::env::var_os("CARGO_MANIFEST_DIR") {
        Some(package) => PathBuf::from(package),
        // Started without cargo: where it was built.
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")),
    };
    Ok(package.parent().context("xtask is not inside a workspace")?.to_path_buf())
}

/// The folder with recorded streams and the benchmark: `CODING_AGENT_SHARED`, else `../shared`
/// beside the root. `Err` holds the path at which nothing was found.
pub(crate) fn shared(root: &Path) -> Result<PathBuf, PathBuf> {
    let path = match std::env::var_os(SHARED_VARIABLE) {
        Some(path) => PathBuf::from(path),
        None => root.join("../shared"),
    };
    // Absolute, because cargo runs each test in its own package's folder.
    path.canonicalize().map_err(|_| path)
}

/// Whether somebody watches who must not be told that all is well when something was skipped.
pub(crate) fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}

/// What cargo says about the workspace.
pub(crate) struct Metadata(Value);

/// An integration test.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TestTarget {
    pub(crate) package: String,
    pub(crate) name: String,
}

impl Metadata {
    /// Asks cargo. Reads manifests only, so it needs no network.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let output = command::cargo(root)
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .stderr(Stdio::inherit())
            .output()
            .context("cannot start cargo metadata")?;
        if !output.status.success() {
            bail!("cargo metadata failed ({})", output.status);
        }
        let value = serde_json::from_slice(&output.stdout)
            .context("cargo metadata printed something that is not json")?;
        Ok(Self(value))
    }

    /// The program in a profile's folder, such as `debug`.
    pub(crate) fn binary(&self, profile: &str) -> Result<PathBuf> {
        let target = self.0["target_directory"]
            .as_str()
            .ok_or_else(|| anyhow!("cargo metadata names no target directory"))?;
        let name = format!("coding-agent{}", std::env::consts::EXE_SUFFIX);
        Ok(Path::new(target).join(profile).join(name))
    }

    /// The integration tests of every package, in the packages' order.
    pub(crate) fn test_targets(&self) -> Vec<TestTarget> {
        let mut found = Vec::new();
        for package in self.0["packages"].as_array().into_iter().flatten() {
            for target in package["targets"].as_array().into_iter().flatten() {
                let is_test = target["kind"]
                    .as_array()
                    .is_some_and(|kinds| kinds.iter().any(|kind| kind == "test"));
                if let (true, Some(package), Some(name)) =
                    (is_test, package["name"].as_str(), target["name"].as_str())
                {
                    found.push(TestTarget { package: package.to_owned(), name: name.to_owned() });
                }
            }
        }
        found
    }
}

/// Every Rust file of ours, sorted.
pub(crate) fn rust_files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for folder in SOURCES {
        collect(&root.join(folder), &mut files)?;
    }
    files.sort();
    Ok(files)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_integration_tests_are_test_targets() {
        let metadata = Metadata(json!({"packages": [
            {"name": "ai", "targets": [{"kind": ["lib"], "name": "ai"}]},
            {"name": "tests", "targets": [
                {"kind": ["lib"], "name": "tests"},
                {"kind": ["test"], "name": "streams"},
            ]},
        ]}));
        let expected = TestTarget { package: "tests".into(), name: "streams".into() };
        assert_eq!(metadata.test_targets(), [expected]);
    }
}
