//! [`Compat`]: what differs between hosts of the same API, as data.
//!
//! Encoders and decoders ask this value and never a host's name. A provider entry in configuration
//! may set each field.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How one provider's dialect differs from its API's plain form. The default is the plain form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Compat {
    /// The model writes its thinking as `<think>…</think>` inside its text.
    pub thinking_tags: bool,
    /// The host counts reasoning tokens beside the output tokens instead of among them.
    pub reasoning_beside_output: bool,
}

/// The dialects that are known by their provider's name. Those not here speak the plain form.
const DIALECTS: &[(&str, Compat)] =
    &[("xai", Compat { reasoning_beside_output: true, ..Compat::PLAIN })];

impl Compat {
    const PLAIN: Self = Self { thinking_tags: false, reasoning_beside_output: false };

    /// The dialect of the provider of this name; the plain form for a name that is not known.
    pub fn for_provider(name: &str) -> Self {
        DIALECTS
            .iter()
            .find(|(known, _)| *known == name)
            .map_or(Self::PLAIN, |(_, compat)| compat.clone())
    }
}
