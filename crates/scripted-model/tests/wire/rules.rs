//! The rules of each API: one bad body a rule, over the wire.

use scripted_model::{RecordedRequest, ScriptedModel, Turn};
use serde_json::{Value, json};

use crate::client::{ANTHROPIC, CHAT, Exchange, ask, asking};

pub(crate) async fn start() -> ScriptedModel {
    ScriptedModel::start_with(|_: &RecordedRequest| Turn::text_only("ok")).await.unwrap()
}

/// Every body is refused with its reason, and recorded with it.
pub(crate) async fn check_refused(path: &str, cases: &[(Value, &str)]) {
    let model = start().await;
    for (body, expected) in cases {
        let response = ask(&model, path, body).await;
        let message = response.json()["error"]["message"].clone();
        assert_eq!((response.status, message.as_str()), (400, Some(*expected)), "{body}");
    }
    let problems: Vec<String> = model.problems().into_iter().map(|it| it.reason).collect();
    let expected: Vec<&str> = cases.iter().map(|(_, expected)| *expected).collect();
    assert_eq!(problems, expected);
}

pub(crate) async fn check_accepted(path: &str, bodies: &[Value]) {
    let model = start().await;
    for body in bodies {
        let response = ask(&model, path, body).await;
        assert_eq!(response.status, 200, "{body}\n{}", response.text());
    }
    assert_eq!(model.problems(), []);
}

/// A good request with these fields added or replaced; null removes one.
pub(crate) fn with(path: &str, fields: Value) -> Value {
    let mut body = asking(path, "hi");
    let object = body.as_object_mut().unwrap();
    for (name, value) in fields.as_object().unwrap() {
        if value.is_null() {
            object.remove(name);
        } else {
            object.insert(name.clone(), value.clone());
        }
    }
    body
}

fn anthropic(fields: Value) -> Value {
    with(ANTHROPIC, fields)
}

fn messages(path: &str, messages: Value) -> Value {
    with(path, json!({"messages": messages}))
}

/// Anthropic's messages: the user says hi, then these.
fn after_hi(rest: &[Value]) -> Value {
    let mut all = vec![json!({"role": "user", "content": "hi"})];
    all.extend_from_slice(rest);
    messages(ANTHROPIC, all.into())
}

pub(crate) fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

pub(crate) fn assistant(content: Value) -> Value {
    json!({"role": "assistant", "content": content})
}

fn tool_use(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Read", "input": {}})
}

fn tool_result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "ok"})
}

pub(crate) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

const UNANSWERED: &str =
    "`tool_use` ids were found without `tool_result` blocks immediately after: ";
const NEXT: &str =
    "; each `tool_use` block must have its `tool_result` block at the start of the next message";

