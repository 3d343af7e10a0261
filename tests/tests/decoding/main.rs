//! Hand-written streams, one for each thing that hosts do differently, and what they come to.
//!
//! Every stream is decoded in one piece, byte by byte and at every split, and its events are checked
//! against the grammar; then streams are mutated at random and checked again.

use ai::{
    Api, Assembler, AssistantMessage, Compat, ContentBlock, DecodeOptions, Framing, MessageId,
    StreamDecoder, StreamEvent, Timestamp, ToolCall,
};
use tests::decoded::{events as decode, message};
use tests::grammar;

mod generates;
mod makers;
mod matrix;
mod messages;
mod mutations;
mod responses;

use self::generates::generates;
use self::messages::messages;

fn options(compat: Compat, framing: Framing) -> DecodeOptions {
    DecodeOptions { provider: "p".to_owned(), model: "asked".to_owned(), compat, framing }
}

/// A message on one line.
fn shown(message: &AssistantMessage) -> String {
    let mut parts: Vec<String> = message.content.iter().map(shown_block).collect();
    let reason = serde_json::to_value(message.stop_reason).expect("JSON");
    let mut end = reason.as_str().unwrap_or_default().to_owned();
    if let Some(raw) = &message.stop_raw {
        end = format!("{end}({raw})");
    }
    if let Some(error) = &message.error {
        end = format!("{end} {}", error.kind.as_str());
    }
    parts.push(end);
    let usage = message.usage;
    if usage != ai::Usage::default() {
        parts.push(format!(
            "{}+{}r+{}w>{}({}t)",
            usage.input, usage.cache_read, usage.cache_write, usage.output, usage.reasoning
        ));
    }
    parts.join(" ")
}

fn shown_block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text { text } => format!("text[{text}]"),
        ContentBlock::Thinking { text, signature, redacted } => format!(
            "{}[{text}{}]",
            if *redacted { "redacted" } else { "think" },
            signature.as_ref().map(|signature| format!("|{signature}")).unwrap_or_default()
        ),
        ContentBlock::ToolCall(ToolCall {
            id,
            name,
            arguments,
            raw_arguments,
            arguments_note,
            signature,
            ..
        }) => {
            let arguments = match raw_arguments {
                Some(raw) => format!("raw {raw}"),
                None => serde_json::to_string(arguments).expect("JSON"),
            };
            let note = if arguments_note.is_some() { " noted" } else { "" };
            let signature = signature.as_ref().map(|s| format!("|{s}")).unwrap_or_default();
            format!("call[{id} {name} {arguments}{note}{signature}]")
        }
        ContentBlock::Opaque { api, data } => format!("opaque[{api} {data}]"),
        ContentBlock::Image { .. } => "image".to_owned(),
        other => format!("{other:?}"),
    }
}

fn check(name: &str, api: Api, options: &DecodeOptions, body: &[u8], expected: &str) {
    let whole = decode(api, options, [body]);
    if let Err(fault) = grammar::check(&whole) {
        panic!("{name}: {fault}");
    }
    assert_eq!(shown(&message(&whole)), expected, "{name}");
    assert_eq!(decode(api, options, body.chunks(1)), whole, "{name} byte by byte");
    for at in 0..body.len() {
        let (head, tail) = body.split_at(at);
        assert_eq!(decode(api, options, [head, tail]), whole, "{name} split at {at}");
    }
}

/// A body of one event a payload.
fn body(payloads: &[&str]) -> String {
    payloads.iter().map(|payload| format!("data: {payload}\n\n")).collect()
}

/// A chunk of choice 0 with this delta.
fn delta(fields: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{{fields}}}}}]}}"#)
}

/// A chunk that ends choice 0.
fn end(word: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{word}"}}]}}"#)
}

struct Chat {
    name: &'static str,
    chunks: Vec<String>,
    expected: &'static str,
}

fn chat(name: &'static str, chunks: &[String], expected: &'static str) -> Chat {
    Chat { name, chunks: chunks.to_vec(), expected }
}

