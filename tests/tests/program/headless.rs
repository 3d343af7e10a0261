//! `-p`: what goes in, what comes out.

use ai::{Api, Usage};
use scripted_model::{Entry, Expect, Script, ScriptedModel, Turn};
use serde_json::{Value, json};
use tests::bench::Bench;
use tests::outline::{normal, outline};
use tests::program::{Input, KEY, Output};

const APIS: [Api; 2] = [Api::AnthropicMessages, Api::OpenaiChat];

const GREETING: &str = "Hello! What shall we build?";

async fn says(text: &str) -> ScriptedModel {
    ScriptedModel::start(Script::new("scripted").turn(Turn::text_only(text))).await.unwrap()
}

/// What the model was asked first.
fn prompt(model: &ScriptedModel) -> String {
    model.requests()[0].conversation().first_user_text().unwrap().to_owned()
}

/// SPEC U2
#[tokio::test]
async fn the_answer_and_nothing_else_is_printed() {
    for api in APIS {
        let bench = Bench::new();
        let model = says(GREETING).await;
        let ended = bench.program(["-p", "hello"]).asking(&model, api).run().await;
        assert_eq!(ended.all(), (0, "Hello! What shall we build?\n", ""), "{api:?}");
        assert_eq!(prompt(&model), "hello");
        let request = &model.requests()[0];
        let (name, value) = match api {
            Api::OpenaiChat => ("authorization", format!("Bearer {KEY}")),
            _ => ("x-api-key", KEY.to_owned()),
        };
        assert_eq!(request.header(name), Some(value.as_str()));
        let conversation = request.conversation();
        assert_eq!(conversation.model, "scripted");
        assert_eq!(conversation.tools, ["Read", "Edit", "Write", "Bash"]);
        assert!(conversation.system.contains(bench.work().to_str().unwrap()));
        assert_eq!(bench.names("."), Vec::<String>::new());
        assert_eq!(bench.names(bench.agent_home()), ["config"]);
    }
}

/// SPEC U2, M10: the object has the fields of the interface and no other.
#[tokio::test]
async fn json_is_one_object() {
    for api in APIS {
        let bench = Bench::new();
        let usage = Usage { input: 7, output: 5, cache_read: 3, ..Usage::default() };
        let script = Script::new("scripted").turn(Turn::text_only(GREETING).usage(usage));
        let model = ScriptedModel::start(script).await.unwrap();
        let ended = bench
            .program(["-p", "hello", "--output-format", "json"])
            .asking(&model, api)
            .run()
            .await;
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
        let usage =
            json!({"input": 7, "output": 5, "cache_read": 3, "cache_write": 0, "reasoning": 0});
        let (provider, stop_raw) = match api {
            Api::OpenaiChat => ("openai", "stop"),
            _ => ("anthropic", "end_turn"),
        };
        assert_eq!(
            normal(ended.json(), bench.root().to_str().unwrap()),
            json!({
                "session_id": "id-1",
                "reason": {"kind": "completed"},
                "text": GREETING,
                "turns": 1,
                "usage": usage,
                "cost_usd": null,
                "messages": [
                    {
                        "role": "user",
                        "id": "id-2",
                        "timestamp": 0,
                        "content": [{"type": "text", "text": "hello"}],
                        "origin": "user",
                    },
                    {
                        "role": "assistant",
                        "id": "id-3",
                        "timestamp": 0,
                        "content": [{"type": "text", "text": GREETING}],
                        "provider": provider,
                        "api": api.as_str(),
                        "model": "scripted",
                        "usage": usage,
                        "stop_reason": "stop",
                        "stop_raw": stop_raw,
                    },
                ],
            })
        );
    }
}

/// Reads, edits, writes and runs, each time looking at what the call before came to.
fn works() -> Script {
    let edits = json!([{"old_text": "return a - b", "new_text": "return a + b"}]);
    Script::new("scripted")
        .turn(Turn::new().text("I look.").call("Read", json!({"path": "calc.py"})))
        .turn(
            Turn::new()
                .expecting(Expect::new().results(1).is_error(false).last_result_contains("a - b"))
                .call("Edit", json!({"path": "calc.py", "edits": edits})),
        )
        .turn(
            Turn::new()
                .expecting(Expect::new().results(1).is_error(false))
                .call("Write", json!({"path": "notes/done.md", "content": "mended\n"})),
        )
        .turn(
            Turn::new()
                .expecting(Expect::new().results(1).is_error(false))
                .call("Bash", json!({"command": "cat calc.py notes/done.md; pwd"})),
        )
        .turn(
            Turn::text_only("It adds now.")
                .expecting(Expect::new().results(1).is_error(false).last_result_contains("a + b")),
        )
}