#[tokio::test]
async fn anthropic_refuses() {
    let unanswered = |place: &str, ids: &str| format!("{place}: {UNANSWERED}{ids}{NEXT}");
    let none = unanswered("messages.1", "a");
    let one_of_two = unanswered("messages.2", "b");
    let late = unanswered("messages.2", "a");
    let behind = unanswered("messages.2.content.1", "a");
    let tool = |fields: Value| {
        let mut tool = json!({"name": "Read", "input_schema": {"type": "object"}});
        for (name, value) in fields.as_object().unwrap() {
            tool[name] = value.clone();
        }
        anthropic(json!({"tools": [tool]}))
    };
    let marked =
        |text: &str| json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}});
    let thinking =
        |block: Value| after_hi(&[assistant(json!([block, text("so")])), user(json!("go on"))]);
    let schema = "tools.0.input_schema";
    let long_name = "n".repeat(129);
    let long_name_said =
        format!("tools.0.name: string should match ^[a-zA-Z0-9_-]{{1,128}}$, got {long_name:?}");
    check_refused(
        ANTHROPIC,
        &[
            (json!([]), "body: input should be an object"),
            (anthropic(json!({"prompt": "x"})), "prompt: extra inputs are not permitted"),
            (anthropic(json!({"model": null})), "model: field required"),
            (anthropic(json!({"max_tokens": null})), "max_tokens: field required"),
            (
                anthropic(json!({"max_tokens": 0})),
                "max_tokens: input should be an integer greater than 0",
            ),
            (
                anthropic(json!({"stream": false})),
                "stream: a scripted model only streams; input should be true",
            ),
            (anthropic(json!({"temperature": 1.5})), "temperature: range: 0..1"),
            (
                anthropic(json!({"thinking": {"type": "enabled", "budget_tokens": 10}})),
                "thinking.enabled.budget_tokens: input should be greater than or equal to 1024",
            ),
            (
                anthropic(json!({"thinking": {"type": "enabled", "budget_tokens": 2048}})),
                "max_tokens: must be greater than thinking.budget_tokens",
            ),
            (
                anthropic(json!({"temperature": 0, "thinking": {"type": "adaptive"}})),
                "temperature: may only be 1 when thinking is enabled",
            ),
            (anthropic(json!({"system": ""})), "system: text must be non-empty"),
            (
                anthropic(json!({"system": [text(" \n")]})),
                "system.0.text: text must contain non-whitespace text",
            ),
            (anthropic(json!({"messages": null})), "messages: field required"),
            (messages(ANTHROPIC, json!([])), "messages: at least one message is required"),
            (
                messages(ANTHROPIC, json!([assistant(json!("hi"))])),
                "messages.0: the first message must be the user's",
            ),
            (
                after_hi(&[user(json!("more"))]),
                "messages.1: roles must alternate between user and assistant, got user twice",
            ),
            (
                after_hi(&[json!({"role": "system", "content": "x"})]),
                "messages.1.role: input should be 'user' or 'assistant'",
            ),
            (messages(ANTHROPIC, json!([user(json!(""))])), "messages.0.content: text must be non-empty"),
            (
                messages(ANTHROPIC, json!([user(json!([]))])),
                "messages.0: messages must have non-empty content",
            ),
            (
                messages(ANTHROPIC, json!([user(json!([text("  ")]))])),
                "messages.0.content.0.text: text must contain non-whitespace text",
            ),
            (
                messages(ANTHROPIC, json!([user(json!([{"type": "video"}]))])),
                "messages.0.content.0: input tag \"video\" found using 'type' does not match any of \
                 the expected tags",
            ),
            (
                messages(ANTHROPIC, json!([user(json!([{"type": "image", "source":
                    {"type": "base64", "media_type": "image/png", "data": ""}}]))])),
                "messages.0.content.0.source: the source lacks its data",
            ),
            (
                after_hi(&[assistant(json!("so "))]),
                "messages: final assistant content cannot end with trailing whitespace",
            ),
            // Calls and results.
            (after_hi(&[assistant(json!([tool_use("a")]))]), &none),
            (
                after_hi(&[
                    assistant(json!([tool_use("a"), tool_use("b")])),
                    user(json!([tool_result("a")])),
                ]),
                &one_of_two,
            ),
            (after_hi(&[assistant(json!([tool_use("a")])), user(json!("no"))]), &late),
            (
                after_hi(&[
                    assistant(json!([tool_use("a")])),
                    user(json!([text("first"), tool_result("a")])),
                ]),
                &behind,
            ),
            (
                after_hi(&[assistant(json!("x")), user(json!([tool_result("z")]))]),
                "messages.2.content.0: unexpected `tool_use_id` in a `tool_result` block: z; it must \
                 have its `tool_use` block in the message before",
            ),
            (
                after_hi(&[
                    assistant(json!([tool_use("a")])),
                    user(json!([tool_result("a"), tool_result("a")])),
                ]),
                "messages.2.content.1: each `tool_use` must have one result, a has several",
            ),
            (
                after_hi(&[
                    assistant(json!([tool_use("a")])),
                    user(json!([tool_result("a")])),
                    assistant(json!([tool_use("a")])),
                    user(json!([tool_result("a")])),
                ]),
                "messages.3.content.0: `tool_use` ids must be unique, a is twice",
            ),
            (
                after_hi(&[assistant(json!([tool_use("a:b")]))]),
                "messages.1.content.0.id: string should match ^[a-zA-Z0-9_-]+$, got \"a:b\"",
            ),
            (
                after_hi(&[assistant(json!([
                    {"type": "tool_use", "id": "a", "name": "Read", "input": "{}"}]))]),
                "messages.1.content.0.input: input should be an object",
            ),
            (
                after_hi(&[
                    assistant(json!([tool_use("a")])),
                    user(json!([{"type": "tool_result", "tool_use_id": "a", "is_error": true,
                        "content": ""}])),
                ]),
                "messages.2.content.0.content: cannot be empty if `is_error` is true",
            ),
            (
                after_hi(&[
                    assistant(json!([tool_use("a")])),
                    user(json!([{"type": "tool_result", "tool_use_id": "a", "content": [text("")]}])),
                ]),
                "messages.2.content.0.content.0.text: text must be non-empty",
            ),
            // Thinking.
            (
                thinking(json!({"type": "thinking", "thinking": "x"})),
                "messages.1.content.0.signature: field required",
            ),
            (
                thinking(json!({"type": "thinking", "thinking": "x", "signature": "scripted-0"})),
                "messages.1.content.0: invalid `signature` in `thinking` block",
            ),
            (
                thinking(json!({"type": "redacted_thinking"})),
                "messages.1.content.0.data: field required",
            ),
            (
                after_hi(&[assistant(json!([
                    {"type": "thinking", "thinking": "x", "signature": "s"}]))]),
                "messages.1: the final block may not be thinking",
            ),
            // Tools.
            (tool(json!({"name": "a b"})),
                "tools.0.name: string should match ^[a-zA-Z0-9_-]{1,128}$, got \"a b\""),
            (tool(json!({"name": long_name})), &long_name_said),
            (tool(json!({"input_schema": {}})), &format!("{schema}.type: field required")),
            (
                tool(json!({"input_schema": {"type": "array"}})),
                &format!("{schema}.type: input should be 'object'"),
            ),
            (
                tool(json!({"input_schema": {"type": "object", "anyOf": []}})),
                &format!("{schema}: anyOf is not supported at the top"),
            ),
            (
                anthropic(json!({"tools": [
                    {"name": "a", "input_schema": {"type": "object"}},
                    {"name": "a", "input_schema": {"type": "object"}}]})),
                "tools: names must be unique, \"a\" is twice",
            ),
            (
                anthropic(json!({"tool_choice": {"type": "auto"}})),
                "tool_choice: may only be specified with tools",
            ),
            (
                anthropic(json!({"system": [marked("a"), marked("b"), marked("c"), marked("d"),
                    marked("e")]})),
                "at most 4 blocks may have cache_control, found 5",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn anthropic_accepts() {
    check_accepted(
        ANTHROPIC,
        &[
            anthropic(json!({
                "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
                "max_tokens": 4096,
                "thinking": {"type": "enabled", "budget_tokens": 1024},
                "tools": [{"name": "Read", "description": "d", "input_schema":
                    {"type": "object", "properties": {"cache_control": {"type": "string"}}}},
                    {"type": "web_search_20250305", "name": "web_search"}],
                "tool_choice": {"type": "auto"},
            })),
            after_hi(&[
                assistant(json!([
                    {"type": "thinking", "thinking": "", "signature": "theirs"},
                    {"type": "redacted_thinking", "data": "x"},
                    text("I read. "), tool_use("a"), tool_use("b"),
                ])),
                user(json!([
                    tool_result("b"),
                    {"type": "tool_result", "tool_use_id": "a", "is_error": true, "content": [
                        text("no"), {"type": "image", "source":
                        {"type": "base64", "media_type": "image/png", "data": "AA=="}}]},
                    text("and another thing"),
                ])),
                assistant(json!([text("Done.")])),
                user(json!("thanks")),
            ]),
            // An empty output is an output.
            after_hi(&[
                assistant(json!([tool_use("a")])),
                user(json!([{"type": "tool_result", "tool_use_id": "a"}])),
            ]),
        ],
    )
    .await;
}

/// SPEC M9: what the server thought must come back as it was.
#[tokio::test]
async fn anthropic_knows_its_own_signatures() {
    let model =
        ScriptedModel::start_with(|_: &RecordedRequest| Turn::new().thinking("deep").text("x"))
            .await
            .unwrap();
    let events = ask(&model, ANTHROPIC, &asking(ANTHROPIC, "hi")).await.events();
    let signature = events.iter().find_map(|event| event["delta"]["signature"].as_str()).unwrap();
    let replay = |text: &str| {
        let block = json!({"type": "thinking", "thinking": text, "signature": signature});
        after_hi(&[assistant(json!([block])), user(json!("go on"))])
    };
    assert_eq!(ask(&model, ANTHROPIC, &replay("deep")).await.status, 200);
    assert_eq!(ask(&model, ANTHROPIC, &replay("deeper")).await.status, 400);
}

fn chat(fields: Value) -> Value {
    with(CHAT, fields)
}

fn calls(ids: &[&str]) -> Value {
    let calls: Vec<Value> = ids.iter().map(|id| call(id, "{}")).collect();
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

fn call(id: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "Read", "arguments": arguments}})
}

fn tool(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "ok"})
}

