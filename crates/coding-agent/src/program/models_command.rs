//! `models`: who can be asked, and what is known of their models.

use ai::{
    Api, BuiltinProvider, HttpClient, HttpProvider, Modality, ModelInfo, Price, ThinkingForm,
};
use coding_agent::keys::KeyOrigin;
use coding_agent::{
    FoundProvider, ModelError, ModelLists, SCRIPTED_PROVIDER, known_models, provider_names,
};
use serde::Serialize;

use crate::program::cli::{ModelsArguments, ModelsFormat, SessionArguments};
use crate::program::exit::Exit;
use crate::program::failure::Failure;
use crate::program::output::Output;
use crate::program::render::printable;
use crate::program::session::Session;
use crate::program::signals::Signals;

/// The models that are played by the program itself.
const SCRIPTED_MODELS: [&str; 3] = ["hello", "fix-loop", "./FILE"];

/// One provider, as it is listed.
#[derive(Serialize)]
struct Listed {
    provider: String,
    api: String,
    /// Whether it can be asked now.
    ready: bool,
    /// Where it is, or what keeps it from being asked.
    state: String,
    models: Vec<ModelInfo>,
}

/// Prints each provider with its wire format, whether it can be asked now, and its models. With
/// `--refresh`, those that can be asked are asked for their own lists first.
pub(crate) async fn run(
    arguments: &SessionArguments,
    models: &ModelsArguments,
) -> Result<Exit, Failure> {
    let session = Session::open(arguments)?;
    session.report_notes();
    let mut names = provider_names(&session.config);
    if let Some(only) = &models.provider {
        names.retain(|name| name == only);
        if names.is_empty() {
            return Err(Failure::usage(format!("unknown provider `{only}`"))
                .hint("`coding-agent models` lists those that are known"));
        }
    }
    // A key command that is asked is not left running by whoever loses patience.
    let mut signals = models.refresh.then(Signals::listen).transpose()?;
    let mut failed = false;
    let mut listed = Vec::new();
    for name in names {
        if name == SCRIPTED_PROVIDER {
            listed.push(Listed {
                provider: name,
                api: Api::AnthropicMessages.to_string(),
                ready: true,
                state: "no key needed, plays a script inside the program".to_owned(),
                models: SCRIPTED_MODELS.map(ModelInfo::new).to_vec(),
            });
            continue;
        }
        let found = session.provider(&name);
        if let (Some(signals), Ok(found)) = (&mut signals, &found)
            && (models.provider.is_some() || found.key != KeyOrigin::NotNeeded)
        {
            let refreshed = tokio::select! {
                refreshed = refresh(&session, found) => refreshed,
                (_, exit) = signals.next() => return Ok(exit),
            };
            if let Err(failure) = refreshed {
                eprintln!("error: {name}: {}", printable(&failure));
                failed = true;
            }
        }
        listed.push(describe(&session, name, found));
    }
    print(&listed, models)?;
    Ok(if failed { Exit::Failed } else { Exit::Completed })
}

/// Asks the provider for its list and keeps it.
async fn refresh(session: &Session, found: &FoundProvider) -> Result<(), String> {
    let mut entry = found.entry.clone();
    if let Some(command) = found.key.command() {
        let key = command.run().await.map_err(|error| error.to_string())?;
        entry.api_key = Some(key.api_key());
    }
    let lists = session.directories.as_ref().map(ModelLists::new);
    let lists = lists.ok_or("there is no directory to keep a list in: set HOME")?;
    let provider = HttpProvider::new(entry.clone(), HttpClient::new(session.config.timeouts));
    let models = provider.list_models().await.map_err(|error| error.to_string())?;
    lists.write(&entry, models).map_err(|error| format!("the list cannot be kept: {error}"))
}

