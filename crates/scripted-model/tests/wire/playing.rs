//! What an answer looks like in each dialect, whole.

use std::num::NonZeroUsize;
use std::path::Path;

use ai::{Api, StopReason, Usage};
use scripted_model::{
    Dialect, Entry, Expect, Progress, RecordedRequest, Script, ScriptedModel, Turn, fix_loop, load,
};
use serde_json::{Value, json};

use crate::client::{
    ALL, ANTHROPIC, CHAT, Ending, Exchange, GOOGLE, RESPONSES, ask, asking, headers,
};

fn chars(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

fn sample() -> Turn {
    Turn::new()
        .thinking("hmm")
        .text("Héllo you")
        .call("Read", json!({"path": "a"}))
        .raw_call("Read", "[1")
        .chunk_chars(chars(6))
        .usage(Usage { input: 10, output: 7, cache_read: 3, cache_write: 2, reasoning: 1 })
}

#[tokio::test]
async fn anthropic_answer_is_whole() {
    let model = ScriptedModel::start(Script::new("s").turn(sample())).await.unwrap();
    let response = ask(&model, ANTHROPIC, &asking(ANTHROPIC, "hi")).await;

    let delta = |index: usize, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let start = |index: usize, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let stop = |index: usize| json!({"type": "content_block_stop", "index": index});
    let json_delta =
        |index, text: &str| delta(index, json!({"type": "input_json_delta", "partial_json": text}));
    let signature = response.events()[4]["delta"]["signature"].clone();
    let expected = vec![
        json!({"type": "message_start", "message": {
            "id": "msg_00000000", "type": "message", "role": "assistant", "model": "m",
            "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": 10, "cache_creation_input_tokens": 2,
                      "cache_read_input_tokens": 3, "output_tokens": 1},
        }}),
        json!({"type": "ping"}),
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "hmm"})),
        delta(0, json!({"type": "signature_delta", "signature": signature})),
        stop(0),
        start(1, json!({"type": "text", "text": ""})),
        delta(1, json!({"type": "text_delta", "text": "Héllo "})),
        delta(1, json!({"type": "text_delta", "text": "you"})),
        stop(1),
        start(2, json!({"type": "tool_use", "id": "toolu_0001", "name": "Read", "input": {}})),
        json_delta(2, ""),
        json_delta(2, "{\"path"),
        json_delta(2, "\":\"a\"}"),
        stop(2),
        start(3, json!({"type": "tool_use", "id": "toolu_0002", "name": "Read", "input": {}})),
        json_delta(3, ""),
        json_delta(3, "[1"),
        stop(3),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null},
            "usage": {"input_tokens": 10, "cache_creation_input_tokens": 2,
                      "cache_read_input_tokens": 3, "output_tokens": 7}}),
        json!({"type": "message_stop"}),
    ];
    assert_eq!(response.events(), expected);
    assert_eq!(response.status, 200);
    assert_eq!(response.header("content-type"), Some("text/event-stream; charset=utf-8"));
    assert_eq!(response.header("request-id"), Some("req_00000000"));
    // Every event is named as its data says.
    let text = response.text();
    for event in text.trim_end().split("\n\n") {
        let (name, data) = event.split_once('\n').unwrap();
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(name.strip_prefix("event: "), data["type"].as_str());
    }
    assert_eq!(model.wait_for_end(0).await, Progress::Answered);
}

