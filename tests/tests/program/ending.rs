//! How a run ends: its exit code, what is said, and what is left of it (nothing).

use ai::Api;
use rustix::process::Signal;
use scripted_model::{Fault, Script, ScriptedModel, Turn};
use serde_json::json;
use tests::bench::Bench;
use tests::outline::outline;
use tests::program::Running;

const APIS: [Api; 2] = [Api::AnthropicMessages, Api::OpenaiChat];

async fn play(turns: impl IntoIterator<Item = Turn>) -> ScriptedModel {
    let script = turns.into_iter().fold(Script::new("scripted"), Script::turn);
    ScriptedModel::start(script).await.unwrap()
}

/// SPEC U2, L7, L8, Q6: what ends a run as failed.
#[tokio::test]
async fn a_failed_run_exits_with_one() {
    let call = || Turn::new().call("Read", json!({"path": "a.txt"}));
    let cases = [
        (
            "auth",
            vec![Turn::fault_only(Fault::status(401))],
            &[][..],
            json!({"kind": "error", "cause": "auth", "turn": 1, "message": "MESSAGE"}),
            "error: auth: MESSAGE\nhint: PROVIDER has its key from PROVIDER_API_KEY\n",
        ),
        (
            "refusal",
            vec![Turn::text_only("I").stop("refusal")],
            &[],
            json!({"kind": "refusal"}),
            "error: content_filter: the model, or a filter before it, refused to answer\n",
        ),
        (
            "overflow",
            vec![Turn::text_only("I").stop("context_overflow")],
            &[],
            json!({"kind": "context_overflow"}),
            "error: context_overflow: the conversation does not fit the model's context window\n",
        ),
        (
            "turns",
            vec![call(), call(), call()],
            &["--max-turns", "2"],
            json!({"kind": "iteration_limit"}),
            "note: the limit of turns was reached (--max-turns, limits.max_turns)\n",
        ),
        (
            "tokens",
            vec![Turn::text_only("half an ans").stop("length")],
            &[],
            json!({"kind": "max_tokens"}),
            "note: an answer was cut by the limit of output tokens\n",
        ),
    ];
    for (name, turns, arguments, reason, stderr) in cases {
        for api in APIS {
            let bench = Bench::new();
            bench.write("a.txt", "alpha\n");
            let model = play(turns.clone()).await;
            let ended = bench
                .program(["-p", "hello", "--output-format", "json"])
                .arguments(arguments)
                .asking(&model, api)
                .run()
                .await;
            let object = ended.json();
            // The provider's own words.
            let words = object["error"]["message"].as_str().unwrap_or("-").to_owned();
            let mut found = object["reason"].clone();
            let mut said = ended.stderr.clone();
            if name == "auth" {
                found["message"] =
                    json!(found["message"].as_str().unwrap().replace(&words, "MESSAGE"));
                said = said.replace(&words, "MESSAGE");
                for name in ["anthropic", "openai"] {
                    let variable = format!("{}_API_KEY", name.to_uppercase());
                    said = said.replace(name, "PROVIDER").replace(&variable, "PROVIDER_API_KEY");
                }
            }
            assert_eq!((ended.code, &found, said.as_str()), (1, &reason, stderr), "{name} {api:?}");
            assert_eq!(bench.names("."), ["a.txt"]);
        }
    }
}

/// SPEC P6, U2: nobody can be asked; the model is told why, goes on, and the exit code tells.
#[tokio::test]
async fn a_denied_call_lets_the_run_go_on() {
    for api in APIS {
        let bench = Bench::new();
        let model = play([
            Turn::new().call("Bash", json!({"command": "echo done >by-bash"})),
            Turn::text_only("I would have run it."),
        ])
        .await;
        let ended = bench.program(["-p", "run it"]).asking(&model, api).run().await;
        assert_eq!(
            ended.all(),
            (
                3,
                "I would have run it.\n",
                "note: 1 call was denied because nobody could be asked; what needs \
                 asking depends on --permission-mode and --add-dir\n"
            )
        );
        assert_eq!(bench.names("."), Vec::<String>::new());
        let conversation = model.requests()[1].conversation();
        let results: Vec<_> = conversation.last_results().collect();
        let [scripted_model::Entry::Result { text, is_error, .. }] = results[..] else {
            panic!("{results:?}")
        };
        assert_eq!(
            text,
            "denied: this needs the user's permission and nobody can be asked here (what a \
             command does is not analysed yet, so every command is asked about). Go on without it, or say what you would have done"
        );
        assert_eq!(*is_error, matches!(api, Api::AnthropicMessages).then_some(true));
    }
}

