//! `models`: who can be asked.

use ai::{Api, BuiltinProvider};
use coding_agent::{ModelError, SCRIPTED_PROVIDER, provider_entry, provider_names};

use crate::program::cli::SessionArguments;
use crate::program::exit::Exit;
use crate::program::failure::Failure;
use crate::program::output::Output;
use crate::program::session::{Session, variable};

/// Prints each provider with its wire format and whether it can be asked now, and the models that
/// the configuration names for it.
pub(crate) fn run(arguments: &SessionArguments) -> Result<Exit, Failure> {
    let session = Session::open(arguments)?;
    session.report_notes();
    let mut output = Output::new();
    for name in provider_names(&session.config) {
        if name == SCRIPTED_PROVIDER {
            output.text(&row(&name, "anthropic-messages", "no key needed"))?;
            output.text("    scripted/hello\n    scripted/fix-loop\n    scripted/./FILE")?;
            continue;
        }
        let line = match provider_entry(&name, &session.config, variable) {
            Ok(entry) => {
                let ready = if entry.api_key.is_some() { "ready" } else { "no key needed" };
                row(&name, entry.api.as_str(), &format!("{ready}, {}", entry.shown_endpoint()))
            }
            Err(ModelError::NoKey { variable, .. }) => {
                let own = session.config.providers.get(&name).and_then(|own| own.api);
                let api = own.or_else(|| BuiltinProvider::find(&name).map(|builtin| builtin.api));
                row(&name, api.map_or("", Api::as_str), &format!("{variable} is not set"))
            }
            Err(error) => row(&name, "", &error.to_string()),
        };
        output.text(&line)?;
        let models = session.config.providers.get(&name).map(|own| own.models.as_slice());
        for model in models.unwrap_or_default() {
            output.text(&format!("    {name}/{model}"))?;
        }
    }
    output.flush()?;
    Ok(Exit::Completed)
}

fn row(name: &str, api: &str, state: &str) -> String {
    format!("{name:<14} {api:<20} {state}")
}
