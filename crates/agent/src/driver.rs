//! The driver: performs the machine's actions and feeds back what they came to.
//!
//! It decides nothing about what happens next. It holds what the machine does not: the messages,
//! the model, the tools, the watchers.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use ai::{
    Assembler, AssistantMessage, ErrorKind, History, Message, MessageId, ProviderError, Request,
    StopReason, StreamEvent, ToolErrorKind, ToolResultMessage, Usage, UserMessage,
};
use futures::{FutureExt, StreamExt};

use crate::batch::{BatchEvents, BatchSettings, run_batch};
use crate::cancel::RunCancel;
use crate::config::{AgentLoopConfig, HookError};
use crate::context::AgentContext;
use crate::end_reason::{EndReason, FailureKind, RunFailure};
use crate::event::{AgentEvent, MessageHead};
use crate::machine::{Action, Answer, Failure, Input, Machine, Mend, Queue, Refused};
use crate::outcome::{NOT_DISPATCHED, panic_message};
use crate::projection::Projector;
use crate::tool::ToolOutput;
use crate::tool_call::{CallOrigin, Progress};
use crate::tools::Tools;
use crate::watch::Broadcast;

/// What the model is told after it wrote a call as text. It never enters the history.
const REPAIR_NOTE: &str = "Your last answer wrote a tool call as text, so nothing was called. Make \
    the call again through the tool interface, without writing its markup.";

/// What the model reads of a call in an answer that was cut.
const CUT_BY_LENGTH: &str = "not executed: the answer reached the limit of output tokens, so this \
    call may be incomplete; make it again, with shorter arguments if need be";

/// What the model reads of a call in an answer that failed.
const ANSWER_FAILED: &str = "not executed: the answer that holds this call failed";

pub(crate) struct Driver {
    machine: Machine,
    config: AgentLoopConfig,
    context: AgentContext,
    cancel: RunCancel,
    events: Broadcast,
    projector: Projector,
    /// What this run added to the history.
    added: Vec<Arc<Message>>,
    usage: Usage,
    prompts: Vec<UserMessage>,
    /// Claimed and not yet in the history.
    in_hand: Vec<UserMessage>,
    /// What tools return beside their results, for the next turn.
    tool_context: Vec<UserMessage>,
    attempt: Option<Attempt>,
    turn: TurnRecord,
    /// Words for a failure of this side.
    failure: Option<String>,
}

/// The last answer, until it is committed or discarded.
struct Attempt {
    message: AssistantMessage,
    /// Watchers saw it begin.
    shown: bool,
    /// Something of the answer came, so that it broke off in the middle if it failed.
    begun: bool,
    offered: Tools,
}

/// What `turn_end` will say.
#[derive(Default)]
struct TurnRecord {
    open: bool,
    /// Model requests of this turn.
    attempts: u32,
    /// Why the last attempt was taken back.
    superseded: Option<ProviderError>,
    message: Option<Arc<Message>>,
    /// The calls of `message`, while they are dealt with.
    calls: Vec<ai::ToolCall>,
    offered: Tools,
    results: Vec<Arc<Message>>,
    /// How many of them watchers were told of.
    shown_results: usize,
    /// Calls that entered the onion and did not come out.
    open_calls: Vec<ai::ToolCall>,
    /// A message that watchers saw begin and not end.
    open_message: Option<MessageId>,
}

impl Driver {
    pub(crate) fn new(
        prompts: Vec<UserMessage>,
        context: AgentContext,
        config: AgentLoopConfig,
        cancel: RunCancel,
        events: Broadcast,
    ) -> Self {
        Self {
            machine: Machine::new(config.limits),
            config,
            context,
            cancel,
            events,
            projector: Projector::default(),
            added: Vec::new(),
            usage: Usage::default(),
            prompts,
            in_hand: Vec::new(),
            tool_context: Vec::new(),
            attempt: None,
            turn: TurnRecord::default(),
            failure: None,
        }
    }

    /// Runs to the end. Also a panic in a hook or a provider ends the run properly.
    pub(crate) async fn run(mut self) {
        let panic = AssertUnwindSafe(self.drive()).catch_unwind().await.err();
        if let Some(payload) = panic {
            let message = panic_message(payload.as_ref()).to_owned();
            self.close_after_panic(message);
        }
        self.events.close();
    }

    async fn drive(&mut self) {
        let mut input = Input::Begin;
        loop {
            if let Some(cause) = self.cancel.cause() {
                self.machine.cancel(cause);
            }
            let action = self.machine.step(input);
            if let Action::EndRun(reason) = action {
                self.end_run(reason);
                return;
            }
            input = match self.perform(action).await {
                Ok(input) => input,
                Err((failure, message)) => {
                    self.failure = Some(message);
                    Input::Failed(failure)
                }
            };
        }
    }

