//! [`HttpProvider`]: a [`Provider`] over HTTP.
//!
//! Owns connections, the three timeouts, and what goes wrong on the way. Knows nothing of what is in
//! a body: encoders make it, [`StreamDecoder`] reads it. Never retries; that is
//! [`crate::RetryLayer`]'s.
//!
//! Everything is pull-driven: polling the stream drives the socket, dropping it closes the
//! connection. An answer that was read to its end gives its connection back for the next request.
//!
//! Proxies come from the environment (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`), which
//! is the one thing that this crate's HTTP client reads there; the own machine is always reached
//! directly. Redirects are not followed: a request carries a key and a conversation, and neither
//! goes anywhere but to the configured address.
//!
//! ```no_run
//! use ai::{BuiltinProvider, ApiKey, History, HttpClient, HttpProvider, Message, Origin, Provider, Request,
//!     StreamEvent, Timeouts, UserMessage};
//! use futures::StreamExt;
//!
//! # async fn example() -> Option<()> {
//! let mut entry = BuiltinProvider::find("anthropic")?.entry();
//! entry.api_key = Some(ApiKey::new(std::env::var("ANTHROPIC_API_KEY").ok()?));
//! let provider = HttpProvider::new(entry, HttpClient::new(Timeouts::default()));
//!
//! let prompt = UserMessage::text("why is the sky blue?", Origin::User);
//! let request = Request::new("claude-sonnet-4-5", History::from_iter([Message::from(prompt)]));
//! let mut stream = provider.stream(request);
//! while let Some(event) = stream.next().await {
//!     if let StreamEvent::TextDelta { delta, .. } = event {
//!         print!("{delta}");
//!     }
//! }
//! let message = stream.result().await;
//! # Some(())
//! # }
//! ```

use std::collections::VecDeque;
use std::error::Error as _;
use std::io;
use std::mem;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
};
use reqwest::{Response, Url};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::alarm::Alarm;
use crate::api::Api;
use crate::assembler::Assembler;
use crate::catalogue::ModelInfo;
use crate::decode::{DecodeOptions, Framing, StreamDecoder};
use crate::encode;
use crate::error::{ErrorKind, ProviderError};
use crate::error_response;
use crate::event::StreamEvent;
use crate::flood::Flood;
use crate::message::{MessageId, Timestamp};
use crate::model_list;
use crate::offered_names::OfferedNames;
use crate::provider::{ModelStream, Provider};
use crate::provider_entry::{AuthScheme, KeyNeed, ProviderEntry, is_secret_header};
use crate::request::Request;
use crate::stream::EventStream;
use crate::timeouts::Timeouts;
use crate::violation_watch::ViolationWatch;

/// What is read of an error's body. Real ones are a few kilobytes; a gateway's page may be more.
const MAX_ERROR_BODY: usize = 256 * 1024;

/// What is read of a list of models. The longest known has 500 models and half a megabyte.
const MAX_MODEL_LIST: usize = 8 * 1024 * 1024;

/// How long an answer that is complete may take to end its body. Waiting keeps the connection for
/// the next turn, which saves a TLS handshake; longer than one would be no gain.
const DRAIN_GRACE: Duration = Duration::from_millis(25);

/// How long a complete answer waits for its usage, which some hosts send behind it and some never.
const LATE_USAGE: Duration = Duration::from_secs(5);

/// How long an unused connection is kept. Shorter than what servers and NATs commonly allow, so
/// that we are the side that closes.
const POOL_IDLE: Duration = Duration::from_secs(50);

/// The version of Messages that the encoder speaks.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// Unless the entry says otherwise.
const USER_AGENT: &str = concat!("coding-agent/", env!("CARGO_PKG_VERSION"));

/// Connections shared by providers. Cheap to clone; made lazily, so an unused one costs nothing.
#[derive(Clone, Debug)]
pub struct HttpClient(Arc<Clients>);

#[derive(Debug)]
struct Clients {
    timeouts: Timeouts,
    loopback: OnceLock<reqwest::Client>,
    plain: OnceLock<reqwest::Client>,
    tls: OnceLock<reqwest::Client>,
}

/// Which client reaches an address. They differ in what they cost to make and in proxies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    /// The own machine without TLS: no proxy, no roots.
    Loopback,
    /// Elsewhere without TLS: no roots, which take milliseconds to load.
    Plain,
    /// TLS, trusting the system's roots and Mozilla's.
    Tls,
}