#[tokio::test]
async fn chat_answer_is_whole() {
    let model = ScriptedModel::start(Script::new("s").turn(sample())).await.unwrap();
    let response = ask(&model, CHAT, &asking(CHAT, "hi")).await;

    let chunk = |choices: Value, usage: Value| {
        json!({
            "id": "chatcmpl-00000000", "object": "chat.completion.chunk", "created": 1_700_000_000,
            "model": "m", "system_fingerprint": "fp_scripted", "choices": choices, "usage": usage,
        })
    };
    let choice = |delta: Value, finish: Value| {
        chunk(
            json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]),
            Value::Null,
        )
    };
    let grow = |delta: Value| choice(delta, Value::Null);
    let call = |index: usize, id: &str| {
        grow(json!({"tool_calls": [{"index": index, "id": id, "type": "function",
            "function": {"name": "Read", "arguments": ""}}]}))
    };
    let arguments = |index: usize, text: &str| {
        grow(json!({"tool_calls": [{"index": index, "function": {"arguments": text}}]}))
    };
    let expected = vec![
        grow(json!({"role": "assistant", "content": ""})),
        grow(json!({"reasoning_content": "hmm"})),
        grow(json!({"content": "Héllo "})),
        grow(json!({"content": "you"})),
        call(0, "call_0001"),
        arguments(0, "{\"path"),
        arguments(0, "\":\"a\"}"),
        call(1, "call_0002"),
        arguments(1, "[1"),
        choice(json!({}), json!("tool_calls")),
        chunk(
            json!([]),
            json!({"prompt_tokens": 15, "completion_tokens": 7, "total_tokens": 22,
                "prompt_tokens_details": {"cached_tokens": 3},
                "completion_tokens_details": {"reasoning_tokens": 1}}),
        ),
    ];
    assert_eq!(response.events(), expected);
    assert!(response.text().ends_with("data: [DONE]\n\n"));
    assert_eq!(response.header("x-request-id"), Some("req_00000000"));
}

#[tokio::test]
async fn responses_answer_is_whole() {
    let model = ScriptedModel::start(Script::new("s").turn(sample())).await.unwrap();
    let mut body = asking(RESPONSES, "hi");
    body["include"] = json!(["reasoning.encrypted_content"]);
    let response = ask(&model, RESPONSES, &body).await;
    let said = response.events();

    let encrypted = said[2]["item"]["encrypted_content"].clone();
    assert!(encrypted.is_string(), "{encrypted}");
    let whole = |status: &str, output: &[Value], usage: Value| {
        json!({"id": "resp_00000000", "object": "response", "created_at": 1_700_000_000,
            "status": status, "error": null, "incomplete_details": null, "instructions": null,
            "max_output_tokens": null, "model": "m", "output": output,
            "parallel_tool_calls": true, "previous_response_id": null, "store": false,
            "usage": usage, "metadata": {}})
    };
    let reasoning = |summary: Value| {
        json!({"id": "rs_00000000_0", "type": "reasoning", "summary": summary,
            "encrypted_content": encrypted})
    };
    let summary = |text: &str| json!({"type": "summary_text", "text": text});
    let message = |status: &str, content: Value| {
        json!({"id": "msg_00000000_1_r", "type": "message", "status": status, "role": "assistant",
            "content": content})
    };
    let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []});
    let call = |index: usize, status: &str, arguments: &str| {
        json!({"id": format!("fc_00000000_{index}"), "type": "function_call", "status": status,
            "arguments": arguments, "call_id": format!("call_000{}", index - 1), "name": "Read"})
    };
    let output = [
        reasoning(json!([summary("hmm")])),
        message("completed", json!([part("Héllo you")])),
        call(2, "completed", "{\"path\":\"a\"}"),
        call(3, "completed", "[1"),
    ];
    let usage = json!({"input_tokens": 15, "input_tokens_details": {"cached_tokens": 3},
        "output_tokens": 7, "output_tokens_details": {"reasoning_tokens": 1}, "total_tokens": 22});
    // Where an event belongs: its item, and the place in it.
    let thought = json!({"item_id": "rs_00000000_0", "output_index": 0, "summary_index": 0});
    let text = json!({"item_id": "msg_00000000_1_r", "output_index": 1, "content_index": 0});
    let called =
        |index: usize| json!({"item_id": format!("fc_00000000_{index}"), "output_index": index});
    let item = |index: usize, item: Value| json!({"output_index": index, "item": item});
    let also = |place: &Value, fields: Value| {
        let mut all = place.clone();
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        all
    };
    let expected: Vec<Value> = [
        ("created", json!({"response": whole("in_progress", &[], Value::Null)})),
        ("in_progress", json!({"response": whole("in_progress", &[], Value::Null)})),
        ("output_item.added", item(0, reasoning(json!([])))),
        ("reasoning_summary_part.added", also(&thought, json!({"part": summary("")}))),
        ("reasoning_summary_text.delta", also(&thought, json!({"delta": "hmm"}))),
        ("reasoning_summary_text.done", also(&thought, json!({"text": "hmm"}))),
        ("reasoning_summary_part.done", also(&thought, json!({"part": summary("hmm")}))),
        ("output_item.done", item(0, output[0].clone())),
        ("output_item.added", item(1, message("in_progress", json!([])))),
        ("content_part.added", also(&text, json!({"part": part("")}))),
        ("output_text.delta", also(&text, json!({"delta": "Héllo ", "logprobs": []}))),
        ("output_text.delta", also(&text, json!({"delta": "you", "logprobs": []}))),
        ("output_text.done", also(&text, json!({"text": "Héllo you", "logprobs": []}))),
        ("content_part.done", also(&text, json!({"part": part("Héllo you")}))),
        ("output_item.done", item(1, output[1].clone())),
        ("output_item.added", item(2, call(2, "in_progress", ""))),
        ("function_call_arguments.delta", also(&called(2), json!({"delta": "{\"path"}))),
        ("function_call_arguments.delta", also(&called(2), json!({"delta": "\":\"a\"}"}))),
        (
            "function_call_arguments.done",
            also(&called(2), json!({"arguments": "{\"path\":\"a\"}"})),
        ),
        ("output_item.done", item(2, output[2].clone())),
        ("output_item.added", item(3, call(3, "in_progress", ""))),
        ("function_call_arguments.delta", also(&called(3), json!({"delta": "[1"}))),
        ("function_call_arguments.done", also(&called(3), json!({"arguments": "[1"}))),
        ("output_item.done", item(3, output[3].clone())),
        ("completed", json!({"response": whole("completed", &output, usage)})),
    ]
    .into_iter()
    .enumerate()
    .map(|(number, (name, fields))| {
        let head = json!({"type": format!("response.{name}"), "sequence_number": number});
        also(&head, fields)
    })
    .collect();
    assert_eq!(said, expected);
    assert_eq!(response.header("x-request-id"), Some("req_00000000"));
    // Every event is named as its data says.
    for event in response.text().trim_end().split("\n\n") {
        let (name, data) = event.split_once('\n').unwrap();
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(name.strip_prefix("event: "), data["type"].as_str());
    }
}

