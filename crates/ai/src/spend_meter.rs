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
    /// Tokens were used that have no known price, or nobody told how many.
    has_unknown: bool,
}

impl SpendMeter {
    /// A meter that knows these models' prices.
    pub fn new(models: Arc<[ModelInfo]>) -> Self {
        Self { models, spent: Arc::default() }
    }

    /// What was spent so far in US dollars; `None` where a price is not known. A request counts when
    /// its stream ends; of one that was dropped in the middle nobody told the usage.
    /// A complete answer without any usage cost what nobody knows.
    pub fn spent_usd(&self) -> Option<f64> {
        let spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        (!spent.has_unknown).then_some(spent.usd)
    }

    fn add(&self, price: Option<&Price>, usage: Usage, is_answer: bool) {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        let is_told = usage != Usage::default();
        match price {
            Some(price) if is_told || *price == Price::default() => spent.usd += price.cost(usage),
            Some(_) | None => spent.has_unknown |= is_told || is_answer,
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
        let meter = self.meter.clone();
        let price = find_model(&meter.models, &request.model).and_then(|info| info.price.clone());
        let asked = self.inner.call(request);
        Box::pin(asked.map_ok(move |stream| {
            stream.inspect_events(move |event| match event {
                StreamEvent::Done { usage, .. } => meter.add(price.as_ref(), *usage, true),
                StreamEvent::Error { usage, .. } => meter.add(price.as_ref(), *usage, false),
                _ => {}
            })
        }))
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
    async fn an_answer_whose_usage_nobody_told_is_not_free() {
        for model in ["priced", "free-of-facts"] {
            let models: Vec<ModelInfo> = serde_json::from_value(json!([
                {"id": "priced", "price": {"input": 1, "output": 2}},
                "free-of-facts",
            ]))
            .unwrap();
            let meter = SpendMeter::new(models.into());
            ask(&meter, model, Usage::default()).await.result().await;
            assert_eq!(meter.spent_usd(), None, "{model}");
        }
    }
}
