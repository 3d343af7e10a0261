//! Questions to a person, and what becomes of their answers.

use std::sync::Arc;
use std::time::Duration;

use agent::{
    AgentContext, AgentEvent, AgentLoopConfig, Approval, Approver, Effect, Effects, EndReason,
    Model, Nobody, OfferedTool, Question, ToolCall, ToolOutput, Tools, agent_loop,
};
use ai::{
    Api, ApiKey, HttpClient, HttpProvider, Origin, ProviderEntry, Timeouts, ToolErrorKind,
    UserMessage,
};
use futures::StreamExt;
use futures::future::BoxFuture;
use scripted_model::{Script, ScriptedModel, Turn};
use serde_json::json;
use tests::bench::Bench;
use tokio::sync::{Notify, Semaphore};

use crate::probes::{Answers, Journal, ProbeTool, call, offered, stack};

/// SPEC P6: once is once; the session is for the same tool with the same effects.
#[tokio::test]
async fn an_answer_holds_as_long_as_it_says() {
    let bench = Bench::new();
    let journal = Journal::default();
    let answers = Answers::new(
        [
            Some(Approval::Once),
            Some(Approval::Session),
            Some(Approval::Deny { message: Some("another file".to_owned()) }),
            None,
            Some(Approval::Once),
        ],
        &journal,
    );
    let stack = stack(&bench.work(), [], answers);
    let change = offered(&stack, ProbeTool::new("Change", &journal));
    let alter = offered(&stack, ProbeTool::new("Alter", &journal));
    let asked = |name: &str, path: &str| format!(r#"asked {name} {{"path":"{path}"}}"#);
    let ran = |path: &str| format!(r#"tool {{"path":"{path}"}}"#);
    let denied = |text: &str| ToolOutput::error(ToolErrorKind::Denied, text);
    let done = ToolOutput::text("done");
    let nobody = denied(
        "denied: this needs the user's permission and nobody can be asked here (mode ask asks \
         before changing c.txt). Go on without it, or say what you would have done",
    );
    let cases = [
        (&change, "a.txt", vec![asked("Change", "a.txt"), ran("a.txt")], done.clone()),
        (&change, "a.txt", vec![asked("Change", "a.txt"), ran("a.txt")], done.clone()),
        (&change, "a.txt", vec![ran("a.txt")], done.clone()),
        // Another way to write the same file is the same effect.
        (&change, "./a.txt", vec![ran("./a.txt")], done.clone()),
        (
            &change,
            "b.txt",
            vec![asked("Change", "b.txt")],
            denied("denied by the user: another file"),
        ),
        (&change, "c.txt", vec![asked("Change", "c.txt")], nobody),
        (&alter, "a.txt", vec![asked("Alter", "a.txt"), ran("a.txt")], done.clone()),
        (&change, "a.txt", vec![ran("a.txt")], done.clone()),
    ];
    for (tool, path, expected, output) in cases {
        assert_eq!(call(tool, json!({"path": path})).await, output, "{path}");
        assert_eq!(journal.take(), expected);
    }
    assert_eq!(stack.permission.unanswered(), 1);
}

/// Keeps the question that it is asked.
#[derive(Default)]
struct Keeper(std::sync::Mutex<Option<Question>>);

impl Approver for Keeper {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Option<Approval>> {
        *self.0.lock().unwrap() = Some(question.clone());
        Box::pin(std::future::ready(Some(Approval::Once)))
    }
}

/// SPEC P1, P6: a question holds all effects, resolved, and every reason.
#[tokio::test]
async fn a_question_lists_what_the_call_will_do() {
    let bench = Bench::new();
    let journal = Journal::default();
    let keeper = Arc::new(Keeper::default());
    let stack = stack(&bench.work(), [], keeper.clone());
    let effects = |path: &str| {
        Effects::Declared(vec![
            Effect::read(path),
            Effect::write(path),
            Effect::write("../outside.txt"),
        ])
    };
    let tool = offered(&stack, ProbeTool::new("Change", &journal).effects(effects));
    assert_eq!(call(&tool, json!({"path": "a.txt"})).await, ToolOutput::text("done"));
    let question = keeper.0.lock().unwrap().take().unwrap();
    let outside = bench.root().join("outside.txt");
    assert_eq!(
        serde_json::to_value(&question).unwrap(),
        json!({
            "tool_call_id": "call_1",
            "tool_name": "Change",
            "args": {"path": "a.txt"},
            "effects": [
                {"kind": "read", "path": bench.work().join("a.txt")},
                {"kind": "write", "path": bench.work().join("a.txt")},
                {"kind": "write", "path": outside},
            ],
            "reasons": [
                "mode ask asks before changing a.txt",
                format!("{} is outside the workspace", outside.display()),
            ],
        })
    );
}

/// SPEC P6, I9: a foreign tool that says nothing of what it does is asked about.
#[tokio::test]
async fn an_undeclared_effect_is_asked_about() {
    let bench = Bench::new();
    let journal = Journal::default();
    let stack = stack(&bench.work(), [], Arc::new(Nobody));
    let tool =
        offered(&stack, ProbeTool::new("Foreign", &journal).effects(|_| Effects::Undeclared));
    let output = call(&tool, json!({"path": "a.txt"})).await;
    assert_eq!(output.error_kind, Some(ToolErrorKind::Denied));
    assert!(output.content_text().contains("Foreign does not say what it will do"), "{output:?}");
    assert_eq!(journal.take(), Vec::<String>::new());
}

/// SPEC I9: a built-in tool without a grant reaches nothing.
#[tokio::test]
async fn a_tool_without_a_grant_does_nothing() {
    let bench = Bench::new();
    let file = bench.write("a.txt", "alpha\n");
    let read = OfferedTool::new(coding_agent::Read).unwrap();
    let write = OfferedTool::new(coding_agent::Write).unwrap();
    let output = call(&read, json!({"path": file})).await;
    assert!(output.is_error && !output.content_text().contains("alpha"), "{output:?}");
    let output = call(&write, json!({"path": file, "content": "beta"})).await;
    assert!(output.is_error, "{output:?}");
    assert_eq!(bench.read("a.txt"), "alpha\n");
}

/// Somebody who takes their time: every question waits until it is released.
#[derive(Default)]
struct Slow {
    asked: Notify,
    release: Notify,
}

impl Approver for Slow {
    fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Option<Approval>> {
        Box::pin(async {
            self.asked.notify_one();
            self.release.notified().await;
            Some(Approval::Once)
        })
    }
}

/// SPEC L11, T4: a question that is open when its call is cancelled is taken back; nothing runs.
#[tokio::test]
async fn a_cancelled_call_takes_its_question_back() {
    let bench = Bench::new();
    let journal = Journal::default();
    let slow = Arc::new(Slow::default());
    let stack = stack(&bench.work(), [], slow.clone());
    let tool = offered(&stack, ProbeTool::new("Change", &journal));
    let asked = ToolCall::new("call_1", "Change", json!({"path": "a.txt"}));
    let cancel = asked.cancel.clone();
    let output = tokio::spawn(async move { tool.call(asked).await.unwrap() });
    slow.asked.notified().await;
    cancel.cancel();
    let output = output.await.unwrap();
    assert_eq!(output.content_text(), "cancelled before permission was given or refused");
    assert!(output.is_error);
    assert_eq!(journal.take(), Vec::<String>::new());
    assert_eq!(stack.permission.unanswered(), 0);
}

/// SPEC T12: an open question gives its place in the pool back, so that even with one place the calls
/// that have nothing to do with it go on.
#[tokio::test]
async fn an_open_question_holds_up_no_other_call() {
    let bench = Bench::new();
    let journal = Journal::default();
    let slow = Arc::new(Slow::default());
    let stack = stack(&bench.work(), [], slow.clone());
    let tools: Tools = [
        offered(&stack, ProbeTool::new("Change", &journal)),
        offered(
            &stack,
            ProbeTool::new("Look", &journal)
                .effects(|path| Effects::Declared(vec![Effect::read(path)])),
        ),
    ]
    .into_iter()
    .collect();
    let script = Script::new("scripted")
        .turn(
            Turn::new()
                .call_with_id("asks", "Change", json!({"path": "a.txt"}))
                .call_with_id("looks", "Look", json!({"path": "b.txt"}))
                .call_with_id("looks-too", "Look", json!({"path": "c.txt"})),
        )
        .turn(Turn::text_only("Done."));
    let server = ScriptedModel::start(script).await.unwrap();
    let mut run = start(&server, tools, 1);
    let mut ended = Vec::new();
    let finished = tokio::time::timeout(Duration::from_secs(20), async {
        while let Some(event) = run.next().await {
            let AgentEvent::ToolExecutionEnd { tool_call_id, is_error, .. } = event else {
                continue;
            };
            assert!(!is_error, "{tool_call_id}");
            ended.push(tool_call_id.to_string());
            if ended.len() == 2 {
                slow.release.notify_one();
            }
        }
        run.result().await
    });
    let outcome = finished.await.expect("the others go on while a question is open");
    assert_eq!(outcome.reason, EndReason::Completed);
    assert_eq!(ended, ["looks", "looks-too", "asks"]);
    assert_eq!(server.problems(), []);
}

/// Notes each question and answers all at once when there are enough.
struct Together {
    asked: Journal,
    answers: Semaphore,
    enough: usize,
    count: std::sync::atomic::AtomicUsize,
}

impl Approver for Together {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Option<Approval>> {
        self.asked.note(&question.tool_call_id);
        let count = 1 + self.count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        if count == self.enough {
            self.answers.add_permits(self.enough);
        }
        Box::pin(async {
            let _permit = self.answers.acquire().await.unwrap();
            Some(Approval::Once)
        })
    }
}

/// SPEC T12: questions come in the model's order, each without waiting for another's answer.
#[tokio::test]
async fn questions_do_not_wait_for_each_other() {
    let bench = Bench::new();
    let journal = Journal::default();
    let together = Arc::new(Together {
        asked: Journal::default(),
        answers: Semaphore::new(0),
        enough: 3,
        count: 0.into(),
    });
    let stack = stack(&bench.work(), [], together.clone());
    let tools: Tools = [offered(&stack, ProbeTool::new("Change", &journal))].into_iter().collect();
    let script = Script::new("scripted")
        .turn(["one", "two", "three"].into_iter().fold(Turn::new(), |turn, id| {
            turn.call_with_id(id, "Change", json!({"path": format!("{id}.txt")}))
        }))
        .turn(Turn::text_only("Done."));
    let server = ScriptedModel::start(script).await.unwrap();
    let run = start(&server, tools, 2);
    let outcome = tokio::time::timeout(Duration::from_secs(20), run.result())
        .await
        .expect("each is asked while the others wait");
    assert_eq!(outcome.reason, EndReason::Completed);
    assert_eq!(together.asked.take(), ["one", "two", "three"]);
    assert_eq!(server.problems(), []);
}

fn start(server: &ScriptedModel, tools: Tools, max_parallel: usize) -> agent::Run {
    let api = Api::AnthropicMessages;
    let mut entry = ProviderEntry::new("scripted", api, server.base_url(api));
    entry.api_key = Some(ApiKey::new("scripted"));
    let provider = HttpProvider::new(entry, HttpClient::new(Timeouts::default()));
    let mut config = AgentLoopConfig::new(Model::new(Arc::new(provider), "scripted"));
    config.scheduling.max_parallel = max_parallel;
    let context = AgentContext { tools, ..AgentContext::default() };
    agent_loop(vec![UserMessage::text("Go.", Origin::User)], context, config)
}
