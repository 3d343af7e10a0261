//! [`Dialect`]: which API a request speaks, and what differs between them.
//!
//! The rules and shapes themselves are in [`crate::anthropic`] and [`crate::openai_chat`]; this is the
//! one place that chooses between the two.

use ai::{Api, Usage};
use serde_json::Value;

use crate::conversation::Conversation;
use crate::refusal::Refusal;
use crate::rendered::Rendered;
use crate::script::Turn;
use crate::{anthropic, openai_chat};

/// The APIs that are spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Anthropic,
    OpenaiChat,
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
    pub(crate) fn for_path(path: &str) -> Option<Self> {
        match path {
            anthropic::PATH => Some(Self::Anthropic),
            openai_chat::PATH => Some(Self::OpenaiChat),
            _ => None,
        }
    }

    pub(crate) fn api(self) -> Api {
        match self {
            Self::Anthropic => Api::AnthropicMessages,
            Self::OpenaiChat => Api::OpenaiChat,
        }
    }

    /// The header that names a request for the provider's support.
    pub(crate) fn request_id_header(self) -> &'static str {
        match self {
            Self::Anthropic => "request-id",
            Self::OpenaiChat => "x-request-id",
        }
    }

    /// Checks what comes before the body. `header` finds a header's value by its lower-case name.
    pub(crate) fn check_headers<'h>(
        self,
        header: impl Fn(&str) -> Option<&'h str>,
    ) -> Result<(), Refusal> {
        match self {
            Self::Anthropic => anthropic::check_headers(header),
            Self::OpenaiChat => openai_chat::check_headers(header),
        }
    }

    pub(crate) fn check_body(self, body: &Value) -> Result<(), Refusal> {
        match self {
            Self::Anthropic => anthropic::check_body(body),
            Self::OpenaiChat => openai_chat::check_body(body),
        }
    }

    pub(crate) fn read(self, body: &Value) -> Conversation {
        match self {
            Self::Anthropic => anthropic::read(body),
            Self::OpenaiChat => openai_chat::read(body),
        }
    }

    pub(crate) fn render(self, answer: &Answer<'_>) -> Rendered {
        match self {
            Self::Anthropic => anthropic::render(answer),
            Self::OpenaiChat => openai_chat::render(answer),
        }
    }

    pub(crate) fn refusal_body(self, refusal: &Refusal, request_id: &str) -> Value {
        match self {
            Self::Anthropic => anthropic::refusal_body(refusal, request_id),
            Self::OpenaiChat => openai_chat::refusal_body(refusal),
        }
    }

    /// What the API says with this status.
    pub(crate) fn status_body(self, code: u16, request_id: &str) -> Value {
        match self {
            Self::Anthropic => anthropic::status_body(code, request_id),
            Self::OpenaiChat => openai_chat::status_body(code),
        }
    }

    /// The event that says inside a stream that the answer failed.
    pub(crate) fn error_event(self, body: Option<&Value>) -> Vec<u8> {
        match self {
            Self::Anthropic => anthropic::error_event(body),
            Self::OpenaiChat => openai_chat::error_event(body),
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
