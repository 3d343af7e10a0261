//! Calls that a model writes as text: taken back, asked for once more, given up the second time.

use ai::{Api, Usage};
use scripted_model::{Entry, RecordedRequest, Script, ScriptedModel, Turn};
use serde_json::{Value, json};
use tests::bench::Bench;
use tests::outline::outline;
use tests::program::Ended;

const APIS: [Api; 2] = [Api::AnthropicMessages, Api::OpenaiChat];

const WRITTEN: &str =
    "I read it.\n\n<invoke name=\"Read\">\n<parameter name=\"path\">a.txt</parameter>\n</invoke>";

/// What the note of a repair begins with.
const NOTE: &str = "Your last answer wrote a tool call as text";

async fn play(turns: impl IntoIterator<Item = Turn>) -> ScriptedModel {
    let script = turns.into_iter().fold(Script::new("scripted"), Script::turn);
    ScriptedModel::start(script).await.unwrap()
}

async fn ask(bench: &Bench, model: &ScriptedModel, api: Api, format: &str) -> Ended {
    bench.write("a.txt", "alpha\n");
    bench.program(["-p", "hello", "--output-format", format]).asking(model, api).run().await
}

/// What happened, without the deltas and the tools.
fn course(ended: &Ended) -> Vec<String> {
    let mut lines = outline(&ended.events());
    lines.retain(|line| {
        !["message_update", "agent_status", "tool_"].iter().any(|kind| line.starts_with(kind))
            && !line.contains("tool_result ")
    });
    lines
}

fn costs(input: u64, output: u64) -> Usage {
    Usage { input, output, ..Usage::default() }
}

/// Everything that a request says, whoever said it.
fn said(request: &RecordedRequest) -> String {
    let text = |entry: Entry| match entry {
        Entry::User { text } | Entry::Assistant { text, .. } | Entry::Result { text, .. } => text,
        other => panic!("{other:?}"),
    };
    request.conversation().entries.into_iter().map(text).collect::<Vec<_>>().join("\n")
}

/// The roles and texts of the messages in the history that `-p` hands over.
fn history(ended: &Ended) -> Vec<(String, String)> {
    let text = |message: &Value| {
        let blocks = message["content"].as_array().unwrap().iter();
        blocks.filter_map(|block| block["text"].as_str()).collect::<String>()
    };
    let messages = ended.json()["messages"].as_array().unwrap().clone();
    messages
        .iter()
        .map(|message| (message["role"].as_str().unwrap().to_owned(), text(message)))
        .collect()
}

/// SPEC M18, L10, M10: the answer is taken back, the model reads a note, its new answer's call runs,
/// neither the note nor the old answer is ever seen again, and both answers are paid for.
#[tokio::test]
async fn a_call_written_as_text_is_asked_for_once_more() {
    let turns = || {
        [
            Turn::text_only(WRITTEN).usage(costs(100, 20)),
            Turn::new().call("Read", json!({"path": "a.txt"})).usage(costs(110, 5)),
            Turn::text_only("It says alpha.").usage(costs(150, 7)),
        ]
    };
    for api in APIS {
        let bench = Bench::new();
        let model = play(turns()).await;
        let ended = ask(&bench, &model, api, "stream-json").await;
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{api:?} {ended:?}");
        assert_eq!(
            course(&ended),
            [
                "session",
                "agent_start",
                "turn_start 1",
                "message_start user",
                "message_end user",
                "message_start assistant",
                "message_discard",
                "message_start assistant",
                "message_end assistant",
                "turn_end 1 results=1 more=true",
                "turn_start 2",
                "message_start assistant",
                "message_end assistant",
                "turn_end 2 results=0 more=false",
                "agent_end completed messages=4",
            ],
            "{api:?}"
        );
        let requests = model.requests();
        assert_eq!(requests.len(), 3);
        let last = requests[1].conversation().entries.pop();
        assert!(
            matches!(&last, Some(Entry::User { text }) if text.contains(NOTE)),
            "{api:?} {last:?}"
        );
        assert!(!said(&requests[1]).contains("<invoke"), "{api:?}");
        for request in [&requests[0], &requests[2]] {
            let said = said(request);
            assert!(!said.contains(NOTE) && !said.contains("<invoke"), "{api:?} {said}");
        }

        let model = play(turns()).await;
        let ended = ask(&bench, &model, api, "json").await;
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{api:?} {ended:?}");
        let history = history(&ended);
        let texts: Vec<(&str, &str)> =
            history.iter().map(|(role, text)| (role.as_str(), text.as_str())).collect();
        let [first, call, (result, content), last] = &texts[..] else { panic!("{texts:?}") };
        assert_eq!(
            [*first, *call, *last],
            [("user", "hello"), ("assistant", ""), ("assistant", "It says alpha.")]
        );
        assert!(*result == "tool_result" && content.starts_with("1\talpha"), "{content}");
        let usage = &ended.json()["usage"];
        assert_eq!((&usage["input"], &usage["output"]), (&json!(360), &json!(32)), "{api:?}");
    }
}

