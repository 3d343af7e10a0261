//! Which model is asked: from a name and the configuration to a provider entry with its key.
//!
//! Decides without network; the environment is a function that the caller passes.
//!
//! A key is looked for where the configuration says (`key_env` or `key_command`), then in the usual
//! variables, then in the credentials file. What is nearer to the moment wins: a configuration that
//! names a place for this provider means that place; a variable set for one shell or one job is
//! meant for it, and must not be beaten by what was stored months ago; what `login` stored is for all the
//! rest. A `key_env` stands in for the usual variables, so that a key of another account is not taken
//! by accident; where that variable is not set, what was stored under the provider's name still counts.

use ai::catalogue::lay_over;
use ai::{
    ApiKey, BUILTIN_PROVIDERS, BuiltinProvider, KeyNeed, ModelInfo, ProviderEntry, shown_address,
};

use similar::TextDiff;

use crate::config::{Config, ProviderConfig};
use crate::keys::{KeyCommand, KeyFile, KeyFileError, KeyOrigin, StoredKey};

/// The provider whose models are scripts played inside the process.
pub const SCRIPTED_PROVIDER: &str = "scripted";

/// A model's full name, `PROVIDER/MODEL`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelName {
    /// The provider entry.
    pub provider: String,
    /// The model, as its provider names it; may hold slashes.
    pub model: String,
}

/// A provider that can be asked, and where its key comes from.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FoundProvider {
    /// Its entry, with the key where that is known already.
    pub entry: ProviderEntry,
    /// Where the key comes from. Where a command prints it, that has not run yet.
    pub key: KeyOrigin,
}

/// A model that cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The name is not of the form `PROVIDER/MODEL`.
    #[error("`{0}` is no model: expected PROVIDER/MODEL")]
    NoProvider(String),
    /// Nothing is known under that provider's name.
    #[error("unknown provider `{provider}`")]
    UnknownProvider {
        /// The name.
        provider: String,
        /// What is known.
        known: Vec<String>,
    },
    /// A provider of the user's own lacks something.
    #[error("provider `{provider}` has no `{key}` in the configuration")]
    Incomplete {
        /// The name.
        provider: String,
        /// What is missing.
        key: &'static str,
    },
    /// There is no key for it, neither in that variable nor in the credentials file.
    #[error("there is no key for provider `{provider}`: {variable} is not set")]
    NoKey {
        /// The name.
        provider: String,
        /// The variable that should hold it.
        variable: String,
    },
    /// Where it is only its customer knows, and nothing says it.
    #[error("there is no address for provider `{provider}`: {} is not set", .variables.join(" or "))]
    NoAddress {
        /// The name.
        provider: String,
        /// The variables that may hold it.
        variables: Vec<&'static str>,
    },
    /// The file that may hold its key cannot be used.
    #[error(transparent)]
    KeyFile(#[from] KeyFileError),
    /// An address that cannot be one.
    #[error(
        "the address of provider `{provider}` is not usable: `{base_url}` does not begin with http:// or https:// and a host"
    )]
    BadAddress {
        /// The name.
        provider: String,
        /// The address, without what may be secret in it.
        base_url: String,
    },
}

impl ModelError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::NoProvider(_) => {
                "for example --model anthropic/claude-sonnet-4-5; `coding-agent models` lists \
                 providers"
                    .to_owned()
            }
            Self::UnknownProvider { provider, known } => {
                let meant = meant_provider(provider, known);
                let meant = meant.map(|name| format!("perhaps `{name}`; ")).unwrap_or_default();
                format!(
                    "{meant}known are {}; one of your own is [providers.NAME] in the configuration",
                    known.join(", ")
                )
            }
            Self::Incomplete { provider, key } => {
                format!("add `{key}` to [providers.{provider}]")
            }
            Self::NoKey { provider, variable } => {
                format!(
                    "export {variable}=…, or store a key with `coding-agent login {provider}`, or \
                     try it without a key: --model scripted/hello"
                )
            }
            Self::NoAddress { provider, variables } => {
                let variable = variables.first().copied().unwrap_or_default();
                format!("export {variable}=https://…, or set base_url in [providers.{provider}]")
            }
            Self::KeyFile(error) => error.hint(),
            Self::BadAddress { provider, .. } => {
                format!("set base_url in [providers.{provider}], or the variable that overrides it")
            }
        }
    }
}

