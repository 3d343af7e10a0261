//! Answers of every API and dialect, as their hosts stream them: what the matrix makes histories of.
//!
//! Each maker says the same kinds of things in its own form, and they are read by the real decoder,
//! so that signatures, ciphers and ids are where the product has them. What a host signs is signed
//! with [`Host::sign`], which that host's server checks.

use ai::{BuiltinProvider, ProviderEntry};
use scripted_model::Host;

use super::*;

/// The model that each maker is; the same name everywhere, so that only the host tells them apart.
pub(super) const MODEL: &str = "model-1";

/// A provider and what its model once answered.
pub(super) struct Maker {
    pub(super) name: &'static str,
    pub(super) answers: Vec<AssistantMessage>,
    /// What has to come back to it, byte for byte.
    pub(super) proofs: Vec<String>,
}

/// The entry of a provider, without its key. Responses has no provider of its own.
pub(super) fn entry(name: &str) -> ProviderEntry {
    BuiltinProvider::find(name).expect("every host is a provider's").entry()
}

fn signed(name: &str, label: &str) -> String {
    Host::find(name).expect("a host").sign(MODEL, label)
}

/// What a stream comes to. One that ends with [`CANCELLED`] was cancelled there.
fn answered(name: &str, payloads: &[String]) -> AssistantMessage {
    let entry = entry(name);
    let options = DecodeOptions {
        provider: name.to_owned(),
        model: MODEL.to_owned(),
        compat: entry.compat.clone(),
        framing: Framing::Sse,
    };
    let is_cancelled = payloads.last().is_some_and(|last| last == CANCELLED);
    let payloads: Vec<&str> =
        payloads.iter().map(String::as_str).filter(|payload| *payload != CANCELLED).collect();
    let mut decoder = StreamDecoder::new(entry.api, options);
    let mut events = Vec::new();
    decoder.push(body(&payloads).as_bytes(), &mut events);
    if !is_cancelled {
        decoder.finish(&mut events);
    }
    let mut assembler = Assembler::new(MessageId::from("m"), Timestamp(0)).asking(MODEL);
    events.iter().for_each(|event| assembler.push(event));
    if is_cancelled { assembler.abort() } else { assembler.finish() }
}

/// Stands at the end of a stream that the user cancelled.
const CANCELLED: &str = "cancelled";

fn maker(name: &'static str, streams: Vec<Vec<String>>, proofs: Vec<String>) -> Maker {
    let answers = streams.iter().map(|stream| answered(name, stream)).collect();
    Maker { name, answers, proofs }
}

/// How a dialect says what the model thinks, as a chunk.
type Thinking<'a> = &'a dyn Fn(&str) -> String;

