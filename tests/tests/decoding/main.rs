//! Hand-written streams, one for each thing that hosts do differently, and what they come to.
//!
//! Every stream is decoded in one piece, byte by byte and at every split, and its events are checked
//! against the grammar; then streams are mutated at random and checked again.

use ai::{
    Api, Assembler, AssistantMessage, Compat, ContentBlock, DecodeOptions, Framing, MessageId,
    StreamDecoder, StreamEvent, Timestamp, ToolCall,
};
use tests::grammar;

mod generates;
mod messages;
mod mutations;
mod responses;

use self::generates::generates;
use self::messages::messages;

fn options(compat: Compat, framing: Framing) -> DecodeOptions {
    DecodeOptions { provider: "p".to_owned(), model: "asked".to_owned(), compat, framing }
}

fn decode<'a>(
    api: Api,
    options: &DecodeOptions,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<StreamEvent> {
    let mut decoder = StreamDecoder::new(api, options.clone());
    let mut events = Vec::new();
    for piece in pieces {
        decoder.push(piece, &mut events);
    }
    decoder.finish(&mut events);
    events
}

fn message(events: &[StreamEvent]) -> AssistantMessage {
    let mut assembler = Assembler::new(MessageId::from("m"), Timestamp(0));
    for event in events {
        assembler.push(event);
    }
    assembler.finish()
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
                end("length"),
            ],
            r#"call[c f raw [1]] call[d f raw {"x":] call[e f {"x":1} noted] call[g f {}] length(length)"#,
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
        // Usage (SPEC M10)
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
    let appended =
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n{\"error\": {\"code\": 429}}\n";
    check("appended", Api::OpenaiChat, &options, appended.as_bytes(), "text[a] error rate_limit");
    let cut = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choi";
    check("cut", Api::OpenaiChat, &options, cut.as_bytes(), "text[a] error truncated_stream");
}

/// SPEC M4
#[test]
fn json_lines_are_a_framing_too() {
    let options = options(Compat::default(), Framing::Ndjson);
    let lines = format!("{}\r\n\n{}", delta(r#""content":"a""#), end("stop"));
    check("lines", Api::OpenaiChat, &options, lines.as_bytes(), "text[a] stop(stop)");
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
