//! Child processes: said before they run, and a failure is an error.
//!
//! Knows nothing of what is run.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The `cargo` that started this program, so that a chore uses the same toolchain.
///
/// What cargo set for this program alone is taken out of the environment: build scripts watch those
/// variables (ring's does), and would build everything anew for each change between `cargo test`
/// and `cargo xtask test`.
pub(crate) fn cargo(root: &Path) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(describes_a_package) {
            command.env_remove(name);
        }
    }
    command
}

/// Whether cargo sets a variable to describe the package that it runs.
fn describes_a_package(name: &str) -> bool {
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}

/// Runs a command in the foreground after printing it; a status other than 0 is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = show(command);
    eprintln!("$ {shown}");
    let status = command.status().with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    Ok(())
}

/// The command line as a person would type it, with the program's bare name.
fn show(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(program.as_os_str());
    std::iter::once(program)
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .map(|word| if word.contains(' ') { format!("'{word}'").into() } else { word })
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nested_cargo_sees_nothing_of_this_package() {
        let names = ["CARGO_PKG_NAME", "CARGO_MANIFEST_DIR", "CARGO_HOME", "CARGO_TARGET_DIR"];
        let removed: Vec<_> = names.into_iter().filter(|name| describes_a_package(name)).collect();
        assert_eq!(removed, names[..2]);
    }

    #[test]
    fn a_command_is_shown_with_its_bare_name_and_quotes() {
        let mut command = Command::new("/opt/bin/tool");
        command.args(["one", "two three"]);
        assert_eq!(show(&command), "tool one 'two three'");
    }
}
