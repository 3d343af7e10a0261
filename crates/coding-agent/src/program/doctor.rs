//! `doctor`: what is set up here, and what this version cannot do.

use std::process::{Command, Stdio};

use coding_agent::keys::KeyOrigin;
use coding_agent::{ModelError, ModelName, SCRIPTED_PROVIDER, provider_names};

use crate::program::cli::SessionArguments;
use crate::program::exit::Exit;
use crate::program::failure::Failure;
use crate::program::output::Output;
use crate::program::session::Session;

/// Prints the state of things. Nothing is sent anywhere and nothing is changed.
pub(crate) fn run(arguments: &SessionArguments) -> Result<Exit, Failure> {
    let session = Session::open(arguments)?;
    session.report_notes();
    let mut output = Output::new();
    let mut line = |label: &str, text: &str| output.text(&format!("{label:<12} {text}"));
    line("version", env!("CARGO_PKG_VERSION"))?;
    line("platform", &format!("{} {}", std::env::consts::OS, std::env::consts::ARCH))?;
    line("workspace", &session.workspace.cwd().display().to_string())?;
    match &session.directories {
        None => line("files", "no home directory is known: only options and variables count")?,
        Some(directories) => {
            let file = directories.config_file();
            let state = if file.exists() { "" } else { " (not there)" };
            line("config", &format!("{}{state}", file.display()))?;
        }
    }
    line("model", &model(&session))?;
    line("mode", session.config.permission_mode.as_str())?;
    for text in keys(&session) {
        line("keys", &text)?;
    }
    for program in ["bash", "git", "rustc"] {
        line(program, if is_there(program) { "found" } else { "not found" })?;
    }
    line(
        "sandbox",
        "none: Bash is not confined in this version. A command that is allowed can reach everything \
         that you can, so every command asks or is refused, and mode auto is, too",
    )?;
    line("sessions", "not stored in this version: nothing can be resumed")?;
    line("terminal", "no interface in this version: use -p; what would ask is denied")?;
    output.flush()?;
    Ok(Exit::Completed)
}

/// The chosen model, and what keeps it from being asked.
fn model(session: &Session) -> String {
    let name = &session.config.model;
    let found = match ModelName::parse(name) {
        Ok(parsed) if parsed.provider == SCRIPTED_PROVIDER => return name.clone(),
        Ok(parsed) => session.provider(&parsed.provider),
        Err(error) => Err(error),
    };
    match found {
        Ok(_) => name.clone(),
        Err(error) => format!("{name}: cannot be asked: {error}; {}", error.hint()),
    }
}

/// Who can be asked with which key, a line a provider, and what is wrong with the file of keys. No
/// key command is run.
fn keys(session: &Session) -> Vec<String> {
    let mut lines = Vec::new();
    let mut broken = None;
    for name in provider_names(&session.config) {
        if name == SCRIPTED_PROVIDER {
            continue;
        }
        match session.provider(&name) {
            Ok(found) if found.key == KeyOrigin::NotNeeded => {}
            Ok(found) => lines.push(format!("{name}: {}", found.key)),
            Err(ModelError::KeyFile(error)) => broken = Some(error),
            // What else keeps a provider from being asked is `models`' to say.
            Err(_) => {}
        }
    }
    if let Some(error) = broken {
        lines.push(format!("{error}; {}", error.hint()));
    }
    if lines.is_empty() {
        lines.push("none: export a variable, or use `coding-agent login PROVIDER`".to_owned());
    }
    lines
}

fn is_there(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
