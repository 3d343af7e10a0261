//! What decoding costs, as bytes a second: the largest recorded streams of each API, as one piece and
//! as a socket brings them, and whether one large event in small pieces costs more a byte than small
//! events (SPEC M3, M4: both are linear).
//!
//! The recordings lie outside the repository: in `$CODING_AGENT_SHARED/streams`, else in
//! `../shared/streams` beside the workspace. Without them only the made streams are measured.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use ai::{Api, DecodeOptions, Framing, StreamDecoder, StreamEvent};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use serde::Deserialize;
use serde_json::{Value, json};

/// What one read of a socket commonly brings.
const PIECE: usize = 4 * 1024;

/// Bytes of text in each made stream.
const TEXT: usize = 8 * 1024 * 1024;

/// How many of an API's recordings are measured: its largest ones.
const LARGEST: usize = 8;

/// Text of `length` bytes with line ends, quotes and a character of two bytes, as answers have.
fn text(length: usize) -> String {
    let line = "let é = \"the quick brown fox jumps over the lazy dog\";\n";
    let mut text = line.repeat(length / line.len() + 1);
    text.truncate(text.floor_char_boundary(length));
    text
}

/// A stream of `TEXT` bytes in deltas of `delta` bytes.
fn made(api: Api, delta: usize) -> Vec<u8> {
    let text = text(delta);
    let deltas = TEXT / text.len();
    let (before, event, after) = match api {
        Api::AnthropicMessages => (
            vec![
                json!({"type": "message_start", "message": {
                    "model": "m", "content": [], "usage": {"input_tokens": 9, "output_tokens": 1}}}),
                json!({"type": "content_block_start", "index": 0,
                    "content_block": {"type": "text", "text": ""}}),
            ],
            json!({"type": "content_block_delta", "index": 0,
                "delta": {"type": "text_delta", "text": text}}),
            vec![
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
                    "usage": {"output_tokens": 9}}),
                json!({"type": "message_stop"}),
            ],
        ),
        Api::OpenaiChat => {
            let chunk = |delta: Value, finish: Option<&str>| {
                json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
                    "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
            };
            (vec![], chunk(json!({"content": text}), None), vec![chunk(json!({}), Some("stop"))])
        }
        Api::OpenaiResponses => (
            vec![
                json!({"type": "response.created", "response": {"model": "m"}}),
                json!({"type": "response.output_item.added", "output_index": 0,
                    "item": {"type": "message", "id": "i", "content": []}}),
            ],
            json!({"type": "response.output_text.delta", "item_id": "i", "output_index": 0,
                "content_index": 0, "delta": text, "logprobs": []}),
            vec![json!({"type": "response.completed",
                "response": {"status": "completed", "output": []}})],
        ),
        Api::GoogleGenerate => {
            let chunk = |text: &str, finish: Option<&str>| {
                json!({"candidates": [{"content": {"parts": [{"text": text}], "role": "model"},
                    "finishReason": finish, "index": 0}], "modelVersion": "m"})
            };
            (vec![], chunk(&text, None), vec![chunk("", Some("STOP"))])
        }
        other => panic!("nobody wrote a stream of {other} for this bench"),
    };
    let mut body = Vec::new();
    let mut push = |event: &Value| {
        let name = match event["type"].as_str() {
            Some(name) => format!("event: {name}\n"),
            None => String::new(),
        };
        body.extend_from_slice(format!("{name}data: {event}\n\n").as_bytes());
    };
    before.iter().for_each(&mut push);
    (0..deltas).for_each(|_| push(&event));
    after.iter().for_each(&mut push);
    body
}

/// Decodes a body in pieces and returns how many events it made.
fn decode(api: Api, body: &[u8], piece: usize) -> usize {
    let mut decoder = StreamDecoder::new(api, DecodeOptions::default());
    let mut events = Vec::new();
    let mut count = 0;
    for piece in body.chunks(piece) {
        decoder.push(piece, &mut events);
        count += events.len();
        events.clear();
    }
    decoder.finish(&mut events);
    count + events.len()
}

fn made_streams(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode");
    group.sample_size(10);
    group.warm_up_time(Duration::from_millis(300));
    group.measurement_time(Duration::from_secs(1));
    for api in Api::ALL {
        for (size, delta) in [("100 B deltas", 100), ("one 8 MB event", TEXT)] {
            let body = made(api, delta);
            assert!(is_whole(api, &body), "{api} {size}");
            group.throughput(Throughput::Bytes(body.len() as u64));
            group.bench_with_input(BenchmarkId::new(api.as_str(), size), &body, |bencher, body| {
                bencher.iter(|| decode(api, body, PIECE));
            });
        }
    }
    group.finish();
}

/// Whether a stream ends well, so that all of it is measured.
fn is_whole(api: Api, body: &[u8]) -> bool {
    let mut decoder = StreamDecoder::new(api, DecodeOptions::default());
    let mut events = Vec::new();
    decoder.push(body, &mut events);
    decoder.finish(&mut events);
    matches!(events.last(), Some(StreamEvent::Done { .. }))
}

#[derive(Deserialize)]
struct Recording {
    api: String,
    framing: String,
    body_file: String,
    bytes: usize,
}

fn recorded_streams(criterion: &mut Criterion) {
    let shared = std::env::var_os("CODING_AGENT_SHARED")
        .map(PathBuf::from)
        .unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"));
    let index = std::fs::read(shared.join("streams/index.json")).unwrap_or_default();
    let Ok(mut index) = serde_json::from_slice::<Vec<Recording>>(&index) else {
        println!("no recorded streams");
        return;
    };
    index.sort_by_key(|recording| std::cmp::Reverse(recording.bytes));
    let mut group = criterion.benchmark_group("recorded");
    group.sample_size(20);
    group.warm_up_time(Duration::from_millis(300));
    group.measurement_time(Duration::from_secs(1));
    for api in Api::ALL {
        let bodies: Vec<Vec<u8>> = index
            .iter()
            .filter(|recording| {
                Api::from_str(&recording.api) == Ok(api)
                    && Framing::from_str(&recording.framing) == Ok(Framing::Sse)
            })
            .filter_map(|recording| {
                std::fs::read(shared.join("streams/raw").join(&recording.body_file)).ok()
            })
            .filter(|body| is_whole(api, body))
            .take(LARGEST)
            .collect();
        let bytes: usize = bodies.iter().map(Vec::len).sum();
        group.throughput(Throughput::Bytes(bytes as u64));
        for (name, piece) in [("one piece", usize::MAX), ("4 KB pieces", PIECE)] {
            group.bench_with_input(
                BenchmarkId::new(api.as_str(), name),
                &bodies,
                |bencher, bodies| {
                    bencher
                        .iter(|| bodies.iter().map(|body| decode(api, body, piece)).sum::<usize>());
                },
            );
        }
    }
    group.finish();
}

criterion_group!(benches, recorded_streams, made_streams);
criterion_main!(benches);
