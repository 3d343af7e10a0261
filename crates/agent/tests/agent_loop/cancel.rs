//! Ending a run from outside.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::{
    ABANDONED, AbortCause, CancelGrace, EndReason, ExecutionMode, NOT_DISPATCHED, ToolOutput,
    agent_loop,
};
use ai::{Message, StopReason, StreamEvent, ToolErrorKind};
use futures::StreamExt;
use tokio::sync::{Notify, Semaphore};

use crate::lines::*;
use crate::script::*;

/// SPEC L11, T4: a tool that ignores the cancel is abandoned after the grace; one that had not begun
/// never begins; both have results.
#[tokio::test(start_paused = true)]
async fn cancel_abandons_what_ignores_it() {
    let script =
        Script::new([makes(&[("a", "Deaf", r#"{"path":"x"}"#), ("b", "Read", r#"{"path":"x"}"#)])]);
    let began = Arc::new(Notify::new());
    let let_go = Arc::new(Semaphore::new(0));
    let finished = Arc::new(AtomicUsize::new(0));
    let (b, l, f) = (Arc::clone(&began), Arc::clone(&let_go), Arc::clone(&finished));
    let deaf = tool("Deaf", ExecutionMode::Exclusive, move |_, _| {
        let (b, l, f) = (Arc::clone(&b), Arc::clone(&l), Arc::clone(&f));
        async move {
            b.notify_one();
            l.acquire().await.unwrap().forget();
            f.fetch_add(1, Ordering::SeqCst);
            Ok(ToolOutput::text("late"))
        }
    });
    let mut config = config(&script);
    config.cancel_grace = CancelGrace::After(Duration::from_millis(500));
    let run = agent_loop(prompt("go"), context([deaf, read()]), config);
    let cancel = run.cancel();
    began.notified().await;
    let clock = tokio::time::Instant::now();
    cancel.cancel(AbortCause::User);
    cancel.cancel(AbortCause::Signal);
    let outcome = run.result().await;
    assert_eq!(clock.elapsed(), Duration::from_millis(500));
    assert_eq!(outcome.reason, EndReason::Aborted { cause: AbortCause::User });
    assert_eq!(
        results(&outcome.messages),
        [
            ("a".to_owned(), Some(ToolErrorKind::Aborted), ABANDONED.to_owned()),
            ("b".to_owned(), Some(ToolErrorKind::Aborted), NOT_DISPATCHED.to_owned()),
        ]
    );
    // It was not dropped in the middle: it still finishes.
    let_go.add_permits(1);
    while finished.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
}

/// SPEC L12: what had arrived is kept, but for half a call.
#[tokio::test]
async fn a_cancelled_stream_keeps_its_text() {
    let mut answer = vec![start()];
    answer.extend(text_block(0, "so far"));
    answer.push(StreamEvent::ToolcallStart { index: 1, id: "a".into(), name: "Read".into() });
    answer.push(StreamEvent::ToolcallDelta { index: 1, delta: r#"{"pa"#.into() });
    let script = Arc::new(Script {
        answers: Mutex::new([answer].into()),
        stalls: true,
        ..Script::default()
    });
    let mut run = agent_loop(prompt("go"), context([read()]), config(&script));
    while let Some(event) = run.next().await {
        if line(&event) == "update toolcall_delta 1" {
            run.cancel().cancel(AbortCause::User);
        }
    }
    let outcome = run.result().await;
    assert_eq!(outcome.reason, EndReason::Aborted { cause: AbortCause::User });
    let Message::Assistant(answer) = &*outcome.messages[1] else { panic!() };
    assert_eq!((answer.text().as_str(), answer.content.len()), ("so far", 1));
    assert!(answer.interrupted);
    assert_eq!(answer.stop_reason, StopReason::Aborted);
    assert_eq!(script.open.load(Ordering::SeqCst), 0);
}

/// SPEC L11: a stream that stays open after its end does not hold up a cancelled run, and the answer,
/// which is complete, is kept whole.
#[tokio::test]
async fn a_stream_that_never_closes_does_not_hold_up_a_cancelled_run() {
    let script = Arc::new(Script {
        answers: Mutex::new([says("all of it")].into()),
        stalls: true,
        ..Script::default()
    });
    let mut run = agent_loop(prompt("go"), context([]), config(&script));
    while let Some(event) = run.next().await {
        if line(&event) == "update text_end 0" {
            // The end of the answer was taken in before the run waits again.
            tokio::task::yield_now().await;
            run.cancel().cancel(AbortCause::User);
        }
    }
    let outcome = run.result().await;
    assert_eq!(outcome.reason, EndReason::Aborted { cause: AbortCause::User });
    let Message::Assistant(answer) = &*outcome.messages[1] else { panic!() };
    assert_eq!((answer.text().as_str(), answer.stop_reason), ("all of it", StopReason::Stop));
    assert!(!answer.interrupted);
}

/// SPEC L11: dropping the run asks it to end.
#[tokio::test]
async fn a_dropped_run_ends() {
    let script = Arc::new(Script {
        answers: Mutex::new([vec![start()]].into()),
        stalls: true,
        ..Script::default()
    });
    let run = agent_loop(prompt("go"), context([]), config(&script));
    let mut events = run.watch();
    drop(run);
    let mut last = String::new();
    while let Some(event) = events.next().await {
        last = line(&event);
    }
    assert!(last.ends_with("aborted(dropped)"), "{last}");
    assert_eq!(script.open.load(Ordering::SeqCst), 0);
}

/// SPEC L11: a hook that never answers does not hold up a cancelled run.
#[tokio::test]
async fn a_hanging_hook_does_not_hold_up_a_cancelled_run() {
    let script = Script::new([]);
    let mut config = config(&script);
    let asked = Arc::new(Notify::new());
    let tell = Arc::clone(&asked);
    config.prepare_context = Some(Arc::new(move |_: agent::AgentContext| {
        tell.notify_one();
        std::future::pending::<Result<agent::AgentContext, agent::HookError>>()
    }));
    let run = agent_loop(prompt("go"), context([]), config);
    asked.notified().await;
    run.cancel().cancel(AbortCause::User);
    let outcome = run.result().await;
    assert_eq!(outcome.reason, EndReason::Aborted { cause: AbortCause::User });
    assert_eq!(outcome.messages.len(), 2);
}
