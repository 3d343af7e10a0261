//! One batch: every call of one answer, scheduled and answered.
//!
//! Owns the order in which calls start and in which their results are committed. Knows nothing of
//! what a tool does, of permissions or of the history: it tells a [`BatchEvents`] what happens.
//!
//! An exclusive call waits for all before it and holds back all after it; parallel calls run in a
//! rolling pool. Each call is classified again just before it starts. Results are committed in the
//! model's order, as soon as their predecessors are.
//!
//! **Invariant:** a batch of n calls commits n results in the calls' order, however it ends.

use std::sync::Arc;

use ai::ToolErrorKind;
use futures::future::{BoxFuture, FutureExt};
use futures::stream::{FuturesUnordered, StreamExt};
use tokio_util::sync::CancellationToken;

use crate::outcome::{CancelGrace, NOT_DISPATCHED};
use crate::pool::Pool;
use crate::tool::{ExecutionMode, ToolOutput};
use crate::tool_call::{CallOrigin, Progress, ToolCall};
use crate::tool_service::{OfferedTool, ToolFault};
use crate::tools::Tools;

/// How many parallel calls run at once, unless configured otherwise.
pub const MAX_PARALLEL_TOOL_CALLS: usize = 10;

/// How the calls of one answer may overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduling {
    /// Parallel calls at once, at least one.
    pub max_parallel: usize,
    /// The rule of overlap.
    pub discipline: Discipline,
}

impl Default for Scheduling {
    fn default() -> Self {
        Self { max_parallel: MAX_PARALLEL_TOOL_CALLS, discipline: Discipline::Barriers }
    }
}

/// The rule of overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// An exclusive call is a barrier between the parallel calls before and after it.
    Barriers,
    /// One exclusive call makes every call of its batch exclusive.
    SerialiseBatch,
    /// Every call is exclusive.
    Sequential,
}

/// What a batch tells of itself while it runs.
pub(crate) trait BatchEvents {
    /// A call enters the onion.
    fn call_started(&mut self, call: &ai::ToolCall, title: String);
    /// Where a working call reports to.
    fn progress(&self, call: &ai::ToolCall) -> Progress;
    /// A call came to its output. Calls end in any order.
    fn call_ended(&mut self, call: &ai::ToolCall, output: &Arc<ToolOutput>);
    /// The next result in the model's order is known.
    fn commit(&mut self, call: &ai::ToolCall, output: &Arc<ToolOutput>);
    /// All calls that could overlap with each other have ended.
    fn group_ended(&mut self);
}

/// What the calls of one batch share.
pub(crate) struct BatchSettings<'a> {
    pub(crate) tools: &'a Tools,
    pub(crate) scheduling: Scheduling,
    pub(crate) grace: CancelGrace,
    pub(crate) cancel: &'a CancellationToken,
    pub(crate) origin: CallOrigin,
}

/// What a batch came to besides its results.
#[derive(Debug, Default)]
pub(crate) struct BatchOutcome {
    /// Every result asked for the end of the run.
    pub(crate) terminate: bool,
    /// The first fault of the host.
    pub(crate) fault: Option<ToolFault>,
}

type Ended = (usize, Result<ToolOutput, ToolFault>);

/// Runs the calls and returns when each has its result.
pub(crate) async fn run_batch(
    calls: &[ai::ToolCall],
    settings: &BatchSettings<'_>,
    events: &mut impl BatchEvents,
) -> BatchOutcome {
    let pool = Pool::new(settings.scheduling.max_parallel);
    let serialise = settings.serialises(calls);
    let mut batch = Batch {
        calls,
        results: calls.iter().map(|_| None).collect(),
        committed: 0,
        fault: None,
        events,
    };
    let mut running: FuturesUnordered<BoxFuture<'static, Ended>> = FuturesUnordered::new();
    let mut exclusive_runs = false;
    let mut next = 0;
    loop {
        let stopped = settings.cancel.is_cancelled() || batch.fault.is_some();
        let waiting = if stopped { None } else { calls.get(next) };
        let may_start = waiting.is_some_and(|call| {
            running.is_empty()
                || (!exclusive_runs && !serialise && settings.classify(call).is_parallel())
        });
        let slot = if may_start {
            // A pool that is full is waited for together with the calls that fill it.
            tokio::select! {
                biased;
                slot = pool.slot() => Some(slot),
                Some(ended) = running.next(), if !running.is_empty() => {
                    batch.ended(ended);
                    continue;
                }
            }
        } else {
            None
        };
        match (waiting, slot) {
            (Some(call), Some(slot)) => {
                // The wait for the slot may have taken long: both are asked again.
                let exclusive = serialise || !settings.classify(call).is_parallel();
                if settings.cancel.is_cancelled() || (exclusive && !running.is_empty()) {
                    continue;
                }
                exclusive_runs = exclusive;
                let tool = settings.tools.get(&call.name).cloned();
                let title = tool
                    .as_ref()
                    .map_or_else(|| call.name.clone(), |tool| tool.title(&call.arguments));
                batch.events.call_started(call, title);
                let mut request = ToolCall::from(call);
                request.cancel = settings.cancel.child_token();
                request.progress = batch.events.progress(call);
                request.origin = Some(settings.origin.clone());
                request.slot = slot;
                running.push(start(next, tool, request, settings).boxed());
                next += 1;
            }
            _ => match running.next().await {
                Some(ended) => batch.ended(ended),
                None => break,
            },
        }
        if running.is_empty() {
            batch.group_ended();
        }
    }
    batch.close();
    batch.outcome()
}

