//! Messages: what a conversation is made of, the same for every provider.
//!
//! The main type is [`Message`]. Its JSON is what the log keeps, what `stream-json` prints and what
//! other programs read, so every shape here is final: fields are added, never renamed. This module
//! knows nothing of wire formats and nothing of how a message came to be.
//!
//! ```
//! use ai::{Message, Origin, UserMessage};
//!
//! let message = Message::User(UserMessage::text("what does this do?", Origin::User));
//! let json = serde_json::to_value(&message)?;
//! assert_eq!(json["role"], "user");
//! assert_eq!(json["content"][0]["text"], "what does this do?");
//! # Ok::<(), serde_json::Error>(())
//! ```

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::ProviderError;

/// Identifies one message. Unique within a session; the text has no meaning beyond that.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageId(Arc<str>);

impl MessageId {
    /// A new id, unique in the world and ordered by time (UUID version 7).
    pub fn random() -> Self {
        Self::from(uuid::Uuid::now_v7().to_string())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for MessageId {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&str> for MessageId {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A moment in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The machine's clock, now. A clock before 1970 reads as zero.
    pub fn now() -> Self {
        let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
    }
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// Input: from a person, a program, a hook or an instruction file.
    User(UserMessage),
    /// The model's answer to one request.
    Assistant(AssistantMessage),
    /// What one tool call came to.
    ToolResult(ToolResultMessage),
}

impl Message {
    /// The message's identity.
    pub fn id(&self) -> &MessageId {
        match self {
            Self::User(message) => &message.id,
            Self::Assistant(message) => &message.id,
            Self::ToolResult(message) => &message.id,
        }
    }

    /// When the message came to be.
    pub fn timestamp(&self) -> Timestamp {
        match self {
            Self::User(message) => message.timestamp,
            Self::Assistant(message) => message.timestamp,
            Self::ToolResult(message) => message.timestamp,
        }
    }

    /// The message's blocks, in order.
    pub fn content(&self) -> &[ContentBlock] {
        match self {
            Self::User(message) => &message.content,
            Self::Assistant(message) => &message.content,
            Self::ToolResult(message) => &message.content,
        }
    }
}

impl From<UserMessage> for Message {
    fn from(message: UserMessage) -> Self {
        Self::User(message)
    }
}

impl From<AssistantMessage> for Message {
    fn from(message: AssistantMessage) -> Self {
        Self::Assistant(message)
    }
}

impl From<ToolResultMessage> for Message {
    fn from(message: ToolResultMessage) -> Self {
        Self::ToolResult(message)
    }
}

/// Where an input came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Origin {
    /// A prompt or follow-up.
    User,
    /// Input for the next turn of the running run.
    Steer,
    /// Input that joined the next turn without waking anything.
    Inject,
    /// A hook.
    Hook,
    /// Context that a tool returned beside its result.
    Tool,
    /// An instruction file.
    Instruction,
}

/// Input to the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UserMessage {
    /// Identity within the session.
    pub id: MessageId,
    /// When it was put in.
    pub timestamp: Timestamp,
    /// Text and images.
    pub content: Vec<ContentBlock>,
    /// Who put it in.
    pub origin: Origin,
}

impl UserMessage {
    /// A message of one text block, made now, with a new id.
    pub fn text(text: impl Into<String>, origin: Origin) -> Self {
        Self {
            id: MessageId::random(),
            timestamp: Timestamp::now(),
            content: vec![ContentBlock::text(text)],
            origin,
        }
    }
}

/// The model's answer to one request, whole or as far as it came.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AssistantMessage {
    /// Identity within the session.
    pub id: MessageId,
    /// When the answer began.
    pub timestamp: Timestamp,
    /// Thinking, text, calls, in the order in which the model opened them.
    pub content: Vec<ContentBlock>,
    /// The name of the provider entry that answered, as in configuration.
    pub provider: String,
    /// The wire format it was asked in, such as `anthropic-messages`.
    pub api: String,
    /// The model as the provider named it, or as it was asked for.
    pub model: String,
    /// The model as it was asked for, where the provider named another: an alias, or a router's
    /// choice. What the model signed goes back under this name too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_model: Option<Box<str>>,
    /// Tokens, as far as the provider told.
    pub usage: Usage,
    /// Why the answer ended.
    pub stop_reason: StopReason,
    /// The provider's own word for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_raw: Option<String>,
    /// The stream was cancelled: what is here is what had arrived.
    #[serde(default, skip_serializing_if = "is_false")]
    pub interrupted: bool,
    /// The model wrote a tool call as text instead of making it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub violation: Option<Violation>,
    /// What went wrong, when `stop_reason` is `error` or `aborted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ProviderError>,
}

impl AssistantMessage {
    /// The message's tool calls, in the model's order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(ContentBlock::as_tool_call)
    }

    /// All text blocks joined, without anything between them.
    pub fn text(&self) -> String {
        self.content.iter().filter_map(ContentBlock::as_text).collect()
    }
}

/// A tool call that the model wrote as text (SPEC M18).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Violation {
    /// The names of the tools that the text tried to call, in order.
    pub tools: Vec<String>,
}

/// What one tool call came to, as the model reads it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResultMessage {
    /// Identity within the session.
    pub id: MessageId,
    /// When the result was known.
    pub timestamp: Timestamp,
    /// Text and images.
    pub content: Vec<ContentBlock>,
    /// The call that this answers, in the assistant message before it.
    pub tool_call_id: String,
    /// The tool's name, as the model called it.
    pub tool_name: String,
    /// The model should read this as a failure.
    pub is_error: bool,
    /// What kind of failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_kind: Option<ToolErrorKind>,
}

