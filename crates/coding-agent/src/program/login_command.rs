//! `login` and `logout`: keys for providers, kept where only their owner can read them.
//!
//! No key is ever printed, nor is anything that may be one: an argument in the wrong place, or what
//! standard input held instead of a key.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal, Read};

use coding_agent::keys::{
    KeyCommand, KeyFile, KeyFileError, KeyOrigin, NotAKey, Secret, StoredKey, looks_like_a_key,
};
use coding_agent::{SCRIPTED_PROVIDER, key_account, provider_names};

use crate::program::cli::{LoginArguments, LogoutArguments, SessionArguments};
use crate::program::exit::Exit;
use crate::program::failure::Failure;
use crate::program::hidden_line::{self, Typed};
use crate::program::output::Output;
use crate::program::session::Session;

/// How much is read of standard input: more than any key, so that a file by mistake is noticed.
const MAX_INPUT_BYTES: u64 = 64 * 1024;

/// Stores a key, or a command that prints one.
pub(crate) async fn login(
    session: &SessionArguments,
    arguments: &LoginArguments,
) -> Result<Exit, Failure> {
    refuse_surplus("login", &arguments.surplus)?;
    let session = Session::open(session)?;
    session.report_notes();
    let provider = known(&session, &arguments.provider)?;
    let file = key_file(&session)?;
    let account = key_account(&provider);
    let stored = match &arguments.key_command {
        Some(command) if command.trim().is_empty() => {
            return Err(Failure::usage("the key command is empty")
                .hint(format!("for example --key-command \"pass show {account}\"")));
        }
        Some(command) => StoredKey::Command(KeyCommand::new(command)),
        None => match read_key(account).await? {
            Answer::Key(key) => StoredKey::Key(key),
            Answer::Ended(exit) => return Ok(exit),
        },
    };
    let done = file.store(account, &stored).await.map_err(|error| refused(&error))?;
    if done.was_exposed {
        eprintln!(
            "note: others could read {} until now; replace the keys that were in it if anybody else \
             uses this machine",
            file.path().display()
        );
    }
    note_what_is_stronger(&session, &provider);
    let what = match stored {
        StoredKey::Key(_) => "the key",
        StoredKey::Command(_) => "the key command",
    };
    let instead = if done.replaced { ", in place of what was there" } else { "" };
    say(&format!("stored {what} of {account} in {}{instead}", file.path().display()))
}

/// Removes what is stored for a provider.
pub(crate) async fn logout(
    session: &SessionArguments,
    arguments: &LogoutArguments,
) -> Result<Exit, Failure> {
    refuse_surplus("logout", &arguments.surplus)?;
    let session = Session::open(session)?;
    session.report_notes();
    let file = key_file(&session)?;
    // Also of a provider that the configuration does not have any more.
    let name = arguments.provider.to_str().unwrap_or_default();
    let stored = file.find(name).map_err(|error| refused(&error))?.is_some();
    let provider = if stored { name.to_owned() } else { known(&session, &arguments.provider)? };
    let account = key_account(&provider);
    let removed = file.remove(account).await.map_err(|error| refused(&error))?;
    note_what_is_stronger(&session, &provider);
    let path = file.path().display();
    say(&if removed {
        format!("removed what was stored for {account} from {path}")
    } else {
        format!("there was no key of {account} in {path}")
    })
}

/// Refuses arguments that have no place, without saying them again.
fn refuse_surplus(command: &str, surplus: &[OsString]) -> Result<(), Failure> {
    if surplus.is_empty() {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{command} takes one provider and no key: other programs can see arguments, and shells keep \
         them"
    ))
    .hint("pipe the key in, or type it when you are asked; and replace one that was shown"))
}

fn say(text: &str) -> Result<Exit, Failure> {
    let mut output = Output::new();
    output.text(text)?;
    output.flush()?;
    Ok(Exit::Completed)
}

/// The provider's name, if it is one that can have a key.
fn known(session: &Session, provider: &OsStr) -> Result<String, Failure> {
    let mut names = provider_names(&session.config);
    names.retain(|name| name != SCRIPTED_PROVIDER);
    match provider.to_str() {
        Some(SCRIPTED_PROVIDER) => Err(Failure::usage("the provider `scripted` needs no key")
            .hint("use it as it is: --model scripted/hello")),
        Some(name) if names.iter().any(|known| known == name) => Ok(name.to_owned()),
        other => {
            let shown = match other {
                Some(name) if !looks_like_a_key(name) => format!("unknown provider `{name}`"),
                // Perhaps the key itself.
                Some(_) | None => "unknown provider".to_owned(),
            };
            Err(Failure::usage(shown).hint(format!(
                "known are {}; one of your own is [providers.NAME] in the configuration",
                names.join(", ")
            )))
        }
    }
}

fn key_file(session: &Session) -> Result<&KeyFile, Failure> {
    session.key_file.as_ref().ok_or_else(|| {
        Failure::usage("there is no place to keep keys: no home directory is known")
            .hint("set HOME or CODING_AGENT_HOME")
    })
}

fn refused(error: &KeyFileError) -> Failure {
    let failure = match error {
        // The user's to mend.
        KeyFileError::Unreadable { .. }
        | KeyFileError::Exposed { .. }
        | KeyFileError::Foreign { .. }
        | KeyFileError::Invalid { .. } => Failure::usage(error),
        KeyFileError::Unwritable { .. } => Failure::failed(error),
    };
    failure.hint(error.hint())
}

/// Says so where the stored key does not count, since another place comes before it.
fn note_what_is_stronger(session: &Session, provider: &str) {
    let Ok(found) = session.provider(provider) else { return };
    match found.key {
        KeyOrigin::Variable(name) => {
            eprintln!("note: {name} is set, and counts before what is stored");
        }
        KeyOrigin::ConfiguredCommand(_) => {
            eprintln!("note: the configuration's key_command counts before what is stored");
        }
        KeyOrigin::Stored | KeyOrigin::StoredCommand(_) | KeyOrigin::NotNeeded => {}
    }
}

enum Answer {
    Key(Secret),
    /// A signal came instead.
    Ended(Exit),
}

async fn read_key(account: &str) -> Result<Answer, Failure> {
    let text = if io::stdin().is_terminal() {
        match hidden_line::ask(&format!("key of {account} (not shown): ")).await? {
            Typed::Line(line) => line,
            Typed::Ended(exit) => return Ok(Answer::Ended(exit)),
        }
    } else {
        let read = tokio::task::spawn_blocking(read_piped).await;
        read.map_err(|error| Failure::failed(format!("{error}; this is a defect")))??
    };
    Secret::parse(&text).map(Answer::Key).map_err(|problem| {
        let failure = Failure::usage(format!("what was given is no key: {problem}"));
        match problem {
            NotAKey::Empty => failure.hint(format!(
                "pipe it in (`coding-agent login {account} <FILE`), or type it at a terminal"
            )),
            NotAKey::TooLong | NotAKey::Characters => {
                failure.hint("give the key alone, without a name, quotes or a scheme before it")
            }
        }
    })
}

fn read_piped() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    io::stdin().lock().take(MAX_INPUT_BYTES + 1).read_to_end(&mut bytes).map_err(|error| {
        Failure::usage(format!("cannot read standard input: {error}"))
            .hint("the key is read from there: pipe it in, or type it at a terminal")
    })?;
    // Bytes that are no text are no key either, which is said without them.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
