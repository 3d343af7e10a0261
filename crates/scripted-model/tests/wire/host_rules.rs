//! The rules of single hosts: for each rule a request that breaks it and nothing else, in the host's
//! own error, and the same request mended.

use ai::Api;
use scripted_model::{Host, RecordedRequest, ScriptedModel, Turn};
use serde_json::{Value, json};

use crate::client::{ANTHROPIC, CHAT, GOOGLE, RESPONSES, ask};
use crate::rules::{user, with};

/// A model that had to sign its calls.
const GOOGLE_MODEL: &str = "m";

fn path(host: &Host) -> &'static str {
    match host.api() {
        Api::AnthropicMessages => ANTHROPIC,
        Api::OpenaiChat => CHAT,
        Api::OpenaiResponses => RESPONSES,
        Api::GoogleGenerate => GOOGLE,
        other => panic!("{other:?}"),
    }
}

/// Every bad body is refused by its host with its reason, every good one accepted.
async fn check(name: &str, good: &[Value], bad: &[(Value, &str)]) {
    let host = Host::find(name).unwrap();
    let turn = |_: &RecordedRequest| Turn::text_only("ok");
    let model = ScriptedModel::start_as(host, turn).await.unwrap();
    for body in good {
        let response = ask(&model, path(host), body).await;
        assert_eq!(response.status, 200, "{name}: {body}\n{}", response.text());
    }
    assert_eq!(model.problems(), []);
    for (body, reason) in bad {
        let response = ask(&model, path(host), body).await;
        assert_eq!(response.status, 400, "{name}: {body}");
        let told = Value::from(reason.split(": ").last().unwrap()).to_string();
        assert!(response.text().contains(told.trim_matches('"')), "{name}: {}", response.text());
    }
    let problems: Vec<String> = model.problems().into_iter().map(|it| it.reason).collect();
    let reasons: Vec<&str> = bad.iter().map(|(_, reason)| *reason).collect();
    assert_eq!(problems, reasons, "{name}");
}

fn chat(messages: &[Value]) -> Value {
    with(CHAT, json!({"messages": messages, "stream_options": null}))
}

fn says(role: &str, text: &str) -> Value {
    json!({"role": role, "content": text})
}

fn calls(id: &str) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": id, "type": "function", "function": {"name": "Read", "arguments": "{}"}}]})
}

fn result(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "ok"})
}

fn shows(mime_type: &str) -> Value {
    let url = format!("data:{mime_type};base64,QUJD");
    json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]})
}

/// `value` with one more field.
fn and(mut value: Value, name: &str, field: Value) -> Value {
    value[name] = field;
    value
}

#[tokio::test]
async fn openai_and_those_who_know_no_developer() {
    let developer = chat(&[says("developer", "be brief"), says("user", "hi")]);
    check(
        "openai",
        &[developer.clone(), with(CHAT, json!({"max_completion_tokens": 9}))],
        &[(
            with(CHAT, json!({"max_tokens": 9})),
            "max_tokens: unsupported parameter, use max_completion_tokens instead",
        )],
    )
    .await;
    let unknown_role = "messages[0].role: unknown variant \"developer\", expected system, user, \
        assistant or tool";
    for name in ["deepseek", "groq", "mistral", "ollama", "qwen"] {
        check(name, &[], &[(developer.clone(), unknown_role)]).await;
    }
}

