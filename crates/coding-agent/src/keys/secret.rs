//! [`Secret`]: a key on its way from a person, a command or a file to where it belongs.

use std::fmt;

use ai::ApiKey;

/// A key longer than this is a file by mistake. The longest in use are signed tokens of a few
/// kilobytes.
pub(crate) const MAX_KEY_BYTES: usize = 16 * 1024;

/// A key that a header can carry. Nothing shows it: there is no `Display`, and `Debug` covers it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// Why a text is no key. Says nothing of what the text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAKey {
    /// Nothing, or nothing but white space.
    #[error("it is empty")]
    Empty,
    /// More than a key can be.
    #[error("it is longer than {} KiB", MAX_KEY_BYTES / 1024)]
    TooLong,
    /// White space in the middle, control characters or letters beyond ASCII.
    #[error("it holds white space or characters that no key has")]
    Characters,
}

impl Secret {
    /// Reads a key; white space around it comes from files, pipes and terminals, and is taken off.
    ///
    /// # Errors
    /// When no header could carry it.
    pub fn parse(text: &str) -> Result<Self, NotAKey> {
        let key = text.trim();
        if key.is_empty() {
            return Err(NotAKey::Empty);
        }
        if key.len() > MAX_KEY_BYTES {
            return Err(NotAKey::TooLong);
        }
        if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(NotAKey::Characters);
        }
        Ok(Self(key.to_owned()))
    }

    /// The key as requests carry it.
    pub fn api_key(&self) -> ApiKey {
        ApiKey::new(&self.0)
    }

    /// The key itself, for the file that keeps it.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret([key])")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC M20
    #[test]
    fn only_what_a_header_can_carry_is_a_key() {
        for (text, expected) in [
            (" sk-1\r\n", Ok("sk-1")),
            ("", Err(NotAKey::Empty)),
            ("\n\t", Err(NotAKey::Empty)),
            ("sk-1\nsk-2", Err(NotAKey::Characters)),
            ("Bearer sk-1", Err(NotAKey::Characters)),
            ("sk-\u{1b}1", Err(NotAKey::Characters)),
            ("schlüssel", Err(NotAKey::Characters)),
        ] {
            let parsed = Secret::parse(text);
            assert_eq!(parsed.as_ref().map(Secret::reveal).map_err(|error| *error), expected);
            assert!(!format!("{parsed:?}").contains("sk-1"));
        }
        assert_eq!(Secret::parse(&"x".repeat(MAX_KEY_BYTES + 1)), Err(NotAKey::TooLong));
    }
}
