//! Faults on the way to the model: what is asked again, what is taken back, what is said.

use std::time::Duration;

use ai::Api;
use scripted_model::{Fault, Script, ScriptedModel, Turn};
use serde_json::{Value, json};
use tests::bench::Bench;
use tests::outline::outline;
use tests::program::{Ended, KEY};

const APIS: [Api; 2] = [Api::AnthropicMessages, Api::OpenaiChat];

async fn play(turns: impl IntoIterator<Item = Turn>) -> ScriptedModel {
    let script = turns.into_iter().fold(Script::new("scripted"), Script::turn);
    ScriptedModel::start(script).await.unwrap()
}

/// Waits briefly for a silent model, though long enough for one on a busy machine.
const IMPATIENT: [&str; 4] =
    ["--config", "timeouts.idle_ms=700", "--config", "timeouts.first_byte_ms=700"];

/// The patience that a fault's test needs.
fn patience(fault: &str) -> &'static [&'static str] {
    if fault == "stall" { &IMPATIENT } else { &[] }
}

async fn ask(bench: &Bench, model: &ScriptedModel, api: Api, arguments: &[&str]) -> Ended {
    bench
        .program(["-p", "hello", "--output-format", "stream-json"])
        .arguments(arguments)
        .asking(model, api)
        .run()
        .await
}

/// What happened, without the deltas.
fn course(ended: &Ended) -> Vec<String> {
    let mut lines = outline(&ended.events());
    lines.retain(|line| !line.starts_with("message_update") && !line.starts_with("agent_status"));
    lines
}

/// What comes before an answer.
const BEGINNING: [&str; 5] =
    ["session", "agent_start", "turn_start 1", "message_start user", "message_end user"];

/// What comes with an answer that is the run's last.
const ANSWER: [&str; 4] = [
    "message_start assistant",
    "message_end assistant",
    "turn_end 1 results=0 more=false",
    "agent_end completed messages=2",
];

