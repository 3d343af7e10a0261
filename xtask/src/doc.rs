//! `cargo xtask doc`: the documentation of our own crates, with warnings denied.

use anyhow::Result;

use crate::{command, workspace};

/// Builds the documentation; `args` go to `cargo doc`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    command::run(
        command::cargo(&workspace::root()?)
            .env("RUSTDOCFLAGS", "-D warnings")
            .args(["doc", "--workspace", "--no-deps"])
            .args(args),
    )
}