fn chat_after_hi(rest: &[Value]) -> Value {
    let mut all = vec![user(json!("hi"))];
    all.extend_from_slice(rest);
    messages(CHAT, all.into())
}

const NO_RESPONSE: &str = "messages[1]: an assistant message with 'tool_calls' must be followed by \
                           tool messages responding to each 'tool_call_id'; these had no response: ";

#[tokio::test]
async fn chat_refuses() {
    let a_open = format!("{NO_RESPONSE}a");
    let b_open = format!("{NO_RESPONSE}b");
    let function =
        |function: Value| chat(json!({"tools": [{"type": "function", "function": function}]}));
    let assistant_calls = |calls: Value| {
        chat_after_hi(&[json!({"role": "assistant", "tool_calls": calls}), tool("a")])
    };
    let parameters = "tools[0].function.parameters";
    let strict = |property: Value| {
        let parameters = json!({"type": "object", "additionalProperties": false,
            "required": ["p"], "properties": {"p": property}});
        function(json!({"name": "n", "strict": true, "parameters": parameters}))
    };
    let chose = |choice: Value| {
        let mut body = function(json!({"name": "n"}));
        body["tool_choice"] = choice;
        body
    };
    check_refused(
        CHAT,
        &[
            (json!("x"), "body: expected an object"),
            (chat(json!({"model": ""})), "model: you must provide a model"),
            (
                chat(json!({"stream": null})),
                "stream: a scripted model only streams; expected true",
            ),
            (chat(json!({"max_tokens": 0})), "max_tokens: expected an integer of at least 1"),
            (
                chat(json!({"max_tokens": 1, "max_completion_tokens": 1})),
                "max_tokens: cannot be set beside max_completion_tokens",
            ),
            (chat(json!({"temperature": 3})), "temperature: expected a number from 0 to 2"),
            (chat(json!({"messages": null})), "messages: expected an array"),
            (messages(CHAT, json!([])), "messages: expected at least one message"),
            (messages(CHAT, json!([user(json!(" "))])), "messages[0].content: text must not be empty"),
            (
                messages(CHAT, json!([user(Value::Null)])),
                "messages[0].content: expected a string or an array of parts",
            ),
            (
                messages(CHAT, json!([user(json!([]))])),
                "messages[0].content: expected at least one part",
            ),
            (
                messages(CHAT, json!([user(json!([text("")]))])),
                "messages[0].content[0].text: text must not be empty",
            ),
            (
                messages(CHAT, json!([user(json!([{"type": "image_url", "image_url": {}}]))])),
                "messages[0].content[0].image_url.url: is required",
            ),
            (
                messages(CHAT, json!([{"role": "system", "content": [{"type": "image_url"}]}])),
                "messages[0].content[0].type: expected text, got \"image_url\"",
            ),
            (
                messages(CHAT, json!([{"role": "robot", "content": "x"}])),
                "messages[0].role: expected system, developer, user, assistant or tool, got \"robot\"",
            ),
            (messages(CHAT, json!([{"content": "x"}])), "messages[0].role: a role is required"),
            // Calls and results.
            (chat_after_hi(&[calls(&["a"])]), &a_open),
            (chat_after_hi(&[calls(&["a", "b"]), tool("a"), user(json!("x"))]), &b_open),
            (chat_after_hi(&[calls(&["a"]), user(json!("x")), tool("a")]), &a_open),
            (
                chat_after_hi(&[tool("a")]),
                "messages[1].role: messages with role 'tool' must be a response to a preceding \
                 message with 'tool_calls', and \"a\" is none of its calls",
            ),
            (
                chat_after_hi(&[calls(&["a"]), tool("a"), user(json!("x")), tool("a")]),
                "messages[4].role: messages with role 'tool' must be a response to a preceding \
                 message with 'tool_calls', and \"a\" is none of its calls",
            ),
            (
                chat_after_hi(&[calls(&["a"]), tool("a"), tool("a")]),
                "messages[3].tool_call_id: \"a\" has a response already",
            ),
            (
                chat_after_hi(&[calls(&["a"]), json!({"role": "tool", "tool_call_id": "a"})]),
                "messages[2].content: expected a string or an array of parts",
            ),
            (
                chat_after_hi(&[calls(&["a", "a"]), tool("a")]),
                "messages[1].tool_calls[1].id: ids must be unique in a message, \"a\" is twice",
            ),
            (
                assistant_calls(json!([])),
                "messages[1].tool_calls: expected an array of at least one call",
            ),
            (
                assistant_calls(json!([call("", "{}")])),
                "messages[1].tool_calls[0].id: expected a string of 1 to 40 bytes",
            ),
            (
                assistant_calls(json!([{"id": "a", "function": {"name": "n", "arguments": "{}"}}])),
                "messages[1].tool_calls[0].type: expected 'function'",
            ),
            (
                assistant_calls(json!([{"id": "a", "type": "function",
                    "function": {"name": "a.b", "arguments": "{}"}}])),
                "messages[1].tool_calls[0].function.name: expected a string that matches \
                 ^[a-zA-Z0-9_-]{1,64}$, got \"a.b\"",
            ),
            (
                assistant_calls(json!([{"id": "a", "type": "function",
                    "function": {"name": "n", "arguments": {}}}])),
                "messages[1].tool_calls[0].function.arguments: expected a string",
            ),
            (
                assistant_calls(json!([call("a", "[]")])),
                "messages[1].tool_calls[0].function.arguments: expected the text of a JSON object: \
                 invalid type: sequence, expected a map at line 1 column 0",
            ),
            (
                chat_after_hi(&[assistant(Value::Null)]),
                "messages[1].content: expected a string, which only a message with tool_calls may \
                 lack",
            ),
            (chat_after_hi(&[assistant(json!(""))]), "messages[1].content: text must not be empty"),
            // Tools.
            (chat(json!({"tools": []})), "tools: expected from 1 to 128 tools"),
            (
                chat(json!({"tools": [{"name": "n"}]})),
                "tools[0].type: expected 'function'",
            ),
            (
                chat(json!({"tool_choice": "auto"})),
                "tool_choice: is only allowed when tools are specified",
            ),
            (
                function(json!({"name": "n", "parameters": {}})),
                &format!("{parameters}: schema must be of type 'object'"),
            ),
            (
                function(json!({"name": "n", "strict": true, "parameters": {"type": "object"}})),
                &format!("{parameters}: additionalProperties must be false in strict mode"),
            ),
            (
                function(json!({"name": "n", "strict": true, "parameters": {"type": "object",
                    "additionalProperties": false, "required": [],
                    "properties": {"p": {"type": "string"}}}})),
                &format!("{parameters}: strict mode requires every property, \"p\" is not required"),
            ),
            (
                function(json!({"name": "n", "parameters": {"type": "object", "anyOf": []}})),
                &format!("{parameters}: \"anyOf\" is not permitted at the top level"),
            ),
            (
                strict(json!({"type": "string", "default": "x"})),
                &format!("{parameters}.p: \"default\" is not permitted in strict mode"),
            ),
            (
                strict(json!({"enum": ["x"]})),
                &format!("{parameters}.p: schema must have a 'type' in strict mode"),
            ),
            (
                strict(json!({"$ref": "#", "description": "d"})),
                &format!("{parameters}.p: $ref cannot have keywords beside it in strict mode"),
            ),
            (
                strict(json!({"type": ["object", "null"], "properties": {}})),
                &format!("{parameters}.p: additionalProperties must be false in strict mode"),
            ),
            (
                strict(json!({"type": "array"})),
                &format!("{parameters}.p: array schema missing items"),
            ),
            (
                chose(json!({"type": "function", "function": {"name": "m"}})),
                "tool_choice: tool choice \"m\" not found in 'tools'",
            ),
            // The shape of Responses.
            (
                chose(json!({"type": "function", "name": "n"})),
                "tool_choice: tool choice \"\" not found in 'tools'",
            ),
            (
                chose(json!("any")),
                "tool_choice: expected auto, none, required or one of the tools",
            ),
        ],
    )
    .await;
    check_accepted(
        CHAT,
        &[
            strict(json!({"anyOf": [{"type": "array", "items": {"$ref": "#"}}, {"type": "null"}]})),
            chose(json!({"type": "function", "function": {"name": "n"}})),
        ],
    )
    .await;
}

