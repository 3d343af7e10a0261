//! [`LateKeyProvider`]: a provider whose key a command prints, once, when it is needed.
//!
//! The command runs when the first request is really made, so that starting the program, listing
//! models and asking other providers wait for nothing. Its key is kept for the life of the provider. Tokens
//! that last an hour expire in the middle of a session: where the provider answers `auth` before any
//! content, the command runs once more, and if it prints another key, the request is made once more
//! with it.

use std::sync::Arc;

use ai::{
    Assembler, ErrorKind, EventStream, HttpClient, HttpProvider, MessageId, ModelStream, Provider,
    ProviderEntry, ProviderError, Request, StreamEvent, Timestamp,
};
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use tokio::sync::Mutex;

use crate::keys::key_command::KeyCommand;

/// A provider over HTTP whose key comes from a command. See the module docs.
#[derive(Debug)]
pub struct LateKeyProvider(Arc<Late>);

#[derive(Debug)]
struct Late {
    entry: ProviderEntry,
    client: HttpClient,
    command: KeyCommand,
    /// The provider with its key, once there is one. Held while the command runs, so that requests
    /// made at the same time wait for the one command.
    ready: Mutex<Option<Arc<HttpProvider>>>,
}

type Events = BoxStream<'static, StreamEvent>;

impl LateKeyProvider {
    /// The provider of this entry, asked with the key that `command` prints.
    pub fn new(entry: ProviderEntry, client: HttpClient, command: KeyCommand) -> Self {
        Self(Arc::new(Late { entry, client, command, ready: Mutex::new(None) }))
    }
}

impl Provider for LateKeyProvider {
    fn name(&self) -> &str {
        &self.0.entry.name
    }

    fn api(&self) -> &str {
        self.0.entry.api.as_str()
    }

    fn stream(&self, request: Request) -> ModelStream {
        let fold = Assembler::new(MessageId::random(), Timestamp::now()).asking(&request.model);
        let asked = Arc::clone(&self.0).ask(request);
        EventStream::new(asked.into_stream().flatten(), fold)
    }
}

impl Late {
    async fn ask(self: Arc<Self>, request: Request) -> Events {
        let provider = match self.provider().await {
            Ok(provider) => provider,
            Err(error) => return self.failed(&request, error),
        };
        let mut answer = provider.stream(request.clone()).into_events();
        let start = answer.next().await;
        let second = answer.next().await;
        if let Some(StreamEvent::Error { error, .. }) = &second
            && error.kind == ErrorKind::Auth
            && let Some(renewed) = self.renewed(&provider).await
        {
            // Never two open requests for one turn.
            drop(answer);
            let retry = StreamEvent::Retry {
                attempt: 1,
                after_ms: 0,
                kind: error.kind,
                message: format!("{}; asking again with a new key", error.message),
            };
            return stream::iter([retry]).chain(renewed.stream(request).into_events()).boxed();
        }
        stream::iter(start.into_iter().chain(second)).chain(answer).boxed()
    }

    async fn provider(&self) -> Result<Arc<HttpProvider>, ProviderError> {
        let mut ready = self.ready.lock().await;
        if let Some(provider) = &*ready {
            return Ok(Arc::clone(provider));
        }
        let provider = Arc::new(self.with_new_key().await?);
        *ready = Some(Arc::clone(&provider));
        Ok(provider)
    }

    /// The provider with another key than `refused` has, if the command prints one now.
    async fn renewed(&self, refused: &Arc<HttpProvider>) -> Option<Arc<HttpProvider>> {
        let mut ready = self.ready.lock().await;
        // Somebody else may have renewed it while this request was on its way.
        let provider = match &*ready {
            Some(current) if !Arc::ptr_eq(current, refused) => Arc::clone(current),
            // The refusal says more than a second failure of the command would.
            Some(_) | None => Arc::new(self.with_new_key().await.ok()?),
        };
        *ready = Some(Arc::clone(&provider));
        (provider.entry().api_key != refused.entry().api_key).then_some(provider)
    }

    async fn with_new_key(&self) -> Result<HttpProvider, ProviderError> {
        let key = self.command.run().await.map_err(|error| {
            let name = &self.entry.name;
            ProviderError::new(
                ErrorKind::Auth,
                format!("the key_command of provider `{name}` gave no key: {error}"),
            )
        })?;
        let mut entry = self.entry.clone();
        entry.api_key = Some(key.api_key());
        Ok(HttpProvider::new(entry, self.client.clone()))
    }

    /// An answer that is nothing but this failure.
    fn failed(&self, request: &Request, mut error: ProviderError) -> Events {
        // The entry's other secrets: its headers, and what its address holds.
        error.message = self.entry.redact(error.message);
        let start = StreamEvent::Start {
            provider: self.entry.name.clone(),
            api: self.entry.api.to_string(),
            model: request.model.clone(),
        };
        stream::iter([start, StreamEvent::failed(error)]).boxed()
    }
}