#[tokio::test]
async fn responses_encrypts_reasoning_only_when_it_is_included() {
    let turn = Turn::new().thinking("hmm").text("x");
    let model = ScriptedModel::start(Script::new("s").turn(turn)).await.unwrap();
    let text = ask(&model, RESPONSES, &asking(RESPONSES, "hi")).await.text();
    assert!(!text.contains("encrypted_content"), "{text}");
    assert!(text.contains("\"msg_00000000_1\""), "{text}");
}

#[tokio::test]
async fn google_answer_is_whole() {
    let model = ScriptedModel::start(Script::new("s").turn(sample())).await.unwrap();
    let response = ask(&model, GOOGLE, &asking(GOOGLE, "hi")).await;

    let chunk = |candidate: Value, usage: Value| {
        json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m",
            "responseId": "scripted00000000"})
    };
    let part = |part: Value| {
        chunk(
            json!({"content": {"parts": [part], "role": "model"}, "index": 0}),
            json!({"promptTokenCount": 15, "totalTokenCount": 15}),
        )
    };
    let said = response.events();
    let call = &said[3]["candidates"][0]["content"]["parts"][0];
    let (id, signature) = (call["functionCall"]["id"].clone(), call["thoughtSignature"].clone());
    let begin = id.as_str().unwrap().split_at(10).0;
    assert_eq!((begin, signature.as_str().unwrap().len()), ("call_0001_", 24));
    let expected = vec![
        part(json!({"text": "hmm", "thought": true})),
        part(json!({"text": "Héllo "})),
        part(json!({"text": "you"})),
        part(json!({"functionCall": {"name": "Read", "args": {"path": "a"}, "id": id},
            "thoughtSignature": signature})),
        chunk(
            json!({"content": {"parts": [{"text": ""}], "role": "model"},
                "finishReason": "MALFORMED_FUNCTION_CALL", "index": 0,
                "finishMessage": "Malformed function call: Read"}),
            json!({"promptTokenCount": 15, "candidatesTokenCount": 6, "totalTokenCount": 22,
                "thoughtsTokenCount": 1, "cachedContentTokenCount": 3}),
        ),
    ];
    assert_eq!(said, expected);
    assert_eq!(response.header("content-type"), Some("text/event-stream; charset=utf-8"));
    // All lines end in CRLF.
    let text = response.text();
    assert!(text.ends_with("}\r\n\r\n"), "{text}");
    assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
}

