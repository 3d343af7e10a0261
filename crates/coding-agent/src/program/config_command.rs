//! `config show` and `config schema`.

use std::collections::BTreeSet;

use coding_agent::config::ConfigLayer;
use coding_agent::{ModelName, SCRIPTED_PROVIDER};

use crate::program::cli::SessionArguments;
use crate::program::exit::Exit;
use crate::program::failure::Failure;
use crate::program::output::Output;
use crate::program::session::Session;

/// Prints the configuration in force as TOML that can be read again, and where the key of the chosen
/// model and of each configured provider comes from. It holds no keys, only the names of the variables
/// that do; key commands, headers and what an address holds besides an address are left out.
pub(crate) fn show(arguments: &SessionArguments) -> Result<Exit, Failure> {
    let session = Session::open(arguments)?;
    session.report_notes();
    let mut output = Output::new();
    for file in &session.loaded_files {
        output.text(&format!("# from {}", file.display()))?;
    }
    let chosen = ModelName::parse(&session.config.model).ok().map(|name| name.provider);
    let mut providers: BTreeSet<&str> =
        session.config.providers.keys().map(String::as_str).collect();
    providers.extend(chosen.as_deref().filter(|name| *name != SCRIPTED_PROVIDER));
    for name in providers {
        match session.provider(name) {
            Ok(found) => output.text(&format!("# {name}: {}", found.key))?,
            Err(error) => output.text(&format!("# {name}: {error}"))?,
        }
    }
    let mut shown = session.config.to_layer();
    for provider in shown.providers.values_mut() {
        *provider = provider.shown();
    }
    let text = toml::to_string_pretty(&shown)
        .map_err(|error| Failure::failed(format!("{error}; this is a defect")))?;
    output.text(&text)?;
    output.flush()?;
    Ok(Exit::Completed)
}

/// Prints the JSON Schema of a configuration file.
pub(crate) fn schema() -> Result<Exit, Failure> {
    let mut output = Output::new();
    output.pretty_json(&schemars::schema_for!(ConfigLayer))?;
    output.flush()?;
    Ok(Exit::Completed)
}
