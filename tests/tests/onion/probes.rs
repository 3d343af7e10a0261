//! Parts of a stack that write down, in one list, what happens to them.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use agent::{
    Approval, Approver, BeforeToolCall, Effect, Effects, ExecutionMode, Extension, OfferedTool,
    Question, Tool, ToolCall, ToolCallEnd, ToolError, ToolOutput,
};
use coding_agent::{
    Credentials, ExtensionLayer, LimitLayer, Permission, PermissionMode, Policy, Stack, Workspace,
};
use futures::future::{self, BoxFuture};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// What happened, in order. Clones are the same list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal(Arc<Mutex<Vec<String>>>);

impl Journal {
    pub(crate) fn note(&self, line: impl fmt::Display) {
        self.0.lock().unwrap().push(line.to_string());
    }

    /// What has happened since the last time.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// What a probe does before a call.
#[derive(Clone, Debug)]
pub(crate) enum Before {
    Go,
    Rewrite(Value),
    Block(&'static str),
    Panic,
}

/// An extension that notes what it is asked and what it hears.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    name: &'static str,
    before: Before,
    panics_after: bool,
    journal: Journal,
}

impl Probe {
    pub(crate) fn new(name: &'static str, before: Before, journal: &Journal) -> Self {
        Self { name, before, panics_after: false, journal: journal.clone() }
    }

    /// The same, but it panics when it hears of the end.
    pub(crate) fn panicking_after(self) -> Self {
        Self { panics_after: true, ..self }
    }
}

impl Extension for Probe {
    fn name(&self) -> &str {
        self.name
    }

    fn before_tool_call<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, BeforeToolCall> {
        self.journal.note(format_args!("{} before {}", self.name, written(&call.arguments)));
        Box::pin(future::lazy(|_| match &self.before {
            Before::Go => BeforeToolCall::Go,
            Before::Rewrite(arguments) => BeforeToolCall::Rewrite(object(arguments.clone())),
            Before::Block(reason) => BeforeToolCall::Block { reason: (*reason).to_owned() },
            Before::Panic => panic!("of {}", self.name),
        }))
    }

    fn after_tool_call<'a>(&'a self, end: ToolCallEnd<'a>) -> BoxFuture<'a, ()> {
        let heard = match end.output {
            Ok(output) if output.is_error => format!("error: {}", output.content_text()),
            Ok(output) => output.content_text(),
            Err(fault) => format!("fault: {fault}"),
        };
        let asked = written(&end.call.arguments);
        self.journal.note(format_args!("{} after {asked} -> {heard}", self.name));
        Box::pin(future::lazy(|_| assert!(!self.panics_after, "of {} after", self.name)))
    }
}

/// Answers questions one after the other, in the order in which they come.
pub(crate) struct Answers {
    answers: Mutex<Vec<Option<Approval>>>,
    journal: Journal,
}

impl Answers {
    pub(crate) fn new(
        answers: impl IntoIterator<Item = Option<Approval>>,
        journal: &Journal,
    ) -> Arc<Self> {
        let mut answers: Vec<_> = answers.into_iter().collect();
        answers.reverse();
        Arc::new(Self { answers: Mutex::new(answers), journal: journal.clone() })
    }
}

impl Approver for Answers {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Option<Approval>> {
        let asked = written(&question.args);
        self.journal.note(format_args!("asked {} {asked}", question.tool_name));
        let answer = self.answers.lock().unwrap().pop().expect("a question too many");
        Box::pin(future::ready(answer))
    }
}

/// What a probe's body does.
type Body =
    Arc<dyn Fn(ToolCall) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync>;

/// A tool that notes what it gets.
pub(crate) struct ProbeTool {
    name: &'static str,
    mode: ExecutionMode,
    effects: fn(&str) -> Effects,
    body: Body,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProbeArguments {
    /// What it is about.
    path: String,
    /// How often.
    #[serde(default)]
    #[expect(dead_code, reason = "the schema's check is what is tested")]
    count: Option<u32>,
}

impl ProbeTool {
    /// A tool that changes the file that it is called with, and says so.
    pub(crate) fn new(name: &'static str, journal: &Journal) -> Self {
        let journal = journal.clone();
        let body: Body = Arc::new(move |call| {
            journal.note(format_args!("tool {}", written(&call.arguments)));
            Box::pin(future::ready(Ok(ToolOutput::text("done"))))
        });
        Self {
            name,
            mode: ExecutionMode::Parallel,
            effects: |path| Effects::Declared(vec![Effect::write(path)]),
            body,
        }
    }

    pub(crate) fn effects(self, effects: fn(&str) -> Effects) -> Self {
        Self { effects, ..self }
    }

    pub(crate) fn body<F>(self, body: impl Fn(ToolCall) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        Self { body: Arc::new(move |call| Box::pin(body(call))), ..self }
    }
}

impl Tool for ProbeTool {
    type Arguments = ProbeArguments;

    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &str {
        "For tests."
    }

    fn execution_mode(&self, _: &ProbeArguments) -> ExecutionMode {
        self.mode
    }

    fn effects(&self, arguments: &ProbeArguments) -> Effects {
        (self.effects)(&arguments.path)
    }

    async fn run(&self, _: ProbeArguments, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        (self.body)(call.clone()).await
    }
}

/// A stack over a workspace, with these extensions and this approver.
pub(crate) fn stack(
    work: &Path,
    extensions: impl IntoIterator<Item = Probe>,
    approver: Arc<dyn Approver>,
) -> Stack {
    let workspace = Arc::new(Workspace::new(work, &[]).unwrap());
    let policy = Policy { mode: PermissionMode::Ask, credentials: Credentials::default() };
    let extensions = extensions.into_iter().map(|probe| Arc::new(probe) as Arc<dyn Extension>);
    Stack {
        extensions: ExtensionLayer::new(extensions),
        permission: Permission::new(workspace, policy, approver),
        limit: LimitLayer::default(),
    }
}

/// The tool inside the stack.
pub(crate) fn offered(stack: &Stack, tool: ProbeTool) -> OfferedTool {
    stack.around(OfferedTool::new(tool).unwrap())
}

/// Makes one call.
pub(crate) async fn call(tool: &OfferedTool, arguments: Value) -> ToolOutput {
    let name = tool.spec().name.clone();
    tool.call(ToolCall::new("call_1", name, arguments)).await.unwrap()
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}

fn written(arguments: &Map<String, Value>) -> String {
    Value::Object(arguments.clone()).to_string()
}