/// A signature goes with the first call behind its thinking, else into an empty text.
#[tokio::test]
async fn google_says_where_a_signature_belongs() {
    let signed = |text: &str, signature: &str| scripted_model::Block::Thinking {
        text: text.to_owned(),
        signature: Some(signature.to_owned()),
        redacted: text.is_empty(),
    };
    let mut turn = Turn::new();
    turn.content.push(signed("a", "AAAA"));
    let mut turn = turn.text("b");
    turn.content.push(signed("", "BBBB"));
    let mut turn = turn.call_with_id("c1", "Read", json!({})).call("Read", json!({}));
    turn.content.push(signed("d", "CCCC"));
    let model = ScriptedModel::start(Script::new("s").turn(turn.text("e"))).await.unwrap();
    let parts: Vec<Value> = ask(&model, GOOGLE, &asking(GOOGLE, "hi"))
        .await
        .events()
        .iter()
        .map(|event| event["candidates"][0]["content"]["parts"][0].clone())
        .collect();
    assert_eq!(
        parts,
        [
            json!({"text": "a", "thought": true}),
            json!({"text": "b"}),
            json!({"text": "", "thoughtSignature": "AAAA"}),
            json!({"functionCall": {"name": "Read", "args": {}, "id": "c1"},
                "thoughtSignature": "BBBB"}),
            json!({"functionCall": {"name": "Read", "args": {}, "id": "call_0001"}}),
            json!({"text": "d", "thought": true}),
            json!({"text": "e"}),
            json!({"text": "", "thoughtSignature": "CCCC"}),
        ]
    );
}

#[tokio::test]
async fn usage_is_sent_in_chat_only_when_asked_for() {
    let model = ScriptedModel::start(load("hello", Path::new(".")).unwrap()).await.unwrap();
    let mut body = asking(CHAT, "hi");
    body.as_object_mut().unwrap().remove("stream_options");
    let response = ask(&model, CHAT, &body).await;
    assert!(!response.text().contains("usage"), "{}", response.text());
}

#[tokio::test]
async fn stop_reasons_are_said_in_each_apis_words() {
    // In Responses: the answer's status and the reason that it gives.
    type Case = (&'static str, &'static str, &'static str, [&'static str; 2], &'static str);
    let cases: &[Case] = &[
        ("stop", "end_turn", "stop", ["completed", ""], "STOP"),
        ("length", "max_tokens", "length", ["incomplete", "max_output_tokens"], "MAX_TOKENS"),
        ("tool_use", "tool_use", "tool_calls", ["completed", ""], "STOP"),
        (
            "context_overflow",
            "model_context_window_exceeded",
            "model_length",
            ["failed", "context_length_exceeded"],
            "context_overflow",
        ),
        ("refusal", "refusal", "content_filter", ["incomplete", "content_filter"], "SAFETY"),
        ("pause_turn", "pause_turn", "pause_turn", ["incomplete", "pause_turn"], "pause_turn"),
    ];
    let model = ScriptedModel::start_with(|request: &RecordedRequest| {
        Turn::text_only("x").stop(request.conversation().last_user_text().unwrap())
    })
    .await
    .unwrap();
    for (stop, anthropic, chat, [status, reason], google) in cases {
        let answer = ask(&model, ANTHROPIC, &asking(ANTHROPIC, stop)).await;
        let said = answer.events().iter().rev().nth(1).unwrap()["delta"]["stop_reason"].clone();
        assert_eq!(said, *anthropic);
        let answer = ask(&model, CHAT, &asking(CHAT, stop)).await;
        let said =
            answer.events().iter().rev().nth(1).unwrap()["choices"][0]["finish_reason"].clone();
        assert_eq!(said, *chat);
        let answer = ask(&model, RESPONSES, &asking(RESPONSES, stop)).await;
        let last = answer.events().pop().unwrap();
        let said = &last["response"];
        let why = [&said["incomplete_details"]["reason"], &said["error"]["code"]];
        let why = why.iter().find_map(|it| it.as_str()).unwrap_or_default();
        assert_eq!((said["status"].as_str().unwrap(), why), (*status, *reason));
        assert_eq!(last["type"], format!("response.{status}"));
        let item_status = if *status == "completed" { "completed" } else { "incomplete" };
        assert_eq!(said["output"][0]["status"], item_status);
        let answer = ask(&model, GOOGLE, &asking(GOOGLE, stop)).await;
        let said = answer.events().pop().unwrap()["candidates"][0]["finishReason"].clone();
        assert_eq!(said, *google);
    }
    assert_eq!(String::from(scripted_model::Stop::from(StopReason::Refusal)), "refusal");
}

