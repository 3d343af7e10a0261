//! Against real sockets: a server that plays bytes, stalls, ends and breaks off as told.

use std::sync::{Arc, Mutex};

use futures::StreamExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use super::*;
use crate::api_key::ApiKey;
use crate::history::History;
use crate::message::{Message, Origin, StopReason, UserMessage};

/// What the server does on a connection, after it has read a request.
enum Act {
    Send(String),
    /// Says nothing until the other side is gone.
    Stall,
    /// Sends a blank every few milliseconds until the other side is gone.
    Trickle,
    /// Waits for the test's word.
    Gate(oneshot::Receiver<()>),
    /// Ends the connection in order.
    Close,
    /// Ends it with a reset.
    Reset,
    /// Reads the next request on the same connection.
    NextRequest,
}

struct Server {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
    /// Fires when the other side has closed a connection during `Stall`.
    gone: Option<oneshot::Receiver<()>>,
}

/// Each script is one connection.
async fn serve(scripts: Vec<Vec<Act>>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    let (tell, gone) = oneshot::channel();
    tokio::spawn(async move {
        let mut tell = Some(tell);
        for script in scripts {
            let (mut socket, _) = listener.accept().await.unwrap();
            let request = read_request(&mut socket).await;
            seen.lock().unwrap().push(request);
            for act in script {
                match act {
                    Act::Send(text) => socket.write_all(text.as_bytes()).await.unwrap(),
                    Act::Trickle => {
                        while socket.write_all(b" ").await.is_ok() {
                            tokio::time::sleep(SHORT / 10).await;
                        }
                    }
                    Act::Gate(open) => _ = open.await,
                    Act::Close => break,
                    Act::Reset => {
                        socket.set_zero_linger().unwrap();
                        break;
                    }
                    Act::NextRequest => {
                        let request = read_request(&mut socket).await;
                        seen.lock().unwrap().push(request);
                    }
                    Act::Stall => {
                        let mut rest = Vec::new();
                        _ = socket.read_to_end(&mut rest).await;
                        if let Some(tell) = tell.take() {
                            _ = tell.send(());
                        }
                    }
                }
            }
        }
    });
    Server { port, requests, gone: Some(gone) }
}

async fn read_request(socket: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length: usize = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok())
                .unwrap_or(0);
            if body.len() >= length {
                return text;
            }
        }
        let mut piece = [0; 4096];
        let read = socket.read(&mut piece).await.unwrap();
        if read == 0 {
            return text;
        }
        bytes.extend_from_slice(&piece[..read]);
    }
}

const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const LAST_CHUNK: &str = "0\r\n\r\n";

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

fn sse(json: &str) -> String {
    format!("data: {json}\n\n")
}

