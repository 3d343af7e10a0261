//! `demo`: the task of the source systems, on a scripted model over real HTTP.
//!
//! A small project with an endless loop and the log of its crash is written to a temporary directory;
//! the agent reads both, mends the loop and says so; then the mended program is compiled and run, so
//! that nobody has to take the agent's word for it.

use std::io::{self, IsTerminal, Stdout};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use agent::AgentContext;
use coding_agent::config::ConfigLayer;
use coding_agent::{PermissionMode, system_prompt};
use scripted_model::fix_loop;
use tokio::process::Command;
use tokio::time::timeout;

use crate::program::cli::OutputFormat;
use crate::program::exit::Exit;
use crate::program::failure::Failure;
use crate::program::headless::work;
use crate::program::progress::Progress;
use crate::program::render::{Renderer, wants_colour};
use crate::program::session::Session;
use crate::program::signals::Signals;

/// A compiler on a busy machine; it takes less than a second on an idle one.
const COMPILE_TIME: Duration = Duration::from_secs(60);

/// The mended program ends at once. One that does not is still broken.
const RUN_TIME: Duration = Duration::from_secs(10);

/// Writes the project, works on it and proves the result.
pub(crate) async fn run(format: OutputFormat) -> Result<Exit, Failure> {
    let project = write_project()?;
    let options = ConfigLayer {
        model: Some(format!("scripted/{}", fix_loop::NAME)),
        permission_mode: Some(PermissionMode::AcceptEdits),
        ..ConfigLayer::default()
    };
    let session = Session::unconfigured(&project, options)?;
    let model = session.model().await?;
    let context = AgentContext {
        system_prompt: system_prompt(session.workspace.cwd(), None).into(),
        tools: session.tools.clone(),
        ..AgentContext::default()
    };
    let say = |text: &str| match format {
        OutputFormat::Text => screen().heading(text),
        OutputFormat::Json | OutputFormat::StreamJson => {
            eprintln!("{text}");
            Ok(())
        }
    };
    let unwritable = |error: io::Error| Failure::output(&error);
    say(&format!("A project with a bug, in {}", project.display())).map_err(unwritable)?;
    let prompt = fix_loop::PROMPT.to_owned();
    let progress = Progress::new(false);
    let exit = match format {
        OutputFormat::Text => watch(&session, &model, context, prompt).await?,
        OutputFormat::Json | OutputFormat::StreamJson => {
            work(&session, &model, context, prompt, format, progress).await?
        }
    };
    if exit != Exit::Completed {
        return Ok(exit);
    }
    let mut signals = Signals::listen()?;
    let (proved, words) = tokio::select! {
        proved = prove(&project) => proved,
        (_, exit) = signals.next() => return Ok(exit),
    };
    say(&format!("\n{words}")).map_err(unwritable)?;
    Ok(if proved { Exit::Completed } else { Exit::Failed })
}

/// Shows every event on standard output as it happens.
async fn watch(
    session: &Session,
    model: &crate::program::session::ChosenModel,
    context: AgentContext,
    prompt: String,
) -> Result<Exit, Failure> {
    let mut screen = screen();
    crate::program::headless::show(session, model, context, prompt, |event| {
        screen.event(event).map_err(|error| Failure::output(&error))
    })
    .await
}

fn screen() -> Renderer<Stdout> {
    let stdout = io::stdout();
    let colour = wants_colour(stdout.is_terminal());
    Renderer::new(stdout, colour)
}

/// A directory that stays, so that the result can be looked at.
fn write_project() -> Result<PathBuf, Failure> {
    let unwritable = |error: io::Error| {
        Failure::failed(format!("cannot write the demo's project: {error}"))
            .hint("set TMPDIR to a directory that can be written to")
    };
    let directory =
        tempfile::Builder::new().prefix("coding-agent-demo-").tempdir().map_err(unwritable)?;
    for (name, content) in fix_loop::FILES {
        std::fs::write(directory.path().join(name), content).map_err(unwritable)?;
    }
    Ok(directory.keep())
}

/// Compiles and runs the mended program. Gives whether nothing speaks against it, and what to say.
async fn prove(project: &Path) -> (bool, String) {
    let built = tempfile::Builder::new().prefix("coding-agent-demo-built-").tempdir();
    let built = match built {
        Ok(built) => built,
        Err(error) => return (false, format!("Not proved: no place to compile in ({error}).")),
    };
    let program = built.path().join("loop");
    // One that is there but has no toolchain behind it is as good as none.
    if output(Command::new("rustc").arg("--version"), COMPILE_TIME).await.is_err() {
        let words = "Not proved: there is no rustc here to compile the mended program with.";
        return (true, words.to_owned());
    }
    let mut compiler = Command::new("rustc");
    compiler.arg("--edition=2021").arg("-o").arg(&program).arg(project.join(fix_loop::LOOP_PATH));
    match output(&mut compiler, COMPILE_TIME).await {
        Err(Failed::NotFound) => return (false, "The compiler is gone.".to_owned()),
        Err(Failed::Other(why)) => return (false, format!("The compiler failed: {why}")),
        Ok(_) => {}
    }
    match output(&mut Command::new(&program), RUN_TIME).await {
        Ok(printed) => {
            let printed = printed.trim();
            (
                printed.contains(fix_loop::SUCCESS),
                format!("Proved: the mended loop.rs compiles, runs and ends. It says: {printed}"),
            )
        }
        Err(Failed::NotFound) => (false, "The compiler left no program.".to_owned()),
        Err(Failed::Other(why)) => (false, format!("The mended program still fails: {why}")),
    }
}

enum Failed {
    NotFound,
    Other(String),
}

async fn output(command: &mut Command, time: Duration) -> Result<String, Failed> {
    command.stdin(Stdio::null()).kill_on_drop(true);
    match timeout(time, command.output()).await {
        Err(_) => Err(Failed::Other(format!("it did not end within {} s", time.as_secs()))),
        Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => Err(Failed::NotFound),
        Ok(Err(error)) => Err(Failed::Other(error.to_string())),
        Ok(Ok(output)) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Ok(Ok(output)) => Err(Failed::Other(format!(
            "{}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        ))),
    }
}