impl ModelName {
    /// Reads `PROVIDER/MODEL`.
    ///
    /// # Errors
    /// When one of the two is missing.
    pub fn parse(name: &str) -> Result<Self, ModelError> {
        match name.split_once('/') {
            Some((provider, model)) if !provider.is_empty() && !model.is_empty() => {
                Ok(Self { provider: provider.to_owned(), model: model.to_owned() })
            }
            Some(_) | None => Err(ModelError::NoProvider(name.to_owned())),
        }
    }
}

/// The entry of a provider: the built-in one, changed by the environment and the configuration, or
/// one of the user's own; with its key, or the command that prints it. `key_file` is read only where
/// nothing else gives a key.
///
/// # Errors
/// When it cannot be asked, each with a hint.
pub fn provider_entry(
    provider: &str,
    config: &Config,
    key_file: Option<&KeyFile>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<FoundProvider, ModelError> {
    let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
    let own = config.providers.get(provider);
    let builtin = BuiltinProvider::find(provider);
    let mut entry = match (builtin, own) {
        (Some(builtin), _) => builtin_entry(builtin, own, set)?,
        (None, Some(own)) => own_entry(provider, own)?,
        (None, None) => {
            return Err(ModelError::UnknownProvider {
                provider: provider.to_owned(),
                known: provider_names(config),
            });
        }
    };
    if let Some(own) = own {
        apply(&mut entry, own, builtin);
    }
    entry.models = known_models(provider, config, Vec::new()).into();
    let base_url = entry.base_url.trim();
    let host = base_url.strip_prefix("http://").or_else(|| base_url.strip_prefix("https://"));
    if host.is_none_or(|host| host.is_empty() || host.starts_with(['/', '?', '#'])) {
        return Err(ModelError::BadAddress {
            provider: provider.to_owned(),
            base_url: shown_address(base_url),
        });
    }
    let key = find_key(&mut entry, own, builtin, key_file, set)?;
    Ok(FoundProvider { entry, key })
}

/// The name under which the credentials file keeps a provider's key: that of the provider whose
/// account it shares, or its own.
pub fn key_account(provider: &str) -> &str {
    match BuiltinProvider::find(provider) {
        Some(builtin) => builtin.account(),
        None => provider,
    }
}

/// Names under which people look for a provider that is called something else here.
const OTHER_NAMES: [(&str, &str); 9] = [
    ("google", "gemini"),
    ("claude", "anthropic"),
    ("gpt", "openai"),
    ("chatgpt", "openai"),
    ("grok", "xai"),
    ("kimi", "moonshot"),
    ("glm", "zhipu"),
    ("alibaba", "qwen"),
    ("dashscope", "qwen"),
];

/// How alike a misspelt name is to the one that was meant, of 1.
const ALIKE: f32 = 0.75;

/// The provider that was perhaps meant.
fn meant_provider<'a>(name: &str, known: &'a [String]) -> Option<&'a str> {
    let other = OTHER_NAMES.iter().find(|(other, _)| name.eq_ignore_ascii_case(other));
    if let Some((_, called)) = other {
        return known.iter().find(|known| known == called).map(String::as_str);
    }
    let alike = |known: &str| TextDiff::from_chars(name, known).ratio();
    let best = known.iter().map(|known| (alike(known), known));
    let best = best.max_by(|(one, _), (other, _)| one.total_cmp(other));
    best.filter(|(ratio, _)| *ratio >= ALIKE).map(|(_, name)| name.as_str())
}

/// Every provider that can be named, built-in and configured, in the order in which they are shown.
pub fn provider_names(config: &Config) -> Vec<String> {
    let builtin = BUILTIN_PROVIDERS.iter().map(|provider| provider.name.to_owned());
    let mut names: Vec<String> = builtin.collect();
    names.extend(
        config.providers.keys().filter(|name| BuiltinProvider::find(name).is_none()).cloned(),
    );
    names.push(SCRIPTED_PROVIDER.to_owned());
    names
}

