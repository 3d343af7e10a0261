//! Tool calls that a model makes: good ones, bad ones, and what the model reads of them.

use ai::Api;
use scripted_model::{Entry, Script, ScriptedModel, Turn};
use serde_json::{Value, json};
use tests::bench::Bench;
use tests::outline::outline;

const APIS: [Api; 2] = [Api::AnthropicMessages, Api::OpenaiChat];

async fn play(turns: impl IntoIterator<Item = Turn>) -> ScriptedModel {
    let script = turns.into_iter().fold(Script::new("scripted"), Script::turn);
    ScriptedModel::start(script).await.unwrap()
}

/// The results that a request carries for the answer before it: text, and whether it is marked as
/// an error.
fn results(model: &ScriptedModel, request: usize) -> Vec<(String, Option<bool>)> {
    let conversation = model.requests()[request].conversation();
    let read = |entry: &Entry| match entry {
        Entry::Result { text, is_error, .. } => (text.clone(), *is_error),
        other => panic!("{other:?}"),
    };
    conversation.last_results().map(read).collect()
}

/// SPEC L5, I2, I3, M6, M19: whatever is wrong with a call, the model reads it and goes on; a strict
/// server accepts the history in both dialects, at the next turn and the one after.
#[tokio::test]
async fn bad_calls_are_results_that_the_model_reads() {
    for api in APIS {
        let bench = Bench::new();
        bench.write("a.txt", "alpha\n");
        let bad = Turn::new()
            .text("I try everything.")
            .call("Fly", json!({"to": "the moon"}))
            .raw_call("Read", r#"{"path": "a.t"#)
            .raw_call("Read", "")
            .call("Read", json!({"path": 5, "limit": "two"}))
            .call("Edit", json!({"path": "a.txt"}))
            .call("Read", json!({"path": "missing.txt"}))
            .call("Bash", json!({"command": "true"}))
            .call("Read", json!({"path": "a.txt"}));
        let model = play([
            bad,
            Turn::new().call("Read", json!({"path": "a.txt"})),
            Turn::text_only("That was enough."),
        ])
        .await;
        let ended = bench
            .program(["-p", "try", "--output-format", "stream-json"])
            .asking(&model, api)
            .run()
            .await;
        assert_eq!(ended.code, 3, "{ended:?}");
        let kinds: Vec<Value> = ended
            .events()
            .iter()
            .filter(|event| {
                event["type"] == "message_end" && event["message"]["role"] == "tool_result"
            })
            .map(|event| event["message"]["error_kind"].clone())
            .collect();
        assert_eq!(
            json!(kinds),
            json!([
                "not_found",
                "invalid_arguments",
                "invalid_arguments",
                "invalid_arguments",
                "invalid_arguments",
                "failed",
                "denied",
                null,
                null
            ])
        );
        let marked = matches!(api, Api::AnthropicMessages);
        let read = results(&model, 1);
        let marks: Vec<bool> = read.iter().map(|(_, mark)| mark.unwrap_or(false)).collect();
        let failed = [true, true, true, true, true, true, true, false];
        assert_eq!(marks, failed.map(|failed| failed && marked));
        let beginnings = [
            "there is no tool Fly; the tools are Read, Edit, Write, Bash",
            "the arguments are not a JSON object: ",
            "invalid arguments for Read: ",
            "invalid arguments for Read: ",
            "invalid arguments for Edit: ",
            "missing.txt does not exist",
            "denied: ",
            "1\talpha\n",
        ];
        for ((text, _), beginning) in read.iter().zip(beginnings) {
            assert!(text.starts_with(beginning), "{text:?} begins with {beginning:?}");
        }
        assert!(read[1].0.contains(r#"{"path": "a.t"#), "quoted: {}", read[1].0);
        assert!(read[3].0.contains("`/path`") && read[3].0.contains("`/limit`"), "{}", read[3].0);
        // The third request repeats the first results to the letter: history does not change.
        let third = model.requests()[2].conversation();
        let earlier: Vec<String> = third
            .entries
            .iter()
            .filter_map(|entry| match entry {
                Entry::Result { text, .. } => Some(text.clone()),
                Entry::User { .. } | Entry::Assistant { .. } => None,
                other => panic!("{other:?}"),
            })
            .collect();
        let first: Vec<String> = read.into_iter().map(|(text, _)| text).collect();
        assert_eq!(earlier[..8], first);
    }
}

/// SPEC T1, L1: an edit between reads waits for those before it and holds back those after it.
#[tokio::test]
async fn an_edit_is_a_barrier_between_reads() {
    for api in APIS {
        let bench = Bench::new();
        bench.write("a.txt", "one\n");
        bench.write("b.txt", "two\n");
        let edits = json!([{"old_text": "one", "new_text": "eins"}]);
        let model = play([
            Turn::new()
                .call("Read", json!({"path": "a.txt"}))
                .call("Read", json!({"path": "b.txt"}))
                .call("Edit", json!({"path": "a.txt", "edits": edits}))
                .call("Read", json!({"path": "a.txt"})),
            Turn::text_only("Done."),
        ])
        .await;
        let ended = bench
            .program(["-p", "go", "--output-format", "stream-json"])
            .arguments(["--permission-mode", "accept-edits"])
            .asking(&model, api)
            .run()
            .await;
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{ended:?}");
        let ids: Vec<String> =
            model.requests()[1].conversation().calls().map(|call| call.id.clone()).collect();
        let mut lines = outline(&ended.events());
        lines.retain(|line| line.starts_with("tool_") || line.contains("tool_result"));
        // The two reads at the beginning run at the same time.
        lines[2..4].sort();
        let [a, b, edit, again] = &ids[..] else { panic!("{ids:?}") };
        let expected = [
            format!("tool_execution_start {a} Read a.txt"),
            format!("tool_execution_start {b} Read b.txt"),
            format!("tool_execution_end {a} is_error=false"),
            format!("tool_execution_end {b} is_error=false"),
            format!("message_start tool_result {a}"),
            format!("message_end tool_result {a}"),
            format!("message_start tool_result {b}"),
            format!("message_end tool_result {b}"),
            format!("tool_execution_start {edit} Edit a.txt"),
            format!("tool_execution_end {edit} is_error=false"),
            format!("message_start tool_result {edit}"),
            format!("message_end tool_result {edit}"),
            format!("tool_execution_start {again} Read a.txt"),
            format!("tool_execution_end {again} is_error=false"),
            format!("message_start tool_result {again}"),
            format!("message_end tool_result {again}"),
        ];
        assert_eq!(lines, expected);
        let texts: Vec<String> = results(&model, 1).into_iter().map(|(text, _)| text).collect();
        assert!(texts[0].starts_with("1\tone\n"), "{texts:?}");
        assert!(texts[1].starts_with("1\ttwo\n"), "{texts:?}");
        assert!(texts[2].starts_with("edited a.txt: 1 replacement"), "{texts:?}");
        assert!(texts[3].starts_with("1\teins\n"), "{texts:?}");
    }
}

/// SPEC M7: an id that comes back in a later answer belongs to that answer's call.
#[tokio::test]
async fn ids_that_come_back_are_told_apart() {
    for api in APIS {
        let bench = Bench::new();
        bench.write("a.txt", "alpha\n");
        bench.write("b.txt", "beta\n");
        let model = play([
            Turn::new().call_with_id("same", "Read", json!({"path": "a.txt"})).call_with_id(
                "same",
                "Read",
                json!({"path": "b.txt"}),
            ),
            Turn::new().call_with_id("same", "Read", json!({"path": "b.txt"})),
            Turn::text_only("Done."),
        ])
        .await;
        let ended = bench.program(["-p", "go"]).asking(&model, api).run().await;
        assert_eq!(ended.all(), (0, "Done.\n", ""), "{api:?}");
        let first: Vec<String> = results(&model, 1).into_iter().map(|(text, _)| text).collect();
        assert!(first[0].starts_with("1\talpha") && first[1].starts_with("1\tbeta"), "{first:?}");
        let second: Vec<String> = results(&model, 2).into_iter().map(|(text, _)| text).collect();
        assert!(second.len() == 1 && second[0].starts_with("1\tbeta"), "{second:?}");
    }
}

/// SPEC L8: after an answer that was cut by its length no call of it runs.
#[tokio::test]
async fn calls_of_an_answer_that_was_cut_are_not_run() {
    for api in APIS {
        let bench = Bench::new();
        let model = play([
            Turn::new().call("Write", json!({"path": "a.txt", "content": "x"})).stop("length"),
            Turn::text_only("Shorter now."),
        ])
        .await;
        let ended = bench
            .program(["-p", "go", "--permission-mode", "accept-edits"])
            .asking(&model, api)
            .run()
            .await;
        assert_eq!(
            ended.all(),
            (1, "Shorter now.\n", "note: an answer was cut by the limit of output tokens\n")
        );
        assert_eq!(bench.names("."), Vec::<String>::new());
        assert!(results(&model, 1)[0].0.starts_with("not executed: "));
    }
}

/// SPEC T1: a call with `stop` as its reason is a call like any other.
#[tokio::test]
async fn a_call_is_run_whatever_the_stop_word() {
    for api in APIS {
        let bench = Bench::new();
        bench.write("a.txt", "alpha\n");
        let model = play([
            Turn::new().call("Read", json!({"path": "a.txt"})).stop("stop"),
            Turn::text_only("Done."),
        ])
        .await;
        let ended = bench.program(["-p", "go"]).asking(&model, api).run().await;
        assert_eq!(ended.all(), (0, "Done.\n", ""));
        assert!(results(&model, 1)[0].0.starts_with("1\talpha"));
    }
}

/// SPEC M15: an image that is read reaches a model that sees.
#[tokio::test]
async fn an_image_is_returned_as_such() {
    // One transparent pixel.
    const PIXEL: &[u8] = &[
        0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44,
        0x52, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x06, 0x00, 0x00, 0x00, 0x1f,
        0x15, 0xc4, 0x89, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0x00,
        0x01, 0x00, 0x00, 0x05, 0x00, 0x01, 0x0d, 0x0a, 0x2d, 0xb4, 0x00, 0x00, 0x00, 0x00, 0x49,
        0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
    ];
    for api in APIS {
        let bench = Bench::new();
        bench.write("pixel.png", PIXEL);
        let model = play([
            Turn::new().call("Read", json!({"path": "pixel.png"})),
            Turn::text_only("A pixel."),
        ])
        .await;
        let ended = bench.program(["-p", "look"]).asking(&model, api).run().await;
        assert_eq!(ended.all(), (0, "A pixel.\n", ""), "{api:?}");
        assert!(model.requests()[1].body.to_string().contains("image/png"), "{api:?}");
    }
}
