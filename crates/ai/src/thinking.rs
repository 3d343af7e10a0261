//! [`ThinkingLevel`]: how much a model shall think, as one setting for every API.
//!
//! What a level means to a model is data ([`Thinking`], in the catalogue or in configuration):
//! the word or number that its API takes for it. [`ThinkingPlan`] is the decision for one model,
//! with a note where the wish and what the model can do differ. How the value travels is each
//! encoder's business.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::api::Api;
use crate::catalogue;
use crate::compat::ThinkingField;
use crate::provider_entry::ProviderEntry;

/// How much a model shall think before it answers.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingLevel {
    /// Not at all.
    Off,
    /// As little as it can.
    Minimal,
    /// Little: short tasks, quick answers.
    Low,
    /// What suits most tasks.
    Medium,
    /// Much: hard tasks.
    High,
    /// As much as it can.
    Max,
}

impl ThinkingLevel {
    /// Every level, from the least to the most.
    pub const ALL: [Self; 6] =
        [Self::Off, Self::Minimal, Self::Low, Self::Medium, Self::High, Self::Max];

    /// The name in configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Max => "max",
        }
    }
}

impl fmt::Display for ThinkingLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A word that is no level.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no thinking level: expected off, minimal, low, medium, high or max")]
pub struct UnknownThinkingLevel(pub String);

impl FromStr for ThinkingLevel {
    type Err = UnknownThinkingLevel;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let level = Self::ALL.into_iter().find(|level| level.as_str() == name);
        level.ok_or_else(|| UnknownThinkingLevel(name.to_owned()))
    }
}

/// How a model is told how much to think, and which levels it has.
///
/// In configuration it is a table, or the name of one of the catalogue's own, such as `never`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(with = "Written")]
#[non_exhaustive]
pub struct Thinking {
    /// In which form it is told.
    pub form: ThinkingForm,
    /// What is sent for each level that the model has.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub levels: BTreeMap<ThinkingLevel, LevelValue>,
}

/// In which form a model is told how much to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ThinkingForm {
    /// It does not think.
    Never,
    /// It thinks, and cannot be told how much.
    Always,
    /// By a number of tokens.
    Budget,
    /// By a word.
    Effort,
    /// On or off.
    Switch,
}

/// What is sent for a level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum LevelValue {
    /// Whether it thinks.
    Switch(bool),
    /// For how many tokens.
    Budget(u32),
    /// The API's own word.
    Effort(String),
}

/// How a model is told how much to think, and which levels it has.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ThinkingTable")]
struct Table {
    /// In which form it is told.
    form: ThinkingForm,
    /// What is sent for each level that the model has.
    #[serde(default)]
    levels: BTreeMap<ThinkingLevel, LevelValue>,
}

/// The two ways to write it.
#[derive(JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Thinking")]
#[expect(dead_code, reason = "only its schema is used")]
enum Written {
    /// The name of one of the catalogue's own, such as `never` or `always`.
    Named(String),
    /// One of one's own.
    Table(Table),
}

impl<'de> Deserialize<'de> for Thinking {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WrittenVisitor;

        impl<'de> Visitor<'de> for WrittenVisitor {
            type Value = Thinking;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table with `form` and `levels`, or a name such as `never`")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Thinking, E> {
                let known = catalogue::thinking(name).cloned();
                known.ok_or_else(|| E::custom(InvalidThinking::Unknown(name.to_owned())))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Thinking, A::Error> {
                let Table { form, levels } = Table::deserialize(MapAccessDeserializer::new(map))?;
                Thinking::new(form, levels).map_err(de::Error::custom)
            }
        }

        deserializer.deserialize_any(WrittenVisitor)
    }
}

/// Thinking that cannot be told in its form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidThinking {
    /// The catalogue has none of this name.
    #[error("`{0}` is no way of thinking: expected a table with `form` and `levels`, or `never`")]
    Unknown(String),
    /// The value of a level is not of its form.
    #[error("thinking of the form `{form}` has no such value for `{level}`")]
    WrongValue {
        /// The form.
        form: &'static str,
        /// The level.
        level: ThinkingLevel,
    },
}