/// The variables that may hold a provider's key: those of the built-in providers and those that the
/// configuration names.
pub fn key_variables(config: &Config) -> Vec<String> {
    let builtin = BUILTIN_PROVIDERS.iter().flat_map(|provider| provider.key_variables);
    let own = config.providers.values().filter_map(|provider| provider.key_env.clone());
    builtin.map(|name| (*name).to_owned()).chain(own).collect()
}

fn builtin_entry(
    builtin: &BuiltinProvider,
    own: Option<&ProviderConfig>,
    set: impl Fn(&str) -> Option<String>,
) -> Result<ProviderEntry, ModelError> {
    let configured = own.and_then(|own| own.base_url.clone());
    let mut entry = builtin.entry();
    entry.base_url = configured.or_else(|| builtin.address(set)).ok_or_else(|| {
        let hosts = builtin.host_variables.iter().map(|host| host.name);
        ModelError::NoAddress {
            provider: builtin.name.to_owned(),
            variables: std::iter::once(builtin.base_url_variable).chain(hosts).collect(),
        }
    })?;
    Ok(entry)
}

fn own_entry(provider: &str, own: &ProviderConfig) -> Result<ProviderEntry, ModelError> {
    let missing = |key| ModelError::Incomplete { provider: provider.to_owned(), key };
    let api = own.api.ok_or_else(|| missing("api"))?;
    let base_url = own.base_url.as_deref().ok_or_else(|| missing("base_url"))?;
    Ok(ProviderEntry::new(provider, api, base_url))
}

fn apply(entry: &mut ProviderEntry, own: &ProviderConfig, builtin: Option<&BuiltinProvider>) {
    if let Some(api) = own.api.filter(|api| *api != entry.api) {
        // Another format is another dialect and another way to send the key, unless the host has a
        // way of its own. What its models can read stays the same.
        let plain = ProviderEntry::new(entry.name.clone(), api, entry.base_url.clone());
        entry.api = api;
        entry.auth = builtin.and_then(|builtin| builtin.auth).unwrap_or(plain.auth);
        let text_only = entry.compat.text_only;
        entry.compat = plain.compat;
        entry.compat.text_only = text_only;
    }
    if let Some(compat) = &own.compat {
        entry.compat = compat.clone();
    }
    entry.auth = own.auth.unwrap_or(entry.auth);
    let headers = own.headers.iter();
    entry.headers.extend(headers.map(|(name, value)| (name.clone(), value.clone())));
    entry.max_output_tokens = own.max_output_tokens.or(entry.max_output_tokens);
}

/// What is known of a provider's models: by the program, by the provider's own list where it was
/// asked for it, and by the configuration, each bettering what was known before. An API that is
/// configured for the provider is that of all its models which are not configured themselves.
pub fn known_models(provider: &str, config: &Config, listed: Vec<ModelInfo>) -> Vec<ModelInfo> {
    let own = config.providers.get(provider);
    let known = BuiltinProvider::find(provider).map(BuiltinProvider::models).unwrap_or_default();
    let mut known = lay_over(&known, listed);
    if own.is_some_and(|own| own.api.is_some()) {
        known.iter_mut().for_each(|model| model.api = None);
    }
    lay_over(&known, own.map(|own| own.models.clone()).unwrap_or_default())
}