pub(super) fn makers() -> Vec<Maker> {
    let reasoning_content = |text: &str| delta(&format!(r#""reasoning_content":"{text}""#));
    let reasoning = |text: &str| delta(&format!(r#""reasoning":"{text}""#));
    let none = |_: &str| delta(r#""content":"""#);
    let parts = |text: &str| {
        delta(&format!(
            r#""content":[{{"type":"thinking","thinking":[{{"type":"text","text":"{text}"}}]}}]"#
        ))
    };
    let tags = |text: &str| delta(&format!(r#""content":"<think>{text}</think>""#));
    let long = "x".repeat(90);
    let chats: Vec<(&'static str, Thinking<'_>, [&str; 2])> = vec![
        ("openai", &none, ["call_AbCdEfGhIjKlMnOpQrStUvWx", "call_2"]),
        ("deepseek", &reasoning_content, ["call_00_a", "call_00_b"]),
        ("groq", &reasoning, ["fc_1", "fc_1"]),
        ("mistral", &parts, ["abcdefghi", "D681PevKs"]),
        ("moonshot", &reasoning_content, ["functions.Read:0", "functions.Read:1"]),
        ("zhipu", &reasoning_content, ["", ""]),
        ("ollama", &tags, ["0", "1"]),
        ("vllm", &reasoning, ["chatcmpl-tool-0123456789abcdef0123456789abcdef", &long]),
        ("perplexity", &none, ["größe", "a b"]),
        ("xai", &reasoning_content, ["call_3", "call_4"]),
    ];
    let mut makers: Vec<Maker> = chats
        .into_iter()
        .map(|(name, thinking, ids)| maker(name, chat_streams(thinking, ids), Vec::new()))
        .collect();
    makers.extend([anthropic(), openrouter(), responses(), gemini()]);
    makers
}

fn chat_call(index: usize, id: &str, name: &str, arguments: &str) -> String {
    let arguments = arguments.replace('"', "\\\"");
    call(&format!(
        r#""index":{index},"id":"{id}","function":{{"name":"{name}","arguments":"{arguments}"}}"#
    ))
}

fn chat_streams(thinking: Thinking<'_>, ids: [&str; 2]) -> Vec<Vec<String>> {
    let text = |text: &str| delta(&format!(r#""content":"{text}""#));
    let [one, two] = ids;
    vec![
        vec![
            thinking("hm"),
            text("I look. "),
            chat_call(0, one, "Read", r#"{"path":"a"}"#),
            chat_call(1, two, "mcp.server/read it", ""),
            end("tool_calls"),
        ],
        // The same id again, no thinking, no words.
        vec![chat_call(0, one, "Read", r#"{"path":"b"}"#), end("tool_calls")],
        // Blank text between, and thinking behind the call.
        vec![
            text(" \\n"),
            chat_call(0, two, "9lives", "[1]"),
            thinking("too late"),
            text("\\n\\n"),
            end("tool_calls"),
        ],
        // The cap struck within the arguments.
        vec![text("then"), chat_call(0, one, "Write", r#"{"path":"c","te"#), end("length")],
        vec![delta(r#""refusal":"I will not.""#), end("stop")],
        vec![thinking("so"), text("half a wo")],
        vec![thinking("only thoughts"), end("stop")],
        vec![end("content_filter")],
        vec![text("one mo"), chat_call(0, two, "Read", r#"{"pa"#), CANCELLED.to_owned()],
        vec![thinking("done"), text("It is so. \\n"), end("stop")],
    ]
}

fn openrouter() -> Maker {
    let signatures: Vec<String> =
        ["1", "2", "3"].iter().map(|label| signed("openrouter", label)).collect();
    let thinks = |signature: &str| {
        delta(&format!(
            r#""reasoning":"hm","reasoning_details":[{{"type":"reasoning.text","text":"hm","index":0,"signature":"{signature}"}}]"#
        ))
    };
    let hides = |data: &str| {
        delta(&format!(
            r#""reasoning_details":[{{"type":"reasoning.encrypted","data":"{data}","index":0}}]"#
        ))
    };
    let named = || r#"{"model":"vendor/model-1-0127","choices":[]}"#.to_owned();
    let streams = vec![
        vec![
            named(),
            thinks(&signatures[0]),
            chat_call(0, "toolu_01", "Read", "{}"),
            chat_call(1, "tool_1_Read", "Read", "{}"),
            end("tool_calls"),
        ],
        vec![hides(&signatures[1]), delta(r#""content":"So.""#), end("stop")],
        vec![hides(&signatures[2]), chat_call(0, "toolu_01", "Read", "{}"), end("tool_calls")],
        // Nothing came of it.
        vec![hides(&signed("openrouter", "lost")), end("stop")],
        vec![delta(r#""content":"cut""#)],
    ];
    maker("openrouter", streams, signatures)
}

fn anthropic() -> Maker {
    use super::messages::{START, STOP, block, closed, ended, grown};

    let start = START.replace(r#""model":"wire","#, "");
    let thinking = |index: usize, text: &str, signature: &str| {
        vec![
            block(index, r#""type":"thinking","thinking":"","signature":"""#),
            grown(index, &format!(r#""type":"thinking_delta","thinking":"{text}""#)),
            grown(index, &format!(r#""type":"signature_delta","signature":"{signature}""#)),
            closed(index),
        ]
    };
    let redacted = |index: usize, data: &str| {
        vec![block(index, &format!(r#""type":"redacted_thinking","data":"{data}""#)), closed(index)]
    };
    let text = |index: usize, text: &str| {
        vec![
            block(index, r#""type":"text","text":"""#),
            grown(index, &format!(r#""type":"text_delta","text":"{text}""#)),
            closed(index),
        ]
    };
    let uses = |index: usize, id: &str, json: &str| {
        let json = json.replace('"', "\\\"");
        vec![
            block(index, &format!(r#""type":"tool_use","id":"{id}","name":"Read","input":{{}}"#)),
            grown(index, &format!(r#""type":"input_json_delta","partial_json":"{json}""#)),
            closed(index),
        ]
    };
    let searches = |index: usize, id: &str| {
        let fields =
            format!(r#""type":"server_tool_use","id":"{id}","name":"web_search","input":{{}}"#);
        vec![block(index, &fields), closed(index)]
    };
    let found = |index: usize, id: &str| {
        let fields =
            format!(r#""type":"web_search_tool_result","tool_use_id":"{id}","content":[]"#);
        vec![block(index, &fields), closed(index)]
    };
    let within = |events: Vec<Vec<String>>, ends: &[String]| {
        [vec![start.clone()], events.concat(), ends.to_vec()].concat()
    };
    let over = |word: &str| vec![ended(word), STOP.to_owned()];
    let signatures: Vec<String> =
        ["1", "2", "3", "4"].iter().map(|label| signed("anthropic", label)).collect();
    let streams = vec![
        within(
            vec![
                thinking(0, "hm", &signatures[0]),
                redacted(1, &signatures[1]),
                text(2, "I look."),
                uses(3, "toolu_01AbC", r#"{"path":"a"}"#),
                uses(4, "toolu_02", ""),
            ],
            &over("tool_use"),
        ),
        // A signature without text, thinking between calls.
        within(
            vec![
                thinking(0, "", &signatures[2]),
                uses(1, "toolu_01AbC", "{}"),
                thinking(2, "and", &signatures[3]),
                uses(3, "toolu_03", "{}"),
            ],
            &over("tool_use"),
        ),
        within(
            vec![searches(0, "srvtoolu_1"), found(1, "srvtoolu_1"), text(2, "Found.")],
            &over("end_turn"),
        ),
        within(vec![text(0, "I search."), searches(1, "srvtoolu_2")], &over("pause_turn")),
        within(vec![found(0, "srvtoolu_2"), text(1, "There.")], &over("end_turn")),
        within(vec![uses(0, "toolu_04", r#"{"path":"#)], &over("max_tokens")),
        within(vec![text(0, "I wo")], &over("refusal")),
        within(
            vec![
                thinking(0, "lost", &signed("anthropic", "lost")),
                vec![block(1, r#""type":"thinking","thinking":"cut""#)],
            ],
            &[],
        ),
        within(vec![text(0, "half a"), searches(1, "srvtoolu_3")], &[CANCELLED.to_owned()]),
        within(vec![], &over("end_turn")),
        within(vec![text(0, "It is so.\\n")], &over("end_turn")),
    ];
    maker("anthropic", streams, signatures)
}

fn responses() -> Maker {
    use super::responses::{done, finished};

    let reasoning = |index: usize, cipher: Option<&str>| {
        let cipher =
            cipher.map(|cipher| format!(r#","encrypted_content":"{cipher}""#)).unwrap_or_default();
        done(
            index,
            &format!(
                r#""type":"reasoning","id":"rs_{index}","summary":[{{"type":"summary_text","text":"hm"}}]{cipher}"#
            ),
        )
    };
    let says = |index: usize, kind: &str, text: &str| {
        let key = if kind == "refusal" { "refusal" } else { "text" };
        done(
            index,
            &format!(
                r#""type":"message","id":"msg_{index}","role":"assistant","content":[{{"type":"{kind}","{key}":"{text}"}}]"#
            ),
        )
    };
    let calls = |index: usize, id: &str, arguments: &str| {
        let arguments = arguments.replace('"', "\\\"");
        done(
            index,
            &format!(
                r#""type":"function_call","id":"fc_{index}","call_id":"{id}","name":"Read","arguments":"{arguments}""#
            ),
        )
    };
    let searches = |index: usize| {
        done(
            index,
            &format!(
                r#""type":"web_search_call","id":"ws_00000000_{index}_r","status":"completed""#
            ),
        )
    };
    let completed = || finished("completed", "").replace(r#""model":"wire","#, "");
    let ciphers: Vec<String> =
        ["1", "2", "3"].iter().map(|label| signed("openai-responses", label)).collect();
    let streams = vec![
        vec![
            reasoning(0, Some(&ciphers[0])),
            says(1, "output_text", "I look."),
            calls(2, "call_1", r#"{"path":"a"}"#),
            calls(3, "call_2", ""),
            completed(),
        ],
        vec![reasoning(0, Some(&ciphers[1])), calls(1, "call_1", "{}"), completed()],
        vec![
            reasoning(0, Some(&ciphers[2])),
            searches(1),
            says(2, "output_text", "Found."),
            completed(),
        ],
        // Reasoning that cannot go back, and what it led to.
        vec![reasoning(0, None), searches(1), says(2, "output_text", "Seen."), completed()],
        vec![says(0, "refusal", "I will not."), completed()],
        vec![
            calls(0, "call_3", r#"{"pa"#),
            finished("incomplete", r#","incomplete_details":{"reason":"max_output_tokens"}"#)
                .replace(r#""model":"wire","#, ""),
        ],
        // It thought and did not come to speak.
        vec![reasoning(0, Some(&signed("openai-responses", "lost"))), completed()],
        vec![
            says(0, "output_text", "cut"),
            reasoning(1, Some(&signed("openai-responses", "lost"))),
        ],
        vec![says(0, "output_text", "one mo"), CANCELLED.to_owned()],
        vec![completed()],
    ];
    maker("openai-responses", streams, ciphers)
}

fn gemini() -> Maker {
    use super::generates::{finished, parts};

    let signatures: Vec<String> =
        ["1", "2", "3", "4"].iter().map(|label| signed("gemini", label)).collect();
    let text = |text: &str| parts(&format!(r#"{{"text":"{text}"}}"#));
    let signed_text = |text: &str, signature: &str| {
        parts(&format!(r#"{{"text":"{text}","thoughtSignature":"{signature}"}}"#))
    };
    let thought = |text: &str| parts(&format!(r#"{{"text":"{text}","thought":true}}"#));
    let calls = |path: &str, signature: Option<&str>| {
        let signature = signature
            .map(|signature| format!(r#","thoughtSignature":"{signature}""#))
            .unwrap_or_default();
        parts(&format!(
            r#"{{"functionCall":{{"name":"Read","args":{{"path":"{path}"}}}}{signature}}}"#
        ))
    };
    let streams = vec![
        vec![
            thought("hm"),
            text("I look."),
            calls("a", Some(&signatures[0])),
            calls("b", None),
            finished("STOP"),
        ],
        vec![calls("a", Some(&signatures[1])), finished("STOP")],
        vec![text("So."), signed_text("", &signatures[2]), finished("STOP")],
        vec![signed_text("\\n", &signatures[3]), text("On."), finished("STOP")],
        vec![
            parts(r#"{"executableCode":{"language":"PYTHON","code":"1"}}"#),
            parts(r#"{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}}"#),
            text("One."),
            finished("STOP"),
        ],
        vec![parts(r#"{"inlineData":{"mimeType":"image/png","data":"QUJD"}}"#), finished("STOP")],
        vec![finished("SAFETY")],
        vec![thought("only thoughts"), finished("STOP")],
        vec![text("half"), calls("c", None)],
        vec![text("one mo"), CANCELLED.to_owned()],
        vec![text(" \\n"), finished("MAX_TOKENS")],
    ];
    maker("gemini", streams, signatures)
}
