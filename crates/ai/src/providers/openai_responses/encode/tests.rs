use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::api::Api;
use crate::providers::said::*;
use crate::replay::IMAGE_NOTE;
use crate::request::ToolSpec;

fn entry() -> ProviderEntry {
    ProviderEntry::new("host", Api::OpenaiResponses, "https://h/v1")
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
    assert_eq!(encoded(&request(messages), entry)["input"], expected);
}

fn opaque(data: Value) -> ContentBlock {
    ContentBlock::Opaque { api: "openai-responses".into(), data }
}

fn said(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
}

fn called(id: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "Read", "arguments": arguments})
}

fn came_to(id: &str, output: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": output})
}

fn answered(texts: &[&str]) -> Value {
    let parts: Vec<Value> = texts
        .iter()
        .map(|text| json!({"type": "output_text", "text": text, "annotations": []}))
        .collect();
    json!({"type": "message", "role": "assistant", "content": parts})
}

/// SPEC M15, M17
#[test]
fn a_whole_request() {
    let mut request = request(vec![says("hi")]);
    request.system_prompt = "be brief".into();
    request.max_output_tokens = Some(7);
    request.temperature = Some(0.0);
    request.tools = Arc::new([ToolSpec {
        name: "a.b".into(),
        description: "reads".into(),
        input_schema: json!({"$schema": "s"}),
    }]);
    let mut whole = json!({
        "model": "model-1",
        "stream": true,
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 7,
        "temperature": 0.0,
        "instructions": "be brief",
        "tools": [{"type": "function", "name": "a_b_0466522c", "description": "reads",
            "parameters": {"type": "object", "properties": {}}, "strict": false}],
        "input": [said("hi")],
    });
    assert_eq!(encoded(&request, &entry()), whole);
    assert_eq!(encode(&request, &entry()), encode(&request.clone(), &entry()), "same bytes");
    let mut entry = entry();
    entry.compat.no_encrypted_reasoning = true;
    whole.as_object_mut().unwrap().remove("include");
    assert_eq!(encoded(&request, &entry), whole);
}

#[test]
fn what_is_not_there_is_not_sent() {
    assert_eq!(
        encoded(&request(vec![says("hi")]), &entry()),
        json!({
            "model": "model-1",
            "stream": true,
            "store": false,
            "include": ["reasoning.encrypted_content"],
            "input": [said("hi")],
        })
    );
}

/// SPEC M6, M7, M15
#[test]
fn calls_and_their_outputs_are_items() {
    check(
        &entry(),
        vec![
            says("hi"),
            says(" \n"),
            user(vec![ContentBlock::text("there"), image()]),
            answer(vec![
                thinking("hm"),
                ContentBlock::text("I look"),
                ContentBlock::text(""),
                ContentBlock::text("twice"),
                call("c:1", "{\"path\":\"a\"}"),
                call("d", "{\"cut"),
                ContentBlock::text("so"),
            ])
            .into(),
            result("c:1", vec![ContentBlock::text("one"), ContentBlock::text("two"), image()]),
            result("d", vec![]),
            says("and"),
            answer(vec![call("d", "")]).into(),
            result("d", vec![image()]),
        ],
        json!([
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "hi"},
                {"type": "input_text", "text": "there"},
                {"type": "input_image", "image_url": "data:image/png;base64,QUJD"},
            ]},
            answered(&["I look", "twice"]),
            called(&crate::tool_names::wire_name("c:1"), "{\"path\":\"a\"}"),
            called("d", "{}"),
            answered(&["so"]),
            came_to(&crate::tool_names::wire_name("c:1"), "one\n\ntwo"),
            came_to("d", "(no output)"),
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "Images from the tool results:"},
                {"type": "input_image", "image_url": "data:image/png;base64,QUJD"},
                {"type": "input_text", "text": "and"},
            ]},
            called("d_2", "{}"),
            came_to("d_2", "(see the image below)"),
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "Images from the tool results:"},
                {"type": "input_image", "image_url": "data:image/png;base64,QUJD"},
            ]},
        ]),
    );
}

/// SPEC M15
#[test]
fn models_that_read_text_only_get_a_note() {
    let mut entry = entry();
    entry.compat.text_only = true;
    check(&entry, vec![user(vec![image()])], json!([said(IMAGE_NOTE)]));
}

/// SPEC M9
#[test]
fn encrypted_reasoning_goes_back_to_its_model_alone() {
    let summary = json!([{"type": "summary_text", "text": "a\n\nb"}]);
    let reasoning = |cipher: &str| {
        opaque(json!({"id": "rs_1", "type": "reasoning", "status": null, "content": [],
            "summary": summary, "encrypted_content": cipher}))
    };
    let content = || {
        vec![
            thinking("a\n\nb"),
            reasoning("C+/="),
            call("c", ""),
            opaque(json!({"type": "compaction", "encrypted_content": "D"})),
            ContentBlock::text("so"),
            opaque(json!({"type": "reasoning", "encrypted_content": "E"})),
            ContentBlock::text("there"),
            // Broken off before it led to anything.
            reasoning("F"),
        ]
    };
    let others = json!([called("c", "{}"), answered(&["so", "there"]), came_to("c", "x")]);
    for (provider, api, model, expected) in [
        (
            "host",
            "openai-responses",
            "model-1",
            json!([
                {"type": "reasoning", "summary": summary, "encrypted_content": "C+/="},
                called("c", "{}"),
                {"type": "compaction", "encrypted_content": "D"},
                answered(&["so"]),
                {"type": "reasoning", "summary": [], "encrypted_content": "E"},
                answered(&["there"]),
                came_to("c", "x"),
            ]),
        ),
        ("host", "openai-responses", "model-2", others.clone()),
        ("other", "openai-responses", "model-1", others.clone()),
        ("host", "openai-chat", "model-1", others),
    ] {
        let mut answer = answer(content());
        (answer.provider, answer.api, answer.model) = (provider.into(), api.into(), model.into());
        let messages = vec![answer.into(), result("c", vec![ContentBlock::text("x")])];
        check(&entry(), messages, expected);
    }
}

/// What the provider's own tools left behind never goes back without the reasoning that it came
/// with, wherever another program put that.
///
/// SPEC M15
#[test]
fn a_search_made_after_reasoning_goes_back_behind_it_alone() {
    let reasoning = || opaque(json!({"type": "reasoning", "encrypted_content": "C"}));
    let search = || opaque(json!({"type": "web_search_call", "id": "ws_1"}));
    let text = || ContentBlock::text("found");
    let (reasons, searches, says) = (
        json!({"type": "reasoning", "summary": [], "encrypted_content": "C"}),
        json!({"type": "web_search_call", "id": "ws_1"}),
        answered(&["found"]),
    );
    for (content, expected) in [
        (vec![search(), text()], json!([searches, says])),
        (vec![text(), search()], json!([says, searches])),
        (vec![thinking("t"), reasoning(), search(), text()], json!([reasons, searches, says])),
        (vec![reasoning(), text(), search()], json!([reasons, says, searches])),
        (vec![text(), search(), reasoning(), thinking("t")], json!([says])),
        (vec![search(), reasoning(), text()], json!([reasons, says])),
        (vec![thinking("t"), text(), search()], json!([says])),
    ] {
        check(&entry(), vec![answer(content).into()], expected);
    }
}
