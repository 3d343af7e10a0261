//! [`ConfigLayer`]: what one source sets.

use std::collections::BTreeMap;
use std::fmt;

use ai::{Api, AuthScheme, Compat, ModelInfo, ThinkingLevel, shown_address};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::keys::looks_like_a_key;
use crate::model_choice::SCRIPTED_PROVIDER;
use crate::permission::PermissionMode;

/// What one source of configuration sets. Everything may be left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "coding-agent configuration")]
#[serde(default, deny_unknown_fields)]
pub struct ConfigLayer {
    /// The model to ask, as `PROVIDER/MODEL`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What is allowed without asking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<PermissionMode>,
    /// How much the model shall think, or as near to it as the model can; it decides itself where
    /// nothing is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<ThinkingLevel>,
    /// How long a model request and a command may take.
    pub timeouts: TimeoutsLayer,
    /// How long things may take to notice that they were cancelled.
    pub cancel: CancelLayer,
    /// How often a model request is tried again before its answer began.
    pub retry: RetryLayer,
    /// What a run may use at most.
    pub limits: LimitsLayer,
    /// Providers of one's own by name, and changes to the built-in ones.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub providers: BTreeMap<String, ProviderConfig>,
}

/// What stands for a value that is not shown.
const NOT_SHOWN: &str = "(not shown)";

/// One provider. Its `Debug` shows no value that may be a secret.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProviderConfig {
    /// The wire format it speaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<Api>,
    /// Where it is, such as `http://127.0.0.1:8000/v1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The environment variable that holds its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// A command for `/bin/sh` that prints its key; run when the provider is first asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_command: Option<String>,
    /// How the key travels, where that is not the wire format's usual way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<AuthScheme>,
    /// Further headers of every request. They win over those that are sent anyway.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The cap on output tokens of one answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// How its dialect differs from the plain form of its wire format.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compat: Option<Compat>,
    /// Models to list by `coding-agent models`, with what is known of them; it is laid over what the
    /// program knows itself. Others can be asked all the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ModelInfo>,
}

/// Waits, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TimeoutsLayer {
    /// Until the connection stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect_ms: Option<u64>,
    /// Until the first byte of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte_ms: Option<u64>,
    /// Between two pieces of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
    /// For a command that names no time of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_ms: Option<u64>,
}

/// Graces, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CancelLayer {
    /// Until a cancelled call is abandoned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
    /// Until a command that was asked to end is killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kill_grace_ms: Option<u64>,
}

/// Retries of a model request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RetryLayer {
    /// Attempts in all, the first included.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_attempts: Option<u32>,
    /// From the first attempt to the last, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_elapsed_ms: Option<u64>,
}

/// What a run may use at most.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsLayer {
    /// Turns: model requests with the calls that they make.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_turns: Option<u32>,
    /// Tool calls at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_parallel_tool_calls: Option<usize>,
}

impl ConfigLayer {
    /// This layer with a stronger one laid over it.
    #[must_use]
    pub fn under(mut self, over: Self) -> Self {
        for (name, provider) in over.providers {
            let below = self.providers.remove(&name).unwrap_or_default();
            self.providers.insert(name, below.under(provider));
        }
        Self {
            model: over.model.or(self.model),
            permission_mode: over.permission_mode.or(self.permission_mode),
            thinking: over.thinking.or(self.thinking),
            providers: self.providers,
            timeouts: TimeoutsLayer {
                connect_ms: over.timeouts.connect_ms.or(self.timeouts.connect_ms),
                first_byte_ms: over.timeouts.first_byte_ms.or(self.timeouts.first_byte_ms),
                idle_ms: over.timeouts.idle_ms.or(self.timeouts.idle_ms),
                tool_ms: over.timeouts.tool_ms.or(self.timeouts.tool_ms),
            },
            cancel: CancelLayer {
                grace_ms: over.cancel.grace_ms.or(self.cancel.grace_ms),
                kill_grace_ms: over.cancel.kill_grace_ms.or(self.cancel.kill_grace_ms),
            },
            retry: RetryLayer {
                max_attempts: over.retry.max_attempts.or(self.retry.max_attempts),
                max_elapsed_ms: over.retry.max_elapsed_ms.or(self.retry.max_elapsed_ms),
            },
            limits: LimitsLayer {
                max_turns: over.limits.max_turns.or(self.limits.max_turns),
                max_parallel_tool_calls: over
                    .limits
                    .max_parallel_tool_calls
                    .or(self.limits.max_parallel_tool_calls),
            },
        }
    }

