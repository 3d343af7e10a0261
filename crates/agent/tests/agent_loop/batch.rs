//! The calls of one answer, and the tools behind them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use agent::{
    AgentEvent, Discipline, Effects, EndReason, ExecutionMode, OfferedTool, Tool, ToolCall,
    ToolError, ToolOutput, agent_loop,
};
use ai::Message;
use futures::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::lines::*;
use crate::script::*;

/// Runs a batch of calls whose tools `P…` are parallel and `X…` exclusive, and gives back the order
/// of starts and ends as the events have it.
async fn order_of(names: &[&'static str], discipline: Discipline, max_parallel: usize) -> String {
    let calls: Vec<(String, &str)> =
        names.iter().enumerate().map(|(i, name)| (format!("{i}"), *name)).collect();
    let calls: Vec<(&str, &str, &str)> =
        calls.iter().map(|(id, name)| (id.as_str(), *name, r#"{"path":"x"}"#)).collect();
    let script = Script::new([makes(&calls), says("done")]);
    // A parallel call ends only after all others that may run beside it had a chance to start.
    let body = |_: String, _: ToolCall| async {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        Ok(ToolOutput::text("ok"))
    };
    let tools = context([
        tool("P", ExecutionMode::Parallel, body),
        tool("X", ExecutionMode::Exclusive, body),
    ]);
    let mut config = config(&script);
    config.scheduling.discipline = discipline;
    config.scheduling.max_parallel = max_parallel;
    let mut run = agent_loop(prompt("go"), tools, config);
    let mut order = Vec::new();
    while let Some(event) = run.next().await {
        match event {
            AgentEvent::ToolExecutionStart { tool_call_id, .. } => {
                order.push(format!("+{tool_call_id}"));
            }
            AgentEvent::ToolExecutionEnd { tool_call_id, .. } => {
                order.push(format!("-{tool_call_id}"));
            }
            AgentEvent::MessageEnd { message } => {
                if let Message::ToolResult(result) = &*message {
                    order.push(format!("={}", result.tool_call_id));
                }
            }
            _ => {}
        }
    }
    order.join(" ")
}

/// SPEC T1, T3
#[tokio::test]
async fn exclusive_calls_are_barriers() {
    use Discipline::{Barriers, Sequential, SerialiseBatch};
    assert_eq!(
        order_of(&["P", "P", "X", "P"], Barriers, 10).await,
        "+0 +1 -0 -1 =0 =1 +2 -2 =2 +3 -3 =3"
    );
    assert_eq!(order_of(&["X", "X"], Barriers, 10).await, "+0 -0 =0 +1 -1 =1");
    assert_eq!(order_of(&["P", "P", "P"], Barriers, 2).await, "+0 +1 -0 +2 -1 -2 =0 =1 =2");
    assert_eq!(order_of(&["P", "P", "X"], SerialiseBatch, 10).await, "+0 -0 =0 +1 -1 =1 +2 -2 =2");
    assert_eq!(order_of(&["P", "P"], SerialiseBatch, 10).await, "+0 +1 -0 -1 =0 =1");
    assert_eq!(order_of(&["P", "P"], Sequential, 10).await, "+0 -0 =0 +1 -1 =1");
}

/// SPEC T2: a call that became exclusive while it waited for a slot does not start beside another.
#[tokio::test]
async fn a_call_is_classified_again_after_the_wait_for_a_slot() {
    #[derive(Default)]
    struct Changes {
        exclusive: AtomicBool,
        working: AtomicUsize,
    }

    impl Tool for Changes {
        type Arguments = TestArguments;

        fn name(&self) -> &str {
            "Changes"
        }

        fn description(&self) -> &str {
            "For tests."
        }

        fn execution_mode(&self, _: &TestArguments) -> ExecutionMode {
            match self.exclusive.load(Ordering::SeqCst) {
                true => ExecutionMode::Exclusive,
                false => ExecutionMode::Parallel,
            }
        }

        async fn run(&self, _: TestArguments, call: &ToolCall) -> Result<ToolOutput, ToolError> {
            let beside = self.working.fetch_add(1, Ordering::SeqCst);
            self.exclusive.store(true, Ordering::SeqCst);
            // As if a person were asked: the slot is free, and the next call is waiting for it.
            let asked = async {
                for _ in 0..50 {
                    tokio::task::yield_now().await;
                }
            };
            call.slot.paused(asked).await;
            self.working.fetch_sub(1, Ordering::SeqCst);
            Ok(ToolOutput::text(format!("{beside} beside it")))
        }
    }

    let path = r#"{"path":"x"}"#;
    let script = Script::new([makes(&[("a", "Changes", path), ("b", "Changes", path)]), says("")]);
    let mut config = config(&script);
    config.scheduling.max_parallel = 1;
    let tool = OfferedTool::new(Changes::default()).unwrap();
    let outcome = agent_loop(prompt("go"), context([tool]), config).result().await;
    let words: Vec<_> = results(&outcome.messages).into_iter().map(|result| result.2).collect();
    assert_eq!(words, ["0 beside it", "0 beside it"]);
}

/// SPEC L15
#[tokio::test]
async fn the_stream_is_closed_before_tools_run() {
    let script = Script::new([makes(&[("a", "Read", r#"{"path":"x"}"#)]), says("done")]);
    let open = Arc::clone(&script.open);
    let read = tool("Read", ExecutionMode::Parallel, move |_, _| {
        let open = open.load(Ordering::SeqCst);
        async move { Ok(ToolOutput::text(format!("{open} open"))) }
    });
    let outcome = agent_loop(prompt("go"), context([read]), config(&script)).result().await;
    assert_eq!(results(&outcome.messages)[0].2, "0 open");
}

/// SPEC L13
#[tokio::test]
async fn terminate_needs_every_result() {
    let ends = |name, terminate| {
        tool(name, ExecutionMode::Parallel, move |_, _| async move {
            Ok(ToolOutput { terminate, ..ToolOutput::text("ok") })
        })
    };
    let both = || context([ends("Ends", true), ends("Goes", false)]);
    let script = Script::new([
        makes(&[("a", "Ends", r#"{"path":"x"}"#), ("b", "Goes", r#"{"path":"x"}"#)]),
        makes(&[("c", "Ends", r#"{"path":"x"}"#)]),
    ]);
    let outcome = agent_loop(prompt("go"), both(), config(&script)).result().await;
    assert_eq!(outcome.reason, EndReason::Completed);
    assert_eq!(script.requests().len(), 2);
}

/// SPEC T10: tower's own layers go around a tool; what they answer is an error result.
#[tokio::test(start_paused = true)]
async fn towers_layers_fit() {
    use tower::limit::ConcurrencyLimitLayer;
    use tower::timeout::TimeoutLayer;
    let at_once = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (now, peak) = (Arc::clone(&at_once), Arc::clone(&most));
    let counted = tool("Counted", ExecutionMode::Parallel, move |_, _| {
        let (now, peak) = (Arc::clone(&now), Arc::clone(&peak));
        async move {
            peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(5)).await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(ToolOutput::text("ok"))
        }
    })
    .layer(&ConcurrencyLimitLayer::new(2));
    let hangs = tool("Hangs", ExecutionMode::Parallel, |_, _| std::future::pending())
        .layer(&TimeoutLayer::new(Duration::from_secs(1)));
    let calls: Vec<(String, &str)> = (0..8).map(|i| (i.to_string(), "Counted")).collect();
    let mut calls: Vec<(&str, &str, &str)> =
        calls.iter().map(|(id, name)| (id.as_str(), *name, r#"{"path":"x"}"#)).collect();
    calls.push(("h", "Hangs", r#"{"path":"x"}"#));
    let script = Script::new([makes(&calls), says("done")]);
    let run = agent_loop(prompt("go"), context([counted, hangs]), config(&script));
    let outcome = run.result().await;
    assert_eq!(most.load(Ordering::SeqCst), 2);
    let last = results(&outcome.messages).pop().unwrap();
    assert_eq!((last.0.as_str(), last.2.as_str()), ("h", "request timed out"));
}

/// The model is told what a person reads in the documentation, and nothing of Rust.
#[test]
fn a_derived_schema_is_plain() {
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Arguments {
        /// Where to begin.
        offset: Option<u64>,
        /// A name that is also a word of JSON Schema.
        format: String,
    }

    struct Shaped;

    impl Tool for Shaped {
        type Arguments = Arguments;

        fn name(&self) -> &str {
            "Shaped"
        }

        fn description(&self) -> &str {
            "For tests."
        }

        async fn run(&self, _: Arguments, _: &ToolCall) -> Result<ToolOutput, ToolError> {
            Ok(ToolOutput::default())
        }
    }

    assert_eq!(
        OfferedTool::new(Shaped).unwrap().spec().input_schema,
        json!({
            "type": "object",
            "properties": {
                "offset": {"type": "integer", "minimum": 0, "description": "Where to begin."},
                "format": {
                    "type": "string",
                    "description": "A name that is also a word of JSON Schema."
                },
            },
            "required": ["format"],
        })
    );
}

/// SPEC T8
#[test]
fn arguments_that_fit_the_schema_and_not_the_type_do_nothing() {
    #[derive(Deserialize, JsonSchema)]
    struct Arguments {
        offset: u64,
    }

    struct Picky;

    impl Tool for Picky {
        type Arguments = Arguments;

        fn name(&self) -> &str {
            "Picky"
        }

        fn description(&self) -> &str {
            "For tests."
        }

        fn effects(&self, arguments: &Arguments) -> Effects {
            assert!(arguments.offset != 0, "a tool that panics over the question");
            Effects::Undeclared
        }

        async fn run(&self, _: Arguments, _: &ToolCall) -> Result<ToolOutput, ToolError> {
            Ok(ToolOutput::default())
        }
    }

    let tool = OfferedTool::new(Picky).unwrap();
    let effects =
        |offset: serde_json::Value| tool.effects(json!({"offset": offset}).as_object().unwrap());
    // Nobody is asked about a call that its tool refuses anyway.
    assert_eq!(effects(json!(1e30)), Effects::Declared(Vec::new()));
    assert_eq!(effects(json!(0)), Effects::Undeclared);
    assert_eq!(effects(json!(1)), Effects::Undeclared);
}