#[tokio::test]
async fn many_deltas_are_their_own_events_and_come_fast() {
    const DELTAS: usize = 20_000;
    let turn = Turn::text_only("a".repeat(100 * DELTAS)).chunk_chars(chars(100));
    let model = ScriptedModel::start(Script::new("s").turn(turn)).await.unwrap();
    let response = ask(&model, ANTHROPIC, &asking(ANTHROPIC, "hi")).await;
    assert_eq!(response.text().matches("text_delta").count(), DELTAS);
    assert_eq!(response.ending, Ending::Whole);
}

#[tokio::test]
async fn requests_take_turns_in_order_until_there_is_none() {
    let script = Script::new("s").turn(Turn::text_only("one")).turn(Turn::text_only("two"));
    let model = ScriptedModel::start(script).await.unwrap();
    let body = asking(CHAT, "hi");
    assert!(ask(&model, CHAT, &body).await.text().contains("one"));
    assert!(ask(&model, CHAT, &body).await.text().contains("two"));
    let third = ask(&model, CHAT, &body).await;
    assert_eq!(
        (third.status, third.json()),
        (
            400,
            json!({"error": {"message": "the script has no turn 3", "type": "invalid_request_error",
                "param": null, "code": null}})
        )
    );
    let problems: Vec<String> = model.problems().iter().map(ToString::to_string).collect();
    assert_eq!(problems, ["request 2: 400 the script has no turn 3"]);
    let accepted: Vec<bool> = model.requests().iter().map(RecordedRequest::is_accepted).collect();
    assert_eq!(accepted, [true, true, false]);
}

#[tokio::test]
async fn an_unmet_expectation_is_refused_and_its_turn_stays_next() {
    let script = Script::new("s")
        .turn(Turn::text_only("x").expecting(Expect::new().last_user_contains("please")));
    let model = ScriptedModel::start(script).await.unwrap();
    let refused = ask(&model, ANTHROPIC, &asking(ANTHROPIC, "now")).await;
    assert_eq!(
        (refused.status, refused.json()),
        (
            400,
            json!({"type": "error", "request_id": "req_00000000", "error": {
                "type": "invalid_request_error",
                "message": "turn 1: expected \"please\" in the last user text, got \"now\"",
            }})
        )
    );
    assert_eq!(ask(&model, ANTHROPIC, &asking(ANTHROPIC, "now, please")).await.status, 200);
}

/// A whole conversation: the history that is sent back is what the server itself said.
#[tokio::test]
async fn fix_loop_plays_to_its_end_in_every_dialect() {
    for path in ALL {
        let model = ScriptedModel::start(load("fix-loop", Path::new("/")).unwrap()).await.unwrap();
        let mut body = asking(path, fix_loop::PROMPT);
        let mut calls = Vec::new();
        let mut text = String::new();
        for _ in 0..3 {
            let response = ask(&model, path, &body).await;
            assert_eq!(response.status, 200, "{}", response.text());
            let (said, made) = fold(&response.events());
            text = said;
            let results: Vec<&str> = made
                .iter()
                .map(|(_, name, arguments)| match arguments["path"].as_str() {
                    Some("loop.rs") if name == "Read" => fix_loop::LOOP_RS,
                    Some("crash.log") => fix_loop::CRASH_LOG,
                    _ => "edited",
                })
                .collect();
            bring_back(path, &mut body, &text, &made, &results);
            calls.extend(made.into_iter().map(|(_, name, arguments)| (name, arguments)));
        }
        assert_eq!(
            calls,
            [
                ("Read".to_owned(), json!({"path": "loop.rs"})),
                ("Read".to_owned(), json!({"path": "crash.log"})),
                (
                    "Edit".to_owned(),
                    json!({"path": "loop.rs", "edits": [
                        {"old_text": fix_loop::OLD_TEXT, "new_text": fix_loop::NEW_TEXT}]})
                ),
            ]
        );
        assert!(text.contains("I have repaired myself"), "{text}");
        assert_eq!(model.problems(), []);
        let last = model.requests()[2].conversation();
        assert_eq!(last.answers(), 2);
        assert_eq!(last.first_user_text(), Some(fix_loop::PROMPT));
        let results: Vec<&Entry> = last.last_results().collect();
        assert_eq!(results.len(), 1);
    }
}