    async fn perform(&mut self, action: Action) -> Result<Input, (RunFailure, String)> {
        match action {
            Action::StartRun => {
                self.emit(AgentEvent::AgentStart { run: self.config.run });
                self.in_hand = std::mem::take(&mut self.prompts);
            }
            Action::Peek => {
                let waits = |source: &Option<Arc<dyn crate::InputSource>>| {
                    source.as_ref().is_some_and(|source| source.is_waiting())
                };
                return Ok(Input::Waiting {
                    steering: waits(&self.config.steering),
                    follow_up: waits(&self.config.follow_ups),
                });
            }
            Action::Claim(queue) => return Ok(Input::Claimed(self.claim(queue))),
            Action::StartTurn { turn } => {
                self.turn = TurnRecord { open: true, ..TurnRecord::default() };
                self.emit(AgentEvent::TurnStart { run: self.config.run, turn });
            }
            Action::AppendInputs => {
                for message in std::mem::take(&mut self.in_hand) {
                    self.append_whole(message.into());
                }
            }
            Action::Request { after, repair } => {
                return self.request(after, repair).await.map(Input::Answered);
            }
            Action::Discard => self.discard(),
            Action::AskRequestError => return self.ask_request_error().await.map(Input::Mended),
            Action::Commit => self.commit(),
            Action::RunBatch => return Ok(self.run_batch().await),
            Action::RefuseCalls(refused) => self.refuse_calls(refused),
            Action::Fail(failure) => self.announce(failure),
            Action::CommitIterationLimit => self.commit_iteration_limit(),
            Action::EndTurn { has_more_tool_calls } => self.end_turn(has_more_tool_calls),
            Action::AskStopping => {}
            Action::EndRun(reason) => self.end_run(reason),
        }
        Ok(Input::Done)
    }

    fn emit(&self, event: AgentEvent) {
        self.events.send(event);
    }

    fn claim(&mut self, queue: Queue) -> usize {
        let source = match queue {
            Queue::Steering => &self.config.steering,
            Queue::FollowUp => &self.config.follow_ups,
        };
        self.in_hand.append(&mut self.tool_context);
        if let Some(source) = source {
            self.in_hand.extend(source.claim());
        }
        self.in_hand.len()
    }

    /// The one place where the history grows.
    fn append(&mut self, message: Message) -> Arc<Message> {
        let message = Arc::new(message);
        self.context.messages.push(Arc::clone(&message));
        self.added.push(Arc::clone(&message));
        message
    }

    fn append_whole(&mut self, message: Message) -> Arc<Message> {
        let message = self.append(message);
        self.show_whole(&message);
        message
    }

    /// Tells watchers of the results that they have not seen.
    fn show_results(&mut self) {
        for result in self.turn.results.iter().skip(self.turn.shown_results) {
            self.show_whole(result);
        }
        self.turn.shown_results = self.turn.results.len();
    }

    fn show_whole(&self, message: &Arc<Message>) {
        self.emit(AgentEvent::MessageStart { message: MessageHead::Whole(Arc::clone(message)) });
        self.emit(AgentEvent::MessageEnd { message: Arc::clone(message) });
    }

    async fn request(
        &mut self,
        after: std::time::Duration,
        repair: bool,
    ) -> Result<Answer, (RunFailure, String)> {
        let cancelled = self.cancel.token().clone();
        // A hook may take its time; a cancelled run does not wait for it.
        let prepared = cancelled.run_until_cancelled(self.prepare(repair)).await;
        let prepared = prepared.transpose().map_err(hook_failure)?;
        if let Some(error) = self.turn.superseded.take() {
            self.emit(AgentEvent::Retry {
                run: self.config.run,
                turn: self.machine.turn(),
                attempt: self.turn.attempts,
                after_ms: u64::try_from(after.as_millis()).unwrap_or(u64::MAX),
                kind: error.kind,
                message: error.message,
            });
        }
        self.turn.attempts += 1;
        let mut attempt = Attempt {
            message: self.empty_answer(),
            shown: false,
            begun: false,
            offered: Tools::none(),
        };
        // The timer rounds up to its next millisecond, also from zero, and most requests do not wait.
        let waited = match after.is_zero() {
            true => (!cancelled.is_cancelled()).then_some(()),
            false => cancelled.run_until_cancelled(tokio::time::sleep(after)).await,
        };
        let message = match (prepared, waited) {
            (Some((request, offered)), Some(())) => {
                attempt.offered = offered;
                self.stream(request, &mut attempt).await
            }
            (None, _) | (_, None) => {
                Assembler::new(attempt.message.id.clone(), attempt.message.timestamp).abort()
            }
        };
        attempt.message = self.with_origin(message);
        self.usage = self.usage.plus(attempt.message.usage);
        let answer = Answer {
            stop_reason: attempt.message.stop_reason,
            error: attempt.message.error.as_ref().map(|error| error.kind),
            begun: attempt.begun,
            calls: attempt.message.tool_calls().count(),
            violation: attempt.message.violation.is_some(),
        };
        self.attempt = Some(attempt);
        Ok(answer)
    }

