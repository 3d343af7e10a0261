//! Anthropic's Messages: hand-written streams, one for each thing that hosts do differently.

use super::*;

pub(super) const START: &str = r#"{"type":"message_start","message":{"model":"wire","content":[],"usage":{"input_tokens":5,"cache_read_input_tokens":2,"output_tokens":1}}}"#;
pub(super) const STOP: &str = r#"{"type":"message_stop"}"#;

pub(super) fn block(index: usize, fields: &str) -> String {
    format!(r#"{{"type":"content_block_start","index":{index},"content_block":{{{fields}}}}}"#)
}

pub(super) fn grown(index: usize, fields: &str) -> String {
    format!(r#"{{"type":"content_block_delta","index":{index},"delta":{{{fields}}}}}"#)
}

pub(super) fn closed(index: usize) -> String {
    format!(r#"{{"type":"content_block_stop","index":{index}}}"#)
}

pub(super) fn ended(word: &str) -> String {
    format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{word}"}},"usage":{{"output_tokens":7,"input_tokens":null,"output_tokens_details":{{"thinking_tokens":3}}}}}}"#
    )
}

pub(super) fn messages() -> Vec<Chat> {
    let raw = |event: &str| event.to_owned();
    let text = |index, text: &str| {
        vec![
            block(index, r#""type":"text","text":"""#),
            grown(index, &format!(r#""type":"text_delta","text":"{text}""#)),
            closed(index),
        ]
    };
    let within = |events: &[Vec<String>], word: &str| {
        let mut all = vec![raw(START), raw(r#"{"type":"ping"}"#)];
        all.extend(events.concat());
        all.push(ended(word));
        all.push(raw(STOP));
        all
    };
    let cases: Vec<(&'static str, Vec<String>, &'static str)> = vec![
        (
            "text",
            within(&[text(0, "a"), text(1, "b")], "end_turn"),
            "text[a] text[b] stop(end_turn) 5+2r+0w>7(3t)",
        ),
        ("pause", within(&[], "pause_turn"), "stop(pause_turn) 5+2r+0w>7(3t)"),
        ("refusal", within(&[text(0, "")], "refusal"), "refusal(refusal) 5+2r+0w>7(3t)"),
        (
            "window",
            within(&[], "model_context_window_exceeded"),
            "context_overflow(model_context_window_exceeded) 5+2r+0w>7(3t)",
        ),
        (
            "unknown word",
            within(&[text(0, "a")], "tired"),
            "text[a] error(tired) malformed_stream 5+2r+0w>7(3t)",
        ),
        (
            "no end marker",
            vec![raw(START), ended("end_turn")],
            "error(end_turn) truncated_stream 5+2r+0w>7(3t)",
        ),
        (
            "after the end",
            [within(&[], "end_turn"), vec![raw("[DONE]"), raw(START)]].concat(),
            "stop(end_turn) 5+2r+0w>7(3t)",
        ),
        (
            "thinking, signed and redacted",
            within(
                &[
                    vec![
                        block(0, r#""type":"thinking","thinking":"","signature":"""#),
                        grown(0, r#""type":"thinking_delta","thinking":"t""#),
                        grown(0, r#""type":"signature_delta","signature":"S""#),
                        closed(0),
                        block(1, r#""type":"thinking","thinking":"""#),
                        grown(1, r#""type":"signature_delta","signature":"Q""#),
                        closed(1),
                        block(2, r#""type":"redacted_thinking","data":"D""#),
                        closed(2),
                        block(3, r#""type":"thinking","thinking":"""#),
                        closed(3),
                        // Found by mutation: without its cipher there is no block, not an empty one.
                        block(4, r#""type":"redacted_thinking","data":["D"]"#),
                        closed(4),
                    ],
                    text(5, "a"),
                ],
                "end_turn",
            ),
            "think[t|S] think[|Q] redacted[|D] text[a] stop(end_turn) 5+2r+0w>7(3t)",
        ),
        (
            "blocks that are not closed",
            within(
                &[vec![
                    block(0, r#""type":"thinking","thinking":"""#),
                    grown(0, r#""type":"signature_delta","signature":"Q""#),
                    block(1, r#""type":"text","text":"""#),
                    grown(1, r#""type":"text_delta","text":"a""#),
                    block(2, r#""type":"redacted_thinking","data":"""#),
                ]],
                "end_turn",
            ),
            "think[|Q] text[a] stop(end_turn) 5+2r+0w>7(3t)",
        ),
        (
            "calls: streamed, whole, without arguments, interleaved",
            within(
                &[vec![
                    block(0, r#""type":"tool_use","id":"c","name":"f","input":{}"#),
                    grown(0, r#""type":"input_json_delta","partial_json":"""#),
                    block(1, r#""type":"tool_use","id":"c","name":"g","input":{"y":2}"#),
                    grown(0, r#""type":"input_json_delta","partial_json":"{\"x\":""#),
                    closed(1),
                    grown(0, r#""type":"input_json_delta","partial_json":"1}""#),
                    closed(0),
                    block(2, r#""type":"tool_use","id":"d","name":"h","input":{}"#),
                    closed(2),
                ]],
                "tool_use",
            ),
            r#"call[c f {"x":1}] call[c_2 g {"y":2}] call[d h {}] tool_use(tool_use) 5+2r+0w>7(3t)"#,
        ),
        (
            "input that is text where an object belongs",
            within(
                &[vec![
                    block(0, r#""type":"tool_use","id":"c","name":"f","input":"""#),
                    closed(0),
                    block(1, r#""type":"tool_use","id":"d","name":"f","input":"{\"x\":1}""#),
                    closed(1),
                ]],
                "tool_use",
            ),
            r#"call[c f {}] call[d f {"x":1}] tool_use(tool_use) 5+2r+0w>7(3t)"#,
        ),
        (
            "arguments cut off",
            within(
                &[vec![
                    block(0, r#""type":"tool_use","id":"c","name":"f","input":{}"#),
                    grown(0, r#""type":"input_json_delta","partial_json":"{\"x\":""#),
                ]],
                "max_tokens",
            ),
            r#"call[c f raw {"x":] length(max_tokens) 5+2r+0w>7(3t)"#,
        ),
        (
            "server tools and unknown blocks",
            within(
                &[
                    vec![
                        block(
                            0,
                            r#""type":"server_tool_use","id":"s","name":"web_search","input":{}"#,
                        ),
                        grown(0, r#""type":"input_json_delta","partial_json":"{\"q\":""#),
                        grown(0, r#""type":"input_json_delta","partial_json":"1}""#),
                        closed(0),
                        block(1, r#""type":"compaction","content":null"#),
                        grown(1, r#""type":"compaction_delta","content":"sum""#),
                        grown(1, r#""type":"compaction_delta","content":"mary""#),
                        closed(1),
                        block(2, r#""type":"next_year","x":[1]"#),
                        closed(2),
                    ],
                    text(3, "a"),
                ],
                "end_turn",
            ),
            r#"opaque[anthropic-messages {"type":"server_tool_use","id":"s","name":"web_search","input":{"q":1}}] opaque[anthropic-messages {"type":"compaction","content":"summary"}] opaque[anthropic-messages {"type":"next_year","x":[1]}] text[a] stop(end_turn) 5+2r+0w>7(3t)"#,
        ),
        (
            "everything in the start",
            vec![
                raw(
                    r#"{"type":"message_start","message":{"model":"wire","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"c","name":"f","input":{"x":1}}],"stop_reason":"tool_use"}}"#,
                ),
                raw(STOP),
            ],
            r#"text[a] call[c f {"x":1}] tool_use(tool_use)"#,
        ),
        (
            "deltas without starts",
            vec![
                raw(START),
                grown(0, r#""type":"thinking_delta","thinking":"t""#),
                grown(1, r#""type":"text_delta","text":"a""#),
                grown(1, r#""type":"citations_delta","citation":{}"#),
                raw(STOP),
            ],
            "think[t] text[a] stop 5+2r+0w>1(0t)",
        ),
        (
            "error event",
            vec![
                raw(START),
                block(0, r#""type":"text","text":"""#),
                grown(0, r#""type":"text_delta","text":"a""#),
                raw(r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#),
                raw(STOP),
            ],
            "text[a] error overloaded 5+2r+0w>1(0t)",
        ),
        (
            "unknown events",
            [vec![raw(r#"{"type":"future","usage":{"input_tokens":9}}"#)], within(&[], "end_turn")]
                .concat(),
            "stop(end_turn) 5+2r+0w>7(3t)",
        ),
        ("not JSON", vec![raw(START), raw("{oops")], "error malformed_stream 5+2r+0w>1(0t)"),
    ];
    cases.into_iter().map(|(name, chunks, expected)| Chat { name, chunks, expected }).collect()
}

/// SPEC M5, M6, M7, M8, M9, M10, M11, M12
#[test]
fn messages_quirks() {
    let options = options(Compat::default(), Framing::Sse);
    for Chat { name, chunks, expected } in messages() {
        let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
        check(name, Api::AnthropicMessages, &options, body(&chunks).as_bytes(), expected);
    }
}
