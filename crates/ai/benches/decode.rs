//! What decoding costs: bytes a second of text streams in both APIs, and whether one large event in
//! small pieces costs more a byte than small events (SPEC M3, M4: both are linear).

use std::time::Duration;

use ai::{Api, DecodeOptions, StreamDecoder, StreamEvent};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use serde_json::json;

/// What one read of a socket commonly brings.
const PIECE: usize = 4 * 1024;

/// Bytes of text in each stream.
const TEXT: usize = 8 * 1024 * 1024;

/// Text of `length` bytes with line ends, quotes and a character of two bytes, as answers have.
fn text(length: usize) -> String {
    let line = "let é = \"the quick brown fox jumps over the lazy dog\";\n";
    let mut text = line.repeat(length / line.len() + 1);
    text.truncate(text.floor_char_boundary(length));
    text
}

/// A Messages stream of `TEXT` bytes in deltas of `delta` bytes.
fn messages(delta: usize) -> Vec<u8> {
    let mut body = Vec::new();
    let mut event = |data: serde_json::Value| {
        let name = data["type"].as_str().unwrap_or_default();
        body.extend_from_slice(format!("event: {name}\ndata: {data}\n\n").as_bytes());
    };
    event(json!({"type": "message_start", "message": {
        "model": "m", "content": [], "usage": {"input_tokens": 9, "output_tokens": 1}}}));
    event(json!({"type": "content_block_start", "index": 0,
        "content_block": {"type": "text", "text": ""}}));
    let delta = json!({"type": "content_block_delta", "index": 0,
        "delta": {"type": "text_delta", "text": text(delta)}});
    for _ in 0..TEXT / delta["delta"]["text"].as_str().map_or(1, str::len) {
        event(delta.clone());
    }
    event(json!({"type": "content_block_stop", "index": 0}));
    event(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
        "usage": {"output_tokens": 9}}));
    event(json!({"type": "message_stop"}));
    body
}

/// A Chat Completions stream of `TEXT` bytes in deltas of `delta` bytes.
fn chat(delta: usize) -> Vec<u8> {
    let mut body = Vec::new();
    let chunk = |delta: serde_json::Value, finish: Option<&str>| {
        json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    };
    let text = text(delta);
    for _ in 0..TEXT / text.len() {
        let chunk = chunk(json!({"content": text}), None);
        body.extend_from_slice(format!("data: {chunk}\n\n").as_bytes());
    }
    let end = chunk(json!({}), Some("stop"));
    body.extend_from_slice(format!("data: {end}\n\ndata: [DONE]\n\n").as_bytes());
    body
}

/// Decodes a body as it comes from a socket and returns how many events it made.
fn decode(api: Api, body: &[u8]) -> usize {
    let mut decoder = StreamDecoder::new(api, DecodeOptions::default());
    let mut events = Vec::new();
    let mut count = 0;
    for piece in body.chunks(PIECE) {
        decoder.push(piece, &mut events);
        count += events.len();
        let failed = events.iter().any(|event| matches!(event, StreamEvent::Error { .. }));
        assert!(!failed, "the stream is whole");
        events.clear();
    }
    decoder.finish(&mut events);
    count + events.len()
}

/// Makes a stream out of deltas of so many bytes.
type Make = fn(usize) -> Vec<u8>;

fn throughput(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode");
    group.sample_size(10);
    group.warm_up_time(Duration::from_millis(300));
    group.measurement_time(Duration::from_secs(2));
    let streams: [(Api, &str, Make); 2] =
        [(Api::AnthropicMessages, "messages", messages), (Api::OpenaiChat, "chat", chat)];
    for (api, name, make) in streams {
        for (size, delta) in [("100 B deltas", 100), ("one 8 MB event", TEXT)] {
            let body = make(delta);
            group.throughput(Throughput::Bytes(body.len() as u64));
            group.bench_with_input(BenchmarkId::new(name, size), &body, |bencher, body| {
                bencher.iter(|| decode(api, body));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, throughput);
criterion_main!(benches);