fn start() -> String {
    sse(r#"{"type":"message_start"}"#)
}

fn text(text: &str) -> String {
    sse(&format!(
        r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#
    ))
}

fn stop() -> String {
    sse(r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#)
        + &sse(r#"{"type":"message_stop"}"#)
}

fn answer(status: &str, headers: &str, body: &str) -> Act {
    let length = body.len();
    Act::Send(format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}"))
}

fn send(text: impl Into<String>) -> Act {
    Act::Send(text.into())
}

const KEY: &str = "sk-test-0123456789";

/// Short enough for a test to wait for. Only where it is what the test is about: a busy machine
/// may be slower in everything else.
const SHORT: Duration = Duration::from_millis(60);

fn short_first_byte() -> Timeouts {
    Timeouts { first_byte: SHORT, ..patient() }
}

fn short_idle() -> Timeouts {
    Timeouts { idle: SHORT, ..patient() }
}

fn patient() -> Timeouts {
    Timeouts {
        connect: Duration::from_secs(5),
        first_byte: Duration::from_secs(20),
        idle: Duration::from_secs(20),
    }
}

fn entry(port: u16) -> ProviderEntry {
    let base = format!("http://127.0.0.1:{port}");
    let mut entry = ProviderEntry::new("mock", Api::AnthropicMessages, base);
    entry.api_key = Some(ApiKey::new(KEY));
    entry
}

fn request() -> Request {
    Request::new(
        "model-1",
        History::from_iter([Message::from(UserMessage::text("hi", Origin::User))]),
    )
}

fn ask(port: u16, timeouts: Timeouts) -> ModelStream {
    HttpProvider::new(entry(port), HttpClient::new(timeouts)).stream(request())
}

async fn failure(port: u16, timeouts: Timeouts) -> ProviderError {
    ask(port, timeouts).result().await.error.unwrap()
}

fn started() -> StreamEvent {
    StreamEvent::Start {
        provider: "mock".into(),
        api: "anthropic-messages".into(),
        model: "model-1".into(),
    }
}

#[tokio::test]
async fn an_answer_comes_as_events_and_as_a_message() {
    // Three events in one chunk, one event over two chunks.
    let delta = text("lo");
    let (one, two) = delta.split_at(20);
    let server = serve(vec![vec![
        send(HEAD),
        send(chunk(&(start() + &text("hel")))),
        send(chunk(one)),
        send(chunk(two)),
        send(chunk(&stop())),
        send(LAST_CHUNK),
        Act::Stall,
    ]])
    .await;
    let mut stream = ask(server.port, patient());
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(event);
    }
    assert_eq!(
        events,
        [
            started(),
            StreamEvent::TextStart { index: 0 },
            StreamEvent::TextDelta { index: 0, delta: "hel".into() },
            StreamEvent::TextDelta { index: 0, delta: "lo".into() },
            StreamEvent::TextEnd { index: 0 },
            StreamEvent::Done {
                stop_reason: StopReason::Stop,
                stop_raw: Some("end_turn".into()),
                usage: crate::message::Usage::default(),
                violation: None,
            },
        ]
    );
    let message = stream.result().await;
    assert_eq!(message.text(), "hello");
    assert_eq!((message.provider.as_str(), message.model.as_str()), ("mock", "model-1"));

    let requests = server.requests.lock().unwrap();
    let head = requests[0].split("\r\n\r\n").next().unwrap().to_lowercase();
    assert!(head.starts_with("post /v1/messages http/1.1"), "{head}");
    for header in [
        &format!("x-api-key: {KEY}"),
        "anthropic-version: 2023-06-01",
        "content-type: application/json",
        "user-agent: coding-agent/",
    ] {
        assert!(head.contains(header), "{header} in {head}");
    }
}

#[tokio::test]
async fn google_is_asked_under_the_models_address_and_may_answer_with_an_array() {
    let part = |text: &str, end: &str| {
        format!(r#"{{"candidates": [{{"content": {{"parts": [{{"text": "{text}"}}]}}{end}}}]}}"#)
    };
    let items = format!("[{}\n,\n{}]", part("hel", ""), part("lo", r#", "finishReason": "STOP""#));
    let server = serve(vec![vec![answer("200 OK", "", &items), Act::Stall]]).await;
    let base = format!("http://127.0.0.1:{}/v1beta", server.port);
    let mut entry = ProviderEntry::new("google", Api::GoogleGenerate, base);
    entry.api_key = Some(ApiKey::new(KEY));
    let provider = HttpProvider::new(entry, HttpClient::new(patient()));
    let message = provider.stream(request()).result().await;
    assert_eq!((message.text().as_str(), message.stop_reason), ("hello", StopReason::Stop));

    let requests = server.requests.lock().unwrap();
    let head = requests[0].split("\r\n\r\n").next().unwrap();
    let line = "POST /v1beta/models/model-1:streamGenerateContent?alt=sse HTTP/1.1";
    assert_eq!(head.lines().next(), Some(line));
    assert!(head.contains(&format!("x-goog-api-key: {KEY}")), "{head}");
}

#[tokio::test]
async fn events_are_handed_out_before_the_answer_is_complete() {
    let (open, gate) = oneshot::channel();
    let server = serve(vec![vec![
        send(HEAD),
        send(chunk(&(start() + &text("a")))),
        Act::Gate(gate),
        send(chunk(&stop()) + LAST_CHUNK),
    ]])
    .await;
    let mut stream = ask(server.port, patient());
    assert_eq!(stream.next().await, Some(started()));
    assert_eq!(stream.next().await, Some(StreamEvent::TextStart { index: 0 }));
    assert_eq!(stream.next().await, Some(StreamEvent::TextDelta { index: 0, delta: "a".into() }));
    open.send(()).unwrap();
    assert_eq!(stream.next().await, Some(StreamEvent::TextEnd { index: 0 }));
    assert!(matches!(stream.next().await, Some(StreamEvent::Done { .. })));
}

#[tokio::test]
async fn a_complete_answer_gives_its_connection_back() {
    let whole = || send(format!("{HEAD}{}{LAST_CHUNK}", chunk(&(start() + &stop()))));
    let refused = || answer("429 Too Many Requests", "", r#"{"error":{"message":"slow"}}"#);
    // One connection: a second would find nobody who accepts it.
    let server =
        serve(vec![vec![whole(), Act::NextRequest, refused(), Act::NextRequest, whole()]]).await;
    let provider = HttpProvider::new(entry(server.port), HttpClient::new(patient()));
    let kinds: Vec<StopReason> = [
        provider.stream(request()).result().await.stop_reason,
        provider.stream(request()).result().await.stop_reason,
        provider.stream(request()).result().await.stop_reason,
    ]
    .into();
    assert_eq!(kinds, [StopReason::Stop, StopReason::Error, StopReason::Stop]);
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let mut server =
        serve(vec![vec![send(HEAD), send(chunk(&(start() + &text("a")))), Act::Stall]]).await;
    let mut stream = ask(server.port, patient());
    assert_eq!(stream.next().await, Some(started()));
    drop(stream);
    server.gone.take().unwrap().await.unwrap();
}

#[tokio::test]
async fn nothing_is_sent_before_the_first_poll() {
    let server = serve(vec![vec![Act::Stall]]).await;
    let stream = ask(server.port, patient());
    tokio::task::yield_now().await;
    drop(stream);
    assert!(server.requests.lock().unwrap().is_empty());
}

/// SPEC M14
#[tokio::test]
async fn each_timeout_says_which_it_was() {
    let silent = serve(vec![vec![Act::Stall]]).await;
    let headers_only = serve(vec![vec![send(HEAD), Act::Stall]]).await;
    let stalled =
        serve(vec![vec![send(HEAD), send(chunk(&(start() + &text("a")))), Act::Stall]]).await;
    let timeout = |message: &str| ProviderError::new(ErrorKind::Timeout, message);
    assert_eq!(
        failure(silent.port, short_first_byte()).await,
        timeout("no answer: nothing came for 60 ms")
    );
    assert_eq!(
        failure(headers_only.port, short_first_byte()).await,
        timeout("no answer: nothing came for 60 ms")
    );
    let message = ask(stalled.port, short_idle()).result().await;
    assert_eq!(message.error, Some(timeout("the answer stalled: nothing came for 60 ms")));
    assert_eq!(message.text(), "a");
}

/// SPEC U4
#[tokio::test]
async fn a_refused_connection_says_where_and_what_to_do() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    assert_eq!(
        ask(port, patient()).collect::<Vec<_>>().await,
        [
            started(),
            StreamEvent::failed(ProviderError::new(
                ErrorKind::Network,
                format!(
                    "connection to 127.0.0.1:{port} refused; check that a server is listening \
                     there and that base_url is right"
                )
            ))
        ]
    );
}

/// SPEC U4
#[tokio::test]
async fn an_unknown_host_is_named() {
    let mut entry = entry(1);
    // Longer than a label may be, so that no name server is asked.
    let host = format!("{}.invalid", "x".repeat(64));
    entry.base_url = format!("http://{host}");
    let provider = HttpProvider::new(entry, HttpClient::new(patient()));
    let error = provider.stream(request()).result().await.error.unwrap();
    assert_eq!(error.kind, ErrorKind::Network);
    assert!(error.message.starts_with(&format!("cannot find the host {host} (")), "{error}");
}

/// SPEC M5
#[tokio::test]
async fn a_broken_answer_keeps_what_came_and_is_no_stop() {
    for (end, kind) in [
        (vec![send(LAST_CHUNK)], ErrorKind::TruncatedStream),
        (vec![Act::Close], ErrorKind::TruncatedStream),
        (vec![Act::Reset], ErrorKind::Network),
    ] {
        let (open, gate) = oneshot::channel();
        let mut script = vec![send(HEAD), send(chunk(&(start() + &text("half")))), Act::Gate(gate)];
        script.extend(end);
        let server = serve(vec![script]).await;
        let mut stream = ask(server.port, patient());
        stream.next().await;
        stream.next().await;
        // Only now, or the reset would also wipe out what was sent before it.
        open.send(()).unwrap();
        let message = stream.result().await;
        assert_eq!(message.error.as_ref().map(|error| error.kind), Some(kind));
        assert_eq!(message.text(), "half");
        assert_eq!(message.stop_reason, StopReason::Error);
    }
}

#[tokio::test]
async fn a_host_that_does_not_stream_is_answered_all_the_same() {
    let whole =
        r#"{"type":"message","content":[{"type":"text","text":"hello"}],"stop_reason":"end_turn"}"#;
    let server = serve(vec![vec![
        answer("200 OK", "content-type: application/json\r\n", whole),
        Act::Stall,
    ]])
    .await;
    let message = ask(server.port, patient()).result().await;
    assert_eq!((message.text().as_str(), message.stop_reason), ("hello", StopReason::Stop));
}

/// SPEC M12
#[tokio::test]
async fn refusals_are_typed_and_never_quote_the_key() {
    let quoting = format!(r#"{{"error":{{"type":"authentication_error","message":"bad {KEY}"}}}}"#);
    let cases = [
        (
            answer("529 Overloaded", "retry-after: 3\r\nrequest-id: req_1\r\n", "{}"),
            ProviderError {
                kind: ErrorKind::Overloaded,
                message: "http status 529 without a message".into(),
                status: Some(529),
                retry_after: Some(Duration::from_secs(3)),
                request_id: Some("req_1".into()),
                should_retry: None,
            },
        ),
        (
            answer("401 Unauthorized", &format!("request-id: req_{KEY}\r\n"), &quoting),
            ProviderError {
                status: Some(401),
                request_id: Some("req_[key]".into()),
                ..ProviderError::new(ErrorKind::Auth, "bad [key]")
            },
        ),
        (
            answer("307 Temporary Redirect", "location: https://elsewhere.test/x?k=1\r\n", ""),
            ProviderError {
                status: Some(307),
                ..ProviderError::new(
                    ErrorKind::NotFound,
                    "the server redirects to https://elsewhere.test, which is not followed with a \
                     key; correct the provider's base_url",
                )
            },
        ),
        (
            answer("307 Temporary Redirect", &format!("location: https://{KEY}.test/\r\n"), ""),
            ProviderError {
                status: Some(307),
                ..ProviderError::new(
                    ErrorKind::NotFound,
                    "the server redirects, which is not followed with a key; correct the \
                     provider's base_url",
                )
            },
        ),
        (
            answer("200 OK", "content-encoding: gzip\r\n", "\u{1f}\u{8b}"),
            ProviderError::new(
                ErrorKind::MalformedStream,
                "the answer is compressed (gzip), which was not asked for; check for a proxy at \
                 the provider's base_url",
            ),
        ),
        (
            answer("400 Bad", "content-encoding: br\r\n", "\u{1f}\u{8b}"),
            ProviderError {
                status: Some(400),
                ..ProviderError::new(ErrorKind::InvalidRequest, "http status 400 without a message")
            },
        ),
        (
            answer("200 OK", "content-type: text/html\r\n", "<html><title>Log in</title></html>"),
            ProviderError {
                status: Some(200),
                ..ProviderError::new(
                    ErrorKind::MalformedStream,
                    "got a web page instead of an answer: Log in",
                )
            },
        ),
        (
            answer("503 Unavailable", "x-should-retry: false\r\nretry-after: 3\r\n", "no"),
            ProviderError {
                status: Some(503),
                should_retry: Some(false),
                ..ProviderError::new(ErrorKind::Overloaded, "no")
            },
        ),
        (
            answer("409 Conflict", "x-should-retry: true\r\nretry-after: 3\r\n", "later"),
            ProviderError {
                status: Some(409),
                should_retry: Some(true),
                retry_after: Some(Duration::from_secs(3)),
                ..ProviderError::new(ErrorKind::InvalidRequest, "later")
            },
        ),
        (
            answer("200 OK", "request-id: r\r\n", &sse(r#"{"type":"error","error":"x"}"#)),
            ProviderError {
                request_id: Some("r".into()),
                ..ProviderError::new(ErrorKind::Server, "x")
            },
        ),
        (
            answer("200 OK", "", r#"{"error":{"type":"overloaded_error","message":"busy"}}"#),
            ProviderError {
                status: Some(200),
                ..ProviderError::new(ErrorKind::Overloaded, "busy")
            },
        ),
    ];
    for (act, error) in cases {
        let server = serve(vec![vec![act, Act::Stall]]).await;
        assert_eq!(failure(server.port, patient()).await, error);
    }
}

#[tokio::test]
async fn an_error_body_without_end_is_bounded_in_time_and_size() {
    let stalled = serve(vec![vec![
        send("HTTP/1.1 500 Oops\r\ncontent-length: 100\r\n\r\nhalf a message"),
        Act::Stall,
    ]])
    .await;
    let error = failure(stalled.port, short_idle()).await;
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Server, "half a message"));

    let endless = "x".repeat(2 * MAX_ERROR_BODY);
    let server = serve(vec![vec![
        send(format!("HTTP/1.1 500 Oops\r\ncontent-length: 99999999\r\n\r\n{endless}")),
        Act::Stall,
    ]])
    .await;
    assert_eq!(failure(server.port, patient()).await.kind, ErrorKind::Server);
}

#[tokio::test]
async fn a_faulty_entry_is_refused_without_a_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut without_key = entry(port);
    without_key.api_key = Some(ApiKey::new("  "));
    without_key.key_need = KeyNeed::Required;
    without_key.key_hint = Some("MOCK_API_KEY".into());
    let mut bad_key = entry(port);
    bad_key.api_key = Some(ApiKey::new("two\nlines of secret"));
    let mut bad_url = entry(port);
    bad_url.base_url = "not a url".into();
    let mut bad_scheme = entry(port);
    bad_scheme.base_url = "ftp://host".into();
    let mut bad_header = entry(port);
    bad_header.headers = vec![("no good".into(), "x".into())];
    for (entry, kind, message) in [
        (without_key, ErrorKind::Auth, "no key for provider `mock`; set MOCK_API_KEY"),
        (bad_key, ErrorKind::Auth, "the key of provider `mock` holds characters that no key has"),
        (
            bad_url,
            ErrorKind::InvalidRequest,
            "the base_url of provider `mock` is not usable: relative URL without a base",
        ),
        (
            bad_scheme,
            ErrorKind::InvalidRequest,
            "the base_url of provider `mock` is not usable: expected http or https, got `ftp`",
        ),
        (
            bad_header,
            ErrorKind::InvalidRequest,
            "the header `no good` of provider `mock` is not valid",
        ),
    ] {
        let provider = HttpProvider::new(entry, HttpClient::new(patient()));
        let error = provider.stream(request()).result().await.error;
        assert_eq!(error, Some(ProviderError::new(kind, message)));
    }
}

/// SPEC M20
#[test]
fn secrets_are_marked_in_headers() {
    for (auth, name, value) in [
        (AuthScheme::Bearer, "authorization", format!("Bearer {KEY}")),
        (AuthScheme::XApiKey, "x-api-key", KEY.to_owned()),
        (AuthScheme::XGoogApiKey, "x-goog-api-key", KEY.to_owned()),
        (AuthScheme::ApiKey, "api-key", KEY.to_owned()),
    ] {
        let mut entry = entry(1);
        entry.auth = auth;
        entry.headers = vec![("x-my-token".into(), "hidden-value".into())];
        let headers = headers(&entry).unwrap();
        assert_eq!(headers[name].to_str().unwrap(), value);
        let shown = format!("{headers:?}");
        assert!(!shown.contains(KEY) && !shown.contains("hidden-value"), "{shown}");
        assert!(shown.contains("Sensitive"), "{shown}");
    }
}

#[test]
fn only_tls_pays_for_roots_and_the_own_machine_has_no_proxy() {
    for (url, route) in [
        ("http://127.0.0.1:1/x", Route::Loopback),
        ("http://[::1]:1/x", Route::Loopback),
        ("http://localhost/x", Route::Loopback),
        ("http://10.0.0.1/x", Route::Plain),
        ("http://localhost.example/x", Route::Plain),
        ("https://127.0.0.1/x", Route::Tls),
    ] {
        assert_eq!(Route::to(&Url::parse(url).unwrap()), route, "{url}");
    }
}

/// SPEC M20
#[tokio::test]
async fn a_provider_lists_its_models() {
    let list = |port| async move {
        HttpProvider::new(entry(port), HttpClient::new(patient())).list_models().await
    };
    let body = r#"{"data":[{"id":"model-2"},{"id":"model-1"}],"has_more":false}"#;
    let server = serve(vec![vec![answer("200 OK", "", body)]]).await;
    let models = list(server.port).await.unwrap();
    assert_eq!(models, [ModelInfo::new("model-2"), ModelInfo::new("model-1")]);
    let sent = server.requests.lock().unwrap().join("");
    assert!(sent.starts_with("GET /v1/models?limit=1000 HTTP/1.1\r\n"), "{sent}");
    assert!(sent.contains(&format!("x-api-key: {KEY}\r\n")), "{sent}");

    let refused = answer("401 No", "", &format!(r#"{{"error":{{"message":"bad {KEY}"}}}}"#));
    for (act, kind, message) in [
        (refused, ErrorKind::Auth, "bad [key]"),
        (
            answer("200 OK", "", "<html>"),
            ErrorKind::MalformedStream,
            "no list of models: the answer is something else",
        ),
    ] {
        let server = serve(vec![vec![act, Act::Stall]]).await;
        let error = list(server.port).await.unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (kind, message));
    }
}

/// SPEC M14
#[tokio::test]
async fn a_list_of_models_that_trickles_ends() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n{";
    let server = serve(vec![vec![send(head), Act::Trickle]]).await;
    let provider = HttpProvider::new(entry(server.port), HttpClient::new(short_idle()));
    assert_eq!(provider.list_models().await.unwrap_err().kind, ErrorKind::Timeout);
}

/// SPEC M20
#[tokio::test]
async fn a_key_is_covered_wherever_the_host_quotes_it() {
    let begun = format!(r#"{{"type":"message_start","message":{{"model":"{KEY}"}}}}"#);
    let word = format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{KEY}"}}}}"#);
    let body = sse(&begun) + &text("a") + &sse(&word) + &sse(r#"{"type":"message_stop"}"#);
    let server = serve(vec![vec![answer("200 OK", "", &body), Act::Stall]]).await;
    let message = ask(server.port, patient()).result().await;
    assert_eq!((message.model.as_str(), message.text().as_str()), ("[key]", "a"));
    assert_eq!(message.stop_raw.as_deref(), Some("[key]"));
    let error = message.error.unwrap();
    assert!(!error.message.contains(KEY), "{error:?}");
}

/// SPEC M5, M14: a host that neither ends its answer nor closes the connection does not hold it back for
/// long.
#[test]
fn a_complete_answer_does_not_wait_long_for_its_end() {
    let idle = Duration::from_secs(60);
    let chunk = r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":FINISH}]}"#;
    for (finish, expected) in [("null", idle), ("\"stop\"", LATE_USAGE)] {
        let mut decoder = StreamDecoder::new(Api::OpenaiChat, DecodeOptions::default());
        let mut events = Vec::new();
        decoder.push(sse(&chunk.replace("FINISH", finish)).as_bytes(), &mut events);
        assert_eq!(patience(&decoder, idle), expected, "{finish}");
        assert_eq!(patience(&decoder, SHORT), SHORT);
        decoder.finish(&mut events);
        let is_done = matches!(events.last(), Some(StreamEvent::Done { .. }));
        assert_eq!(is_done, finish != "null", "{finish}");
    }
}
