//! What encoding costs: a conversation of a megabyte of tool calls, their results and prose, as the
//! body of each API (SPEC M17: it is done for every request, so it must be nothing beside the network).

use ai::{
    Api, AssistantMessage, ContentBlock, History, Message, MessageId, Origin, ProviderEntry,
    Request, StopReason, Timestamp, ToolCall, ToolResultMessage, ToolSpec, Usage, UserMessage,
    encode_request,
};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use serde_json::json;

/// Bytes of text in the conversation.
const HISTORY: usize = 1024 * 1024;

/// Turns of thinking, a word, a call and its result, until there are that many bytes.
fn history(provider: &str, api: &str) -> History {
    let line = "    let quoted = \"the quick brown fox\\n\"; // jumps over the lazy dog, é\n";
    let file = line.repeat(60);
    let turns = HISTORY / (file.len() + 2 * line.len());
    let mut messages = vec![Message::from(UserMessage::text("look at everything", Origin::User))];
    for turn in 0..turns {
        let id = format!("call_{turn}");
        let arguments = json!({"path": format!("src/file_{turn}.rs"), "limit": 60}).to_string();
        messages.push(Message::Assistant(AssistantMessage {
            id: MessageId::from("a"),
            timestamp: Timestamp(0),
            content: vec![
                ContentBlock::Thinking {
                    text: line.to_owned(),
                    signature: Some("signature".into()),
                    redacted: false,
                },
                ContentBlock::text(line),
                ContentBlock::ToolCall(ToolCall::parse(id.clone(), "Read".into(), arguments)),
            ],
            provider: provider.to_owned(),
            api: api.to_owned(),
            model: "model-1".into(),
            asked_model: None,
            usage: Usage::default(),
            stop_reason: StopReason::ToolUse,
            stop_raw: None,
            interrupted: false,
            violation: None,
            error: None,
        }));
        messages.push(Message::ToolResult(ToolResultMessage {
            id: MessageId::from("r"),
            timestamp: Timestamp(0),
            content: vec![ContentBlock::text(&file)],
            tool_call_id: id,
            tool_name: "Read".into(),
            is_error: false,
            error_kind: None,
        }));
    }
    messages.into_iter().collect()
}

fn megabyte(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("encode");
    for api in Api::ALL {
        let entry = ProviderEntry::new("mine", api, "https://localhost/v1");
        let mut request = Request::new("model-1", history(&entry.name, api.as_str()));
        request.system_prompt = "You are careful.".into();
        request.tools = vec![ToolSpec {
            name: "Read".into(),
            description: "reads a file".into(),
            input_schema: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
        }]
        .into();
        let body = encode_request(&request, &entry);
        assert!(body.len() > HISTORY, "all of it is in the body");
        group.throughput(Throughput::Bytes(body.len() as u64));
        let id = BenchmarkId::new("1 MB history", api);
        group.bench_with_input(id, &request, |bencher, request| {
            bencher.iter(|| encode_request(request, &entry));
        });
    }
    group.finish();
}

criterion_group!(benches, megabyte);
criterion_main!(benches);