/// SPEC M13: what failed before any content is asked for again, and said.
#[tokio::test]
async fn an_attempt_without_content_is_repeated() {
    let cases: [(&str, Vec<Fault>, &[&'static str]); 7] = [
        ("429", vec![Fault::status_with_header(429, "retry-after-ms", "5")], &["rate_limit"]),
        ("500 twice", vec![Fault::status(500), Fault::status(500)], &["server", "server"]),
        ("529", vec![Fault::status(529)], &["overloaded"]),
        ("disconnect", vec![Fault::Disconnect { after_bytes: None }], &["network"]),
        ("cut", vec![Fault::Cut { after_bytes: None }], &["network"]),
        ("empty body", vec![Fault::NoEnd { after_bytes: Some(0) }], &["truncated_stream"]),
        ("stall", vec![Fault::Stall { after_bytes: None }], &["timeout"]),
    ];
    let mut runs = Vec::new();
    for (name, faults, kinds) in cases {
        for api in APIS {
            let faults = faults.clone();
            runs.push(async move {
                let bench = Bench::new();
                let turns = faults.into_iter().map(Turn::fault_only);
                let model = play(turns.chain([Turn::text_only("At last.")])).await;
                let ended = ask(&bench, &model, api, patience(name)).await;
                assert_eq!(ended.code, 0, "{name} {api:?} {ended:?}");
                let retries: Vec<String> = kinds
                    .iter()
                    .enumerate()
                    .map(|(at, kind)| format!("retry attempt={} {kind}", at + 1))
                    .collect();
                let retries: Vec<&str> = retries.iter().map(String::as_str).collect();
                let expected = [&BEGINNING, retries.as_slice(), &ANSWER].concat();
                assert_eq!(course(&ended), expected, "{name} {api:?}");
                assert_eq!(ended.stderr.lines().count(), kinds.len(), "{}", ended.stderr);
                assert!(ended.stderr.lines().all(|line| line.starts_with("retry: attempt ")));
                assert_eq!(model.requests().len(), kinds.len() + 1);
            });
        }
    }
    futures::future::join_all(runs).await;
}

/// SPEC M5, M12, Q11, L10: an answer that broke off is taken back and asked for again; what is kept
/// is the whole one alone, and its request does not hold the half one.
#[tokio::test]
async fn half_an_answer_is_taken_back() {
    let faults = [
        ("disconnect", Fault::Disconnect { after_bytes: Some(900) }, "network"),
        ("cut", Fault::Cut { after_bytes: Some(900) }, "truncated_stream"),
        ("no end", Fault::NoEnd { after_bytes: None }, "truncated_stream"),
        ("stall", Fault::Stall { after_bytes: Some(900) }, "timeout"),
        ("error event", Fault::ErrorEvent { after_bytes: Some(900), body: None }, "overloaded"),
    ];
    let text = "This answer is long enough to break off in its middle. ".repeat(20);
    let mut runs = Vec::new();
    for (name, fault, kind) in faults {
        for api in APIS {
            let (fault, text) = (fault.clone(), text.clone());
            runs.push(async move {
                let bench = Bench::new();
                let model =
                    play([Turn::text_only(text).fault(fault), Turn::text_only("Whole.")]).await;
                let ended = ask(&bench, &model, api, patience(name)).await;
                assert_eq!(ended.code, 0, "{name} {api:?} {ended:?}");
                // OpenAI has no word of its own for being overloaded.
                let kind = match (kind, api) {
                    ("overloaded", Api::OpenaiChat) => "server",
                    _ => kind,
                };
                let retry = format!("retry attempt=1 {kind}");
                let taken_back = ["message_start assistant", "message_discard", &retry];
                let expected = [&BEGINNING[..], &taken_back, &ANSWER].concat();
                assert_eq!(course(&ended), expected, "{name} {api:?}");
                let events = ended.events();
                let id_of = |kind: &str| {
                    let event = events.iter().find(|event| event["type"] == kind).unwrap();
                    event.get("message_id").unwrap_or(&event["message"]["id"]).clone()
                };
                let starts: Vec<&Value> = events
                    .iter()
                    .filter(|event| event["type"] == "message_start")
                    .map(|event| &event["message"]["id"])
                    .collect();
                assert_eq!(id_of("message_discard"), *starts[1]);
                let end = &events[events.len() - 2];
                assert_eq!(
                    end["messages"][1]["content"],
                    json!([{"type": "text", "text": "Whole."}])
                );
                let requests = model.requests();
                assert_eq!(requests.len(), 2);
                assert_eq!(requests[0].body, requests[1].body, "{name} {api:?}");
            });
        }
    }
    futures::future::join_all(runs).await;
}

/// SPEC L8, M12, U3: what does not pass by itself ends the run, with the reason.
#[tokio::test]
async fn what_asking_again_cannot_mend_ends_the_run() {
    let cases = [
        ("401", Fault::status(401), "auth"),
        ("403", Fault::status(403), "permission"),
        ("404", Fault::status(404), "not_found"),
        ("400", Fault::status(400), "invalid_request"),
        ("malformed", Fault::Malformed { after_bytes: None, garbage: None }, "malformed_stream"),
    ];
    for (name, fault, kind) in cases {
        for api in APIS {
            let bench = Bench::new();
            let model = play([Turn::text_only("Never.").fault(fault.clone())]).await;
            let ended = ask(&bench, &model, api, &[]).await;
            assert_eq!(ended.code, 1, "{name} {api:?} {ended:?}");
            let error = format!("error {kind}");
            let expected = [
                &BEGINNING[..],
                &[
                    "message_start assistant",
                    "message_end assistant",
                    error.as_str(),
                    "turn_end 1 results=0 more=false",
                    "agent_end error messages=2",
                ],
            ]
            .concat();
            assert_eq!(course(&ended), expected, "{name} {api:?}");
            let events = ended.events();
            let message = events.iter().find(|event| event["type"] == "error").unwrap()["message"]
                .as_str()
                .unwrap()
                .to_owned();
            assert_ne!(message, "");
            let said = ended.stderr.strip_prefix(&format!("error: {kind}: {message}\n"));
            let said = said.unwrap_or_else(|| panic!("{name} {api:?} {ended:?}"));
            // What to look at, where the provider's words alone do not tell.
            let hinted = ["auth", "not_found", "malformed_stream"].contains(&kind);
            assert_eq!(said.starts_with("hint: "), hinted, "{name} {api:?} {said}");
            assert_eq!(said.lines().count(), usize::from(hinted), "{name} {api:?} {said}");
            assert_eq!(model.requests().len(), 1);
        }
    }
}

/// SPEC U4, M13: said before the first wait is over, tried again within its bound, exit code 1.
#[tokio::test]
async fn a_refused_connection_is_said_and_given_up() {
    // A port on which nobody listens: it was free a moment ago.
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let bench = Bench::new();
    let mut running = bench
        .program(["-p", "hello", "--model", "anthropic/scripted", "--output-format", "json"])
        .arguments(["--config", "retry.max_elapsed_ms=600"])
        .variable("ANTHROPIC_BASE_URL", format!("http://{address}"))
        .variable("ANTHROPIC_API_KEY", KEY)
        .start();
    let begun = std::time::Instant::now();
    let first = running.next_error_line().await;
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert!(first.starts_with("retry: attempt 1 failed ("), "{first}");
    assert!(first.contains(&address.to_string()), "{first}");
    let ended = running.end().await;
    assert_eq!(ended.code, 1);
    let object = ended.json();
    assert_eq!(object["error"]["kind"], "network");
    let message = object["error"]["message"].as_str().unwrap();
    assert_eq!(
        ended.stderr.lines().last().unwrap(),
        format!("error: network: {message}"),
        "{ended:?}"
    );
    let retries = ended.stderr.lines().filter(|line| line.starts_with("retry: ")).count();
    assert!((1..=3).contains(&retries), "{ended:?}");
    assert_eq!(
        object["reason"],
        json!({
            "kind": "error", "cause": "network", "message": message, "turn": 1
        })
    );
}

/// SPEC U4: without a retry the refusal is the last word at once.
#[tokio::test]
async fn a_refused_connection_without_retries_fails_at_once() {
    let bench = Bench::new();
    let ended = bench
        .program(["-p", "hello", "--model", "openai/scripted", "--config", "retry.max_attempts=1"])
        .variable("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
        .variable("OPENAI_API_KEY", KEY)
        .run()
        .await;
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""));
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.starts_with("error: network: "), "{}", ended.stderr);
    assert!(ended.stderr.contains("127.0.0.1:1"), "{}", ended.stderr);
}

