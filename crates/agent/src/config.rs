//! [`AgentLoopConfig`]: everything a run is told besides its prompts and its context.

use std::sync::Arc;

use ai::{AssistantMessage, ThinkingLevel};
use futures::future::BoxFuture;

use crate::batch::Scheduling;
use crate::context::AgentContext;
use crate::identity::{Identity, SystemIdentity};
use crate::input_source::InputSource;
use crate::machine::{MachineLimits, Mend};
use crate::model::Model;
use crate::outcome::CancelGrace;

/// How a run is made. Begin with [`AgentLoopConfig::new`] and set what differs.
#[derive(Clone)]
#[non_exhaustive]
pub struct AgentLoopConfig {
    /// The model that is asked.
    pub model: Model,
    /// The cap on output tokens of one answer; `None` leaves it to the provider entry.
    pub max_output_tokens: Option<u32>,
    /// Sampling temperature; `None` leaves it to the provider.
    pub temperature: Option<f64>,
    /// How much the model shall think; `None` leaves it to the model.
    pub thinking: Option<ThinkingLevel>,
    /// The run's number, from 1.
    pub run: u64,
    /// What the run may do at most.
    pub limits: MachineLimits,
    /// How the calls of one answer overlap.
    pub scheduling: Scheduling,
    /// How long a cancelled call may take to notice it.
    pub cancel_grace: CancelGrace,
    /// Where input for the next turn of the run is found.
    pub steering: Option<Arc<dyn InputSource>>,
    /// Where input is found when the run would end.
    pub follow_ups: Option<Arc<dyn InputSource>>,
    /// Changes the context of one request. What it takes away is back at the next.
    pub prepare_context: Option<Arc<dyn PrepareContext>>,
    /// Asked when an answer failed and this crate's own rules would end the run.
    pub on_model_error: Option<Arc<dyn OnModelError>>,
    /// Where ids and times come from.
    pub identity: Arc<dyn Identity>,
}

impl AgentLoopConfig {
    /// A run of this model with the defaults for everything else.
    pub fn new(model: Model) -> Self {
        Self {
            model,
            max_output_tokens: None,
            temperature: None,
            thinking: None,
            run: 1,
            limits: MachineLimits::default(),
            scheduling: Scheduling::default(),
            cancel_grace: CancelGrace::default(),
            steering: None,
            follow_ups: None,
            prepare_context: None,
            on_model_error: None,
            identity: Arc::new(SystemIdentity),
        }
    }
}

/// A hook that a run may not go on without failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("hook {hook}: {message}")]
pub struct HookError {
    /// Which hook.
    pub hook: String,
    /// What happened.
    pub message: String,
}

/// Changes what one request is built from.
///
/// It gets a copy: what it drops, such as the tools that change things while a plan is made, is
/// there again at the next turn. Every async function from a context to a context is one.
pub trait PrepareContext: Send + Sync {
    /// The context for this request.
    fn prepare(&self, context: AgentContext) -> BoxFuture<'_, Result<AgentContext, HookError>>;
}

impl<F, Fut> PrepareContext for F
where
    F: Fn(AgentContext) -> Fut + Send + Sync,
    Fut: Future<Output = Result<AgentContext, HookError>> + Send + 'static,
{
    fn prepare(&self, context: AgentContext) -> BoxFuture<'_, Result<AgentContext, HookError>> {
        Box::pin(self(context))
    }
}

/// Says whether a failed answer should be asked for again in the same turn.
pub trait OnModelError: Send + Sync {
    /// Looks at the failed answer.
    fn mend<'a>(&'a self, answer: &'a AssistantMessage) -> BoxFuture<'a, Result<Mend, HookError>>;
}
