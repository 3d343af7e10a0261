//! [`Extension`]: somebody else's code around every tool call.

use ai::ToolErrorKind;
use futures::future::{self, BoxFuture};
use serde_json::{Map, Value};

use crate::tool::ToolOutput;
use crate::tool_call::ToolCall;

/// An extension. Every method has a default that does nothing.
///
/// Extensions can only tighten: they may rewrite arguments, which are then checked and judged like
/// the model's own, and they may block. They cannot allow what permission denies.
pub trait Extension: Send + Sync {
    /// What it is called in messages.
    fn name(&self) -> &str;

    /// Before a call, in the order of the extensions. The call carries the arguments as earlier
    /// extensions left them.
    fn before_tool_call<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, BeforeToolCall> {
        let _ = call;
        Box::pin(future::ready(BeforeToolCall::Go))
    }

    /// After a call, in reverse order, once for every call for which any extension was asked before:
    /// also when another one blocked it, when it failed and when it was abandoned.
    fn after_tool_call<'a>(&'a self, end: ToolCallEnd<'a>) -> BoxFuture<'a, ()> {
        let _ = end;
        Box::pin(future::ready(()))
    }
}

/// What an extension says before a call.
#[derive(Clone, Debug, PartialEq)]
pub enum BeforeToolCall {
    /// Nothing against it.
    Go,
    /// With these arguments instead.
    Rewrite(Map<String, Value>),
    /// Not at all, for this reason, which the model reads.
    Block {
        /// The reason.
        reason: String,
    },
}

/// What an extension hears after a call.
#[derive(Clone, Copy, Debug)]
pub struct ToolCallEnd<'a> {
    /// The call, with the model's arguments.
    pub call: &'a ToolCall,
    /// What it came to, or the host's fault in words.
    pub output: Result<&'a ToolOutput, &'a str>,
}

impl ToolCallEnd<'_> {
    /// Whether the model reads the output as a failure of this kind.
    pub fn failed_with(&self, kind: ToolErrorKind) -> bool {
        self.output.is_ok_and(|output| output.error_kind == Some(kind))
    }
}
