//! [`ApiKey`]: a secret that nothing shows (SPEC M20).

use std::fmt;

/// A provider's key. Neither `Debug` nor `Display` shows it; there is no `Serialize`.
///
/// ```
/// let key = ai::ApiKey::new("sk-secret-123\n");
/// assert_eq!(format!("{key} {key:?}"), "[key] ApiKey([key])");
/// assert_eq!(key.redact("you sent sk-secret-123".to_owned()), "you sent [key]");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

/// What stands where a key would be.
const PLACEHOLDER: &str = "[key]";

/// Shorter secrets are placeholders such as `none` or `ollama`, which also stand in ordinary text.
const SHORTEST_SECRET: usize = 8;

impl ApiKey {
    /// A key. White space around it comes from files and commands, and is taken off.
    pub fn new(key: impl AsRef<str>) -> Self {
        Self(key.as_ref().trim().to_owned())
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `text` without the key: some providers quote the key that they refuse.
    pub fn redact(&self, text: String) -> String {
        redact_secret(&self.0, text)
    }

    /// The key itself, for the header that carries it and for covering it elsewhere.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

/// `text` with every `secret` in it covered.
pub(crate) fn redact_secret(secret: &str, text: String) -> String {
    if secret.len() >= SHORTEST_SECRET && text.contains(secret) {
        text.replace(secret, PLACEHOLDER)
    } else {
        text
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKey({PLACEHOLDER})")
    }
}

impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PLACEHOLDER)
    }
}
