//! One thinking level, as every API and dialect is told it.

use serde_json::{Value, json};

use super::said::{answer_of, encoded, request_of, result, says};
use crate::api::Api;
use crate::catalogue::ModelInfo;
use crate::compat::ThinkingField;
use crate::message::{ContentBlock, Message, ToolCall};
use crate::provider_entry::ProviderEntry;
use crate::request::{Request, ToolSpec};
use crate::thinking::ThinkingLevel::{self, High, Low, Off};
use crate::tool_choice::ToolChoice;

fn entry(api: Api, thinking: Value) -> ProviderEntry {
    let info = json!({"id": "m", "thinking": thinking, "max_output_tokens": 64_000});
    let mut entry = ProviderEntry::new("p", api, "http://h");
    entry.models = [serde_json::from_value::<ModelInfo>(info).unwrap()].into();
    entry
}

fn budget() -> Value {
    json!({"form": "budget", "levels": {"off": 0, "low": 2048, "high": 50_000}})
}

fn effort() -> Value {
    json!({"form": "effort", "levels": {"off": "none", "low": "low", "high": "xhigh"}})
}

fn switch() -> Value {
    json!({"form": "switch", "levels": {"off": false, "high": true}})
}

fn asks(level: ThinkingLevel) -> Request {
    let mut request = request_of("m", vec![says("hi")]);
    request.thinking = Some(level);
    request
}

/// The fields of the body that no request without thinking has.
fn told(request: &Request, entry: &ProviderEntry) -> Value {
    let mut plain = request.clone();
    plain.thinking = None;
    let plain = encoded(&plain, entry);
    let Value::Object(mut body) = encoded(request, entry) else { panic!("no object") };
    body.retain(|field, _| plain.get(field).is_none());
    Value::Object(body)
}

#[test]
fn each_api_is_told_in_its_own_form() {
    let messages = Api::AnthropicMessages;
    let chat = Api::OpenaiChat;
    let responses = Api::OpenaiResponses;
    let google = Api::GoogleGenerate;
    for (api, thinking, level, expected) in [
        (messages, budget(), Low, json!({"thinking": {"type": "enabled", "budget_tokens": 2048}})),
        // Some of the cap, here the default one, is left for the answer.
        (
            messages,
            budget(),
            High,
            json!({"thinking": {"type": "enabled", "budget_tokens": 27_904}}),
        ),
        (messages, budget(), Off, json!({"thinking": {"type": "disabled"}})),
        (
            messages,
            effort(),
            High,
            json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": "xhigh"}}),
        ),
        (messages, effort(), Off, json!({"thinking": {"type": "none"}})),
        (messages, switch(), Off, json!({"thinking": {"type": "disabled"}})),
        (chat, effort(), High, json!({"reasoning_effort": "xhigh"})),
        (chat, effort(), Off, json!({"reasoning_effort": "none"})),
        (chat, json!("never"), High, json!({})),
        (responses, effort(), High, json!({"reasoning": {"effort": "xhigh", "summary": "auto"}})),
        (responses, effort(), Off, json!({"reasoning": {"effort": "none"}})),
        (
            google,
            budget(),
            Low,
            json!({"generationConfig":
                {"thinkingConfig": {"thinkingBudget": 2048, "includeThoughts": true}}}),
        ),
        (
            google,
            budget(),
            Off,
            json!({"generationConfig":
                {"thinkingConfig": {"thinkingBudget": 0, "includeThoughts": false}}}),
        ),
        (
            google,
            effort(),
            Low,
            json!({"generationConfig":
                {"thinkingConfig": {"thinkingLevel": "low", "includeThoughts": true}}}),
        ),
    ] {
        let entry = entry(api, thinking.clone());
        assert_eq!(told(&asks(level), &entry), expected, "{api} {thinking} {level}");
    }
}

#[test]
fn each_dialect_of_chat_has_its_own_field() {
    use ThinkingField::{EnableThinking, ReasoningEffort, ReasoningObject, ThinkingType};
    for (field, thinking, level, expected) in [
        (ReasoningEffort, switch(), High, json!({})),
        (ReasoningObject, effort(), High, json!({"reasoning": {"effort": "xhigh"}})),
        (ReasoningObject, budget(), Low, json!({"reasoning": {"max_tokens": 2048}})),
        (ReasoningObject, budget(), Off, json!({"reasoning": {"enabled": false}})),
        (ReasoningObject, switch(), High, json!({"reasoning": {"enabled": true}})),
        (ThinkingType, switch(), High, json!({"thinking": {"type": "enabled"}})),
        (ThinkingType, switch(), Off, json!({"thinking": {"type": "disabled"}})),
        (
            ThinkingType,
            effort(),
            High,
            json!({"thinking": {"type": "enabled"}, "reasoning_effort": "xhigh"}),
        ),
        (ThinkingType, effort(), Off, json!({"thinking": {"type": "disabled"}})),
        (EnableThinking, budget(), Low, json!({"enable_thinking": true, "thinking_budget": 2048})),
        (EnableThinking, budget(), Off, json!({"enable_thinking": false})),
        (EnableThinking, switch(), High, json!({"enable_thinking": true})),
    ] {
        let mut entry = entry(Api::OpenaiChat, thinking.clone());
        entry.compat.thinking_field = field;
        assert_eq!(told(&asks(level), &entry), expected, "{field:?} {thinking} {level}");
    }
}

