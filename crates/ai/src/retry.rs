//! Asking again when an attempt failed before it brought anything (SPEC M13).
//!
//! [`RetryPolicy::next_attempt`] decides, without clock or I/O; [`RetryService`] waits and asks. An
//! attempt that has brought content is never repeated here: what to do with half an answer is for
//! those who know what it was for.
//!
//! The failed attempt's stream is dropped before the wait, so there are never two open requests.
//! Dropping the stream during a wait ends it.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::mem;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::StreamExt;
use tokio::time::{Instant, sleep};
use tower::util::ServiceExt;
use tower::{Layer, Service};

use crate::assembler::Assembler;
use crate::error::ProviderError;
use crate::event::StreamEvent;
use crate::message::{MessageId, Timestamp};
use crate::provider::ModelStream;
use crate::request::Request;
use crate::stream::EventStream;

/// How often, how long and how far apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// Attempts in all, the first included. Zero means one.
    pub max_attempts: u32,
    /// From the first attempt's start until the last one's.
    pub max_elapsed: Duration,
    /// The wait after the first failure, before jitter; it doubles with each further one.
    pub base_delay: Duration,
    /// The longest back-off, before jitter. A provider's own hint may be longer.
    pub max_delay: Duration,
    /// Makes the jitter repeatable. `None` takes chance.
    pub seed: Option<u64>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 5,
            max_elapsed: Duration::from_secs(120),
            base_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(30),
            seed: None,
        }
    }
}

/// What comes after a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryDecision {
    /// Another attempt, after this wait.
    After(Duration),
    /// The failure stands.
    GiveUp,
}

impl RetryPolicy {
    /// Decides after attempt number `attempt` (from 1) failed with `error`, `elapsed` after the first
    /// one's start. `chance` is any number; it spreads the wait between half and all of the back-off.
    ///
    /// A hint that leads beyond `max_elapsed` is not cut short but obeyed by giving up at once:
    /// asking sooner would fail again, and waiting longer was not allowed.
    pub fn next_attempt(
        &self,
        attempt: u32,
        elapsed: Duration,
        error: &ProviderError,
        chance: u64,
    ) -> RetryDecision {
        if !error.is_retryable() || attempt >= self.max_attempts {
            return RetryDecision::GiveUp;
        }
        let doublings = attempt.saturating_sub(1).min(31);
        let ceiling = self.base_delay.saturating_mul(1 << doublings).min(self.max_delay);
        // The high 32 bits as a fraction of one.
        let fraction =
            f64::from(u32::try_from(chance >> 32).unwrap_or(u32::MAX)) / f64::from(u32::MAX);
        let back_off = ceiling.mul_f64(0.5 + fraction / 2.0);
        let wait = error.retry_after.map_or(back_off, |hint| hint.max(back_off));
        match elapsed.checked_add(wait) {
            Some(total) if total <= self.max_elapsed => RetryDecision::After(wait),
            Some(_) | None => RetryDecision::GiveUp,
        }
    }

    fn first_chance(&self) -> u64 {
        // The low half of a version 7 UUID is random.
        self.seed.unwrap_or_else(|| uuid::Uuid::now_v7().as_u64_pair().1)
    }
}

/// The next number of a SplitMix64 sequence: enough for jitter, and no dependency.
fn advance(chance: &mut u64) -> u64 {
    *chance = chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *chance;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Wraps a model service in retries.
#[derive(Clone, Copy, Debug)]
pub struct RetryLayer {
    policy: RetryPolicy,
}

impl RetryLayer {
    /// Retries by this policy.
    pub fn new(policy: RetryPolicy) -> Self {
        Self { policy }
    }
}

impl<S> Layer<S> for RetryLayer {
    type Service = RetryService<S>;

    fn layer(&self, inner: S) -> RetryService<S> {
        RetryService { inner, policy: self.policy }
    }
}

/// A model service that asks again. See the module docs.
#[derive(Clone, Debug)]
pub struct RetryService<S> {
    inner: S,
    policy: RetryPolicy,
}

impl<S> Service<Request> for RetryService<S>
where
    S: Service<Request, Response = ModelStream, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = ModelStream;
    type Error = Infallible;
    type Future = Ready<Result<ModelStream, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        // The service that was found ready answers; the clone stays behind.
        let clone = self.inner.clone();
        // Boxed, because it is moved in and out of a future for each event.
        let fold = Assembler::new(MessageId::random(), Timestamp::now()).asking(&request.model);
        let attempts = Box::new(Attempts {
            service: mem::replace(&mut self.inner, clone),
            policy: self.policy,
            request,
            attempt: 0,
            chance: self.policy.first_chance(),
            begun: None,
            state: State::Asking,
        });
        ready(Ok(EventStream::new(futures::stream::unfold(attempts, Attempts::next), fold)))
    }
}

