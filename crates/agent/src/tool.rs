//! [`Tool`]: a tool as its author writes it, a typed struct of arguments and a body.
//!
//! Authors see their own argument type; everything around them sees a [`crate::ToolService`]. The
//! JSON Schema that the model gets and the check of what the model sends both come from the type.
//!
//! ```
//! use agent::{OfferedTool, Tool, ToolCall, ToolError, ToolOutput};
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct AddArguments {
//!     /// The first number.
//!     left: i64,
//!     /// The second number.
//!     right: i64,
//! }
//!
//! struct Add;
//!
//! impl Tool for Add {
//!     type Arguments = AddArguments;
//!
//!     fn name(&self) -> &str {
//!         "Add"
//!     }
//!
//!     fn description(&self) -> &str {
//!         "Adds two numbers."
//!     }
//!
//!     async fn run(&self, arguments: AddArguments, _: &ToolCall) -> Result<ToolOutput, ToolError> {
//!         Ok(ToolOutput::text((arguments.left + arguments.right).to_string()))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), agent::InvalidSchema> {
//! let tool = OfferedTool::new(Add)?;
//! let call = ToolCall::new("call_1", "Add", serde_json::json!({"left": 2, "right": 40}));
//! let output = tool.call(call).await;
//! assert_eq!(output.map(|output| output.content_text()).ok().as_deref(), Some("42"));
//! # Ok(())
//! # }
//! ```

use std::future::Future;

use ai::{ContentBlock, ToolErrorKind, UserMessage};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::effect::Effects;
use crate::tool_call::ToolCall;

/// Whether a call may run beside others of its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutionMode {
    /// Waits for every call before it and holds back every call after it.
    Exclusive,
    /// May overlap with its parallel neighbours.
    Parallel,
}

/// A tool. See the module's documentation for a whole one.
pub trait Tool: Send + Sync + 'static {
    /// What the model passes: an object. Its documentation comments become the schema's
    /// descriptions.
    type Arguments: DeserializeOwned + JsonSchema + Send + 'static;

    /// The name that the model calls it by.
    fn name(&self) -> &str;

    /// What it does, written for the model.
    fn description(&self) -> &str;

    /// Names that models bring along from other tools of the kind, each with the one of ours that it
    /// means. They are understood where ours is required and missing, and the model is told.
    fn other_names(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Whether this call may run beside others. Undeclared is exclusive.
    fn execution_mode(&self, arguments: &Self::Arguments) -> ExecutionMode {
        let _ = arguments;
        ExecutionMode::Exclusive
    }

    /// What this call will do to the world. Undeclared means that permission is asked for.
    fn effects(&self, arguments: &Self::Arguments) -> Effects {
        let _ = arguments;
        Effects::Undeclared
    }

    /// A few words for a person who watches, such as `Read src/main.rs`.
    fn title(&self, arguments: &Self::Arguments) -> String {
        let _ = arguments;
        self.name().to_owned()
    }

    /// Does it. A failure that the model should read is a [`ToolError`]. The body should watch
    /// `call.cancel`; one that does not is abandoned after the grace, not dropped.
    fn run(
        &self,
        arguments: Self::Arguments,
        call: &ToolCall,
    ) -> impl Future<Output = Result<ToolOutput, ToolError>> + Send;
}

/// What a call came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolOutput {
    /// What the model reads.
    pub content: Vec<ContentBlock>,
    /// The model should read it as a failure.
    pub is_error: bool,
    /// What kind of failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_kind: Option<ToolErrorKind>,
    /// What programs and people may want besides; the model never sees it.
    #[serde(default)]
    pub details: Value,
    /// The run should end after this batch, if every result of the batch says so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub terminate: bool,
    /// Messages that join the next turn, after the results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<UserMessage>,
}

impl ToolOutput {
    /// A success of one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![ContentBlock::text(text)], ..Self::default() }
    }

    /// A failure of one text block.
    pub fn error(kind: ToolErrorKind, text: impl Into<String>) -> Self {
        Self { is_error: true, error_kind: Some(kind), ..Self::text(text) }
    }

    /// The same output with details for programs and people.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = details;
        self
    }

    /// The text blocks, joined by line ends.
    pub fn content_text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(ContentBlock::as_text).collect();
        texts.join("\n")
    }
}

/// Why a tool's body failed, in words for the model.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// What kind of failure.
    pub kind: ToolErrorKind,
    /// What happened, to what, and what to do instead.
    pub message: String,
    /// What programs and people may want besides.
    pub details: Value,
}

impl ToolError {
    /// The tool could not do it.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Failed, message)
    }

    /// A failure of another kind.
    pub fn new(kind: ToolErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), details: Value::Null }
    }

    /// The same failure with details for programs and people.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = details;
        self
    }
}

impl From<ToolError> for ToolOutput {
    fn from(error: ToolError) -> Self {
        Self::error(error.kind, error.message).with_details(error.details)
    }
}
