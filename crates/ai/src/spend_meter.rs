//! [`SpendMeter`]: what the requests to a model came to in money.
//!
//! A layer that sits directly around a model's service, so that it hears of every attempt: also of
//! those that failed, were retried or were discarded, which cost like any other.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures::future::{BoxFuture, TryFutureExt};
use tower::{Layer, Service};

use crate::catalogue::{ModelInfo, find_model};
use crate::cost::Price;
use crate::event::StreamEvent;
use crate::message::Usage;
use crate::provider::ModelStream;
use crate::request::Request;

/// Adds up what requests cost. Clones add to the same sum.
#[derive(Clone, Debug)]
pub struct SpendMeter {
    models: Arc<[ModelInfo]>,
    spent: Arc<Mutex<Spent>>,
}

#[derive(Debug, Default)]
struct Spent {
    usd: f64,
    /// A price is not known, or what was used.
    has_unknown: bool,
}

impl SpendMeter {
    /// A meter that knows these models' prices.
    pub fn new(models: Arc<[ModelInfo]>) -> Self {
        Self { models, spent: Arc::default() }
    }

    /// What was spent so far in US dollars; `None` where that is not known: a price, or what an answer
    /// used, which nobody tells of one that was dropped in the middle.
    pub fn spent_usd(&self) -> Option<f64> {
        let spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        (!spent.has_unknown).then_some(spent.usd)
    }
}

/// One request, until it is known what it used.
struct Metered {
    meter: SpendMeter,
    price: Option<Price>,
    /// Something of an answer came, which is not free.
    begun: bool,
    ended: bool,
}

impl Metered {
    fn see(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::Done { usage, .. } => {
                self.begun = true;
                self.end(*usage);
            }
            StreamEvent::Error { usage, .. } => self.end(*usage),
            StreamEvent::Retry { .. } | StreamEvent::Start { .. } => {}
            _ => self.begun = true,
        }
    }

    fn end(&mut self, usage: Usage) {
        self.ended = true;
        let is_told = usage != Usage::default();
        let mut spent = self.meter.spent.lock().unwrap_or_else(PoisonError::into_inner);
        match &self.price {
            Some(price) if is_told => spent.usd += price.cost(usage),
            // Whatever it used.
            Some(price) if *price == Price::default() => {}
            Some(_) => spent.has_unknown |= self.begun,
            None => spent.has_unknown = true,
        }
    }
}

impl Drop for Metered {
    fn drop(&mut self) {
        if self.begun && !self.ended {
            self.end(Usage::default());
        }
    }
}

impl<S> Layer<S> for SpendMeter {
    type Service = SpendService<S>;

    fn layer(&self, inner: S) -> SpendService<S> {
        SpendService { inner, meter: self.clone() }
    }
}

/// A model service whose requests are metered.
#[derive(Clone, Debug)]
pub struct SpendService<S> {
    inner: S,
    meter: SpendMeter,
}

impl<S> Service<Request> for SpendService<S>
where
    S: Service<Request, Response = ModelStream>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = ModelStream;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<ModelStream, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let models = &self.meter.models;
        let price = find_model(models, &request.model).and_then(|info| info.price.clone());
        let mut metered = Metered { meter: self.meter.clone(), price, begun: false, ended: false };
        let asked = self.inner.call(request);
        Box::pin(asked.map_ok(move |stream| stream.inspect_events(move |event| metered.see(event))))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::StreamExt;
    use serde_json::json;
    use tower::{ServiceExt, service_fn};

    use crate::assembler::Assembler;
    use crate::history::History;
    use crate::message::{MessageId, StopReason, Timestamp};
    use crate::stream::EventStream;

    use super::*;

    async fn ask(meter: &SpendMeter, model: &str, usage: Usage) -> ModelStream {
        let answering = service_fn(move |_: Request| async move {
            let done = StreamEvent::Done {
                stop_reason: StopReason::Stop,
                stop_raw: None,
                usage,
                violation: None,
            };
            let fold = Assembler::new(MessageId::random(), Timestamp::now());
            Ok::<_, Infallible>(EventStream::new(futures::stream::iter([done]), fold))
        });
        meter.layer(answering).oneshot(Request::new(model, History::default())).await.unwrap()
    }

    /// SPEC M10
    #[tokio::test]
    async fn every_attempt_is_counted_once_and_an_unknown_price_is_said() {
        let models: Vec<ModelInfo> = serde_json::from_value(json!([
            {"id": "priced", "price": {"input": 1, "output": 2}},
            "free-of-facts",
        ]))
        .unwrap();
        let meter = SpendMeter::new(models.into());
        assert_eq!(meter.spent_usd(), Some(0.0));
        let usage = Usage { input: 1_000_000, output: 500_000, ..Usage::default() };
        for _ in 0..2 {
            ask(&meter, "priced", usage).await.result().await;
        }
        assert_eq!(meter.spent_usd(), Some(4.0));
        let mut stream = ask(&meter, "free-of-facts", usage).await;
        while stream.next().await.is_some() {}
        assert_eq!(meter.spent_usd(), None);
    }

    /// SPEC M10
    #[tokio::test]
    async fn what_nobody_told_is_not_free() {
        let models: Vec<ModelInfo> = serde_json::from_value(json!([
            {"id": "priced", "price": {"input": 1, "output": 2}},
            {"id": "free", "price": {"input": 0, "output": 0}},
            "free-of-facts",
        ]))
        .unwrap();
        for (model, cost) in [("priced", None), ("free", Some(0.0)), ("free-of-facts", None)] {
            let meter = SpendMeter::new(models.clone().into());
            ask(&meter, model, Usage::default()).await.result().await;
            assert_eq!(meter.spent_usd(), cost, "{model}");
        }

        // Dropped before anything came, and in the middle of an answer.
        for (events, cost) in
            [(vec![], Some(0.0)), (vec![StreamEvent::TextStart { index: 0 }], None)]
        {
            let meter = SpendMeter::new(models.clone().into());
            let count = events.len();
            let answering = service_fn(move |_: Request| {
                let events = events.clone();
                async move {
                    let never = futures::stream::iter(events).chain(futures::stream::pending());
                    let fold = Assembler::new(MessageId::random(), Timestamp::now());
                    Ok::<_, Infallible>(EventStream::new(never, fold))
                }
            });
            let request = Request::new("priced", History::default());
            let stream = meter.layer(answering).oneshot(request).await.unwrap();
            stream.take(count).collect::<Vec<_>>().await;
            assert_eq!(meter.spent_usd(), cost);
        }
    }
}
