//! [`PermissionMode`]: how much is allowed without asking.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much is allowed without asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PermissionMode {
    /// Reading in the workspace; nothing changes, and nobody is asked whether it may.
    ReadOnly,
    /// Reading in the workspace; the rest asks.
    #[default]
    Ask,
    /// Also edits in the workspace.
    AcceptEdits,
    /// Everything inside the sandbox. There is none yet, so this mode cannot be chosen.
    Auto,
    /// Everything but credentials, commands included.
    Bypass,
}

impl PermissionMode {
    const ALL: [Self; 5] = [Self::ReadOnly, Self::Ask, Self::AcceptEdits, Self::Auto, Self::Bypass];

    /// The name in configuration and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Ask => "ask",
            Self::AcceptEdits => "accept-edits",
            Self::Auto => "auto",
            Self::Bypass => "bypass",
        }
    }
}

impl fmt::Display for PermissionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A name that is no mode's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown permission mode `{0}`; known are read-only, ask, accept-edits, auto and bypass")]
pub struct UnknownMode(String);

impl FromStr for PermissionMode {
    type Err = UnknownMode;

    fn from_str(name: &str) -> Result<Self, UnknownMode> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.as_str() == name)
            .ok_or_else(|| UnknownMode(name.to_owned()))
    }
}
