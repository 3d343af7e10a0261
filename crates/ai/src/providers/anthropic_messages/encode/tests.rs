use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::api::Api;
use crate::message::StopReason;
use crate::providers::said::*;
use crate::request::ToolSpec;

fn entry() -> ProviderEntry {
    ProviderEntry::new("anthropic", Api::AnthropicMessages, "https://h")
}

fn answer(content: Vec<ContentBlock>) -> AssistantMessage {
    answer_of(&entry(), "model-1", content)
}

fn call(id: &str, arguments: Value) -> ContentBlock {
    ContentBlock::ToolCall(ToolCall::parse(id.into(), "Read".into(), arguments.to_string()))
}

fn thinking(text: &str, signature: Option<&str>, redacted: bool) -> ContentBlock {
    ContentBlock::Thinking { text: text.into(), signature: signature.map(Into::into), redacted }
}

/// The messages alone, without marks for the cache.
#[track_caller]
fn check(messages: Vec<Message>, expected: Value) {
    let mut entry = entry();
    entry.compat.no_cache_control = true;
    assert_eq!(encoded(&request(messages), &entry)["messages"], expected);
}

/// SPEC M17
#[test]
fn a_whole_request_with_marks_for_the_cache() {
    let mut request = request(vec![
        says("one"),
        answer(vec![ContentBlock::text("two")]).into(),
        says("three"),
        answer(vec![ContentBlock::text("four")]).into(),
        says("five"),
    ]);
    request.system_prompt = "be brief".into();
    request.tools = Arc::new([
        ToolSpec {
            name: "Read".into(),
            description: "reads".into(),
            input_schema: json!({"$schema": "s", "type": "object", "properties": {}}),
        },
        ToolSpec { name: "a.b".into(), description: String::new(), input_schema: json!({}) },
    ]);
    request.temperature = Some(0.5);
    let cached = json!({"type": "ephemeral"});
    let expected = json!({
        "model": "model-1",
        "max_tokens": 32_000,
        "stream": true,
        "temperature": 0.5,
        "tools": [
            {"name": "Read", "description": "reads",
             "input_schema": {"type": "object", "properties": {}}},
            {"name": "a_b_0466522c", "input_schema": {"type": "object", "properties": {}},
             "cache_control": cached},
        ],
        "system": [{"type": "text", "text": "be brief", "cache_control": cached}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "one"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "two"}]},
            {"role": "user", "content": [
                {"type": "text", "text": "three", "cache_control": cached}]},
            {"role": "assistant", "content": [{"type": "text", "text": "four"}]},
            {"role": "user", "content": [
                {"type": "text", "text": "five", "cache_control": cached}]},
        ],
    });
    assert_eq!(encoded(&request, &entry()), expected);
    assert_eq!(encode(&request, &entry()), encode(&request.clone(), &entry()), "same bytes");

    let mut capped = entry();
    capped.max_output_tokens = Some(9);
    assert_eq!(encoded(&request, &capped)["max_tokens"], 9);
    request.max_output_tokens = Some(7);
    assert_eq!(encoded(&request, &capped)["max_tokens"], 7);
}

#[test]
fn results_stand_together_behind_their_calls() {
    check(
        vec![
            says("go"),
            answer(vec![
                ContentBlock::text("reading"),
                call("c1", json!({"path": "x"})),
                call("c2", json!([1])),
            ])
            .into(),
            result("c1", vec![ContentBlock::text("content")]),
            failed("c2", vec![ContentBlock::text(" \n")]),
            says("and hurry"),
        ],
        json!([
            {"role": "user", "content": [{"type": "text", "text": "go"}]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "reading"},
                {"type": "tool_use", "id": "c1", "name": "Read", "input": {"path": "x"}},
                {"type": "tool_use", "id": "c2", "name": "Read", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1",
                 "content": [{"type": "text", "text": "content"}]},
                {"type": "tool_result", "tool_use_id": "c2",
                 "content": [{"type": "text", "text": "(no output)"}], "is_error": true},
                {"type": "text", "text": "and hurry"},
            ]},
        ]),
    );
}

