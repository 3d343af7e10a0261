//! Agent events: what watchers of a run are told, as it happens.
//!
//! Events are for watchers and carry no truth of their own: losing them, or never reading them,
//! changes nothing. Their JSON is what `stream-json` prints.

use std::sync::Arc;

use ai::{ErrorKind, Message, MessageId, StreamEvent, Timestamp, Usage};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::end_reason::{EndReason, FailureKind};
use crate::tool::ToolOutput;
use crate::tool_call::Partial;

/// One event of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AgentEvent {
    /// The run begins.
    AgentStart {
        /// The run's number, from 1.
        run: u64,
    },
    /// A turn begins: one model request and the calls that it asks for.
    TurnStart {
        /// The run.
        run: u64,
        /// The turn's number within the run, from 1.
        turn: u32,
    },
    /// A message begins.
    MessageStart {
        /// The whole message, or the head of one that is still to come.
        message: MessageHead,
    },
    /// An assistant message grows.
    MessageUpdate {
        /// Which.
        message_id: MessageId,
        /// By what: only what is new.
        event: StreamEvent,
    },
    /// A message is complete and part of the history.
    MessageEnd {
        /// The whole message.
        message: Arc<Message>,
    },
    /// A message that began is superseded and not part of the history: take it off the screen.
    MessageDiscard {
        /// Which.
        message_id: MessageId,
    },
    /// A call enters the onion, before any question is asked.
    ToolExecutionStart {
        /// The call.
        tool_call_id: Arc<str>,
        /// The tool, as the model called it.
        tool_name: Arc<str>,
        /// A few words for a person.
        title: String,
        /// The model's arguments.
        args: Map<String, Value>,
    },
    /// A call has something to show while it works.
    ToolExecutionUpdate {
        /// The call.
        tool_call_id: Arc<str>,
        /// The tool, as the model called it.
        tool_name: Arc<str>,
        /// All there is to show now.
        partial: Partial,
    },
    /// A call came to its output.
    ToolExecutionEnd {
        /// The call.
        tool_call_id: Arc<str>,
        /// The tool, as the model called it.
        tool_name: Arc<str>,
        /// The output.
        result: Arc<ToolOutput>,
        /// Whether the model reads it as a failure.
        is_error: bool,
    },
    /// A turn is over.
    TurnEnd {
        /// The run.
        run: u64,
        /// The turn.
        turn: u32,
        /// The model's answer, where there was one.
        message: Option<Arc<Message>>,
        /// The results of its calls, in the model's order.
        tool_results: Vec<Arc<Message>>,
        /// Whether the model is asked again because of them.
        has_more_tool_calls: bool,
    },
    /// The run is over.
    AgentEnd {
        /// The run.
        run: u64,
        /// What the run added to the history, and nothing else.
        messages: Vec<Arc<Message>>,
        /// Why it ended.
        reason: EndReason,
        /// Tokens of all its answers, discarded ones included.
        usage: Usage,
    },
    /// A model request will be made again.
    Retry {
        /// The run.
        run: u64,
        /// The turn.
        turn: u32,
        /// The attempt that failed, from 1.
        attempt: u32,
        /// Milliseconds until the next.
        after_ms: u64,
        /// Why.
        kind: ErrorKind,
        /// Why, for people; may be empty.
        #[serde(skip_serializing_if = "String::is_empty")]
        message: String,
    },
    /// Something failed that will end the run.
    Error {
        /// The run.
        run: u64,
        /// The turn; 0 before the first.
        turn: u32,
        /// What kind of failure.
        kind: FailureKind,
        /// What happened.
        message: String,
    },
    /// This watcher was too slow: events from this number on are missing.
    Lagged {
        /// The number of the first missing event, from 1.
        from_seq: u64,
    },
}

/// What is known of a message when it begins.
#[derive(Clone, Debug, PartialEq)]
pub enum MessageHead {
    /// A message that is whole from the start.
    Whole(Arc<Message>),
    /// An answer that is still to come.
    Assistant {
        /// Its id.
        id: MessageId,
        /// When it began.
        timestamp: Timestamp,
        /// Who answers.
        provider: String,
        /// In which wire format.
        api: String,
        /// With which model.
        model: String,
    },
}

impl MessageHead {
    /// The message's id.
    pub fn id(&self) -> &MessageId {
        match self {
            Self::Whole(message) => message.id(),
            Self::Assistant { id, .. } => id,
        }
    }
}

/// A head is written as the message that it is the head of, as far as that is known.
impl Serialize for MessageHead {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct AssistantHead<'a> {
            role: &'static str,
            id: &'a MessageId,
            timestamp: Timestamp,
            content: [(); 0],
            provider: &'a str,
            api: &'a str,
            model: &'a str,
        }
        match self {
            Self::Whole(message) => message.serialize(serializer),
            Self::Assistant { id, timestamp, provider, api, model } => AssistantHead {
                role: "assistant",
                id,
                timestamp: *timestamp,
                content: [],
                provider,
                api,
                model,
            }
            .serialize(serializer),
        }
    }
}
