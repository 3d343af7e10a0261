//! [`ProviderEntry`]: all that is needed to ask one provider, as data.
//!
//! Entries come from [`crate::BUILTIN_PROVIDERS`] or from the caller's configuration. This module
//! reads no environment: whoever makes an entry puts the key in.

use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::Api;
use crate::api_key::{ApiKey, redact_secret};
use crate::catalogue::{Modality, ModelInfo, find_model};
use crate::compat::Compat;
use crate::request::Request;

/// One provider: where it is, what it speaks, and how it is asked.
///
/// ```
/// use ai::{Api, ApiKey, ProviderEntry};
///
/// let mut entry = ProviderEntry::new("mine", Api::OpenaiChat, "http://127.0.0.1:8000/v1/");
/// entry.api_key = Some(ApiKey::new("secret-of-mine"));
/// assert_eq!(entry.endpoint(), "http://127.0.0.1:8000/v1/chat/completions");
/// assert!(!format!("{entry:?}").contains("secret-of-mine"));
/// ```
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct ProviderEntry {
    /// The name in configuration and in messages, such as `anthropic`.
    pub name: String,
    /// The wire format.
    pub api: Api,
    /// Where it is: with or without the version for Messages, with it for the other APIs.
    pub base_url: String,
    /// The key, where there is one.
    pub api_key: Option<ApiKey>,
    /// Whether a request without a key is refused before it is sent.
    pub key_need: KeyNeed,
    /// What the user can set to give a key; only ever shown.
    pub key_hint: Option<String>,
    /// How the key travels.
    pub auth: AuthScheme,
    /// Further headers, which win over ours.
    pub headers: Vec<(String, String)>,
    /// The provider's dialect.
    pub compat: Compat,
    /// The cap on output tokens where the request sets none.
    pub max_output_tokens: Option<u32>,
    /// What is known of its models. Others can be asked all the same.
    pub models: Arc<[ModelInfo]>,
}

/// Whether a provider answers without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyNeed {
    /// It does not; asking without one is an error of kind `auth`.
    Required,
    /// It may: servers on the own machine, proxies that add the key.
    Optional,
}

/// Which header carries the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum AuthScheme {
    /// `authorization: Bearer KEY`.
    Bearer,
    /// `x-api-key: KEY`.
    XApiKey,
    /// `x-goog-api-key: KEY`.
    XGoogApiKey,
    /// `api-key: KEY`, as Azure asks.
    ApiKey,
}

