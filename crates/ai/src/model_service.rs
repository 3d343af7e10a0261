//! [`ModelService`]: a [`Provider`] as a `tower` service, where layers sit.
//!
//! ```
//! use std::sync::Arc;
//! use ai::{HttpClient, HttpProvider, ModelService, ProviderEntry, RetryLayer, RetryPolicy, Timeouts};
//! use tower::Layer;
//!
//! let entry = ProviderEntry::new("mine", ai::Api::OpenaiChat, "http://127.0.0.1:8000/v1");
//! let provider = HttpProvider::new(entry, HttpClient::new(Timeouts::default()));
//! let service = ModelService::new(Arc::new(provider));
//! let boxed = ai::BoxModelService::new(RetryLayer::new(RetryPolicy::default()).layer(service));
//! # let _ = boxed;
//! ```

use std::convert::Infallible;
use std::fmt;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use tower::Service;
use tower::util::BoxCloneSyncService;

use crate::provider::{ModelStream, Provider};
use crate::request::Request;

/// Any stack of layers over a provider: cloneable, and shareable between threads.
pub type BoxModelService = BoxCloneSyncService<Request, ModelStream, Infallible>;

/// A provider as a service. Always ready; failing is an event of the stream, never an error.
#[derive(Clone)]
pub struct ModelService(Arc<dyn Provider>);

impl ModelService {
    /// The service of this provider.
    pub fn new(provider: Arc<dyn Provider>) -> Self {
        Self(provider)
    }
}

impl Service<Request> for ModelService {
    type Response = ModelStream;
    type Error = Infallible;
    type Future = Ready<Result<ModelStream, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        ready(Ok(self.0.stream(request)))
    }
}

impl fmt::Debug for ModelService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ModelService").field(&self.0.name()).finish()
    }
}