/// A call's id, name and arguments.
type Made = (String, String, Value);

/// Adds an answer and the results of its calls to a request.
fn bring_back(path: &str, body: &mut Value, text: &str, made: &[Made], results: &[&str]) {
    let each = |call: fn(&Made, &str) -> Value| -> Vec<Value> {
        made.iter().zip(results).map(|(made, result)| call(made, result)).collect()
    };
    let field = match path {
        RESPONSES => "input",
        GOOGLE => "contents",
        _ => "messages",
    };
    let history = body[field].as_array_mut().unwrap();
    match path {
        ANTHROPIC => {
            let mut blocks = vec![json!({"type": "text", "text": text})];
            blocks.extend(each(|(id, name, input), _| {
                json!({"type": "tool_use", "id": id, "name": name, "input": input})
            }));
            history.push(json!({"role": "assistant", "content": blocks}));
            let results = each(
                |(id, ..), result| json!({"type": "tool_result", "tool_use_id": id, "content": result}),
            );
            history.push(json!({"role": "user", "content": results}));
        }
        CHAT => {
            let calls = each(|(id, name, arguments), _| {
                json!({"id": id, "type": "function",
                    "function": {"name": name, "arguments": arguments.to_string()}})
            });
            history.push(json!({"role": "assistant", "content": text, "tool_calls": calls}));
            history.extend(each(
                |(id, ..), result| json!({"role": "tool", "tool_call_id": id, "content": result}),
            ));
        }
        RESPONSES => {
            history.push(json!({"role": "assistant", "content": text}));
            history.extend(each(|(id, name, arguments), _| {
                json!({"type": "function_call", "call_id": id, "name": name,
                    "arguments": arguments.to_string()})
            }));
            history.extend(each(|(id, ..), result| {
                json!({"type": "function_call_output", "call_id": id, "output": result})
            }));
        }
        _ => {
            let mut parts = vec![json!({"text": text})];
            parts.extend(each(|(id, name, args), _| {
                json!({"functionCall": {"id": id, "name": name, "args": args}})
            }));
            history.push(json!({"role": "model", "parts": parts}));
            let results = each(
                |(id, name, _), result| json!({"functionResponse": {"id": id, "name": name, "response": {"output": result}}}),
            );
            history.push(json!({"role": "user", "parts": results}));
        }
    }
}

/// The text and the calls of an answer, in any dialect.
fn fold(events: &[Value]) -> (String, Vec<Made>) {
    let mut text = String::new();
    let mut calls: Vec<(String, String, String)> = Vec::new();
    for event in events {
        let delta = &event["choices"][0]["delta"];
        let part = &event["candidates"][0]["content"]["parts"][0];
        if event["type"] == "response.output_text.delta" {
            text.push_str(event["delta"].as_str().unwrap());
        }
        if event["type"] == "response.output_item.done" && event["item"]["call_id"].is_string() {
            let field = |name: &str| event["item"][name].as_str().unwrap().to_owned();
            calls.push((field("call_id"), field("name"), field("arguments")));
        }
        if let Some(call) = part.get("functionCall") {
            let field = |name: &str| call[name].as_str().unwrap().to_owned();
            calls.push((field("id"), field("name"), call["args"].to_string()));
        }
        for said in [&event["delta"]["text"], &delta["content"], &part["text"]] {
            text.push_str(said.as_str().unwrap_or_default());
        }
        let block = &event["content_block"];
        let chat = &delta["tool_calls"][0];
        if block["type"] == "tool_use" || chat["id"].is_string() {
            let id = block["id"].as_str().or(chat["id"].as_str()).unwrap();
            let name = block["name"].as_str().or(chat["function"]["name"].as_str()).unwrap();
            calls.push((id.to_owned(), name.to_owned(), String::new()));
        }
        for piece in [&event["delta"]["partial_json"], &chat["function"]["arguments"]] {
            if let Some(piece) = piece.as_str() {
                calls.last_mut().unwrap().2.push_str(piece);
            }
        }
    }
    let calls = calls
        .into_iter()
        .map(|(id, name, arguments)| (id, name, serde_json::from_str(&arguments).unwrap()))
        .collect();
    (text, calls)
}