/// SPEC M16
#[test]
fn a_budget_is_not_asked_for_in_the_middle_of_a_turn_that_began_without_thinking() {
    let entry = entry(Api::AnthropicMessages, budget());
    let call = || ContentBlock::ToolCall(ToolCall::parse("c".into(), "Read".into(), "{}".into()));
    let thought = || ContentBlock::Thinking {
        text: "hm".into(),
        signature: Some("sig".into()),
        redacted: false,
    };
    let turn = |maker: &str, content: Vec<ContentBlock>| {
        let answer = Message::Assistant(answer_of(&entry, maker, content));
        let mut request =
            request_of("m", vec![says("hi"), answer, result("c", vec![ContentBlock::text("x")])]);
        request.thinking = Some(High);
        request
    };
    for (request, is_asked) in [
        (turn("m", vec![thought(), call()]), true),
        (turn("m", vec![call()]), false),
        // The other model's thinking is left out.
        (turn("other", vec![thought(), call()]), false),
    ] {
        assert_eq!(told(&request, &entry).get("thinking").is_some(), is_asked);
    }
}

#[test]
fn a_call_that_is_demanded_leaves_no_room_to_think() {
    let tools = || {
        let input_schema = json!({"type": "object", "properties": {}});
        [ToolSpec { name: "Read".into(), description: String::new(), input_schema }].into()
    };
    let no_off = json!({"form": "effort", "levels": {"high": "high"}});
    for (choice, thinking, expected) in [
        (ToolChoice::Auto, budget(), Some(json!({"type": "enabled", "budget_tokens": 27_904}))),
        (ToolChoice::Required, budget(), Some(json!({"type": "disabled"}))),
        (ToolChoice::Tool("Read".into()), budget(), Some(json!({"type": "disabled"}))),
        (ToolChoice::Required, no_off, None),
    ] {
        let entry = entry(Api::AnthropicMessages, thinking);
        let mut request = asks(High);
        request.tools = tools();
        request.tool_choice = choice.clone();
        assert_eq!(encoded(&request, &entry).get("thinking"), expected.as_ref(), "{choice:?}");
    }
}

#[test]
fn a_budget_needs_room_and_no_temperature() {
    let entry = entry(Api::AnthropicMessages, budget());
    let mut request = asks(High);
    request.temperature = Some(0.5);
    request.max_output_tokens = Some(5000);
    let body = encoded(&request, &entry);
    assert_eq!((body.get("thinking"), body.get("temperature")), (None, Some(&json!(0.5))));
    request.max_output_tokens = Some(8192);
    let body = encoded(&request, &entry);
    let thinking = json!({"type": "enabled", "budget_tokens": 4096});
    assert_eq!((body.get("thinking"), body.get("temperature")), (Some(&thinking), None));
    // No more is asked for than the model can write.
    request.max_output_tokens = Some(100_000);
    assert_eq!(encoded(&request, &entry).get("max_tokens"), Some(&json!(64_000)));
}

#[test]
fn what_a_model_cannot_do_is_not_asked_of_it() {
    let mut entry = ProviderEntry::new("p", Api::OpenaiResponses, "http://h");
    let blind = json!({
        "id": "m", "thinking": "never", "no_temperature": true, "input": ["text"],
        "max_output_tokens": 100,
    });
    entry.models = [serde_json::from_value::<ModelInfo>(blind).unwrap()].into();
    let mut request = request_of("m", vec![super::said::user(vec![super::said::image()])]);
    request.temperature = Some(1.0);
    request.max_output_tokens = Some(1000);
    let body = encoded(&request, &entry);
    assert_eq!(body.get("include"), None);
    assert_eq!(body.get("temperature"), None);
    assert_eq!(body.get("max_output_tokens"), Some(&json!(100)));
    assert!(body.to_string().contains("an image was left out"), "{body}");
}
