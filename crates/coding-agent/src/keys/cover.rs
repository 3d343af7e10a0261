//! Covering what looks like a key in text that may hold one by mistake.
//!
//! For text whose secrets nobody knows: what a key command says on standard error, a line of a
//! configuration file that is wrong. Where the key is known, [`ai::ApiKey::redact`] covers it exactly.

/// Shorter words are names. Keys have twenty characters and more.
const SHORTEST_KEY: usize = 16;

/// What stands where something was covered; the same as in `ai`.
const PLACEHOLDER: &str = "[key]";

/// Whether a word may be a key: long, of letters and digits, as generated text is and written text
/// seldom. A name with a date in it is taken for one; that costs a reader little, and a key shown
/// costs its owner everything.
pub fn looks_like_a_key(word: &str) -> bool {
    word.len() >= SHORTEST_KEY
        && word.bytes().any(|byte| byte.is_ascii_alphabetic())
        && word.bytes().any(|byte| byte.is_ascii_digit())
}

/// `text` with every word covered that may be a key.
pub fn cover_keys(text: &str) -> String {
    let mut covered = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let is_part = |char: char| char.is_ascii_alphanumeric() || "-_.+".contains(char);
        let end = rest.find(|char| !is_part(char)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        covered.push_str(if looks_like_a_key(word) { PLACEHOLDER } else { word });
        let between = behind.find(is_part).unwrap_or(behind.len());
        covered.push_str(&behind[..between]);
        rest = &behind[between..];
    }
    covered
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC M20
    #[test]
    fn what_looks_like_a_key_is_covered_and_prose_is_not() {
        for (text, covered) in [
            ("key sk-proj-abcdef0123456789 is bad", "key [key] is bad"),
            ("Bearer eyJhbGciOi.eyJzdWIiOiIx.c2ln1!", "Bearer [key]!"),
            ("https://u:AKIA0123456789ABCDEF@h/", "https://u:[key]@h/"),
            ("pass: openai/work is not in the password store.", ""),
            ("/home/ada/.config/coding-agent/config.toml: line 12", ""),
            ("unknown field `api_key`, expected `key_env`", ""),
            ("ümlaut", ""),
            ("", ""),
        ] {
            let expected = if covered.is_empty() { text } else { covered };
            assert_eq!(cover_keys(text), expected);
        }
    }
}
