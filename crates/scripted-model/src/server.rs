//! [`ScriptedModel`]: the server.
//!
//! Owns the listener, the connections and the order in which one request is read, checked, answered.
//! Knows no rule of any API; those are each dialect's.
//!
//! **Shutdown:** the accepting task owns every connection's task. Dropping the [`ScriptedModel`] aborts
//! it, and so all of them; [`ScriptedModel::stop`] also waits for them.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use ai::Api;
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Incoming};
use hyper::header::{HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

use crate::board::{Board, Ticket};
use crate::body::{AnswerBody, wait};
use crate::dialect::{Answer, Dialect};
use crate::host::Host;
use crate::line::{Breakable, Line};
use crate::plan::{Break, Head, Outcome, Plan};
use crate::record::{Problem, Progress, RecordedRequest, find_header};
use crate::refusal::{Refusal, RefusalKind};
use crate::responder::{Player, Responder};
use crate::script::{Script, Turn};
use crate::target::Target;

/// The largest body that is read, in bytes: twice what the real APIs take.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// How long accepting pauses after it failed, which it does when the process has no file descriptor
/// left; without a pause it would fail again at once, for ever.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// The paths that list the models; the second is Google's.
const MODELS_PATHS: [&str; 2] = ["/v1/models", "/v1beta/models"];

/// A scripted model behind a real HTTP/1.1 server on a loopback port.
///
/// Dropping it closes the port and every connection.
#[derive(Debug)]
pub struct ScriptedModel {
    address: SocketAddr,
    board: Arc<Board>,
    stop: Option<oneshot::Sender<()>>,
    accepting: JoinHandle<()>,
}

impl ScriptedModel {
    /// Starts a server that plays a script. It needs a running tokio runtime.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start(script: Script) -> io::Result<Self> {
        Self::start_with(Player::new(script)).await
    }

    /// Starts a server whose answers are computed, such as by a closure from
    /// `&`[`RecordedRequest`] to [`Turn`].
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start_with(responder: impl Responder) -> io::Result<Self> {
        Self::listen(responder, None).await
    }

    /// Starts a server that is as strict as one host, and refuses in its words.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start_as(host: &'static Host, responder: impl Responder) -> io::Result<Self> {
        Self::listen(responder, Some(host)).await
    }

    async fn listen(responder: impl Responder, host: Option<&'static Host>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let board = Board::new();
        let shared =
            Arc::new(Shared { responder: Box::new(responder), board: Arc::clone(&board), host });
        let (stop, stopped) = oneshot::channel();
        let accepting = tokio::spawn(accept(listener, shared, stopped));
        Ok(Self { address, board, stop: Some(stop), accepting })
    }

    /// Where the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base address for clients of an API: for OpenAI's with `/v1`, for Google's with `/v1beta`,
    /// for Anthropic's without either. For an API that is not spoken it is without either as well.
    pub fn base_url(&self, api: Api) -> String {
        match Dialect::of(api) {
            Some(dialect) => self.base_url_for(dialect),
            None => format!("http://{}", self.address),
        }
    }

    /// The base address for clients of a dialect, as [`ScriptedModel::base_url`] says.
    pub fn base_url_for(&self, dialect: Dialect) -> String {
        format!("http://{}{}", self.address, dialect.base_path())
    }

    /// The requests for answers that have arrived, in order.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.board.requests()
    }

    /// What clients did wrong, in order. A test that ends well has none.
    pub fn problems(&self) -> Vec<Problem> {
        self.board.problems()
    }

    /// Opens a gate, for good: every answer that waits at it, or comes to it later, goes on.
    pub fn open_gate(&self, name: &str) {
        self.board.open_gate(name);
    }

    /// Waits until `count` answers wait at a gate.
    pub async fn wait_at_gate(&self, name: &str, count: usize) {
        self.board.wait_at_gate(name, count).await;
    }

    /// Waits until `count` requests have arrived whole and have been accepted or refused.
    pub async fn wait_for_requests(&self, count: usize) {
        self.board.wait_for_requests(count).await;
    }

    /// Waits until the answer to a request is over, and says how. A client that goes away makes it
    /// [`Progress::Left`].
    pub async fn wait_for_end(&self, index: usize) -> Progress {
        self.board.wait_for_end(index).await
    }

    /// Stops the server and waits until its port and connections are closed.
    pub async fn stop(mut self) {
        if let Some(stop) = self.stop.take() {
            // An error means that the task is over already.
            let _ = stop.send(());
        }
        let _ = (&mut self.accepting).await;
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, mut stopped: oneshot::Receiver<()>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve(stream, Arc::clone(&shared)));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
            // Also when the sender is gone: then this task is being aborted anyway.
            _ = &mut stopped => break,
        }
    }
    drop(listener);
    connections.shutdown().await;
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot switch off delays on a connection");
    }
    let line = Arc::new(Line::default());
    let io = TokioIo::new(Breakable::new(stream, Arc::clone(&line)));
    let service = service_fn(|request| {
        let shared = Arc::clone(&shared);
        let line = Arc::clone(&line);
        async move { Ok::<_, Infallible>(shared.answer(request, line).await) }
    });
    let connection = pin!(http1::Builder::new().serve_connection(io, service));
    tokio::select! {
        ended = connection => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended early");
            }
        }
        () = line.broken() => {}
    }
}

