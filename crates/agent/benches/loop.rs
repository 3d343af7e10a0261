//! The loop's own cost of a turn: an instant model, a tool that does nothing.
//!
//! A turn must not cost more because there were many before it (SPEC L16), so the two figures that
//! this prints, at turn 10 and at turn 1,000, belong side by side.

#![expect(clippy::expect_used, reason = "a bench may fail")]

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use agent::{
    AgentContext, AgentLoopConfig, Model, OfferedTool, Tool, ToolCall, ToolError, ToolOutput,
    agent_loop,
};
use ai::{
    Assembler, EventStream, MessageId, ModelStream, Origin, Provider, Request, StopReason,
    StreamEvent, Timestamp, Usage, UserMessage,
};
use criterion::{Criterion, criterion_group, criterion_main};
use futures::stream;
use schemars::JsonSchema;
use serde::Deserialize;

/// Turns that are timed together: one alone is near the clock's own cost.
const WINDOW: u64 = 16;

/// Calls the tool once a turn, and notes when the timed turns begin and end.
struct Instantly {
    first: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    turn: u64,
    begun: Option<Instant>,
    took: Duration,
}

impl Provider for Instantly {
    fn name(&self) -> &str {
        "instant"
    }

    fn api(&self) -> &str {
        "none"
    }

    fn stream(&self, _: Request) -> ModelStream {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.turn += 1;
        if state.turn == self.first {
            state.begun = Some(Instant::now());
        }
        let ends = state.turn == self.first + WINDOW;
        if ends {
            state.took = state.begun.map(|begun| begun.elapsed()).unwrap_or_default();
        }
        let events = answer(state.turn, ends);
        let fold = Assembler::new(MessageId::from("unused"), Timestamp(0));
        EventStream::new(stream::iter(events), fold)
    }
}

fn answer(turn: u64, ends: bool) -> Vec<StreamEvent> {
    let index = 0;
    let start =
        StreamEvent::Start { provider: "instant".into(), api: "none".into(), model: "m".into() };
    let end = |stop_reason| StreamEvent::Done {
        stop_reason,
        stop_raw: None,
        usage: Usage { input: 10, output: 1, ..Usage::default() },
        violation: None,
    };
    if ends {
        return vec![
            start,
            StreamEvent::TextStart { index },
            StreamEvent::TextDelta { index, delta: "done".into() },
            StreamEvent::TextEnd { index },
            end(StopReason::Stop),
        ];
    }
    let (id, name) = (format!("call_{turn}"), "Nothing".to_owned());
    let raw = r#"{"path": "src/main.rs"}"#.to_owned();
    vec![
        start,
        StreamEvent::ToolcallStart { index, id: id.clone(), name: name.clone() },
        StreamEvent::ToolcallDelta { index, delta: raw.clone() },
        StreamEvent::ToolcallEnd { index, call: ai::ToolCall::parse(id, name, raw) },
        end(StopReason::ToolUse),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct NothingArguments {
    #[serde(rename = "path")]
    _path: String,
}

struct Nothing;

impl Tool for Nothing {
    type Arguments = NothingArguments;

    fn name(&self) -> &str {
        "Nothing"
    }

    fn description(&self) -> &str {
        "Does nothing."
    }

    async fn run(&self, _: NothingArguments, _: &ToolCall) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text("done"))
    }
}

/// How long the turns from `first` on take in a run of that many.
async fn window(tool: OfferedTool, first: u64) -> Duration {
    let provider = Arc::new(Instantly { first, state: Mutex::default() });
    let model = Model::new(Arc::clone(&provider) as Arc<dyn Provider>, "m");
    let context = AgentContext { tools: [tool].into_iter().collect(), ..AgentContext::default() };
    let prompt = UserMessage::text("go", Origin::User);
    agent_loop(vec![prompt], context, AgentLoopConfig::new(model)).result().await;
    let state = provider.state.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(state.turn, first + WINDOW, "the run ended early");
    state.took
}

fn turns(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let tool = OfferedTool::new(Nothing).expect("the schema is valid");
    let mut group = criterion.benchmark_group("turn");
    group.sample_size(20);
    group.warm_up_time(Duration::from_millis(500));
    group.measurement_time(Duration::from_secs(4));
    for first in [10, 1_000] {
        group.bench_function(format!("at {first}"), |bencher| {
            bencher.iter_custom(|turns| {
                runtime.block_on(async {
                    let mut took = Duration::ZERO;
                    let runs = turns.div_ceil(WINDOW);
                    for _ in 0..runs {
                        took += window(tool.clone(), first).await;
                    }
                    // Whole windows were run; criterion wants the time of `turns`.
                    took.mul_f64(turns as f64 / (runs * WINDOW) as f64)
                })
            });
        });
    }
    group.finish();
}

criterion_group!(benches, turns);
criterion_main!(benches);
