//! The command line.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use ai::{Api, Framing, ThinkingLevel};
use clap::{Args, Parser, Subcommand, ValueEnum};
use coding_agent::PermissionMode;

/// A coding agent that can be trusted with a real repository.
#[derive(Debug, Parser)]
#[command(name = "coding-agent", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// The prompt, for the terminal interface, which does not exist yet: use -p.
    #[arg(value_name = "PROMPT")]
    pub(crate) interactive_prompt: Option<String>,

    /// Works on this prompt without asking anybody and prints the answer. Piped standard input is
    /// added to it.
    #[arg(short = 'p', long = "print", value_name = "PROMPT", num_args = 0..=1, default_missing_value = "")]
    pub(crate) prompt: Option<String>,

    /// What is printed: the final text, one JSON object, or one event a line.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output_format: OutputFormat,

    /// Added to the system prompt.
    #[arg(long, value_name = "TEXT")]
    pub(crate) append_system_prompt: Option<String>,

    /// Offers only these tools: names, separated by commas.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) allowed_tools: Option<Vec<String>>,

    /// Does not offer these tools.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) disallowed_tools: Vec<String>,

    /// Ends the run after this many model requests.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,

    #[command(flatten)]
    pub(crate) session: SessionArguments,
}

/// What a session is made with, for the commands that make one.
#[derive(Debug, Args)]
pub(crate) struct SessionArguments {
    /// The model to ask, as PROVIDER/MODEL; for `decode`, the model that was asked.
    #[arg(long, value_name = "PROVIDER/MODEL", global = true)]
    pub(crate) model: Option<String>,

    /// What is allowed without asking: read-only, ask, accept-edits or bypass.
    #[arg(long, value_name = "MODE", global = true)]
    pub(crate) permission_mode: Option<PermissionMode>,

    /// How much the model shall think: off, minimal, low, medium, high or max.
    #[arg(long, value_name = "LEVEL", global = true)]
    pub(crate) thinking: Option<ThinkingLevel>,

    /// The working directory.
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) cwd: Option<PathBuf>,

    /// A further directory that belongs to the workspace.
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) add_dir: Vec<PathBuf>,

    /// Sets one key of the configuration, such as retry.max_attempts=1.
    #[arg(long, value_name = "KEY=VALUE", global = true)]
    pub(crate) config: Vec<String>,
}

impl SessionArguments {
    /// Whether any of them was given.
    pub(crate) fn is_set(&self) -> bool {
        let Self { model, permission_mode, thinking, cwd, add_dir, config } = self;
        let any = model.is_some() || permission_mode.is_some() || cwd.is_some();
        any || thinking.is_some() || !add_dir.is_empty() || !config.is_empty()
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Finds and mends a bug in a small project, with a scripted model: no key, no network.
    Demo {
        /// What is printed.
        #[arg(long, value_name = "FORMAT", default_value = "text")]
        output_format: OutputFormat,
    },
    /// Turns a captured stream of any provider into one kind of events, or into the message.
    Decode(DecodeArguments),
    /// Lists the tools, or runs one under permissions, without a model.
    #[command(subcommand)]
    Tool(ToolCommand),
    /// Stores a provider's key, or a command that prints it, where only you can read it.
    ///
    /// The key is read from standard input, or asked for on the terminal without being shown. It is
    /// never an argument: those are seen by other programs and kept by shells.
    Login(LoginArguments),
    /// Removes what login stored for a provider.
    Logout(LogoutArguments),
    /// Lists the providers that can be asked, and what is known of their models.
    Models(ModelsArguments),
    /// Says what is set up here and what this version cannot do.
    Doctor,
    /// Shows the configuration in force, or the JSON Schema of all settings.
    #[command(subcommand)]
    Config(ConfigCommand),
}

/// What `login` is given. `Debug` shows none of it: a key may have been given by mistake.
#[derive(Args)]
pub(crate) struct LoginArguments {
    /// The provider.
    #[arg(value_name = "PROVIDER")]
    pub(crate) provider: OsString,

    /// A command for /bin/sh that prints the key; run when the provider is first asked.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) key_command: Option<String>,

    /// What has no place here: mostly a key. Taken so that it is refused without being said again.
    #[arg(hide = true, num_args = 0.., allow_hyphen_values = true)]
    pub(crate) surplus: Vec<OsString>,
}

/// What `logout` is given; the same holds for its `Debug`.
#[derive(Args)]
pub(crate) struct LogoutArguments {
    /// The provider.
    #[arg(value_name = "PROVIDER")]
    pub(crate) provider: OsString,

    /// As for `login`.
    #[arg(hide = true, num_args = 0.., allow_hyphen_values = true)]
    pub(crate) surplus: Vec<OsString>,
}

impl fmt::Debug for LoginArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginArguments").finish_non_exhaustive()
    }
}

impl fmt::Debug for LogoutArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogoutArguments").finish_non_exhaustive()
    }
}

#[derive(Debug, Args)]
pub(crate) struct ModelsArguments {
    /// Only this provider's.
    #[arg(value_name = "PROVIDER")]
    pub(crate) provider: Option<String>,

    /// Asks each provider that has a key for its own list, and keeps it.
    #[arg(long)]
    pub(crate) refresh: bool,

    /// What is printed: a table, or one JSON object.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output_format: ModelsFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelsFormat {
    Text,
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct DecodeArguments {
    /// The wire format of the stream: anthropic-messages, openai-chat, openai-responses or
    /// google-generate.
    #[arg(long, value_name = "API")]
    pub(crate) api: Api,

    /// What is printed: events, one a line, or the message that they come to.
    #[arg(long, value_name = "FORMAT", default_value = "events")]
    pub(crate) output_format: DecodeFormat,

    /// The provider, which chooses the dialect.
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,

    /// How the events are framed: sse, ndjson or aws-eventstream.
    #[arg(long, value_name = "FRAMING", default_value = "sse")]
    pub(crate) framing: Framing,

    /// The file; `-` or nothing is standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolCommand {
    /// Prints the tools with the schemas of their arguments, as JSON.
    List,
    /// Runs tool calls without a model and prints each output as a line of JSON.
    Run(ToolRunArguments),
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("calls").required(true).args(["name", "batch"]))]
pub(crate) struct ToolRunArguments {
    /// The tool.
    #[arg(value_name = "NAME", requires = "args")]
    pub(crate) name: Option<String>,

    /// Its arguments, a JSON object.
    #[arg(long, value_name = "JSON", requires = "name")]
    pub(crate) args: Option<String>,

    /// Calls in a file, or `-` for standard input: {"name": …, "args": …} a line, in one session.
    #[arg(long, value_name = "FILE")]
    pub(crate) batch: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Prints the configuration in force, as TOML.
    Show,
    /// Prints the JSON Schema of the configuration.
    Schema,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    Text,
    Json,
    StreamJson,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DecodeFormat {
    Events,
    Message,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        Cli::command().debug_assert();
    }
}
