//! The commands that only look: `decode`, `models`, `doctor`, `config`.

use serde_json::{Value, json};
use tests::bench::Bench;
use tests::outline::normal;
use tests::program::{Input, KEY};

/// One answer of Anthropic's Messages: thinking, text, a call.
const MESSAGES: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"usage":{"input_tokens":10,"cache_read_input_tokens":4,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: ping
data: {"type":"ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Let me "}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"look."}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"Read","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"path\": \"a.txt\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":9}}

event: message_stop
data: {"type":"message_stop"}

"#;

/// The same of OpenAI's Chat Completions.
const CHAT: &str = r#"data: {"id":"c1","object":"chat.completion.chunk","model":"gpt-x","choices":[{"index":0,"delta":{"role":"assistant","content":"Let me "},"finish_reason":null}]}

data: {"id":"c1","object":"chat.completion.chunk","model":"gpt-x","choices":[{"index":0,"delta":{"content":"look."},"finish_reason":null}]}

data: {"id":"c1","object":"chat.completion.chunk","model":"gpt-x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"toolu_1","type":"function","function":{"name":"Read","arguments":"{\"path\": "}}]},"finish_reason":null}]}

data: {"id":"c1","object":"chat.completion.chunk","model":"gpt-x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"a.txt\"}"}}]},"finish_reason":null}]}

data: {"id":"c1","object":"chat.completion.chunk","model":"gpt-x","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: {"id":"c1","object":"chat.completion.chunk","model":"gpt-x","choices":[],"usage":{"prompt_tokens":14,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":4}}}

data: [DONE]

"#;

/// The same of OpenAI's Responses.
const RESPONSES: &str = r#"event: response.created
data: {"type":"response.created","response":{"id":"resp_1","model":"gpt-x","status":"in_progress","output":[]},"sequence_number":0}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","content":[],"role":"assistant"},"sequence_number":1}

event: response.output_text.delta
data: {"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"Let me ","sequence_number":2}

event: response.output_text.delta
data: {"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"look.","sequence_number":3}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":0,"item":{"id":"msg_1","type":"message","status":"completed","content":[{"type":"output_text","text":"Let me look."}],"role":"assistant"},"sequence_number":4}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":1,"item":{"id":"fc_1","type":"function_call","status":"in_progress","call_id":"toolu_1","name":"Read","arguments":""},"sequence_number":5}

event: response.function_call_arguments.delta
data: {"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":1,"delta":"{\"path\": ","sequence_number":6}

event: response.function_call_arguments.delta
data: {"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":1,"delta":"\"a.txt\"}","sequence_number":7}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":1,"item":{"id":"fc_1","type":"function_call","status":"completed","call_id":"toolu_1","name":"Read","arguments":"{\"path\": \"a.txt\"}"},"sequence_number":8}

event: response.completed
data: {"type":"response.completed","response":{"id":"resp_1","model":"gpt-x","status":"completed","output":[],"usage":{"input_tokens":14,"input_tokens_details":{"cached_tokens":4},"output_tokens":9,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":23}},"sequence_number":9}

"#;

/// The same of Gemini.
const GENERATE: &str = r#"data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Let me "}]},"index":0}],"modelVersion":"gemini-x","usageMetadata":{"promptTokenCount":14,"totalTokenCount":14}}

data: {"candidates":[{"content":{"role":"model","parts":[{"text":"look."}]},"index":0}],"modelVersion":"gemini-x"}

data: {"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":"toolu_1","name":"Read","args":{"path":"a.txt"}}}]},"finishReason":"STOP","index":0}],"modelVersion":"gemini-x","usageMetadata":{"promptTokenCount":14,"cachedContentTokenCount":4,"candidatesTokenCount":9,"totalTokenCount":23}}

"#;

struct Capture {
    api: &'static str,
    stream: &'static str,
    model: &'static str,
    stop_raw: &'static str,
    /// How the arguments were cut into deltas.
    arguments: &'static [&'static str],
}

const CAPTURES: [Capture; 4] = [
    Capture {
        api: "anthropic-messages",
        stream: MESSAGES,
        model: "claude-x",
        stop_raw: "tool_use",
        arguments: &["{\"path\": \"a.txt\"}"],
    },
    Capture {
        api: "openai-chat",
        stream: CHAT,
        model: "gpt-x",
        stop_raw: "tool_calls",
        arguments: &["{\"path\": ", "\"a.txt\"}"],
    },
    Capture {
        api: "openai-responses",
        stream: RESPONSES,
        model: "gpt-x",
        stop_raw: "completed",
        arguments: &["{\"path\": ", "\"a.txt\"}"],
    },
    Capture {
        api: "google-generate",
        stream: GENERATE,
        model: "gemini-x",
        stop_raw: "STOP",
        arguments: &["{\"path\":\"a.txt\"}"],
    },
];