    /// What is wrong with the values, beyond their types.
    pub(crate) fn check(&self) -> Result<(), String> {
        let at_least_one = |value: bool, key: &str| {
            if value { Err(format!("{key} must be at least 1")) } else { Ok(()) }
        };
        at_least_one(self.limits.max_turns == Some(0), "limits.max_turns")?;
        at_least_one(
            self.limits.max_parallel_tool_calls == Some(0),
            "limits.max_parallel_tool_calls",
        )?;
        at_least_one(self.retry.max_attempts == Some(0), "retry.max_attempts")?;
        self.providers.iter().try_for_each(|(name, provider)| provider.check(name))
    }

    /// What an untrusted project may set over `below`, in which everything is set; the rest is named
    /// in `ignored`. A project can say which model suits it and shorten waits and limits, but nothing
    /// that points a provider elsewhere, hands out keys or lowers a guard.
    #[must_use]
    pub(crate) fn untrusted(mut self, below: &Self, ignored: &mut Vec<&'static str>) -> Self {
        if !self.providers.is_empty() {
            ignored.push("providers");
            self.providers.clear();
        }
        // Another model of the provider that the user chose, but not another provider: the
        // conversation goes where the user sends it.
        let provider = |model: &Option<String>| {
            model.as_ref().and_then(|model| model.split_once('/')).map(|(name, _)| name.to_owned())
        };
        if self.model.is_some() && provider(&self.model) != provider(&below.model) {
            ignored.push("model");
            self.model = None;
        }
        match self.permission_mode {
            None | Some(PermissionMode::ReadOnly) => {}
            Some(_) => {
                ignored.push("permission_mode");
                self.permission_mode = None;
            }
        }
        // Thinking is paid for: a project may ask for less than the user did.
        if self.thinking.is_some() && below.thinking.is_none_or(|below| self.thinking > Some(below))
        {
            ignored.push("thinking");
            self.thinking = None;
        }
        let mut shorten = Shorten(ignored);
        let (timeouts, cancel, retry, limits) =
            (&mut self.timeouts, &mut self.cancel, &mut self.retry, &mut self.limits);
        shorten.only("timeouts.connect_ms", &mut timeouts.connect_ms, below.timeouts.connect_ms);
        let first_byte_ms = below.timeouts.first_byte_ms;
        shorten.only("timeouts.first_byte_ms", &mut timeouts.first_byte_ms, first_byte_ms);
        shorten.only("timeouts.idle_ms", &mut timeouts.idle_ms, below.timeouts.idle_ms);
        shorten.only("timeouts.tool_ms", &mut timeouts.tool_ms, below.timeouts.tool_ms);
        shorten.only("cancel.grace_ms", &mut cancel.grace_ms, below.cancel.grace_ms);
        shorten.only("cancel.kill_grace_ms", &mut cancel.kill_grace_ms, below.cancel.kill_grace_ms);
        shorten.only("retry.max_attempts", &mut retry.max_attempts, below.retry.max_attempts);
        shorten.only("retry.max_elapsed_ms", &mut retry.max_elapsed_ms, below.retry.max_elapsed_ms);
        shorten.only("limits.max_turns", &mut limits.max_turns, below.limits.max_turns);
        shorten.only(
            "limits.max_parallel_tool_calls",
            &mut limits.max_parallel_tool_calls,
            below.limits.max_parallel_tool_calls,
        );
        self
    }
}