#[test]
fn the_edit_of_fix_loop_fits_its_file_once() {
    assert_eq!(fix_loop::LOOP_RS.matches(fix_loop::OLD_TEXT).count(), 1);
    let mended = fix_loop::LOOP_RS.replace(fix_loop::OLD_TEXT, fix_loop::NEW_TEXT);
    assert!(mended.lines().any(|line| line == fix_loop::FIXED_LINE));
    assert!(!fix_loop::LOOP_RS.contains(fix_loop::FIXED_LINE));
}

/// The demo's program is what the demo says it is.
#[test]
fn the_program_of_fix_loop_ends_once_it_is_mended() {
    let dir = tempfile::tempdir().unwrap();
    let build = |name: &str, text: &str| {
        let source = dir.path().join(format!("{name}.rs"));
        std::fs::write(&source, text).unwrap();
        let built = std::process::Command::new("rustc")
            .args(["--edition", "2024", "-C", "debuginfo=0", "-o"])
            .arg(dir.path().join(name))
            .arg(&source)
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&built.stderr), "");
        dir.path().join(name)
    };
    build("broken", fix_loop::LOOP_RS);
    let mended =
        build("mended", &fix_loop::LOOP_RS.replace(fix_loop::OLD_TEXT, fix_loop::NEW_TEXT));
    let ran = std::process::Command::new(mended).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ran.stdout), format!("{}\n", fix_loop::SUCCESS));
    assert!(ran.status.success());
}

#[tokio::test]
async fn many_conversations_are_told_apart_by_what_they_hold() {
    const AGENTS: usize = 50;
    let model = ScriptedModel::start_with(|request: &RecordedRequest| {
        Turn::text_only(format!("you said {}.", request.conversation().first_user_text().unwrap()))
            .chunk_chars(chars(1000))
    })
    .await
    .unwrap();
    let mut exchanges = Vec::new();
    for agent in 0..AGENTS {
        let path = ALL[agent % ALL.len()];
        let body = asking(path, &format!("agent {agent}"));
        exchanges.push(Exchange::post(&model, path, &body).await);
    }
    for (agent, exchange) in exchanges.into_iter().enumerate() {
        let text = exchange.response().await.text();
        assert!(text.contains(&format!("you said agent {agent}.")), "{text}");
    }
    model.wait_for_requests(AGENTS).await;
    assert_eq!(model.requests().len(), AGENTS);
    assert_eq!(model.problems(), []);
}

#[tokio::test]
async fn a_responder_that_panics_refuses_with_its_words() {
    let model = ScriptedModel::start_with(|request: &RecordedRequest| {
        assert_eq!(request.index, 7, "the wrong request");
        Turn::new()
    })
    .await
    .unwrap();
    let response = ask(&model, CHAT, &asking(CHAT, "hi")).await;
    assert_eq!(response.status, 400);
    let reason = model.problems()[0].reason.clone();
    assert!(reason.contains("the responder panicked") && reason.contains("the wrong request"));
}

