//! [`Board`]: what the server's tasks and its owner tell each other.
//!
//! Owns the recorded requests, the problems and the gates. Every change wakes everybody who waits for
//! one. Knows nothing of HTTP.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::watch;

use crate::record::{Problem, Progress, RecordedRequest};
use crate::refusal::Refusal;
use crate::target::Target;

/// How many bytes of bodies are kept; then the oldest are let go. Enough for every body of a long
/// test, and a bound for a server that runs all day.
const MAX_KEPT_BYTES: usize = 256 * 1024 * 1024;

/// How many requests are kept; then the oldest are forgotten.
const MAX_KEPT_REQUESTS: usize = 100_000;

/// How many problems are kept: the first ones, which cause the others.
const MAX_KEPT_PROBLEMS: usize = 1_000;

/// What the server's tasks and its owner tell each other.
#[derive(Debug)]
pub(crate) struct Board {
    state: Mutex<State>,
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct State {
    /// Those that are kept, by index.
    requests: VecDeque<RecordedRequest>,
    /// How many were forgotten.
    forgotten: usize,
    /// How many of the kept ones, from the oldest, have had their bodies let go.
    emptied: usize,
    kept_bytes: usize,
    /// How many requests were accepted or refused.
    settled: usize,
    problems: Vec<Problem>,
    open_gates: BTreeSet<String>,
    /// How many answers wait at each gate.
    at_gates: BTreeMap<String, usize>,
}

impl State {
    fn request(&mut self, index: usize) -> Option<&mut RecordedRequest> {
        self.requests.get_mut(index.checked_sub(self.forgotten)?)
    }

    fn make_room(&mut self) {
        // The newest is always kept.
        while self.kept_bytes > MAX_KEPT_BYTES && self.emptied + 1 < self.requests.len() {
            if let Some(oldest) = self.requests.get_mut(self.emptied) {
                self.kept_bytes -= oldest.bytes;
                oldest.bytes = 0;
                oldest.body = Arc::new(Value::Null);
            }
            self.emptied += 1;
        }
        while self.requests.len() > MAX_KEPT_REQUESTS {
            if let Some(oldest) = self.requests.pop_front() {
                self.kept_bytes -= oldest.bytes;
            }
            self.forgotten += 1;
            self.emptied = self.emptied.saturating_sub(1);
        }
    }

    fn report(&mut self, problem: Problem) {
        if self.problems.len() < MAX_KEPT_PROBLEMS {
            self.problems.push(problem);
        }
    }
}

impl Board {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), changed: watch::Sender::new(()) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that holds the lock can leave the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.lock());
        self.changed.send_replace(());
        result
    }

    async fn until<T>(&self, mut look: impl FnMut(&State) -> Option<T>) -> T {
        let mut changes = self.changed.subscribe();
        loop {
            let found = look(&self.lock());
            if let Some(found) = found {
                return found;
            }
            // The sender is in `self`: it outlives this.
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Records a request. Nobody is woken before it is settled.
    pub(crate) fn arrive(
        &self,
        target: Target,
        headers: Arc<[(String, String)]>,
        body: Arc<Value>,
        bytes: usize,
    ) -> RecordedRequest {
        let mut state = self.lock();
        let request = RecordedRequest {
            index: state.forgotten + state.requests.len(),
            api: target.dialect.api(),
            headers,
            body,
            refusal: None,
            progress: Progress::Arrived,
            target,
            bytes,
        };
        state.requests.push_back(request.clone());
        state.kept_bytes += bytes;
        state.make_room();
        request
    }

    pub(crate) fn accept(self: &Arc<Self>, index: usize) -> Ticket {
        self.change(|state| {
            state.settled += 1;
            if let Some(request) = state.request(index) {
                request.progress = Progress::Answering;
            }
        });
        Ticket { board: Arc::clone(self), index, ended: None }
    }

    pub(crate) fn refuse(&self, index: usize, refusal: &Refusal) {
        self.change(|state| {
            state.settled += 1;
            if let Some(request) = state.request(index) {
                request.progress = Progress::Refused;
                request.refusal = Some(refusal.to_string());
            }
            state.report(problem(Some(index), refusal));
        });
    }

    pub(crate) fn report(&self, refusal: &Refusal) {
        self.change(|state| state.report(problem(None, refusal)));
    }

    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        self.lock().requests.iter().cloned().collect()
    }

    pub(crate) fn problems(&self) -> Vec<Problem> {
        self.lock().problems.clone()
    }

    pub(crate) fn open_gate(&self, name: &str) {
        self.change(|state| state.open_gates.insert(name.to_owned()));
    }

    pub(crate) async fn pass_gate(&self, name: &str) {
        let _place = GatePlace::take(self, name);
        self.until(|state| state.open_gates.contains(name).then_some(())).await;
    }

    pub(crate) async fn wait_at_gate(&self, name: &str, count: usize) {
        self.until(|state| (state.at_gates.get(name).copied()? >= count).then_some(())).await;
    }

    pub(crate) async fn wait_for_requests(&self, count: usize) {
        self.until(|state| (state.settled >= count).then_some(())).await;
    }

    pub(crate) async fn wait_for_end(&self, index: usize) -> Progress {
        self.until(|state| {
            let request = state.requests.get(index.checked_sub(state.forgotten)?)?;
            match request.progress {
                Progress::Arrived | Progress::Answering => None,
                end @ (Progress::Refused
                | Progress::Answered
                | Progress::Broken
                | Progress::Left) => Some(end),
            }
        })
        .await
    }
}

fn problem(request: Option<usize>, refusal: &Refusal) -> Problem {
    Problem { request, status: refusal.status(), reason: refusal.to_string() }
}

/// An answer that waits at a gate, counted while it does.
struct GatePlace<'a> {
    board: &'a Board,
    name: &'a str,
}

impl<'a> GatePlace<'a> {
    fn take(board: &'a Board, name: &'a str) -> Self {
        board.change(|state| *state.at_gates.entry(name.to_owned()).or_default() += 1);
        Self { board, name }
    }
}

impl Drop for GatePlace<'_> {
    fn drop(&mut self) {
        self.board.change(|state| {
            if let Some(count) = state.at_gates.get_mut(self.name) {
                *count -= 1;
            }
        });
    }
}

/// An answer under way. Dropped before it has finished, it means that the client left.
#[derive(Debug)]
pub(crate) struct Ticket {
    board: Arc<Board>,
    index: usize,
    ended: Option<Progress>,
}

impl Ticket {
    pub(crate) fn finish(mut self, progress: Progress) {
        self.ended = Some(progress);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let progress = self.ended.unwrap_or(Progress::Left);
        self.board.change(|state| {
            if let Some(request) = state.request(self.index) {
                request.progress = progress;
            }
        });
    }
}
