//! `agent_loop` as its users see it: events, results, isolation, cancellation.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::{
    ABANDONED, AbortCause, AgentContext, AgentEvent, AgentLoopConfig, CancelGrace, ClaimSize,
    CountingIdentity, Discipline, EndReason, ExecutionMode, FailureKind, HookError, InputQueue,
    MachineLimits, MessageHead, Model, NOT_DISPATCHED, OfferedTool, Run, RunFailure, Tool,
    ToolCall, ToolError, ToolFault, ToolOutput, Tools, agent_loop,
};
use ai::{
    Assembler, ErrorKind, EventStream, History, Message, MessageId, ModelStream, Origin, Provider,
    ProviderError, Request, StopReason, StreamEvent, Timestamp, ToolErrorKind, Usage, UserMessage,
};
use futures::{StreamExt, stream};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore};

/// A provider that plays prepared answers and keeps what it was asked.
#[derive(Default)]
struct Script {
    answers: Mutex<VecDeque<Vec<StreamEvent>>>,
    requests: Mutex<Vec<Request>>,
    /// Streams that are open now.
    open: Arc<AtomicUsize>,
    /// After its events a stream stays open, silent, instead of ending.
    stalls: bool,
}

impl Script {
    fn new(answers: impl IntoIterator<Item = Vec<StreamEvent>>) -> Arc<Self> {
        Arc::new(Self { answers: Mutex::new(answers.into_iter().collect()), ..Self::default() })
    }

    fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Provider for Script {
    fn name(&self) -> &str {
        "script"
    }

    fn api(&self) -> &str {
        "none"
    }

    fn stream(&self, request: Request) -> ModelStream {
        self.requests.lock().unwrap().push(request);
        let answer = self.answers.lock().unwrap().pop_front().expect("the script has another turn");
        self.open.fetch_add(1, Ordering::SeqCst);
        let open = Open(Arc::clone(&self.open));
        let stalls = self.stalls;
        let events = stream::iter(answer).chain(
            stream::once(async move {
                if stalls {
                    std::future::pending::<()>().await;
                }
                drop(open);
            })
            .filter_map(|()| async { None }),
        );
        EventStream::new(events, Assembler::new(MessageId::from("unused"), Timestamp(0)))
    }
}

fn start() -> StreamEvent {
    StreamEvent::Start { provider: "script".into(), api: "none".into(), model: "m".into() }
}

fn end(stop_reason: StopReason) -> StreamEvent {
    let usage = Usage { input: 10, output: 1, ..Usage::default() };
    StreamEvent::Done { stop_reason, stop_raw: None, usage }
}

fn text_block(index: usize, text: &str) -> Vec<StreamEvent> {
    vec![
        StreamEvent::TextStart { index },
        StreamEvent::TextDelta { index, delta: text.into() },
        StreamEvent::TextEnd { index },
    ]
}

fn says(text: &str) -> Vec<StreamEvent> {
    [vec![start()], text_block(0, text), vec![end(StopReason::Stop)]].concat()
}

fn call_block(index: usize, id: &str, name: &str, raw: &str) -> Vec<StreamEvent> {
    let call = ai::ToolCall::parse(id.into(), name.into(), raw.into());
    vec![
        StreamEvent::ToolcallStart { index, id: id.into(), name: name.into() },
        StreamEvent::ToolcallDelta { index, delta: raw.into() },
        StreamEvent::ToolcallEnd { index, call },
    ]
}

/// Calls by `(id, tool, arguments as text)`.
fn makes(calls: &[(&str, &str, &str)]) -> Vec<StreamEvent> {
    let mut events = vec![start()];
    for (index, (id, name, raw)) in calls.iter().enumerate() {
        events.extend(call_block(index, id, name, raw));
    }
    events.push(end(StopReason::ToolUse));
    events
}

fn breaks(kind: ErrorKind) -> Vec<StreamEvent> {
    let error = StreamEvent::failed(ProviderError::new(kind, "mock"));
    [vec![start()], text_block(0, "half an ans"), vec![error]].concat()
}

/// What a test tool does when it is called.
type Body = Arc<
    dyn Fn(String, ToolCall) -> futures::future::BoxFuture<'static, Result<ToolOutput, ToolError>>
        + Send
        + Sync,
>;

struct TestTool {
    name: &'static str,
    mode: ExecutionMode,
    body: Body,
}

#[derive(Deserialize, JsonSchema)]
struct TestArguments {
    /// Anything.
    path: String,
}

impl Tool for TestTool {
    type Arguments = TestArguments;

    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &str {
        "For tests."
    }

