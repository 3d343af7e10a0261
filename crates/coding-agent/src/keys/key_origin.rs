//! [`KeyOrigin`]: where a provider's key comes from.

use std::fmt;

use crate::keys::key_command::KeyCommand;

/// Where a provider's key comes from. Its `Display` is what people are shown; the key is not in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyOrigin {
    /// This environment variable.
    Variable(String),
    /// The `key_command` of the configuration.
    ConfiguredCommand(KeyCommand),
    /// A key in the credentials file.
    Stored,
    /// A `key_command` in the credentials file.
    StoredCommand(KeyCommand),
    /// There is none, and none is needed.
    NotNeeded,
}

impl KeyOrigin {
    /// The command that prints the key, where one does.
    pub fn command(&self) -> Option<&KeyCommand> {
        match self {
            Self::ConfiguredCommand(command) | Self::StoredCommand(command) => Some(command),
            Self::Variable(_) | Self::Stored | Self::NotNeeded => None,
        }
    }
}

impl fmt::Display for KeyOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "key from {name}"),
            Self::ConfiguredCommand(_) => f.write_str("key from the configuration's key_command"),
            Self::Stored => f.write_str("key from credentials.toml"),
            Self::StoredCommand(_) => f.write_str("key from the key_command in credentials.toml"),
            Self::NotNeeded => f.write_str("no key needed"),
        }
    }
}