fn describe(
    session: &Session,
    provider: String,
    found: Result<FoundProvider, ModelError>,
) -> Listed {
    let lists = session.directories.as_ref().map(ModelLists::new);
    match found {
        Ok(FoundProvider { entry, key, .. }) => {
            let kept = lists.map(|lists| lists.read(&entry)).unwrap_or_default();
            Listed {
                api: entry.api.to_string(),
                ready: true,
                state: format!("{key}, {}", entry.shown_endpoint()),
                models: known_models(&provider, &session.config, kept),
                provider,
            }
        }
        Err(error) => {
            let own = session.config.providers.get(&provider).and_then(|own| own.api);
            let api = own.or_else(|| BuiltinProvider::find(&provider).map(|builtin| builtin.api));
            Listed {
                api: api.map(|api| api.to_string()).unwrap_or_default(),
                ready: false,
                state: match error {
                    ModelError::NoKey { variable, .. } => format!("{variable} is not set"),
                    ModelError::NoAddress { variables, .. } => {
                        format!("{} is not set", variables.join(" or "))
                    }
                    other => other.to_string(),
                },
                models: known_models(&provider, &session.config, Vec::new()),
                provider,
            }
        }
    }
}

fn print(listed: &[Listed], arguments: &ModelsArguments) -> Result<(), Failure> {
    let mut output = Output::new();
    if arguments.output_format == ModelsFormat::Json {
        output.pretty_json(&serde_json::json!({"providers": listed}))?;
        return output.flush();
    }
    for provider in listed {
        let Listed { provider: name, api, ready, state, models } = provider;
        output.text(&format!("{name:<16} {api:<20} {}", printable(state)))?;
        // Of those who cannot be asked only the number, unless they are what was asked for.
        if !ready && arguments.provider.is_none() {
            if !models.is_empty() {
                output.text(&format!("    {} models: coding-agent models {name}", models.len()))?;
            }
            continue;
        }
        for model in models {
            let facts = facts(model);
            let name = printable(&format!("{name}/{}", model.id));
            output.text(format!("    {name:<44} {facts}").trim_end())?;
        }
    }
    output.flush()
}

/// What is known of a model, in a few words.
fn facts(model: &ModelInfo) -> String {
    let mut facts = Vec::new();
    if let Some(window) = model.context_window {
        facts.push(format!("{} window", in_thousands(window)));
    }
    if let Some(output) = model.max_output_tokens {
        facts.push(format!("{} out", in_thousands(output.into())));
    }
    if let Some(price) = &model.price {
        facts.push(price_words(price));
    }
    if model.reads(Modality::Image) == Some(true) {
        facts.push("images".to_owned());
    }
    if let Some(thinking) = &model.thinking {
        match thinking.form {
            ThinkingForm::Always => facts.push("always thinks".to_owned()),
            ThinkingForm::Budget | ThinkingForm::Effort | ThinkingForm::Switch => {
                let levels: Vec<&str> =
                    thinking.levels.keys().map(|level| level.as_str()).collect();
                facts.push(format!("thinking {}", levels.join("|")));
            }
            _ => {}
        }
    }
    facts.join(", ")
}

/// Input and output for a million tokens.
fn price_words(price: &Price) -> String {
    if price.input == 0.0 && price.output == 0.0 {
        "free".to_owned()
    } else {
        format!("${} in ${} out", price.input, price.output)
    }
}

/// Tokens, as people say them.
fn in_thousands(tokens: u64) -> String {
    match tokens {
        0..10_000 => tokens.to_string(),
        10_000..1_000_000 => format!("{}k", tokens / 1000),
        // Powers of two and of ten are both called a million.
        _ => format!("{:.1}M", tokens as f64 / 1e6).replace(".0M", "M"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn facts_are_said_in_a_few_words_and_only_where_they_are_known() {
        for (info, words) in [
            (json!("m"), ""),
            (
                json!({"id": "m", "context_window": 200_000, "max_output_tokens": 8192,
                    "input": ["text", "image"], "price": {"input": 3, "output": 15.5},
                    "thinking": {"form": "effort", "levels": {"high": "high", "low": "low"}}}),
                "200k window, 8192 out, $3 in $15.5 out, images, thinking low|high",
            ),
            (
                json!({"id": "m", "context_window": 1_048_576, "thinking": "always",
                    "price": {"input": 0, "output": 0}}),
                "1M window, free, always thinks",
            ),
        ] {
            let info: ModelInfo = serde_json::from_value(info).unwrap();
            assert_eq!(facts(&info), words);
        }
    }
}