/// Puts the key into the entry, or says which command prints it. The order is argued in the module's
/// documentation.
fn find_key(
    entry: &mut ProviderEntry,
    own: Option<&ProviderConfig>,
    builtin: Option<&BuiltinProvider>,
    key_file: Option<&KeyFile>,
    set: impl Fn(&str) -> Option<String>,
) -> Result<KeyOrigin, ModelError> {
    if let Some(command) = own.and_then(|own| own.key_command.as_ref()) {
        entry.key_need = KeyNeed::Required;
        return Ok(KeyOrigin::ConfiguredCommand(KeyCommand::new(command)));
    }
    let named = own.and_then(|own| own.key_env.as_deref());
    if let Some(name) = named {
        entry.key_need = KeyNeed::Required;
        entry.key_hint = Some(name.to_owned());
    }
    let usual = builtin.map(|builtin| builtin.key_variables).unwrap_or_default();
    let variables = named.into_iter().chain(usual.iter().copied().filter(|_| named.is_none()));
    for name in variables {
        if let Some(key) = set(name) {
            entry.api_key = Some(ApiKey::new(key));
            return Ok(KeyOrigin::Variable(name.to_owned()));
        }
    }
    let stored = match key_file {
        Some(file) => file.find(key_account(&entry.name))?,
        None => None,
    };
    match (stored, entry.key_need) {
        (Some(StoredKey::Key(key)), _) => {
            entry.api_key = Some(key.api_key());
            Ok(KeyOrigin::Stored)
        }
        (Some(StoredKey::Command(command)), _) => Ok(KeyOrigin::StoredCommand(command.clone())),
        (None, KeyNeed::Optional) => Ok(KeyOrigin::NotNeeded),
        (None, KeyNeed::Required) => Err(ModelError::NoKey {
            provider: entry.name.clone(),
            variable: entry.key_hint.clone().unwrap_or_default(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use ai::Api;

    use super::*;

    fn config(toml: &str) -> Config {
        Config::from_layers([toml::from_str(toml).unwrap()])
    }

    fn nothing(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn names_have_a_provider_and_a_model() {
        let name = ModelName::parse("openrouter/anthropic/claude").unwrap();
        assert_eq!(
            (name.provider.as_str(), name.model.as_str()),
            ("openrouter", "anthropic/claude")
        );
        for bad in ["", "gpt", "/gpt", "openai/"] {
            assert_eq!(ModelName::parse(bad), Err(ModelError::NoProvider(bad.to_owned())));
        }
    }

    #[test]
    fn who_was_perhaps_meant_is_said() {
        let known = provider_names(&config(""));
        for (name, meant) in [
            ("antropic", Some("anthropic")),
            ("open-ai", Some("openai")),
            ("google", Some("gemini")),
            ("Claude", Some("anthropic")),
            ("nobody", None),
            ("", None),
        ] {
            assert_eq!(meant_provider(name, &known), meant, "{name}");
        }
    }

    #[test]
    fn a_provider_of_ones_own_is_four_lines() {
        let config = config(
            "[providers.mine]\napi = 'openai-chat'\nbase_url = 'http://127.0.0.1:1/v1'\nkey_env = 'MINE'",
        );
        let missing = provider_entry("mine", &config, None, nothing).unwrap_err();
        assert_eq!(missing.to_string(), "there is no key for provider `mine`: MINE is not set");
        let set = |name: &str| (name == "MINE").then(|| "secret-key-1".to_owned());
        let entry = provider_entry("mine", &config, None, set).unwrap().entry;
        assert_eq!(entry.endpoint(), "http://127.0.0.1:1/v1/chat/completions");
        assert_eq!(entry.api_key, Some(ApiKey::new("secret-key-1")));
    }

    /// The catalogue's API of a model won over the one that was configured for its provider.
    #[test]
    fn a_configured_api_is_that_of_every_model_that_is_not_configured_itself() {
        let api_of = |toml: &str, model: &str| {
            let set = |name: &str| (name == "OPENAI_API_KEY").then(|| "secret-key-1".to_owned());
            let found = provider_entry("openai", &config(toml), None, set).unwrap();
            found.entry.for_model(model).api
        };
        let chat = "[providers.openai]\napi = 'openai-chat'\n";
        let configured =
            format!("{chat}models = [{{ id = 'gpt-6-sol', api = 'openai-responses' }}]");
        assert_eq!(api_of("", "gpt-6-sol"), Api::OpenaiResponses);
        assert_eq!(api_of(chat, "gpt-6-sol"), Api::OpenaiChat);
        assert_eq!(api_of(&configured, "gpt-6-sol"), Api::OpenaiResponses);
        assert_eq!(api_of(&configured, "gpt-6-luna"), Api::OpenaiChat);
    }

    /// SPEC B1
    #[test]
    fn the_variables_with_keys_are_known_whatever_they_are_called() {
        let variables = key_variables(&config("[providers.mine]\nkey_env = 'MINE'"));
        for name in ["ANTHROPIC_API_KEY", "MINE"] {
            assert!(variables.iter().any(|variable| variable == name), "{name}: {variables:?}");
        }
    }

    #[test]
    fn the_environment_moves_a_builtin_provider() {
        let set = |name: &str| match name {
            "ANTHROPIC_API_KEY" => Some("secret-key-1".to_owned()),
            "ANTHROPIC_BASE_URL" => Some("http://127.0.0.1:1".to_owned()),
            _ => None,
        };
        let entry = provider_entry("anthropic", &config(""), None, set).unwrap().entry;
        assert_eq!(entry.endpoint(), "http://127.0.0.1:1/v1/messages");
    }

    #[test]
    fn what_cannot_be_asked_is_said_with_a_hint() {
        let own = config(
            "[providers.mine]\napi = 'openai-chat'\n[providers.odd]\napi = 'openai-chat'\nbase_url = 'ftp://ada:secret@x'\n[providers.bare]\napi = 'openai-chat'\nbase_url = 'http://'",
        );
        for (provider, message) in [
            ("nobody", "unknown provider `nobody`"),
            ("mine", "provider `mine` has no `base_url` in the configuration"),
            ("anthropic", "there is no key for provider `anthropic`: ANTHROPIC_API_KEY is not set"),
            (
                "azure",
                "there is no address for provider `azure`: AZURE_OPENAI_BASE_URL or AZURE_OPENAI_ENDPOINT is not set",
            ),
            (
                "odd",
                "the address of provider `odd` is not usable: `ftp://x` does not begin with http:// or https:// and a host",
            ),
            (
                "bare",
                "the address of provider `bare` is not usable: `http://` does not begin with http:// or https:// and a host",
            ),
        ] {
            let error = provider_entry(provider, &own, None, nothing).unwrap_err();
            assert_eq!(error.to_string(), message);
            assert_ne!(error.hint(), "");
        }
    }

    #[test]
    fn another_format_is_another_dialect() {
        let config =
            config("[providers.openai]\napi = 'anthropic-messages'\nbase_url = 'http://h'");
        let set = |name: &str| (name == "OPENAI_API_KEY").then(|| "secret-key-1".to_owned());
        let entry = provider_entry("openai", &config, None, set).unwrap().entry;
        let plain = ProviderEntry::new("openai", Api::AnthropicMessages, "http://h");
        assert_eq!((entry.api, entry.auth, entry.compat), (plain.api, plain.auth, plain.compat));
    }

    fn variables<'a>(set: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    }

    /// Which key is taken, and what is said of it.
    #[test]
    fn the_nearest_key_wins() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("credentials.toml");
        let stored = "[providers.openai]\nkey = 'stored-key-1'\n\
                      [providers.mine]\nkey_command = 'echo x'\n\
                      [providers.ollama]\nkey = 'stored-key-2'\n";
        std::fs::write(&path, stored).unwrap();
        let owner_only = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&path, owner_only).unwrap();
        let mine = "[providers.mine]\napi = 'openai-chat'\nbase_url = 'http://h'\n";
        let mine_env = &format!("{mine}key_env = 'MINE'");
        let openai = ("OPENAI_API_KEY", "usual-key-1");
        let work = ("WORK", "work-key-12");
        let command = KeyOrigin::ConfiguredCommand(KeyCommand::new("echo y"));
        type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], KeyOrigin, Option<&'a str>);
        let cases: [Case<'_>; 11] = [
            ("openai", "", &[openai], KeyOrigin::Variable("OPENAI_API_KEY".into()), Some(openai.1)),
            ("openai", "", &[("OPENAI_API_KEY", " ")], KeyOrigin::Stored, Some("stored-key-1")),
            ("openai-responses", "", &[], KeyOrigin::Stored, Some("stored-key-1")),
            (
                "openai",
                "providers.openai.key_env = 'WORK'",
                &[openai, work],
                KeyOrigin::Variable("WORK".into()),
                Some(work.1),
            ),
            // The usual variable may hold the key of another account.
            (
                "openai",
                "providers.openai.key_env = 'WORK'",
                &[openai],
                KeyOrigin::Stored,
                Some("stored-key-1"),
            ),
            ("openai", "providers.openai.key_command = 'echo y'", &[openai], command, None),
            ("mine", mine, &[], KeyOrigin::StoredCommand(KeyCommand::new("echo x")), None),
            (
                "mine",
                mine_env,
                &[("MINE", "mine-key-12")],
                KeyOrigin::Variable("MINE".into()),
                Some("mine-key-12"),
            ),
            ("mine", mine_env, &[], KeyOrigin::StoredCommand(KeyCommand::new("echo x")), None),
            ("ollama", "", &[], KeyOrigin::Stored, Some("stored-key-2")),
            ("vllm", "", &[], KeyOrigin::NotNeeded, None),
        ];
        for (provider, toml, set, origin, key) in cases {
            let keys = KeyFile::new(&path);
            let found = provider_entry(provider, &config(toml), Some(&keys), variables(set));
            let found = found.unwrap();
            assert_eq!(
                (&found.key, &found.entry.api_key),
                (&origin, &key.map(ApiKey::new)),
                "{provider} {toml} {set:?}"
            );
            let shown = format!("{} {found:?}", found.key);
            assert!(!shown.contains("-key-1") && !shown.contains("echo"), "{shown}");
        }
    }

    /// A broken file is nobody's business who has a key elsewhere.
    #[test]
    fn the_file_of_keys_is_read_only_where_it_counts() {
        let directory = tempfile::tempdir().unwrap();
        let keys = KeyFile::new(directory.path());
        let find = |set: &[(&str, &str)]| {
            provider_entry("openai", &config(""), Some(&keys), variables(set))
        };
        assert!(find(&[("OPENAI_API_KEY", "usual-key-1")]).is_ok());
        let error = find(&[]).unwrap_err();
        assert!(error.to_string().ends_with("it is not a regular file"), "{error}");
        assert_ne!(error.hint(), "");
    }

    #[test]
    fn another_wire_format_and_another_way_to_send_the_key() {
        use ai::AuthScheme;
        let set = [("AZURE_OPENAI_ENDPOINT", "https://mine.example"), ("KEY", "key-of-mine")];
        for (provider, toml, endpoint, auth, text_only) in [
            (
                "azure",
                "api = 'openai-responses'",
                "https://mine.example/openai/v1/responses",
                AuthScheme::ApiKey,
                false,
            ),
            (
                "deepseek",
                "api = 'anthropic-messages'\nbase_url = 'https://api.deepseek.com/anthropic'",
                "https://api.deepseek.com/anthropic/v1/messages",
                AuthScheme::XApiKey,
                true,
            ),
            (
                "moonshot",
                "api = 'anthropic-messages'\nbase_url = 'https://h/anthropic'\nauth = 'bearer'",
                "https://h/anthropic/v1/messages",
                AuthScheme::Bearer,
                false,
            ),
            (
                "xai",
                "api = 'openai-responses'",
                "https://api.x.ai/v1/responses",
                AuthScheme::Bearer,
                false,
            ),
        ] {
            let toml = format!(
                "[providers.{provider}]\n{toml}\nkey_env = 'KEY'\nheaders = {{ x-team = 'a' }}"
            );
            let found = provider_entry(provider, &config(&toml), None, variables(&set)).unwrap();
            let entry = found.entry;
            assert_eq!(
                (entry.endpoint().as_str(), entry.auth, entry.compat.text_only),
                (endpoint, auth, text_only)
            );
            assert_eq!(entry.headers, [("x-team".to_owned(), "a".to_owned())]);
        }
    }
}
