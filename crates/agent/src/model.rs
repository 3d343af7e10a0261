//! [`Model`]: a model as the loop asks it: a `tower` service with a name.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use ai::{
    Assembler, BoxModelService, ErrorKind, EventStream, MessageId, ModelService, ModelStream,
    Provider, ProviderError, Request, StreamEvent, Timestamp,
};
use futures::future::BoxFuture;
use tower::{BoxError, Layer, Service, ServiceExt};

/// A model behind whatever layers it has: retries, limits of rate, fallbacks. Cheap to clone.
#[derive(Clone)]
pub struct Model {
    service: BoxModelService,
    provider: Arc<str>,
    api: Arc<str>,
    id: Arc<str>,
}

impl Model {
    /// The model that `provider` names `id`, with nothing around it.
    pub fn new(provider: Arc<dyn Provider>, id: impl Into<Arc<str>>) -> Self {
        Self {
            provider: provider.name().into(),
            api: provider.api().into(),
            id: id.into(),
            service: BoxModelService::new(ModelService::new(provider)),
        }
    }

    /// The same model inside one more layer, which becomes its outermost. A layer's own error, such
    /// as tower's `Elapsed`, becomes a failed answer.
    #[must_use]
    pub fn layer<L>(self, layer: &L) -> Self
    where
        L: Layer<BoxModelService>,
        L::Service: Service<Request, Response = ModelStream> + Clone + Send + Sync + 'static,
        <L::Service as Service<Request>>::Error: Into<BoxError>,
        <L::Service as Service<Request>>::Future: Send + 'static,
    {
        let service = BoxModelService::new(Answering(layer.layer(self.service)));
        Self { service, ..self }
    }

    /// The provider entry's name.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// The wire format.
    pub fn api(&self) -> &str {
        &self.api
    }

    /// The model, as its provider names it.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Asks. A failure is an event of the stream.
    pub async fn ask(&self, request: Request) -> ModelStream {
        match self.service.clone().oneshot(request).await {
            Ok(stream) => stream,
            Err(never) => match never {},
        }
    }
}

/// Turns a layer's errors, also those of its readiness, into failed answers.
#[derive(Clone)]
struct Answering<S>(S);

impl<S> Service<Request> for Answering<S>
where
    S: Service<Request, Response = ModelStream> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
{
    type Response = ModelStream;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<ModelStream, Infallible>>;

    /// Always ready: the inner service's readiness is part of the answer.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let answer = self.0.clone().oneshot(request);
        Box::pin(async move { Ok(answer.await.unwrap_or_else(|error| failed(error.into()))) })
    }
}

fn failed(error: BoxError) -> ModelStream {
    let error = match error.downcast::<ProviderError>() {
        Ok(error) => *error,
        Err(other) => ProviderError::new(ErrorKind::Server, other.to_string()),
    };
    let event = StreamEvent::failed(error);
    let fold = Assembler::new(MessageId::random(), Timestamp::now());
    EventStream::new(futures::stream::iter([event]), fold)
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Model({}/{})", self.provider, self.id)
    }
}
