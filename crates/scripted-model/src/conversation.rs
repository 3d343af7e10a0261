//! [`Conversation`]: a request's content, the same for all APIs.
//!
//! What [`crate::Expect`] is compared with, and what a [`crate::Responder`] tells conversations apart
//! by. It is read leniently from a body that has already passed its API's checks.

use serde_json::Value;

/// A request's content, the same for all APIs.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Conversation {
    /// The model that is asked for.
    pub model: String,
    /// The system prompt's texts, joined by line ends.
    pub system: String,
    /// The names of the tools that are offered, in order.
    pub tools: Vec<String>,
    /// How many messages the request carries, as the API counts them.
    pub messages: usize,
    /// What was said, called and answered, in order.
    pub entries: Vec<Entry>,
}

/// One thing that was said, called or answered.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Entry {
    /// The user's text.
    User {
        /// All texts of one message, joined by line ends.
        text: String,
    },
    /// The model's answer.
    Assistant {
        /// All texts of one message, joined by line ends.
        text: String,
        /// Its calls, in order.
        calls: Vec<Call>,
    },
    /// A tool's result.
    Result {
        /// The call that it answers.
        call_id: String,
        /// All its texts, joined by line ends.
        text: String,
        /// The error mark; absent where the API has none.
        is_error: Option<bool>,
    },
}

/// A call in the history.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Call {
    /// Its id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub arguments: Value,
}

impl Call {
    pub(crate) fn new(id: String, name: String, arguments: Value) -> Self {
        Self { id, name, arguments }
    }
}

impl Conversation {
    /// The first thing that the user said: what tells one agent's conversation from another's.
    pub fn first_user_text(&self) -> Option<&str> {
        self.entries.iter().find_map(user_text)
    }

    /// The last thing that the user said.
    pub fn last_user_text(&self) -> Option<&str> {
        self.entries.iter().rev().find_map(user_text)
    }

    /// The results of the last answer's calls, in order; none when that answer made no calls.
    pub fn last_results(&self) -> impl Iterator<Item = &Entry> {
        let start = self
            .entries
            .iter()
            .rposition(|entry| match entry {
                Entry::Assistant { .. } => true,
                Entry::User { .. } | Entry::Result { .. } => false,
            })
            .map_or(0, |position| position + 1);
        self.entries[start..].iter().filter(|entry| match entry {
            Entry::Result { .. } => true,
            Entry::User { .. } | Entry::Assistant { .. } => false,
        })
    }

    /// How many answers of the model the request carries: the place of the next one, from 0.
    pub fn answers(&self) -> usize {
        self.entries
            .iter()
            .filter(|entry| match entry {
                Entry::Assistant { .. } => true,
                Entry::User { .. } | Entry::Result { .. } => false,
            })
            .count()
    }

    /// All calls of the history, in order.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.entries.iter().flat_map(|entry| match entry {
            Entry::Assistant { calls, .. } => calls.as_slice(),
            Entry::User { .. } | Entry::Result { .. } => &[],
        })
    }
}

fn user_text(entry: &Entry) -> Option<&str> {
    match entry {
        Entry::User { text } => Some(text),
        Entry::Assistant { .. } | Entry::Result { .. } => None,
    }
}

/// The texts of a content value: a string, or the `text` of its blocks, joined by line ends.
pub(crate) fn texts(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<&str> =
                blocks.iter().filter_map(|block| block["text"].as_str()).collect();
            texts.join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// The text of a string value, or nothing.
pub(crate) fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