/// All attempts at one request.
struct Attempts<S> {
    service: S,
    policy: RetryPolicy,
    request: Request,
    /// Attempts begun so far.
    attempt: u32,
    chance: u64,
    /// When the first attempt began: at the first poll.
    begun: Option<Instant>,
    state: State,
}

enum State {
    Asking,
    /// Nothing has been handed out of this attempt; its `start` is held back.
    Silent {
        stream: ModelStream,
        start: Option<StreamEvent>,
    },
    /// `start` was handed out, this is what it was held back for.
    Speaking {
        stream: ModelStream,
        held: Option<StreamEvent>,
    },
    Waiting(Duration),
    Ended,
}

impl<S> Attempts<S>
where
    S: Service<Request, Response = ModelStream, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    async fn next(mut self: Box<Self>) -> Option<(StreamEvent, Box<Self>)> {
        loop {
            match mem::replace(&mut self.state, State::Ended) {
                State::Asking => {
                    self.begun.get_or_insert_with(Instant::now);
                    self.attempt += 1;
                    let request = self.request.clone();
                    let stream = match self.service.ready().await {
                        Ok(service) => match service.call(request).await {
                            Ok(stream) => stream,
                            Err(never) => match never {},
                        },
                        Err(never) => match never {},
                    };
                    self.state = State::Silent { stream, start: None };
                }
                State::Silent { mut stream, start } => {
                    let Some(event) = stream.next().await else {
                        // A stream without any end; the fold above calls it truncated.
                        return start.map(|start| (start, self));
                    };
                    match event {
                        StreamEvent::Retry { .. } => {
                            self.state = State::Silent { stream, start };
                            return Some((event, self));
                        }
                        StreamEvent::Start { .. } => {
                            self.state = State::Silent { stream, start: Some(event) };
                        }
                        StreamEvent::Error { ref error, .. }
                            if let RetryDecision::After(wait) = self.decide(error) =>
                        {
                            let retry = StreamEvent::Retry {
                                attempt: self.attempt,
                                after_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
                                kind: error.kind,
                                message: error.message.clone(),
                            };
                            drop(stream);
                            self.state = State::Waiting(wait);
                            return Some((retry, self));
                        }
                        content_or_end => match start {
                            Some(start) => {
                                self.state = State::Speaking { stream, held: Some(content_or_end) };
                                return Some((start, self));
                            }
                            None => {
                                self.state = State::Speaking { stream, held: None };
                                return Some((content_or_end, self));
                            }
                        },
                    }
                }
                State::Speaking { stream, held: Some(event) } => {
                    self.state = State::Speaking { stream, held: None };
                    return Some((event, self));
                }
                State::Speaking { mut stream, held: None } => {
                    let event = stream.next().await?;
                    self.state = State::Speaking { stream, held: None };
                    return Some((event, self));
                }
                State::Waiting(wait) => {
                    sleep(wait).await;
                    self.state = State::Asking;
                }
                State::Ended => return None,
            }
        }
    }

    fn decide(&mut self, error: &ProviderError) -> RetryDecision {
        let elapsed = self.begun.map(|begun| begun.elapsed()).unwrap_or_default();
        let chance = advance(&mut self.chance);
        self.policy.next_attempt(self.attempt, elapsed, error, chance)
    }
}

#[cfg(test)]
#[path = "retry/tests.rs"]
mod tests;