    fn execution_mode(&self, _: &TestArguments) -> ExecutionMode {
        self.mode
    }

    fn title(&self, arguments: &TestArguments) -> String {
        assert_ne!(arguments.path, "panic in title");
        format!("{} {}", self.name, arguments.path)
    }

    async fn run(
        &self,
        arguments: TestArguments,
        call: &ToolCall,
    ) -> Result<ToolOutput, ToolError> {
        (self.body)(arguments.path, call.clone()).await
    }
}

fn tool<F, Fut>(name: &'static str, mode: ExecutionMode, body: F) -> OfferedTool
where
    F: Fn(String, ToolCall) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
{
    let body: Body = Arc::new(move |path, call| Box::pin(body(path, call)));
    OfferedTool::new(TestTool { name, mode, body }).unwrap()
}

fn read() -> OfferedTool {
    tool("Read", ExecutionMode::Parallel, |path, _| async move {
        Ok(ToolOutput::text(format!("contents of {path}")))
    })
}

fn edit() -> OfferedTool {
    tool("Edit", ExecutionMode::Exclusive, |path, _| async move {
        Ok(ToolOutput::text(format!("edited {path}")))
    })
}

fn config(script: &Arc<Script>) -> AgentLoopConfig {
    let mut config = AgentLoopConfig::new(Model::new(Arc::clone(script) as Arc<dyn Provider>, "m"));
    config.identity = Arc::new(CountingIdentity::new("id"));
    config
}

fn context(tools: impl IntoIterator<Item = OfferedTool>) -> AgentContext {
    AgentContext { tools: tools.into_iter().collect(), ..AgentContext::default() }
}

fn prompt(text: &str) -> Vec<UserMessage> {
    let mut message = UserMessage::text(text, Origin::User);
    message.id = MessageId::from("prompt");
    message.timestamp = Timestamp(0);
    vec![message]
}

/// One line an event; updates of one block are one line.
fn line(event: &AgentEvent) -> String {
    let of = |message: &Message| match message {
        Message::User(_) => format!("user({})", text(message)),
        Message::Assistant(answer) => {
            let stop = serde_json::to_value(answer.stop_reason).unwrap();
            format!("assistant({})", stop.as_str().unwrap())
        }
        Message::ToolResult(result) => format!("result({})", result.tool_call_id),
    };
    match event {
        AgentEvent::AgentStart { run } => format!("agent_start {run}"),
        AgentEvent::TurnStart { turn, .. } => format!("turn_start {turn}"),
        AgentEvent::MessageStart { message: MessageHead::Whole(message) } => {
            format!("message_start {}", of(message))
        }
        AgentEvent::MessageStart { .. } => "message_start assistant".into(),
        AgentEvent::MessageUpdate { event, .. } => {
            let json = serde_json::to_value(event).unwrap();
            format!("update {} {}", json["type"].as_str().unwrap(), json["index"])
        }
        AgentEvent::MessageEnd { message } => format!("message_end {}", of(message)),
        AgentEvent::MessageDiscard { .. } => "message_discard".into(),
        AgentEvent::ToolExecutionStart { tool_call_id, title, .. } => {
            format!("tool_start {tool_call_id}: {title}")
        }
        AgentEvent::ToolExecutionUpdate { tool_call_id, partial, .. } => {
            format!("tool_update {tool_call_id} {}", partial.content[0].as_text().unwrap())
        }
        AgentEvent::ToolExecutionEnd { tool_call_id, is_error, .. } => {
            format!("tool_end {tool_call_id}{}", if *is_error { " error" } else { "" })
        }
        AgentEvent::TurnEnd { turn, tool_results, has_more_tool_calls, .. } => {
            format!("turn_end {turn} results={} more={has_more_tool_calls}", tool_results.len())
        }
        AgentEvent::AgentEnd { messages, reason, .. } => {
            format!("agent_end messages={} {}", messages.len(), reason_kind(reason))
        }
        AgentEvent::Retry { attempt, kind, .. } => format!("retry {attempt} {}", kind.as_str()),
        AgentEvent::Error { turn, kind, message, .. } => format!("error {turn} {kind}: {message}"),
        AgentEvent::Lagged { .. } => "lagged".into(),
        _ => unreachable!("no other event is known"),
    }
}

fn reason_kind(reason: &EndReason) -> String {
    let json = serde_json::to_value(reason).unwrap();
    let cause = json.get("cause").map(|cause| format!("({})", cause.as_str().unwrap()));
    format!("{}{}", json["kind"].as_str().unwrap(), cause.unwrap_or_default())
}

fn text(message: &Message) -> String {
    message.content().iter().filter_map(|block| block.as_text()).collect()
}

async fn lines(mut run: Run) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    while let Some(event) = run.next().await {
        lines.push(line(&event));
    }
    lines
}

#[track_caller]
fn assert_lines(lines: &[String], expected: &str) {
    let expected: Vec<&str> = expected.trim().lines().map(str::trim).collect();
    assert_eq!(lines.join("\n"), expected.join("\n"));
}

/// What the results of a run say, by call.
fn results(messages: &[Arc<Message>]) -> Vec<(String, Option<ToolErrorKind>, String)> {
    let results = messages.iter().filter_map(|message| match &**message {
        Message::ToolResult(result) => {
            Some((result.tool_call_id.clone(), result.error_kind, text(message)))
        }
        _ => None,
    });
    results.collect()
}

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
    // With the second read releasing the first, the second may be seen to end first or, where the
    // first is polled in between, right after it: completion order is what the tools make of it.
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

/// SPEC L3, I1: the caller's context is the same after success, failure, cancel and a panic.
#[tokio::test]
async fn the_callers_context_is_untouched() {
    let panics = tool("Panics", ExecutionMode::Parallel, |_, _| async { panic!("in the tool") });
    let earlier: History = [Message::User(prompt("earlier").remove(0))].into_iter().collect();
    let mine = AgentContext {
        system_prompt: "be good".into(),
        messages: earlier.clone(),
        tools: [read(), panics].into_iter().collect(),
    };
    let before = serde_json::to_string(&mine.messages.to_vec()).unwrap();
    for script in [
        Script::new([makes(&[("a", "Panics", r#"{"path":""}"#)]), says("done")]),
        Script::new([vec![StreamEvent::failed(ProviderError::new(ErrorKind::Auth, "no key"))]]),
        Script::new([breaks(ErrorKind::Auth)]),
    ] {
        let outcome = agent_loop(prompt("now"), mine.clone(), config(&script)).result().await;
        assert_ne!(outcome.messages.len(), 0);
        assert_eq!(serde_json::to_string(&mine.messages.to_vec()).unwrap(), before);
        assert!(mine.messages.is_same(&earlier));
        assert_eq!(mine.tools.iter().count(), 2);
    }
}

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

/// SPEC L4: what one request's context lacks is back at the next, and cannot be called meanwhile.
#[tokio::test]
async fn prepare_context_is_for_one_request() {
    let script = Script::new([
        makes(&[("a", "Edit", r#"{"path":"x"}"#)]),
        makes(&[("b", "Edit", r#"{"path":"x"}"#)]),
        says("done"),
    ]);
    let mut config = config(&script);
    let asked = AtomicUsize::new(0);
    config.prepare_context = Some(Arc::new(move |mut context: AgentContext| {
        let first = asked.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            if first {
                context.tools = context.tools.filter(|tool| tool.spec().name != "Edit");
                context.messages = History::new();
            }
            Ok::<_, HookError>(context)
        }
    }));
    let outcome = agent_loop(prompt("go"), context([read(), edit()]), config).result().await;
    let requests = script.requests();
    let offered: Vec<Vec<&str>> = requests
        .iter()
        .map(|request| request.tools.iter().map(|tool| tool.name.as_str()).collect())
        .collect();
    assert_eq!(offered, [vec!["Read"], vec!["Read", "Edit"], vec!["Read", "Edit"]]);
    let lengths: Vec<usize> = requests.iter().map(|request| request.messages.len()).collect();
    assert_eq!(lengths, [0, 3, 5]);
    let kinds: Vec<_> = results(&outcome.messages).into_iter().map(|(_, kind, _)| kind).collect();
    assert_eq!(kinds, [Some(ToolErrorKind::NotFound), None]);
}

/// SPEC L6
#[tokio::test]
async fn steering_joins_the_next_turn_and_follow_ups_the_end() {
    let script = Script::new([
        makes(&[("a", "Steers", r#"{"path":"x"}"#)]),
        says("first done"),
        says("second done"),
    ]);
    let steering = InputQueue::new(ClaimSize::All);
    let follow_ups = InputQueue::new(ClaimSize::One);
    let (s, f) = (steering.clone(), follow_ups.clone());
    let steers = tool("Steers", ExecutionMode::Exclusive, move |_, _| {
        s.push(UserMessage::text("not that file", Origin::Steer));
        s.push(UserMessage::text("the other one", Origin::Steer));
        f.push(UserMessage::text("then run the tests", Origin::User));
        async { Ok(ToolOutput::text("ok")) }
    });
    let mut config = config(&script);
    config.steering = Some(Arc::new(steering));
    config.follow_ups = Some(Arc::new(follow_ups));
    let outcome = agent_loop(prompt("go"), context([steers]), config).result().await;
    let texts: Vec<String> = outcome.messages.iter().map(|message| text(message)).collect();
    assert_eq!(
        texts,
        [
            "go",
            "",
            "ok",
            "not that file",
            "the other one",
            "first done",
            "then run the tests",
            "second done"
        ]
    );
}

/// SPEC L7
#[tokio::test]
async fn the_iteration_limit_keeps_queued_input() {
    let script = Script::new([makes(&[("a", "Read", r#"{"path":"x"}"#)])]);
    let steering = InputQueue::new(ClaimSize::All);
    let mut config = config(&script);
    config.limits = MachineLimits { max_turns: Some(1) };
    config.steering = Some(Arc::new(steering.clone()));
    let run = agent_loop(prompt("go"), context([read()]), config);
    // The first claim happens before this, or takes it; either way nothing is lost.
    let outcome = run.result().await;
    assert_eq!(outcome.reason, EndReason::IterationLimit);
    let Message::Assistant(last) = &**outcome.messages.last().unwrap() else { panic!() };
    assert_eq!((last.stop_reason, last.content.len()), (StopReason::IterationLimit, 0));
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

/// SPEC T6: what a tool returns besides its result comes with the next turn, in order.
#[tokio::test]
async fn additional_context_joins_the_next_turn() {
    let reads = tool("Read", ExecutionMode::Parallel, |path, _| async move {
        let mut note = UserMessage::text(format!("about {path}"), Origin::Tool);
        note.id = MessageId::from(path);
        Ok(ToolOutput { context: vec![note], ..ToolOutput::text("ok") })
    });
    let script = Script::new([
        makes(&[("a", "Read", r#"{"path":"1"}"#), ("b", "Read", r#"{"path":"2"}"#)]),
        says("done"),
    ]);
    let outcome = agent_loop(prompt("go"), context([reads]), config(&script)).result().await;
    let texts: Vec<String> = outcome.messages.iter().map(|message| text(message)).collect();
    assert_eq!(texts, ["go", "", "ok", "ok", "about 1", "about 2", "done"]);
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

/// SPEC L6, L7: input that arrives while the last allowed turn runs stays in its queue.
#[tokio::test]
async fn input_at_the_limit_stays_where_it_is() {
    use agent::InputSource;
    let steering = InputQueue::new(ClaimSize::All);
    let late = steering.clone();
    let steers = tool("Steers", ExecutionMode::Exclusive, move |_, _| {
        late.push(UserMessage::text("too late", Origin::Steer));
        async { Ok(ToolOutput::text("ok")) }
    });
    let script = Script::new([makes(&[("a", "Steers", r#"{"path":"x"}"#)])]);
    let mut config = config(&script);
    config.limits = MachineLimits { max_turns: Some(1) };
    config.steering = Some(Arc::new(steering.clone()));
    let outcome = agent_loop(prompt("go"), context([steers]), config).result().await;
    assert_eq!(outcome.reason, EndReason::IterationLimit);
    assert_eq!(steering.claim().len(), 1);
}
