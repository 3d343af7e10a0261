//! What watchers of a run see.

use std::sync::{Arc, Mutex};

use agent::{AgentContext, AgentEvent, ExecutionMode, ToolCall, ToolOutput, Tools, agent_loop};
use ai::{Message, StopReason, StreamEvent};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::lines::*;
use crate::script::*;

/// SPEC L1, L2: the demo task of the first source document, its events as a whole.
#[tokio::test]
async fn the_events_of_the_demo_task() {
    let script = Script::new([
        makes(&[("a", "Read", r#"{"path":"loop.rs"}"#), ("b", "Read", r#"{"path":"crash.log"}"#)]),
        makes(&[("c", "Edit", r#"{"path":"loop.rs"}"#)]),
        says("I have mended myself."),
    ]);
    // The first read ends only when the second has.
    let second_done = Arc::new(Semaphore::new(0));
    let gate = Arc::clone(&second_done);
    let read = tool("Read", ExecutionMode::Parallel, move |path, _| {
        let gate = Arc::clone(&gate);
        async move {
            if path == "loop.rs" {
                gate.acquire().await.unwrap().forget();
            } else {
                gate.add_permits(1);
            }
            Ok(ToolOutput::text(path))
        }
    });
    let run = agent_loop(prompt("mend yourself"), context([read, edit()]), config(&script));
    let lines = lines(run).await;
    // Ends are told in the order in which the tools ended, results in the model's.
    assert_lines(
        &lines,
        "
        agent_start 1
        turn_start 1
        message_start user(mend yourself)
        message_end user(mend yourself)
        message_start assistant
        update toolcall_start 0
        update toolcall_delta 0
        update toolcall_end 0
        update toolcall_start 1
        update toolcall_delta 1
        update toolcall_end 1
        message_end assistant(tool_use)
        tool_start a: Read loop.rs
        tool_start b: Read crash.log
        tool_end b
        tool_end a
        message_start result(a)
        message_end result(a)
        message_start result(b)
        message_end result(b)
        turn_end 1 results=2 more=true
        turn_start 2
        message_start assistant
        update toolcall_start 0
        update toolcall_delta 0
        update toolcall_end 0
        message_end assistant(tool_use)
        tool_start c: Edit loop.rs
        tool_end c
        message_start result(c)
        message_end result(c)
        turn_end 2 results=1 more=true
        turn_start 3
        message_start assistant
        update text_start 0
        update text_delta 0
        update text_end 0
        message_end assistant(stop)
        turn_end 3 results=0 more=false
        agent_end messages=7 completed
        ",
    );
}

/// SPEC L14: a watcher that never reads, one that is gone, and one that panics change nothing.
#[tokio::test]
async fn watchers_change_nothing() {
    let deltas = (0..30_000).map(|i| StreamEvent::TextDelta { index: 0, delta: format!("{i} ") });
    let answer: Vec<StreamEvent> = [start(), StreamEvent::TextStart { index: 0 }]
        .into_iter()
        .chain(deltas)
        .chain([StreamEvent::TextEnd { index: 0 }, end(StopReason::Stop)])
        .collect();
    let script = Script::new([answer]);
    let run = agent_loop(prompt("go"), context([]), config(&script));
    let sleeper = run.watch();
    drop(run.watch());
    let mut panics = run.watch();
    let panicked = tokio::spawn(async move {
        panics.next().await;
        panic!("a watcher's own business");
    });
    let outcome = run.result().await;
    assert!(panicked.await.is_err());
    let Message::Assistant(answer) = &*outcome.messages[1] else { panic!() };
    // Merged or not, what a late reader gets is the whole text.
    let mut heard = String::new();
    let mut events = sleeper;
    while let Some(event) = events.next().await {
        if let AgentEvent::MessageUpdate { event: StreamEvent::TextDelta { delta, .. }, .. } = event
        {
            heard.push_str(&delta);
        }
    }
    assert_eq!(heard, answer.text());
}

/// A reader of what is whole is told everything but the growing of answers.
#[tokio::test]
async fn message_updates_can_be_left_out() {
    let script = Script::new([says("hello")]);
    let run = agent_loop(prompt("go"), context([]), config(&script));
    let all = run.watch();
    let whole = run.watch().without_message_updates();
    let own: Vec<AgentEvent> = run.without_message_updates().collect().await;
    let is_update = |event: &AgentEvent| matches!(event, AgentEvent::MessageUpdate { .. });
    let (updates, rest): (Vec<AgentEvent>, Vec<AgentEvent>) =
        all.collect::<Vec<_>>().await.into_iter().partition(is_update);
    assert_eq!(updates.len(), 3);
    assert_eq!(whole.collect::<Vec<_>>().await, rest);
    assert_eq!(own, rest);
}

/// Progress of a tool is seen while it works, and nothing of it after its end.
#[tokio::test]
async fn progress_ends_with_the_call() {
    let kept: Arc<Mutex<Option<ToolCall>>> = Arc::default();
    let keep = Arc::clone(&kept);
    let talks = tool("Talks", ExecutionMode::Exclusive, move |_, call| {
        *keep.lock().unwrap() = Some(call.clone());
        async move {
            call.progress.report(partial("half"));
            Ok(ToolOutput::text("all"))
        }
    });
    let script = Script::new([makes(&[("a", "Talks", r#"{"path":"x"}"#)]), says("done")]);
    let mut run = agent_loop(prompt("go"), context([talks]), config(&script));
    let mut updates = Vec::new();
    while let Some(event) = run.next().await {
        let ended = matches!(event, AgentEvent::ToolExecutionEnd { .. });
        let line = line(&event);
        if line.starts_with("tool_update") {
            updates.push(line);
        }
        if ended && let Some(call) = kept.lock().unwrap().as_ref() {
            call.progress.report(partial("after the end"));
        }
    }
    assert_eq!(updates, ["tool_update a half"]);
}

fn partial(text: &str) -> agent::Partial {
    agent::Partial { content: vec![ai::ContentBlock::text(text)], details: Value::Null }
}

/// The JSON that other programs read.
#[tokio::test]
async fn the_json_of_events_is_stable() {
    let script = Script::new([makes(&[("a", "Nope", r#"{"path":"x"}"#)]), says("done")]);
    let mut run = agent_loop(
        prompt("go"),
        AgentContext { tools: Tools::none(), ..AgentContext::default() },
        config(&script),
    );
    let mut json = Vec::new();
    while let Some(event) = run.next().await {
        json.push(serde_json::to_value(&event).unwrap());
    }
    assert_eq!(json[0], json!({"type": "agent_start", "run": 1}));
    assert_eq!(
        json[4],
        json!({"type": "message_start", "message": {
            "role": "assistant", "id": "id-1", "timestamp": 1, "content": [],
            "provider": "script", "api": "none", "model": "m"}})
    );
    let end = json.last().unwrap();
    assert_eq!(end["type"], "agent_end");
    assert_eq!(end["reason"], json!({"kind": "completed"}));
    assert_eq!(
        end["usage"],
        json!({"input": 20, "output": 2, "cache_read": 0, "cache_write": 0, "reasoning": 0})
    );
}