impl Route {
    fn to(url: &Url) -> Self {
        if url.scheme() == "https" {
            return Self::Tls;
        }
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let loopback = host == "localhost"
            || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        if loopback { Self::Loopback } else { Self::Plain }
    }
}

impl HttpClient {
    /// A client with these timeouts. Connects to nothing yet.
    pub fn new(timeouts: Timeouts) -> Self {
        Self(Arc::new(Clients {
            timeouts,
            loopback: OnceLock::new(),
            plain: OnceLock::new(),
            tls: OnceLock::new(),
        }))
    }

    /// The timeouts that it was made with.
    pub fn timeouts(&self) -> Timeouts {
        self.0.timeouts
    }

    fn client(&self, route: Route) -> Result<reqwest::Client, ProviderError> {
        let slot = match route {
            Route::Loopback => &self.0.loopback,
            Route::Plain => &self.0.plain,
            Route::Tls => &self.0.tls,
        };
        if let Some(client) = slot.get() {
            return Ok(client.clone());
        }
        let builder = || {
            reqwest::Client::builder()
                .user_agent(USER_AGENT)
                .connect_timeout(self.0.timeouts.connect)
                .pool_idle_timeout(POOL_IDLE)
                .redirect(reqwest::redirect::Policy::none())
                .retry(reqwest::retry::never())
                .referer(false)
        };
        let built = match route {
            Route::Loopback => builder().no_proxy().tls_built_in_root_certs(false).build(),
            Route::Plain => builder().tls_built_in_root_certs(false).build(),
            // A machine whose own store is broken still has Mozilla's roots.
            Route::Tls => {
                builder().build().or_else(|_| builder().tls_built_in_native_certs(false).build())
            }
        };
        let client = built.map_err(|error| {
            ProviderError::new(
                ErrorKind::Network,
                format!("cannot set up http: {}", root_cause(&error)),
            )
        })?;
        Ok(slot.get_or_init(|| client).clone())
    }
}

/// A provider that is asked over HTTP. See the module docs for how it behaves.
#[derive(Clone, Debug)]
pub struct HttpProvider {
    entry: Arc<ProviderEntry>,
    client: HttpClient,
}

impl HttpProvider {
    /// The provider of this entry. What is wrong with the entry is said by the first stream.
    pub fn new(entry: ProviderEntry, client: HttpClient) -> Self {
        Self { entry: Arc::new(entry), client }
    }

    /// Asks the provider which models it has, and what it tells of them.
    ///
    /// # Errors
    /// When it cannot be reached, refuses, or answers with something else than a list.
    pub async fn list_models(&self) -> Result<Vec<ModelInfo>, ProviderError> {
        let mut exchange = Exchange::new(self, Request::default());
        let listed = exchange.list_models().await;
        listed.map_err(|mut error| {
            error.message = self.entry.redact(error.message);
            error.request_id = error.request_id.map(|id| self.entry.redact(id));
            error
        })
    }

    /// The entry that it was made of.
    pub fn entry(&self) -> &ProviderEntry {
        &self.entry
    }
}

impl Provider for HttpProvider {
    fn name(&self) -> &str {
        &self.entry.name
    }

    fn api(&self) -> &str {
        self.entry.api.as_str()
    }

    fn stream(&self, request: Request) -> ModelStream {
        let fold = Assembler::new(MessageId::random(), Timestamp::now()).asking(&request.model);
        // Boxed, because it is moved in and out of a future for each event.
        let exchange = Box::new(Exchange::new(self, request));
        EventStream::new(futures::stream::unfold(exchange, Exchange::next), fold)
    }
}

/// One request and its answer.
struct Exchange {
    entry: Arc<ProviderEntry>,
    client: HttpClient,
    names: OfferedNames,
    watch: ViolationWatch,
    flood: Flood,
    /// How long the socket is left alone before it is read again.
    pause: Option<Duration>,
    model: String,
    /// Whether `start` was handed out: it comes before everything else, also before a failure.
    started: bool,
    /// The answer's status, where its body is one JSON object: what fails then is the answer and not
    /// a stream that had begun.
    whole: Option<u16>,
    /// What the provider calls this request, for an error inside the stream, which rarely says it.
    request_id: Option<String>,
    /// Decoded and not yet handed out: one chunk may hold many events.
    ready: VecDeque<StreamEvent>,
    /// What the decoder writes into, kept for its memory.
    decoded: Vec<StreamEvent>,
    state: State,
}

