//! [`Api`]: the wire formats that this crate speaks.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A wire format. What differs between hosts of one format is `compat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Api {
    /// Anthropic's Messages.
    AnthropicMessages,
    /// OpenAI's Chat Completions, and everything that calls itself compatible with it.
    OpenaiChat,
    /// OpenAI's Responses.
    OpenaiResponses,
    /// Google's generateContent, Gemini's own API.
    GoogleGenerate,
}

impl Api {
    /// Every wire format, in the order in which they are shown.
    pub const ALL: [Self; 4] =
        [Self::AnthropicMessages, Self::OpenaiChat, Self::OpenaiResponses, Self::GoogleGenerate];

    /// The name in configuration, events and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AnthropicMessages => "anthropic-messages",
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiResponses => "openai-responses",
            Self::GoogleGenerate => "google-generate",
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A name that is no wire format's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown api `{name}`; known are {}", Api::ALL.map(Api::as_str).join(", "))]
pub struct UnknownApi {
    name: String,
}

impl FromStr for Api {
    type Err = UnknownApi;

    fn from_str(name: &str) -> Result<Self, UnknownApi> {
        Self::ALL
            .into_iter()
            .find(|api| api.as_str() == name)
            .ok_or_else(|| UnknownApi { name: name.to_owned() })
    }
}
