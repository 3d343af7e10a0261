//! A small HTTP/1.1 client that shows what a real one hides: how a body was framed and how it ended.

use std::io;

use scripted_model::ScriptedModel;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How an answer ended on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The body's framing says that it is whole.
    Whole,
    /// The connection was closed in order before that.
    Closed,
    /// The connection was reset before that.
    Reset,
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) ending: Ending,
}

impl Response {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    /// The data of the events, those that are JSON.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.text()
            .lines()
            .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
            .collect()
    }
}

/// A connection with one request on it.
pub(crate) struct Exchange {
    stream: TcpStream,
    received: Vec<u8>,
}

pub(crate) const ANTHROPIC: &str = "/v1/messages";
pub(crate) const CHAT: &str = "/v1/chat/completions";
pub(crate) const RESPONSES: &str = "/v1/responses";
pub(crate) const GOOGLE: &str = "/v1beta/models/m:streamGenerateContent?alt=sse";
pub(crate) const ALL: [&str; 4] = [ANTHROPIC, CHAT, RESPONSES, GOOGLE];

pub(crate) fn headers(path: &str) -> &'static [(&'static str, &'static str)] {
    match path {
        ANTHROPIC => &[("x-api-key", "k"), ("anthropic-version", "2023-06-01")],
        GOOGLE => &[("x-goog-api-key", "k")],
        _ => &[("authorization", "Bearer k")],
    }
}

impl Exchange {
    pub(crate) async fn open(
        model: &ScriptedModel,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Self {
        let mut stream = TcpStream::connect(model.address()).await.unwrap();
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
        stream.write_all(head.as_bytes()).await.unwrap();
        // A server that refuses a large body may close before it has read all of it.
        let _ = stream.write_all(body).await;
        Self { stream, received: Vec::new() }
    }

    pub(crate) async fn post(model: &ScriptedModel, path: &str, body: &Value) -> Self {
        Self::open(model, "POST", path, headers(path), body.to_string().as_bytes()).await
    }

    /// Reads more; `None` at the connection's end.
    async fn read(&mut self) -> Option<Ending> {
        match self.stream.read_buf(&mut self.received).await {
            Ok(0) => Some(Ending::Closed),
            Ok(_) => None,
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Some(Ending::Reset),
            Err(error) => panic!("{error}"),
        }
    }

    /// Reads until the raw bytes contain `text`.
    pub(crate) async fn read_until(&mut self, text: &str) {
        while !String::from_utf8_lossy(&self.received).contains(text) {
            assert_eq!(self.read().await, None, "{}", String::from_utf8_lossy(&self.received));
        }
    }

    pub(crate) fn received(&self) -> String {
        String::from_utf8_lossy(&self.received).into_owned()
    }

    /// Reads to the answer's end. `None` when the connection ended without a whole head.
    pub(crate) async fn finish(mut self) -> (Option<Response>, Ending) {
        loop {
            if let Some(response) = parse(&self.received, None) {
                return (Some(response), Ending::Whole);
            }
            if let Some(ending) = self.read().await {
                return (parse(&self.received, Some(ending)), ending);
            }
        }
    }

    pub(crate) async fn response(self) -> Response {
        self.finish().await.0.unwrap()
    }
}

/// The response, if it is whole or `ended`.
fn parse(received: &[u8], ended: Option<Ending>) -> Option<Response> {
    let split = received.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&received[..split]).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers: Vec<(String, String)> = lines
        .map(|line| line.split_once(": ").unwrap())
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let rest = &received[split + 4..];
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let (body, is_whole) = match length {
        Some((_, length)) => (rest.to_vec(), rest.len() == length.parse::<usize>().unwrap()),
        None => unchunk(rest),
    };
    let ending = if is_whole { Ending::Whole } else { ended? };
    Some(Response { status, headers, body, ending })
}

fn unchunk(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(line) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = std::str::from_utf8(&rest[..line]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        rest = &rest[line + 2..];
        if size == 0 {
            return (body, rest.starts_with(b"\r\n"));
        }
        body.extend_from_slice(&rest[..size.min(rest.len())]);
        if rest.len() < size + 2 {
            break;
        }
        rest = &rest[size + 2..];
    }
    (body, false)
}

/// A request that its API accepts, with this text.
pub(crate) fn asking(path: &str, text: &str) -> Value {
    let messages = json!([{"role": "user", "content": text}]);
    match path {
        RESPONSES => json!({"model": "m", "stream": true, "store": false, "input": messages}),
        GOOGLE => json!({"contents": [{"role": "user", "parts": [{"text": text}]}]}),
        ANTHROPIC => {
            json!({"model": "m", "max_tokens": 64, "stream": true, "messages": messages})
        }
        _ => json!({
            "model": "m",
            "stream": true,
            "stream_options": {"include_usage": true},
            "messages": messages,
        }),
    }
}

/// Posts a request and reads the whole answer.
pub(crate) async fn ask(model: &ScriptedModel, path: &str, body: &Value) -> Response {
    Exchange::post(model, path, body).await.response().await
}