#[tokio::test]
async fn other_paths_and_methods() {
    let model = ScriptedModel::start(scripted_model::hello()).await.unwrap();
    let get = async |method, path, headers| {
        Exchange::open(&model, method, path, headers, b"").await.response().await
    };
    let lost = get("POST", "/v2/messages", headers(ANTHROPIC)).await;
    assert_eq!(
        (lost.status, lost.json()["error"]["type"].clone()),
        (404, json!("not_found_error"))
    );
    let wrong = get("GET", CHAT, headers(CHAT)).await;
    assert_eq!((wrong.status, wrong.header("allow")), (405, Some("POST")));
    let models = get("GET", "/v1/models", headers(CHAT)).await;
    assert_eq!(models.json()["data"][0]["id"], "hello");
    let models = get("GET", "/v1/models", headers(ANTHROPIC)).await;
    assert_eq!(models.json()["last_id"], "hello");
    let models = get("GET", "/v1beta/models", headers(GOOGLE)).await;
    assert_eq!(models.json()["models"][0]["name"], "models/hello");
    let whole = "/v1beta/models/m:generateContent";
    let unknown = get("POST", whole, headers(GOOGLE)).await;
    assert_eq!(
        (unknown.status, unknown.json()),
        (
            404,
            json!({"error": {"code": 404, "status": "NOT_FOUND",
                "message": format!("there is nothing at {whole}")}})
        )
    );
    let problems: Vec<String> = model.problems().iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "404 there is nothing at /v2/messages",
            "405 /v1/chat/completions takes POST, not GET",
            "404 there is nothing at /v1beta/models/m:generateContent"
        ]
    );
    assert_eq!(model.requests().len(), 0);
    let root = format!("http://{}", model.address());
    for (api, dialect, path) in [
        (Api::AnthropicMessages, Dialect::AnthropicMessages, ""),
        (Api::OpenaiChat, Dialect::OpenaiChat, "/v1"),
        (Api::OpenaiResponses, Dialect::OpenaiResponses, "/v1"),
        (Api::GoogleGenerate, Dialect::GoogleGenerate, "/v1beta"),
    ] {
        assert_eq!(model.base_url(api), format!("{root}{path}"));
        assert_eq!(model.base_url_for(dialect), format!("{root}{path}"));
    }
}

/// SPEC M20
#[tokio::test]
async fn keys_are_recorded_but_never_printed() {
    let model = ScriptedModel::start(scripted_model::hello()).await.unwrap();
    let body = asking(CHAT, "hi").to_string();
    let headers = [("authorization", "Bearer sk-secret")];
    Exchange::open(&model, "POST", CHAT, &headers, body.as_bytes()).await.response().await;
    let body = asking(GOOGLE, "hi").to_string();
    let headers = [("x-goog-api-key", "sk-secret")];
    let path = format!("{GOOGLE}&key=sk-secret");
    Exchange::open(&model, "POST", &path, &headers, body.as_bytes()).await.response().await;
    let requests = model.requests();
    assert_eq!(requests[0].header("authorization"), Some("Bearer sk-secret"));
    assert_eq!(requests[1].header("x-goog-api-key"), Some("sk-secret"));
    assert!(!format!("{requests:?}").contains("sk-secret"));
}

#[tokio::test]
async fn large_bodies_are_read_to_a_bound() {
    const MIB: usize = 1024 * 1024;
    let model = ScriptedModel::start(scripted_model::hello()).await.unwrap();
    let response = ask(&model, CHAT, &asking(CHAT, &"a".repeat(8 * MIB))).await;
    assert_eq!(response.status, 200);
    // Only announced: the refusal comes before the body.
    let size = (65 * MIB).to_string();
    let headers = [("authorization", "Bearer k"), ("content-length", size.as_str())];
    let mut stream = tokio::net::TcpStream::connect(model.address()).await.unwrap();
    let mut head = format!("POST {CHAT} HTTP/1.1\r\nhost: localhost\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    tokio::io::AsyncWriteExt::write_all(&mut stream, head.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    tokio::io::AsyncReadExt::read_exact(&mut stream, &mut status).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 413");
}

#[tokio::test]
async fn stopping_closes_the_port_and_every_connection() {
    let turn = Turn::new().text("x").fault(scripted_model::Fault::Stall { after_bytes: Some(0) });
    let model = ScriptedModel::start(Script::new("s").turn(turn)).await.unwrap();
    let mut exchange = Exchange::post(&model, CHAT, &asking(CHAT, "hi")).await;
    exchange.read_until("\r\n\r\n").await;
    let address = model.address();
    model.stop().await;
    assert_ne!(exchange.finish().await.1, Ending::Whole);
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