/// SPEC U2, I8: every tool on a real workspace, in each output format and with both APIs.
#[tokio::test]
async fn the_tools_work_on_the_workspace() {
    for api in APIS {
        for format in ["text", "json", "stream-json"] {
            let bench = Bench::new();
            bench.write("calc.py", "def add(a, b):\n    return a - b\n");
            let model = ScriptedModel::start(works()).await.unwrap();
            let ended = bench
                .program(["-p", "mend it", "--permission-mode", "bypass"])
                .arguments(["--output-format", format])
                .asking(&model, api)
                .run()
                .await;
            assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{ended:?}");
            assert_eq!(bench.read("calc.py"), "def add(a, b):\n    return a + b\n");
            assert_eq!(bench.read("notes/done.md"), "mended\n");
            assert_eq!(bench.names("."), ["calc.py", "notes"]);
            assert_eq!(model.requests().len(), 5);
            let calls: Vec<String> =
                model.requests()[4].conversation().calls().map(|call| call.name.clone()).collect();
            assert_eq!(calls, ["Read", "Edit", "Write", "Bash"]);
            match format {
                "text" => assert_eq!(ended.stdout, "It adds now.\n"),
                "json" => {
                    let object = ended.json();
                    assert_eq!(object["text"], "It adds now.");
                    assert_eq!(object["turns"], 5);
                    let roles: Vec<&Value> = object["messages"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(|message| &message["role"])
                        .collect();
                    assert_eq!(
                        roles,
                        [
                            "user",
                            "assistant",
                            "tool_result",
                            "assistant",
                            "tool_result",
                            "assistant",
                            "tool_result",
                            "assistant",
                            "tool_result",
                            "assistant",
                        ]
                    );
                }
                _ => {
                    let lines = outline(&ended.events());
                    assert_eq!(lines[0], "session");
                    let ends = |line: &&String| line.starts_with("tool_execution_end");
                    assert_eq!(lines.iter().filter(ends).count(), 4);
                    assert_eq!(
                        lines[lines.len() - 2..],
                        ["agent_end completed messages=10", "agent_status idle"]
                    );
                }
            }
        }
    }
}

/// SPEC U2: what is piped in is added to the prompt, and `-` is the pipe alone.
#[tokio::test]
async fn standard_input_joins_the_prompt() {
    let cases: [(&[&str], &str, &str); 7] = [
        (&["-p", "explain"], "the piped text\n", "explain\n\nthe piped text\n"),
        (&["-p", "explain"], "", "explain"),
        (&["-p", "explain"], " \n", "explain"),
        (&["-p", "-"], "only piped", "only piped"),
        (&["-p"], "only piped", "only piped"),
        (&["-p", ""], "only piped", "only piped"),
        (&["-p", "größe 名前 🦀"], "né", "größe 名前 🦀\n\nné"),
    ];
    for (arguments, piped, expected) in cases {
        let bench = Bench::new();
        let model = says("Yes.").await;
        let ended = bench
            .program(["--output-format", "text"])
            .asking(&model, Api::AnthropicMessages)
            .arguments(arguments)
            .piped(piped)
            .run()
            .await;
        assert_eq!(ended.all(), (0, "Yes.\n", ""), "{arguments:?} {piped:?}");
        assert_eq!(prompt(&model), expected, "{arguments:?} {piped:?}");
    }
    let bench = Bench::new();
    let model = says("Yes.").await;
    let file = bench.write("prompt.txt", "from a file");
    let ended = bench
        .program(["-p", "explain"])
        .asking(&model, Api::AnthropicMessages)
        .input(Input::File(file))
        .run()
        .await;
    assert_eq!(ended.all(), (0, "Yes.\n", ""));
    assert_eq!(prompt(&model), "explain\n\nfrom a file");
}

/// SPEC U4: a prompt of 5 MB is a prompt.
#[tokio::test]
async fn a_long_prompt_goes_through() {
    for api in APIS {
        let bench = Bench::new();
        let model = says("That was long.").await;
        let long = "0123456789abcde\n".repeat(5 * 1024 * 1024 / 16);
        let ended = bench.program(["-p", "sum up"]).asking(&model, api).piped(&long).run().await;
        assert_eq!(ended.all(), (0, "That was long.\n", ""));
        assert!(prompt(&model) == format!("sum up\n\n{long}"), "the prompt arrives whole");
    }
}

/// SPEC U4
#[tokio::test]
async fn a_prompt_that_cannot_be_one_is_refused() {
    let cases: [(&[&str], Vec<u8>, &str); 3] = [
        (
            &["-p"],
            Vec::new(),
            "error: the prompt is empty\n\
             hint: coding-agent -p \"what to do\", or pipe the prompt in\n",
        ),
        (
            &["-p", "what is this?"],
            b"\xff\xfe\x00binary".to_vec(),
            "error: standard input is not UTF-8 text\n\
             hint: put it into a file and ask about the file\n",
        ),
        (
            &["-p", "-"],
            vec![b'x'; (32 << 20) + 1],
            "error: the prompt is longer than 32 MiB, which no model can read\n\
             hint: put it into a file and ask about the file\n",
        ),
    ];
    for (arguments, piped, expected) in cases {
        let bench = Bench::new();
        let model = says("Never.").await;
        let ended = bench
            .program(arguments)
            .asking(&model, Api::AnthropicMessages)
            .piped(piped)
            .run()
            .await;
        assert_eq!(ended.all(), (2, "", expected));
        assert_eq!(model.requests().len(), 0, "nothing is sent");
    }
}

/// SPEC U4
#[tokio::test]
async fn no_standard_input_is_no_obstacle() {
    let bench = Bench::new();
    let model = says("Yes.").await;
    let ended = bench
        .program(["-p", "hello"])
        .asking(&model, Api::AnthropicMessages)
        .input(Input::Closed)
        .run()
        .await;
    assert_eq!(ended.all(), (0, "Yes.\n", ""));
    assert_eq!(prompt(&model), "hello");
}

/// SPEC U4: nobody would see the answer, so nobody is asked for it.
#[tokio::test]
async fn a_closed_standard_output_is_refused_at_the_start() {
    for output in [Output::Closed, Output::Broken] {
        for arguments in [&["-p", "hello"][..], &["demo"], &["models"], &["tool", "list"]] {
            let bench = Bench::new();
            let model = says("Never.").await;
            let ended = bench
                .program(arguments)
                .variable("ANTHROPIC_API_KEY", KEY)
                .checked_by(&model)
                .output(output)
                .run()
                .await;
            assert_eq!(
                ended.all(),
                (
                    2,
                    "",
                    "error: standard output is closed: nobody would see the answer\n\
                     hint: redirect it to a file, or to /dev/null if it is not wanted\n"
                ),
                "{output:?} {arguments:?}"
            );
            assert_eq!(model.requests().len(), 0);
        }
    }
}

/// SPEC U2, I10: whoever read the events has gone; the run is cancelled, its command killed.
#[tokio::test]
async fn a_pipe_that_breaks_cancels_without_noise() {
    let bench = Bench::new();
    let script = Script::new("scripted")
        .turn(Turn::new().call("Bash", json!({"command": "echo on >started; sleep 100"})))
        .turn(Turn::text_only("Never."));
    let model = ScriptedModel::start(script).await.unwrap();
    let mut running = bench
        .program(["-p", "wait", "--permission-mode", "bypass", "--output-format", "stream-json"])
        .asking(&model, Api::AnthropicMessages)
        .start();
    running.wait_for_event("tool_execution_start").await;
    running.close_output();
    let ended = running.end().await;
    assert_eq!((ended.code, ended.stderr.as_str()), (1, ""), "{ended:?}");
    assert_eq!(model.requests().len(), 1);
}

/// SPEC U2: the same while the answer streams.
#[tokio::test]
async fn a_pipe_that_breaks_while_the_answer_streams_ends_the_request() {
    let bench = Bench::new();
    let script = Script::new("scripted").turn(
        Turn::text_only("one two three four five six seven eight nine ten".repeat(2_000))
            .gate_at_delta("reader has gone", 2),
    );
    let model = ScriptedModel::start(script).await.unwrap();
    let mut running = bench
        .program(["-p", "count", "--output-format", "stream-json"])
        .asking(&model, Api::AnthropicMessages)
        .start();
    running.wait_for_event("message_update").await;
    running.close_output();
    model.open_gate("reader has gone");
    let ended = running.end().await;
    assert_eq!((ended.code, ended.stderr.as_str()), (1, ""), "{ended:?}");
}

/// SPEC U3: a full disk behind standard output is a failure that is said.
#[tokio::test]
async fn an_answer_that_cannot_be_written_is_a_failure() {
    for format in ["text", "json", "stream-json"] {
        let bench = Bench::new();
        let model = says("Yes.").await;
        let ended = bench
            .program(["-p", "hello", "--output-format", format])
            .asking(&model, Api::AnthropicMessages)
            .output(Output::Full)
            .run()
            .await;
        assert_eq!(
            ended.all(),
            (
                1,
                "",
                "error: cannot write to standard output: No space left on device (os error 28)\n"
            ),
            "{format}"
        );
    }
}

/// SPEC U2: further instructions and fewer tools reach the model.
#[tokio::test]
async fn options_change_what_the_model_is_told() {
    let bench = Bench::new();
    let model = says("Yes.").await;
    let ended = bench
        .program(["-p", "hello", "--append-system-prompt", "Speak Latin."])
        .arguments(["--allowed-tools", "Read,Bash", "--disallowed-tools", "Bash"])
        .asking(&model, Api::OpenaiChat)
        .run()
        .await;
    assert_eq!(ended.all(), (0, "Yes.\n", ""));
    let conversation = model.requests()[0].conversation();
    assert!(conversation.system.ends_with("\n\nSpeak Latin."), "{}", conversation.system);
    assert_eq!(conversation.tools, ["Read"]);
}

/// SPEC U2: a provider of one's own is four lines of configuration.
#[tokio::test]
async fn a_provider_of_ones_own_is_asked() {
    for api in APIS {
        let bench = Bench::new();
        let model = says("Yes.").await;
        bench.configure(&format!(
            "model = 'mine/some/model'\n[providers.mine]\napi = '{}'\nbase_url = '{}'\n\
             key_env = 'MINE_API_KEY'\n",
            api.as_str(),
            model.base_url(api)
        ));
        let ended = bench
            .program(["-p", "hello"])
            .variable("MINE_API_KEY", KEY)
            .checked_by(&model)
            .run()
            .await;
        assert_eq!(ended.all(), (0, "Yes.\n", ""));
        assert_eq!(model.requests()[0].conversation().model, "some/model");
    }
}

/// SPEC M9, M16: what the model thought goes back to it with its signature.
#[tokio::test]
async fn thinking_goes_back_as_it_came() {
    let bench = Bench::new();
    bench.write("a.txt", "alpha\n");
    let script = Script::new("scripted")
        .turn(
            Turn::new()
                .thinking("I should look first.")
                .text("Let me look.")
                .call("Read", json!({"path": "a.txt"})),
        )
        .turn(Turn::text_only("It says alpha."));
    let model = ScriptedModel::start(script).await.unwrap();
    let ended = bench
        .program(["-p", "what is in a.txt?"])
        .asking(&model, Api::AnthropicMessages)
        .run()
        .await;
    assert_eq!(ended.all(), (0, "It says alpha.\n", ""));
    let body = &model.requests()[1].body;
    let blocks: Vec<&Value> =
        body["messages"][1]["content"].as_array().unwrap().iter().map(|b| &b["type"]).collect();
    assert_eq!(blocks, ["thinking", "text", "tool_use"]);
    assert_eq!(body["messages"][1]["content"][0]["thinking"], "I should look first.");
    let entries = model.requests()[1].conversation().entries;
    let Some(Entry::Result { text, .. }) = entries.last() else { panic!("{entries:?}") };
    assert!(text.starts_with("1\talpha"), "{text}");
}