/// What all connections share.
struct Shared {
    responder: Box<dyn Responder>,
    board: Arc<Board>,
    /// Whose rules count, where it is not the API's alone.
    host: Option<&'static Host>,
}

impl Shared {
    async fn answer(&self, request: Request<Incoming>, line: Arc<Line>) -> Response<AnswerBody> {
        let path = request.uri().path();
        let guessed = guess(path, request.headers());
        if MODELS_PATHS.contains(&path) && request.method() == Method::GET {
            return self.whole(StatusCode::OK, &models(guessed, self.responder.name()), line);
        }
        let Some(target) = Target::find(path, request.uri().query()) else {
            let message = format!("there is nothing at {path}");
            return self.turn_away(guessed, &Refusal::whole(RefusalKind::NotFound, message), line);
        };
        let dialect = target.dialect;
        if let Some(host) = self.host.filter(|host| host.api() != dialect.api()) {
            let message = format!("{} does not speak {}", host.name(), dialect.api().as_str());
            return self.turn_away(dialect, &Refusal::whole(RefusalKind::NotFound, message), line);
        }
        if request.method() != Method::POST {
            let message = format!("{path} takes POST, not {}", request.method());
            let refusal = Refusal::whole(RefusalKind::MethodNotAllowed, message);
            let mut response = self.turn_away(dialect, &refusal, line);
            response.headers_mut().insert("allow", HeaderValue::from_static("POST"));
            return response;
        }

        let headers = recorded_headers(request.headers());
        let (body, bytes) = match read_body(request.into_body()).await {
            Ok((value, bytes)) => (Ok(Arc::new(value)), bytes),
            Err(refusal) => (Err(refusal), 0),
        };
        let kept = body.clone().unwrap_or_default();
        let request = self.board.arrive(target, headers, kept, bytes);
        let request_id = format!("req_{:08}", request.index);
        let verdict = self.judge(&request, body);
        let mut response = match verdict {
            Ok(turn) => {
                let conversation = request.conversation();
                let answer = Answer {
                    turn: &turn,
                    conversation: &conversation,
                    request: request.index,
                    usage: turn.usage_for(bytes),
                    body: &request.body,
                };
                let plan = Plan::new(dialect, &answer, &request_id);
                let ticket = self.board.accept(request.index);
                self.perform(plan, ticket, line).await
            }
            Err(refusal) => {
                self.board.refuse(request.index, &refusal);
                self.error(dialect, &refusal, &request_id, line)
            }
        };
        if let Some(name) = dialect.request_id_header()
            && let Ok(value) = HeaderValue::from_str(&request_id)
        {
            response.headers_mut().entry(name).or_insert(value);
        }
        response
    }

