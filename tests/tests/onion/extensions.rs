//! Other people's code around a call.

use std::sync::Arc;
use std::time::Duration;

use agent::{
    AgentContext, AgentLoopConfig, Approval, CancelGrace, EndReason, Model, Nobody, ToolCall,
    ToolError, ToolOutput, Tools, agent_loop,
};
use ai::{
    Api, ApiKey, HttpClient, HttpProvider, Message, Origin, ProviderEntry, Timeouts, ToolErrorKind,
    UserMessage,
};
use scripted_model::{Script, ScriptedModel, Turn};
use serde_json::json;
use tests::bench::Bench;
use tokio::sync::Notify;

use crate::probes::{Answers, Before, Journal, Probe, ProbeTool, call, offered, stack};

const BLAME: &str = "an extension changed the arguments of Change into ones that its schema does \
                     not allow; this is the extension's fault, not yours: ";

/// SPEC T7, T8, I8: what an extension makes of the arguments is checked, judged and received, the
/// same each time; the end is heard in reverse, with what the model wrote.
#[tokio::test]
async fn rewritten_arguments_are_judged_and_received() {
    let bench = Bench::new();
    let journal = Journal::default();
    let rewritten = json!({"path": "b.txt", "count": 2});
    let extensions = [
        Probe::new("first", Before::Rewrite(rewritten), &journal),
        Probe::new("second", Before::Go, &journal),
    ];
    let answers = Answers::new([Some(Approval::Once)], &journal);
    let stack = stack(&bench.work(), extensions, answers);
    let tool = offered(&stack, ProbeTool::new("Change", &journal));
    let output = call(&tool, json!({"path": "a.txt"})).await;
    assert_eq!(output, ToolOutput::text("done"));
    assert_eq!(
        journal.take(),
        [
            r#"first before {"path":"a.txt"}"#,
            r#"second before {"path":"b.txt","count":2}"#,
            r#"asked Change {"path":"b.txt","count":2}"#,
            r#"tool {"path":"b.txt","count":2}"#,
            r#"second after {"path":"a.txt"} -> done"#,
            r#"first after {"path":"a.txt"} -> done"#,
        ]
    );
}

