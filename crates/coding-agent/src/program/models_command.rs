//! `models`: who can be asked.

use ai::{Api, BuiltinProvider};
use coding_agent::{ModelError, SCRIPTED_PROVIDER, provider_names};

use crate::program::cli::SessionArguments;
use crate::program::exit::Exit;
use crate::program::failure::Failure;
use crate::program::output::Output;
use crate::program::session::Session;

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
        let line = match session.provider(&name) {
            Ok(found) => {
                let (entry, key) = (found.entry, found.key);
                row(&name, entry.api.as_str(), &format!("{key}, {}", entry.shown_endpoint()))
            }
            Err(ModelError::NoKey { variable, .. }) => {
                row(&name, api(&session, &name), &format!("{variable} is not set"))
            }
            Err(ModelError::NoAddress { variables, .. }) => {
                row(&name, api(&session, &name), &format!("{} is not set", variables.join(" or ")))
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

/// The wire format of a provider that cannot be asked yet.
fn api(session: &Session, name: &str) -> &'static str {
    let own = session.config.providers.get(name).and_then(|own| own.api);
    let api = own.or_else(|| BuiltinProvider::find(name).map(|builtin| builtin.api));
    api.map_or("", Api::as_str)
}

fn row(name: &str, api: &str, state: &str) -> String {
    format!("{name:<16} {api:<20} {state}")
}
