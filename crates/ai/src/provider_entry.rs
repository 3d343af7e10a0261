//! [`ProviderEntry`]: all that is needed to ask one provider, as data.
//!
//! Entries come from [`crate::BUILTIN_PROVIDERS`] or from the caller's configuration. This module
//! reads no environment: whoever makes an entry puts the key in.

use std::fmt;

use crate::api::Api;
use crate::api_key::{ApiKey, redact_secret};
use crate::compat::Compat;

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
    /// Where it is: with or without the version for Messages, with it for Chat Completions.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthScheme {
    /// `authorization: Bearer KEY`.
    Bearer,
    /// `x-api-key: KEY`.
    XApiKey,
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
                Api::OpenaiChat => AuthScheme::Bearer,
            },
            headers: Vec::new(),
            compat: Compat::default(),
            max_output_tokens: None,
        }
    }

    /// The address that requests go to.
    ///
    /// A base that already names the endpoint is taken as it is; Messages adds the version where the
    /// base does not end in one, since both habits are common.
    pub fn endpoint(&self) -> String {
        let (base, query) = match self.base_url.trim().split_once('?') {
            Some((base, query)) => (base, format!("?{query}")),
            None => (self.base_url.trim(), String::new()),
        };
        let base = base.trim_end_matches('/');
        let rest = match self.api {
            Api::AnthropicMessages if base.ends_with("/v1/messages") => "",
            Api::AnthropicMessages if base.ends_with("/v1") => "/messages",
            Api::AnthropicMessages => "/v1/messages",
            Api::OpenaiChat if base.ends_with("/chat/completions") => "",
            Api::OpenaiChat => "/chat/completions",
        };
        format!("{base}{rest}{query}")
    }

    /// `text` without the entry's secrets: its key, headers that may be one, and what the address
    /// holds besides an address.
    pub fn redact(&self, text: String) -> String {
        let text = match &self.api_key {
            Some(key) => key.redact(text),
            None => text,
        };
        let text = secrets_in(&self.base_url)
            .into_iter()
            .fold(text, |text, secret| redact_secret(secret, text));
        self.headers
            .iter()
            .filter(|(name, _)| is_secret_header(name))
            .fold(text, |text, (_, value)| redact_secret(value, text))
    }
}

/// An address as it may be shown: without the password and the query that it may carry.
pub fn url_without_secrets(url: &str) -> String {
    let (address, query) = match url.split_once('?') {
        Some((address, _)) => (address, "?…"),
        None => (url, ""),
    };
    let shown = match user_info(address) {
        Some((_, user_info)) => address.replacen(user_info, "…", 1),
        None => address.to_owned(),
    };
    format!("{shown}{query}")
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
    let password = user_info(address).and_then(|(_, user_info)| user_info.split_once(':'));
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
            .field("base_url", &url_without_secrets(&self.base_url))
            .field("api_key", &self.api_key)
            .field("key_need", &self.key_need)
            .field("key_hint", &self.key_hint)
            .field("auth", &self.auth)
            .field("headers", &headers)
            .field("compat", &self.compat)
            .field("max_output_tokens", &self.max_output_tokens)
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
        ] {
            assert_eq!(ProviderEntry::new("p", api, base).endpoint(), endpoint, "{api} {base}");
        }
    }

    /// SPEC M20
    #[test]
    fn an_address_is_shown_without_its_secrets() {
        for (url, shown) in [
            ("https://h/v1", "https://h/v1"),
            ("https://user:pass-0123456@h:1/v1", "https://…@h:1/v1"),
            ("https://h/v1?token=tok-0123456", "https://h/v1?…"),
            ("https://h/a@b", "https://h/a@b"),
            ("no address", "no address"),
        ] {
            assert_eq!(url_without_secrets(url), shown);
        }
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
    fn debug_and_redaction_cover_keys_and_secret_headers() {
        let mut entry = ProviderEntry::new("p", Api::OpenaiChat, "http://h");
        entry.api_key = Some(ApiKey::new("sk-0123456789"));
        entry.headers = vec![
            ("x-team-token".to_owned(), "tok-0123456789".to_owned()),
            ("x-title".to_owned(), "a readable title".to_owned()),
        ];
        let shown = format!("{entry:?}");
        assert!(!shown.contains("0123456789"), "{shown}");
        assert_eq!(
            entry.redact("sk-0123456789 tok-0123456789 a readable title".to_owned()),
            "[key] [key] a readable title"
        );
    }
}
