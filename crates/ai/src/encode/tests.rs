//! What every target asks of a request, checked on conversations of any making (SPEC M16).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::builtin_providers::{BUILTIN_PROVIDERS, BuiltinProvider};
use crate::compat::{ReasoningReplay, SchemaForm, ToolIdForm};
use crate::history::History;
use crate::message::{
    AssistantMessage, ContentBlock, Message, MessageId, Origin, StopReason, Timestamp, ToolCall,
    ToolResultMessage, Usage, UserMessage,
};
use crate::request::ToolSpec;
use crate::tool_choice::ToolChoice;

fn text() -> impl Strategy<Value = ContentBlock> {
    prop_oneof![Just(""), Just(" \n"), Just("words"), Just(" more words ")]
        .prop_map(ContentBlock::text)
}

fn input() -> impl Strategy<Value = Vec<ContentBlock>> {
    let image = Just(ContentBlock::Image { mime_type: "image/png".into(), data: "QUJD".into() });
    proptest::collection::vec(prop_oneof![3 => text(), 1 => image], 0..3)
}

fn call() -> impl Strategy<Value = ContentBlock> {
    let id = prop_oneof![
        Just("call_1".to_owned()),
        Just("functions.Read:0".to_owned()),
        Just("x".repeat(60)),
        "[a-z0-9]{9}",
    ];
    let name = prop_oneof![Just("Read"), Just("mcp.server/read it"), Just("")];
    let arguments = prop_oneof![Just("{\"path\":\"a\"}"), Just(""), Just("{\"cut"), Just("[1]")];
    (id, name, arguments).prop_map(|(id, name, arguments)| {
        ContentBlock::ToolCall(ToolCall::parse(id, name.into(), arguments.into()))
    })
}

fn answer_block() -> impl Strategy<Value = ContentBlock> {
    let thinking =
        (any::<bool>(), any::<bool>()).prop_map(|(signed, redacted)| ContentBlock::Thinking {
            text: if redacted { String::new() } else { "hm".into() },
            signature: (signed || redacted).then(|| "sig".into()),
            redacted,
        });
    let opaque = prop_oneof![
        Just(("anthropic-messages", json!({"type": "reasoning.text"}))),
        Just(("openai-chat", json!({"type": "reasoning.text"}))),
        Just(("openai-responses", json!({"type": "reasoning", "encrypted_content": "c"}))),
        Just(("google-generate", json!({"thoughtSignature": "sig"}))),
        Just(("google-generate", json!({"groundingMetadata": {}}))),
    ]
    .prop_map(|(api, data)| ContentBlock::Opaque { api: api.into(), data });
    prop_oneof![3 => text(), 2 => thinking, 1 => opaque, 3 => call()]
}

/// A question, an answer, and the results that it asked for.
fn exchange() -> impl Strategy<Value = Vec<Message>> {
    let maker = prop_oneof![
        Just(("anthropic", "anthropic-messages", "model-1")),
        Just(("deepseek", "openai-chat", "model-1")),
        Just(("mine", "openai-responses", "model-1")),
        Just(("google", "google-generate", "model-2")),
        Just(("gemini", "google-generate", "model-1")),
    ];
    let blocks = proptest::collection::vec(answer_block(), 0..5);
    (input(), blocks, maker, any::<bool>(), input()).prop_map(
        |(question, mut content, (provider, api, model), failed, output)| {
            // Ids are unique within a message; that is the decoder's part.
            let mut seen = HashSet::new();
            content.retain(|block| {
                block.as_tool_call().is_none_or(|call| seen.insert(call.id.clone()))
            });
            let results: Vec<Message> = content
                .iter()
                .filter_map(ContentBlock::as_tool_call)
                .map(|call| {
                    Message::ToolResult(ToolResultMessage {
                        id: MessageId::from("r"),
                        timestamp: Timestamp(0),
                        content: output.clone(),
                        tool_call_id: call.id.clone(),
                        tool_name: call.name.clone(),
                        is_error: failed,
                        error_kind: None,
                    })
                })
                .collect();
            let mut messages = vec![
                Message::User(UserMessage {
                    id: MessageId::from("u"),
                    timestamp: Timestamp(0),
                    content: question,
                    origin: Origin::User,
                }),
                Message::Assistant(AssistantMessage {
                    id: MessageId::from("a"),
                    timestamp: Timestamp(0),
                    content,
                    provider: provider.into(),
                    api: api.into(),
                    model: model.into(),
                    asked_model: None,
                    usage: Usage::default(),
                    stop_reason: if failed { StopReason::Error } else { StopReason::Stop },
                    stop_raw: None,
                    interrupted: failed,
                    violation: None,
                    error: None,
                }),
            ];
            messages.extend(results);
            messages
        },
    )
}

