use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::stream;

use super::*;
use crate::error::ErrorKind;
use crate::message::{StopReason, Usage};
use crate::model_service::{BoxModelService, ModelService};
use crate::provider::Provider;

fn error(kind: ErrorKind, hint: Option<u64>) -> ProviderError {
    ProviderError { retry_after: hint.map(Duration::from_millis), ..ProviderError::new(kind, "no") }
}

/// SPEC M13
#[test]
fn the_provider_knows_better_than_the_kind() {
    let policy = RetryPolicy::default();
    for (kind, should_retry, retries) in [
        (ErrorKind::Server, Some(false), false),
        (ErrorKind::Server, None, true),
        (ErrorKind::InvalidRequest, Some(true), true),
        (ErrorKind::InvalidRequest, None, false),
    ] {
        let error = ProviderError { should_retry, ..error(kind, None) };
        let decision = policy.next_attempt(1, Duration::ZERO, &error, 0);
        assert_eq!(decision != RetryDecision::GiveUp, retries, "{kind:?} {should_retry:?}");
    }
}

/// SPEC M13
#[test]
fn the_decision_for_each_situation() {
    const NO_CHANCE: u64 = 0;
    const ALL_CHANCE: u64 = u64::MAX;
    let policy = RetryPolicy::default();
    let after = |milliseconds| RetryDecision::After(Duration::from_millis(milliseconds));
    let stop = RetryDecision::GiveUp;
    use ErrorKind::*;
    for (attempt, elapsed, kind, hint, chance, decision) in [
        // Back-off doubles, between half and all of it.
        (1, 0, Network, None, ALL_CHANCE, after(500)),
        (1, 0, Network, None, NO_CHANCE, after(250)),
        (2, 0, Server, None, ALL_CHANCE, after(1_000)),
        (4, 0, Overloaded, None, ALL_CHANCE, after(4_000)),
        // A hint is a floor, to the millisecond.
        (1, 0, RateLimit, Some(1_000), ALL_CHANCE, after(1_000)),
        (1, 0, RateLimit, Some(100), ALL_CHANCE, after(500)),
        (1, 0, RateLimit, Some(90_000), NO_CHANCE, after(90_000)),
        // Tries are bounded, and time.
        (5, 0, Network, None, NO_CHANCE, stop),
        (1, 119_500, Timeout, None, ALL_CHANCE, after(500)),
        (1, 119_501, Timeout, None, ALL_CHANCE, stop),
        (1, 0, RateLimit, Some(120_000), NO_CHANCE, after(120_000)),
        (1, 0, RateLimit, Some(120_001), NO_CHANCE, stop),
        (1, 0, RateLimit, Some(u64::MAX), NO_CHANCE, stop),
        // What does not mend itself is not tried again.
        (1, 0, Auth, None, NO_CHANCE, stop),
        (1, 0, Quota, Some(1_000), NO_CHANCE, stop),
        (1, 0, ContextOverflow, None, NO_CHANCE, stop),
        (1, 0, MalformedStream, None, NO_CHANCE, stop),
    ] {
        let elapsed = Duration::from_millis(elapsed);
        assert_eq!(
            policy.next_attempt(attempt, elapsed, &error(kind, hint), chance),
            decision,
            "attempt {attempt} after {elapsed:?}: {kind:?} {hint:?}"
        );
    }
    let endless = RetryPolicy { max_attempts: u32::MAX, ..policy };
    assert_eq!(
        endless.next_attempt(1_000_000, Duration::ZERO, &error(Network, None), ALL_CHANCE),
        after(30_000),
        "back-off has a ceiling"
    );
}

/// Plays one script for each attempt, and counts what is open.
struct Scripted {
    scripts: Mutex<VecDeque<Vec<StreamEvent>>>,
    attempts: AtomicUsize,
    open: Arc<AtomicUsize>,
}

struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Provider for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn api(&self) -> &str {
        "anthropic-messages"
    }

    fn stream(&self, _: Request) -> ModelStream {
        self.attempts.fetch_add(1, Ordering::SeqCst);
        assert_eq!(self.open.fetch_add(1, Ordering::SeqCst), 0, "two open requests");
        let open = Open(Arc::clone(&self.open));
        let script = self.scripts.lock().unwrap().pop_front().unwrap();
        EventStream::new(
            stream::iter(script).map(move |event| {
                let _open = &open;
                event
            }),
            Assembler::new(MessageId::random(), Timestamp::now()),
        )
    }
}

fn scripted(scripts: Vec<Vec<StreamEvent>>) -> (Arc<Scripted>, BoxModelService) {
    let provider = Arc::new(Scripted {
        scripts: Mutex::new(scripts.into()),
        attempts: AtomicUsize::new(0),
        open: Arc::new(AtomicUsize::new(0)),
    });
    let policy = RetryPolicy { seed: Some(7), ..RetryPolicy::default() };
    let shared: Arc<dyn Provider> = Arc::<Scripted>::clone(&provider);
    let service = RetryLayer::new(policy).layer(ModelService::new(shared));
    (provider, BoxModelService::new(service))
}