enum State {
    Unsent(Request),
    Reading {
        response: Response,
        decoder: Box<StreamDecoder>,
        /// When the body's first byte is due; `None` once it is there.
        first_byte: Option<Instant>,
        alarm: Alarm,
    },
    /// The answer is complete, its body not yet at its end.
    Draining(Response),
    Ended,
}

impl Exchange {
    fn new(provider: &HttpProvider, request: Request) -> Self {
        Self {
            entry: Arc::clone(&provider.entry),
            client: provider.client.clone(),
            names: OfferedNames::new(&request.tools),
            watch: ViolationWatch::new(&request.tools),
            flood: Flood::default(),
            pause: None,
            model: request.model.clone(),
            started: false,
            whole: None,
            request_id: None,
            ready: VecDeque::new(),
            decoded: Vec::new(),
            state: State::Unsent(request),
        }
    }

    async fn next(mut self: Box<Self>) -> Option<(StreamEvent, Box<Self>)> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some((event, self));
            }
            match mem::replace(&mut self.state, State::Ended) {
                State::Unsent(request) => {
                    if let Err(error) = self.send(&request).await {
                        self.fail(error);
                    }
                }
                State::Reading { response, decoder, first_byte, alarm } => {
                    self.read(response, decoder, first_byte, alarm).await;
                }
                State::Draining(mut response) => {
                    // However it goes: all that was asked for has been handed out.
                    _ = timeout(DRAIN_GRACE, async {
                        while let Ok(Some(_)) = response.chunk().await {}
                    })
                    .await;
                }
                State::Ended => return None,
            }
        }
    }

    async fn send(&mut self, request: &Request) -> Result<(), ProviderError> {
        let url = usable(&self.entry, &self.entry.endpoint_for(&self.model))?;
        let body = encode::encode_request(request, &self.entry);
        let first_byte = Instant::now() + self.client.timeouts().first_byte;
        let response = self.open(url, Some(body), first_byte).await?;
        self.request_id = error_response::request_id(&header_pairs(&response));
        let decoder = Box::new(StreamDecoder::new(
            self.entry.api,
            DecodeOptions {
                provider: self.entry.name.clone(),
                model: self.model.clone(),
                compat: self.entry.compat.clone(),
                framing: Framing::Sse,
            },
        ));
        let alarm = Alarm::new(first_byte);
        self.state = State::Reading { response, decoder, first_byte: Some(first_byte), alarm };
        Ok(())
    }

    /// Sends a body, or asks for one, and waits for a good status.
    async fn open(
        &self,
        url: Url,
        body: Option<Vec<u8>>,
        first_byte: Instant,
    ) -> Result<Response, ProviderError> {
        let mut headers = headers(&self.entry)?;
        let client = self.client.client(Route::to(&url))?;
        let sending = match body {
            Some(body) => client.post(url.clone()).body(body),
            None => {
                headers.remove(CONTENT_TYPE);
                headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
                client.get(url.clone())
            }
        };
        let response = match timeout_at(first_byte, sending.headers(headers).send()).await {
            Err(_) => return Err(self.no_first_byte()),
            Ok(Err(error)) => return Err(self.not_sent(&url, &error)),
            Ok(Ok(response)) => response,
        };
        if !response.status().is_success() {
            return Err(self.refusal(response, Bytes::new()).await);
        }
        if let Some(coding) = coding(&response) {
            return Err(ProviderError::new(
                ErrorKind::MalformedStream,
                format!(
                    "the answer is compressed ({coding}), which was not asked for; check for a proxy \
                     at the provider's base_url"
                ),
            ));
        }
        Ok(response)
    }

    async fn list_models(&mut self) -> Result<Vec<ModelInfo>, ProviderError> {
        let url = usable(&self.entry, &self.entry.models_endpoint())?;
        let first_byte = Instant::now() + self.client.timeouts().first_byte;
        let mut response = self.open(url, None, first_byte).await?;
        let no_list = |why: &str| {
            ProviderError::new(ErrorKind::MalformedStream, format!("no list of models: {why}"))
        };
        let mut body = Vec::new();
        // For all of it: a list is short, and one that trickles would never end.
        let due = Instant::now() + self.client.timeouts().idle;
        loop {
            match timeout_at(due, response.chunk()).await {
                Ok(Ok(Some(bytes))) if body.len() + bytes.len() <= MAX_MODEL_LIST => {
                    body.extend_from_slice(&bytes);
                }
                Ok(Ok(Some(_))) => return Err(no_list("the answer is too long")),
                Ok(Ok(None)) => break,
                Ok(Err(error)) => {
                    let message = format!("the connection broke: {}", root_cause(&error));
                    return Err(ProviderError::new(ErrorKind::Network, message));
                }
                Err(_) => {
                    return Err(ProviderError::new(ErrorKind::Timeout, "the answer stalled"));
                }
            }
        }
        model_list::read(&body).ok_or_else(|| no_list("the answer is something else"))
    }

    /// Reads one piece of the body.
    async fn read(
        &mut self,
        mut response: Response,
        mut decoder: Box<StreamDecoder>,
        first_byte: Option<Instant>,
        mut alarm: Alarm,
    ) {
        if let Some(pause) = self.pause.take() {
            sleep(pause).await;
        }
        let idle = patience(&decoder, self.client.timeouts().idle);
        let asked = Instant::now();
        let due = first_byte.unwrap_or(asked + idle);
        match alarm.wait_for(due, response.chunk()).await {
            Some(Ok(Some(bytes))) if bytes.is_empty() => {
                self.state = State::Reading { response, decoder, first_byte, alarm };
            }
            Some(Ok(Some(bytes))) => {
                if first_byte.is_some() {
                    match Body::of(self.entry.api, &bytes) {
                        Body::Stream => {}
                        Body::Whole => self.whole = Some(response.status().as_u16()),
                        Body::Foreign => {
                            let error = self.refusal(response, bytes).await;
                            return self.fail(error);
                        }
                    }
                }
                self.pause = self.flood.piece(asked.elapsed());
                decoder.push(&bytes, &mut self.decoded);
                self.state = if decoder.is_finished() {
                    State::Draining(response)
                } else {
                    State::Reading { response, decoder, first_byte: None, alarm }
                };
                self.hand_out();
            }
            Some(Ok(None)) => {
                decoder.finish(&mut self.decoded);
                self.hand_out();
            }
            // An end in the middle of a body, orderly but for that, is the decoder's to judge.
            Some(Err(error)) if io_kind(&error) == Some(io::ErrorKind::UnexpectedEof) => {
                decoder.finish(&mut self.decoded);
                self.hand_out();
            }
            Some(Err(error)) => {
                let error = ProviderError::new(
                    ErrorKind::Network,
                    format!("the connection broke in mid-answer: {}", root_cause(&error)),
                );
                self.break_off(decoder, error);
            }
            None => {
                let error = match first_byte {
                    Some(_) => self.no_first_byte(),
                    None => ProviderError::new(
                        ErrorKind::Timeout,
                        format!("the answer stalled: nothing came for {}", in_seconds(idle)),
                    ),
                };
                self.break_off(decoder, error);
            }
        }
    }

    /// Ends a stream in the middle. The decoder closes what is open; where it calls the end a
    /// truncated one, we know better why.
    fn break_off(&mut self, mut decoder: Box<StreamDecoder>, cause: ProviderError) {
        decoder.finish(&mut self.decoded);
        if let Some(StreamEvent::Error { error, .. }) = self.decoded.last_mut()
            && error.kind == ErrorKind::TruncatedStream
        {
            *error = cause;
        }
        self.hand_out();
    }

    fn fail(&mut self, error: ProviderError) {
        self.decoded.push(StreamEvent::failed(error));
        self.hand_out();
    }

    /// Makes what was decoded ready: tools under their own names, an end marked whose text is a
    /// call in disguise, no secret in an error, and `start` first.
    fn hand_out(&mut self) {
        for mut event in self.decoded.drain(..) {
            self.names.restore(&mut event);
            self.watch.pass(&mut event);
            cover(&mut event, &self.entry);
            if let StreamEvent::Error { error, .. } = &mut event {
                error.status = error.status.or(self.whole);
                if error.request_id.is_none() {
                    error.request_id.clone_from(&self.request_id);
                }
                error.message = self.entry.redact(mem::take(&mut error.message));
                error.request_id = error.request_id.take().map(|id| self.entry.redact(id));
            }
            if !self.started {
                self.started = true;
                if !matches!(event, StreamEvent::Start { .. }) {
                    self.ready.push_back(StreamEvent::Start {
                        provider: self.entry.name.clone(),
                        api: self.entry.api.to_string(),
                        model: self.model.clone(),
                    });
                }
            }
            self.ready.push_back(event);
        }
    }

    /// An answer that is no stream: its status and body as an error. Reads no more than is bounded.
    async fn refusal(&self, mut response: Response, begun: Bytes) -> ProviderError {
        let status = response.status();
        let headers = header_pairs(&response);
        let mut body = begun.to_vec();
        let is_readable = coding(&response).is_none();
        let due = Instant::now() + self.client.timeouts().idle;
        // A body that stalls, breaks or is too long is read as far as it came.
        while is_readable
            && body.len() < MAX_ERROR_BODY
            && let Ok(Ok(Some(bytes))) = timeout_at(due, response.chunk()).await
        {
            body.extend_from_slice(&bytes);
        }
        body.truncate(MAX_ERROR_BODY);
        let mut error = error_response::from_body(Some(status.as_u16()), &headers, &body);
        if status.is_redirection() {
            let target = headers
                .iter()
                .find(|(name, _)| name == "location")
                .and_then(|(_, value)| Url::parse(value).ok())
                // A host is written in lower case, in which a secret is not known again.
                .filter(|url| !self.entry.is_secret_in(url.as_str()))
                .and_then(|url| Some(format!(" to {}://{}", url.scheme(), url.host_str()?)))
                .unwrap_or_default();
            error.message = format!(
                "the server redirects{target}, which is not followed with a key; correct the \
                 provider's base_url"
            );
        }
        error
    }

    fn no_first_byte(&self) -> ProviderError {
        ProviderError::new(
            ErrorKind::Timeout,
            format!(
                "no answer: nothing came for {}",
                in_seconds(self.client.timeouts().first_byte)
            ),
        )
    }

    /// Why a request could not be made, with where it went and what to look at.
    fn not_sent(&self, url: &Url, error: &reqwest::Error) -> ProviderError {
        let host = url.host_str().unwrap_or_default();
        let place = match url.port_or_known_default() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let cause = root_cause(error);
        if error.is_timeout() {
            return ProviderError::new(
                ErrorKind::Timeout,
                format!(
                    "no connection to {place} within {}; check the network and any proxy",
                    in_seconds(self.client.timeouts().connect)
                ),
            );
        }
        let message = if !error.is_connect() {
            format!("the connection to {place} broke before the answer: {cause}")
        } else if says(error, "dns error") {
            format!("cannot find the host {host} ({cause}); check base_url and the network")
        } else if says(error, "InvalidContentType") {
            format!(
                "the server at {place} does not speak TLS; if it is meant to be asked without, its \
                 base_url begins with http://"
            )
        } else if io_kind(error) == Some(io::ErrorKind::ConnectionRefused) {
            format!(
                "connection to {place} refused; check that a server is listening there and that \
                 base_url is right"
            )
        } else {
            format!("cannot connect to {place}: {cause}; check base_url, the network and any proxy")
        };
        ProviderError::new(ErrorKind::Network, message)
    }
}