fn usage() -> Value {
    json!({"input": 10, "output": 9, "cache_read": 4, "cache_write": 0, "reasoning": 0})
}

/// SPEC M1, M10: a captured stream becomes the same events for every API.
#[tokio::test]
async fn a_capture_becomes_events() {
    for capture in CAPTURES {
        let Capture { api, stream, model, stop_raw, arguments } = capture;
        let bench = Bench::new();
        let file = bench.write("capture.sse", stream);
        let call = json!({"id": "toolu_1", "name": "Read", "arguments": {"path": "a.txt"}});
        let mut expected = vec![
            json!({"type": "start", "provider": api, "api": api, "model": model}),
            json!({"type": "text_start", "index": 0}),
            json!({"type": "text_delta", "index": 0, "delta": "Let me "}),
            json!({"type": "text_delta", "index": 0, "delta": "look."}),
            json!({"type": "text_end", "index": 0}),
            json!({"type": "toolcall_start", "index": 1, "id": "toolu_1", "name": "Read"}),
        ];
        expected.extend(
            arguments
                .iter()
                .map(|delta| json!({"type": "toolcall_delta", "index": 1, "delta": delta})),
        );
        expected.extend([
            json!({"type": "toolcall_end", "index": 1, "call": call}),
            json!({"type": "done", "stop_reason": "tool_use", "stop_raw": stop_raw, "usage": usage()}),
        ]);
        let decode = ["decode", "--api", api];
        let from_file = bench.program(decode).arguments(["capture.sse"]).run().await;
        let from_pipe = bench.program(decode).piped(stream).run().await;
        let from_dash = bench.program(decode).arguments(["-"]).input(Input::File(file)).run().await;
        for mut ended in [from_file, from_pipe, from_dash] {
            assert_eq!((ended.code, std::mem::take(&mut ended.stderr)), (0, String::new()));
            let mut events = ended.events();
            // Where text closes before a call opens is the decoder's business.
            events.sort_by_key(|event| {
                event["index"].as_u64().map_or_else(
                    || if event["type"] == "start" { 0 } else { u64::MAX },
                    |index| index + 1,
                )
            });
            assert_eq!(events, expected, "{api}");
        }
    }
}

/// SPEC M2: and the same message.
#[tokio::test]
async fn a_capture_becomes_the_message() {
    for Capture { api, stream, model, stop_raw, .. } in CAPTURES {
        let bench = Bench::new();
        let ended = bench
            .program(["decode", "--api", api, "--output-format", "message", "--provider", "mine"])
            .piped(stream)
            .run()
            .await;
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
        assert_eq!(
            normal(ended.json(), "PLACE"),
            json!({
                "role": "assistant",
                "id": "id-1",
                "timestamp": 0,
                "content": [
                    {"type": "text", "text": "Let me look."},
                    {"type": "tool_call", "id": "toolu_1", "name": "Read", "arguments": {"path": "a.txt"}},
                ],
                "provider": "mine",
                "api": api,
                "model": model,
                "usage": usage(),
                "stop_reason": "tool_use",
                "stop_raw": stop_raw,
            })
        );
    }
}

/// SPEC M5: half a capture is a truncated stream, which is a message like any other.
#[tokio::test]
async fn half_a_capture_is_truncated() {
    for Capture { api, stream, .. } in CAPTURES {
        let bench = Bench::new();
        let half = &stream[..stream.find("look.").unwrap()];
        let ended = bench.program(["decode", "--api", api]).piped(half).run().await;
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
        let last = ended.events().pop().unwrap();
        assert_eq!(
            (&last["type"], &last["error"]["kind"]),
            (&json!("error"), &json!("truncated_stream"))
        );
        let ended = bench.program(["decode", "--api", api]).piped("").run().await;
        let last = ended.events().pop().unwrap();
        assert_eq!(last["error"]["kind"], "truncated_stream");
    }
}

/// SPEC M4: the model that was asked, where the stream does not say.
#[tokio::test]
async fn the_model_asked_is_told_to_decode() {
    let bench = Bench::new();
    let stream =
        "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n";
    let ended = bench
        .program(["decode", "--api", "openai-chat", "--model", "asked", "--provider", "groq"])
        .piped(stream)
        .run()
        .await;
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(
        ended.events()[0],
        json!({"type": "start", "provider": "groq", "api": "openai-chat", "model": "asked"})
    );
}

