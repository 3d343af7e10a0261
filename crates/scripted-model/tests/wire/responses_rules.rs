//! The rules of OpenAI's Responses: one bad body a rule, over the wire.

use scripted_model::{Entry, RecordedRequest, ScriptedModel, Turn};
use serde_json::{Value, json};

use crate::client::{Exchange, RESPONSES, ask, asking};
use crate::rules::{check_accepted, check_refused, user, with};

fn responses(fields: Value) -> Value {
    with(RESPONSES, fields)
}

/// The user says hi, then these.
fn after_hi(rest: &[Value]) -> Value {
    let mut all = vec![user(json!("hi"))];
    all.extend_from_slice(rest);
    responses(json!({"input": all}))
}

fn said(text: &str) -> Value {
    json!({"type": "message", "role": "assistant",
        "content": [{"type": "output_text", "text": text}]})
}

fn call(id: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "Read", "arguments": arguments})
}

fn output(id: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": "ok"})
}

fn reasoning() -> Value {
    json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "theirs"})
}

/// `item` with one field replaced, or removed by null.
fn but(mut item: Value, name: &str, value: Value) -> Value {
    if value.is_null() {
        item.as_object_mut().unwrap().remove(name);
    } else {
        item[name] = value;
    }
    item
}

#[tokio::test]
async fn responses_refuses_bodies() {
    let tool = |fields: Value| {
        let mut tool =
            json!({"type": "function", "name": "Read", "parameters": {"type": "object"}});
        for (name, value) in fields.as_object().unwrap() {
            tool = but(tool, name, value.clone());
        }
        responses(json!({"tools": [tool]}))
    };
    let parameters = "tools[0].parameters";
    let closed = |required: Value| {
        json!({"strict": true, "parameters": {"type": "object", "additionalProperties": false,
            "required": required, "properties": {"p": {"type": "string"}}}})
    };
    check_refused(
        RESPONSES,
        &[
            (json!([]), "body: expected an object"),
            (responses(json!({"messages": []})), "messages: unknown parameter"),
            (responses(json!({"max_tokens": 99})), "max_tokens: unknown parameter"),
            (
                responses(json!({"previous_response_id": "resp_1"})),
                "previous_response_id: not found: a scripted model keeps no answers",
            ),
            (responses(json!({"model": null})), "model: you must provide a model"),
            (
                responses(json!({"stream": false})),
                "stream: a scripted model only streams; expected true",
            ),
            (responses(json!({"store": "no"})), "store: expected a boolean"),
            (
                responses(json!({"max_output_tokens": 15})),
                "max_output_tokens: expected an integer of at least 16",
            ),
            (responses(json!({"temperature": 3})), "temperature: expected a number from 0 to 2"),
            (responses(json!({"top_p": 2})), "top_p: expected a number from 0 to 1"),
            (responses(json!({"include": "all"})), "include: expected an array of strings"),
            (responses(json!({"reasoning": "low"})), "reasoning: expected an object"),
            (responses(json!({"reasoning": {"budget": 1}})), "reasoning.budget: unknown parameter"),
            (
                responses(json!({"reasoning": {"effort": "much"}})),
                "reasoning.effort: expected one of none, minimal, low, medium, high, xhigh, max",
            ),
            (
                responses(json!({"reasoning": {"summary": "long"}})),
                "reasoning.summary: expected one of auto, concise, detailed",
            ),
            (responses(json!({"instructions": " "})), "instructions: text must not be empty"),
            (responses(json!({"instructions": 1})), "instructions: expected a string"),
            (responses(json!({"input": null})), "input: expected a string or an array of items"),
            (responses(json!({"input": ""})), "input: text must not be empty"),
            (responses(json!({"input": []})), "input: expected at least one item"),
            // Tools.
            (responses(json!({"tools": {}})), "tools: expected an array of at most 128"),
            (
                responses(json!({"tool_choice": "required"})),
                "tool_choice: is only allowed when tools are specified",
            ),
            (
                but(tool(json!({})), "tool_choice", json!({"type": "function", "name": "Nope"})),
                "tool_choice: tool choice \"Nope\" not found in 'tools'",
            ),
            (
                but(tool(json!({})), "tool_choice", json!("any")),
                "tool_choice: expected auto, none, required or one of the tools",
            ),
            (tool(json!({"type": null})), "tools[0].type: is required"),
            // Chat's shape.
            (tool(json!({"function": {}})), "tools[0].function: unknown parameter"),
            (
                tool(json!({"name": "a.b"})),
                "tools[0].name: expected a string that matches ^[a-zA-Z0-9_-]{1,64}$, got \"a.b\"",
            ),
            (tool(json!({"parameters": null})), &format!("{parameters}: is required")),
            (
                tool(json!({"parameters": {}})),
                &format!("{parameters}: schema must be of type 'object'"),
            ),
            (
                tool(json!({"strict": true})),
                &format!("{parameters}: additionalProperties must be false in strict mode"),
            ),
            (
                tool(closed(json!([]))),
                &format!(
                    "{parameters}: strict mode requires every property, \"p\" is not required"
                ),
            ),
            (
                responses(json!({"tools": [
                    {"type": "function", "name": "a", "parameters": {"type": "object"}},
                    {"type": "function", "name": "a", "parameters": {"type": "object"}}]})),
                "tools[1].name: names must be unique, \"a\" is twice",
            ),
        ],
    )
    .await;
    let named = json!({"type": "function", "name": "Read"});
    check_accepted(
        RESPONSES,
        &[tool(closed(json!(["p"]))), but(tool(json!({})), "tool_choice", named)],
    )
    .await;
}

