//! [`Dialect`]: which API a request speaks, and what differs between them.
//!
//! The rules and shapes themselves are in a module for each; this and [`crate::target`], where a path
//! is told from another, are the places that choose between them.

use ai::{Api, Usage};
use serde_json::Value;

use crate::conversation::Conversation;
use crate::refusal::Refusal;
use crate::rendered::Rendered;
use crate::script::Turn;
use crate::{anthropic, google_generate, openai, openai_chat, openai_responses};

/// The APIs that are spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// Anthropic's Messages: `POST /v1/messages`.
    AnthropicMessages,
    /// OpenAI's Chat Completions: `POST /v1/chat/completions`.
    OpenaiChat,
    /// OpenAI's Responses: `POST /v1/responses`.
    OpenaiResponses,
    /// Google's generateContent: `POST /v1beta/models/MODEL:streamGenerateContent?alt=sse`.
    GoogleGenerate,
}

/// What an answer says besides its turn.
pub(crate) struct Answer<'a> {
    pub(crate) turn: &'a Turn,
    pub(crate) conversation: &'a Conversation,
    /// The request's place in the order of arrival, which makes the answer's own id.
    pub(crate) request: usize,
    pub(crate) usage: Usage,
    /// The body of the request.
    pub(crate) body: &'a Value,
}

impl Dialect {
    /// The dialect of an API; `None` for one that is not spoken.
    pub(crate) fn of(api: Api) -> Option<Self> {
        match api {
            Api::AnthropicMessages => Some(Self::AnthropicMessages),
            Api::OpenaiChat => Some(Self::OpenaiChat),
            Api::OpenaiResponses => Some(Self::OpenaiResponses),
            Api::GoogleGenerate => Some(Self::GoogleGenerate),
            // `Api` may grow in another crate.
            _ => None,
        }
    }

    pub(crate) fn api(self) -> Api {
        match self {
            Self::AnthropicMessages => Api::AnthropicMessages,
            Self::OpenaiChat => Api::OpenaiChat,
            Self::OpenaiResponses => Api::OpenaiResponses,
            Self::GoogleGenerate => Api::GoogleGenerate,
        }
    }

    /// What a client's base address ends in, behind the host.
    pub(crate) fn base_path(self) -> &'static str {
        match self {
            Self::AnthropicMessages => "",
            Self::OpenaiChat | Self::OpenaiResponses => "/v1",
            Self::GoogleGenerate => "/v1beta",
        }
    }

    /// The header that names a request for the provider's support; Google has none.
    pub(crate) fn request_id_header(self) -> Option<&'static str> {
        match self {
            Self::AnthropicMessages => Some("request-id"),
            Self::OpenaiChat | Self::OpenaiResponses => Some("x-request-id"),
            Self::GoogleGenerate => None,
        }
    }

    pub(crate) fn check_body(self, body: &Value) -> Result<(), Refusal> {
        match self {
            Self::AnthropicMessages => anthropic::check_body(body),
            Self::OpenaiChat => openai_chat::check_body(body),
            Self::OpenaiResponses => openai_responses::check_body(body),
            Self::GoogleGenerate => google_generate::check_body(body),
        }
    }

    pub(crate) fn render(self, answer: &Answer<'_>) -> Rendered {
        match self {
            Self::AnthropicMessages => anthropic::render(answer),
            Self::OpenaiChat => openai_chat::render(answer),
            Self::OpenaiResponses => openai_responses::render(answer),
            Self::GoogleGenerate => google_generate::render(answer),
        }
    }

    pub(crate) fn refusal_body(self, refusal: &Refusal, request_id: &str) -> Value {
        match self {
            Self::AnthropicMessages => anthropic::refusal_body(refusal, request_id),
            Self::OpenaiChat | Self::OpenaiResponses => openai::refusal_body(refusal),
            Self::GoogleGenerate => google_generate::refusal_body(refusal),
        }
    }

    /// What the API says with this status.
    pub(crate) fn status_body(self, code: u16, request_id: &str) -> Value {
        match self {
            Self::AnthropicMessages => anthropic::status_body(code, request_id),
            Self::OpenaiChat | Self::OpenaiResponses => openai::status_body(code),
            Self::GoogleGenerate => google_generate::status_body(code),
        }
    }

    /// The event that says inside a stream that the answer failed.
    pub(crate) fn error_event(self, body: Option<&Value>) -> Vec<u8> {
        match self {
            Self::AnthropicMessages => anthropic::error_event(body),
            Self::OpenaiChat => openai_chat::error_event(body),
            Self::OpenaiResponses => openai_responses::error_event(body),
            Self::GoogleGenerate => google_generate::error_event(body),
        }
    }
}

/// Ids for the calls of one answer: the script's own, or `PREFIX` and the first numbers that no call
/// of the conversation has. So ids are unique in a conversation, also when a process resumes it that
/// did not begin it, and the same whenever the same request is answered.
pub(crate) struct CallIds<'a> {
    prefix: &'static str,
    conversation: &'a Conversation,
    next: usize,
}

impl<'a> CallIds<'a> {
    pub(crate) fn new(prefix: &'static str, conversation: &'a Conversation) -> Self {
        Self { prefix, conversation, next: conversation.calls().count() + 1 }
    }

    pub(crate) fn take(&mut self, scripted: Option<&String>) -> String {
        if let Some(id) = scripted {
            return id.clone();
        }
        loop {
            let id = format!("{}{:04}", self.prefix, self.next);
            self.next += 1;
            if !self.conversation.calls().any(|call| call.id == id) {
                return id;
            }
        }
    }
}