#[test]
fn results_come_before_text_that_was_put_between_them() {
    check(
        vec![
            answer(vec![call("c1", json!({})), call("c2", json!({}))]).into(),
            result("c1", vec![ContentBlock::text("1")]),
            says("meanwhile"),
            result("c2", vec![ContentBlock::text("2")]),
        ],
        json!([
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "c1", "name": "Read", "input": {}},
                {"type": "tool_use", "id": "c2", "name": "Read", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1",
                 "content": [{"type": "text", "text": "1"}]},
                {"type": "tool_result", "tool_use_id": "c2",
                 "content": [{"type": "text", "text": "2"}]},
                {"type": "text", "text": "meanwhile"},
            ]},
        ]),
    );
}

/// SPEC M7
#[test]
fn ids_that_are_refused_or_used_twice_are_replaced_in_call_and_result() {
    check(
        vec![
            answer(vec![call("f:0", json!({}))]).into(),
            result("f:0", vec![ContentBlock::text("1")]),
            answer(vec![call("f:0", json!({}))]).into(),
            result("f:0", vec![ContentBlock::text("2")]),
        ],
        json!([
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "f_0_ff5b95cb", "name": "Read", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "f_0_ff5b95cb",
                 "content": [{"type": "text", "text": "1"}]}]},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "f_0_2_4674e28a", "name": "Read", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "f_0_2_4674e28a",
                 "content": [{"type": "text", "text": "2"}]}]},
        ]),
    );
}

/// SPEC M9
#[test]
fn thinking_goes_back_to_its_maker_alone() {
    let opaque = json!({"type": "server_tool_use", "id": "s", "name": "n", "input": {}});
    let content = || {
        vec![
            thinking("hm", Some("sig"), false),
            thinking("", Some("cipher"), true),
            thinking("cut off", None, false),
            ContentBlock::Opaque { api: "anthropic-messages".into(), data: opaque.clone() },
            ContentBlock::Opaque { api: "openai-chat".into(), data: json!({"x": 1}) },
            ContentBlock::text("said"),
        ]
    };
    let text = json!({"type": "text", "text": "said"});
    let signed = json!({"type": "thinking", "thinking": "hm", "signature": "sig"});
    let redacted = json!({"type": "redacted_thinking", "data": "cipher"});
    for (provider, api, model, expected) in [
        ("anthropic", "anthropic-messages", "model-1", json!([signed, redacted, opaque, text])),
        (
            "anthropic",
            "anthropic-messages",
            "model-1-20250929",
            json!([signed, redacted, opaque, text]),
        ),
        ("anthropic", "anthropic-messages", "model-2", json!([opaque, text])),
        ("proxy", "anthropic-messages", "model-1", json!([text])),
        ("anthropic", "openai-chat", "model-1", json!([text])),
    ] {
        let mut message = answer(content());
        message.provider = provider.into();
        message.api = api.into();
        message.model = model.into();
        check(vec![message.into()], json!([{"role": "assistant", "content": expected}]));
    }
}

#[test]
fn messages_with_nothing_to_say_are_not_sent() {
    let mut failed = answer(vec![]);
    failed.stop_reason = StopReason::Error;
    let mut aborted = answer(vec![thinking("hm", Some("sig"), false), ContentBlock::text(" ")]);
    aborted.stop_reason = StopReason::Aborted;
    check(
        vec![
            says("one"),
            failed.into(),
            says("  \n "),
            says("two"),
            aborted.into(),
            user(vec![ContentBlock::text(""), ContentBlock::text("three")]),
        ],
        json!([{"role": "user", "content": [
            {"type": "text", "text": "one"},
            {"type": "text", "text": "two"},
            {"type": "text", "text": "three"},
        ]}]),
    );
}

#[test]
fn images_are_sent_or_noted() {
    let image = || ContentBlock::Image { mime_type: "image/png".into(), data: "QUJD".into() };
    check(
        vec![user(vec![image()])],
        json!([{"role": "user", "content": [{"type": "image", "source":
            {"type": "base64", "media_type": "image/png", "data": "QUJD"}}]}]),
    );
    let mut blind = entry();
    blind.compat.text_only = true;
    blind.compat.no_cache_control = true;
    let messages = vec![answer(vec![call("c", json!({}))]).into(), result("c", vec![image()])];
    assert_eq!(
        encoded(&request(messages), &blind)["messages"][1]["content"][0]["content"],
        json!([{"type": "text", "text": IMAGE_NOTE}])
    );
}
