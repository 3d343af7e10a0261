//! Google's generateContent: hand-written streams, one for each thing that hosts do differently.

use super::*;

/// A chunk of candidate 0 with these parts.
pub(super) fn parts(parts: &str) -> String {
    format!(r#"{{"candidates":[{{"content":{{"role":"model","parts":[{parts}]}},"index":0}}]}}"#)
}

/// A chunk that ends candidate 0.
pub(super) fn finished(word: &str) -> String {
    format!(r#"{{"candidates":[{{"finishReason":"{word}"}}]}}"#)
}

pub(super) fn generates() -> Vec<Chat> {
    let raw = |chunk: &str| chunk.to_owned();
    let text = |text: &str| parts(&format!(r#"{{"text":"{text}"}}"#));
    let thought = |text: &str| parts(&format!(r#"{{"text":"{text}","thought":true}}"#));
    let call = |fields: &str| parts(&format!(r#"{{"functionCall":{{{fields}}}}}"#));
    vec![
        // Endings (SPEC M5, M11)
        chat("stop", &[text("a"), text("b"), finished("STOP")], "text[ab] stop(STOP)"),
        chat("no finish reason", &[text("a")], "text[a] error truncated_stream"),
        chat("done mark alone", &[text("a"), raw("[DONE]")], "text[a] error truncated_stream"),
        chat("length", &[text("a"), finished("MAX_TOKENS")], "text[a] length(MAX_TOKENS)"),
        chat("safety", &[finished("SAFETY")], "refusal(SAFETY)"),
        chat("prohibited", &[finished("PROHIBITED_CONTENT")], "refusal(PROHIBITED_CONTENT)"),
        chat(
            "several finishes, the last counts",
            &[
                raw(
                    r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}"#,
                ),
                raw(
                    r#"{"candidates":[{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}]}"#,
                ),
                finished("RECITATION"),
            ],
            "text[ab] refusal(RECITATION)",
        ),
        chat("unknown word", &[finished("TIRED")], "error(TIRED) malformed_stream"),
        chat(
            "a call that could not be read",
            &[raw(
                r#"{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"print(x"}]}"#,
            )],
            "error(MALFORMED_FUNCTION_CALL) malformed_stream",
        ),
        chat(
            "prompt block",
            &[raw(
                r#"{"promptFeedback":{"blockReason":"OTHER"},"usageMetadata":{"promptTokenCount":3}}"#,
            )],
            "refusal(promptFeedback:OTHER) 3+0r+0w>0(0t)",
        ),
        chat(
            "feedback without a block",
            &[raw(r#"{"promptFeedback":{"safetyRatings":[]},"candidates":[{}]}"#)],
            "error truncated_stream",
        ),
        chat(
            "another candidate",
            &[
                raw(
                    r#"{"candidates":[{"index":1,"content":{"parts":[{"text":"x"}]},"finishReason":"STOP"}]}"#,
                ),
                text("a"),
                finished("MAX_TOKENS"),
            ],
            "text[a] length(MAX_TOKENS)",
        ),
        chat(
            "nothing where something is promised",
            &[
                raw("{}"),
                raw(r#"{"candidates":null}"#),
                raw(r#"{"candidates":[null,{"content":null}]}"#),
                raw(r#"{"candidates":[{"content":{"parts":null}}]}"#),
                raw(r#"{"candidates":[{"content":{"parts":[null,{},{"text":null}]}}]}"#),
                finished("STOP"),
            ],
            "stop(STOP)",
        ),
        // Blocks and signatures (SPEC M8, M9)
        chat(
            "kinds alternate",
            &[
                thought("t"),
                thought("u"),
                text(""),
                text("a"),
                call(r#""name":"f""#),
                text("b"),
                thought("v"),
                finished("STOP"),
            ],
            "think[tu] text[a] call[call_2 f {}] text[b] think[v] tool_use(STOP)",
        ),
        chat(
            "a signed part ends its block",
            &[
                parts(r#"{"text":"t","thought":true,"thoughtSignature":"S"}"#),
                thought("u"),
                parts(r#"{"text":"a","thoughtSignature":"T"}"#),
                text("b"),
                parts(r#"{"text":"","thoughtSignature":"U"}"#),
                parts(r#"{"thoughtSignature":"V"}"#),
                parts(r#"{"text":"","thought":true,"thoughtSignature":"W"}"#),
                finished("STOP"),
            ],
            r#"think[t|S] think[u] text[a] opaque[google-generate {"thoughtSignature":"T"}] text[b] opaque[google-generate {"text":"","thoughtSignature":"U"}] opaque[google-generate {"text":"","thoughtSignature":"V"}] think[|W] stop(STOP)"#,
        ),
        chat(
            "what is modelled nowhere is kept",
            &[
                text("a"),
                parts(
                    r#"{"executableCode":{"language":"PYTHON","code":"1"},"thoughtSignature":"S"}"#,
                ),
                parts(r#"{"codeExecutionResult":{"outcome":"OUTCOME_OK"}}"#),
                parts(r#"{"inlineData":{"mimeType":"image/png","data":"QQ=="}}"#),
                text("b"),
                raw(r#"{"candidates":[{"groundingMetadata":{"x":1}}]}"#),
                raw(
                    r#"{"candidates":[{"content":{"parts":[{"text":"c"}]},"groundingMetadata":{"x":1},"finishReason":"STOP"}]}"#,
                ),
            ],
            r#"text[a] opaque[google-generate {"executableCode":{"language":"PYTHON","code":"1"},"thoughtSignature":"S"}] opaque[google-generate {"codeExecutionResult":{"outcome":"OUTCOME_OK"}}] opaque[google-generate {"inlineData":{"mimeType":"image/png","data":"QQ=="}}] text[bc] opaque[google-generate {"groundingMetadata":{"x":1}}] stop(STOP)"#,
        ),
        // Calls (SPEC M6, M7)
        chat(
            "calls with and without ids",
            &[
                parts(
                    r#"{"functionCall":{"id":"c","name":"f","args":{"x":1}},"thoughtSignature":"S"},{"functionCall":{"id":"c","name":"f"}}"#,
                ),
                call(r#""name":"g","args":null"#),
                call(r#""name":"g","args":[1]"#),
                finished("STOP"),
            ],
            r#"call[c f {"x":1}|S] call[c_2 f {}] call[call_2 g {}] call[call_3 g raw [1]] tool_use(STOP)"#,
        ),
        chat(
            "streamed arguments",
            &[
                parts(
                    r#"{"functionCall":{"name":"f","willContinue":true},"thoughtSignature":"S"}"#,
                ),
                call(
                    r#""partialArgs":[{"jsonPath":"$.a","stringValue":"x","willContinue":true}],"willContinue":true"#,
                ),
                text(""),
                call(
                    r#""partialArgs":[{"jsonPath":"$.a","stringValue":"y"},{"jsonPath":"$.b[0].c","numberValue":1}],"willContinue":true"#,
                ),
                call(""),
                call(""),
                call(r#""name":"f","willContinue":true"#),
                call(r#""partialArgs":[{"jsonPath":"$.a","boolValue":true}],"willContinue":true"#),
                call(r#""name":"f","partialArgs":[{"jsonPath":"$.a","stringValue":"z"}]"#),
                finished("STOP"),
            ],
            r#"call[call_0 f {"a":"xy","b":[{"c":1}]}|S] call[call_1 f {"a":true}] call[call_2 f {"a":"z"}] tool_use(STOP)"#,
        ),
        chat(
            "streamed arguments without their end",
            &[
                call(r#""name":"f","willContinue":true"#),
                call(r#""partialArgs":[{"jsonPath":"$.a","stringValue":"x"}],"willContinue":true"#),
                finished("STOP"),
            ],
            r#"call[call_0 f {"a":"x"}] tool_use(STOP)"#,
        ),
        chat(
            "streamed arguments cut off",
            &[
                call(r#""name":"f","willContinue":true"#),
                call(r#""partialArgs":[{"jsonPath":"$.a","stringValue":"x"}],"willContinue":true"#),
                finished("MAX_TOKENS"),
            ],
            r#"call[call_0 f raw {"a":"x"] length(MAX_TOKENS)"#,
        ),
        chat(
            "a piece of arguments without a place",
            &[
                call(r#""name":"f","willContinue":true"#),
                call(r#""partialArgs":[{"jsonPath":"$[","stringValue":"x"}],"willContinue":true"#),
                finished("STOP"),
            ],
            "call[call_0 f raw {] error malformed_stream",
        ),
        // Usage and errors (SPEC M10, M12)
        chat(
            "usage is cumulative, thoughts are beside the candidates",
            &[
                raw(
                    r#"{"modelVersion":"wire","usageMetadata":{"promptTokenCount":9,"thoughtsTokenCount":2,"totalTokenCount":11}}"#,
                ),
                raw(
                    r#"{"usageMetadata":{"promptTokenCount":9,"cachedContentTokenCount":4,"candidatesTokenCount":5,"thoughtsTokenCount":3,"toolUsePromptTokenCount":7,"totalTokenCount":24}}"#,
                ),
                raw(r#"{"usageMetadata":{"trafficType":"ON_DEMAND"}}"#),
                finished("STOP"),
            ],
            "stop(STOP) 5+4r+0w>8(3t)",
        ),
        chat(
            "error in the stream",
            &[
                text("a"),
                raw(r#"{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}"#),
                finished("STOP"),
            ],
            "text[a] error overloaded",
        ),
        chat("not JSON", &[text("a"), raw("{oops")], "text[a] error malformed_stream"),
    ]
}

/// SPEC M5, M6, M7, M8, M9, M10, M11, M12
#[test]
fn generate_quirks() {
    let options = options(Compat::default(), Framing::Sse);
    for Chat { name, chunks, expected } in generates() {
        let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
        check(name, Api::GoogleGenerate, &options, body(&chunks).as_bytes(), expected);
    }
}

/// SPEC M11: what the host says about a call that it could not read is passed on.
#[test]
fn the_hosts_explanation_of_an_end_is_in_the_error() {
    let chunk =
        r#"{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"print(x"}]}"#;
    let options = options(Compat::default(), Framing::Sse);
    let error = message(&decode(Api::GoogleGenerate, &options, [body(&[chunk]).as_bytes()])).error;
    assert_eq!(
        error.map(|error| error.message).as_deref(),
        Some("the provider ended the answer with `malformed_function_call`: print(x")
    );
}

/// SPEC M4, M5, M12
#[test]
fn generate_bodies_of_other_kinds() {
    let options = options(Compat::default(), Framing::Sse);
    let first = parts(r#"{"text":"a"}"#);
    let end = finished("STOP");
    for (name, body, expected) in [
        ("an array", format!("[{first}\n,\r\n{end}\n]\n"), "text[a] stop(STOP)"),
        ("an array on one line", format!("[{first},{end}]"), "text[a] stop(STOP)"),
        (
            "an array in many lines",
            format!("[{first}\n,\n{}]", end.replace(':', ":\n\n")),
            "text[a] stop(STOP)",
        ),
        ("an array cut off", format!("[{first},\n{{\"cand"), "text[a] error truncated_stream"),
        ("an array cut between", format!("[{first},\n"), "text[a] error truncated_stream"),
        (
            "an array with an error",
            format!("[{first},\n{{\n \"error\": {{\"code\": 429}}\n}}]"),
            "text[a] error rate_limit",
        ),
        ("an empty array", "[]".to_owned(), "error truncated_stream"),
        (
            "an error appended",
            format!("data: {first}\n\n{{\n  \"error\": {{\"code\": 429}}\n}}\n"),
            "text[a] error rate_limit",
        ),
        (
            "an error appended behind the end",
            format!("data: {end}\n\n{{\"error\": {{\"code\": 429}}}}\n"),
            "error(STOP) rate_limit",
        ),
        ("cut", format!("data: {first}\n\ndata: {{\"cand"), "text[a] error truncated_stream"),
        ("cut behind the end", format!("data: {end}\n\ndata: {{\"cand"), "stop(STOP)"),
    ] {
        check(name, Api::GoogleGenerate, &options, body.as_bytes(), expected);
    }
}