async fn ask(mut service: BoxModelService) -> ModelStream {
    match service.ready().await {
        Ok(service) => service.call(Request::default()).await.unwrap(),
        Err(never) => match never {},
    }
}

fn start() -> StreamEvent {
    StreamEvent::Start { provider: "p".into(), api: "a".into(), model: "m".into() }
}

fn failed(kind: ErrorKind, hint: Option<u64>) -> StreamEvent {
    StreamEvent::failed(error(kind, hint))
}

fn text(delta: &str) -> StreamEvent {
    StreamEvent::TextDelta { index: 0, delta: delta.into() }
}

fn done() -> StreamEvent {
    StreamEvent::Done {
        stop_reason: StopReason::Stop,
        stop_raw: None,
        usage: Usage::default(),
        violation: None,
    }
}

fn retry(attempt: u32, after_ms: u64, kind: ErrorKind) -> StreamEvent {
    StreamEvent::Retry { attempt, after_ms, kind, message: "no".into() }
}

/// SPEC M13
#[tokio::test(start_paused = true)]
async fn failures_before_content_are_announced_and_tried_again() {
    let (provider, service) = scripted(vec![
        vec![start(), failed(ErrorKind::RateLimit, Some(2_000))],
        vec![failed(ErrorKind::Network, Some(3_000))],
        vec![start(), text("a"), done()],
    ]);
    let mut stream = ask(service).await;
    let begun = Instant::now();
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push((begun.elapsed().as_millis(), event));
    }
    assert_eq!(
        events,
        [
            (0, retry(1, 2_000, ErrorKind::RateLimit)),
            (2_000, retry(2, 3_000, ErrorKind::Network)),
            (5_000, start()),
            (5_000, text("a")),
            (5_000, done()),
        ]
    );
    assert_eq!(stream.result().await.text(), "a");
    assert_eq!(provider.attempts.load(Ordering::SeqCst), 3);
}

/// SPEC M13
#[tokio::test(start_paused = true)]
async fn nothing_is_repeated_once_content_came() {
    let script = vec![start(), text("a"), failed(ErrorKind::Overloaded, Some(1))];
    let (provider, service) = scripted(vec![script.clone()]);
    assert_eq!(ask(service).await.collect::<Vec<_>>().await, script);
    assert_eq!(provider.attempts.load(Ordering::SeqCst), 1);
}

/// SPEC M13
#[tokio::test(start_paused = true)]
async fn tries_are_bounded_and_the_last_failure_stands() {
    let attempt = || vec![start(), failed(ErrorKind::Network, None)];
    let (provider, service) = scripted((0..9).map(|_| attempt()).collect());
    let message = ask(service).await.result().await;
    assert_eq!(message.error, Some(error(ErrorKind::Network, None)));
    assert_eq!(message.provider, "p", "the last attempt's `start` is handed out");
    assert_eq!(provider.attempts.load(Ordering::SeqCst), 5);
}

/// SPEC M13
#[tokio::test(start_paused = true)]
async fn a_hint_beyond_the_bound_fails_at_once() {
    let script = vec![start(), failed(ErrorKind::RateLimit, Some(3_600_000))];
    let (_, service) = scripted(vec![script.clone()]);
    let begun = Instant::now();
    assert_eq!(ask(service).await.collect::<Vec<_>>().await, script);
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

/// SPEC M13
#[tokio::test(start_paused = true)]
async fn dropping_the_stream_ends_the_wait() {
    let (provider, service) = scripted(vec![vec![failed(ErrorKind::Server, None)], vec![done()]]);
    let mut stream = ask(service).await;
    assert!(matches!(stream.next().await, Some(StreamEvent::Retry { .. })));
    assert_eq!(provider.open.load(Ordering::SeqCst), 0, "closed before the wait");
    assert!(futures::poll!(stream.next()).is_pending());
    drop(stream);
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(provider.attempts.load(Ordering::SeqCst), 1);
}

#[test]
fn a_seed_repeats_the_jitter_and_chance_does_not() {
    let waits = |seed| {
        let policy = RetryPolicy { seed, ..RetryPolicy::default() };
        let mut chance = policy.first_chance();
        (1..5)
            .map(|attempt| {
                let failure = error(ErrorKind::Network, None);
                policy.next_attempt(attempt, Duration::ZERO, &failure, advance(&mut chance))
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(waits(Some(1)), waits(Some(1)));
    assert_ne!(waits(Some(1)), waits(Some(2)));
    assert_ne!(waits(None), waits(None));
}