/// SPEC M13: a hint beyond the bound is obeyed by giving up, not by asking early.
#[tokio::test]
async fn a_wait_beyond_the_bound_is_not_begun() {
    let bench = Bench::new();
    let fault = Fault::status_with_header(429, "retry-after", "3600");
    let model = play([Turn::fault_only(fault), Turn::text_only("Never.")]).await;
    let ended = ask(&bench, &model, Api::AnthropicMessages, &[]).await;
    assert_eq!(ended.code, 1);
    assert_eq!(model.requests().len(), 1);
    assert_eq!(course(&ended)[7], "error rate_limit");
}

/// SPEC L8, Q11, I2, I3: an answer whose call was still being written is taken back with it; the
/// calls of the whole one run once.
#[tokio::test]
async fn a_call_that_broke_off_is_not_run() {
    for api in APIS {
        let bench = Bench::new();
        let content = "x".repeat(2_000);
        let call =
            |path: &str| Turn::new().call("Write", json!({"path": path, "content": content}));
        let model = play([
            call("half.txt").fault(Fault::Cut { after_bytes: Some(1_500) }),
            call("whole.txt"),
            Turn::text_only("Written."),
        ])
        .await;
        let ended = ask(&bench, &model, api, &["--permission-mode", "accept-edits"]).await;
        assert_eq!(ended.code, 0, "{ended:?}");
        assert_eq!(bench.names("."), ["whole.txt"]);
        let calls = model.requests()[2].conversation().calls().count();
        assert_eq!(calls, 1);
    }
}

/// SPEC U4, M12: answers that are no API's: a proxy's page, nothing at all.
#[tokio::test]
async fn what_a_proxy_says_is_passed_on_in_words() {
    let page = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>";
    let cases = [(page, "502 Bad Gateway"), ("", "502")];
    for (body, words) in cases {
        let bench = Bench::new();
        let fault = Fault::Status {
            code: 502,
            headers: Default::default(),
            body: Some(scripted_model::FaultBody::Text(body.to_owned())),
        };
        let model = play([Turn::fault_only(fault)]).await;
        let ended =
            ask(&bench, &model, Api::OpenaiChat, &["--config", "retry.max_attempts=1"]).await;
        assert_eq!(ended.code, 1);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        assert!(ended.stderr.starts_with("error: server: "), "{}", ended.stderr);
        assert!(ended.stderr.contains(words) && !ended.stderr.contains('<'), "{}", ended.stderr);
    }
}