/// SPEC U4
#[tokio::test]
async fn a_capture_that_cannot_be_read_is_said() {
    let bench = Bench::new();
    for (file, expected) in [
        ("none.sse", "error: cannot read none.sse: No such file or directory (os error 2)\n"),
        (".", "error: cannot read the stream: Is a directory (os error 21)\n"),
    ] {
        let ended = bench.program(["decode", "--api", "openai-chat", file]).run().await;
        assert_eq!(ended.all(), (2, "", expected));
    }
}

/// SPEC U2: a reader that has had enough.
#[tokio::test]
async fn decode_ends_quietly_when_its_reader_has_gone() {
    let bench = Bench::new();
    let event = "data: {\"choices\":[{\"delta\":{\"content\":\"again and again\"}}]}\n\n";
    bench.write("long.sse", event.repeat(50_000));
    let mut running = bench.program(["decode", "--api", "openai-chat", "long.sse"]).start();
    running.next_line().await;
    running.close_output();
    let ended = running.end().await;
    assert_eq!((ended.code, ended.stderr.as_str()), (1, ""));
}

/// SPEC M20: who can be asked, and nothing of the key.
#[tokio::test]
async fn models_says_who_can_be_asked() {
    let bench = Bench::new();
    bench.configure(
        "[providers.mine]\napi = 'openai-chat'\nbase_url = 'http://127.0.0.1:8000/v1'\n\
         key_env = 'MINE_API_KEY'\nmodels = ['small', 'large']\n\
         [providers.free]\napi = 'anthropic-messages'\nbase_url = 'http://127.0.0.1:9'\n\
         [providers.broken]\napi = 'openai-chat'\n",
    );
    let ended = bench
        .program(["models"])
        .variable("MINE_API_KEY", KEY)
        .variable("ANTHROPIC_API_KEY", KEY)
        .run()
        .await;
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    let rows: Vec<Vec<&str>> = ended
        .stdout
        .lines()
        .map(|line| line.split_whitespace().collect())
        .filter(|row: &Vec<&str>| {
            [
                "anthropic",
                "openai",
                "mine",
                "mine/small",
                "mine/large",
                "free",
                "broken",
                "scripted",
            ]
            .contains(&row[0])
        })
        .collect();
    let expected: Vec<Vec<&str>> = [
        "anthropic anthropic-messages key from ANTHROPIC_API_KEY, https://api.anthropic.com/v1/messages",
        "openai openai-chat OPENAI_API_KEY is not set",
        "broken openai-chat provider `broken` has no `base_url` in the configuration; add `base_url` to \
         [providers.broken]",
        "free anthropic-messages no key needed, http://127.0.0.1:9/v1/messages",
        "mine openai-chat key from MINE_API_KEY, http://127.0.0.1:8000/v1/chat/completions",
        "mine/small",
        "mine/large",
        "scripted anthropic-messages no key needed, plays a script inside the program",
    ]
    .iter()
    .map(|line| line.split_whitespace().collect())
    .collect();
    assert_eq!(rows, expected, "{}", ended.stdout);
}

/// SPEC U3: what is set up, and what is missing.
#[tokio::test]
async fn doctor_says_how_things_stand() {
    let bench = Bench::new();
    let ended = bench.program(["doctor"]).variable("OPENAI_API_KEY", KEY).run().await;
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    let stdout = ended.stdout.replace(bench.root().to_str().unwrap(), "PLACE");
    let value = |label: &str| {
        let mut lines = stdout.lines().filter_map(|line| line.split_once(' '));
        let (_, value) = lines.find(|(found, _)| *found == label).unwrap();
        value.trim().to_owned()
    };
    assert_eq!(
        ["version", "workspace", "config", "model", "mode", "keys"].map(value),
        [
            env!("CARGO_PKG_VERSION"),
            "PLACE/work",
            "PLACE/agent/config/config.toml (not there)",
            "anthropic/claude-sonnet-4-5: cannot be asked: there is no key for provider `anthropic`: \
             ANTHROPIC_API_KEY is not set; export ANTHROPIC_API_KEY=…, or store a key with \
             `coding-agent login anthropic`, or try it without a key: --model scripted/hello",
            "ask",
            "openai: key from OPENAI_API_KEY",
        ]
    );
    assert!(value("sandbox").starts_with("none: Bash is not confined"), "{stdout}");
    assert_eq!(bench.names(bench.agent_home()), ["config"], "nothing is made");
}