/// A run whose command tells that it runs, with a child of its own.
async fn in_a_command<'b>(bench: &'b Bench, model: &'b ScriptedModel) -> Running<'b> {
    let mut running = bench
        .program(["-p", "wait", "--permission-mode", "bypass", "--output-format", "stream-json"])
        .asking(model, Api::AnthropicMessages)
        .start();
    running.wait_for_event("tool_execution_update").await;
    // The program, the shell and its child at least.
    assert!(bench.processes().len() >= 3, "{:?}", bench.processes());
    running
}

fn sleeps() -> [Turn; 2] {
    let command = "sleep 100 & echo up; wait";
    [Turn::new().call("Bash", json!({"command": command})), Turn::text_only("Never.")]
}

/// SPEC L2, L11, B3, I2, I10, U2: Ctrl-C and a termination during a command.
#[tokio::test]
async fn a_signal_ends_the_command_and_the_run() {
    for (signal, code, cause) in
        [(Signal::INT, 130, "user"), (Signal::TERM, 143, "signal"), (Signal::HUP, 143, "signal")]
    {
        let bench = Bench::new();
        let model = play(sleeps()).await;
        let running = in_a_command(&bench, &model).await;
        running.signal(signal);
        let ended = running.end().await;
        assert_eq!((ended.code, ended.stderr.as_str()), (code, "note: cancelled\n"), "{ended:?}");
        let events = ended.events();
        let mut lines = outline(&events);
        lines.retain(|line| !line.starts_with("message_update") && !line.contains("_update"));
        assert_eq!(
            lines[9..],
            [
                "tool_execution_end toolu_0001 is_error=true",
                "message_start tool_result toolu_0001",
                "message_end tool_result toolu_0001",
                "turn_end 1 results=1 more=false",
                "agent_end aborted messages=3",
                "agent_status idle",
            ],
            "{lines:#?}"
        );
        let end = &events[events.len() - 2];
        assert_eq!(end["reason"], json!({"kind": "aborted", "cause": cause}));
        let result = &end["messages"][2];
        assert_eq!(result["error_kind"], "aborted");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("up\n") && text.contains("cancelled"), "{text}");
        assert_eq!(model.requests().len(), 1);
    }
}

/// SPEC L12, M13, U2: a signal while the model is silent; what had arrived is kept.
#[tokio::test]
async fn a_signal_ends_a_stalled_stream() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        for api in APIS {
            let bench = Bench::new();
            let model = play([
                Turn::text_only("Half an answer and then nothing.").gate_at_delta("never", 1)
            ])
            .await;
            let mut running = bench
                .program(["-p", "hello", "--output-format", "stream-json"])
                .asking(&model, api)
                .start();
            while running.wait_for_event("message_update").await["event"]["type"] != "text_delta" {}
            running.signal(signal);
            let ended = running.end().await;
            assert_eq!((ended.code, ended.stderr.as_str()), (code, "note: cancelled\n"));
            let events = ended.events();
            let messages = &events[events.len() - 2]["messages"];
            let answer = &messages[1];
            assert_eq!(
                (&answer["content"], &answer["stop_reason"], &answer["interrupted"]),
                (
                    &json!([{"type": "text", "text": "Half an answer a"}]),
                    &json!("aborted"),
                    &json!(true)
                ),
                "{answer:#}"
            );
            assert_eq!(model.wait_for_end(0).await, scripted_model::Progress::Left);
        }
    }
}

/// SPEC M13, U2: the wait before a retry is ended by a signal.
#[tokio::test]
async fn a_signal_ends_the_wait_before_a_retry() {
    let bench = Bench::new();
    let model = play([Turn::fault_only(Fault::status_with_header(429, "retry-after", "60"))]).await;
    let mut running = bench.program(["-p", "hello"]).asking(&model, Api::AnthropicMessages).start();
    let line = running.next_error_line().await;
    assert!(line.starts_with("retry: attempt 1 failed (") && line.ends_with("; next in 60.0 s"));
    running.signal(Signal::INT);
    let ended = running.end().await;
    assert_eq!((ended.code, ended.stdout.as_str()), (130, ""));
    assert_eq!(ended.stderr, format!("{line}\nnote: cancelled\n"));
}

/// SPEC I10, U2: a second signal waits for nobody, and yet leaves nothing.
#[tokio::test]
async fn a_second_signal_leaves_at_once() {
    let bench = Bench::new();
    let command = "trap '' TERM INT; echo up; sleep 100 & wait; sleep 100";
    let model = play([Turn::new().call("Bash", json!({"command": command}))]).await;
    let mut running = bench
        .program(["-p", "wait", "--permission-mode", "bypass", "--output-format", "stream-json"])
        .arguments(["--config", "cancel.grace_ms=60000", "--config", "cancel.kill_grace_ms=50000"])
        .asking(&model, Api::AnthropicMessages)
        .start();
    running.wait_for_event("tool_execution_update").await;
    running.signal(Signal::INT);
    running.signal_until_ended(Signal::INT).await;
    let ended = running.end().await;
    assert_eq!(ended.code, 130, "{ended:?}");
}
