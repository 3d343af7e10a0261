//! A provider that plays prepared answers, and tools whose bodies are closures.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use agent::{
    AgentContext, AgentLoopConfig, CountingIdentity, ExecutionMode, Model, OfferedTool, Tool,
    ToolCall, ToolError, ToolOutput,
};
use ai::{
    Assembler, ErrorKind, EventStream, MessageId, ModelStream, Origin, Provider, ProviderError,
    Request, StopReason, StreamEvent, Timestamp, Usage, UserMessage,
};
use futures::{StreamExt, stream};
use schemars::JsonSchema;
use serde::Deserialize;

/// A provider that plays prepared answers and keeps what it was asked.
#[derive(Default)]
pub(crate) struct Script {
    pub(crate) answers: Mutex<VecDeque<Vec<StreamEvent>>>,
    pub(crate) requests: Mutex<Vec<Request>>,
    /// Streams that are open now.
    pub(crate) open: Arc<AtomicUsize>,
    /// After its events a stream stays open, silent, instead of ending.
    pub(crate) stalls: bool,
}

impl Script {
    pub(crate) fn new(answers: impl IntoIterator<Item = Vec<StreamEvent>>) -> Arc<Self> {
        Arc::new(Self { answers: Mutex::new(answers.into_iter().collect()), ..Self::default() })
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

pub(crate) struct Open(Arc<AtomicUsize>);

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

pub(crate) fn start() -> StreamEvent {
    StreamEvent::Start { provider: "script".into(), api: "none".into(), model: "m".into() }
}

pub(crate) fn end(stop_reason: StopReason) -> StreamEvent {
    let usage = Usage { input: 10, output: 1, ..Usage::default() };
    StreamEvent::Done { stop_reason, stop_raw: None, usage, violation: None }
}

pub(crate) fn text_block(index: usize, text: &str) -> Vec<StreamEvent> {
    vec![
        StreamEvent::TextStart { index },
        StreamEvent::TextDelta { index, delta: text.into() },
        StreamEvent::TextEnd { index },
    ]
}

pub(crate) fn says(text: &str) -> Vec<StreamEvent> {
    [vec![start()], text_block(0, text), vec![end(StopReason::Stop)]].concat()
}

pub(crate) fn call_block(index: usize, id: &str, name: &str, raw: &str) -> Vec<StreamEvent> {
    let call = ai::ToolCall::parse(id.into(), name.into(), raw.into());
    vec![
        StreamEvent::ToolcallStart { index, id: id.into(), name: name.into() },
        StreamEvent::ToolcallDelta { index, delta: raw.into() },
        StreamEvent::ToolcallEnd { index, call },
    ]
}

/// Calls by `(id, tool, arguments as text)`.
pub(crate) fn makes(calls: &[(&str, &str, &str)]) -> Vec<StreamEvent> {
    let mut events = vec![start()];
    for (index, (id, name, raw)) in calls.iter().enumerate() {
        events.extend(call_block(index, id, name, raw));
    }
    events.push(end(StopReason::ToolUse));
    events
}

pub(crate) fn breaks(kind: ErrorKind) -> Vec<StreamEvent> {
    let error = StreamEvent::failed(ProviderError::new(kind, "mock"));
    [vec![start()], text_block(0, "half an ans"), vec![error]].concat()
}

/// What a test tool does when it is called.
pub(crate) type Body = Arc<
    dyn Fn(String, ToolCall) -> futures::future::BoxFuture<'static, Result<ToolOutput, ToolError>>
        + Send
        + Sync,
>;

pub(crate) struct TestTool {
    name: &'static str,
    mode: ExecutionMode,
    body: Body,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct TestArguments {
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

pub(crate) fn tool<F, Fut>(name: &'static str, mode: ExecutionMode, body: F) -> OfferedTool
where
    F: Fn(String, ToolCall) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
{
    let body: Body = Arc::new(move |path, call| Box::pin(body(path, call)));
    OfferedTool::new(TestTool { name, mode, body }).unwrap()
}

pub(crate) fn read() -> OfferedTool {
    tool("Read", ExecutionMode::Parallel, |path, _| async move {
        Ok(ToolOutput::text(format!("contents of {path}")))
    })
}

pub(crate) fn edit() -> OfferedTool {
    tool("Edit", ExecutionMode::Exclusive, |path, _| async move {
        Ok(ToolOutput::text(format!("edited {path}")))
    })
}

pub(crate) fn config(script: &Arc<Script>) -> AgentLoopConfig {
    let mut config = AgentLoopConfig::new(Model::new(Arc::clone(script) as Arc<dyn Provider>, "m"));
    config.identity = Arc::new(CountingIdentity::new("id"));
    config
}

pub(crate) fn context(tools: impl IntoIterator<Item = OfferedTool>) -> AgentContext {
    AgentContext { tools: tools.into_iter().collect(), ..AgentContext::default() }
}

pub(crate) fn prompt(text: &str) -> Vec<UserMessage> {
    let mut message = UserMessage::text(text, Origin::User);
    message.id = MessageId::from("prompt");
    message.timestamp = Timestamp(0);
    vec![message]
}