impl ProviderEntry {
    /// An entry in its API's plain form, with no key and none required.
    pub fn new(name: impl Into<String>, api: Api, base_url: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            api,
            base_url: base_url.into(),
            api_key: None,
            key_need: KeyNeed::Optional,
            key_hint: None,
            auth: match api {
                Api::AnthropicMessages => AuthScheme::XApiKey,
                Api::OpenaiChat | Api::OpenaiResponses => AuthScheme::Bearer,
                Api::GoogleGenerate => AuthScheme::XGoogApiKey,
            },
            headers: Vec::new(),
            compat: Compat::default(),
            max_output_tokens: None,
            models: Arc::default(),
        }
    }

    /// The address that requests go to; `MODEL` stands in it where it names the model, as
    /// [`Self::endpoint_for`] does.
    pub fn endpoint(&self) -> String {
        self.endpoint_for(NO_MODEL)
    }

    /// The address that requests for this model go to.
    ///
    /// A base that already names the endpoint is taken as it is; Messages adds the version where the
    /// base does not end in one, since both habits are common. A query stays behind the path, where
    /// proxies expect it.
    pub fn endpoint_for(&self, model: &str) -> String {
        let base = self.base_url.trim();
        let base = base.split_once('#').map_or(base, |(base, _)| base);
        let (path, query) = base.split_at(base.find('?').unwrap_or(base.len()));
        let path = self.path_below(path.trim_end_matches('/'), model);
        match self.api {
            Api::AnthropicMessages | Api::OpenaiChat | Api::OpenaiResponses => path + query,
            // Without this the answer is one JSON array.
            Api::GoogleGenerate if query.len() > 1 => format!("{path}{query}&alt=sse"),
            Api::GoogleGenerate => format!("{path}?alt=sse"),
        }
    }

    /// What is known of a model, by its name or the alias that its dated name belongs to.
    pub fn model(&self, name: &str) -> Option<&ModelInfo> {
        find_model(&self.models, name)
    }

    /// The entry as this model is asked: some models of a provider need another API than the others.
    #[must_use]
    pub fn for_model(mut self, name: &str) -> Self {
        if let Some(api) = self.model(name).and_then(|info| info.api) {
            self.api = api;
        }
        self
    }

    /// The cap on output tokens that a request carries: its own, else the entry's, and never more
    /// than the model is known to write.
    pub(crate) fn output_cap(&self, request: &Request) -> Option<u32> {
        let cap = request.max_output_tokens.or(self.max_output_tokens)?;
        let most = self.model(&request.model).and_then(|info| info.max_output_tokens);
        Some(cap.min(most.unwrap_or(u32::MAX)))
    }

    /// The temperature that a request carries, where the model takes one.
    pub(crate) fn temperature(&self, request: &Request) -> Option<f64> {
        let refuses = self.model(&request.model).is_some_and(|info| info.no_temperature);
        request.temperature.filter(|_| !refuses)
    }

    /// Whether images are sent to this model: what is known of it decides, else the dialect.
    pub(crate) fn sends_images(&self, model: &str) -> bool {
        let known = self.model(model).and_then(|info| info.reads(Modality::Image));
        known.unwrap_or(!self.compat.text_only)
    }

    /// [`Self::endpoint`] as people may see it: without a user, a password and a query, any of which
    /// may be a secret.
    pub fn shown_endpoint(&self) -> String {
        shown_address(&self.endpoint())
    }

    fn path_below(&self, base: &str, model: &str) -> String {
        match self.api {
            Api::AnthropicMessages if base.ends_with("/v1/messages") => base.to_owned(),
            Api::AnthropicMessages if base.ends_with("/v1") => format!("{base}/messages"),
            Api::AnthropicMessages => format!("{base}/v1/messages"),
            Api::OpenaiChat if base.ends_with("/chat/completions") => base.to_owned(),
            Api::OpenaiChat => format!("{base}/chat/completions"),
            Api::OpenaiResponses if base.ends_with("/responses") => base.to_owned(),
            Api::OpenaiResponses => format!("{base}/responses"),
            Api::GoogleGenerate if base.ends_with(":streamGenerateContent") => base.to_owned(),
            Api::GoogleGenerate => {
                let model = in_path(model.strip_prefix("models/").unwrap_or(model));
                format!("{base}/models/{model}:streamGenerateContent")
            }
        }
    }

    /// `text` without the entry's secrets: its key, headers that may be one, and what the address
    /// holds besides an address.
    pub fn redact(&self, text: String) -> String {
        self.secrets().into_iter().fold(text, |text, secret| redact_secret(secret, text))
    }

    /// Whether `text` holds one of the entry's secrets, in whatever case.
    #[cfg(feature = "http")]
    pub(crate) fn is_secret_in(&self, text: &str) -> bool {
        let text = text.to_ascii_lowercase();
        self.secrets().into_iter().any(|secret| {
            let secret = secret.to_ascii_lowercase();
            redact_secret(&secret, text.clone()) != text
        })
    }

    fn secrets(&self) -> Vec<&str> {
        let headers = self.headers.iter().filter(|(name, _)| is_secret_header(name));
        let mut secrets = secrets_in(&self.base_url);
        secrets.extend(headers.map(|(_, value)| value.as_str()));
        secrets.extend(self.api_key.as_ref().map(ApiKey::reveal));
        // One that holds another goes first, so that no piece of it is left.
        secrets.sort_by_key(|secret| Reverse(secret.len()));
        secrets
    }
}

/// Stands for the model in an address that is only shown.
const NO_MODEL: &str = "MODEL";

/// A model's name as a piece of a path: what would end the path or leave it is escaped.
fn in_path(model: &str) -> String {
    let mut path = String::with_capacity(model.len());
    for byte in model.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~@".contains(&byte) {
            path.push(char::from(byte));
        } else {
            path.push_str(&format!("%{byte:02X}"));
        }
    }
    path
}

/// An address without what may be secret in it: its user, password and query.
pub fn shown_address(address: &str) -> String {
    let (place, query) = address.split_at(address.find(['?', '#']).unwrap_or(address.len()));
    let (scheme, rest) = match place.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), place),
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    // A password may hold an `@` of its own; the host begins after the last.
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let query = if query.is_empty() { "" } else { "?…" };
    format!("{scheme}{host}{path}{query}")
}

/// What stands between the scheme and the `@` before the host, with the scheme.
fn user_info(address: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = address.split_once("://")?;
    let authority = rest.split('/').next().unwrap_or_default();
    let (user_info, _) = authority.rsplit_once('@')?;
    Some((scheme, user_info))
}

/// The password and the query's values.
fn secrets_in(url: &str) -> Vec<&str> {
    let (address, query) = url.split_once('?').unwrap_or((url, ""));
    // A user without a password may be a token.
    let password = user_info(address)
        .map(|(_, user_info)| user_info.split_once(':').unwrap_or(("", user_info)));
    let values = query.split('&').filter_map(|pair| pair.split_once('='));
    password.into_iter().chain(values).map(|(_, secret)| secret).collect()
}

/// Headers whose value is covered wherever text leaves this crate.
pub(crate) fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["auth", "key", "token", "secret", "cookie"].iter().any(|part| name.contains(part))
}

