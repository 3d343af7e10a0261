//! Providers' keys: where they come from, and how none of them is shown (SPEC M20).
//!
//! A key is found by [`KeyFile`], in a variable, or printed by a [`KeyCommand`]; [`KeyOrigin`] says
//! which, and is all that anybody is shown. Keys never enter the program's own environment, so that
//! no process inherits them.
//!
//! Nothing here knows which provider is asked or in what order the places count: that is
//! [`crate::provider_entry`]'s.

mod cover;
mod key_command;
mod key_file;
mod key_origin;
mod late_key_provider;
mod secret;

pub use self::cover::{cover_keys, looks_like_a_key};
pub use self::key_command::{KEY_COMMAND_TIMEOUT, KeyCommand, KeyCommandError};
pub use self::key_file::{KeyFile, KeyFileError, Stored, StoredKey};
pub use self::key_origin::KeyOrigin;
pub use self::late_key_provider::LateKeyProvider;
pub use self::secret::{NotAKey, Secret};