impl Thinking {
    /// Thinking with these levels.
    ///
    /// # Errors
    /// When a value is not of the form.
    pub fn new(
        form: ThinkingForm,
        levels: BTreeMap<ThinkingLevel, LevelValue>,
    ) -> Result<Self, InvalidThinking> {
        for (level, value) in &levels {
            let (name, fits) = match form {
                ThinkingForm::Never => ("never", false),
                ThinkingForm::Always => ("always", false),
                ThinkingForm::Budget => ("budget", matches!(value, LevelValue::Budget(_))),
                ThinkingForm::Effort => ("effort", matches!(value, LevelValue::Effort(_))),
                ThinkingForm::Switch => ("switch", matches!(value, LevelValue::Switch(_))),
            };
            if !fits {
                return Err(InvalidThinking::WrongValue { form: name, level: *level });
            }
        }
        Ok(Self { form, levels })
    }

    /// That of a model which does not think.
    pub fn never() -> Self {
        Self { form: ThinkingForm::Never, levels: BTreeMap::new() }
    }

    /// That of a model which thinks, and cannot be told how much.
    pub fn always() -> Self {
        Self { form: ThinkingForm::Always, levels: BTreeMap::new() }
    }

    /// The level nearest to the wanted one: the highest below it, else the lowest above. Thinking is
    /// not traded for none while there is any.
    fn nearest(&self, wanted: ThinkingLevel) -> Option<ThinkingLevel> {
        let levels = || self.levels.keys().copied();
        if self.levels.contains_key(&wanted) {
            return Some(wanted);
        }
        let thinks = |level: &ThinkingLevel| *level > ThinkingLevel::Off;
        let below = levels().filter(thinks).filter(|level| *level < wanted).max();
        below.or_else(|| levels().filter(thinks).min()).or_else(|| levels().next())
    }
}

/// What is said to one model about its thinking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThinkingPlan {
    /// The level that the model gets, and what is sent for it; `None` says nothing to it.
    pub level: Option<(ThinkingLevel, LevelValue)>,
    /// Where it is not what was wanted: why, in words for the user.
    pub note: Option<String>,
}

impl ThinkingPlan {
    /// The plan for a model of this provider.
    pub fn new(wanted: ThinkingLevel, entry: &ProviderEntry, model: &str) -> Self {
        let Some(thinking) = entry.model(model).and_then(|info| info.thinking.as_ref()) else {
            return Self::silent(match wanted {
                ThinkingLevel::Off => None,
                _ => Some(format!(
                    "nothing is known of how {model} thinks, so `thinking = {wanted}` is not sent"
                )),
            });
        };
        match (thinking.form, wanted) {
            (ThinkingForm::Never, ThinkingLevel::Off) => return Self::silent(None),
            (ThinkingForm::Never, _) => {
                return Self::silent(Some(format!(
                    "{model} does not think, so `thinking = {wanted}` is not sent"
                )));
            }
            (ThinkingForm::Always, _) => {
                return Self::silent(Some(format!(
                    "{model} decides itself how much it thinks, so `thinking = {wanted}` is not sent"
                )));
            }
            (ThinkingForm::Budget | ThinkingForm::Effort | ThinkingForm::Switch, _) => {}
        }
        let nearest = thinking.nearest(wanted);
        let Some((level, value)) =
            nearest.and_then(|level| Some((level, thinking.levels.get(&level)?)))
        else {
            return Self::silent(Some(format!(
                "no thinking level of {model} is known, so `thinking = {wanted}` is not sent"
            )));
        };
        if let Some(why) = obstacle(level, value, entry, model) {
            return Self::silent(Some(format!("{why}, so `thinking = {wanted}` is not sent")));
        }
        let note = (level != wanted).then(|| {
            format!("{model} has no thinking level `{wanted}`; the nearest, `{level}`, is used")
        });
        Self { level: Some((level, value.clone())), note }
    }

    fn silent(note: Option<String>) -> Self {
        Self { level: None, note }
    }
}

/// The least that Messages lets a model think, in tokens.
pub(crate) const MIN_BUDGET: u32 = 1024;

/// What a thinking budget leaves of the cap on output for the answer: a call that writes a file needs
/// some.
const ANSWER_TOKENS: u32 = 4096;

