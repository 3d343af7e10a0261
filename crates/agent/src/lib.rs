//! The loop, its isolation, its queues, and tools as services.
//!
//! [`agent_loop`] runs a model on a conversation until it is done: it asks, runs the calls that the
//! answer makes, gives the results back and asks again. What happens next is decided by a pure state
//! machine and performed by a thin driver.
//!
//! ```
//! use std::sync::Arc;
//!
//! use agent::{
//!     AgentContext, AgentEvent, AgentLoopConfig, EndReason, Model, OfferedTool, Tool, ToolCall,
//!     ToolError, ToolOutput, agent_loop,
//! };
//! use ai::{Api, ApiKey, HttpClient, HttpProvider, Origin, ProviderEntry, Timeouts, UserMessage};
//! use futures::StreamExt;
//! use schemars::JsonSchema;
//! use scripted_model::{Script, ScriptedModel, Turn};
//! use serde::Deserialize;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct DiceArguments {
//!     /// How many sides it has.
//!     sides: u32,
//! }
//!
//! struct Dice;
//!
//! impl Tool for Dice {
//!     type Arguments = DiceArguments;
//!
//!     fn name(&self) -> &str {
//!         "Dice"
//!     }
//!
//!     fn description(&self) -> &str {
//!         "Throws one die."
//!     }
//!
//!     async fn run(&self, arguments: DiceArguments, _: &ToolCall) -> Result<ToolOutput, ToolError> {
//!         match arguments.sides {
//!             0 => Err(ToolError::failed("a die needs sides")),
//!             sides => Ok(ToolOutput::text(sides.to_string())),
//!         }
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A model that plays a script stands in for a real one.
//! let server = ScriptedModel::start(
//!     Script::new("dice")
//!         .turn(Turn::new().call("Dice", serde_json::json!({"sides": 6})))
//!         .turn(Turn::text_only("It shows a six.")),
//! )
//! .await?;
//! let api = Api::AnthropicMessages;
//! let mut entry = ProviderEntry::new("scripted", api, server.base_url(api));
//! entry.api_key = Some(ApiKey::new("any key"));
//! let provider = HttpProvider::new(entry, HttpClient::new(Timeouts::default()));
//!
//! let context = AgentContext {
//!     system_prompt: "You throw dice.".into(),
//!     tools: [OfferedTool::new(Dice)?].into_iter().collect(),
//!     ..AgentContext::default()
//! };
//! let config = AgentLoopConfig::new(Model::new(Arc::new(provider), "any model"));
//! let prompt = UserMessage::text("throw a die", Origin::User);
//!
//! let mut run = agent_loop(vec![prompt], context.clone(), config);
//! while let Some(event) = run.next().await {
//!     if let AgentEvent::ToolExecutionEnd { tool_name, result, .. } = event {
//!         println!("{tool_name}: {}", result.content_text());
//!     }
//! }
//! let outcome = run.result().await;
//! assert_eq!(outcome.reason, EndReason::Completed);
//! // The prompt, the call, its result, the answer; the context that was passed is as it was.
//! assert_eq!(outcome.messages.len(), 4);
//! assert_eq!(context.messages.len(), 0);
//! # Ok(())
//! # }
//! ```
//!
//! This crate knows runs, turns, tools as services, queues and time. It knows nothing of files,
//! shells, terminals, configuration, or any one provider.

mod agent_loop;
mod approval;
mod batch;
mod cancel;
mod config;
mod context;
mod driver;
mod effect;
mod end_reason;
mod event;
mod extension;
mod identity;
mod input_source;
mod machine;
mod model;
mod outcome;
mod pool;
mod projection;
mod tool;
mod tool_call;
mod tool_service;
mod tools;
mod validate;
mod watch;

pub use agent_loop::{Run, RunOutcome, agent_loop};
pub use approval::{Approval, Approver, Nobody, Question};
pub use batch::{Discipline, MAX_PARALLEL_TOOL_CALLS, Scheduling};
pub use cancel::RunCancel;
pub use config::{AgentLoopConfig, HookError, OnModelError, PrepareContext};
pub use context::AgentContext;
pub use effect::{Effect, EffectKind, Effects};
pub use end_reason::{AbortCause, EndReason, FailureKind, RunFailure};
pub use event::{AgentEvent, MessageHead};
pub use extension::{BeforeToolCall, Extension, ToolCallEnd};
pub use identity::{CountingIdentity, Identity, SystemIdentity};
pub use input_source::{ClaimSize, InputQueue, InputSource};
pub use machine::{
    Action, Answer, Failure, Input, MAX_HOOK_RETRIES, MAX_MID_ANSWER_RETRIES, Machine,
    MachineLimits, Mend, Queue, Refused,
};
pub use model::Model;
pub use outcome::{ABANDONED, CANCEL_GRACE, CancelGrace, NOT_DISPATCHED, Outcome, OutcomeLayer};
pub use pool::{Pool, PoolSlot};
pub use projection::{MISSING_RESULT, project};
pub use tool::{ExecutionMode, Tool, ToolError, ToolOutput};
pub use tool_call::{CallOrigin, Extensions, Partial, Progress, ToolCall, UnreadableArguments};
pub use tool_service::{InvalidSchema, OfferedTool, ToolFault, ToolFaultKind, ToolService};
pub use tools::Tools;
pub use validate::{Validate, ValidateLayer};
pub use watch::{MAX_BUFFERED_BYTES, MAX_BUFFERED_EVENTS, Watcher};