/// One call from its start to its output. A name that was not offered has an output, too.
fn start(
    position: usize,
    tool: Option<OfferedTool>,
    call: ToolCall,
    settings: &BatchSettings<'_>,
) -> impl Future<Output = Ended> + Send + 'static {
    let grace = settings.grace;
    let unknown = tool.is_none().then(|| not_found(&call.name, settings.tools));
    async move {
        let slot = call.slot.clone();
        let result = match (tool, unknown) {
            (Some(tool), _) => tool.call_with_grace(call, grace).await,
            (None, unknown) => Ok(unknown.unwrap_or_default()),
        };
        // An abandoned call still holds a clone of its slot; the pool must not wait for it.
        slot.release();
        (position, result)
    }
}

fn not_found(name: &str, tools: &Tools) -> ToolOutput {
    let names: Vec<&str> = tools.iter().map(|tool| tool.spec().name.as_str()).collect();
    let known = if names.is_empty() {
        "there are no tools in this turn".to_owned()
    } else {
        format!("the tools are {}", names.join(", "))
    };
    ToolOutput::error(ToolErrorKind::NotFound, format!("there is no tool {name}; {known}"))
}

impl ExecutionMode {
    fn is_parallel(self) -> bool {
        match self {
            Self::Exclusive => false,
            Self::Parallel => true,
        }
    }
}

impl BatchSettings<'_> {
    /// Calls that will not reach a tool touch nothing and hold nobody up.
    fn classify(&self, call: &ai::ToolCall) -> ExecutionMode {
        match self.tools.get(&call.name) {
            Some(tool) if call.raw_arguments.is_none() => tool.execution_mode(&call.arguments),
            Some(_) | None => ExecutionMode::Parallel,
        }
    }

    fn serialises(&self, calls: &[ai::ToolCall]) -> bool {
        match self.scheduling.discipline {
            Discipline::Sequential => true,
            Discipline::Barriers => false,
            Discipline::SerialiseBatch => {
                calls.iter().any(|call| !self.classify(call).is_parallel())
            }
        }
    }
}

struct Batch<'a, E> {
    calls: &'a [ai::ToolCall],
    results: Vec<Option<Arc<ToolOutput>>>,
    committed: usize,
    fault: Option<ToolFault>,
    events: &'a mut E,
}

impl<E: BatchEvents> Batch<'_, E> {
    fn ended(&mut self, (position, result): Ended) {
        let output = match result {
            Ok(output) => output,
            Err(fault) => {
                let output = ToolOutput::error(ToolErrorKind::Failed, fault.message.clone());
                self.fault.get_or_insert(fault);
                output
            }
        };
        let output = Arc::new(output);
        if let (Some(call), Some(slot)) = (self.calls.get(position), self.results.get_mut(position))
        {
            self.events.call_ended(call, &output);
            *slot = Some(output);
        }
        while let (Some(call), Some(Some(output))) =
            (self.calls.get(self.committed), self.results.get(self.committed))
        {
            self.events.commit(call, output);
            self.committed += 1;
        }
    }

    fn group_ended(&mut self) {
        self.events.group_ended();
    }

    /// Calls that never started get a result of their own.
    fn close(&mut self) {
        let text = match &self.fault {
            Some(fault) => format!("{NOT_DISPATCHED}: {}", fault.message),
            None => NOT_DISPATCHED.to_owned(),
        };
        for (call, result) in self.calls.iter().zip(&mut self.results).skip(self.committed) {
            let output = Arc::new(ToolOutput::error(ToolErrorKind::Aborted, text.clone()));
            self.events.commit(call, &output);
            *result = Some(output);
        }
        self.events.group_ended();
    }

    fn outcome(self) -> BatchOutcome {
        let terminate = !self.results.is_empty()
            && self.results.iter().flatten().all(|output| output.terminate);
        BatchOutcome { terminate, fault: self.fault }
    }
}
