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
use serde::{Deserialize, Serialize};

use crate::catalogue;
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Written")]
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

/// [`Thinking`] as it is written.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Thinking")]
enum Written {
    /// The name of one of the catalogue's own.
    Named(String),
    /// One of one's own.
    Own {
        form: ThinkingForm,
        #[serde(default)]
        levels: BTreeMap<ThinkingLevel, LevelValue>,
    },
}

impl TryFrom<Written> for Thinking {
    type Error = InvalidThinking;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        match written {
            Written::Named(name) => catalogue::thinking(&name)
                .cloned()
                .ok_or_else(|| InvalidThinking::Unknown(name, catalogue::thinking_names())),
            Written::Own { form, levels } => Self::new(form, levels),
        }
    }
}

/// Thinking that cannot be told in its form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidThinking {
    /// The catalogue has none of this name.
    #[error("`{0}` is no way of thinking: expected a table or one of {names}", names = .1.join(", "))]
    Unknown(String, Vec<String>),
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
        let Some(level) = thinking.nearest(wanted) else { return Self::silent(None) };
        let note = (level != wanted).then(|| {
            format!("{model} has no thinking level `{wanted}`; the nearest, `{level}`, is used")
        });
        let value = thinking.levels.get(&level).cloned();
        Self { level: value.map(|value| (level, value)), note }
    }

    fn silent(note: Option<String>) -> Self {
        Self { level: None, note }
    }
}

#[cfg(test)]
mod tests {
    use crate::api::Api;
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