    /// Projection is the last step, after every hook.
    async fn prepare(&mut self, repair: bool) -> Result<(Request, Tools), HookError> {
        let (context, messages) = match &self.config.prepare_context {
            None => (self.context.clone(), self.projector.project(&self.context.messages)),
            Some(hook) => {
                let context = hook.prepare(self.context.clone()).await?;
                let messages = crate::projection::project(&context.messages);
                (context, History::from(messages))
            }
        };
        let mut request = Request::new(self.config.model.id(), messages);
        request.system_prompt = context.system_prompt;
        request.tools = context.tools.specs();
        if repair {
            request.volatile_text = REPAIR_NOTE.into();
        }
        request.max_output_tokens = self.config.max_output_tokens;
        request.temperature = self.config.temperature;
        request.thinking = self.config.thinking;
        Ok((request, context.tools))
    }

    /// Passes on what is new and returns what it came to. The model's stream is gone when this
    /// returns, so it is closed before any tool runs.
    async fn stream(&mut self, request: Request, attempt: &mut Attempt) -> AssistantMessage {
        let id = attempt.message.id.clone();
        let mut assembler =
            Assembler::new(id.clone(), attempt.message.timestamp).asking(&request.model);
        let cancelled = self.cancel.token().clone();
        // A layer may hold the request back, such as one that limits rates.
        let asked = cancelled.run_until_cancelled(self.config.model.ask(request)).await;
        let Some(mut stream) = asked else { return assembler.abort() };
        let mut ended = false;
        // One future for the whole stream: to make one registers it with the token, and there are
        // thousands of events.
        let mut cancelled = std::pin::pin!(cancelled.cancelled());
        loop {
            let event = tokio::select! {
                biased;
                () = &mut cancelled => {
                    // An answer that is complete stays so, whatever its stream does after its end.
                    return if ended { assembler.finish() } else { assembler.abort() };
                }
                event = stream.next() => event,
            };
            let Some(event) = event else { return assembler.finish() };
            assembler.push(&event);
            match event {
                StreamEvent::Retry { attempt, after_ms, kind, message } => {
                    self.emit(AgentEvent::Retry {
                        run: self.config.run,
                        turn: self.machine.turn(),
                        attempt,
                        after_ms,
                        kind,
                        message,
                    });
                }
                StreamEvent::Start { provider, api, model } => {
                    attempt.message.provider = provider;
                    attempt.message.api = api;
                    attempt.message.model = model;
                    self.show_start(attempt);
                }
                // Read to its end, which gives the connection back for the next turn.
                StreamEvent::Done { .. } | StreamEvent::Error { .. } => ended = true,
                // Everything else is content, whatever kinds of blocks there will be.
                _ => {
                    self.show_start(attempt);
                    attempt.begun = true;
                    self.emit(AgentEvent::MessageUpdate { message_id: id.clone(), event });
                }
            }
        }
    }

    fn show_start(&mut self, attempt: &mut Attempt) {
        if attempt.shown {
            return;
        }
        attempt.shown = true;
        let AssistantMessage { id, timestamp, provider, api, model, .. } = &attempt.message;
        self.turn.open_message = Some(id.clone());
        self.emit(AgentEvent::MessageStart {
            message: MessageHead::Assistant {
                id: id.clone(),
                timestamp: *timestamp,
                provider: provider.clone(),
                api: api.clone(),
                model: model.clone(),
            },
        });
    }

    fn empty_answer(&self) -> AssistantMessage {
        let identity = &self.config.identity;
        let message = Assembler::new(identity.message_id(), identity.now()).finish();
        self.with_origin(AssistantMessage { error: None, ..message })
    }

    /// An answer that failed before it began still says who was asked.
    fn with_origin(&self, mut message: AssistantMessage) -> AssistantMessage {
        if message.api.is_empty() {
            let model = &self.config.model;
            message.provider = model.provider().to_owned();
            message.api = model.api().to_owned();
            message.model = model.id().to_owned();
        }
        message
    }

