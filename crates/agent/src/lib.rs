//! The loop, its isolation, its queues, and tools as services.

mod effect;
mod outcome;
mod pool;
mod tool;
mod tool_call;
mod tool_service;
mod validate;

pub use effect::{Effect, EffectKind, Effects};
pub use outcome::{ABANDONED, CancelGrace, NOT_DISPATCHED, Outcome, OutcomeLayer};
pub use pool::{Pool, PoolSlot};
pub use tool::{ExecutionMode, Tool, ToolError, ToolOutput};
pub use tool_call::{CallOrigin, Extensions, Partial, Progress, ToolCall, UnreadableArguments};
pub use tool_service::{InvalidSchema, OfferedTool, ToolFault, ToolFaultKind, ToolService};
pub use validate::{Validate, ValidateLayer};