/// SPEC M18, L10: the second time in a turn ends the run, and nothing of either is kept.
#[tokio::test]
async fn the_second_violation_ends_the_run() {
    for api in APIS {
        let bench = Bench::new();
        let turns = || {
            [
                Turn::text_only(WRITTEN).usage(costs(100, 20)),
                Turn::text_only("<tool_call>\n{\"name\": \"Read\"}\n</tool_call>")
                    .usage(costs(110, 5)),
            ]
        };
        let model = play(turns()).await;
        let ended = ask(&bench, &model, api, "stream-json").await;
        assert_eq!(ended.code, 1, "{api:?} {ended:?}");
        assert!(ended.stderr.starts_with("error: protocol_violation: "), "{}", ended.stderr);
        assert_eq!(
            course(&ended),
            [
                "session",
                "agent_start",
                "turn_start 1",
                "message_start user",
                "message_end user",
                "message_start assistant",
                "message_discard",
                "message_start assistant",
                "message_discard",
                "error protocol_violation",
                "turn_end 1 results=0 more=false",
                "agent_end error messages=1",
            ],
            "{api:?}"
        );
        assert_eq!(model.requests().len(), 2);

        let model = play(turns()).await;
        let ended = ask(&bench, &model, api, "json").await;
        assert_eq!(ended.code, 1, "{api:?} {ended:?}");
        assert_eq!(ended.json()["reason"]["cause"], json!("protocol_violation"), "{ended:?}");
        assert_eq!(history(&ended), [("user".to_owned(), "hello".to_owned())]);
        let usage = &ended.json()["usage"];
        assert_eq!((&usage["input"], &usage["output"]), (&json!(210), &json!(25)), "{api:?}");
    }
}

/// SPEC M18: what is shown or talked about, and what accompanies a real call, is an answer.
#[tokio::test]
async fn text_about_calls_is_an_answer() {
    let fenced = format!("This is what a call looks like:\n\n```xml\n{WRITTEN}\n```");
    for text in [fenced.as_str(), "use the <invoke name=\"Read\"> tag"] {
        for api in APIS {
            let bench = Bench::new();
            let model = play([Turn::text_only(text)]).await;
            let ended = ask(&bench, &model, api, "text").await;
            assert_eq!(ended.all(), (0, format!("{text}\n").as_str(), ""), "{api:?}");
            assert_eq!(model.requests().len(), 1);
        }
    }
    for api in APIS {
        let bench = Bench::new();
        let both = Turn::text_only(WRITTEN).call("Read", json!({"path": "a.txt"}));
        let model = play([both, Turn::text_only("Done.")]).await;
        let ended = ask(&bench, &model, api, "text").await;
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{api:?} {ended:?}");
        assert!(said(&model.requests()[1]).contains("<invoke"), "{api:?}");
    }
}