/// Takes back what would be longer than it is without the project, and names it.
struct Shorten<'a>(&'a mut Vec<&'static str>);

impl Shorten<'_> {
    fn only<T: PartialOrd>(&mut self, key: &'static str, value: &mut Option<T>, below: Option<T>) {
        let is_longer = value.as_ref().zip(below.as_ref()).is_some_and(|(own, below)| own > below);
        if is_longer {
            self.0.push(key);
            *value = None;
        }
    }
}

impl ProviderConfig {
    fn under(mut self, over: Self) -> Self {
        // One place for the key at a time: a stronger source replaces whichever the weaker names.
        if over.key_env.is_some() || over.key_command.is_some() {
            self.key_env = None;
            self.key_command = None;
        }
        self.headers.extend(over.headers);
        Self {
            api: over.api.or(self.api),
            base_url: over.base_url.or(self.base_url),
            key_env: over.key_env.or(self.key_env),
            key_command: over.key_command.or(self.key_command),
            auth: over.auth.or(self.auth),
            headers: self.headers,
            max_output_tokens: over.max_output_tokens.or(self.max_output_tokens),
            compat: over.compat.or(self.compat),
            models: if over.models.is_empty() { self.models } else { over.models },
        }
    }

    fn check(&self, name: &str) -> Result<(), String> {
        let is_blank =
            |value: &Option<String>| value.as_ref().is_some_and(|value| value.trim().is_empty());
        if self.key_env.is_some() && self.key_command.is_some() {
            return Err(format!(
                "providers.{name} has a key_env and a key_command; one of them is meant"
            ));
        }
        if name == SCRIPTED_PROVIDER || name.contains('/') {
            return Err(format!(
                "`{name}` is no name for a provider of one's own: it is {}",
                if name == SCRIPTED_PROVIDER { "the program's" } else { "cut at its slash" }
            ));
        }
        // Without its value: what is written there by mistake is the key.
        if self.key_env.as_ref().is_some_and(|value| !is_variable_name(value)) {
            return Err(format!(
                "providers.{name}.key_env must be the name of a variable that holds the key; a key \
                 itself is stored by `coding-agent login {name}`"
            ));
        }
        for (key, value) in [("key_env", &self.key_env), ("key_command", &self.key_command)] {
            if is_blank(value) {
                return Err(format!("providers.{name}.{key} is empty"));
            }
        }
        Ok(())
    }

    /// The same for people to see: whatever may hold a secret is named and not shown.
    #[must_use]
    pub fn shown(&self) -> Self {
        let covered = |_: &String| NOT_SHOWN.to_owned();
        Self {
            base_url: self.base_url.as_deref().map(shown_address),
            key_command: self.key_command.as_ref().map(covered),
            headers: self
                .headers
                .iter()
                .map(|(name, value)| (name.clone(), covered(value)))
                .collect(),
            ..self.clone()
        }
    }
}

/// Whether this names a variable, and is not a key in the place of a name.
fn is_variable_name(name: &str) -> bool {
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let is_lower = name.bytes().any(|byte| byte.is_ascii_lowercase());
    // Names are made of words, and mostly in upper case.
    let is_key = is_lower && name.split('_').any(looks_like_a_key);
    is_word && !is_key && !name.starts_with(|char: char| char.is_ascii_digit())
}

impl fmt::Debug for ProviderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            api,
            base_url,
            key_env,
            key_command,
            auth,
            headers,
            max_output_tokens,
            compat,
            models,
        } = self.shown();
        f.debug_struct("ProviderConfig")
            .field("api", &api)
            .field("base_url", &base_url)
            .field("key_env", &key_env)
            .field("key_command", &key_command)
            .field("auth", &auth)
            .field("headers", &headers)
            .field("max_output_tokens", &max_output_tokens)
            .field("compat", &compat)
            .field("models", &models)
            .finish()
    }
}
