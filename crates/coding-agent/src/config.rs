//! Configuration: files, variables and options, in that order of growing strength.
//!
//! Each source is a [`ConfigLayer`], read on its own so that a mistake is reported where it stands;
//! the layers are laid over each other and filled up with the defaults into a [`Config`]. A project's
//! own file can only tighten: what could loosen anything is ignored and said to be.

mod layer;
mod load;

pub use self::layer::{ConfigLayer, ProviderConfig};
pub use self::load::{ConfigError, LoadedConfig, Sources};

use std::collections::BTreeMap;
use std::time::Duration;

use ai::ThinkingLevel;

use crate::permission::PermissionMode;
use crate::tools::BashSettings;

/// The model that is asked unless another is named.
pub const DEFAULT_MODEL: &str = "anthropic/claude-sonnet-4-5";

/// The turns of one run, unless configured otherwise: more than any task needs, and an end to a model
/// that goes in circles.
pub const MAX_TURNS: u32 = 500;

/// Everything that can be configured, with a value for each.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `PROVIDER/MODEL`.
    pub model: String,
    /// What is allowed without asking.
    pub permission_mode: PermissionMode,
    /// How much the model shall think; `None` leaves it to the model.
    pub thinking: Option<ThinkingLevel>,
    /// Providers of the user's own, and changes to the built-in ones.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// Waits of a model request.
    pub timeouts: ai::Timeouts,
    /// How long a command may run unless it says otherwise.
    pub tool_timeout: Duration,
    /// How long a cancelled call may take to notice.
    pub cancel_grace: Duration,
    /// How long a command may take to end after it was asked to.
    pub kill_grace: Duration,
    /// How often a model request is tried.
    pub retry_attempts: u32,
    /// For how long.
    pub retry_elapsed: Duration,
    /// Turns of one run.
    pub max_turns: u32,
    /// Calls at once.
    pub max_parallel_tool_calls: usize,
}

impl Config {
    /// The layers, weakest first, with the defaults below them.
    pub fn from_layers(layers: impl IntoIterator<Item = ConfigLayer>) -> Self {
        let merged = layers.into_iter().fold(ConfigLayer::default(), ConfigLayer::under);
        let timeouts = ai::Timeouts::default();
        let retry = ai::RetryPolicy::default();
        let bash = BashSettings::default();
        let or =
            |value: Option<u64>, default: Duration| value.map_or(default, Duration::from_millis);
        Self {
            model: merged.model.unwrap_or_else(|| DEFAULT_MODEL.to_owned()),
            permission_mode: merged.permission_mode.unwrap_or_default(),
            thinking: merged.thinking,
            providers: merged.providers,
            timeouts: ai::Timeouts {
                connect: or(merged.timeouts.connect_ms, timeouts.connect),
                first_byte: or(merged.timeouts.first_byte_ms, timeouts.first_byte),
                idle: or(merged.timeouts.idle_ms, timeouts.idle),
            },
            tool_timeout: or(merged.timeouts.tool_ms, bash.timeout),
            cancel_grace: or(merged.cancel.grace_ms, agent::CANCEL_GRACE),
            kill_grace: or(merged.cancel.kill_grace_ms, bash.kill_grace),
            retry_attempts: merged.retry.max_attempts.unwrap_or(retry.max_attempts),
            retry_elapsed: or(merged.retry.max_elapsed_ms, retry.max_elapsed),
            max_turns: merged.limits.max_turns.unwrap_or(MAX_TURNS),
            max_parallel_tool_calls: merged
                .limits
                .max_parallel_tool_calls
                .unwrap_or(agent::MAX_PARALLEL_TOOL_CALLS),
        }
    }

    /// The configuration as a layer in which everything is set, as `config show` prints it.
    pub fn to_layer(&self) -> ConfigLayer {
        let millis =
            |duration: Duration| Some(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
        ConfigLayer {
            model: Some(self.model.clone()),
            permission_mode: Some(self.permission_mode),
            thinking: self.thinking,
            providers: self.providers.clone(),
            timeouts: layer::TimeoutsLayer {
                connect_ms: millis(self.timeouts.connect),
                first_byte_ms: millis(self.timeouts.first_byte),
                idle_ms: millis(self.timeouts.idle),
                tool_ms: millis(self.tool_timeout),
            },
            cancel: layer::CancelLayer {
                grace_ms: millis(self.cancel_grace),
                kill_grace_ms: millis(self.kill_grace),
            },
            retry: layer::RetryLayer {
                max_attempts: Some(self.retry_attempts),
                max_elapsed_ms: millis(self.retry_elapsed),
            },
            limits: layer::LimitsLayer {
                max_turns: Some(self.max_turns),
                max_parallel_tool_calls: Some(self.max_parallel_tool_calls),
            },
        }
    }
}
