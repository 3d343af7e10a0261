//! [`AgentContext`]: what one request is built from.

use std::sync::Arc;

use ai::History;

use crate::tools::Tools;

/// The system prompt, the history and the tools. A clone shares them all, and a run that is given
/// one works on its own: nothing that the run does is seen through the caller's.
#[derive(Clone, Debug, Default)]
pub struct AgentContext {
    /// The system prompt; empty for none.
    pub system_prompt: Arc<str>,
    /// The conversation, oldest first.
    pub messages: History,
    /// What the model may call.
    pub tools: Tools,
}