fn read_tool(input_schema: Value) -> ToolSpec {
    ToolSpec { name: "Read".into(), description: "reads".into(), input_schema }
}

fn conversation() -> impl Strategy<Value = Request> {
    let volatile = prop_oneof![Just(""), Just(" \n"), Just("for once")];
    let last = prop_oneof![Just(""), Just("go on")];
    (proptest::collection::vec(exchange(), 0..5), last, volatile).prop_map(
        |(exchanges, last, volatile)| {
            let mut messages: Vec<Message> = exchanges.into_iter().flatten().collect();
            // Somebody has to speak last.
            if volatile != "for once" || !last.is_empty() {
                messages.push(UserMessage::text("go on", Origin::User).into());
            }
            let mut request = Request::new("model-1", messages.into_iter().collect());
            request.system_prompt = "be brief".into();
            request.tools = Arc::new([read_tool(json!({}))]);
            request.volatile_text = volatile.into();
            request
        },
    )
}

fn blank(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.trim().is_empty())
}

fn is_plain_id(id: &str) -> bool {
    (1..=40).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

fn check_anthropic(body: &Value) {
    let messages = body["messages"].as_array().unwrap();
    let mut ids = HashSet::new();
    let mut open: Vec<String> = Vec::new();
    let mut last_role = "";
    for message in messages {
        let role = message["role"].as_str().unwrap();
        assert_ne!(role, last_role, "roles alternate");
        last_role = role;
        let content = message["content"].as_array().unwrap();
        assert!(!content.is_empty());
        let results: Vec<String> = content
            .iter()
            .take_while(|block| block["type"] == "tool_result")
            .map(|block| block["tool_use_id"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(results, open, "all results, in order, at the head of the next message");
        open.clear();
        for block in content {
            match block["type"].as_str().unwrap() {
                "text" => assert!(!blank(&block["text"])),
                "tool_use" => {
                    let id = block["id"].as_str().unwrap();
                    assert!(is_plain_id(id) && ids.insert(id.to_owned()), "{id}");
                    assert!(is_plain_id(block["name"].as_str().unwrap()));
                    assert!(block["input"].is_object());
                    open.push(id.to_owned());
                }
                "tool_result" => {
                    assert!(role == "user");
                    let inner = block["content"].as_array().unwrap();
                    assert!(!inner.is_empty() && !inner.iter().any(|part| blank(&part["text"])));
                }
                "thinking" => assert!(block["signature"].is_string()),
                "redacted_thinking" => assert!(block["data"].is_string()),
                "image" | "reasoning.text" => {}
                other => panic!("{other}"),
            }
        }
        let end = &content[content.len() - 1]["type"];
        assert!(end != "thinking" && end != "redacted_thinking");
    }
    assert!(open.is_empty());
    assert_eq!(last_role, "user");
    let marks = body.to_string().matches("cache_control").count();
    assert!(marks <= 4, "the API takes four marks, not {marks}");
}

fn check_chat(body: &Value, entry: &ProviderEntry) {
    let mut ids = HashSet::new();
    let mut open: Vec<String> = Vec::new();
    let mut last_role = "";
    for message in body["messages"].as_array().unwrap() {
        let role = message["role"].as_str().unwrap();
        if role == "tool" {
            assert!(!open.is_empty());
            assert_eq!(message["tool_call_id"], open.remove(0), "results in order");
            assert!(!blank(&message["content"]));
            last_role = role;
            continue;
        }
        assert!(open.is_empty(), "every call has its result");
        assert!(role != "user" || last_role != "user", "user messages are merged");
        last_role = role;
        assert!(!blank(&message["content"]));
        let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
        assert!(!message["content"].is_null() || !calls.is_empty());
        if entry.compat.text_only {
            assert!(!message["content"].is_array());
        }
        if entry.compat.reasoning_replay == ReasoningReplay::WithToolCalls {
            assert_eq!(message["reasoning_content"].is_string(), !calls.is_empty());
        }
        for call in calls {
            let id = call["id"].as_str().unwrap();
            assert!(is_plain_id(id) && ids.insert(id.to_owned()), "{id}");
            if entry.compat.tool_ids == ToolIdForm::NineAlphanumerics {
                assert!(id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()));
            }
            assert!(call["function"]["name"].as_str().is_some_and(|name| !name.is_empty()));
            let arguments = call["function"]["arguments"].as_str().unwrap();
            assert!(serde_json::from_str::<Value>(arguments).unwrap().is_object());
            open.push(id.to_owned());
        }
    }
    assert!(open.is_empty());
    assert_eq!(last_role, "user");
}

fn check_responses(body: &Value) {
    let mut ids = HashSet::new();
    let mut open: Vec<String> = Vec::new();
    let mut last = "";
    for item in body["input"].as_array().unwrap() {
        let kind = item["type"].as_str().unwrap();
        assert!(last != "reasoning" || kind != "function_call_output", "it led to nothing");
        match kind {
            "message" => {
                let role = item["role"].as_str().unwrap();
                assert!(role == "assistant" || open.is_empty(), "every call has its output");
                let content = item["content"].as_array().unwrap();
                assert!(!content.is_empty() && !content.iter().any(|part| blank(&part["text"])));
                assert_ne!((role, last), ("user", "reasoning"), "it led to nothing");
            }
            "function_call" => {
                let id = item["call_id"].as_str().unwrap();
                assert!(is_plain_id(id) && ids.insert(id.to_owned()), "{id}");
                assert!(is_plain_id(item["name"].as_str().unwrap()));
                let arguments = item["arguments"].as_str().unwrap();
                assert!(serde_json::from_str::<Value>(arguments).unwrap().is_object());
                open.push(id.to_owned());
            }
            "function_call_output" => {
                assert!(!open.is_empty());
                assert_eq!(item["call_id"], open.remove(0), "outputs in order");
                assert!(!blank(&item["output"]));
            }
            "reasoning" => {
                assert!(item["encrypted_content"].is_string() && item["summary"].is_array());
            }
            other => panic!("{other}"),
        }
        last = kind;
    }
    assert!(open.is_empty());
    assert_eq!(last, "message");
}

fn check_google(body: &Value) {
    let mut ids = HashSet::new();
    let mut open: Vec<(Value, Value)> = Vec::new();
    let mut last_role = "model";
    for content in body["contents"].as_array().unwrap() {
        let role = content["role"].as_str().unwrap();
        assert_ne!(role, last_role, "roles alternate, and the user begins");
        last_role = role;
        let parts = content["parts"].as_array().unwrap();
        assert!(!parts.is_empty());
        let results: Vec<_> = parts
            .iter()
            .map_while(|part| part.get("functionResponse"))
            .map(|result| {
                assert!(result["response"].as_object().is_some_and(|response| response.len() == 1));
                (result["id"].clone(), result["name"].clone())
            })
            .collect();
        assert_eq!(results, open, "all results, in order, at the head of the next content");
        open.clear();
        let signed: Vec<bool> = parts
            .iter()
            .filter(|part| part.get("functionCall").is_some())
            .map(|part| part["thoughtSignature"].is_string())
            .collect();
        assert!(signed.first() != Some(&false), "the first call is signed");
        for part in &parts[results.len()..] {
            assert!(part.get("groundingMetadata").is_none());
            if let Some(call) = part.get("functionCall") {
                assert_eq!(role, "model");
                let id = call["id"].as_str().unwrap();
                assert!(is_plain_id(id) && ids.insert(id.to_owned()), "{id}");
                assert!(is_plain_id(call["name"].as_str().unwrap()));
                assert!(call["args"].is_object());
                open.push((call["id"].clone(), call["name"].clone()));
            } else if let Some(text) = part.get("text") {
                assert!(role == "model" || !blank(text));
            } else {
                assert!(part.get("inlineData").is_some(), "{part}");
            }
        }
    }
    assert!(open.is_empty());
    assert_eq!(last_role, "user");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(96) })]

    /// SPEC M16, M17: also a history that was stored and read again gives the same bytes.
    #[test]
    fn every_history_is_valid_for_every_provider(request in conversation()) {
        let stored = serde_json::to_vec(&request.messages.to_vec()).unwrap();
        let restored: Vec<Message> = serde_json::from_slice(&stored).unwrap();
        let restored = Request { messages: restored.into_iter().collect(), ..request.clone() };
        let custom = ProviderEntry::new("mine", Api::OpenaiResponses, "https://h/v1");
        for entry in BUILTIN_PROVIDERS.iter().map(BuiltinProvider::entry).chain([custom]) {
            let bytes = encode_request(&request, &entry);
            prop_assert_eq!(&bytes, &encode_request(&restored, &entry));
            let body: Value = serde_json::from_slice(&bytes).unwrap();
            match entry.api {
                Api::AnthropicMessages => check_anthropic(&body),
                Api::OpenaiChat => check_chat(&body, &entry),
                Api::OpenaiResponses => check_responses(&body),
                Api::GoogleGenerate => check_google(&body),
            }
        }
    }
}

