//! Which model is asked: from a name and the configuration to a provider entry with its key.
//!
//! Decides without network; the environment is a function that the caller passes.

use ai::catalogue::{lay_over, models_of};
use ai::{
    ApiKey, BUILTIN_PROVIDERS, BuiltinProvider, KeyNeed, ModelInfo, ProviderEntry, shown_address,
};

use crate::config::{Config, ProviderConfig};

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
    /// There is no key for it.
    #[error("there is no key for provider `{provider}`: {variable} is not set")]
    NoKey {
        /// The name.
        provider: String,
        /// The variable that should hold it.
        variable: String,
    },
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
            Self::UnknownProvider { known, .. } => {
                format!(
                    "known are {}; one of your own is [providers.NAME] in the configuration",
                    known.join(", ")
                )
            }
            Self::Incomplete { provider, key } => {
                format!("add `{key}` to [providers.{provider}]")
            }
            Self::NoKey { variable, .. } => {
                format!("export {variable}=…, or try it without a key: --model scripted/hello")
            }
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
/// one of the user's own.
///
/// # Errors
/// When it cannot be asked, each with a hint.
pub fn provider_entry(
    provider: &str,
    config: &Config,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<ProviderEntry, ModelError> {
    let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
    let own = config.providers.get(provider);
    let mut entry = match (BuiltinProvider::find(provider), own) {
        (Some(builtin), _) => builtin_entry(builtin, set),
        (None, Some(own)) => own_entry(provider, own)?,
        (None, None) => {
            return Err(ModelError::UnknownProvider {
                provider: provider.to_owned(),
                known: provider_names(config),
            });
        }
    };
    if let Some(own) = own {
        apply(&mut entry, own, set);
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
    match (&entry.api_key, entry.key_need, &entry.key_hint) {
        (None, KeyNeed::Required, Some(variable)) => {
            Err(ModelError::NoKey { provider: provider.to_owned(), variable: variable.clone() })
        }
        _ => Ok(entry),
    }
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

fn builtin_entry(builtin: &BuiltinProvider, set: impl Fn(&str) -> Option<String>) -> ProviderEntry {
    let mut entry = builtin.entry();
    entry.api_key = builtin.key_variables.iter().find_map(|name| set(name)).map(ApiKey::new);
    if let Some(base_url) = set(builtin.base_url_variable) {
        entry.base_url = base_url;
    }
    entry
}

fn own_entry(provider: &str, own: &ProviderConfig) -> Result<ProviderEntry, ModelError> {
    let missing = |key| ModelError::Incomplete { provider: provider.to_owned(), key };
    let api = own.api.ok_or_else(|| missing("api"))?;
    let base_url = own.base_url.as_deref().ok_or_else(|| missing("base_url"))?;
    Ok(ProviderEntry::new(provider, api, base_url))
}

fn apply(entry: &mut ProviderEntry, own: &ProviderConfig, set: impl Fn(&str) -> Option<String>) {
    if let Some(api) = own.api.filter(|api| *api != entry.api) {
        // Another format is another dialect and another way to send the key.
        let plain = ProviderEntry::new(entry.name.clone(), api, entry.base_url.clone());
        entry.api = api;
        entry.auth = plain.auth;
        entry.compat = plain.compat;
    }
    if let Some(base_url) = &own.base_url {
        entry.base_url.clone_from(base_url);
    }
    if let Some(name) = &own.key_env {
        entry.api_key = set(name).map(ApiKey::new);
        entry.key_need = KeyNeed::Required;
        entry.key_hint = Some(name.clone());
    }
    if let Some(compat) = &own.compat {
        entry.compat = compat.clone();
    }
    entry.max_output_tokens = own.max_output_tokens.or(entry.max_output_tokens);
}

/// What is known of a provider's models: by the program, by the provider's own list where it was
/// asked for it, and by the configuration, each bettering what was known before.
pub fn known_models(provider: &str, config: &Config, listed: Vec<ModelInfo>) -> Vec<ModelInfo> {
    let own = config.providers.get(provider).map(|own| own.models.clone());
    let known = lay_over(&models_of(provider), listed);
    lay_over(&known, own.unwrap_or_default())
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
    fn a_provider_of_ones_own_is_four_lines() {
        let config = config(
            "[providers.mine]\napi = 'openai-chat'\nbase_url = 'http://127.0.0.1:1/v1'\nkey_env = 'MINE'",
        );
        let missing = provider_entry("mine", &config, nothing).unwrap_err();
        assert_eq!(missing.to_string(), "there is no key for provider `mine`: MINE is not set");
        let set = |name: &str| (name == "MINE").then(|| "secret-key-1".to_owned());
        let entry = provider_entry("mine", &config, set).unwrap();
        assert_eq!(entry.endpoint(), "http://127.0.0.1:1/v1/chat/completions");
        assert_eq!(entry.api_key, Some(ApiKey::new("secret-key-1")));
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
        let entry = provider_entry("anthropic", &config(""), set).unwrap();
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
                "odd",
                "the address of provider `odd` is not usable: `ftp://x` does not begin with http:// or https:// and a host",
            ),
            (
                "bare",
                "the address of provider `bare` is not usable: `http://` does not begin with http:// or https:// and a host",
            ),
        ] {
            let error = provider_entry(provider, &own, nothing).unwrap_err();
            assert_eq!(error.to_string(), message);
            assert_ne!(error.hint(), "");
        }
    }

    #[test]
    fn another_format_is_another_dialect() {
        let config =
            config("[providers.openai]\napi = 'anthropic-messages'\nbase_url = 'http://h'");
        let set = |name: &str| (name == "OPENAI_API_KEY").then(|| "secret-key-1".to_owned());
        let entry = provider_entry("openai", &config, set).unwrap();
        let plain = ProviderEntry::new("openai", Api::AnthropicMessages, "http://h");
        assert_eq!((entry.api, entry.auth, entry.compat), (plain.api, plain.auth, plain.compat));
    }
}
