//! What a generateContent stream looks like on the wire.
//!
//! A part that is not prose stays JSON: which field it has decides what it is, and one of an unknown
//! kind is kept whole.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::message::Usage as Tokens;
use crate::providers::lenient::{Count, List, Maybe, Present, Text, absent};

/// One chunk.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub(super) model_version: Text<'a>,
    pub(super) candidates: List<Maybe<Candidate<'a>>>,
    pub(super) prompt_feedback: Maybe<Box<PromptFeedback<'a>>>,
    pub(super) usage_metadata: Maybe<Box<Usage>>,
    pub(super) error: Present,
}

/// One of the answers; nobody asks for several.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Candidate<'a> {
    pub(super) index: Count,
    #[serde(borrow)]
    pub(super) content: Maybe<Content<'a>>,
    pub(super) finish_reason: Text<'a>,
    pub(super) finish_message: Text<'a>,
    pub(super) grounding_metadata: Value,
    pub(super) url_context_metadata: Value,
    pub(super) citation_metadata: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Content<'a> {
    #[serde(borrow)]
    pub(super) parts: List<Part<'a>>,
}

/// A piece of content. Nearly all are prose, whose text is borrowed from the payload.
#[derive(Debug)]
pub(super) enum Part<'a> {
    /// It has no field but those of prose, or is no object.
    Prose { text: Text<'a>, is_thought: bool, signature: Text<'a> },
    /// Anything else, whole.
    Other(Map<String, Value>),
}

/// The fields of a part that is prose, or nothing.
const PROSE_FIELDS: [&str; 3] = ["text", "thought", "thoughtSignature"];

impl Default for Part<'_> {
    fn default() -> Self {
        Self::Prose { text: Text::default(), is_thought: false, signature: Text::default() }
    }
}

/// The prose fields of a part in the order in which they came, until another field shows that the part
/// is no prose.
#[derive(Default)]
struct Prose<'a>([Option<(&'static str, Plain<'a>)>; PROSE_FIELDS.len()]);

/// The value of a prose field, borrowed where it is what it should be.
enum Plain<'a> {
    Text(Text<'a>),
    Flag(bool),
    Other(Value),
}

impl<'a> Prose<'a> {
    /// The last value of a field stands, as in every JSON object.
    fn set(&mut self, field: &'static str, value: Plain<'a>) {
        let is_its = |slot: &&mut Option<(&str, _)>| slot.as_ref().is_none_or(|(f, _)| *f == field);
        if let Some(slot) = self.0.iter_mut().find(is_its) {
            *slot = Some((field, value));
        }
    }

    fn into_part(self) -> Part<'a> {
        let (mut text, mut is_thought, mut signature) = (Text::default(), false, Text::default());
        for (field, value) in self.0.into_iter().flatten() {
            match (field, value) {
                ("text", Plain::Text(value)) => text = value,
                ("thought", Plain::Flag(value)) => is_thought = value,
                ("thoughtSignature", Plain::Text(value)) => signature = value,
                (_, Plain::Text(_) | Plain::Flag(_) | Plain::Other(_)) => {}
            }
        }
        Part::Prose { text, is_thought, signature }
    }

    fn into_fields(self) -> Map<String, Value> {
        let fields = self.0.into_iter().flatten();
        fields.map(|(field, value)| (field.to_owned(), value.into_value())).collect()
    }
}

impl Plain<'_> {
    fn into_value(self) -> Value {
        match self {
            Self::Text(text) => Value::String(text.0.into_owned()),
            Self::Flag(flag) => Value::Bool(flag),
            Self::Other(value) => value,
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Part<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Expected<'a>(PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Expected<'a> {
            type Value = Part<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a part")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Part<'a>, A::Error> {
                let mut prose = Prose::default();
                while let Some(key) = entries.next_key::<Text<'a>>()? {
                    if let Some(field) = PROSE_FIELDS.into_iter().find(|f| *f == key.as_str()) {
                        prose.set(field, entries.next_value()?);
                        continue;
                    }
                    let mut fields = prose.into_fields();
                    fields.insert(key.0.into_owned(), entries.next_value()?);
                    while let Some((key, value)) = entries.next_entry()? {
                        fields.insert(key, value);
                    }
                    return Ok(Part::Other(fields));
                }
                Ok(prose.into_part())
            }
            absent!(bool number string null array);
        }
        deserializer.deserialize_any(Expected(PhantomData))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Plain<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Expected<'a>(PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Expected<'a> {
            type Value = Plain<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text or a flag")
            }
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Plain<'a>, E> {
                Ok(Plain::Text(Text(text.into())))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Plain<'a>, E> {
                Ok(Plain::Text(Text(text.to_owned().into())))
            }
            fn visit_bool<E: Error>(self, flag: bool) -> Result<Plain<'a>, E> {
                Ok(Plain::Flag(flag))
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Plain<'a>, E> {
                Ok(Plain::Other(number.into()))
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Plain<'a>, E> {
                Ok(Plain::Other(number.into()))
            }
            fn visit_f64<E: Error>(self, number: f64) -> Result<Plain<'a>, E> {
                Ok(Plain::Other(number.into()))
            }
            fn visit_unit<E: Error>(self) -> Result<Plain<'a>, E> {
                Ok(Plain::Other(Value::Null))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Plain<'a>, A::Error> {
                Value::deserialize(SeqAccessDeserializer::new(items)).map(Plain::Other)
            }
            fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Plain<'a>, A::Error> {
                Value::deserialize(MapAccessDeserializer::new(entries)).map(Plain::Other)
            }
        }
        deserializer.deserialize_any(Expected(PhantomData))
    }
}

/// What the host thinks of the prompt.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PromptFeedback<'a> {
    #[serde(borrow)]
    pub(super) block_reason: Text<'a>,
}

/// Token counts, cumulative. What the host's own tools read of pages and files is counted by itself
/// (`toolUsePromptTokenCount`) and belongs to no prompt of ours.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Usage {
    prompt_token_count: Count,
    cached_content_token_count: Count,
    candidates_token_count: Count,
    thoughts_token_count: Count,
    total_token_count: Count,
}

impl Usage {
    /// The disjoint counts; nothing when the host sent the object without any.
    pub(super) fn tokens(&self) -> Option<Tokens> {
        let counts = [self.prompt_token_count, self.candidates_token_count, self.total_token_count];
        if counts.iter().all(|count| count.0.is_none()) {
            return None;
        }
        let cache_read = self.cached_content_token_count.or_zero();
        let reasoning = self.thoughts_token_count.or_zero();
        Some(Tokens {
            input: self.prompt_token_count.or_zero().saturating_sub(cache_read),
            // Thoughts are counted beside the candidates.
            output: self.candidates_token_count.or_zero().saturating_add(reasoning),
            cache_read,
            cache_write: 0,
            reasoning,
        })
    }
}
