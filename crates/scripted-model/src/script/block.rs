//! [`Block`]: one piece of a scripted answer.
//!
//! In a file a block is one flat object; here it is an enum, so that a field that belongs to another
//! type of block is refused, with its place in the file.

use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// One piece of a scripted answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Flat", into = "Flat")]
pub enum Block {
    /// `{type: text, text}`
    Text {
        /// What is said.
        text: String,
    },
    /// `{type: thinking, text, signature?, redacted?}`
    Thinking {
        /// What is thought. Not sent when `redacted`.
        text: String,
        /// Sent as it is; when absent the server makes one from the text, and refuses a request that
        /// brings it back with another text.
        signature: Option<String>,
        /// Withheld: only the signature is sent, as the data of a redacted block.
        redacted: bool,
    },
    /// `{type: tool_call, id?, name, arguments | raw_arguments}`
    ToolCall {
        /// When absent the server makes one that the conversation does not have yet.
        id: Option<String>,
        /// The tool.
        name: String,
        /// What it is called with.
        arguments: Arguments,
    },
}

/// What a scripted call is made with.
#[derive(Clone, Debug, PartialEq)]
pub enum Arguments {
    /// `arguments`: an object, written as compact JSON.
    Object(Map<String, Value>),
    /// `raw_arguments`: text that is sent as it is, JSON or not.
    Raw(String),
}

impl Arguments {
    /// The text that the model streams.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Object(object) => Value::Object(object.clone()).to_string(),
            Self::Raw(text) => text.clone(),
        }
    }
}

impl Block {
    pub(crate) fn call(id: Option<String>, name: impl Into<String>, arguments: Value) -> Self {
        let arguments = match arguments {
            Value::Object(object) => Arguments::Object(object),
            other @ (Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)) => Arguments::Raw(other.to_string()),
        };
        Self::ToolCall { id, name: name.into(), arguments }
    }

    /// How much the model wrote for this block.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Text { text } | Self::Thinking { text, .. } => text.len(),
            Self::ToolCall { name, arguments, .. } => name.len() + arguments.text().len(),
        }
    }

    /// How much of that was thinking.
    pub(crate) fn thinking_bytes(&self) -> usize {
        match self {
            Self::Thinking { text, .. } => text.len(),
            Self::Text { .. } | Self::ToolCall { .. } => 0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Text,
    Thinking,
    ToolCall,
}

/// A block as it is in a file.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Flat {
    r#type: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    redacted: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arguments: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    raw_arguments: Option<String>,
}

impl Flat {
    const fn empty(kind: Kind) -> Self {
        Self {
            r#type: kind,
            text: None,
            signature: None,
            redacted: None,
            id: None,
            name: None,
            arguments: None,
            raw_arguments: None,
        }
    }
}

impl TryFrom<Flat> for Block {
    type Error = &'static str;

    fn try_from(flat: Flat) -> Result<Self, Self::Error> {
        let Flat { r#type, text, signature, redacted, id, name, arguments, raw_arguments } = flat;
        let no_call =
            id.is_none() && name.is_none() && arguments.is_none() && raw_arguments.is_none();
        let no_thinking = signature.is_none() && redacted.is_none();
        match r#type {
            Kind::Text if no_call && no_thinking => {
                Ok(Self::Text { text: text.ok_or("a text block needs `text`")? })
            }
            Kind::Text => Err("a text block has `text` and nothing else"),
            Kind::Thinking if no_call => Ok(Self::Thinking {
                text: text.ok_or("a thinking block needs `text`")?,
                signature,
                redacted: redacted.unwrap_or(false),
            }),
            Kind::Thinking => Err("a thinking block has only `text`, `signature` and `redacted`"),
            Kind::ToolCall if text.is_none() && no_thinking => Ok(Self::ToolCall {
                id,
                name: name.ok_or("a tool_call block needs `name`")?,
                arguments: match (arguments, raw_arguments) {
                    (Some(object), None) => Arguments::Object(object),
                    (None, Some(raw)) => Arguments::Raw(raw),
                    (None, None) | (Some(_), Some(_)) => {
                        return Err(
                            "a tool_call block needs either `arguments`, which is an object, \
                             or `raw_arguments`, which is a string",
                        );
                    }
                },
            }),
            Kind::ToolCall => {
                Err("a tool_call block has only `id`, `name`, `arguments` or `raw_arguments`")
            }
        }
    }
}

impl From<Block> for Flat {
    fn from(block: Block) -> Self {
        match block {
            Block::Text { text } => Self { text: Some(text), ..Self::empty(Kind::Text) },
            Block::Thinking { text, signature, redacted } => Self {
                text: Some(text),
                signature,
                redacted: redacted.then_some(true),
                ..Self::empty(Kind::Thinking)
            },
            Block::ToolCall { id, name, arguments } => {
                let (arguments, raw_arguments) = match arguments {
                    Arguments::Object(object) => (Some(object), None),
                    Arguments::Raw(raw) => (None, Some(raw)),
                };
                Self {
                    id,
                    name: Some(name),
                    arguments,
                    raw_arguments,
                    ..Self::empty(Kind::ToolCall)
                }
            }
        }
    }
}

/// Reads a turn's blocks. A block's error says which block it is, because a place in a TOML array is
/// known only to the array's begin.
pub(super) fn blocks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Block>, D::Error> {
    struct Blocks;

    impl<'de> Visitor<'de> for Blocks {
        type Value = Vec<Block>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array of blocks")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Vec<Block>, A::Error> {
            let mut blocks = Vec::new();
            while let Some(flat) = array.next_element::<Flat>()? {
                let number = blocks.len() + 1;
                let block = Block::try_from(flat)
                    .map_err(|error| A::Error::custom(format_args!("block {number}: {error}")))?;
                blocks.push(block);
            }
            Ok(blocks)
        }
    }

    deserializer.deserialize_seq(Blocks)
}
