//! [`ToolCall`]: one call on its way through the onion.
//!
//! It carries everything that a layer or a body may need, so that nothing is found through globals:
//! arguments, cancellation, progress, where the call comes from, its slot in the pool, and typed
//! extensions, in which a permission layer puts its grant.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use ai::{ContentBlock, MessageId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::pool::PoolSlot;

/// One call of a tool.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolCall {
    /// The call's id, unique within the assistant message that made it.
    pub id: Arc<str>,
    /// The tool's name.
    pub name: Arc<str>,
    /// The arguments as they stand now: a layer may have rewritten them.
    pub arguments: Map<String, Value>,
    /// What the model wrote, when that is not a JSON object. Such a call never reaches a tool.
    pub unreadable: Option<UnreadableArguments>,
    /// Told when the run is cancelled.
    pub cancel: CancellationToken,
    /// Where output goes while the tool still works.
    pub progress: Progress,
    /// Which answer made the call; `None` outside a run.
    pub origin: Option<CallOrigin>,
    /// The call's place in the pool of parallel calls.
    pub slot: PoolSlot,
    /// What layers tell each other.
    pub extensions: Extensions,
}

impl ToolCall {
    /// A call outside any run: nobody watches it and nothing cancels it. Arguments that are not an
    /// object make it unreadable.
    pub fn new(id: impl Into<Arc<str>>, name: impl Into<Arc<str>>, arguments: Value) -> Self {
        let (arguments, unreadable) = match arguments {
            Value::Object(arguments) => (arguments, None),
            other => (
                Map::new(),
                Some(UnreadableArguments {
                    raw: other.to_string(),
                    error: "expected a JSON object".to_owned(),
                }),
            ),
        };
        Self {
            id: id.into(),
            name: name.into(),
            arguments,
            unreadable,
            cancel: CancellationToken::new(),
            progress: Progress::default(),
            origin: None,
            slot: PoolSlot::none(),
            extensions: Extensions::default(),
        }
    }
}

impl From<&ai::ToolCall> for ToolCall {
    fn from(call: &ai::ToolCall) -> Self {
        let mut this =
            Self::new(call.id.as_str(), call.name.as_str(), Value::Object(call.arguments.clone()));
        if let Some(raw) = &call.raw_arguments {
            this.unreadable = Some(UnreadableArguments {
                raw: raw.clone(),
                error: call.arguments_error.clone().unwrap_or_default(),
            });
        }
        this
    }
}

/// Arguments that are not a JSON object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableArguments {
    /// What the model wrote.
    pub raw: String,
    /// What is wrong with it.
    pub error: String,
}

/// Which answer a call belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallOrigin {
    /// The run, from 1.
    pub run: u64,
    /// The turn within the run, from 1.
    pub turn: u32,
    /// The assistant message that made the call.
    pub message_id: MessageId,
}

/// Output of a call that is still at work: a whole new state, not an addition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Partial {
    /// What there is to show now.
    pub content: Vec<ContentBlock>,
    /// What programs may want besides.
    #[serde(default)]
    pub details: Value,
}

/// Where a working tool reports to. Reporting never waits and never fails; nobody may be listening.
#[derive(Clone, Default)]
pub struct Progress(Option<Arc<dyn Fn(Partial) + Send + Sync>>);

impl Progress {
    /// A sink that hands each report to `listener`, which must not block.
    pub fn new(listener: impl Fn(Partial) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }

    /// Whether anybody listens, so that costly reports need not be made for nobody.
    pub fn is_heard(&self) -> bool {
        self.0.is_some()
    }

    /// Reports.
    pub fn report(&self, partial: Partial) {
        if let Some(listener) = &self.0 {
            listener(partial);
        }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Progress").field(&self.is_heard()).finish()
    }
}

/// Values by type, at most one of each.
#[derive(Clone, Default)]
pub struct Extensions(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl Extensions {
    /// Puts a value in, in place of an earlier one of the same type.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(value));
    }

    /// The value of this type.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref()
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Extensions").field(&self.0.len()).finish()
    }
}
