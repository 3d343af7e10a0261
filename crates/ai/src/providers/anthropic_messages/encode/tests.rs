use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::api::Api;
use crate::message::StopReason;
use crate::providers::said::*;
use crate::replay::{IMAGE_NOTE, IMAGE_TYPE_NOTE};
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
    assert_eq!(encoded(&request(messages), &without_marks())["messages"], expected);
}

fn without_marks() -> ProviderEntry {
    let mut entry = entry();
    entry.compat.no_cache_control = true;
    entry
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
            says("go"),
            answer(vec![call("c1", json!({})), call("c2", json!({}))]).into(),
            result("c1", vec![ContentBlock::text("1")]),
            says("meanwhile"),
            result("c2", vec![ContentBlock::text("2")]),
        ],
        json!([
            {"role": "user", "content": [{"type": "text", "text": "go"}]},
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
            says("go"),
            answer(vec![call("f:0", json!({}))]).into(),
            result("f:0", vec![ContentBlock::text("1")]),
            answer(vec![call("f:0", json!({}))]).into(),
            result("f:0", vec![ContentBlock::text("2")]),
        ],
        json!([
            {"role": "user", "content": [{"type": "text", "text": "go"}]},
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
    let opaque = json!({"type": "compaction", "content": "so far"});
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
        let body = encoded(&request(vec![says("go"), message.into()]), &without_marks());
        assert_eq!(body["messages"][1], json!({"role": "assistant", "content": expected}));
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
        encoded(&request(messages), &blind)["messages"][2]["content"][0]["content"],
        json!([{"type": "text", "text": IMAGE_NOTE}])
    );
}

/// SPEC M16
#[test]
fn the_user_begins_and_ends() {
    let nothing = json!({"role": "user", "content": [{"type": "text", "text": "(no text)"}]});
    let said = json!({"role": "assistant", "content": [{"type": "text", "text": "said"}]});
    check(vec![], json!([nothing]));
    check(vec![says(" ")], json!([nothing]));
    check(vec![answer(vec![ContentBlock::text("said")]).into()], json!([nothing, said, nothing]));
}

/// A use of the provider's own tool is refused without its result, and a result without its use.
///
/// SPEC M16
#[test]
fn half_of_a_server_tool_is_not_sent() {
    let own = |data: &Value| ContentBlock::Opaque {
        api: "anthropic-messages".into(),
        data: data.clone(),
    };
    let used = json!({"type": "server_tool_use", "id": "s", "name": "n", "input": {}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": []});
    let text = json!({"type": "text", "text": "said"});
    for (blocks, expected) in [
        (vec![own(&used), own(&found)], json!([used, found, text])),
        (vec![own(&used)], json!([text])),
        (vec![own(&found)], json!([text])),
    ] {
        let content = [blocks, vec![ContentBlock::text("said")]].concat();
        let body = encoded(&request(vec![says("go"), answer(content).into()]), &without_marks());
        assert_eq!(body["messages"][1]["content"], expected);
    }
}

/// SPEC M15
#[test]
fn images_of_types_that_are_not_read_are_noted() {
    for (mime_type, data, sent) in [
        ("image/gif", "QUJD", Some("image/gif")),
        ("image/jpg", "QUJD", Some("image/jpeg")),
        ("IMAGE/PNG; charset=binary", "QUJD", Some("image/png")),
        ("image/svg+xml", "QUJD", None),
        ("image/png", "", None),
    ] {
        let image = ContentBlock::Image { mime_type: mime_type.into(), data: data.into() };
        let body = encoded(&request(vec![user(vec![image])]), &without_marks());
        let block = &body["messages"][0]["content"][0];
        match sent {
            Some(sent) => assert_eq!(block["source"]["media_type"], sent, "{mime_type}"),
            None => assert_eq!(block["text"], IMAGE_TYPE_NOTE, "{mime_type}"),
        }
    }
}