const EVERYTHING: &str = "model = 'mine/large'
permission_mode = 'read-only'
[timeouts]
connect_ms = 1
first_byte_ms = 2
idle_ms = 3
tool_ms = 4
[cancel]
grace_ms = 5
kill_grace_ms = 6
[retry]
max_attempts = 7
max_elapsed_ms = 8
[limits]
max_turns = 9
max_parallel_tool_calls = 10
[providers.mine]
api = 'openai-chat'
base_url = 'http://127.0.0.1:8000/v1'
key_env = 'MINE_API_KEY'
max_output_tokens = 11
models = [{id = 'small'}, {id = 'large', context_window = 12, thinking = {form = 'never'}}]
";

/// SPEC U4: what is shown can be put into a file, and comes to the same.
#[tokio::test]
async fn the_configuration_in_force_can_be_read_again() {
    let bench = Bench::new();
    let place = bench.agent_home().join("config/config.toml");
    for configured in ["", EVERYTHING] {
        bench.configure(configured);
        let first = bench.program(["config", "show"]).variable("MINE_API_KEY", KEY).run().await;
        assert_eq!((first.code, first.stderr.as_str()), (0, ""));
        let origin = format!("# from {}", place.display());
        assert_eq!(first.stdout.lines().next(), Some(origin.as_str()));
        bench.configure(&first.stdout);
        let second = bench.program(["config", "show"]).variable("MINE_API_KEY", KEY).run().await;
        assert_eq!(second, first);
        if !configured.is_empty() {
            let shown: toml::Table = toml::from_str(&first.stdout).unwrap();
            assert_eq!(shown, toml::from_str::<toml::Table>(configured).unwrap());
        }
    }
}

/// SPEC U4: files, variables and options, in that order of growing strength.
#[tokio::test]
async fn stronger_sources_win() {
    let bench = Bench::new();
    bench.configure("model = 'a/file'\n[retry]\nmax_attempts = 2\n[limits]\nmax_turns = 3\n");
    let ended = bench
        .program(["config", "show", "--config", "retry.max_attempts=9"])
        .arguments(["--permission-mode", "read-only"])
        .variable("CODING_AGENT_MODEL", "b/variable")
        .variable("CODING_AGENT_RETRY__MAX_ATTEMPTS", "5")
        .variable("CODING_AGENT_UNHEARD_OF", "1")
        .run()
        .await;
    assert_eq!(ended.code, 0);
    assert_eq!(
        ended.stderr,
        "note: the variable CODING_AGENT_UNHEARD_OF is no setting of this program; it is ignored\n"
    );
    let shown: toml::Table = toml::from_str(&ended.stdout).unwrap();
    assert_eq!(shown["model"].as_str(), Some("b/variable"));
    assert_eq!(shown["permission_mode"].as_str(), Some("read-only"));
    assert_eq!(shown["retry"]["max_attempts"].as_integer(), Some(9));
    assert_eq!(shown["limits"]["max_turns"].as_integer(), Some(3));
}

/// SPEC U4: the schema is one, takes what is shown, and refuses what the program refuses.
#[tokio::test]
async fn the_schema_describes_the_configuration() {
    let bench = Bench::new();
    let ended = bench.program(["config", "schema"]).run().await;
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    let schema = ended.json();
    jsonschema::meta::validate(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for configured in ["", EVERYTHING] {
        bench.configure(configured);
        let shown = bench.program(["config", "show"]).run().await;
        let value: Value = toml::from_str(&shown.stdout).unwrap();
        let errors: Vec<String> =
            validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new(), "{value:#}");
    }
    for wrong in [
        "modle = 'a/b'",
        "model = 5",
        "permission_mode = 'yolo'",
        "[retry]\nmax_attempts = 'x'",
        "[limits]\nmax_turns = 0",
        "[limits]\nmax_parallel_tool_calls = 0",
        "[retry]\nmax_attempts = 0",
        "[providers.mine]\napi = 'telnet'",
    ] {
        let value: Value = toml::from_str(wrong).unwrap();
        bench.configure(wrong);
        let ended = bench.program(["config", "show"]).run().await;
        assert_eq!(
            (ended.code, validator.is_valid(&value)),
            (2, false),
            "the program and the schema refuse `{wrong}`"
        );
    }
}

/// SPEC U2
#[tokio::test]
async fn help_and_version_are_answers() {
    let bench = Bench::new();
    let ended = bench.program(["--version"]).run().await;
    let version = format!("coding-agent {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(ended.all(), (0, version.as_str(), ""));
    for arguments in [&["--help"][..], &["decode", "--help"], &["tool", "run", "--help"]] {
        let ended = bench.program(arguments).run().await;
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
        assert!(ended.stdout.contains("Usage: coding-agent"), "{}", ended.stdout);
    }
}
