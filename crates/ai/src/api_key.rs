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

/// How much of a secret's beginning gives it away: more than the prefix that all keys of a kind have.
const SHORTEST_PIECE: usize = 12;

/// `text` with every `secret` in it covered, also one whose end was cut off, as quotes are that are
/// shortened.
pub(crate) fn redact_secret(secret: &str, text: String) -> String {
    if secret.len() < SHORTEST_SECRET {
        return text;
    }
    let head = secret.get(..SHORTEST_PIECE).unwrap_or(secret);
    if !text.contains(head) {
        return text;
    }
    let mut covered = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some((before, from)) = rest.find(head).and_then(|at| rest.split_at_checked(at)) {
        let same = from.chars().zip(secret.chars()).take_while(|(left, right)| left == right);
        let piece: usize = same.map(|(char, _)| char.len_utf8()).sum();
        covered.push_str(before);
        covered.push_str(PLACEHOLDER);
        rest = from.get(piece..).unwrap_or_default();
    }
    covered + rest
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

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC M20
    #[test]
    fn a_key_is_covered_also_where_a_quote_was_cut_in_it() {
        let key = ApiKey::new("sk-proj-0123456789abcdef");
        for (text, covered) in [
            ("a sk-proj-0123456789abcdef b sk-proj-0123456789abcdef", "a [key] b [key]"),
            ("`sk-proj-0123456789abc`", "`[key]`"),
            ("sk-proj-0123", "[key]"),
            ("sk-proj-0123456789abcdefsk-proj-0123456789", "[key][key]"),
            // As hosts mask it.
            ("sk-proj-****cdef", "sk-proj-****cdef"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(key.redact(text.to_owned()), covered);
        }
        assert_eq!(ApiKey::new("ollama").redact("ollama".to_owned()), "ollama");
    }
}
