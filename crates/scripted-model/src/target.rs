//! [`Target`]: what a request's path and query say.
//!
//! Owns the split of both. Knows no rule: what has to be there is its dialect's to decide.
//!
//! **Invariant:** a key in a query is not kept, so that nothing can print it.

use std::sync::Arc;

use serde_json::Value;

use crate::conversation::Conversation;
use crate::dialect::Dialect;
use crate::refusal::Refusal;
use crate::{anthropic, google_generate, openai, openai_chat, openai_responses};

/// What a request's path and query say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) dialect: Dialect,
    /// The model, where the path names it.
    pub(crate) model: Option<Arc<str>>,
    /// The query asks for server-sent events.
    pub(crate) asks_for_events: bool,
    /// The query carries a key.
    pub(crate) has_key: bool,
}

impl Target {
    /// The target of a path that answers; `None` for any other.
    pub(crate) fn find(path: &str, query: Option<&str>) -> Option<Self> {
        let (dialect, model) = match path {
            anthropic::PATH => (Dialect::AnthropicMessages, None),
            openai_chat::PATH => (Dialect::OpenaiChat, None),
            openai_responses::PATH => (Dialect::OpenaiResponses, None),
            _ => (Dialect::GoogleGenerate, Some(Arc::from(google_generate::model_of(path)?))),
        };
        let mut fields = query.into_iter().flat_map(|query| query.split('&'));
        let asks_for_events = fields.clone().any(|field| field == "alt=sse");
        let has_key =
            fields.any(|field| field.strip_prefix("key=").is_some_and(|key| !key.is_empty()));
        Some(Self { dialect, model, asks_for_events, has_key })
    }

    /// Checks what comes before the body. `header` finds a header's value by its lower-case name.
    pub(crate) fn check<'h>(
        &self,
        header: impl Fn(&str) -> Option<&'h str>,
    ) -> Result<(), Refusal> {
        match self.dialect {
            Dialect::AnthropicMessages => anthropic::check_headers(header),
            Dialect::OpenaiChat | Dialect::OpenaiResponses => openai::check_headers(header),
            Dialect::GoogleGenerate => google_generate::check_target(self, header),
        }
    }

    /// A request's content.
    pub(crate) fn read(&self, body: &Value) -> Conversation {
        match self.dialect {
            Dialect::AnthropicMessages => anthropic::read(body),
            Dialect::OpenaiChat => openai_chat::read(body),
            Dialect::OpenaiResponses => openai_responses::read(body),
            Dialect::GoogleGenerate => {
                google_generate::read(self.model.as_deref().unwrap_or_default(), body)
            }
        }
    }
}