#[tokio::test]
async fn images() {
    let only = |reads: &str| {
        format!(
            "messages[0].content[0].image_url: unsupported image \"image/bmp\", expected {reads}"
        )
    };
    let common = only("image/png, image/jpeg, image/gif, image/webp");
    check("openai", &[chat(&[shows("image/webp")])], &[(chat(&[shows("image/bmp")]), &common)])
        .await;
    let few = only("image/png, image/jpeg");
    check("xai", &[chat(&[shows("image/png")])], &[(chat(&[shows("image/bmp")]), &few)]).await;
    let reason = "messages[0].content[0].image_url: this model reads text only";
    for name in ["deepseek", "cerebras"] {
        check(name, &[], &[(chat(&[shows("image/png")]), reason)]).await;
    }
    let input = |mime_type: &str| {
        let url = format!("data:{mime_type};base64,QUJD");
        let content = json!([{"type": "input_image", "image_url": url}]);
        with(RESPONSES, json!({"input": [{"role": "user", "content": content}]}))
    };
    let reason = format!(
        "input[0].content[0].image_url: unsupported image \"image/bmp\", expected {}",
        "image/png, image/jpeg, image/gif, image/webp"
    );
    check("openai-responses", &[input("image/gif")], &[(input("image/bmp"), &reason)]).await;
    let part = |mime_type: &str| {
        let parts = json!([{"inlineData": {"mimeType": mime_type, "data": "QUJD"}}]);
        with(GOOGLE, json!({"contents": [{"role": "user", "parts": parts}]}))
    };
    let reason = format!(
        "contents[0].parts[0].inlineData.mimeType: unsupported image \"image/gif\", expected {}",
        "image/png, image/jpeg, image/webp, image/heic, image/heif"
    );
    check("gemini", &[part("image/heic")], &[(part("image/gif"), &reason)]).await;
    let no_data = json!({"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}]});
    let reason = "messages[0].content[0].image_url: invalid base64 image";
    check("openai", &[], &[(chat(&[no_data]), reason)]).await;
}

#[tokio::test]
async fn mistral() {
    let hi = says("user", "hi");
    let plain = [hi.clone(), calls("abcdefghi"), result("abcdefghi")];
    check(
        "mistral",
        &[chat(&plain), chat(&[&plain[..], &[says("assistant", "ok"), hi.clone()]].concat())],
        &[
            (with(CHAT, json!({})), "stream_options: extra inputs are not permitted"),
            (
                chat(&[hi.clone(), calls("call_1234"), result("call_1234")]),
                "messages[1]: tool call id was call_1234 but must be a-z, A-Z, 0-9, with a length \
                 of 9",
            ),
            (
                chat(&[&plain[..], std::slice::from_ref(&hi)].concat()),
                "messages[3].role: unexpected role 'user' after role 'tool'",
            ),
            (
                chat(&[hi.clone(), says("assistant", "ok")]),
                "messages: expected last role user or tool for serving but got assistant",
            ),
            (
                chat(&[
                    hi.clone(),
                    and(says("assistant", "ok"), "reasoning_content", "hm".into()),
                    hi,
                ]),
                "messages[1].reasoning_content: extra inputs are not permitted",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn templates_and_perplexity() {
    let hi = says("user", "hi");
    let ok = says("assistant", "ok");
    for name in ["perplexity", "ollama", "lmstudio", "vllm", "llamacpp"] {
        check(
            name,
            &[chat(&[says("system", "be brief"), hi.clone(), ok.clone(), hi.clone()])],
            &[
                (
                    chat(&[hi.clone(), hi.clone()]),
                    "messages[1].role: unexpected role 'user' after role 'user'",
                ),
                (
                    chat(&[hi.clone(), ok.clone(), ok.clone(), hi.clone()]),
                    "messages[2].role: unexpected role 'assistant' after role 'assistant'",
                ),
                (
                    chat(&[ok.clone(), hi.clone()]),
                    "messages[0].role: unexpected role 'assistant' after role 'nothing'",
                ),
                (
                    chat(&[hi.clone(), says("system", "be brief"), hi.clone()]),
                    "messages[1].role: unexpected role 'system' after role 'user'",
                ),
                (
                    chat(&[hi.clone(), calls("c"), result("c"), hi.clone()]),
                    "messages[3].role: unexpected role 'user' after role 'tool'",
                ),
                (
                    chat(&[hi.clone(), ok.clone()]),
                    "messages: expected last role user or tool for serving but got assistant",
                ),
            ],
        )
        .await;
    }
    let reason = "messages: expected last role user or tool for serving but got assistant";
    check("zhipu", &[], &[(chat(&[hi, ok]), reason)]).await;
}

#[tokio::test]
async fn reasoning_that_has_to_come_back() {
    let hi = says("user", "hi");
    let thought = || and(calls("c"), "reasoning_content", "hm".into());
    let reason =
        "messages: the `reasoning_content` in the thinking mode must be passed back to the API";
    let dull = chat(&[hi.clone(), calls("c"), result("c")]);
    let answered = [hi.clone(), thought(), result("c"), says("assistant", "ok"), hi.clone()];
    let plain = chat(&[hi.clone(), says("assistant", "ok"), hi.clone()]);
    check("moonshot", &[chat(&answered), plain.clone()], &[(dull.clone(), reason)]).await;
    let whole = chat(
        &[
            &answered[..3],
            &[and(says("assistant", "ok"), "reasoning_content", "so".into()), hi.clone()],
        ]
        .concat(),
    );
    check("deepseek", &[whole, plain], &[(dull, reason), (chat(&answered), reason)]).await;
    let refused = "messages[1].reasoning_content: extra inputs are not permitted";
    for name in ["groq", "cerebras"] {
        check(name, &[], &[(chat(&[hi.clone(), thought(), result("c")]), refused)]).await;
    }
}

/// A signature is taken from the host and the model that made it, and from no other.
#[tokio::test]
async fn signatures() {
    let made = |host: &str, model: &str| Host::find(host).unwrap().sign(model, "1");

    let thinks = |signature: &str| {
        with(
            ANTHROPIC,
            json!({"messages": [user_says(), {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": signature},
            {"type": "text", "text": "ok"}]}, user_says()]}),
        )
    };
    let redacted = |data: &str| {
        with(
            ANTHROPIC,
            json!({"messages": [user_says(), {"role": "assistant", "content": [
            {"type": "redacted_thinking", "data": data},
            {"type": "text", "text": "ok"}]}, user_says()]}),
        )
    };
    let model = with(ANTHROPIC, json!({}))["model"].as_str().unwrap().to_owned();
    let reason = "messages.1.content.0: invalid signature: this model did not make it";
    let own = made("anthropic", &model);
    let foreign = [made("anthropic", "another"), made("gemini", &model), "sig".to_owned()];
    let bad: Vec<(Value, &str)> =
        foreign.iter().flat_map(|it| [(thinks(it), reason), (redacted(it), reason)]).collect();
    check("anthropic", &[thinks(&own), redacted(&own)], &bad).await;

    let model = with(CHAT, json!({}))["model"].as_str().unwrap().to_owned();
    let details = |signature: &str| {
        let details = json!([{"type": "reasoning.text", "text": "hm", "signature": signature}]);
        let answer = and(says("assistant", "ok"), "reasoning_details", details);
        chat(&[says("user", "hi"), answer, says("user", "hi")])
    };
    let reason = "messages[1].reasoning_details[0].signature: invalid signature: this model did \
        not make it";
    let (own, other) = (made("openrouter", &model), made("openrouter", "another"));
    check("openrouter", &[details(&own)], &[(details(&other), reason)]).await;

    let model = with(RESPONSES, json!({}))["model"].as_str().unwrap().to_owned();
    let reasons = |cipher: &str| {
        with(
            RESPONSES,
            json!({"input": [user(json!("hi")),
            {"type": "reasoning", "summary": [], "encrypted_content": cipher},
            {"role": "assistant", "content": "ok"}, user(json!("hi"))]}),
        )
    };
    let reason = "input[1].encrypted_content: invalid signature: this model did not make it";
    let (own, other) = (made("openai-responses", &model), made("openai-responses", "another"));
    check("openai-responses", &[reasons(&own)], &[(reasons(&other), reason)]).await;

    let calls = |signature: Option<&str>| {
        let mut part = json!({"functionCall": {"name": "Read", "args": {}}});
        if let Some(signature) = signature {
            part["thoughtSignature"] = signature.into();
        }
        with(
            GOOGLE,
            json!({"contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [part, {"functionCall": {"name": "Read", "args": {}}}]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "Read", "response": {"output": "ok"}}},
                {"functionResponse": {"name": "Read", "response": {"output": "ok"}}}]}]}),
        )
    };
    let own = made("gemini", GOOGLE_MODEL);
    let other = made("gemini", "another");
    check(
        "gemini",
        &[calls(Some(&own)), calls(Some("skip_thought_signature_validator"))],
        &[
            (
                calls(Some(&other)),
                "contents[1].parts[0].thoughtSignature: invalid signature: this model did not \
                 make it",
            ),
            (
                calls(None),
                "contents[1].parts[0]: function call is missing a thought_signature in \
                 functionCall parts",
            ),
        ],
    )
    .await;
}

fn user_says() -> Value {
    says("user", "hi")
}

#[tokio::test]
async fn anthropic_pairs_its_own_tools_and_takes_no_prefill() {
    let said = |blocks: Value| {
        with(
            ANTHROPIC,
            json!({"messages": [
            user_says(), {"role": "assistant", "content": blocks}, user_says()]}),
        )
    };
    let used = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search",
        "input": {}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1",
        "content": []});
    let image = |mime_type: &str| {
        let source = json!({"type": "base64", "media_type": mime_type, "data": "QUJD"});
        with(
            ANTHROPIC,
            json!({"messages": [
            {"role": "user", "content": [{"type": "image", "source": source}]}]}),
        )
    };
    check(
        "anthropic",
        &[said(json!([used, found])), image("image/gif")],
        &[
            (
                said(json!([used, {"type": "text", "text": "ok"}])),
                "messages.1: tool use with id srvtoolu_1 was found without a corresponding result \
                 block",
            ),
            (
                said(json!([found])),
                "messages.1: a `web_search_tool_result` has no use of the id srvtoolu_1",
            ),
            (
                with(ANTHROPIC, json!({"messages": [user_says(), says("assistant", "ok")]})),
                "messages: this model does not support assistant message prefill, the conversation \
                 must end with a user message",
            ),
            (
                image("image/svg+xml"),
                "messages.0.content.0.source.media_type: unsupported image \"image/svg+xml\", \
                 expected image/png, image/jpeg, image/gif, image/webp",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_host_speaks_one_api() {
    let host = Host::find("mistral").unwrap();
    let turn = |_: &RecordedRequest| Turn::text_only("ok");
    let model = ScriptedModel::start_as(host, turn).await.unwrap();
    let response = ask(&model, ANTHROPIC, &with(ANTHROPIC, json!({}))).await;
    assert_eq!(response.status, 404);
}

/// Each host's refusal is in its own shape.
#[tokio::test]
async fn errors_have_the_hosts_shape() {
    let turn = |_: &RecordedRequest| Turn::text_only("ok");
    let reason = "messages: expected at least one message";
    for (name, expected) in [
        (
            "mistral",
            json!({"object": "error", "message": reason, "type": "invalid_request_error",
                "param": null, "code": "3230"}),
        ),
        ("xai", json!({"code": "Client specified an invalid argument", "error": reason})),
        ("zhipu", json!({"error": {"code": "1214", "message": reason}})),
        (
            "perplexity",
            json!({"error": {"message": reason, "type": "invalid_message", "code": 400}}),
        ),
        (
            "groq",
            json!({"error": {"message": reason, "type": "invalid_request_error",
                "param": "messages", "code": null}}),
        ),
    ] {
        let model = ScriptedModel::start_as(Host::find(name).unwrap(), turn).await.unwrap();
        let response = ask(&model, CHAT, &chat(&[])).await;
        assert_eq!((response.status, response.json()), (400, expected), "{name}");
    }
}
