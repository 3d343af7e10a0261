//! What is known of the built-in providers' models, as data.
//!
//! [`models_of`] has a provider's. Windows, output limits, prices, what a model reads and how it thinks are facts that change with
//! every release of a provider and with none of ours: they are in `catalogue/models.json`, and a
//! caller may lay its own over them ([`ModelInfo::under`]). A fact that is not known is absent, and
//! whoever needs it says so; nothing is guessed.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::api::Api;
use crate::cost::Price;
use crate::replay::is_same_model;
use crate::thinking::Thinking;

/// What is known of one model. In configuration it is a table, or an id of which nothing is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(with = "Written")]
#[non_exhaustive]
pub struct ModelInfo {
    /// The model, as its provider names it.
    pub id: String,
    /// The API that it is asked by, where that is not its provider's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<Api>,
    /// Input and output together, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// The most that one answer may have, in tokens, thinking included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// What it reads; empty where that is not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub input: Vec<Modality>,
    /// What it costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// How it thinks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    /// It refuses to be told a temperature.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_temperature: bool,
}

/// What a model can be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Modality {
    /// Text.
    Text,
    /// Images.
    Image,
    /// PDF files.
    Pdf,
    /// Sound.
    Audio,
    /// Films.
    Video,
}

/// What is known of a model.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ModelFacts")]
struct Facts {
    /// The model, as its provider names it.
    id: String,
    /// The API that it is asked by, where that is not its provider's.
    api: Option<Api>,
    /// Input and output together, in tokens.
    context_window: Option<u64>,
    /// The most that one answer may have, in tokens, thinking included.
    max_output_tokens: Option<u32>,
    /// What it reads.
    #[serde(default)]
    input: Vec<Modality>,
    /// What it costs.
    price: Option<Price>,
    /// How it thinks.
    thinking: Option<Thinking>,
    /// It refuses to be told a temperature.
    #[serde(default)]
    no_temperature: bool,
}

/// The two ways to write a model.
#[derive(JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "ModelInfo")]
#[expect(dead_code, reason = "only its schema is used")]
enum Written {
    /// A model of which nothing is known but its id.
    Id(String),
    /// What is known of it.
    Facts(Facts),
}

impl<'de> Deserialize<'de> for ModelInfo {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WrittenVisitor;

        impl<'de> Visitor<'de> for WrittenVisitor {
            type Value = ModelInfo;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a model's id or a table of what is known of it")
            }

            fn visit_str<E: de::Error>(self, id: &str) -> Result<ModelInfo, E> {
                Ok(ModelInfo::new(id))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ModelInfo, A::Error> {
                Facts::deserialize(MapAccessDeserializer::new(map)).map(ModelInfo::from)
            }
        }

        deserializer.deserialize_any(WrittenVisitor)
    }
}

impl From<Facts> for ModelInfo {
    fn from(facts: Facts) -> Self {
        Self {
            id: facts.id,
            api: facts.api,
            context_window: facts.context_window,
            max_output_tokens: facts.max_output_tokens,
            input: facts.input,
            price: facts.price,
            thinking: facts.thinking,
            no_temperature: facts.no_temperature,
        }
    }
}

impl ModelInfo {
    /// A model of which nothing is known.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), ..Self::default() }
    }

    /// These facts with better ones laid over them.
    #[must_use]
    pub fn under(self, over: Self) -> Self {
        Self {
            id: over.id,
            api: over.api.or(self.api),
            context_window: over.context_window.or(self.context_window),
            max_output_tokens: over.max_output_tokens.or(self.max_output_tokens),
            input: if over.input.is_empty() { self.input } else { over.input },
            price: over.price.or(self.price),
            thinking: over.thinking.or(self.thinking),
            no_temperature: over.no_temperature || self.no_temperature,
        }
    }

    /// Whether it reads this; `None` where that is not known.
    pub fn reads(&self, modality: Modality) -> Option<bool> {
        (!self.input.is_empty()).then(|| self.input.contains(&modality))
    }

    /// Whether it thinks; `None` where that is not known.
    pub fn thinks(&self) -> Option<bool> {
        self.thinking.as_ref().map(|thinking| *thinking != Thinking::never())
    }
}

/// What is known of the model of this name, or of the alias that its dated name belongs to.
pub(crate) fn find_model<'a>(models: &'a [ModelInfo], name: &str) -> Option<&'a ModelInfo> {
    let exact = models.iter().find(|model| model.id == name);
    exact.or_else(|| models.iter().find(|model| is_same_model(&model.id, name)))
}

/// `over` laid over `models`: facts of a model that is there are bettered, others are added behind. To
/// name a model by its date takes nothing away from what is known of it under its alias.
pub fn lay_over(models: &[ModelInfo], over: impl IntoIterator<Item = ModelInfo>) -> Vec<ModelInfo> {
    let mut laid = models.to_vec();
    for info in over {
        match laid.iter_mut().find(|model| model.id == info.id) {
            Some(model) => *model = std::mem::take(model).under(info),
            None => {
                let known = find_model(models, &info.id).cloned().unwrap_or_default();
                laid.push(known.under(info));
            }
        }
    }
    laid
}

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File<'a> {
    /// Ways of thinking, which models name.
    #[serde(borrow)]
    thinking: &'a serde_json::value::RawValue,
    #[serde(borrow)]
    providers: BTreeMap<&'a str, &'a serde_json::value::RawValue>,
}

const MODELS: &str = include_str!("catalogue/models.json");

/// Read when first asked for: a program that asks one custom provider needs none of it.
static FILE: LazyLock<File<'static>> = LazyLock::new(|| {
    serde_json::from_str(MODELS).unwrap_or_else(|error| unreachable!("a test reads it: {error}"))
});