    fn discard(&mut self) {
        self.turn.open_message = None;
        let Some(attempt) = self.attempt.take() else { return };
        if attempt.shown {
            self.emit(AgentEvent::MessageDiscard { message_id: attempt.message.id });
        }
        self.turn.superseded = attempt.message.error;
    }

    async fn ask_request_error(&mut self) -> Result<Mend, (RunFailure, String)> {
        match (&self.config.on_model_error, &self.attempt) {
            (Some(hook), Some(attempt)) => {
                let mend = hook.mend(&attempt.message);
                match self.cancel.token().run_until_cancelled(mend).await {
                    Some(mend) => mend.map_err(hook_failure),
                    None => Ok(Mend::Decline),
                }
            }
            (None, _) | (_, None) => Ok(Mend::Decline),
        }
    }

    fn commit(&mut self) {
        let Some(mut attempt) = self.attempt.take() else { return };
        self.show_start(&mut attempt);
        self.turn.calls = attempt.message.tool_calls().cloned().collect();
        self.turn.offered = attempt.offered;
        self.turn.open_message = None;
        let message = self.append(attempt.message.into());
        self.turn.message = Some(Arc::clone(&message));
        self.emit(AgentEvent::MessageEnd { message });
    }

    async fn run_batch(&mut self) -> Input {
        let calls = self.turn.calls.clone();
        let offered = self.turn.offered.clone();
        let token = self.cancel.token().clone();
        let message_id = match &self.turn.message {
            Some(message) => message.id().clone(),
            None => self.config.identity.message_id(),
        };
        let settings = BatchSettings {
            tools: &offered,
            scheduling: self.config.scheduling,
            grace: self.config.cancel_grace,
            cancel: &token,
            origin: CallOrigin { run: self.config.run, turn: self.machine.turn(), message_id },
        };
        let mut events = DriverBatch(self);
        let outcome = run_batch(&calls, &settings, &mut events).await;
        let host_failed = outcome.fault.is_some();
        if let Some(fault) = outcome.fault {
            self.failure = Some(fault.message);
        }
        Input::BatchDone { terminate: outcome.terminate, host_failed }
    }

    fn refuse_calls(&mut self, refused: Refused) {
        let (kind, text) = match refused {
            Refused::Length => (ToolErrorKind::Failed, CUT_BY_LENGTH),
            Refused::Failed => (ToolErrorKind::Aborted, ANSWER_FAILED),
            Refused::Aborted => (ToolErrorKind::Aborted, NOT_DISPATCHED),
        };
        for call in std::mem::take(&mut self.turn.calls) {
            let result = self.result_message(&call, &ToolOutput::error(kind, text));
            let result = self.append(result);
            self.turn.results.push(result);
        }
        self.show_results();
    }

    fn result_message(&self, call: &ai::ToolCall, output: &ToolOutput) -> Message {
        Message::ToolResult(ToolResultMessage {
            id: self.config.identity.message_id(),
            timestamp: self.config.identity.now(),
            content: output.content.clone(),
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            is_error: output.is_error,
            error_kind: output.error_kind,
        })
    }

    fn announce(&mut self, failure: Failure) {
        let (kind, message) = match failure {
            Failure::Answer => self.answer_failure(),
            Failure::ProtocolViolation => (
                FailureKind::Run(RunFailure::ProtocolViolation),
                "the model wrote its tool calls as text instead of making them, twice".to_owned(),
            ),
            Failure::Host(kind) => (
                FailureKind::Run(kind),
                self.failure.clone().unwrap_or_else(|| {
                    "the run lost its place; this is a defect of the program".to_owned()
                }),
            ),
        };
        self.failure = Some(message.clone());
        self.emit(AgentEvent::Error {
            run: self.config.run,
            turn: self.machine.turn(),
            kind,
            message,
        });
    }

    /// The words of the answer that ends the run; it is committed by now.
    fn answer_failure(&self) -> (FailureKind, String) {
        let (stop_reason, error) = match self.turn.message.as_deref() {
            Some(Message::Assistant(answer)) => (Some(answer.stop_reason), answer.error.as_ref()),
            Some(Message::User(_) | Message::ToolResult(_)) | None => (None, None),
        };
        match (error, stop_reason) {
            (Some(ProviderError { kind, message, .. }), _) => {
                (FailureKind::Provider(*kind), message.clone())
            }
            (None, Some(StopReason::Refusal)) => (
                FailureKind::Provider(ErrorKind::ContentFilter),
                "the model, or a filter before it, refused to answer".to_owned(),
            ),
            (None, Some(StopReason::ContextOverflow)) => (
                FailureKind::Provider(ErrorKind::ContextOverflow),
                "the conversation does not fit the model's context window".to_owned(),
            ),
            (None, _) => (
                FailureKind::Provider(ErrorKind::MalformedStream),
                "the answer failed without saying why".to_owned(),
            ),
        }
    }