/// Covers secrets in the words that the host puts beside the answer, as some put their request.
fn cover(event: &mut StreamEvent, entry: &ProviderEntry) {
    match event {
        StreamEvent::Start { model, .. } => *model = entry.redact(mem::take(model)),
        StreamEvent::Done { stop_raw, .. } | StreamEvent::Error { stop_raw, .. } => {
            *stop_raw = stop_raw.take().map(|word| entry.redact(word));
        }
        _ => {}
    }
}

/// How a body is compressed, if it is. No request asks for it.
fn coding(response: &Response) -> Option<String> {
    let coding = response.headers().get(CONTENT_ENCODING)?.to_str().unwrap_or("unknown").trim();
    let is_plain = coding.is_empty() || coding.eq_ignore_ascii_case("identity");
    (!is_plain).then(|| coding.chars().take(MAX_CODING).collect())
}

/// The longest known name of a compression has eight letters.
const MAX_CODING: usize = 20;

fn header_pairs(response: &Response) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = response.headers().iter();
    headers.map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

/// How a body begins tells what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    /// Events, as far as one can see; the decoder judges.
    Stream,
    /// One JSON object: the whole answer of a host that does not stream, or an error.
    Whole,
    /// A web page, or a list where the API has none.
    Foreign,
}

impl Body {
    /// No line of an event stream begins like JSON or a page, but Google's stream may be an array.
    fn of(api: Api, bytes: &[u8]) -> Self {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        match bytes.trim_ascii_start().first() {
            Some(b'{') => Self::Whole,
            Some(b'[') if api == Api::GoogleGenerate => Self::Stream,
            Some(b'[' | b'<') => Self::Foreign,
            Some(_) | None => Self::Stream,
        }
    }
}

