//! The loop, its isolation, its queues, and tools as services.
//!
//! [`agent_loop`] runs a model on a conversation until it is done: it asks, runs the calls that the
//! answer makes, gives the results back and asks again. What happens next is decided by a pure state
//! machine and performed by a thin driver.
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
pub use outcome::{ABANDONED, CancelGrace, NOT_DISPATCHED, Outcome, OutcomeLayer};
pub use pool::{Pool, PoolSlot};
pub use projection::{MISSING_RESULT, project};
pub use tool::{ExecutionMode, Tool, ToolError, ToolOutput};
pub use tool_call::{CallOrigin, Extensions, Partial, Progress, ToolCall, UnreadableArguments};
pub use tool_service::{InvalidSchema, OfferedTool, ToolFault, ToolFaultKind, ToolService};
pub use tools::Tools;
pub use validate::{Validate, ValidateLayer};
pub use watch::{MAX_BUFFERED_BYTES, MAX_BUFFERED_EVENTS, Watcher};
