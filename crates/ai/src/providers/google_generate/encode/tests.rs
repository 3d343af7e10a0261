use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::api::Api;
use crate::providers::said::*;
use crate::replay::IMAGE_NOTE;
use crate::request::ToolSpec;

fn entry() -> ProviderEntry {
    ProviderEntry::new("gemini", Api::GoogleGenerate, "https://h")
}

fn answer(content: Vec<ContentBlock>) -> AssistantMessage {
    answer_of(&entry(), "gemini-2.5-pro", content)
}

fn call(id: &str, signature: Option<&str>) -> ContentBlock {
    let mut call = ToolCall::parse(id.into(), "Read".into(), r#"{"path":"a"}"#.into());
    call.signature = signature.map(Into::into);
    ContentBlock::ToolCall(call)
}

fn opaque(data: Value) -> ContentBlock {
    ContentBlock::Opaque { api: "google-generate".into(), data }
}

#[track_caller]
fn check(messages: Vec<Message>, expected: Value) {
    assert_eq!(encoded(&request_of("gemini-2.5-pro", messages), &entry())["contents"], expected);
}

/// SPEC M15
#[test]
fn a_whole_request() {
    let mut request = Request::new("m", [says("hi")].into_iter().collect());
    request.system_prompt = "be brief".into();
    request.tools = Arc::new([
        ToolSpec {
            name: "Read".into(),
            description: "reads".into(),
            input_schema: json!({"$schema": "s", "type": "object", "properties": {"p": {"type": ["string", "null"]}}}),
        },
        ToolSpec { name: "a b".into(), description: String::new(), input_schema: json!({}) },
    ]);
    request.max_output_tokens = Some(9);
    request.temperature = Some(0.5);
    let expected = json!({
        "systemInstruction": {"parts": [{"text": "be brief"}]},
        "tools": [{"functionDeclarations": [
            {"name": "Read", "description": "reads", "parametersJsonSchema":
                {"type": "object", "properties": {"p": {"type": ["string", "null"]}}}},
            {"name": wire_name("a b"), "parametersJsonSchema":
                {"type": "object", "properties": {}}},
        ]}],
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "generationConfig": {"maxOutputTokens": 9, "temperature": 0.5},
    });
    assert_eq!(encode(&request, &entry()), serde_json::to_vec(&expected).unwrap());
    request = Request::new("m", [says("hi")].into_iter().collect());
    let expected = json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]});
    assert_eq!(encode(&request, &entry()), serde_json::to_vec(&expected).unwrap());
}

/// SPEC M7, M15
#[test]
fn results_of_one_answer_stand_together_behind_it() {
    let image = ContentBlock::Image { mime_type: "image/png".into(), data: "QUJD".into() };
    let called =
        |id: &str| json!({"functionCall": {"id": id, "name": "Read", "args": {"path": "a"}}});
    let responded = |id: &str, response: Value| json!({"functionResponse": {"id": id, "name": "Read", "response": response}});
    check(
        vec![
            says("one"),
            says("two"),
            answer(vec![ContentBlock::text("so"), call("c", None), call("d", None)]).into(),
            result("c", vec![ContentBlock::text("1"), image, ContentBlock::text("2")]),
            says("meanwhile"),
            failed("d", vec![]),
            answer(vec![call("c", None)]).into(),
            result("c", vec![ContentBlock::text(" ")]),
        ],
        json!([
            {"role": "user", "parts": [{"text": "one"}, {"text": "two"}]},
            {"role": "model", "parts": [{"text": "so"}, called("c"), called("d")]},
            {"role": "user", "parts": [
                responded("c", json!({"output": "1\n\n2"})),
                responded("d", json!({"error": "(no output)"})),
                {"inlineData": {"mimeType": "image/png", "data": "QUJD"}},
                {"text": "meanwhile"},
            ]},
            {"role": "model", "parts": [called("c_2")]},
            {"role": "user", "parts": [responded("c_2", json!({"output": "(no output)"}))]},
        ]),
    );
}

/// SPEC M9
#[test]
fn signatures_and_thoughts_go_back_to_their_maker_alone() {
    let content = || {
        vec![
            ContentBlock::Thinking {
                text: "hm".into(),
                signature: Some("S1".into()),
                redacted: false,
            },
            ContentBlock::text("said"),
            opaque(json!({"groundingMetadata": {"x": 1}})),
            opaque(json!({"thoughtSignature": "S2"})),
            opaque(json!({"executableCode": {"code": "1"}, "thoughtSignature": "S3"})),
            opaque(json!({"text": "", "thoughtSignature": "S4"})),
            call("c", Some("S5")),
        ]
    };
    let called = |signature: Option<&str>| {
        let mut part = json!({"functionCall": {"id": "c", "name": "Read", "args": {"path": "a"}}});
        if let Some(signature) = signature {
            part["thoughtSignature"] = signature.into();
        }
        part
    };
    let all = json!([
        {"text": "hm", "thought": true, "thoughtSignature": "S1"},
        {"text": "said", "thoughtSignature": "S2"},
        {"executableCode": {"code": "1"}, "thoughtSignature": "S3"},
        {"text": "", "thoughtSignature": "S4"},
        called(Some("S5")),
    ]);
    for (provider, made_by, asked, expected) in [
        ("gemini", "gemini-3-pro", "gemini-3-pro", all),
        ("gemini", "gemini-2.5-pro", "gemini-2.5-flash", json!([{"text": "said"}, called(None)])),
        (
            "gemini",
            "gemini-2.5-pro",
            "gemini-3-pro",
            json!([{"text": "said"}, called(Some(FOREIGN_SIGNATURE))]),
        ),
        ("proxy", "gemini-2.5-pro", "gemini-2.5-pro", json!([{"text": "said"}, called(None)])),
    ] {
        let mut message = answer(content());
        message.provider = provider.into();
        message.model = made_by.into();
        let messages = vec![says("q"), message.into(), result("c", vec![ContentBlock::text("r")])];
        let contents = encoded(&request_of(asked, messages), &entry())["contents"].take();
        assert_eq!(contents[1]["parts"], expected, "{provider} {made_by} {asked}");
    }
}

/// SPEC M16
#[test]
fn an_answer_that_says_nothing_is_left_out_and_the_user_begins() {
    let thought = ContentBlock::Thinking { text: "hm".into(), signature: None, redacted: false };
    check(
        vec![
            says(" "),
            answer(vec![ContentBlock::text("hello")]).into(),
            says("a"),
            answer(vec![thought, opaque(json!({"text": "", "thoughtSignature": "S"}))]).into(),
            says("b"),
        ],
        json!([
            {"role": "user", "parts": [{"text": NO_QUESTION}]},
            {"role": "model", "parts": [{"text": "hello"}]},
            {"role": "user", "parts": [{"text": "a"}, {"text": "b"}]},
        ]),
    );
}

/// SPEC M15
#[test]
fn images_are_noted_where_the_model_is_blind() {
    let image = ContentBlock::Image { mime_type: "image/png".into(), data: "QUJD".into() };
    let mut blind = entry();
    blind.compat.text_only = true;
    let body = encoded(&request_of("m", vec![user(vec![image])]), &blind);
    assert_eq!(body["contents"], json!([{"role": "user", "parts": [{"text": IMAGE_NOTE}]}]));
}