impl fmt::Debug for ProviderEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("ProviderEntry")
            .field("name", &self.name)
            .field("api", &self.api)
            .field("base_url", &shown_address(&self.base_url))
            .field("api_key", &self.api_key)
            .field("key_need", &self.key_need)
            .field("key_hint", &self.key_hint)
            .field("auth", &self.auth)
            .field("headers", &headers)
            .field("compat", &self.compat)
            .field("max_output_tokens", &self.max_output_tokens)
            .field("models", &self.models.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoint_accepts_every_habit_of_writing_a_base() {
        for (api, base, endpoint) in [
            (Api::AnthropicMessages, "https://h", "https://h/v1/messages"),
            (Api::AnthropicMessages, "https://h/", "https://h/v1/messages"),
            (Api::AnthropicMessages, "https://h/v1", "https://h/v1/messages"),
            (Api::AnthropicMessages, "https://h/v1/", "https://h/v1/messages"),
            (Api::AnthropicMessages, "https://h/proxy//", "https://h/proxy/v1/messages"),
            (Api::AnthropicMessages, "https://h/v1/messages", "https://h/v1/messages"),
            (Api::OpenaiChat, "https://h/v1", "https://h/v1/chat/completions"),
            (Api::OpenaiChat, " https://h/v1/ ", "https://h/v1/chat/completions"),
            (Api::OpenaiChat, "https://h", "https://h/chat/completions"),
            (Api::OpenaiChat, "https://h/x/?v=1", "https://h/x/chat/completions?v=1"),
            (Api::OpenaiChat, "https://h/v1/chat/completions/", "https://h/v1/chat/completions"),
            (Api::OpenaiChat, "https://h/v1/?v=1/2", "https://h/v1/chat/completions?v=1/2"),
            (Api::AnthropicMessages, "https://h?v=1#x", "https://h/v1/messages?v=1"),
            (Api::OpenaiResponses, "https://h/v1/", "https://h/v1/responses"),
            (Api::OpenaiResponses, "https://h/v1/responses?v=1", "https://h/v1/responses?v=1"),
        ] {
            assert_eq!(ProviderEntry::new("p", api, base).endpoint(), endpoint, "{api} {base}");
        }
    }

    #[test]
    fn the_model_is_part_of_googles_address() {
        for (base, model, endpoint) in [
            (
                "https://h/v1beta",
                "m-1.5",
                "https://h/v1beta/models/m-1.5:streamGenerateContent?alt=sse",
            ),
            (
                "https://h/v1beta/",
                "models/m",
                "https://h/v1beta/models/m:streamGenerateContent?alt=sse",
            ),
            ("http://h?v=1", "m", "http://h/models/m:streamGenerateContent?v=1&alt=sse"),
            (
                "http://h/?",
                "a/b?#%",
                "http://h/models/a%2Fb%3F%23%25:streamGenerateContent?alt=sse",
            ),
            (
                "https://h/models/x:streamGenerateContent",
                "m",
                "https://h/models/x:streamGenerateContent?alt=sse",
            ),
        ] {
            let entry = ProviderEntry::new("p", Api::GoogleGenerate, base);
            assert_eq!(entry.endpoint_for(model), endpoint, "{base} {model}");
        }
        let entry = ProviderEntry::new("p", Api::GoogleGenerate, "https://h");
        assert_eq!(entry.shown_endpoint(), "https://h/models/MODEL:streamGenerateContent?…");
    }

    /// SPEC M20
    #[test]
    fn what_an_answer_quotes_of_the_address_is_covered() {
        let url = "https://user:pass-0123456@h/v1?token=tok-0123456";
        let entry = ProviderEntry::new("p", Api::OpenaiChat, url);
        assert_eq!(
            entry.redact("pass-0123456 and tok-0123456 at h".to_owned()),
            "[key] and [key] at h"
        );
        assert!(!format!("{entry:?}").contains("0123456"));
    }

    /// SPEC M20
    #[test]
    fn a_user_without_a_password_may_be_a_token() {
        let entry = ProviderEntry::new("p", Api::OpenaiChat, "https://tok-0123456@h/v1");
        assert_eq!(entry.redact("tok-0123456 at h".to_owned()), "[key] at h");
    }

    /// SPEC M20
    #[test]
    fn debug_and_redaction_cover_keys_and_secret_headers() {
        let base = "http://ada:0123456789@h/v1?key=0123456789";
        let mut entry = ProviderEntry::new("p", Api::OpenaiChat, base);
        entry.api_key = Some(ApiKey::new("sk-0123456789"));
        entry.headers = vec![
            ("x-team-token".to_owned(), "tok-0123456789".to_owned()),
            ("x-title".to_owned(), "a readable title".to_owned()),
        ];
        let shown = format!("{entry:?}");
        assert!(!shown.contains("0123456789"), "{shown}");
        assert_eq!(entry.shown_endpoint(), "http://h/v1/chat/completions?…");
        assert_eq!(
            entry.redact("sk-0123456789 tok-0123456789 a readable title".to_owned()),
            "[key] [key] a readable title"
        );
    }
}