/// SPEC T8: an extension that breaks the arguments is to blame; nobody is asked and nothing runs.
#[tokio::test]
async fn broken_arguments_are_the_extensions_fault() {
    for broken in [json!({}), json!({"path": ["a.txt"]}), json!({"path": "a.txt", "count": -1})] {
        let bench = Bench::new();
        let journal = Journal::default();
        let extensions = [
            Probe::new("first", Before::Go, &journal),
            Probe::new("second", Before::Rewrite(broken.clone()), &journal),
        ];
        let stack = stack(&bench.work(), extensions, Answers::new([], &journal));
        let tool = offered(&stack, ProbeTool::new("Change", &journal));
        let output = call(&tool, json!({"path": "a.txt"})).await;
        let text = output.content_text();
        assert!(text.starts_with(BLAME), "{text}");
        assert_eq!(output, ToolOutput::error(ToolErrorKind::InvalidArguments, text.clone()));
        assert_eq!(
            journal.take(),
            [
                r#"first before {"path":"a.txt"}"#.to_owned(),
                r#"second before {"path":"a.txt"}"#.to_owned(),
                format!(r#"second after {{"path":"a.txt"}} -> error: {text}"#),
                format!(r#"first after {{"path":"a.txt"}} -> error: {text}"#),
            ],
            "{broken}"
        );
        assert_eq!(stack.permission.unanswered(), 0);
    }
}

/// SPEC T8, M19: what is the model's fault is not the extensions' business.
#[tokio::test]
async fn the_models_own_mistakes_reach_no_extension() {
    let bench = Bench::new();
    let journal = Journal::default();
    let extension = Probe::new("only", Before::Go, &journal);
    let stack = stack(&bench.work(), [extension], Answers::new([], &journal));
    let tool = offered(&stack, ProbeTool::new("Change", &journal));
    for arguments in [json!({}), json!([]), json!({"path": "a", "unheard": 1})] {
        let output = call(&tool, arguments.clone()).await;
        assert_eq!(output.error_kind, Some(ToolErrorKind::InvalidArguments), "{arguments}");
        assert!(!output.content_text().contains("extension"), "{arguments}");
    }
    assert_eq!(journal.take(), Vec::<String>::new());
}

/// SPEC T9: one blocks; those behind it are not asked, and all hear the end.
#[tokio::test]
async fn a_block_is_heard_by_all() {
    let bench = Bench::new();
    let journal = Journal::default();
    let extensions = [
        Probe::new("first", Before::Go, &journal),
        Probe::new("second", Before::Block("not on a Friday"), &journal),
        Probe::new("third", Before::Go, &journal),
    ];
    let stack = stack(&bench.work(), extensions, Answers::new([], &journal));
    let tool = offered(&stack, ProbeTool::new("Change", &journal));
    let output = call(&tool, json!({"path": "a.txt"})).await;
    assert_eq!(
        output,
        ToolOutput::error(ToolErrorKind::Denied, "blocked by second: not on a Friday")
    );
    assert_eq!(
        journal.take(),
        [
            r#"first before {"path":"a.txt"}"#,
            r#"second before {"path":"a.txt"}"#,
            r#"third after {"path":"a.txt"} -> error: blocked by second: not on a Friday"#,
            r#"second after {"path":"a.txt"} -> error: blocked by second: not on a Friday"#,
            r#"first after {"path":"a.txt"} -> error: blocked by second: not on a Friday"#,
        ]
    );
}

/// SPEC E1, T9, L5: an extension that panics before the call blocks it; one that panics after it
/// changes nothing.
#[tokio::test]
async fn a_panicking_extension_denies_or_is_passed_over() {
    let bench = Bench::new();
    let journal = Journal::default();
    let extensions =
        [Probe::new("first", Before::Go, &journal), Probe::new("second", Before::Panic, &journal)];
    let before = stack(&bench.work(), extensions, Answers::new([], &journal));
    let tool = offered(&before, ProbeTool::new("Change", &journal));
    let output = call(&tool, json!({"path": "a.txt"})).await;
    let blocked = "blocked: second failed before the call";
    assert_eq!(output, ToolOutput::error(ToolErrorKind::Denied, blocked));
    assert_eq!(
        journal.take(),
        [
            r#"first before {"path":"a.txt"}"#.to_owned(),
            r#"second before {"path":"a.txt"}"#.to_owned(),
            format!(r#"second after {{"path":"a.txt"}} -> error: {blocked}"#),
            format!(r#"first after {{"path":"a.txt"}} -> error: {blocked}"#),
        ]
    );

    let extensions = [
        Probe::new("first", Before::Go, &journal),
        Probe::new("second", Before::Go, &journal).panicking_after(),
    ];
    let answers = Answers::new([Some(Approval::Once)], &journal);
    let after = stack(&bench.work(), extensions, answers);
    let tool = offered(&after, ProbeTool::new("Change", &journal));
    let output = call(&tool, json!({"path": "a.txt"})).await;
    assert_eq!(output, ToolOutput::text("done"));
    assert_eq!(
        journal.take()[4..],
        [r#"second after {"path":"a.txt"} -> done"#, r#"first after {"path":"a.txt"} -> done"#,]
    );
}

/// SPEC T9, L5: a tool that fails, panics or is denied.
#[tokio::test]
async fn a_failure_is_heard_by_all() {
    let bench = Bench::new();
    let journal = Journal::default();
    let failing =
        |name| ProbeTool::new(name, &journal).body(|_| async { Err(ToolError::failed("no luck")) });
    let panicking = |name| {
        ProbeTool::new(name, &journal).body(|_| async {
            if true { panic!("out of luck") } else { Ok(ToolOutput::default()) }
        })
    };
    let plain = |name| ProbeTool::new(name, &journal);
    let cases = [
        (failing("Change"), Some(Approval::Once), "no luck", "error: no luck"),
        (
            panicking("Change"),
            Some(Approval::Once),
            "the tool panicked: out of luck",
            "fault: the tool panicked",
        ),
        (
            plain("Change"),
            Some(Approval::Deny { message: Some("not today".to_owned()) }),
            "denied by the user: not today",
            "error: denied by the user: not today",
        ),
        (
            plain("Change"),
            Some(Approval::Deny { message: None }),
            "denied by the user",
            "error: denied by the user",
        ),
    ];
    for (tool, answer, text, heard) in cases {
        let extensions = ["first", "second"].map(|name| Probe::new(name, Before::Go, &journal));
        let stack = stack(&bench.work(), extensions, Answers::new([answer], &journal));
        let output = call(&offered(&stack, tool), json!({"path": "a.txt"})).await;
        assert_eq!((output.is_error, output.content_text().as_str()), (true, text));
        assert_eq!(
            journal.take()[3..],
            [
                format!(r#"second after {{"path":"a.txt"}} -> {heard}"#),
                format!(r#"first after {{"path":"a.txt"}} -> {heard}"#),
            ]
        );
    }
}

/// SPEC T9, L11: an abandoned call finishes in its own time, and its end is heard then.
#[tokio::test]
async fn the_end_of_an_abandoned_call_is_heard() {
    let bench = Bench::new();
    let journal = Journal::default();
    let (begun, go_on, heard) =
        (Arc::new(Notify::new()), Arc::new(Notify::new()), Arc::new(Notify::new()));
    let body = {
        let (begun, go_on, heard) = (begun.clone(), go_on.clone(), heard.clone());
        move |_: ToolCall| {
            let (begun, go_on, heard) = (begun.clone(), go_on.clone(), heard.clone());
            async move {
                begun.notify_one();
                go_on.notified().await;
                heard.notify_one();
                Ok(ToolOutput::text("late"))
            }
        }
    };
    let extension = Probe::new("only", Before::Go, &journal);
    let answers = Answers::new([Some(Approval::Once)], &journal);
    let stack = stack(&bench.work(), [extension], answers);
    let tool = offered(&stack, ProbeTool::new("Change", &journal).body(body));
    let asked = ToolCall::new("call_1", "Change", json!({"path": "a.txt"}));
    let cancel = asked.cancel.clone();
    let output = tokio::spawn(async move {
        tool.call_with_grace(asked, CancelGrace::After(Duration::ZERO)).await.unwrap()
    });
    begun.notified().await;
    cancel.cancel();
    let output = output.await.unwrap();
    assert_eq!(output, ToolOutput::error(ToolErrorKind::Aborted, agent::ABANDONED));
    assert_eq!(journal.take().len(), 2, "asked before, and permission asked");
    go_on.notify_one();
    heard.notified().await;
    let end = tokio::time::timeout(Duration::from_secs(10), async {
        loop {
            match journal.take() {
                lines if lines.is_empty() => tokio::task::yield_now().await,
                lines => return lines,
            }
        }
    });
    assert_eq!(end.await.unwrap(), [r#"only after {"path":"a.txt"} -> late"#]);
}

/// SPEC T8, L3, L5, I1: in a whole run over real HTTP, the model reads whose fault it was and goes
/// on; the caller's context is what it was.
#[tokio::test]
async fn a_run_goes_on_after_an_extensions_fault() {
    for api in [Api::AnthropicMessages, Api::OpenaiChat] {
        let bench = Bench::new();
        let journal = Journal::default();
        let extension = Probe::new("breaks", Before::Rewrite(json!({"path": null})), &journal);
        let stack = stack(&bench.work(), [extension], Arc::new(Nobody));
        let tools: Tools =
            [offered(&stack, ProbeTool::new("Change", &journal))].into_iter().collect();
        let script = Script::new("scripted")
            .turn(Turn::new().call("Change", json!({"path": "a.txt"})))
            .turn(Turn::text_only("Then not."));
        let server = ScriptedModel::start(script).await.unwrap();
        let mut entry = ProviderEntry::new("scripted", api, server.base_url(api));
        entry.api_key = Some(ApiKey::new("scripted"));
        let provider = HttpProvider::new(entry, HttpClient::new(Timeouts::default()));
        let model = Model::new(Arc::new(provider), "scripted");
        let context = AgentContext {
            system_prompt: "Change things.".into(),
            tools,
            messages: [Message::User(UserMessage::text("Hello.", Origin::User))]
                .into_iter()
                .collect(),
        };
        let before = format!("{context:?}");
        let prompts = vec![UserMessage::text("Change it.", Origin::User)];
        let run = agent_loop(prompts, context.clone(), AgentLoopConfig::new(model));
        let outcome = run.result().await;
        assert_eq!(outcome.reason, EndReason::Completed);
        assert_eq!(outcome.messages.len(), 4);
        assert_eq!(format!("{context:?}"), before);
        assert_eq!(server.problems(), []);
        let conversation = server.requests()[1].conversation();
        let results: Vec<_> = conversation.last_results().collect();
        let [scripted_model::Entry::Result { text, .. }] = results[..] else {
            panic!("{results:?}")
        };
        assert!(text.starts_with(BLAME), "{text}");
    }
}
