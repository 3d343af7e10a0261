//! [`Expect`]: what a request must look like for a turn to be played.

use serde::{Deserialize, Serialize};

use crate::conversation::{Conversation, Entry};

/// What a request must look like for its turn to be played. Every field that is there must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Expect {
    /// How many messages the request carries, as the API counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<usize>,
    /// Each of these is in the last thing that the user said.
    #[serde(skip_serializing_if = "Texts::is_empty")]
    pub last_user_contains: Texts,
    /// Each of these is in one of the tool results that came last.
    #[serde(skip_serializing_if = "Texts::is_empty")]
    pub last_result_contains: Texts,
    /// Whether one of the tool results that came last is an error. OpenAI's APIs have no such
    /// mark, so there it is not compared; Google's is an `error` in the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// How many tool results came last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub results: Option<usize>,
    /// Each of these tools is offered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Each of these is in the system prompt.
    #[serde(skip_serializing_if = "Texts::is_empty")]
    pub system_contains: Texts,
    /// The model that is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl Expect {
    /// Nothing is expected.
    pub fn new() -> Self {
        Self::default()
    }

    /// Expects this many messages.
    #[must_use]
    pub fn messages(mut self, count: usize) -> Self {
        self.messages = Some(count);
        self
    }

    /// Expects `text` in the last thing that the user said.
    #[must_use]
    pub fn last_user_contains(mut self, text: impl Into<String>) -> Self {
        self.last_user_contains.0.push(text.into());
        self
    }

    /// Expects `text` in one of the last tool results.
    #[must_use]
    pub fn last_result_contains(mut self, text: impl Into<String>) -> Self {
        self.last_result_contains.0.push(text.into());
        self
    }

    /// Expects the last tool results to have an error among them, or not.
    #[must_use]
    pub fn is_error(mut self, is_error: bool) -> Self {
        self.is_error = Some(is_error);
        self
    }

    /// Expects this many tool results at the end.
    #[must_use]
    pub fn results(mut self, count: usize) -> Self {
        self.results = Some(count);
        self
    }

    /// Expects a tool to be offered.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>) -> Self {
        self.tools.push(name.into());
        self
    }

    /// Expects `text` in the system prompt.
    #[must_use]
    pub fn system_contains(mut self, text: impl Into<String>) -> Self {
        self.system_contains.0.push(text.into());
        self
    }

    /// Expects this model to be asked for.
    #[must_use]
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.model = Some(name.into());
        self
    }

    /// The first thing that does not hold, in words.
    pub(crate) fn compare(&self, seen: &Conversation) -> Result<(), String> {
        if let Some(expected) = self.messages
            && expected != seen.messages
        {
            return Err(format!("expected {expected} messages, got {}", seen.messages));
        }
        if let Some(expected) = &self.model
            && *expected != seen.model
        {
            return Err(format!("expected the model {expected:?}, got {:?}", seen.model));
        }
        for name in &self.tools {
            if !seen.tools.contains(name) {
                return Err(format!("expected the tool {name:?}, got {:?}", seen.tools));
            }
        }
        for text in &self.system_contains.0 {
            if !seen.system.contains(text.as_str()) {
                return Err(format!("expected {text:?} in the system prompt"));
            }
        }
        for text in &self.last_user_contains.0 {
            let said = seen.last_user_text().unwrap_or_default();
            if !said.contains(text.as_str()) {
                return Err(format!(
                    "expected {text:?} in the last user text, got {:?}",
                    shorten(said)
                ));
            }
        }
        let results: Vec<(&str, Option<bool>)> = seen
            .last_results()
            .filter_map(|entry| match entry {
                Entry::Result { text, is_error, .. } => Some((text.as_str(), *is_error)),
                Entry::User { .. } | Entry::Assistant { .. } => None,
            })
            .collect();
        if let Some(expected) = self.results
            && expected != results.len()
        {
            return Err(format!("expected {expected} tool results, got {}", results.len()));
        }
        for text in &self.last_result_contains.0 {
            if !results.iter().any(|(result, _)| result.contains(text.as_str())) {
                let got: Vec<&str> = results.iter().map(|(result, _)| shorten(result)).collect();
                return Err(format!("expected {text:?} in the last tool results, got {got:?}"));
            }
        }
        if let Some(expected) = self.is_error {
            let marked = results.iter().any(|(_, is_error)| is_error.is_some());
            let got = results.iter().any(|(_, is_error)| *is_error == Some(true));
            if (marked || results.is_empty()) && got != expected {
                let (expected, got) =
                    if expected { ("an error", "none") } else { ("no error", "one") };
                return Err(format!("expected {expected} among the last tool results, got {got}"));
            }
        }
        Ok(())
    }
}

/// One text or several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "OneOrMany", into = "Vec<String>")]
pub struct Texts(pub Vec<String>);

impl Texts {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a string or an array of strings")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl From<OneOrMany> for Texts {
    fn from(texts: OneOrMany) -> Self {
        match texts {
            OneOrMany::One(text) => Self(vec![text]),
            OneOrMany::Many(texts) => Self(texts),
        }
    }
}

impl From<Texts> for Vec<String> {
    fn from(texts: Texts) -> Self {
        texts.0
    }
}

/// How much of a text a refusal quotes, in bytes: enough to recognise it.
const QUOTED_BYTES: usize = 200;

fn shorten(text: &str) -> &str {
    &text[..text.floor_char_boundary(QUOTED_BYTES)]
}
