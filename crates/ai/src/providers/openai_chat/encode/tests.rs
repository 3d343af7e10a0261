use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::api::Api;
use crate::compat::ToolIdForm;
use crate::message::StopReason;
use crate::providers::said::*;
use crate::replay::IMAGE_NOTE;
use crate::request::ToolSpec;

fn entry() -> ProviderEntry {
    ProviderEntry::new("host", Api::OpenaiChat, "https://h/v1")
}

fn answer(content: Vec<ContentBlock>) -> AssistantMessage {
    answer_of(&entry(), "model-1", content)
}

fn call(id: &str, arguments: &str) -> ContentBlock {
    ContentBlock::ToolCall(ToolCall::parse(id.into(), "Read".into(), arguments.into()))
}

fn thinking(text: &str) -> ContentBlock {
    ContentBlock::Thinking { text: text.into(), signature: None, redacted: false }
}

#[track_caller]
fn check(entry: &ProviderEntry, messages: Vec<Message>, expected: Value) {
    assert_eq!(encoded(&request(messages), entry)["messages"], expected);
}

#[test]
fn a_whole_request() {
    let mut request = request(vec![says("hi")]);
    request.system_prompt = "be brief".into();
    request.max_output_tokens = Some(7);
    request.temperature = Some(0.0);
    request.tools = Arc::new([ToolSpec {
        name: "Read".into(),
        description: "reads".into(),
        input_schema: json!({"$schema": "s", "type": "object", "properties": {}}),
    }]);
    assert_eq!(
        encoded(&request, &entry()),
        json!({
            "model": "model-1",
            "stream": true,
            "stream_options": {"include_usage": true},
            "max_tokens": 7,
            "temperature": 0.0,
            "tools": [{"type": "function", "function": {"name": "Read", "description": "reads",
                "parameters": {"type": "object", "properties": {}}}}],
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": "hi"},
            ],
        })
    );
    assert_eq!(encode(&request, &entry()), encode(&request.clone(), &entry()), "same bytes");

    let mut dialect = entry();
    dialect.compat.max_tokens_field = MaxTokensField::MaxCompletionTokens;
    dialect.compat.system_role = SystemRole::Developer;
    dialect.compat.no_stream_options = true;
    request.tools = Arc::new([]);
    request.temperature = None;
    assert_eq!(
        encoded(&request, &dialect),
        json!({
            "model": "model-1",
            "stream": true,
            "max_completion_tokens": 7,
            "messages": [
                {"role": "developer", "content": "be brief"},
                {"role": "user", "content": "hi"},
            ],
        })
    );
}

