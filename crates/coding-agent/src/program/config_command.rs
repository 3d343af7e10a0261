//! `config show` and `config schema`.

use coding_agent::config::ConfigLayer;

use crate::program::cli::SessionArguments;
use crate::program::exit::Exit;
use crate::program::failure::Failure;
use crate::program::output::Output;
use crate::program::session::Session;

/// Prints the configuration in force as TOML that can be read again. It holds no keys, only the
/// names of the variables that do; what an address holds besides an address is left out.
pub(crate) fn show(arguments: &SessionArguments) -> Result<Exit, Failure> {
    let session = Session::open(arguments)?;
    session.report_notes();
    let mut output = Output::new();
    for file in &session.loaded_files {
        output.text(&format!("# from {}", file.display()))?;
    }
    let mut shown = session.config.to_layer();
    for provider in shown.providers.values_mut() {
        provider.base_url = provider.base_url.as_deref().map(ai::shown_address);
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
