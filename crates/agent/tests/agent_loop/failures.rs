//! What fails, and how the run ends of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agent::{
    AgentContext, EndReason, ExecutionMode, FailureKind, HookError, Mend, OnModelError, RunFailure,
    ToolCall, ToolError, ToolFault, ToolOutput, agent_loop,
};
use ai::{AssistantMessage, ErrorKind, ProviderError, StreamEvent, ToolErrorKind, find_violation};
use futures::future::BoxFuture;

use crate::lines::*;
use crate::script::*;

/// SPEC L5: whatever is wrong with a call, it has an error result and the run goes on.
#[tokio::test]
async fn failing_calls_are_results() {
    let fails = tool("Fails", ExecutionMode::Parallel, |path, _| async move {
        Err(ToolError::failed(format!("cannot open {path}")))
    });
    let panics = tool("Panics", ExecutionMode::Parallel, |_, _| async { panic!("oh no") });
    let script = Script::new([
        makes(&[
            ("unknown", "Nope", r#"{"path":"x"}"#),
            ("fails", "Fails", r#"{"path":"x"}"#),
            ("panics", "Panics", r#"{"path":"x"}"#),
            ("missing", "Read", r"{}"),
            ("cut", "Read", r#"{"path": "x"#),
            ("list", "Read", r"[1]"),
            ("title", "Read", r#"{"path":"panic in title"}"#),
            ("fine", "Read", r#"{"path":"x"}"#),
        ]),
        says("done"),
    ]);
    let run = agent_loop(prompt("go"), context([read(), fails, panics]), config(&script));
    let outcome = run.result().await;
    assert_eq!(outcome.reason, EndReason::Completed);
    let results = results(&outcome.messages);
    let kinds: Vec<_> = results.iter().map(|(id, kind, _)| (id.as_str(), *kind)).collect();
    let invalid = Some(ToolErrorKind::InvalidArguments);
    assert_eq!(
        kinds,
        [
            ("unknown", Some(ToolErrorKind::NotFound)),
            ("fails", Some(ToolErrorKind::Failed)),
            ("panics", Some(ToolErrorKind::Failed)),
            ("missing", invalid),
            ("cut", invalid),
            ("list", invalid),
            ("title", None),
            ("fine", None),
        ]
    );
    assert_eq!(results[1].2, "cannot open x");
    assert_eq!(results[2].2, "the tool panicked: oh no");
    // SPEC M6: the error quotes what was written and says what is wrong with it.
    assert!(results[4].2.contains("EOF while parsing a string"), "{}", results[4].2);
    assert!(results[4].2.contains(r#"{"path": "x"#), "{}", results[4].2);
    assert!(results[3].2.contains("path"), "{}", results[3].2);
}

/// SPEC L8: a refusal, a failure and a full window end the run with what there is.
#[tokio::test]
async fn a_failed_answer_ends_the_run_and_its_calls_are_not_run() {
    let mut answer = makes(&[("a", "Edit", r#"{"path":"x"}"#)]);
    answer.pop();
    answer
        .push(StreamEvent::failed(ProviderError::new(ErrorKind::InvalidRequest, "no such thing")));
    let script = Script::new([answer]);
    let ran = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ran);
    let edit = tool("Edit", ExecutionMode::Exclusive, move |_, _| {
        count.fetch_add(1, Ordering::SeqCst);
        async { Ok(ToolOutput::text("ok")) }
    });
    let outcome = agent_loop(prompt("go"), context([edit]), config(&script)).result().await;
    assert_eq!(
        outcome.reason,
        EndReason::Error {
            cause: FailureKind::Provider(ErrorKind::InvalidRequest),
            message: "no such thing".into(),
            turn: 1
        }
    );
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    assert_eq!(results(&outcome.messages).len(), 1);
}

/// SPEC L10, Q11: a broken answer is taken back and asked for again; its tokens count.
#[tokio::test(start_paused = true)]
async fn a_broken_answer_is_discarded() {
    let script = Script::new([breaks(ErrorKind::TruncatedStream), says("whole")]);
    let run = agent_loop(prompt("go"), context([]), config(&script));
    assert_lines(
        &lines(run).await,
        "
        agent_start 1
        turn_start 1
        message_start user(go)
        message_end user(go)
        message_start assistant
        update text_start 0
        update text_delta 0
        update text_end 0
        message_discard
        retry 1 truncated_stream
        message_start assistant
        update text_start 0
        update text_delta 0
        update text_end 0
        message_end assistant(stop)
        turn_end 1 results=0 more=false
        agent_end messages=2 completed
        ",
    );
    assert_eq!(script.requests().len(), 2);
}

/// SPEC L2, L8, U3: a failure is announced before it ends the run, and everything is closed.
#[tokio::test]
async fn a_failure_is_announced() {
    let failure = StreamEvent::failed(ProviderError::new(ErrorKind::Auth, "the key is wrong"));
    let script = Script::new([vec![failure]]);
    assert_lines(
        &lines(agent_loop(prompt("go"), context([]), config(&script))).await,
        "
        agent_start 1
        turn_start 1
        message_start user(go)
        message_end user(go)
        message_start assistant
        message_end assistant(error)
        error 1 auth: the key is wrong
        turn_end 1 results=0 more=false
        agent_end messages=2 error(auth)
        ",
    );
}

/// SPEC L2: also a panic outside of any tool ends the run with its end events.
#[tokio::test]
async fn a_panicking_hook_ends_the_run_properly() {
    let script = Script::new([]);
    let mut config = config(&script);
    config.prepare_context = Some(Arc::new(|context: AgentContext| async move {
        assert!(context.messages.is_empty(), "hooks panic too");
        Ok::<_, HookError>(context)
    }));
    let lines = lines(agent_loop(prompt("go"), context([]), config)).await;
    assert_lines(
        &lines,
        "
        agent_start 1
        turn_start 1
        message_start user(go)
        message_end user(go)
        error 1 panic: hooks panic too
        turn_end 1 results=0 more=false
        agent_end messages=1 error(panic)
        ",
    );
}

/// SPEC Q11: a policy hook that fails fails the run.
#[tokio::test]
async fn a_failing_hook_ends_the_run() {
    let script = Script::new([]);
    let mut config = config(&script);
    config.prepare_context = Some(Arc::new(|_: AgentContext| async {
        Err(HookError { hook: "plan".into(), message: "no plan".into() })
    }));
    let outcome = agent_loop(prompt("go"), context([]), config).result().await;
    let reason = EndReason::Error {
        cause: FailureKind::Run(RunFailure::Hook),
        message: "hook plan: no plan".into(),
        turn: 1,
    };
    assert_eq!(outcome.reason, reason);
}

/// SPEC L2, L8, Q11: a hook that fails over a failed answer leaves it recorded and closed.
#[tokio::test]
async fn a_hook_that_fails_over_a_failed_answer_leaves_nothing_open() {
    struct Fails;

    impl OnModelError for Fails {
        fn mend<'a>(&'a self, _: &'a AssistantMessage) -> BoxFuture<'a, Result<Mend, HookError>> {
            let error = HookError { hook: "mender".into(), message: "out of ideas".into() };
            Box::pin(std::future::ready(Err(error)))
        }
    }

    let mut answer = makes(&[("a", "Read", r#"{"path":"x"}"#)]);
    answer.pop();
    answer.push(StreamEvent::failed(ProviderError::new(ErrorKind::Quota, "no credit")));
    let script = Script::new([answer]);
    let mut config = config(&script);
    config.on_model_error = Some(Arc::new(Fails));
    assert_lines(
        &lines(agent_loop(prompt("go"), context([read()]), config)).await,
        "
        agent_start 1
        turn_start 1
        message_start user(go)
        message_end user(go)
        message_start assistant
        update toolcall_start 0
        update toolcall_delta 0
        update toolcall_end 0
        message_end assistant(error)
        message_start result(a)
        message_end result(a)
        error 1 hook: hook mender: out of ideas
        turn_end 1 results=1 more=false
        agent_end messages=3 error(hook)
        ",
    );
}

/// SPEC Q11: an answer that said no more than who it is from did not break off in the middle: its
/// request was tried again where connections are made, and is not multiplied here.
#[tokio::test]
async fn an_answer_without_content_is_not_asked_for_again() {
    let failed = StreamEvent::failed(ProviderError::new(ErrorKind::Network, "refused"));
    let script = Script::new([vec![start(), failed]]);
    let outcome = agent_loop(prompt("go"), context([]), config(&script)).result().await;
    assert_eq!(reason_kind(&outcome.reason), "error(network)");
    assert_eq!(script.requests().len(), 1);
}

/// SPEC T5: a fault of the host stops new calls, lets the started ones end, gives every call a result
/// and ends the run.
#[tokio::test]
async fn a_fault_of_the_host_closes_the_batch_and_the_run() {
    #[derive(Clone)]
    struct Broken;

    impl tower::Service<ToolCall> for Broken {
        type Response = ToolOutput;
        type Error = ToolFault;
        type Future = std::future::Ready<Result<ToolOutput, ToolFault>>;

        fn poll_ready(
            &mut self,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Result<(), ToolFault>> {
            std::task::Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: ToolCall) -> Self::Future {
            std::future::ready(Err(ToolFault::host("the log cannot be written")))
        }
    }

    let breaks = tool("Breaks", ExecutionMode::Parallel, |_, _| async {
        Ok(ToolOutput::text("never reached"))
    })
    .layer(&tower::layer::layer_fn(|_| Broken));
    let slow = tool("Slow", ExecutionMode::Parallel, |_, _| async {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        Ok(ToolOutput::text("ended"))
    });
    let script = Script::new([makes(&[
        ("slow", "Slow", r#"{"path":"x"}"#),
        ("breaks", "Breaks", r#"{"path":"x"}"#),
        ("later", "Edit", r#"{"path":"x"}"#),
    ])]);
    let run = agent_loop(prompt("go"), context([slow, breaks, edit()]), config(&script));
    let outcome = run.result().await;
    let reason = EndReason::Error {
        cause: FailureKind::Run(RunFailure::Host),
        message: "the log cannot be written".into(),
        turn: 1,
    };
    assert_eq!(outcome.reason, reason);
    let results = results(&outcome.messages);
    let words: Vec<_> = results.iter().map(|(id, _, text)| (id.as_str(), text.as_str())).collect();
    assert_eq!(
        words,
        [
            ("slow", "ended"),
            ("breaks", "the log cannot be written"),
            ("later", "tool call aborted before dispatch: the log cannot be written"),
        ]
    );
}

/// SPEC L10, M17: the note of a repair is said for one request, outside its messages, which are those
/// of the request before.
#[tokio::test]
async fn a_repair_is_asked_for_outside_the_history() {
    let markup = "<invoke name=\"Read\">\n<parameter name=\"path\">x</parameter>\n</invoke>";
    let mut written = says(markup);
    if let Some(StreamEvent::Done { violation, .. }) = written.last_mut() {
        *violation = find_violation(markup, &["Read"]);
    }
    let script = Script::new([written, makes(&[("a", "Read", r#"{"path":"x"}"#)]), says("done")]);
    let run = agent_loop(prompt("go"), context([read()]), config(&script));
    let outcome = run.result().await;
    assert_eq!(outcome.reason, EndReason::Completed);
    let requests = script.requests();
    let [first, repair, next] = &requests[..] else { panic!("{}", requests.len()) };
    assert_eq!((&*first.volatile_text, &*next.volatile_text), ("", ""));
    assert!(repair.volatile_text.starts_with("Your last answer wrote a tool call as text"));
    assert_eq!(first.messages, repair.messages);
    assert_eq!(next.messages.len(), 3, "what was asked, the call and its result");
}