/// A thinking budget that fits below the cap on output tokens; `None` where nothing does.
pub(crate) fn fitting_budget(tokens: u32, cap: u32) -> Option<u32> {
    Some(tokens.min(cap.saturating_sub(ANSWER_TOKENS))).filter(|tokens| *tokens >= MIN_BUDGET)
}

/// Why this provider cannot be told the level of one of its models.
fn obstacle(
    level: ThinkingLevel,
    value: &LevelValue,
    entry: &ProviderEntry,
    model: &str,
) -> Option<String> {
    let is_off = level == ThinkingLevel::Off;
    let form = match value {
        LevelValue::Switch(_) => "switch",
        LevelValue::Budget(_) => "budget",
        LevelValue::Effort(_) => "effort",
    };
    let takes = match (entry.api, value) {
        (Api::AnthropicMessages, LevelValue::Budget(tokens)) if !is_off => {
            let most = entry.model(model).and_then(|info| info.max_output_tokens);
            let cap = entry.max_output_tokens.or(most).unwrap_or(u32::MAX);
            if *tokens < MIN_BUDGET {
                return Some(format!(
                    "{tokens} tokens are less than {MIN_BUDGET}, the least to think"
                ));
            }
            if fitting_budget(*tokens, cap).is_none() {
                return Some(format!("{cap} output tokens leave no room to think"));
            }
            true
        }
        (Api::AnthropicMessages, _) => true,
        (Api::OpenaiChat, LevelValue::Switch(_) | LevelValue::Budget(_)) => {
            match entry.compat.thinking_field {
                ThinkingField::ReasoningEffort => false,
                ThinkingField::ReasoningObject
                | ThinkingField::ThinkingType
                | ThinkingField::EnableThinking => true,
            }
        }
        (Api::OpenaiChat | Api::OpenaiResponses | Api::GoogleGenerate, LevelValue::Effort(_)) => {
            true
        }
        (Api::GoogleGenerate, LevelValue::Budget(_)) => true,
        (Api::OpenaiResponses, LevelValue::Switch(_) | LevelValue::Budget(_))
        | (Api::GoogleGenerate, LevelValue::Switch(_)) => false,
    };
    let hint = match entry.api {
        Api::OpenaiChat => "; `compat.thinking_field` may be wrong",
        Api::AnthropicMessages | Api::OpenaiResponses | Api::GoogleGenerate => "",
    };
    (!takes).then(|| {
        format!(
            "the thinking of {model} has the form `{form}`, which {} cannot say{hint}",
            entry.api
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::catalogue::ModelInfo;

    use super::*;

    fn entry(thinking: Option<Thinking>) -> ProviderEntry {
        let mut info = ModelInfo::new("m");
        info.thinking = thinking;
        let mut entry = ProviderEntry::new("p", Api::OpenaiChat, "http://h");
        entry.models = [info].into();
        entry
    }

    fn efforts(levels: &[ThinkingLevel]) -> Thinking {
        let value = |level: &ThinkingLevel| LevelValue::Effort(format!("e-{level}"));
        let levels = levels.iter().map(|level| (*level, value(level))).collect();
        Thinking::new(ThinkingForm::Effort, levels).unwrap()
    }

    #[test]
    fn a_level_is_the_nearest_that_the_model_has_and_a_change_is_said() {
        use ThinkingLevel::{High, Low, Max, Medium, Minimal, Off};
        for (has, wanted, gets) in [
            (&[Low, Medium, High][..], Medium, Medium),
            (&[Low, Medium, High], Max, High),
            (&[Low, Medium, High], Minimal, Low),
            (&[Low, Medium, High], Off, Low),
            (&[Low, High], Medium, Low),
            (&[Off, High], Low, High),
            (&[Off, High], Max, High),
            (&[Off], High, Off),
            (&[Off, Max], Off, Off),
        ] {
            let plan = ThinkingPlan::new(wanted, &entry(Some(efforts(has))), "m");
            let value = LevelValue::Effort(format!("e-{gets}"));
            assert_eq!(plan.level, Some((gets, value)), "{has:?} {wanted}");
            assert_eq!(plan.note.is_some(), gets != wanted, "{has:?} {wanted}");
        }
    }

    #[test]
    fn nothing_is_sent_to_a_model_that_could_refuse_it() {
        let always = Thinking::always();
        for (thinking, model, wanted, noted) in [
            (Some(Thinking::never()), "m", ThinkingLevel::High, true),
            (Some(Thinking::never()), "m", ThinkingLevel::Off, false),
            (Some(always.clone()), "m", ThinkingLevel::High, true),
            (Some(always), "m", ThinkingLevel::Off, true),
            (None, "m", ThinkingLevel::High, true),
            (None, "m", ThinkingLevel::Off, false),
            (Some(efforts(&[ThinkingLevel::Low])), "other", ThinkingLevel::Low, true),
        ] {
            let plan = ThinkingPlan::new(wanted, &entry(thinking.clone()), model);
            assert_eq!(plan.level, None, "{thinking:?} {wanted}");
            assert_eq!(plan.note.is_some(), noted, "{thinking:?} {wanted}");
        }
    }

    #[test]
    fn what_an_api_cannot_say_is_noted_and_not_sent() {
        use LevelValue::{Budget, Effort, Switch};
        let effort = || Effort("high".into());
        for (api, field, cap, value, is_sent) in [
            (Api::AnthropicMessages, None, None, Budget(2048), true),
            (Api::AnthropicMessages, None, None, Budget(500), false),
            (Api::AnthropicMessages, None, Some(4000), Budget(9000), false),
            (Api::AnthropicMessages, None, Some(8000), Budget(9000), true),
            (Api::OpenaiChat, None, None, effort(), true),
            (Api::OpenaiChat, None, None, Budget(2048), false),
            (Api::OpenaiChat, None, None, Switch(true), false),
            (Api::OpenaiChat, Some(ThinkingField::EnableThinking), None, Budget(2048), true),
            (Api::OpenaiResponses, None, None, effort(), true),
            (Api::OpenaiResponses, None, None, Switch(true), false),
            (Api::GoogleGenerate, None, None, Budget(2048), true),
            (Api::GoogleGenerate, None, None, Switch(true), false),
        ] {
            let levels = BTreeMap::from([(ThinkingLevel::High, value.clone())]);
            let form = match value {
                Budget(_) => ThinkingForm::Budget,
                Effort(_) => ThinkingForm::Effort,
                Switch(_) => ThinkingForm::Switch,
            };
            let mut entry = entry(Some(Thinking::new(form, levels).unwrap()));
            entry.api = api;
            entry.max_output_tokens = cap;
            entry.compat.thinking_field = field.unwrap_or_default();
            let plan = ThinkingPlan::new(ThinkingLevel::High, &entry, "m");
            assert_eq!(plan.level.is_some(), is_sent, "{api} {value:?}");
            assert_eq!(plan.note.is_none(), is_sent, "{api} {value:?}: {:?}", plan.note);
        }
        let none = Thinking::new(ThinkingForm::Effort, BTreeMap::new()).unwrap();
        assert!(ThinkingPlan::new(ThinkingLevel::High, &entry(Some(none)), "m").note.is_some());
    }

    #[test]
    fn a_mistake_is_named() {
        for (json, word) in [
            (r#"{"form": "effort", "level": {}}"#, "unknown field `level`"),
            (r#"{"form": "efort"}"#, "unknown variant `efort`"),
            (r#"{"form": "effort", "levels": {"hihg": "x"}}"#, "unknown variant `hihg`"),
            (r#""adaptive""#, "`adaptive` is no way of thinking"),
            ("3", "expected a table with `form`"),
        ] {
            let error = serde_json::from_str::<Thinking>(json).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn a_value_is_of_its_form() {
        for (json, valid) in [
            (r#"{"form": "budget", "levels": {"low": 1024}}"#, true),
            (r#"{"form": "switch", "levels": {"off": false, "high": true}}"#, true),
            (r#"{"form": "effort", "levels": {"low": "low"}}"#, true),
            (r#"{"form": "never"}"#, true),
            (r#""never""#, true),
            (r#"{"form": "budget", "levels": {"low": "low"}}"#, false),
            (r#"{"form": "effort", "levels": {"low": true}}"#, false),
            (r#"{"form": "always", "levels": {"low": true}}"#, false),
            (r#""nonesuch""#, false),
        ] {
            let read = serde_json::from_str::<Thinking>(json);
            assert_eq!(read.is_ok(), valid, "{json}: {read:?}");
        }
    }
}