/// How long the next piece may take. Hosts that end with a mark or by closing do so at once; to those that
/// do neither a complete answer is not lost.
fn patience(decoder: &StreamDecoder, idle: Duration) -> Duration {
    if decoder.has_answer() { idle.min(LATE_USAGE) } else { idle }
}

/// An address of the entry's, checked.
fn usable(entry: &ProviderEntry, address: &str) -> Result<Url, ProviderError> {
    let unusable = |why: &str| {
        ProviderError::new(
            ErrorKind::InvalidRequest,
            format!("the base_url of provider `{}` is not usable: {why}", entry.name),
        )
    };
    let url = Url::parse(address).map_err(|error| unusable(&error.to_string()))?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        scheme => Err(unusable(&format!("expected http or https, got `{scheme}`"))),
    }
}

/// The request's headers; secrets are marked, so that nothing which prints headers shows them.
fn headers(entry: &ProviderEntry) -> Result<HeaderMap, ProviderError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    match entry.api {
        Api::AnthropicMessages => {
            headers.insert(
                HeaderName::from_static("anthropic-version"),
                HeaderValue::from_static(ANTHROPIC_VERSION),
            );
        }
        Api::OpenaiChat | Api::OpenaiResponses | Api::GoogleGenerate => {}
    }
    match (&entry.api_key, entry.key_need) {
        (Some(key), _) if !key.is_empty() => {
            let (name, value) = match entry.auth {
                AuthScheme::Bearer => (AUTHORIZATION, format!("Bearer {}", key.reveal())),
                AuthScheme::XApiKey => {
                    (HeaderName::from_static("x-api-key"), key.reveal().to_owned())
                }
                AuthScheme::XGoogApiKey => {
                    (HeaderName::from_static("x-goog-api-key"), key.reveal().to_owned())
                }
                AuthScheme::ApiKey => (HeaderName::from_static("api-key"), key.reveal().to_owned()),
            };
            let mut value = HeaderValue::from_str(&value).map_err(|_| {
                ProviderError::new(
                    ErrorKind::Auth,
                    format!(
                        "the key of provider `{}` holds characters that no key has",
                        entry.name
                    ),
                )
            })?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        (_, KeyNeed::Required) => {
            let hint = match &entry.key_hint {
                Some(variable) => format!("; set {variable}"),
                None => String::new(),
            };
            return Err(ProviderError::new(
                ErrorKind::Auth,
                format!("no key for provider `{}`{hint}", entry.name),
            ));
        }
        (_, KeyNeed::Optional) => {}
    }
    for (name, value) in &entry.headers {
        let parsed = HeaderName::try_from(name).ok().zip(HeaderValue::from_str(value).ok());
        let Some((name, mut value)) = parsed else {
            return Err(ProviderError::new(
                ErrorKind::InvalidRequest,
                format!("the header `{name}` of provider `{}` is not valid", entry.name),
            ));
        };
        value.set_sensitive(is_secret_header(name.as_str()));
        headers.insert(name, value);
    }
    Ok(headers)
}

/// The innermost error's words: the outer ones repeat the address, whose query may hold a key.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: Option<&dyn std::error::Error> = error.source();
    let mut words = None;
    while let Some(inner) = cause {
        words = Some(inner.to_string());
        cause = inner.source();
    }
    words.unwrap_or_else(|| "no further information".to_owned())
}

fn says(error: &reqwest::Error, words: &str) -> bool {
    let mut cause = error.source();
    while let Some(inner) = cause {
        if inner.to_string().contains(words) {
            return true;
        }
        cause = inner.source();
    }
    false
}

fn io_kind(error: &reqwest::Error) -> Option<io::ErrorKind> {
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(error) = inner.downcast_ref::<io::Error>() {
            return Some(error.kind());
        }
        cause = inner.source();
    }
    None
}

fn in_seconds(duration: Duration) -> String {
    if duration.subsec_millis() == 0 {
        format!("{} s", duration.as_secs())
    } else {
        format!("{} ms", duration.as_millis())
    }
}

#[cfg(test)]
#[path = "transport/tests.rs"]
mod tests;