fn entries() -> [ProviderEntry; 4] {
    Api::ALL.map(|api| ProviderEntry::new("host", api, "https://h/v1"))
}

fn decoded(request: &Request, entry: &ProviderEntry) -> Value {
    serde_json::from_slice(&encode_request(request, entry)).unwrap()
}

fn said(content: Vec<ContentBlock>) -> Message {
    let mut message = UserMessage::text("", Origin::User);
    message.content = content;
    message.into()
}

/// An answer of nobody known with these calls, and their results.
fn called(ids: impl Iterator<Item = String>, output: &ContentBlock) -> Vec<Message> {
    let mut answer = AssistantMessage {
        id: MessageId::from("a"),
        timestamp: Timestamp(0),
        content: vec![ContentBlock::text("I look")],
        provider: "other".into(),
        api: "other".into(),
        model: "other".into(),
        asked_model: None,
        usage: Usage::default(),
        stop_reason: StopReason::ToolUse,
        stop_raw: None,
        interrupted: false,
        violation: None,
        error: None,
    };
    let mut results = Vec::new();
    for id in ids {
        let call = ToolCall::parse(id.clone(), "Read".into(), r#"{"path":"a"}"#.into());
        answer.content.push(ContentBlock::ToolCall(call));
        results.push(Message::ToolResult(ToolResultMessage {
            id: MessageId::from("r"),
            timestamp: Timestamp(0),
            content: vec![output.clone()],
            tool_call_id: id,
            tool_name: "Read".into(),
            is_error: false,
            error_kind: None,
        }));
    }
    std::iter::once(Message::Assistant(answer)).chain(results).collect()
}

/// SPEC M17, L10: words for one request stand behind everything, carry no mark, and leave every byte
/// before them as it was.
#[test]
fn volatile_text_comes_last_and_moves_nothing() {
    let image = || ContentBlock::Image { mime_type: "image/png".into(), data: "QUJD".into() };
    let asked = || vec![said(vec![ContentBlock::text("one")])];
    let with_result = |output: ContentBlock| {
        let mut messages = asked();
        messages.extend(called(std::iter::once("c".to_owned()), &output));
        messages
    };
    let mut answered = with_result(ContentBlock::text("output"));
    answered.extend(called(std::iter::empty(), &image()));
    let histories = [
        asked(),
        vec![said(vec![ContentBlock::text("one"), image()])],
        with_result(ContentBlock::text("output")),
        with_result(image()),
        answered,
    ];
    for messages in histories {
        for entry in entries() {
            let mut request = Request::new("model-1", messages.iter().cloned().collect());
            request.system_prompt = "be brief".into();
            request.tools = Arc::new([read_tool(json!({}))]);
            let without = String::from_utf8(encode_request(&request, &entry)).unwrap();
            request.volatile_text = " \n".into();
            assert_eq!(encode_request(&request, &entry), without.as_bytes(), "{}", entry.api);
            request.volatile_text = "for once".into();
            let with = String::from_utf8(encode_request(&request, &entry)).unwrap();

            let shared = with.bytes().zip(without.bytes()).take_while(|(a, b)| a == b).count();
            // A conversation that the model has the last word of is given a last word of the user's,
            // which is no more stable than what stands in its place.
            let left = without[shared..].trim_start_matches("(no text)");
            assert!(left.bytes().all(|byte| b"\"}]".contains(&byte)), "{left} of {without}");
            let (before, behind) = with.split_once("for once").unwrap();
            assert!(shared <= before.len() && !behind.contains("for once"), "{with}");
            assert!(behind.bytes().all(|byte| b"\"}]".contains(&byte)), "{with}");

            let marks = |body: &str| body.matches("cache_control").count();
            assert_eq!(marks(&with), marks(&without));
            if entry.api == Api::AnthropicMessages {
                let expected = 2 + request
                    .messages
                    .iter()
                    .filter(|it| matches!(***it, Message::User(_) | Message::ToolResult(_)))
                    .count();
                assert_eq!(marks(&with), expected.min(4), "{with}");
            }
        }
    }
}

/// SPEC M15
#[test]
fn a_choice_of_tools_is_said_in_each_apis_words() {
    let choices =
        [ToolChoice::Auto, ToolChoice::None, ToolChoice::Required, ToolChoice::Tool("a.b".into())];
    let name = crate::tool_names::wire_name("a.b");
    for (entry, expected) in entries().into_iter().zip([
        [json!({"type": "none"}), json!({"type": "any"}), json!({"type": "tool", "name": name})],
        [json!("none"), json!("required"), json!({"type": "function", "function": {"name": name}})],
        [json!("none"), json!("required"), json!({"type": "function", "name": name})],
        [
            json!({"functionCallingConfig": {"mode": "NONE"}}),
            json!({"functionCallingConfig": {"mode": "ANY"}}),
            json!({"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [name]}}),
        ],
    ]) {
        let field = if entry.api == Api::GoogleGenerate { "toolConfig" } else { "tool_choice" };
        let mut request =
            Request::new("m", [said(vec![ContentBlock::text("hi")])].into_iter().collect());
        let sent = |request: &Request, entry: &ProviderEntry| {
            choices.clone().map(|choice| {
                let request = Request { tool_choice: choice, ..request.clone() };
                decoded(&request, entry)[field].clone()
            })
        };
        // There is nothing to choose from.
        assert_eq!(sent(&request, &entry), [const { Value::Null }; 4]);
        let mut tool = read_tool(json!({}));
        tool.name = "a.b".into();
        request.tools = Arc::new([tool]);
        let [none, required, named] = expected;
        assert_eq!(sent(&request, &entry), [Value::Null, none, required, named], "{}", entry.api);
        let mut entry = entry;
        entry.compat.auto_tool_choice_only = true;
        assert_eq!(sent(&request, &entry), [const { Value::Null }; 4]);
    }
}

/// SPEC M15
#[test]
fn strict_is_said_where_the_host_can_and_the_schema_allows() {
    let closed = json!({"type": "object", "properties": {"p": {"type": "string"}},
        "required": ["p"], "additionalProperties": false});
    let open = json!({"type": "object", "properties": {"p": {"type": "string"}}});
    let mut request =
        Request::new("m", [said(vec![ContentBlock::text("hi")])].into_iter().collect());
    request.tools = Arc::new([read_tool(closed.clone()), read_tool(open.clone())]);
    for mut entry in entries() {
        for is_strict in [false, true] {
            entry.compat.strict_tools = is_strict;
            let body = decoded(&request, &entry);
            let tools: Vec<&Value> = match entry.api {
                Api::AnthropicMessages | Api::GoogleGenerate => {
                    assert!(!body.to_string().contains("strict"), "{body}");
                    continue;
                }
                Api::OpenaiChat => {
                    body["tools"].as_array().unwrap().iter().map(|it| &it["function"]).collect()
                }
                Api::OpenaiResponses => body["tools"].as_array().unwrap().iter().collect(),
            };
            let unsaid = if entry.api == Api::OpenaiChat { Value::Null } else { false.into() };
            let said = if is_strict { true.into() } else { unsaid.clone() };
            assert_eq!(
                tools,
                [&tool_of(entry.api, &closed, said), &tool_of(entry.api, &open, unsaid),]
            );
        }
    }
    let openai = BuiltinProvider::find("openai").unwrap().entry();
    assert_eq!(decoded(&request, &openai)["tools"][0]["function"]["strict"], true);
}

/// A tool on the wire, without what is null.
fn tool_of(api: Api, schema: &Value, strict: Value) -> Value {
    let mut tool = json!({"name": "Read", "description": "reads", "parameters": schema});
    if api == Api::OpenaiResponses {
        tool["type"] = "function".into();
    }
    if !strict.is_null() {
        tool["strict"] = strict;
    }
    tool
}

/// SPEC M15
#[test]
fn googles_schemas_go_where_the_host_reads_them() {
    let schema = json!({"type": "object", "additionalProperties": false,
        "properties": {"p": {"$ref": "#/$defs/P"}}, "$defs": {"P": {"type": ["string", "null"]}}});
    let mut request =
        Request::new("m", [said(vec![ContentBlock::text("hi")])].into_iter().collect());
    request.tools = Arc::new([read_tool(schema), read_tool(json!({}))]);
    let plain = json!({"type": "object", "additionalProperties": false,
        "properties": {"p": {"type": ["string", "null"]}}});
    let declared =
        |field: &str, schema: Value| json!({"name": "Read", "description": "reads", field: schema});
    let openapi =
        json!({"type": "object", "properties": {"p": {"type": "string", "nullable": true}}});
    let empty = json!({"type": "object", "properties": {}});
    for (form, expected) in [
        (
            SchemaForm::JsonSchema,
            [declared("parametersJsonSchema", plain), declared("parametersJsonSchema", empty)],
        ),
        (
            SchemaForm::OpenApi,
            [declared("parameters", openapi), json!({"name": "Read", "description": "reads"})],
        ),
    ] {
        let mut entry = ProviderEntry::new("host", Api::GoogleGenerate, "https://h/v1");
        entry.compat.schema_form = form;
        assert_eq!(decoded(&request, &entry)["tools"], json!([{"functionDeclarations": expected}]));
    }
}

/// The time of a request's encoding, without what other processes took of it.
fn time_of(request: &Request, entry: &ProviderEntry) -> Duration {
    let time = || {
        let start = Instant::now();
        std::hint::black_box(encode_request(request, entry));
        start.elapsed()
    };
    (0..2).map(|_| time()).min().unwrap()
}

/// SPEC M17, L16: eight times the history takes about eight times as long, not sixty-four; whether it
/// is many turns, one turn with many calls, or much that the user said in a row.
#[test]
fn encoding_a_long_history_is_linear() {
    /// How much slower than linear it may look on a machine that does other things as well.
    const SLACK: u32 = 4;
    let line = ContentBlock::text("x".repeat(500));
    let turns = |count: usize| -> History {
        (0..count).flat_map(|n| called(std::iter::once(format!("c{n}")), &line)).collect()
    };
    let wide =
        |count: usize| called((0..count).map(|n| format!("c{n}")), &line).into_iter().collect();
    let talk = |count: usize| (0..count).map(|_| said(vec![line.clone()])).collect();
    let shapes: [&dyn Fn(usize) -> History; 3] = [&turns, &wide, &talk];
    for (shape, history) in shapes.into_iter().enumerate() {
        // The longer has a megabyte of text.
        let requests = [250, 2000].map(|count| Request::new("m", history(count)));
        for entry in entries() {
            let [short, long] = requests.each_ref().map(|request| time_of(request, &entry));
            assert!(long < short * 8 * SLACK, "shape {shape}, {}: {short:?}, {long:?}", entry.api);
        }
    }
}