#[tokio::test]
async fn chat_accepts() {
    check_accepted(
        CHAT,
        &[
            chat(json!({
                "tools": [
                    {"type": "function", "function": {"name": "Read", "description": "d",
                        "parameters": {"type": "object"}}},
                    {"type": "function", "function": {"name": "now"}},
                ],
                "tool_choice": "auto",
                "reasoning_effort": "low",
            })),
            messages(
                CHAT,
                json!([
                    {"role": "system", "content": "s"},
                    user(json!([text("look"), {"type": "image_url", "image_url": {"url": "data:,"}}])),
                    calls(&["a", "b"]),
                    tool("b"),
                    {"role": "tool", "tool_call_id": "a", "content": ""},
                    {"role": "assistant", "content": "", "reasoning_content": "r",
                        "tool_calls": [call("a", "{\"path\":\"x\"}")]},
                    tool("a"),
                    user(json!("one")),
                    user(json!("two")),
                ]),
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn keys_and_versions_are_needed() {
    let model = start().await;
    let post = async |path, headers: &[(&str, &str)]| {
        let body = asking(path, "hi").to_string();
        Exchange::open(&model, "POST", path, headers, body.as_bytes()).await.response().await
    };
    let response = post(ANTHROPIC, &[("anthropic-version", "2023-06-01")]).await;
    assert_eq!(
        (response.status, response.json()),
        (
            401,
            json!({"type": "error", "request_id": "req_00000000", "error": {
                "type": "authentication_error", "message": "x-api-key header is required"}})
        )
    );
    let response = post(ANTHROPIC, &[("x-api-key", "k")]).await;
    assert_eq!(response.status, 400);
    assert_eq!(response.json()["error"]["message"], "anthropic-version: header is required");
    for headers in [&[][..], &[("authorization", "k")], &[("authorization", "Bearer ")]] {
        let response = post(CHAT, headers).await;
        assert_eq!(
            (response.status, response.json()["error"]["code"].clone()),
            (401, json!("invalid_api_key"))
        );
    }
}

#[tokio::test]
async fn what_is_not_json_is_refused() {
    let model = start().await;
    let headers = [("authorization", "Bearer k")];
    let response =
        Exchange::open(&model, "POST", CHAT, &headers, b"{\"a\": ").await.response().await;
    assert_eq!(
        (response.status, response.json()["error"]["message"].clone()),
        (400, json!("body: is not valid JSON: EOF while parsing a value at line 1 column 6"))
    );
}