/// A chunk with one tool-call delta.
fn call(fields: &str) -> String {
    delta(&format!(r#""tool_calls":[{{{fields}}}]"#))
}

fn chats() -> Vec<Chat> {
    let text = |text: &str| delta(&format!(r#""content":"{text}""#));
    let raw = |chunk: &str| chunk.to_owned();
    vec![
        // Endings (SPEC M5, M11)
        chat("stop", &[text("a"), text("b"), end("stop")], "text[ab] stop(stop)"),
        chat(
            "done mark",
            &[text("a"), end("stop"), raw("[DONE]"), text("b")],
            "text[a] stop(stop)",
        ),
        chat("no finish reason", &[text("a"), raw("[DONE]")], "text[a] error truncated_stream"),
        chat("nothing", &[], "error truncated_stream"),
        chat("length", &[text("a"), end("length")], "text[a] length(length)"),
        chat("filter", &[end("content_filter")], "refusal(content_filter)"),
        chat("window", &[end("model_length")], "context_overflow(model_length)"),
        chat("unknown word", &[text("a"), end("tired")], "text[a] error(tired) malformed_stream"),
        chat("error word", &[end("error")], "error(error) server"),
        chat("repeated finish", &[text("a"), end("stop"), end("stop")], "text[a] stop(stop)"),
        chat("empty finish is none", &[text("a"), end("")], "text[a] error truncated_stream"),
        chat("content after the finish", &[end("stop"), text("a")], "text[a] stop(stop)"),
        chat("refusal", &[delta(r#""refusal":"no""#), end("stop")], "text[no] refusal(stop)"),
        chat(
            "a choice without an end",
            &[raw(r#"{"choices":[{"index":1,"delta":{"content":"x"}}]}"#), text("a"), end("stop")],
            "text[a] error(stop) truncated_stream",
        ),
        chat(
            "two choices",
            &[raw(
                r#"{"choices":[{"index":1,"delta":{"content":"x"},"finish_reason":"stop"},{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}"#,
            )],
            "text[a] stop(stop)",
        ),
        // Blocks (SPEC M8, M9)
        chat(
            "kinds alternate",
            &[
                delta(r#""reasoning_content":"t""#),
                delta(r#""content":"","reasoning_content":"u""#),
                text("a"),
                call(r#""index":0,"id":"c","function":{"name":"f","arguments":"{}"}"#),
                text("b"),
                delta(r#""reasoning":"v""#),
                end("stop"),
            ],
            "think[tu] text[a] call[c f {}] text[b] think[v] stop(stop)",
        ),
        chat(
            "thinking twice in one chunk",
            &[
                delta(
                    r#""reasoning":"t","reasoning_details":[{"type":"reasoning.text","text":"t","index":0}]"#,
                ),
                end("stop"),
            ],
            "think[t] stop(stop)",
        ),
        chat(
            "thinking in the details alone",
            &[
                delta(
                    r#""reasoning_details":[{"type":"reasoning.summary","summary":"s","index":0}]"#,
                ),
                delta(
                    r#""reasoning_details":[{"type":"reasoning.summary","summary":"t","index":0}]"#,
                ),
                end("stop"),
            ],
            "think[st] stop(stop)",
        ),
        chat(
            "signature and cipher in the details",
            &[
                delta(
                    r#""reasoning":"t","reasoning_details":[{"type":"reasoning.text","text":"t","index":0,"signature":null}]"#,
                ),
                delta(
                    r#""reasoning":"u","reasoning_details":[{"type":"reasoning.text","text":"u","index":0}]"#,
                ),
                delta(
                    r#""reasoning_details":[{"type":"reasoning.text","signature":"S","index":0}]"#,
                ),
                delta(
                    r#""reasoning_details":[{"type":"reasoning.encrypted","data":"D","index":0}]"#,
                ),
                delta(
                    r#""reasoning_details":[{"type":"reasoning.encrypted","data":"E","index":0}]"#,
                ),
                text("a"),
                end("stop"),
            ],
            r#"think[tu] text[a] opaque[openai-chat {"reasoning_details":[{"type":"reasoning.text","text":"tu","index":0,"signature":"S"},{"type":"reasoning.encrypted","data":"D","index":0},{"type":"reasoning.encrypted","data":"E","index":0}]}] stop(stop)"#,
        ),
        chat(
            "content parts",
            &[
                delta(r#""content":[{"type":"thinking","thinking":[{"type":"text","text":"t"}]}]"#),
                delta(
                    r#""content":[{"type":"thinking","thinking":[{"type":"text","text":""}],"closed":true},{"type":"text","text":"a"},{"type":"reference","ids":[1]}]"#,
                ),
                end("stop"),
            ],
            "think[t] text[a] stop(stop)",
        ),
        chat(
            "reasoning parts, and parts without a kind",
            &[
                delta(
                    r#""content":[{"type":"reasoning","summary":[{"type":"summary_text","text":"t","signature":"S"}]}]"#,
                ),
                delta(r#""content":[{"text":"a"},{"type":"image_url","image_url":{"url":"x"}}]"#),
                delta(r#""thinking":"u""#),
                delta(r#""content":{"type":"text","text":"b"}"#),
                end("stop"),
            ],
            "think[t] text[a] think[u] text[b] stop(stop)",
        ),
        chat(
            "message in place of deltas",
            &[raw(r#"{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}]}"#)],
            "text[a] stop(stop)",
        ),
        chat(
            "message beside deltas",
            &[
                raw(
                    r#"{"choices":[{"index":0,"delta":{"content":"a"},"message":{"content":"a"}}]}"#,
                ),
                raw(
                    r#"{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}]}"#,
                ),
            ],
            "text[a] stop(stop)",
        ),
        chat(
            "tags are text by default",
            &[text("<think>t</think>a"), end("stop")],
            "text[<think>t</think>a] stop(stop)",
        ),
        // Calls (SPEC M6, M7)
        chat(
            "arguments in pieces, interleaved",
            &[
                call(r#""index":0,"id":"c","function":{"name":"f","arguments":""}"#),
                call(r#""index":1,"id":"d","function":{"name":"g","arguments":"{\"x\""}"#),
                call(r#""index":0,"id":"","function":{"name":"","arguments":"{\"y\":"}"#),
                call(r#""index":1,"id":null,"function":{"name":null,"arguments":":1}"}"#),
                call(r#""index":0,"function":{"arguments":"2}"}"#),
                call(r#""index":0,"function":{"arguments":null}"#),
                end("tool_calls"),
            ],
            r#"call[c f {"y":2}] call[d g {"x":1}] tool_use(tool_calls)"#,
        ),
        chat(
            "null calls",
            &[
                delta(r#""content":"a","tool_calls":null"#),
                delta(r#""tool_calls":[null,{}]"#),
                end("stop"),
            ],
            "text[a] stop(stop)",
        ),
        chat(
            "no ids, no positions, whole calls",
            &[
                call(r#""function":{"name":"f","arguments":"{}"}"#),
                delta(
                    r#""tool_calls":[{"function":{"name":"f","arguments":"{}"}},{"function":{"name":"g","arguments":{"x":1}}}]"#,
                ),
                end("tool_calls"),
            ],
            r#"call[call_0 f {}] call[call_1 f {}] call[call_2 g {"x":1}] tool_use(tool_calls)"#,
        ),
        chat(
            "equal ids at two positions",
            &[
                call(r#""index":0,"id":"c","function":{"name":"f","arguments":"{}"}"#),
                call(r#""index":1,"id":"c","function":{"name":"f","arguments":"{}"}"#),
                end("tool_calls"),
            ],
            "call[c f {}] call[c_2 f {}] tool_use(tool_calls)",
        ),
        chat(
            "another id at the same position",
            &[
                call(r#""index":0,"id":"c","function":{"name":"f","arguments":"{}"}"#),
                call(r#""index":0,"id":"d","function":{"name":"f","arguments":"{}"}"#),
                end("tool_calls"),
            ],
            "call[c f {}] call[d f {}] tool_use(tool_calls)",
        ),
        chat(
            "ids that rotate",
            &[
                call(r#""index":0,"id":"c","function":{"name":"f","arguments":"{"}"#),
                call(r#""index":0,"id":"d","function":{"arguments":"}"}"#),
                end("tool_calls"),
            ],
            "call[c f {}] tool_use(tool_calls)",
        ),
        chat(
            "no positions, and an id that means nothing",
            &[
                call(r#""id":"c","function":{"name":"f","arguments":"{"}"#),
                call(r#""id":"null","function":{"name":"","arguments":"}"}"#),
                call(r#""id":"d","function":{"name":"f","arguments":"{}"}"#),
                end("tool_calls"),
            ],
            "call[c f {}] call[d f {}] tool_use(tool_calls)",
        ),
        chat(
            "the name comes last",
            &[
                call(r#""index":0,"id":"c""#),
                call(r#""index":0,"function":{"arguments":"{}"}"#),
                call(r#""index":0,"function":{"name":"f"}"#),
                end("tool_calls"),
            ],
            "call[c f {}] tool_use(tool_calls)",
        ),
        chat(
            "arguments that are no object",
            &[
                call(r#""index":0,"id":"c","function":{"name":"f","arguments":"[1]"}"#),
                call(r#""index":1,"id":"d","function":{"name":"f","arguments":"{\"x\":"}"#),
                call(
                    r#""index":2,"id":"e","function":{"name":"f","arguments":"\"{\\\"x\\\":1}\""}"#,
                ),
                call(r#""index":3,"id":"g","function":{"name":"f","arguments":""}"#),
                call(r#""index":4,"id":"h","function":{"name":"f","arguments":[1,"x"]}"#),
                end("length"),
            ],
            r#"call[c f raw [1]] call[d f raw {"x":] call[e f {"x":1} noted] call[g f {}] call[h f raw [1,"x"]] length(length)"#,
        ),
        chat(
            "the form before tool calls",
            &[
                delta(r#""function_call":{"name":"f","arguments":"{"}"#),
                delta(r#""function_call":{"arguments":"}"}"#),
                end("function_call"),
            ],
            "call[call_0 f {}] tool_use(function_call)",
        ),
        chat(
            "thought signature",
            &[
                call(
                    r#""index":0,"id":"c","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"S"}}"#,
                ),
                end("tool_calls"),
            ],
            "call[c f {}|S] tool_use(tool_calls)",
        ),
        chat(
            "custom tools carry text, whatever it looks like",
            &[
                call(
                    r#""index":0,"id":"c","type":"custom","custom":{"name":"f","input":"print("}"#,
                ),
                call(r#""index":0,"custom":{"input":"1)"}"#),
                call(r#""index":1,"id":"d","type":"custom","custom":{"name":"f","input":"{}"}"#),
                end("tool_calls"),
            ],
            "call[c f raw print(1)] call[d f raw {}] tool_use(tool_calls)",
        ),
        chat(
            "names repeated, in pieces, and longer each time",
            &[
                call(r#""index":0,"id":"c","function":{"name":"f","arguments":""}"#),
                call(r#""index":0,"id":"c","function":{"name":"f","arguments":"{}"}"#),
                call(r#""index":1,"id":"d","function":{"name":"get_"}"#),
                call(r#""index":1,"function":{"name":"weather","arguments":""}"#),
                call(r#""index":1,"function":{"arguments":"{}"}"#),
                call(r#""index":2,"id":"e","function":{"name":"get_"}"#),
                call(r#""index":2,"id":"e","function":{"name":"get_time"}"#),
                call(r#""index":2,"id":"e","function":{"name":"get_time","arguments":"{}"}"#),
                end("tool_calls"),
            ],
            "call[c f {}] call[d get_weather {}] call[e get_time {}] tool_use(tool_calls)",
        ),
        chat(
            "calls without ids at one position, without arguments",
            &[
                call(r#""index":0,"function":{"name":"f","arguments":""}"#),
                call(r#""index":0,"function":{"name":"g","arguments":""}"#),
                end("tool_calls"),
            ],
            "call[call_0 f {}] call[call_1 g {}] tool_use(tool_calls)",
        ),
        // Usage (SPEC M10)
        chat(
            "usage under the names of another API",
            &[
                end("stop"),
                raw(
                    r#"{"choices":[],"usage":{"input_tokens":9,"output_tokens":5,"num_cached_tokens":4}}"#,
                ),
            ],
            "stop(stop) 5+4r+0w>5(0t)",
        ),
        chat(
            "usage as Anthropic counts it",
            &[
                end("stop"),
                raw(
                    r#"{"choices":[],"usage":{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":1000,"cache_creation_input_tokens":7}}"#,
                ),
            ],
            "stop(stop) 10+1000r+7w>5(0t)",
        ),
        chat(
            "trailing usage, then null",
            &[
                end("stop"),
                raw(
                    r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":1},"completion_tokens_details":{"reasoning_tokens":2}}}"#,
                ),
                raw(r#"{"choices":[],"usage":null}"#),
            ],
            "stop(stop) 5+4r+1w>5(2t)",
        ),
        chat(
            "cumulative usage",
            &[
                raw(
                    r#"{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#,
                ),
                raw(
                    r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}"#,
                ),
                raw(
                    r#"{"choices":[],"usage":{"prompt_tokens":null,"completion_tokens":null,"total_tokens":null}}"#,
                ),
            ],
            "text[a] stop(stop) 3+0r+0w>2(0t)",
        ),
        chat(
            "usage in a choice",
            &[raw(
                r#"{"choices":[{"index":0,"finish_reason":"stop","usage":{"prompt_tokens":3,"completion_tokens":2}}]}"#,
            )],
            "stop(stop) 3+0r+0w>2(0t)",
        ),
        chat(
            "usage of Groq",
            &[
                end("stop"),
                raw(
                    r#"{"choices":[],"x_groq":{"id":"r","usage":{"prompt_tokens":3,"completion_tokens":2}}}"#,
                ),
            ],
            "stop(stop) 3+0r+0w>2(0t)",
        ),
        chat(
            "usage of DeepSeek and more cached than read",
            &[
                end("stop"),
                raw(
                    r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"prompt_cache_hit_tokens":9}}"#,
                ),
            ],
            "stop(stop) 0+9r+0w>2(0t)",
        ),
        chat(
            "the total says that reasoning is outside",
            &[
                end("stop"),
                raw(
                    r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":12,"completion_tokens_details":{"reasoning_tokens":7}}}"#,
                ),
            ],
            "stop(stop) 3+0r+0w>9(7t)",
        ),
        // Errors inside the stream (SPEC M12)
        chat(
            "error object",
            &[
                text("a"),
                raw(r#"{"error":{"message":"no","type":"invalid_request_error","code":"x"}}"#),
                text("b"),
            ],
            "text[a] error invalid_request",
        ),
        chat(
            "error in a choice, usage after it",
            &[
                text("a"),
                raw(
                    r#"{"choices":[{"index":0,"delta":{},"finish_reason":"error","error":{"code":429,"message":"slow"}}]}"#,
                ),
                raw(r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}"#),
            ],
            "text[a] error(error) rate_limit 3+0r+0w>2(0t)",
        ),
        chat(
            "error without choices",
            &[raw(r#"{"error":{"code":429,"message":"slow"},"choices":[]}"#)],
            "error rate_limit",
        ),
        chat(
            "errors, in a list",
            &[raw(r#"{"success":false,"errors":[{"code":429,"message":"slow"}]}"#)],
            "error rate_limit",
        ),
        chat(
            "error without a wrapper",
            &[raw(r#"{"object":"error","message":"no","code":404}"#)],
            "error not_found",
        ),
        chat("not JSON", &[text("a"), raw("oops"), text("b")], "text[a] error malformed_stream"),
        chat(
            "JSON that says nothing",
            &[raw("1"), raw("[]"), raw("null"), raw("{}"), text("a"), end("stop")],
            "text[a] stop(stop)",
        ),
        // Types that are not what the API promises
        chat(
            "odd types",
            &[
                raw(
                    r#"{"id":7,"model":null,"choices":[{"index":"0","delta":{"content":"a","tool_calls":"x","reasoning":{}},"logprobs":1}],"usage":"none"}"#,
                ),
                raw(
                    r#"{"choices":[{"index":null,"delta":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":3.0,"completion_tokens":"2"}}"#,
                ),
            ],
            "text[a] stop(stop) 3+0r+0w>2(0t)",
        ),
        chat(
            "a key twice, half a surrogate pair",
            &[
                delta(r#""content":"x","content":"a\ud83d""#),
                delta(r#""content":"\ud83e\udd80""#),
                end("stop"),
            ],
            "text[a\u{fffd}\u{1f980}] stop(stop)",
        ),
    ]
}

/// SPEC M4, M5, M6, M7, M8, M9, M10, M11, M12
#[test]
fn chat_quirks() {
    let options = options(Compat::default(), Framing::Sse);
    for Chat { name, chunks, expected } in chats() {
        let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
        check(name, Api::OpenaiChat, &options, body(&chunks).as_bytes(), expected);
    }
}

/// SPEC M9
#[test]
fn thinking_tags_at_the_head_are_thinking() {
    let mut compat = Compat::default();
    compat.thinking_tags = true;
    let options = options(compat, Framing::Sse);
    let cases: &[(&[&str], &str)] = &[
        (&["<think>t</think>\\n\\na"], "think[t] text[a]"),
        (&["\\n<", "thi", "nk>t<", "/th", "ink>", "\\n", "a</think>"], "think[t] text[a</think>]"),
        (&["<thin", "g> a"], "text[<thing> a]"),
        (&["a <think>t</think>"], "text[a <think>t</think>]"),
        (&["<think>t </thin"], "think[t </thin]"),
        (&["<think></think>a"], "text[a]"),
        (&["  "], "text[  ]"),
    ];
    for (pieces, expected) in cases {
        let chunks: Vec<String> =
            pieces.iter().map(|piece| delta(&format!(r#""content":"{piece}""#))).collect();
        let mut chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
        let end = end("stop");
        chunks.push(&end);
        let expected = format!("{expected} stop(stop)");
        check(pieces[0], Api::OpenaiChat, &options, body(&chunks).as_bytes(), &expected);
    }
}

/// SPEC M10
#[test]
fn reasoning_beside_the_output_is_added_where_no_total_says_otherwise() {
    let usage = |total: &str| {
        format!(
            r#"{{"choices":[],"usage":{{"prompt_tokens":3,"completion_tokens":2{total},"completion_tokens_details":{{"reasoning_tokens":7}}}}}}"#
        )
    };
    let options = options(Compat::for_provider("xai"), Framing::Sse);
    for (total, expected) in [
        ("", "stop(stop) 3+0r+0w>9(7t)"),
        (r#","total_tokens":12"#, "stop(stop) 3+0r+0w>9(7t)"),
        (r#","total_tokens":5"#, "stop(stop) 3+0r+0w>2(7t)"),
    ] {
        let body = body(&[&end("stop"), &usage(total)]);
        check(total, Api::OpenaiChat, &options, body.as_bytes(), expected);
    }
}

/// SPEC M4, M12
#[test]
fn bodies_that_are_no_stream_are_typed_errors() {
    let options = options(Compat::default(), Framing::Sse);
    for (body, expected) in [
        ("", "error truncated_stream"),
        (": ping\n\n", "error truncated_stream"),
        ("<html>\n<body>Bad gateway</body>\n</html>", "error malformed_stream"),
        ("{\"choices\": [],\n \"usage\": null}\n", "error malformed_stream"),
        ("{\"id\": 1, oops}", "error malformed_stream"),
        ("{\"id\": 1,\n \"cho", "error truncated_stream"),
        (
            "{\n  \"error\": {\n    \"type\": \"overloaded_error\",\n\n    \"message\": \"busy\"\n  }\n}",
            "error overloaded",
        ),
        ("[{\"error\": {\"code\": 429, \"message\": \"slow\"}}]", "error rate_limit"),
        (
            "event: error\ndata: {\"error\": {\"code\": 429, \"message\": \"slow\"}}\n\n",
            "error rate_limit",
        ),
    ] {
        for api in Api::ALL {
            check(body, api, &options, body.as_bytes(), expected);
        }
    }
    for (payload, expected) in [
        (r#"{"error":"busy"}"#, "error server"),
        (r#"{"error":{"message":"busy","status":"UNAVAILABLE"}}"#, "error overloaded"),
        (r#"{"detail":"busy"}"#, "error server"),
        (r#"{"detail":[{"msg":"busy"}],"status":422}"#, "error invalid_request"),
        (r#"{"message":"busy","code":429}"#, "error rate_limit"),
        (r#"{"code":"429","msg":"busy"}"#, "error rate_limit"),
        (r#"{"object":"error","message":"busy","type":"overloaded"}"#, "error overloaded"),
        (r#"{"success":false,"errors":[{"code":429,"message":"busy"}]}"#, "error rate_limit"),
        (r#"[{"error":{"code":503,"message":"busy"}}]"#, "error overloaded"),
    ] {
        for api in Api::ALL {
            for stream in [
                payload.to_owned(),
                body(&[payload]),
                format!("event: error\ndata: {payload}\n\n"),
                format!("data: {{}}\n\n{payload}\n"),
            ] {
                check(&stream, api, &options, stream.as_bytes(), expected);
            }
        }
    }
    let appended =
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n{\"error\": {\"code\": 429}}\n";
    check("appended", Api::OpenaiChat, &options, appended.as_bytes(), "text[a] error rate_limit");
    let cut = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choi";
    check("cut", Api::OpenaiChat, &options, cut.as_bytes(), "text[a] error truncated_stream");
}

/// Whole answers, and what they come to.
fn answers() -> Vec<(Api, &'static str, &'static str)> {
    vec![
        (
            Api::OpenaiChat,
            r#"{"object":"chat.completion","model":"wire","choices":[{"index":0,
                "message":{"role":"assistant","reasoning_content":"t","content":"a","refusal":null,
                    "tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":""}},
                        {"type":"function","function":{"name":"g","arguments":""}},
                        {"type":"function","function":{"name":"g","arguments":"{\"x\":1}"}}]},
                "finish_reason":"tool_calls"}],

                "usage":{"prompt_tokens":3,"completion_tokens":2}}"#,
            r#"think[t] text[a] call[c f {}] call[call_3 g {}] call[call_4 g {"x":1}] tool_use(tool_calls) 3+0r+0w>2(0t)"#,
        ),
        (
            Api::OpenaiChat,
            r#"{"choices":[{"message":{"content":null,"refusal":"no"},"finish_reason":"stop"}]}"#,
            "text[no] refusal(stop)",
        ),
        (
            Api::OpenaiChat,
            r#"{"choices":[{"message":{"content":"a"},"finish_reason":null}]}"#,
            "text[a] error truncated_stream",
        ),
        (
            Api::AnthropicMessages,
            r#"{"id":"m","type":"message","role":"assistant","model":"wire",
                "content":[{"type":"thinking","thinking":"t","signature":"S"},
                    {"type":"text","text":"a"},
                    {"type":"tool_use","id":"c","name":"f","input":{}},
                    {"type":"tool_use","id":"d","name":"f","input":{"x":1}}],
                "stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":2}}"#,
            r#"think[t|S] text[a] call[c f {}] call[d f {"x":1}] tool_use(tool_use) 3+0r+0w>2(0t)"#,
        ),
        (
            Api::OpenaiResponses,
            r#"{"id":"r","object":"response","status":"completed","model":"wire","error":null,
                "output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"t"}]},
                    {"type":"message","content":[{"type":"output_text","text":"a"}]},
                    {"type":"function_call","call_id":"c","name":"f","arguments":"{}"}],
                "usage":{"input_tokens":3,"output_tokens":2}}"#,
            "think[t] text[a] call[c f {}] tool_use(completed) 3+0r+0w>2(0t)",
        ),
        (
            Api::OpenaiResponses,
            r#"{"object":"response","status":"incomplete","output":[],
                "incomplete_details":{"reason":"max_output_tokens"}}"#,
            "length(incomplete:max_output_tokens)",
        ),
        (
            Api::OpenaiResponses,
            r#"{"object":"response","status":"queued","output":[]}"#,
            "error(queued) malformed_stream",
        ),
        (
            Api::GoogleGenerate,
            r#"{"candidates":[{"content":{"parts":[{"text":"t","thought":true},{"text":"a"},
                    {"functionCall":{"name":"f","args":{"x":1}}}]},"finishReason":"STOP"}],
                "usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2},
                "modelVersion":"wire"}"#,
            r#"think[t] text[a] call[call_2 f {"x":1}] tool_use(STOP) 3+0r+0w>2(0t)"#,
        ),
    ]
}

/// A host that does not stream answers with one JSON object: SPEC M4, M5, M6, M7, M10, M11.
#[test]
fn a_whole_answer_is_decoded_like_its_stream() {
    let options = options(Compat::default(), Framing::Sse);
    for (api, answer, expected) in answers() {
        for (form, body) in [
            ("pretty", answer.to_owned()),
            ("marked", format!("\u{feff}{answer}\r\n")),
            ("in a row", answer.replace('\n', "")),
            ("as an event", body(&[&answer.replace('\n', "")])),
        ] {
            check(&format!("{api} {form}"), api, &options, body.as_bytes(), expected);
        }
    }
    // The default name of an event is no kind of a message.
    let events = format!(
        "event: message\ndata: {{}}\n\n{}",
        body(&[messages::START, &messages::ended("end_turn"), messages::STOP])
    );
    let expected = "stop(end_turn) 5+2r+0w>7(3t)";
    check("message", Api::AnthropicMessages, &options, events.as_bytes(), expected);
}

/// Events without a blank line between them are told apart by what they hold: SPEC M4.
#[test]
fn a_missing_blank_line_loses_nothing() {
    let options = options(Compat::default(), Framing::Sse);
    let (a, b, end) = (delta(r#""content":"a""#), delta(r#""content":"b""#), end("stop"));
    for (name, stream, expected) in [
        (
            "no blank lines",
            format!("data: {a}\ndata: {b}\ndata: {end}\ndata: [DONE]\n\n"),
            "text[ab] stop(stop)",
        ),
        ("no last one", format!("data: {a}\ndata: {end}\n"), "text[a] stop(stop)"),
        ("cut", format!("data: {a}\ndata: {b}\ndata: {{\"choi"), "text[ab] error truncated_stream"),
        (
            "one event on several lines",
            format!("data: {}\n\ndata: {end}\n\n", a.replace(":[", ":\ndata: [")),
            "text[a] stop(stop)",
        ),
        ("one of them no JSON", format!("data: {a}\ndata: oops\n\n"), "error malformed_stream"),
    ] {
        check(name, Api::OpenaiChat, &options, stream.as_bytes(), expected);
    }
}

/// SPEC M4
#[test]
fn json_lines_are_a_framing_too() {
    let options = options(Compat::default(), Framing::Ndjson);
    let lines = format!("{}\r\n\n{}", delta(r#""content":"a""#), end("stop"));
    check("lines", Api::OpenaiChat, &options, lines.as_bytes(), "text[a] stop(stop)");
    let marked = format!("\u{feff}{lines}");
    check("a mark", Api::OpenaiChat, &options, marked.as_bytes(), "text[a] stop(stop)");
}

/// The events are exactly these, in this order: SPEC M1.
#[test]
fn events_of_a_whole_stream() {
    let chunks = [
        raw_model(r#""content":"""#),
        delta(r#""content":"a""#),
        call(r#""index":0,"id":"c","function":{"name":"f","arguments":"{"}"#),
        call(r#""index":0,"function":{"arguments":"}"}"#),
        end("tool_calls"),
    ];
    let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
    let events = decode(
        Api::OpenaiChat,
        &options(Compat::default(), Framing::Sse),
        [body(&chunks).as_bytes()],
    );
    let lines: Vec<String> =
        events.iter().map(|event| serde_json::to_string(event).expect("JSON")).collect();
    assert_eq!(
        lines,
        [
            r#"{"type":"start","provider":"p","api":"openai-chat","model":"wire"}"#,
            r#"{"type":"text_start","index":0}"#,
            r#"{"type":"text_delta","index":0,"delta":"a"}"#,
            r#"{"type":"text_end","index":0}"#,
            r#"{"type":"toolcall_start","index":1,"id":"c","name":"f"}"#,
            r#"{"type":"toolcall_delta","index":1,"delta":"{"}"#,
            r#"{"type":"toolcall_delta","index":1,"delta":"}"}"#,
            r#"{"type":"toolcall_end","index":1,"call":{"id":"c","name":"f","arguments":{}}}"#,
            r#"{"type":"done","stop_reason":"tool_use","stop_raw":"tool_calls","usage":{"input":0,"output":0,"cache_read":0,"cache_write":0,"reasoning":0}}"#,
        ]
    );
}

fn raw_model(fields: &str) -> String {
    format!(r#"{{"model":"wire","choices":[{{"index":0,"delta":{{{fields}}}}}]}}"#)
}

/// SPEC M3
#[test]
fn a_long_stream_costs_what_it_is_long() {
    let mut decoder = StreamDecoder::new(Api::OpenaiChat, options(Compat::default(), Framing::Sse));
    let first = body(&[&call(r#""index":0,"id":"c","function":{"name":"f","arguments":"["}"#)]);
    let chunk = body(&[&call(r#""index":0,"function":{"arguments":"1,"}"#)]);
    let mut out = Vec::new();
    decoder.push(first.as_bytes(), &mut out);
    for _ in 0..20_000 {
        out.clear();
        decoder.push(chunk.as_bytes(), &mut out);
        // Each piece makes one event that is as long as what is new in it.
        assert_eq!(out, [StreamEvent::ToolcallDelta { index: 0, delta: "1,".to_owned() }]);
    }
}