#[tokio::test]
async fn responses_refuses_items() {
    let part =
        |role: &str, part: Value| responses(json!({"input": [{"role": role, "content": [part]}]}));
    let long = "i".repeat(65);
    let long_id = format!(
        "input[1].id: expected an id of at most 64 characters that begins with 'fc', got \"fc{long}\""
    );
    let thinking = |item: Value| after_hi(&[item, said("so"), user(json!("go on"))]);
    check_refused(
        RESPONSES,
        &[
            (responses(json!({"input": ["hi"]})), "input[0]: expected an object"),
            (after_hi(&[json!({})]), "input[1].type: is required"),
            (
                after_hi(&[json!({"type": "tool"})]),
                "input[1].type: expected the type of an item, got \"tool\"",
            ),
            (
                after_hi(&[json!({"type": "item_reference", "id": "rs_1"})]),
                "input[1]: item \"rs_1\" not found: a scripted model keeps no items",
            ),
            (
                after_hi(&[json!({"role": "assistant", "content": "x", "tool_calls": []})]),
                "input[1].tool_calls: unknown parameter",
            ),
            (
                after_hi(&[json!({"role": "tool", "content": "x"})]),
                "input[1].role: expected assistant, developer, system or user, got \"tool\"",
            ),
            (
                after_hi(&[json!({"type": "message", "content": "x"})]),
                "input[1].role: a role is required",
            ),
            (after_hi(&[user(json!(""))]), "input[1].content: text must not be empty"),
            (after_hi(&[user(json!([]))]), "input[1].content: expected at least one part"),
            (
                after_hi(&[user(Value::Null)]),
                "input[1].content: expected a string or an array of parts",
            ),
            (
                part("user", json!({"type": "text", "text": "x"})),
                "input[0].content[0].type: expected input_text or input_image or input_file or \
                 input_audio, got \"text\"",
            ),
            (
                part("user", json!({"type": "output_text", "text": "x"})),
                "input[0].content[0].type: expected input_text or input_image or input_file or \
                 input_audio, got \"output_text\"",
            ),
            (
                part("assistant", json!({"type": "input_text", "text": "x"})),
                "input[0].content[0].type: expected output_text or refusal, got \"input_text\"",
            ),
            (
                part("developer", json!({"type": "input_image", "image_url": "data:,"})),
                "input[0].content[0].type: expected input_text, got \"input_image\"",
            ),
            (
                part("user", json!({"type": "input_text", "text": " "})),
                "input[0].content[0].text: text must not be empty",
            ),
            (
                part("assistant", json!({"type": "refusal", "refusal": ""})),
                "input[0].content[0].refusal: text must not be empty",
            ),
            // Chat's shape.
            (
                part("user", json!({"type": "input_image", "image_url": {"url": "data:,"}})),
                "input[0].content[0].image_url: expected a string",
            ),
            // Calls and outputs.
            (after_hi(&[call("a", "{}")]), "input: no tool output found for function call a"),
            (
                after_hi(&[call("a", "{}"), call("b", "{}"), output("b"), user(json!("x"))]),
                "input[4]: no tool output found for function call a",
            ),
            (
                after_hi(&[call("a", "{}"), user(json!("x")), output("a")]),
                "input[2]: no tool output found for function call a",
            ),
            (
                after_hi(&[call("a", "{}"), call("b", "{}"), output("a"), said("x"), output("b")]),
                "input[4]: no tool output found for function call b",
            ),
            (
                after_hi(&[
                    call("a", "{}"),
                    call("b", "{}"),
                    output("a"),
                    call("c", "{}"),
                    output("b"),
                    output("c"),
                ]),
                "input[4]: no tool output found for function call b",
            ),
            (
                after_hi(&[output("a")]),
                "input[1].call_id: no tool call found for function call output with call_id a",
            ),
            (
                after_hi(&[call("a", "{}"), output("a"), output("a")]),
                "input[3].call_id: tool call a has an output already",
            ),
            (
                after_hi(&[call("a", "{}"), output("a"), call("a", "{}"), output("a")]),
                "input[3].call_id: ids of calls must be unique, \"a\" is twice",
            ),
            (
                after_hi(&[call(&long, "{}"), output(&long)]),
                "input[1].call_id: expected a string of 1 to 64 characters",
            ),
            (
                after_hi(&[call("", "{}"), output("")]),
                "input[1].call_id: expected a string of 1 to 64 characters",
            ),
            (
                after_hi(&[but(call("a", "{}"), "name", json!("a b")), output("a")]),
                "input[1].name: expected a string that matches ^[a-zA-Z0-9_-]{1,64}$, got \"a b\"",
            ),
            (
                after_hi(&[but(call("a", ""), "arguments", json!({})), output("a")]),
                "input[1].arguments: expected a string",
            ),
            (
                after_hi(&[call("a", "[]"), output("a")]),
                "input[1].arguments: expected the text of a JSON object: invalid type: sequence, \
                 expected a map at line 1 column 0",
            ),
            (
                after_hi(&[but(call("a", "{}"), "input", json!({})), output("a")]),
                "input[1].input: unknown parameter",
            ),
            (
                after_hi(&[call("a", "{}"), but(output("a"), "is_error", json!(true))]),
                "input[2].is_error: unknown parameter",
            ),
            (
                after_hi(&[call("a", "{}"), but(output("a"), "output", Value::Null)]),
                "input[2].output: expected a string or an array of parts",
            ),
            (
                after_hi(&[call("a", "{}"), but(output("a"), "output", json!([]))]),
                "input[2].output: expected at least one part",
            ),
            (
                after_hi(&[but(call("a", "{}"), "id", json!("call_1")), output("a")]),
                "input[1].id: expected an id of at most 64 characters that begins with 'fc', got \
                 \"call_1\"",
            ),
            (
                after_hi(&[but(call("a", "{}"), "id", json!(format!("fc{long}"))), output("a")]),
                &long_id,
            ),
            // Reasoning.
            (
                thinking(but(reasoning(), "encrypted_content", Value::Null)),
                "input[1].encrypted_content: is required: items are not persisted when `store` is \
                 false",
            ),
            (
                thinking(but(reasoning(), "encrypted_content", json!("scripted-0"))),
                "input[1].encrypted_content: the encrypted content could not be verified",
            ),
            (
                thinking(but(reasoning(), "summary", Value::Null)),
                "input[1].summary: expected an array",
            ),
            (
                thinking(but(reasoning(), "summary", json!([{"type": "text", "text": "x"}]))),
                "input[1].summary[0].type: expected 'summary_text'",
            ),
            (
                thinking(but(reasoning(), "summary", json!([{"type": "summary_text"}]))),
                "input[1].summary[0].text: is required",
            ),
            (
                thinking(but(reasoning(), "id", json!("x"))),
                "input[1].id: expected an id of at most 64 characters that begins with 'rs', got \
                 \"x\"",
            ),
            (
                after_hi(&[reasoning()]),
                "input[1]: a 'reasoning' item was provided without its required following item",
            ),
            (
                after_hi(&[reasoning(), user(json!("x"))]),
                "input[1]: a 'reasoning' item was provided without its required following item",
            ),
            (
                after_hi(&[call("a", "{}"), reasoning(), output("a")]),
                "input[2]: a 'reasoning' item was provided without its required following item",
            ),
            (
                after_hi(&[json!({"type": "web_search_call", "id": "ws_00000000_1_r",
                        "status": "completed"})]),
                "input[1]: item 'ws_00000000_1_r' was provided without its required 'reasoning' \
                 item",
            ),
            (
                after_hi(&[but(said("x"), "id", json!("msg_00000000_1_r"))]),
                "input[1]: item 'msg_00000000_1_r' was provided without its required 'reasoning' \
                 item",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn responses_accepts() {
    check_accepted(
        RESPONSES,
        &[
            responses(json!({"input": "hi", "store": true, "instructions": "s"})),
            responses(json!({
                "tools": [
                    {"type": "function", "name": "Read", "description": "d",
                        "parameters": {"type": "object"}, "strict": false},
                    {"type": "web_search"},
                ],
                "tool_choice": "required",
                "include": ["reasoning.encrypted_content"],
                "reasoning": {"effort": "low", "summary": "auto"},
                "max_output_tokens": 16,
                "prompt_cache_key": "k",
                "text": {"verbosity": "low"},
            })),
            after_hi(&[
                json!({"role": "developer", "content": [{"type": "input_text", "text": "s"}]}),
                user(json!([{"type": "input_text", "text": "look"},
                    {"type": "input_image", "image_url": "data:,", "detail": "auto"}])),
                reasoning(),
                but(said("I read."), "id", json!("msg_1")),
                call("a", "{\"path\":\"x\"}"),
                reasoning(),
                but(call("b", "{}"), "id", json!("fc_1")),
                output("b"),
                but(
                    output("a"),
                    "output",
                    json!([{"type": "input_text", "text": "ok"},
                    {"type": "input_image", "image_url": "data:,"}]),
                ),
                call("c", "{}"),
                // An empty output is an output.
                but(output("c"), "output", json!("")),
                json!({"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}),
                user(json!("one")),
                user(json!("two")),
            ]),
            // An answer may say something behind its calls.
            after_hi(&[call("a", "{}"), said("I read."), output("a")]),
            // What is stored need not come back whole.
            responses(json!({"store": true, "input": [user(json!("hi")),
                {"type": "reasoning", "id": "rs_1", "summary": []}, said("x")]})),
        ],
    )
    .await;
}

/// SPEC M9: what the server thought must come back as it was, with what it led to.
#[tokio::test]
async fn responses_knows_its_own_reasoning() {
    let model = ScriptedModel::start_with(|_: &RecordedRequest| {
        Turn::new().thinking("deep").text("x").call("Read", json!({}))
    })
    .await
    .unwrap();
    let mut body = asking(RESPONSES, "hi");
    body["include"] = json!(["reasoning.encrypted_content"]);
    let last = ask(&model, RESPONSES, &body).await.events().pop().unwrap();
    let items = last["response"]["output"].as_array().unwrap();
    let replay = async |items: &[Value]| {
        let body = after_hi(&[items, &[output("call_0001")]].concat());
        ask(&model, RESPONSES, &body).await.status
    };
    assert_eq!(replay(items).await, 200);
    assert_eq!(replay(&items[1..]).await, 400);
    let mut changed = items.clone();
    changed[0]["summary"][0]["text"] = json!("deeper");
    assert_eq!(replay(&changed).await, 400);
    // Ids may be left out; then nothing says that the items belong together.
    let bare: Vec<Value> = items.iter().map(|it| but(it.clone(), "id", Value::Null)).collect();
    assert_eq!(replay(&bare).await, 200);

    // Withheld thinking has nothing to compare but its data.
    let mut turn = Turn::new().thinking("secret").text("x");
    if let scripted_model::Block::Thinking { redacted, .. } = &mut turn.content[0] {
        *redacted = true;
    }
    let model = ScriptedModel::start_with(move |_: &RecordedRequest| turn.clone()).await.unwrap();
    let response = ask(&model, RESPONSES, &body).await;
    assert!(!response.text().contains("secret"), "{}", response.text());
    let last = response.events().pop().unwrap();
    let items = last["response"]["output"].as_array().unwrap();
    assert_eq!(ask(&model, RESPONSES, &after_hi(items)).await.status, 200);
}

#[tokio::test]
async fn responses_are_read_as_a_conversation() {
    let model = ScriptedModel::start(scripted_model::hello()).await.unwrap();
    let mut body = after_hi(&[
        json!({"role": "system", "content": "and more"}),
        reasoning(),
        said("I read."),
        call("a", "{\"path\":\"x\"}"),
        call("b", "{}"),
        output("a"),
        output("b"),
        said("Done."),
        user(json!("thanks")),
    ]);
    body["instructions"] = json!("rules");
    body["tools"] = json!([{"type": "function", "name": "Read", "parameters": {"type": "object"}}]);
    assert_eq!(ask(&model, RESPONSES, &body).await.status, 200);
    let seen = model.requests()[0].conversation();
    assert_eq!((seen.model.as_str(), seen.messages, seen.answers()), ("m", 10, 2));
    assert_eq!(
        (seen.system.as_str(), seen.tools.clone()),
        ("rules\nand more", vec!["Read".into()])
    );
    let result =
        |id: &str| Entry::Result { call_id: id.to_owned(), text: "ok".to_owned(), is_error: None };
    assert_eq!(seen.entries[0], Entry::User { text: "hi".to_owned() });
    let calls: Vec<(&str, &str, &Value)> =
        seen.calls().map(|it| (it.id.as_str(), it.name.as_str(), &it.arguments)).collect();
    assert_eq!(calls, [("a", "Read", &json!({"path": "x"})), ("b", "Read", &json!({}))]);
    assert_eq!(
        seen.entries[2..],
        [
            result("a"),
            result("b"),
            Entry::Assistant { text: "Done.".to_owned(), calls: Vec::new() },
            Entry::User { text: "thanks".to_owned() },
        ]
    );
}

#[tokio::test]
async fn responses_needs_a_bearer_key() {
    let model = ScriptedModel::start(scripted_model::hello()).await.unwrap();
    let body = asking(RESPONSES, "hi").to_string();
    for headers in [&[][..], &[("authorization", "k")], &[("x-api-key", "k")]] {
        let exchange = Exchange::open(&model, "POST", RESPONSES, headers, body.as_bytes()).await;
        let response = exchange.response().await;
        assert_eq!(
            (response.status, response.json()["error"]["code"].clone()),
            (401, json!("invalid_api_key"))
        );
    }
}
