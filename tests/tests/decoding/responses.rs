//! Responses: hand-written streams, one for each thing that hosts do differently.

use super::*;

/// An event of a Responses stream.
fn event(kind: &str, fields: &str) -> String {
    format!(r#"{{"type":"response.{kind}",{fields}}}"#)
}

/// An item at this place of the output, announced.
fn added(index: usize, item: &str) -> String {
    event("output_item.added", &format!(r#""output_index":{index},"item":{{{item}}}"#))
}

/// The same, complete.
pub(super) fn done(index: usize, item: &str) -> String {
    event("output_item.done", &format!(r#""output_index":{index},"item":{{{item}}}"#))
}

/// What an item at this place grows by.
fn part(kind: &str, index: usize, delta: &str) -> String {
    let fields = format!(r#""output_index":{index},"content_index":0,"delta":"{delta}""#);
    event(&format!("{kind}.delta"), &fields)
}

/// The whole response at its end.
pub(super) fn finished(status: &str, fields: &str) -> String {
    event(status, &format!(r#""response":{{"model":"wire","status":"{status}"{fields}}}"#))
}

pub(super) fn responses() -> Vec<Chat> {
    let created = || event("created", r#""response":{"model":"wire","status":"in_progress"}"#);
    let text = |index: usize, delta: &str| part("output_text", index, delta);
    let arguments = |index: usize, delta: &str| part("function_call_arguments", index, delta);
    let completed = || finished("completed", "");
    let raw = |payload: &str| payload.to_owned();
    let message = |text: &str| {
        format!(r#""type":"message","content":[{{"type":"output_text","text":"{text}"}}]"#)
    };
    vec![
        // Endings (SPEC M5, M11, M12)
        chat(
            "text",
            &[created(), added(0, r#""type":"message""#), text(0, "a"), text(0, "b"), completed()],
            "text[ab] stop(completed)",
        ),
        chat("no end", &[created(), text(0, "a"), raw("[DONE]")], "text[a] error truncated_stream"),
        chat("after the end", &[completed(), text(0, "a")], "stop(completed)"),
        chat("no status", &[raw(r#"{"type":"response.completed"}"#)], "stop(completed)"),
        chat(
            "a status that lags behind",
            &[raw(r#"{"type":"response.completed","response":{"status":"in_progress"}}"#)],
            "stop(completed)",
        ),
        chat(
            "the cap",
            &[
                text(0, "a"),
                arguments(1, "{"),
                finished("incomplete", r#","incomplete_details":{"reason":"max_output_tokens"}"#),
            ],
            "text[a] call[call_1  raw {] length(incomplete:max_output_tokens)",
        ),
        chat(
            "a filter",
            &[finished("incomplete", r#","incomplete_details":{"reason":"content_filter"}"#)],
            "refusal(incomplete:content_filter)",
        ),
        chat(
            "another reason",
            &[finished("incomplete", r#","incomplete_details":{"reason":"tired"}"#)],
            "error(incomplete:tired) malformed_stream",
        ),
        chat(
            "failed",
            &[text(0, "a"), finished("failed", r#","error":{"code":"rate_limit_exceeded"}"#)],
            "text[a] error(failed) rate_limit",
        ),
        chat("failed, not why", &[finished("failed", r#","error":null"#)], "error(failed) server"),
        chat("cancelled", &[finished("cancelled", "")], "error(cancelled) server"),
        chat(
            "an error, then failed",
            &[
                raw(r#"{"type":"error","code":"insufficient_quota","message":"m","param":null}"#),
                finished("failed", r#","error":{"code":"other"}"#),
            ],
            "error(failed) quota",
        ),
        chat(
            "an error alone",
            &[text(0, "a"), raw(r#"{"type":"error","error":{"code":"context_length_exceeded"}}"#)],
            "text[a] error context_overflow",
        ),
        chat(
            "an error, then more",
            &[raw(r#"{"type":"error","error":{"code":"server_error"}}"#), text(0, "a")],
            "error server",
        ),
        chat(
            "an error, then what is not JSON",
            &[raw(r#"{"type":"error","error":{"code":"server_error"}}"#), raw("oops")],
            "error server",
        ),
        chat(
            "an error without a type",
            &[raw(r#"{"error":{"code":429,"message":"slow"}}"#)],
            "error rate_limit",
        ),
        chat(
            "refusal",
            &[part("refusal", 0, "n"), part("refusal", 0, "o"), completed()],
            "text[no] refusal(completed)",
        ),
        chat(
            "refusal, whole",
            &[
                done(0, r#""type":"message","content":[{"type":"refusal","refusal":"no"}]"#),
                completed(),
            ],
            "text[no] refusal(completed)",
        ),
        // Items (SPEC M8)
        chat(
            "ids that rotate",
            &[
                added(0, r#""type":"message","id":"1""#),
                event("output_text.delta", r#""output_index":0,"item_id":"2","delta":"a""#),
                event("output_text.delta", r#""output_index":0,"item_id":"3","delta":"b""#),
                done(0, &format!(r#""id":"4",{}"#, message("ab"))),
                completed(),
            ],
            "text[ab] stop(completed)",
        ),
        chat(
            "no places",
            &[
                event("output_item.added", r#""item":{"type":"message","id":"1"}"#),
                event("output_text.delta", r#""item_id":"1","delta":"a""#),
                event("output_text.delta", r#""delta":"b""#),
                event("output_item.done", &format!(r#""item":{{"id":"1",{}}}"#, message("ab"))),
                event("output_item.done", &format!(r#""item":{{"id":"2",{}}}"#, message("c"))),
                completed(),
            ],
            "text[ab] text[c] stop(completed)",
        ),
        chat(
            "parts whose places go on from the item before",
            &[
                event("output_text.delta", r#""output_index":1,"content_index":4,"delta":"a""#),
                event("output_text.done", r#""output_index":1,"content_index":4,"text":"a""#),
                event("output_text.done", r#""output_index":1,"content_index":5,"text":"b""#),
                event(
                    "content_part.done",
                    r#""output_index":1,"content_index":5,"part":{"type":"output_text","text":"b"}"#,
                ),
                done(
                    1,
                    r#""type":"message","content":[{"text":""},{"text":"a"},{"text":"b"},{"text":"c"}]"#,
                ),
                completed(),
            ],
            "text[a] text[b] text[c] stop(completed)",
        ),
        chat(
            "one place for all",
            &[
                added(0, r#""type":"reasoning""#),
                part("reasoning_text", 0, "t"),
                added(0, r#""type":"message""#),
                text(0, "a"),
                done(0, r#""type":"function_call","call_id":"c","name":"f","arguments":"{}""#),
                completed(),
            ],
            "think[t] text[a] call[c f {}] tool_use(completed)",
        ),
        chat(
            "everything at the end",
            &[finished(
                "completed",
                &format!(
                    r#","output":[{{"type":"reasoning","summary":[{{"text":"s"}}]}},{{{}}},{{"type":"function_call","call_id":"c","name":"f","arguments":"{{\"x\":1}}"}}]"#,
                    message("a")
                ),
            )],
            r#"think[s] text[a] call[c f {"x":1}] tool_use(completed)"#,
        ),
        chat(
            "the end repeats what came and completes what is open",
            &[
                done(0, &message("a")),
                added(1, r#""type":"function_call","call_id":"c","name":"f""#),
                finished(
                    "completed",
                    &format!(
                        r#","output":[{{{}}},{{"type":"function_call","arguments":"{{\"x\":1}}"}}]"#,
                        message("a")
                    ),
                ),
            ],
            r#"text[a] call[c f {"x":1}] tool_use(completed)"#,
        ),
        chat(
            "the end brings what did not come",
            &[
                done(0, r#""type":"reasoning","summary":[{"text":"s"}]"#),
                done(1, &message("a")),
                finished(
                    "completed",
                    &format!(
                        r#","output":[{{"type":"reasoning","summary":[{{"text":"s"}}]}},{{{}}},{{{}}},{{"type":"function_call","call_id":"c","name":"f","arguments":"{{}}"}}]"#,
                        message("a"),
                        message("b")
                    ),
                ),
            ],
            "think[s] text[a] text[b] call[c f {}] tool_use(completed)",
        ),
        chat(
            "the end of a socket's stream",
            &[text(0, "a"), raw(r#"{"type":"response.done","response":{"status":"completed"}}"#)],
            "text[a] stop(completed)",
        ),
        chat(
            "a tool of the host that fails",
            &[
                event("mcp_list_tools.failed", r#""output_index":0,"error":{"message":"no"}"#),
                text(1, "a"),
                completed(),
            ],
            "text[a] stop(completed)",
        ),
        chat(
            "an empty message",
            &[added(0, r#""type":"message""#), text(0, ""), done(0, &message("")), completed()],
            "stop(completed)",
        ),
        chat(
            "keep-alives and the unknown",
            &[
                raw(r#"{"type":"keepalive","sequence_number":3}"#),
                event("future", r#""output_index":0,"delta":{"x":1}"#),
                event("in_progress", r#""response":null"#),
                completed(),
            ],
            "stop(completed)",
        ),
        // Thinking (SPEC M9)
        chat(
            "a summary of two parts, with its cipher",
            &[
                added(0, r#""type":"reasoning","summary":[]"#),
                event(
                    "reasoning_summary_text.delta",
                    r#""output_index":0,"summary_index":0,"delta":"s""#,
                ),
                event(
                    "reasoning_summary_text.done",
                    r#""output_index":0,"summary_index":0,"text":"s""#,
                ),
                event(
                    "reasoning_summary_text.done",
                    r#""output_index":0,"summary_index":1,"text":"t""#,
                ),
                part("reasoning_text", 0, "not both"),
                done(0, r#""type":"reasoning","summary":[{"text":"s"}],"encrypted_content":"C""#),
                text(1, "a"),
                completed(),
            ],
            "think[s\n\nt] opaque[openai-responses {\"type\":\"reasoning\",\"summary\":[{\"text\":\"s\"}],\"encrypted_content\":\"C\"}] text[a] stop(completed)",
        ),
        chat(
            "a cipher alone",
            &[done(0, r#""type":"reasoning","summary":[],"encrypted_content":"C""#), completed()],
            r#"opaque[openai-responses {"type":"reasoning","summary":[],"encrypted_content":"C"}] stop(completed)"#,
        ),
        chat(
            "raw text before a summary",
            &[
                done(
                    0,
                    r#""type":"reasoning","summary":[{"text":"s"}],"content":[{"text":"t"},{"text":"u"}]"#,
                ),
                done(
                    1,
                    r#""type":"reasoning","summary":[{"text":"s"},{"text":"t"}],"content":null"#,
                ),
                completed(),
            ],
            "think[tu] think[s\n\nt] stop(completed)",
        ),
        // Calls (SPEC M6, M7)
        chat(
            "calls that interleave",
            &[
                added(
                    0,
                    r#""type":"function_call","id":"i","call_id":"c","name":"f","arguments":"""#,
                ),
                added(1, r#""type":"function_call","id":"j","name":"g","arguments":"""#),
                arguments(0, "{\\\"x\\\":"),
                arguments(1, "[1"),
                arguments(0, "1}"),
                arguments(1, "]"),
                event(
                    "function_call_arguments.done",
                    r#""output_index":0,"arguments":"{\"x\":1}""#,
                ),
                done(1, r#""type":"function_call","name":"g","arguments":"[1]""#),
                done(0, r#""type":"function_call","name":"f","arguments":"{\"x\":1}""#),
                text(2, "a"),
                completed(),
            ],
            r#"call[c f {"x":1}] call[j g raw [1]] text[a] tool_use(completed)"#,
        ),
        chat(
            "arguments at once, as an object, and none",
            &[
                added(0, r#""type":"function_call","call_id":"c","name":"f""#),
                event(
                    "function_call_arguments.done",
                    r#""output_index":0,"arguments":"{\"x\":1}""#,
                ),
                done(
                    0,
                    r#""type":"function_call","call_id":"c","name":"f","arguments":"{\"x\":1}""#,
                ),
                done(1, r#""type":"function_call","call_id":"c","name":"f","arguments":{"x":2}"#),
                done(2, r#""type":"function_call","call_id":"","name":"f","arguments":"""#),
                done(3, r#""type":"function_call","call_id":"d","name":"f","arguments":[1]"#),
                completed(),
            ],
            r#"call[c f {"x":1}] call[c_2 f {"x":2}] call[call_2 f {}] call[d f raw [1]] tool_use(completed)"#,
        ),
        chat(
            "arguments before the call",
            &[
                arguments(0, "{}"),
                done(0, r#""type":"function_call","call_id":"c","name":"f","arguments":"{}""#),
                completed(),
            ],
            "call[c f {}] tool_use(completed)",
        ),
        chat(
            "custom tools carry text, whatever it looks like",
            &[
                added(0, r#""type":"custom_tool_call","call_id":"c","name":"f","input":"""#),
                part("custom_tool_call_input", 0, "print("),
                part("custom_tool_call_input", 0, "1)"),
                event("custom_tool_call_input.done", r#""output_index":0,"input":"print(1)""#),
                done(0, r#""type":"custom_tool_call","call_id":"c","name":"f","input":"print(1)""#),
                done(1, r#""type":"custom_tool_call","call_id":"d","name":"f","input":"{}""#),
                done(2, r#""type":"custom_tool_call","call_id":"e","name":"f","input":"""#),
                completed(),
            ],
            "call[c f raw print(1)] call[d f raw {}] call[e f raw ] tool_use(completed)",
        ),
        chat(
            "built-in tools that the client runs",
            &[
                added(0, r#""type":"shell_call","call_id":"c","action":{"commands":[]}"#),
                event("shell_call_command.delta", r#""output_index":0,"delta":"ls""#),
                done(0, r#""type":"shell_call","call_id":"c","action":{"commands":["ls"]}"#),
                done(1, r#""type":"apply_patch_call","call_id":"d","operation":{"path":"a"}"#),
                done(2, r#""type":"computer_call","call_id":"e","actions":[{"type":"wait"}]"#),
                completed(),
            ],
            r#"call[c shell_call {"commands":["ls"]}] call[d apply_patch_call {"path":"a"}] call[e computer_call {"actions":[{"type":"wait"}]}] tool_use(completed)"#,
        ),
        chat(
            "tools that the host runs",
            &[
                added(0, r#""type":"web_search_call","id":"w""#),
                event("web_search_call.searching", r#""output_index":0"#),
                done(0, r#""type":"web_search_call","id":"w","action":{"query":"q"}"#),
                added(1, r#""type":"mcp_list_tools","id":"never done""#),
                done(2, r#""type":"compaction","encrypted_content":"C""#),
                text(3, "a"),
                completed(),
            ],
            r#"opaque[openai-responses {"type":"web_search_call","id":"w","action":{"query":"q"}}] opaque[openai-responses {"type":"compaction","encrypted_content":"C"}] text[a] stop(completed)"#,
        ),
        // Usage (SPEC M10)
        chat(
            "usage",
            &[
                event("in_progress", r#""response":{"usage":null}"#),
                finished(
                    "completed",
                    r#","usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":1},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":15}"#,
                ),
            ],
            "stop(completed) 5+4r+1w>5(2t)",
        ),
        chat(
            "usage of a failure, in part",
            &[finished(
                "failed",
                r#","error":{"code":"server_error"},"usage":{"input_tokens":3,"total_tokens":5,"input_tokens_details":{"cached_tokens":4}}"#,
            )],
            "error(failed) server 0+4r+0w>2(0t)",
        ),
        // Payloads that are not what they should be
        chat("not JSON", &[text(0, "a"), raw("{oops")], "text[a] error malformed_stream"),
        chat(
            "types that are not promised",
            &[
                event("output_item.added", r#""output_index":"0","item":[]"#),
                event(
                    "output_text.delta",
                    r#""output_index":"0","content_index":null,"delta":"a\ud83d""#,
                ),
                event("output_text.delta", r#""output_index":0,"delta":null,"item_id":7"#),
                event("output_item.done", r#""output_index":0,"item":null"#),
                finished("completed", r#","output":{},"usage":[],"error":{}"#),
            ],
            "text[a\u{fffd}] stop(completed)",
        ),
    ]
}

/// SPEC M5, M6, M7, M8, M9, M10, M11, M12
#[test]
fn responses_quirks() {
    let options = options(Compat::default(), Framing::Sse);
    for Chat { name, chunks, expected } in responses() {
        let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
        check(name, Api::OpenaiResponses, &options, body(&chunks).as_bytes(), expected);
    }
}

/// The model is the first that the stream names, and the type may stand in the event's name alone.
#[test]
fn responses_are_named_by_their_first_event() {
    let body = "event: response.queued\ndata: {\"response\":{\"model\":\"wire\"}}\n\n\
        event: response.output_text.delta\ndata: {\"delta\":\"a\"}\n\n\
        event: response.completed\ndata: {\"response\":{\"model\":\"other\"}}\n\n";
    let options = options(Compat::default(), Framing::Sse);
    check("names", Api::OpenaiResponses, &options, body.as_bytes(), "text[a] stop(completed)");
    let events = decode(Api::OpenaiResponses, &options, [body.as_bytes()]);
    assert_eq!(message(&events).model, "wire");
}
