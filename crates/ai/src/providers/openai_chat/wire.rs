//! What a Chat Completions stream looks like on the wire, over all the hosts that speak it.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::usage::Usage;
use crate::providers::lenient::{Count, List, Maybe, Present, Text, absent};

/// One chunk.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) model: Text<'a>,
    pub(super) choices: Option<List<Choice<'a>>>,
    pub(super) usage: Maybe<Box<Usage>>,
    /// Groq's own corner, which holds the usage on some of its endpoints.
    pub(super) x_groq: Maybe<Box<Groq>>,
    pub(super) error: Present,
    /// `error` on hosts that send the error without a wrapper.
    pub(super) object: Text<'a>,
    #[serde(rename = "type")]
    pub(super) kind: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Groq {
    pub(super) usage: Maybe<Box<Usage>>,
    pub(super) error: Present,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice<'a> {
    pub(super) index: Count,
    #[serde(borrow)]
    pub(super) delta: Maybe<Delta<'a>>,
    /// The message so far, beside the delta on some hosts; the whole of it where there is no delta.
    /// Boxed like everything here that is large and rare: a chunk is moved about for each delta.
    pub(super) message: Maybe<Box<Delta<'a>>>,
    pub(super) finish_reason: Text<'a>,
    /// Moonshot counts here.
    pub(super) usage: Maybe<Box<Usage>>,
    pub(super) error: Value,
}

/// What the message grows by.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Delta<'a> {
    #[serde(borrow)]
    pub(super) content: Content<'a>,
    pub(super) reasoning_content: Text<'a>,
    pub(super) reasoning: Text<'a>,
    pub(super) reasoning_text: Text<'a>,
    pub(super) thinking: Text<'a>,
    pub(super) reasoning_opaque: Text<'a>,
    pub(super) reasoning_details: List<Value>,
    pub(super) refusal: Text<'a>,
    pub(super) tool_calls: List<Maybe<CallDelta<'a>>>,
    /// The form before `tool_calls`.
    pub(super) function_call: Maybe<Box<Function<'a>>>,
}

/// What one tool call grows by.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CallDelta<'a> {
    pub(super) index: Count,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    pub(super) function: Maybe<Box<Function<'a>>>,
    pub(super) custom: Maybe<Box<Custom<'a>>>,
    pub(super) extra_content: Maybe<Box<ExtraContent<'a>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Function<'a> {
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    pub(super) arguments: Arguments<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Custom<'a> {
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    pub(super) input: Text<'a>,
}

/// Google's corner of a tool call on its compatible endpoint.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ExtraContent<'a> {
    #[serde(borrow)]
    pub(super) google: Maybe<GoogleContent<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct GoogleContent<'a> {
    #[serde(borrow)]
    pub(super) thought_signature: Text<'a>,
}

/// Text, or the part or the list of parts that some hosts send in its place.
#[derive(Debug)]
pub(super) enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

impl Default for Content<'_> {
    fn default() -> Self {
        Self::Text(Cow::Borrowed(""))
    }
}

impl Content<'_> {
    fn into_text(self) -> String {
        match self {
            Self::Text(text) => text.into_owned(),
            Self::Parts(parts) => parts.into_iter().map(Part::into_text).collect(),
        }
    }
}

/// A piece of content.
#[derive(Debug)]
pub(super) enum Part<'a> {
    Text(Cow<'a, str>),
    Thinking { text: Cow<'a, str>, signature: Cow<'a, str> },
}

/// A part as it is written in a list.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WirePart<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    text: Text<'a>,
    thinking: Content<'a>,
    /// What a part of the kind `reasoning` has in place of `thinking`.
    summary: Content<'a>,
    signature: Text<'a>,
}

impl<'a> WirePart<'a> {
    fn into_part(self) -> Option<Part<'a>> {
        match self.kind.as_str() {
            "text" | "output_text" | "summary_text" | "" => Some(Part::Text(self.text.0)),
            "thinking" | "reasoning" => {
                let text = self.thinking.into_text() + &self.summary.into_text();
                Some(Part::Thinking { text: Cow::Owned(text), signature: self.signature.0 })
            }
            // References, media and what is to come: the text is whole without them.
            _ => None,
        }
    }
}

impl Part<'_> {
    fn into_text(self) -> String {
        match self {
            Self::Text(text) | Self::Thinking { text, .. } => text.into_owned(),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Expected<'a>(PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Expected<'a> {
            type Value = Content<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text or a list of parts")
            }
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Content::Text(Cow::Borrowed(text)))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Content::Text(Cow::Owned(text.to_owned())))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let mut parts = Vec::new();
                while let Some(item) = items.next_element::<Maybe<WirePart<'a>>>()? {
                    parts.extend(item.0.and_then(WirePart::into_part));
                }
                Ok(Content::Parts(parts))
            }
            fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Self::Value, A::Error> {
                let part = WirePart::deserialize(MapAccessDeserializer::new(entries))?;
                Ok(Content::Parts(part.into_part().into_iter().collect()))
            }
            absent!(bool number null);
        }
        deserializer.deserialize_any(Expected(PhantomData))
    }
}

/// Argument text; hosts that send the arguments as JSON get it written out again, an object or not:
/// what is wrong with it is said when it is parsed.
#[derive(Debug, Default)]
pub(super) struct Arguments<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Arguments<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Expected<'a>(PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Expected<'a> {
            type Value = Arguments<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("arguments")
            }
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Arguments(Cow::Borrowed(text)))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Arguments(Cow::Owned(text.to_owned())))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
                let list = Value::deserialize(SeqAccessDeserializer::new(items))?;
                Ok(Arguments(Cow::Owned(list.to_string())))
            }
            fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Self::Value, A::Error> {
                let object = Value::deserialize(MapAccessDeserializer::new(entries))?;
                Ok(Arguments(Cow::Owned(object.to_string())))
            }
            absent!(bool number null);
        }
        deserializer.deserialize_any(Expected(PhantomData))
    }
}