    fn judge(
        &self,
        request: &RecordedRequest,
        body: Result<Arc<Value>, Refusal>,
    ) -> Result<Turn, Refusal> {
        request.target.check(|name| find_header(&request.headers, name))?;
        let body = body?;
        request.target.dialect.check_body(&body)?;
        if let Some(host) = self.host {
            let model = request.target.model.as_deref().or_else(|| body["model"].as_str());
            host.check(model.unwrap_or_default(), &body)?;
        }
        // A closure of a test may assert; what it says must reach the client and the test.
        match catch_unwind(AssertUnwindSafe(|| self.responder.respond(request))) {
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(reason)) => Err(Refusal::whole(RefusalKind::InvalidRequest, reason)),
            Err(panic) => {
                let text = panic
                    .downcast_ref::<String>()
                    .map(String::as_str)
                    .or_else(|| panic.downcast_ref::<&str>().copied())
                    .unwrap_or("without words");
                let reason = format!("the responder panicked: {text}");
                Err(Refusal::whole(RefusalKind::InvalidRequest, reason))
            }
        }
    }

    async fn perform(&self, plan: Plan, ticket: Ticket, line: Arc<Line>) -> Response<AnswerBody> {
        for step in plan.before {
            wait(step, Arc::clone(&self.board)).await;
        }
        match plan.outcome {
            Outcome::Answer { head, steps, end } => {
                let board = Arc::clone(&self.board);
                let body = AnswerBody::new(steps, end, head.length, line, board, Some(ticket));
                with_head(head, body)
            }
            Outcome::Broken(how) => {
                // The ticket stays here until the connection is dropped with this future.
                let _ticket = match how {
                    Break::Stall => Some(ticket),
                    Break::Close => {
                        ticket.finish(Progress::Broken);
                        line.close();
                        None
                    }
                    Break::Reset => {
                        ticket.finish(Progress::Broken);
                        line.reset();
                        None
                    }
                };
                std::future::pending().await
            }
        }
    }

    /// Answers a request that asks for no answer of the model.
    fn turn_away(
        &self,
        dialect: Dialect,
        refusal: &Refusal,
        line: Arc<Line>,
    ) -> Response<AnswerBody> {
        self.board.report(refusal);
        self.error(dialect, refusal, "req_none", line)
    }

    fn error(
        &self,
        dialect: Dialect,
        refusal: &Refusal,
        request_id: &str,
        line: Arc<Line>,
    ) -> Response<AnswerBody> {
        let status = StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::BAD_REQUEST);
        let own = self.host.and_then(|host| host.refusal_body(refusal));
        self.whole(status, &own.unwrap_or_else(|| dialect.refusal_body(refusal, request_id)), line)
    }

    fn whole(&self, status: StatusCode, body: &Value, line: Arc<Line>) -> Response<AnswerBody> {
        let bytes = Bytes::from(body.to_string());
        let mut response = Response::new(AnswerBody::whole(bytes, line, Arc::clone(&self.board)));
        *response.status_mut() = status;
        let kind = HeaderValue::from_static("application/json");
        response.headers_mut().insert("content-type", kind);
        response
    }
}

fn with_head(head: Head, body: AnswerBody) -> Response<AnswerBody> {
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(head.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in head.headers {
        match (HeaderName::try_from(&name), HeaderValue::try_from(&value)) {
            (Ok(name), Ok(value)) => {
                response.headers_mut().insert(name, value);
            }
            (Ok(_) | Err(_), Ok(_) | Err(_)) => {
                tracing::warn!(name, value, "the script has a header that HTTP does not allow");
            }
        }
    }
    response
}

fn recorded_headers(headers: &HeaderMap) -> Arc<[(String, String)]> {
    headers
        .iter()
        .map(|(name, value)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        })
        .collect()
}

/// The body's JSON and its length in bytes.
async fn read_body(body: Incoming) -> Result<(Value, usize), Refusal> {
    let too_large = || {
        let message = format!("a request has at most {MAX_BODY_BYTES} bytes");
        Refusal::whole(RefusalKind::TooLarge, message)
    };
    let limit = u64::try_from(MAX_BODY_BYTES).unwrap_or(u64::MAX);
    if body.size_hint().lower() > limit {
        return Err(too_large());
    }
    let bytes = match Limited::new(body, MAX_BODY_BYTES).collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => return Err(too_large()),
        // The client left; nobody reads this.
        Err(error) => return Err(Refusal::at("body", format!("cannot be read: {error}"))),
    };
    match serde_json::from_slice(&bytes) {
        Ok(value) => Ok((value, bytes.len())),
        Err(error) => Err(Refusal::at("body", format!("is not valid JSON: {error}"))),
    }
}

/// The dialect of a request whose path is none that answers.
fn guess(path: &str, headers: &HeaderMap) -> Dialect {
    if headers.contains_key("anthropic-version") {
        Dialect::AnthropicMessages
    } else if headers.contains_key("x-goog-api-key") || path.starts_with("/v1beta/") {
        Dialect::GoogleGenerate
    } else {
        Dialect::OpenaiChat
    }
}

fn models(dialect: Dialect, name: &str) -> Value {
    match dialect {
        Dialect::AnthropicMessages => {
            let model = json!({
                "type": "model",
                "id": name,
                "display_name": name,
                "created_at": "2023-11-14T22:13:20Z",
            });
            json!({"data": [model], "has_more": false, "first_id": name, "last_id": name})
        }
        Dialect::OpenaiChat | Dialect::OpenaiResponses => {
            let model = json!({
                "id": name, "object": "model", "created": 1_700_000_000, "owned_by": "scripted",
            });
            json!({"object": "list", "data": [model]})
        }
        Dialect::GoogleGenerate => {
            let model = json!({
                "name": format!("models/{name}"),
                "displayName": name,
                "supportedGenerationMethods": ["generateContent"],
            });
            json!({"models": [model]})
        }
    }
}
