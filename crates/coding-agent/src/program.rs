//! The program: what the command line asks for, done with the library.

pub(crate) mod cli;
mod closed_stdio;
mod config_command;
mod decode_command;
mod demo;
mod doctor;
mod exit;
mod failure;
mod headless;
mod hidden_line;
mod login_command;
mod models_command;
mod output;
mod progress;
mod prompt;
mod render;
mod session;
mod signals;
mod tool_command;

pub(crate) use self::closed_stdio::stdout_is_closed;
pub(crate) use self::exit::Exit;
pub(crate) use self::failure::Failure;

use self::cli::{Cli, Command, ConfigCommand, ToolCommand};

/// Does what the command line asks for.
pub(crate) async fn run(cli: Cli) -> Result<Exit, Failure> {
    match &cli.command {
        Some(Command::Demo { output_format }) => {
            if cli.session.is_set() {
                return Err(Failure::usage("the demo takes no options but --output-format")
                    .hint("it brings its own model, mode and directory; use -p for your own"));
            }
            demo::run(*output_format).await
        }
        Some(Command::Decode(arguments)) => {
            decode_command::run(arguments, cli.session.model.as_deref())
        }
        Some(Command::Tool(ToolCommand::List)) => tool_command::list(&cli.session),
        Some(Command::Tool(ToolCommand::Run(arguments))) => {
            tool_command::run(&cli.session, arguments).await
        }
        Some(Command::Login(arguments)) => login_command::login(&cli.session, arguments).await,
        Some(Command::Logout(arguments)) => login_command::logout(&cli.session, arguments).await,
        Some(Command::Models(arguments)) => models_command::run(&cli.session, arguments).await,
        Some(Command::Doctor) => doctor::run(&cli.session),
        Some(Command::Config(ConfigCommand::Show)) => config_command::show(&cli.session),
        Some(Command::Config(ConfigCommand::Schema)) => config_command::schema(),
        None => headless::run(&cli).await,
    }
}