static THINKING: LazyLock<BTreeMap<String, Thinking>> = LazyLock::new(|| {
    let read: Result<BTreeMap<_, _>, _> = serde_json::from_str(FILE.thinking.get());
    let mut known = read.unwrap_or_else(|error| unreachable!("a test reads it: {error}"));
    known.insert("never".to_owned(), Thinking::never());
    known.insert("always".to_owned(), Thinking::always());
    known
});

/// The models of a built-in provider, in the order in which they are shown; none for any other.
pub fn models_of(provider: &str) -> Vec<ModelInfo> {
    let Some(models) = FILE.providers.get(provider) else { return Vec::new() };
    let read: Result<Vec<ModelInfo>, _> = serde_json::from_str(models.get());
    let mut models = read.unwrap_or_else(|error| unreachable!("a test reads it: {error}"));
    for model in &mut models {
        // Of a model in the catalogue this is known.
        model.thinking.get_or_insert_with(Thinking::never);
    }
    models
}

/// The catalogue's way of thinking of this name.
pub(crate) fn thinking(name: &str) -> Option<&'static Thinking> {
    THINKING.get(name)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::json;

    use crate::builtin_providers::{BUILTIN_PROVIDERS, BuiltinProvider};
    use crate::thinking::{LevelValue, ThinkingForm};

    use super::*;

    #[test]
    fn the_file_is_whole_and_sane() {
        for provider in FILE.providers.keys() {
            assert!(BuiltinProvider::find(provider).is_some(), "{provider} is no provider");
        }
        for provider in BUILTIN_PROVIDERS {
            let mut seen = HashSet::new();
            for model in models_of(provider.name) {
                let name = format!("{}/{}", provider.name, model.id);
                assert!(seen.insert(model.id.clone()), "{name} is there twice");
                if let (Some(window), Some(output)) =
                    (model.context_window, model.max_output_tokens)
                {
                    assert!(u64::from(output) <= window, "{name}");
                }
                let price = model.price.unwrap_or_default();
                for usd in [Some(price.input), Some(price.output), price.cache_read] {
                    assert!((0.0..1000.0).contains(&usd.unwrap_or_default()), "{name}");
                }
                let thinking = model.thinking.unwrap();
                assert!(matches!(model.api, None | Some(Api::OpenaiResponses)), "{name}");
                for value in thinking.levels.values() {
                    if let LevelValue::Budget(tokens) = value {
                        let limit = model.max_output_tokens.unwrap_or(u32::MAX);
                        assert!(*tokens < limit, "{name}: {tokens} of {limit}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_people_use_is_known() {
        for (provider, model) in [
            ("anthropic", "claude-sonnet-4-5"),
            ("openai", "gpt-5"),
            ("gemini", "gemini-2.5-pro"),
            ("deepseek", "deepseek-chat"),
        ] {
            let models = models_of(provider);
            let info = models.iter().find(|info| info.id == model).unwrap();
            assert!(info.price.is_some(), "{provider}/{model}");
            assert!(info.context_window.is_some(), "{provider}/{model}");
        }
        assert_eq!(models_of("nobody"), []);
    }

    #[test]
    fn a_model_is_an_id_or_a_table_and_mistakes_are_named() {
        let read = |json| serde_json::from_value::<ModelInfo>(json);
        assert_eq!(read(json!("m")).unwrap(), ModelInfo::new("m"));
        let info = read(json!({"id": "m", "context_window": 8, "thinking": "never"})).unwrap();
        assert_eq!(info.context_window, Some(8));
        assert_eq!(info.thinking.map(|thinking| thinking.form), Some(ThinkingForm::Never));
        for (wrong, word) in [
            (json!({"id": "m", "contxt": 8}), "contxt"),
            (json!({"context_window": 8}), "id"),
            (json!(5), "a model's id or a table"),
            (json!({"id": "m", "price": {"input": -1, "output": 2}}), "price"),
        ] {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn better_facts_are_laid_over() {
        let mut known = ModelInfo::new("a");
        known.context_window = Some(8);
        known.max_output_tokens = Some(4);
        let mut better = ModelInfo::new("a");
        better.max_output_tokens = Some(2);
        let laid = lay_over(&[known], [better, ModelInfo::new("b"), ModelInfo::new("a-20250929")]);
        assert_eq!(laid.len(), 3);
        let dated = laid.last().unwrap();
        assert_eq!((dated.id.as_str(), dated.context_window), ("a-20250929", Some(8)));
        let a = laid.first().unwrap();
        assert_eq!((a.context_window, a.max_output_tokens), (Some(8), Some(2)));
    }

    /// A list or a configuration that names `claude-sonnet-4-5-20250929` hid all that was known of
    /// `claude-sonnet-4-5`, its price included.
    #[test]
    fn a_dated_name_in_a_list_keeps_what_is_known_of_its_alias() {
        let mut known = ModelInfo::new("a");
        known.context_window = Some(8);
        known.max_output_tokens = Some(4);
        let mut dated = ModelInfo::new("a-20250929");
        dated.max_output_tokens = Some(2);
        let laid = lay_over(&[known], [dated, ModelInfo::new("a-20260101")]);
        let facts = |name| {
            let model = find_model(&laid, name).unwrap();
            (&*model.id, model.context_window, model.max_output_tokens)
        };
        assert_eq!(facts("a"), ("a", Some(8), Some(4)));
        assert_eq!(facts("a-20250929"), ("a-20250929", Some(8), Some(2)));
        assert_eq!(facts("a-20260101"), ("a-20260101", Some(8), Some(4)));
    }
}