    fn commit_iteration_limit(&mut self) {
        let mut message = self.empty_answer();
        message.stop_reason = StopReason::IterationLimit;
        self.append_whole(message.into());
    }

    fn end_turn(&mut self, has_more_tool_calls: bool) {
        let record = std::mem::take(&mut self.turn);
        self.emit(AgentEvent::TurnEnd {
            run: self.config.run,
            turn: self.machine.turn(),
            message: record.message,
            tool_results: record.results,
            has_more_tool_calls,
        });
    }

    fn end_run(&mut self, reason: EndReason) {
        let reason = match reason {
            EndReason::Error { cause, turn, message } if message.is_empty() => {
                EndReason::Error { cause, turn, message: self.failure.take().unwrap_or_default() }
            }
            other => other,
        };
        // There is no next turn for it, and what a tool had to say is not lost with the run.
        for message in std::mem::take(&mut self.tool_context) {
            self.append_whole(message.into());
        }
        let messages = std::mem::take(&mut self.added);
        self.emit(AgentEvent::AgentEnd {
            run: self.config.run,
            messages,
            reason,
            usage: self.usage,
        });
    }

    /// Closes whatever the panic left open, so that every start has its end.
    fn close_after_panic(&mut self, message: String) {
        let turn = self.machine.turn();
        if let Some(message_id) = self.turn.open_message.take() {
            self.emit(AgentEvent::MessageDiscard { message_id });
        }
        let lost = Arc::new(ToolOutput::error(ToolErrorKind::Aborted, crate::outcome::ABANDONED));
        for call in std::mem::take(&mut self.turn.open_calls) {
            self.emit(call_end(&call, &lost));
        }
        let answered = self.turn.results.len();
        for call in std::mem::take(&mut self.turn.calls).into_iter().skip(answered) {
            let result = self.result_message(&call, &lost);
            let result = self.append(result);
            self.turn.results.push(result);
        }
        self.show_results();
        let cause = FailureKind::Run(RunFailure::Panic);
        self.emit(AgentEvent::Error {
            run: self.config.run,
            turn,
            kind: cause,
            message: message.clone(),
        });
        if self.turn.open {
            self.end_turn(false);
        }
        self.end_run(EndReason::Error { cause, message, turn });
    }
}

fn hook_failure(error: HookError) -> (RunFailure, String) {
    (RunFailure::Hook, error.to_string())
}

fn call_end(call: &ai::ToolCall, output: &Arc<ToolOutput>) -> AgentEvent {
    AgentEvent::ToolExecutionEnd {
        tool_call_id: call.id.as_str().into(),
        tool_name: call.name.as_str().into(),
        result: Arc::clone(output),
        is_error: output.is_error,
    }
}

/// A batch writes into the history and tells the watchers through this.
struct DriverBatch<'a>(&'a mut Driver);

impl BatchEvents for DriverBatch<'_> {
    fn call_started(&mut self, call: &ai::ToolCall, title: String) {
        self.0.turn.open_calls.push(call.clone());
        self.0.emit(AgentEvent::ToolExecutionStart {
            tool_call_id: call.id.as_str().into(),
            tool_name: call.name.as_str().into(),
            title,
            args: call.arguments.clone(),
        });
    }

    fn progress(&self, call: &ai::ToolCall) -> Progress {
        let events = self.0.events.clone();
        let tool_call_id: Arc<str> = call.id.as_str().into();
        let tool_name: Arc<str> = call.name.as_str().into();
        Progress::new(move |partial| {
            events.send(AgentEvent::ToolExecutionUpdate {
                tool_call_id: Arc::clone(&tool_call_id),
                tool_name: Arc::clone(&tool_name),
                partial,
            });
        })
    }

    fn call_ended(&mut self, call: &ai::ToolCall, output: &Arc<ToolOutput>) {
        self.0.turn.open_calls.retain(|open| open.id != call.id);
        self.0.emit(call_end(call, output));
    }

    fn commit(&mut self, call: &ai::ToolCall, output: &Arc<ToolOutput>) {
        let result = self.0.result_message(call, output);
        let result = self.0.append(result);
        self.0.turn.results.push(result);
        self.0.tool_context.extend(output.context.iter().cloned());
    }

    fn group_ended(&mut self) {
        self.0.show_results();
    }
}
