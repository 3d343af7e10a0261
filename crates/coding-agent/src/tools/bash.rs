//! [`Bash`]: runs a command and says what it printed and how it ended.
//!
//! Owns the command's environment, its process group, its output and its end. It knows nothing of
//! what a command means: what it would read and write is for the permission layer to find out.
//!
//! Who ends whom: the call ends when the command does, when its time is up, or when it is
//! cancelled; in the last two cases its whole process group is ended, gently first. A call that is
//! dropped kills the group at once. What a finished command left running in its group is kept in
//! [`Processes`] and ends with it. A process that left the group (`setsid`) is beyond reach here;
//! a helper that owns whole trees comes with the sandbox.

mod command;
mod ending;
mod environment;
mod fold;
mod output;
mod processes;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use agent::{Effect, Effects, Tool, ToolCall, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

pub use self::processes::Processes;
use crate::grant::Grant;

/// How much of the command a title shows, in characters: a line of a terminal.
const MAX_TITLE_CHARS: usize = 80;

/// How Bash treats its commands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BashSettings {
    /// How long a command may take that does not say: two minutes.
    pub timeout: Duration,
    /// How long a command may ask for: an hour, so that nothing is forgotten for a night.
    pub max_timeout: Duration,
    /// How long a process group may take to end after it was asked to, before it is killed. Shorter
    /// than the loop's grace, so that the command's end is still reported.
    pub kill_grace: Duration,
    /// Variables that hold credentials, whatever they are called: those that the configuration names
    /// as a provider's key. No command gets them.
    pub secret_variables: Vec<String>,
}

impl Default for BashSettings {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(120),
            max_timeout: Duration::from_secs(3_600),
            kill_grace: Duration::from_millis(250),
            secret_variables: Vec::new(),
        }
    }
}

/// Runs commands.
#[derive(Clone, Debug)]
pub struct Bash {
    cwd: PathBuf,
    settings: BashSettings,
    environment: Vec<(OsString, OsString)>,
    processes: Processes,
}

/// What Bash is asked for.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct BashArguments {
    /// Run by `bash -c`.
    pub command: String,
    /// Default 120000, at most 3600000.
    pub timeout_ms: Option<u64>,
    /// Not available yet: leave it out.
    pub background: Option<bool>,
    /// What it is for, in a few words.
    pub description: Option<String>,
}

impl Bash {
    /// Commands that start in `cwd`, with this process's environment. What they leave running is
    /// kept in `processes`.
    pub fn new(cwd: impl Into<PathBuf>, settings: BashSettings, processes: Processes) -> Self {
        let environment = environment::scrubbed(std::env::vars_os(), &settings.secret_variables);
        Self { cwd: cwd.into(), settings, environment, processes }
    }

    /// The same tool with these variables in place of this process's. They are scrubbed of
    /// credentials like those.
    #[must_use]
    pub fn with_environment(
        mut self,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        self.environment = environment::scrubbed(variables, &self.settings.secret_variables);
        self
    }
}

impl Tool for Bash {
    type Arguments = BashArguments;

    fn name(&self) -> &str {
        "Bash"
    }

    fn description(&self) -> &str {
        "Runs a shell command in the workspace and returns what it printed and how it ended. Each \
         call starts in the same directory; there is no input and no terminal. Long output loses \
         its middle."
    }

    fn other_names(&self) -> &'static [(&'static str, &'static str)] {
        &[("cmd", "command")]
    }

    fn effects(&self, arguments: &BashArguments) -> Effects {
        let argv = ["bash", "-c", &arguments.command].map(str::to_owned).to_vec();
        Effects::Declared(vec![Effect::execute(argv)])
    }

    fn title(&self, arguments: &BashArguments) -> String {
        let line = arguments.command.lines().next().unwrap_or_default();
        let mut title: String = line.chars().take(MAX_TITLE_CHARS).collect();
        if title.len() < arguments.command.len() {
            title.push('…');
        }
        format!("Bash {title}")
    }

    async fn run(
        &self,
        arguments: BashArguments,
        call: &ToolCall,
    ) -> Result<ToolOutput, ToolError> {
        Grant::of(call)?.command()?;
        if arguments.background == Some(true) {
            return Err(ToolError::failed(
                "background commands are not available: run it in the foreground with a timeout_ms, \
                 or end the command with `>FILE 2>&1 &` and read FILE later",
            ));
        }
        let timeout = match arguments.timeout_ms {
            None | Some(0) => self.settings.timeout,
            Some(asked) => Duration::from_millis(asked).min(self.settings.max_timeout),
        };
        let started = command::start(self, &arguments.command)?;
        started.finish(timeout, self.settings.kill_grace, call).await
    }
}

#[cfg(test)]
mod tests;