/// Why a tool call has an error result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolErrorKind {
    /// No tool of that name was offered.
    NotFound,
    /// The arguments are not JSON, or not what the tool's schema asks for.
    InvalidArguments,
    /// The run was cancelled before the tool was done, or before it began.
    Aborted,
    /// Permission was refused.
    Denied,
    /// A deadline passed.
    TimedOut,
    /// The tool itself failed.
    Failed,
}

/// One piece of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContentBlock {
    /// Plain text.
    Text {
        /// The text, never cut inside a character.
        text: String,
    },
    /// What the model thought before or between its words.
    Thinking {
        /// Readable thinking; empty when the provider only sends a signature.
        text: String,
        /// The provider's proof or cipher, replayed byte for byte to the model that made it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
        /// The provider withheld the text; `signature` holds what it sent instead.
        #[serde(default, skip_serializing_if = "is_false")]
        redacted: bool,
    },
    /// A picture.
    Image {
        /// Such as `image/png`.
        mime_type: String,
        /// Base64.
        data: String,
    },
    /// A call that the model wants made.
    ToolCall(ToolCall),
    /// Something that only its own API understands: kept in its place and replayed there.
    Opaque {
        /// The API that made it.
        api: String,
        /// The provider's own JSON.
        data: Value,
    },
}

impl ContentBlock {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// The text, if this is a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            Self::Thinking { .. }
            | Self::Image { .. }
            | Self::ToolCall(_)
            | Self::Opaque { .. } => None,
        }
    }

    /// The call, if this is one.
    pub fn as_tool_call(&self) -> Option<&ToolCall> {
        match self {
            Self::ToolCall(call) => Some(call),
            Self::Text { .. }
            | Self::Thinking { .. }
            | Self::Image { .. }
            | Self::Opaque { .. } => None,
        }
    }
}

/// A call that the model made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique within its message. Results refer to it.
    pub id: String,
    /// The tool's name, as the model wrote it.
    pub name: String,
    /// The arguments. Empty when `raw_arguments` is there: then nothing may be run.
    pub arguments: Map<String, Value>,
    /// What the model wrote, when it is not a JSON object (SPEC M6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_arguments: Option<String>,
    /// Why `raw_arguments` could not be read, in words for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_error: Option<String>,
    /// How readable arguments had to be mended, such as a string that held the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_note: Option<String>,
    /// A provider's signature that belongs to this call and is replayed with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

impl ToolCall {
    /// A call whose arguments the model wrote as `raw` text: the one place where SPEC M6 is decided.
    ///
    /// Empty text is an empty object. An object is taken as it is; a string that holds an object is
    /// decoded once, with a note. Anything else keeps its text and says what is wrong with it.
    pub fn parse(id: String, name: String, raw: String) -> Self {
        let mut call = Self {
            id,
            name,
            arguments: Map::new(),
            raw_arguments: None,
            arguments_error: None,
            arguments_note: None,
            signature: None,
        };
        if raw.trim().is_empty() {
            return call;
        }
        let error = match serde_json::from_str::<Value>(&raw) {
            Ok(Value::Object(arguments)) => {
                call.arguments = arguments;
                return call;
            }
            Ok(Value::String(inner)) => match serde_json::from_str::<Value>(&inner) {
                Ok(Value::Object(arguments)) => {
                    call.arguments = arguments;
                    call.arguments_note =
                        Some("the arguments were a string that holds a JSON object".to_owned());
                    return call;
                }
                Ok(_) | Err(_) => "expected a JSON object, got a string".to_owned(),
            },
            Ok(Value::Null) => "expected a JSON object, got null".to_owned(),
            Ok(Value::Bool(_)) => "expected a JSON object, got a boolean".to_owned(),
            Ok(Value::Number(_)) => "expected a JSON object, got a number".to_owned(),
            Ok(Value::Array(_)) => "expected a JSON object, got an array".to_owned(),
            Err(error) => error.to_string(),
        };
        call.arguments_error = Some(error);
        call.raw_arguments = Some(raw);
        call
    }

    /// A call that carries text where others carry JSON, as custom tools do: whatever the text is,
    /// it is not arguments.
    pub(crate) fn of_text(id: String, name: String, text: String) -> Self {
        Self {
            id,
            name,
            arguments: Map::new(),
            raw_arguments: Some(text),
            arguments_error: Some("expected a JSON object, got free text".to_owned()),
            arguments_note: None,
            signature: None,
        }
    }
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model was done.
    Stop,
    /// The cap on output tokens was reached.
    Length,
    /// The model wants its calls made.
    ToolUse,
    /// The model's window is full.
    ContextOverflow,
    /// The model or a filter refused.
    Refusal,
    /// The run's limit of turns was reached; no model said this.
    IterationLimit,
    /// Something failed; the message's `error` says what.
    Error,
    /// The request was cancelled.
    Aborted,
}

/// Tokens of one answer. The counts are disjoint but for `reasoning`, which is part of `output`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input tokens that came from no cache and went into none.
    pub input: u64,
    /// Output tokens, thinking included.
    pub output: u64,
    /// Input tokens read from a cache.
    pub cache_read: u64,
    /// Input tokens written to a cache.
    pub cache_write: u64,
    /// Those of `output` that were thinking.
    pub reasoning: u64,
}

impl Usage {
    /// Both counts together, field by field.
    pub fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            reasoning: self.reasoning.saturating_add(other.reasoning),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
pub(crate) fn is_false(value: &bool) -> bool {
    !*value
}