#[test]
fn calls_and_results() {
    check(
        &entry(),
        vec![
            says("go"),
            answer(vec![
                thinking("hm"),
                ContentBlock::text("rea"),
                ContentBlock::text("ding"),
                call("c1", r#"{"path": "x", "limit": 1}"#),
                call("c2", r#"{"broken"#),
            ])
            .into(),
            result("c1", vec![ContentBlock::text("one"), ContentBlock::text("two")]),
            result("c2", vec![]),
            answer(vec![call("c1", "")]).into(),
            result("c1", vec![ContentBlock::text("again")]),
        ],
        json!([
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "reading", "tool_calls": [
                {"id": "c1", "type": "function",
                 "function": {"name": "Read", "arguments": "{\"path\":\"x\",\"limit\":1}"}},
                {"id": "c2", "type": "function", "function": {"name": "Read", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "one\n\ntwo"},
            {"role": "tool", "tool_call_id": "c2", "content": "(no output)"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1_2", "type": "function", "function": {"name": "Read", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "c1_2", "content": "again"},
        ]),
    );
}

#[test]
fn mistral_gets_ids_of_nine_letters_and_digits() {
    let mut entry = entry();
    entry.compat.tool_ids = ToolIdForm::NineAlphanumerics;
    let messages =
        vec![says("go"), answer(vec![call("call_1", "{}")]).into(), result("call_1", vec![])];
    let body = encoded(&request(messages), &entry);
    let id = body["messages"][1]["tool_calls"][0]["id"].as_str().unwrap();
    assert_eq!(body["messages"][2]["tool_call_id"], id);
    assert!(id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
}

/// SPEC M9
#[test]
fn reasoning_goes_back_where_the_host_wants_it() {
    let messages = || {
        vec![
            says("go"),
            answer(vec![thinking("plan"), call("c1", "{}")]).into(),
            result("c1", vec![ContentBlock::text("1")]),
            answer(vec![call("c2", "{}")]).into(),
            result("c2", vec![ContentBlock::text("2")]),
            answer(vec![thinking("end"), ContentBlock::text("done")]).into(),
        ]
    };
    for (replay, expected) in [
        (ReasoningReplay::Never, [json!(null), json!(null), json!(null)]),
        (ReasoningReplay::WithToolCalls, [json!("plan"), json!(" "), json!(null)]),
        (ReasoningReplay::Always, [json!("plan"), json!(" "), json!("end")]),
    ] {
        let mut entry = entry();
        entry.compat.reasoning_replay = replay;
        let body = encoded(&request(messages()), &entry);
        let sent = [1, 3, 5].map(|at| body["messages"][at]["reasoning_content"].clone());
        assert_eq!(sent, expected, "{replay:?}");
    }
}

/// SPEC M9
#[test]
fn reasoning_details_go_back_to_their_maker_alone() {
    let entries = json!([{"type": "reasoning.encrypted", "data": "x"}, {"type": "y"}]);
    for (data, model, expected) in [
        (json!({"reasoning_details": entries}), "model-1", entries.clone()),
        (entries.clone(), "model-1", entries.clone()),
        (entries[0].clone(), "model-1", json!([entries[0]])),
        (entries.clone(), "model-2", json!(null)),
    ] {
        let mut message = answer(vec![
            ContentBlock::Opaque { api: "openai-chat".into(), data },
            ContentBlock::Opaque { api: "anthropic-messages".into(), data: json!({"type": "z"}) },
            ContentBlock::text("said"),
        ]);
        message.model = model.into();
        let body = encoded(&request(vec![says("go"), message.into()]), &entry());
        assert_eq!(body["messages"][1]["reasoning_details"], expected);
        assert_eq!(body["messages"][1]["content"], "said");
    }
}

#[test]
fn images_follow_the_results_that_brought_them() {
    let url = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}});
    check(
        &entry(),
        vec![
            user(vec![ContentBlock::text("look"), image()]),
            answer(vec![call("c1", "{}"), call("c2", "{}")]).into(),
            result("c1", vec![image()]),
            result("c2", vec![ContentBlock::text("text")]),
            says("well?"),
        ],
        json!([
            {"role": "user", "content": [{"type": "text", "text": "look"}, url]},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "Read", "arguments": "{}"}},
                {"id": "c2", "type": "function", "function": {"name": "Read", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "(see the image below)"},
            {"role": "tool", "tool_call_id": "c2", "content": "text"},
            {"role": "user", "content": [
                {"type": "text", "text": "Images from the tool results:"},
                url,
                {"type": "text", "text": "well?"},
            ]},
        ]),
    );
    let mut blind = entry();
    blind.compat.text_only = true;
    check(
        &blind,
        vec![user(vec![ContentBlock::text("look"), image()])],
        json!([{"role": "user", "content": format!("look\n\n{IMAGE_NOTE}")}]),
    );
}

#[test]
fn messages_with_nothing_to_say_are_not_sent() {
    let mut failed = answer(vec![]);
    failed.stop_reason = StopReason::Error;
    let aborted = answer(vec![thinking("hm"), ContentBlock::text(" ")]);
    check(
        &entry(),
        vec![says("one"), failed.into(), says(" \n"), says("two"), aborted.into()],
        json!([{"role": "user", "content": "one\n\ntwo"}]),
    );
}

/// SPEC M15, M16
#[test]
fn hosts_that_insist_on_turns_get_them() {
    let mut strict = entry();
    strict.compat.no_user_after_result = true;
    let call_of = |id: &str| {
        json!([{"id": id, "type": "function",
        "function": {"name": "Read", "arguments": "{}"}}])
    };
    let mut instructed = request(vec![
        answer(vec![ContentBlock::text("one")]).into(),
        answer(vec![ContentBlock::text("two"), call("c1", "{}")]).into(),
        result("c1", vec![image()]),
        says("and?"),
        answer(vec![call("c2", "{}")]).into(),
        result("c2", vec![]),
        answer(vec![ContentBlock::text("three")]).into(),
    ]);
    instructed.system_prompt = "be brief".into();
    let url = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}});
    assert_eq!(
        encoded(&instructed, &strict)["messages"],
        json!([
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "(no text)"},
            {"role": "assistant", "content": "one\n\ntwo", "tool_calls": call_of("c1")},
            {"role": "tool", "tool_call_id": "c1", "content": "(see the image below)"},
            {"role": "assistant", "content": "(no answer)"},
            {"role": "user", "content": [
                {"type": "text", "text": "Images from the tool results:"},
                url,
                {"type": "text", "text": "and?"},
            ]},
            {"role": "assistant", "content": null, "tool_calls": call_of("c2")},
            {"role": "tool", "tool_call_id": "c2", "content": "(no output)"},
            {"role": "assistant", "content": "three"},
            {"role": "user", "content": "(no text)"},
        ])
    );
    check(&strict, vec![], json!([{"role": "user", "content": "(no text)"}]));
}

/// Equal ids within one message, as a history of another program may have them.
///
/// SPEC M7
#[test]
fn equal_ids_of_one_message_are_told_apart() {
    check(
        &entry(),
        vec![
            says("go"),
            answer(vec![call("c", "{}"), call("c", "{}")]).into(),
            result("c", vec![ContentBlock::text("1")]),
            result("c", vec![ContentBlock::text("2")]),
        ],
        json!([
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "Read", "arguments": "{}"}},
                {"id": "c_2", "type": "function", "function": {"name": "Read", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "c", "content": "1"},
            {"role": "tool", "tool_call_id": "c_2", "content": "2"},
        ]),
    );
}
