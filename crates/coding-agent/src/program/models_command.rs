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

/// Longer names push the columns of their own lines only.
const WIDEST_NAME: usize = 48;

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
            match refreshed {
                Ok(count) => eprintln!("note: {name} lists {count} models"),
                Err(failure) => {
                    eprintln!("error: {name}: {}", printable(&failure));
                    failed = true;
                }
            }
        }
        listed.push(describe(&session, name, found));
    }
    print(&listed, models)?;
    Ok(if failed { Exit::Failed } else { Exit::Completed })
}

/// Asks the provider for its list and keeps it. Answers how long it is.
async fn refresh(session: &Session, found: &FoundProvider) -> Result<usize, String> {
    let mut entry = found.entry.clone();
    if let Some(command) = found.key.command() {
        let key = command.run().await.map_err(|error| error.to_string())?;
        entry.api_key = Some(key.api_key());
    }
    let lists = session.directories.as_ref().map(ModelLists::new);
    let lists = lists.ok_or("there is no directory to keep a list in: set HOME")?;
    let provider = HttpProvider::new(entry.clone(), HttpClient::new(session.config.timeouts));
    let models = provider.list_models().await.map_err(|error| error.to_string())?;
    let count = models.len();
    lists
        .write(&entry, models)
        .map_err(|error| format!("the list cannot be kept: {error}"))
        .map(|()| count)
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
            let own = session.config.providers.get(&provider).map(|own| &own.models[..]);
            // What the provider has itself, once it was asked, and what the user says it has.
            let is_had = |model: &ModelInfo| {
                let mut had = kept.iter().chain(own.unwrap_or_default());
                kept.is_empty() || had.any(|had| had.id == model.id)
            };
            let mut models = known_models(&provider, &session.config, kept.clone());
            models.retain(is_had);
            Listed {
                api: entry.api.to_string(),
                ready: true,
                state: format!("{key}, {}", entry.shown_endpoint()),
                models,
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
                    other => format!("{other}; {}", other.hint()),
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
        let Listed { provider: name, api, state, models, .. } = provider;
        output.text(&format!("{name:<16} {api:<20} {}", printable(state)))?;
        let account = BuiltinProvider::find(name).map(BuiltinProvider::account);
        if let Some(account) = account.filter(|account| account != name)
            && arguments.provider.is_none()
        {
            output.text(&format!("    the models of {account}"))?;
            continue;
        }
        let names: Vec<String> =
            models.iter().map(|model| printable(&format!("{name}/{}", model.id))).collect();
        let widths = names.iter().map(|name| name.chars().count());
        let width = widths.max().unwrap_or(0).min(WIDEST_NAME);
        for (name, model) in names.iter().zip(models) {
            output.text(format!("    {name:<width$}  {}", facts(model)).trim_end())?;
        }
    }
    output.flush()
}

/// What is known of a model, in columns.
fn facts(model: &ModelInfo) -> String {
    let tokens = |tokens: Option<u64>, what: &str| match tokens {
        Some(tokens) => format!("{} {what}", in_thousands(tokens)),
        None => String::new(),
    };
    let window = tokens(model.context_window, "window");
    let output = tokens(model.max_output_tokens.map(u64::from), "out");
    let price = model.price.as_ref().map(price_words).unwrap_or_default();
    let images = if model.reads(Modality::Image) == Some(true) { "images" } else { "" };
    let thinking = model.thinking.as_ref().map(|thinking| match thinking.form {
        ThinkingForm::Always => "always thinks".to_owned(),
        ThinkingForm::Budget | ThinkingForm::Effort | ThinkingForm::Switch => {
            let levels: Vec<&str> = thinking.levels.keys().map(|level| level.as_str()).collect();
            format!("thinking {}", levels.join("|"))
        }
        _ => String::new(),
    });
    let thinking = thinking.unwrap_or_default();
    format!("{window:>12}  {output:>8}  {price:<20}  {images:<6}  {thinking}").trim_end().to_owned()
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
            (json!({"id": "m", "price": {"input": 0.25, "output": 1}}), "$0.25 in $1 out"),
            (
                json!({"id": "m", "context_window": 200_000, "max_output_tokens": 8192,
                    "input": ["text", "image"], "price": {"input": 3, "output": 15.5},
                    "thinking": {"form": "effort", "levels": {"high": "high", "low": "low"}}}),
                "200k window  8192 out  $3 in $15.5 out  images  thinking low|high",
            ),
            (
                json!({"id": "m", "context_window": 1_048_576, "thinking": "always",
                    "price": {"input": 0, "output": 0}}),
                "1M window  free  always thinks",
            ),
        ] {
            let info: ModelInfo = serde_json::from_value(info).unwrap();
            let cells: Vec<String> = facts(&info)
                .split("  ")
                .map(|cell| cell.trim().to_owned())
                .filter(|cell| !cell.is_empty())
                .collect();
            assert_eq!(cells.join("  "), words);
        }
    }
}
