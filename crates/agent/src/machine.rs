//! The machine: every rule about what happens next in a run, and nothing else.
//!
//! [`Machine::step`] takes what the last action came to and answers with the next action. There is
//! no clock here, no I/O, no async and no message: the driver holds those and tells the machine only
//! what a decision needs. So the rules are tested without a model, a tool or a wait.
//!
//! ```text
//! start ─ StartRun ─► boundary ◄───────────────────────────────────────────────┐
//!                        │ must go on, or steering or a follow-up waits        │
//!                        ▼                                                     │
//!                      Claim ─► StartTurn ─► AppendInputs ─► Request ◄──┐      │
//!                        │                                      │       │      │
//!                        │ nothing waits                        ▼       │      │
//!                        ▼                                   answered   │      │
//!                   AskStopping ─► boundary                     │ mend: Discard│
//!                        │ nothing waits still                  ▼              │
//!                        ▼                    Commit ─► RunBatch / RefuseCalls │
//!                     EndRun ◄──── Fail ◄────────┴───────► EndTurn ────────────┘
//! ```
//!
//! **Invariant:** every `StartTurn` is followed by one `EndTurn`, and the last action of every run is
//! one `EndRun`.

use std::time::Duration;

use ai::{ErrorKind, StopReason};

use crate::end_reason::{AbortCause, EndReason, FailureKind, RunFailure};

/// How often one turn's answer is asked for again after it broke off in the middle, unless configured
/// otherwise (SPEC Q11).
pub const MAX_MID_ANSWER_RETRIES: u32 = 3;

/// How often hooks together may have one turn's answer asked for again: a hook that always says
/// "again" would otherwise never end the turn.
pub const MAX_HOOK_RETRIES: u32 = 10;

/// The wait before the first repetition of a broken answer; doubled for each further one.
const MID_ANSWER_BACK_OFF: Duration = Duration::from_millis(500);

/// What a run may do at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineLimits {
    /// Turns of the whole run; `None` for no limit.
    pub max_turns: Option<u32>,
    /// How often one turn's answer is asked for again after it broke off in the middle.
    pub mid_answer_retries: u32,
}

impl Default for MachineLimits {
    fn default() -> Self {
        Self { max_turns: None, mid_answer_retries: MAX_MID_ANSWER_RETRIES }
    }
}

/// What the driver is to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Record that the run begins. Answer: [`Input::Done`].
    StartRun,
    /// Look whether input waits, without taking it. Answer: [`Input::Waiting`].
    Peek,
    /// Take input in hand: at the first turn the prompts with the steering, later one kind only.
    /// Answer: [`Input::Claimed`].
    Claim(Queue),
    /// Record that a turn begins. Answer: [`Input::Done`].
    StartTurn {
        /// The turn, from 1.
        turn: u32,
    },
    /// Append what was claimed to the history. Answer: [`Input::Done`].
    AppendInputs,
    /// Ask the model, after a wait. Answer: [`Input::Answered`].
    Request {
        /// How long to wait before, cancellably.
        after: Duration,
        /// Whether the model is told to make its calls properly (SPEC L10).
        repair: bool,
    },
    /// Take the last attempt off the screen; it does not become part of the history. Answer:
    /// [`Input::Done`].
    Discard,
    /// Ask the hooks whether they can mend the last attempt's failure. Answer: [`Input::Mended`].
    AskRequestError,
    /// Append the answer to the history. Answer: [`Input::Done`].
    Commit,
    /// Run the answer's calls. Answer: [`Input::BatchDone`].
    RunBatch,
    /// Give each of the answer's calls an error result without running it. Answer:
    /// [`Input::Done`].
    RefuseCalls(Refused),
    /// Announce the failure that will end the run. Answer: [`Input::Done`].
    Fail(Failure),
    /// Append the empty message that says that the limit was reached. Answer: [`Input::Done`].
    CommitIterationLimit,
    /// Record that the turn is over. Answer: [`Input::Done`].
    EndTurn {
        /// Whether the model is asked again because of its calls.
        has_more_tool_calls: bool,
    },
    /// Tell all hooks that the run is about to end. Answer: [`Input::Done`].
    AskStopping,
    /// Record that the run is over. There is no answer: the machine is finished.
    EndRun(EndReason),
}

/// A queue that input waits in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// For the next turn of this run.
    Steering,
    /// For when the run would otherwise end.
    FollowUp,
}

/// Why calls are not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The answer was cut by the cap on output tokens.
    Length,
    /// The answer failed or was refused.
    Failed,
    /// The run was cancelled.
    Aborted,
}

/// A failure that ends the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The last attempt's own error.
    Answer,
    /// The model wrote its calls as text, twice.
    ProtocolViolation,
    /// A fault of the host, whose words the driver holds.
    Host(RunFailure),
}

/// What an action came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The machine is to begin.
    Begin,
    /// It was done.
    Done,
    /// What waits.
    Waiting {
        /// Input for the next turn of this run.
        steering: bool,
        /// Input for when the run would otherwise end.
        follow_up: bool,
    },
    /// So many messages were taken in hand.
    Claimed(usize),
    /// The attempt is over.
    Answered(Answer),
    /// What the hooks say.
    Mended(Mend),
    /// The batch is over; every call has its result.
    BatchDone {
        /// Every result asked for the run's end.
        terminate: bool,
        /// The host failed in the middle.
        host_failed: bool,
    },
    /// The action could not be done because this side failed.
    Failed(RunFailure),
}

/// What a decision needs to know of an attempt's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Why it ended.
    pub stop_reason: StopReason,
    /// With which error, if it failed.
    pub error: Option<ErrorKind>,
    /// Something of it came before it ended.
    pub begun: bool,
    /// How many complete calls it holds.
    pub calls: usize,
    /// Calls were written as text.
    pub violation: bool,
}

/// What hooks say of a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mend {
    /// Nothing can be done.
    Decline,
    /// Ask again.
    Retry,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Machine {
    limits: MachineLimits,
    state: State,
    turn: u32,
    attempt: Attempts,
    turn_open: bool,
    cancelled: Option<AbortCause>,
    /// An answer of this run hit the output cap. It marks the run's reason for good.
    max_tokens: bool,
    /// Hooks heard that the run is about to end, and no turn began since.
    stopping_asked: bool,
    /// Queues that said that something waits and then gave nothing, since the last turn. They are not
    /// believed again before the next: a source that errs for ever must not spin the run.
    gave_nothing: [bool; 2],
}

/// What was tried in this turn.
#[derive(Clone, Copy, Debug, Default)]
struct Attempts {
    mid_answer_retries: u32,
    hook_retries: u32,
    repaired: bool,
}

/// What the machine waits to hear of.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Start,
    StartingRun,
    /// Nothing obliges the run to go on: it does if something waits.
    Peeking,
    /// The limit is reached and the model was done: does input wait that it keeps from being heard?
    PeekingAtLimit,
    Claiming {
        queue: Queue,
        must_go_on: bool,
    },
    StartingTurn,
    Appending,
    Requesting,
    /// A superseded attempt is being taken away; then the model is asked again.
    Discarding {
        after: Duration,
        repair: bool,
    },
    Mending(Answer),
    /// The answer is being appended; then its calls are dealt with.
    Committing(Next),
    RunningBatch,
    RefusingCalls {
        then: Ending,
    },
    DiscardingViolation,
    Failing(EndReason),
    EndingTurn {
        then: Ending,
    },
    CommittingLimit,
    Stopping,
    Ended,
}

/// What follows a committed answer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Next {
    Batch,
    Refuse(Refused, Ending),
    End(Ending),
}

/// What follows a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Ending {
    /// The model must see its results.
    GoOn,
    /// The model was done.
    Done,
    /// The run ends, after the failure was announced if there is one.
    Stop { failure: Option<Failure>, reason: EndReason },
}

impl Machine {
    /// A machine for one run.
    pub fn new(limits: MachineLimits) -> Self {
        Self {
            limits,
            state: State::Start,
            turn: 0,
            turn_open: false,
            attempt: Attempts::default(),
            cancelled: None,
            max_tokens: false,
            stopping_asked: false,
            gave_nothing: [false; 2],
        }
    }

    /// The turn that is going on or was the last one; 0 before the first.
    pub fn turn(&self) -> u32 {
        self.turn
    }

    /// Notes that the run is cancelled. The first cause wins. The action at hand ends early in its
    /// own way; the machine goes to the end from there.
    pub fn cancel(&mut self, cause: AbortCause) {
        self.cancelled.get_or_insert(cause);
    }

    /// The next action after `input`.
    ///
    /// An input that does not answer the last action is a defect of the driver: the run ends with a
    /// host failure instead of going on with a wrong idea of where it is.
    pub fn step(&mut self, input: Input) -> Action {
        let state = std::mem::replace(&mut self.state, State::Ended);
        if let Input::Failed(failure) = input {
            return match state {
                // Watchers may have seen the answer begin, so it is recorded like any failed one.
                State::Mending(answer) => self.stop_on(&answer, Some(Failure::Host(failure))),
                _ => self.fail(Failure::Host(failure)),
            };
        }
        let done = input == Input::Done;
        match state {
            State::Start if input == Input::Begin => self.go(State::StartingRun, Action::StartRun),
            State::StartingRun if done => self.boundary(true),
            State::Peeking => match input {
                Input::Waiting { steering, follow_up } => self.waiting(steering, follow_up),
                _ => self.unexpected(),
            },
            State::PeekingAtLimit => match input {
                Input::Waiting { steering: false, follow_up: false } => self.finish(),
                Input::Waiting { .. } => {
                    self.go(State::CommittingLimit, Action::CommitIterationLimit)
                }
                _ => self.unexpected(),
            },
            State::Claiming { queue, must_go_on } => match input {
                Input::Claimed(count) => self.claimed(count, queue, must_go_on),
                _ => self.unexpected(),
            },
            State::StartingTurn if done => {
                self.turn_open = true;
                self.go(State::Appending, Action::AppendInputs)
            }
            State::Appending if done => self.request(Duration::ZERO, false),
            State::Requesting => match input {
                Input::Answered(answer) => self.answered(answer),
                _ => self.unexpected(),
            },
            State::Discarding { after, repair } if done => self.request(after, repair),
            State::Mending(answer) => match input {
                Input::Mended(mend) => self.mended(&answer, mend),
                _ => self.unexpected(),
            },
            State::Committing(next) if done => self.committed(next),
            State::RunningBatch => match input {
                Input::BatchDone { terminate, host_failed } => {
                    self.batch_done(terminate, host_failed)
                }
                _ => self.unexpected(),
            },
            State::RefusingCalls { then } if done => self.turn_over(then),
            State::DiscardingViolation if done => self.fail(Failure::ProtocolViolation),
            State::Failing(reason) if done => self.failed(reason),
            State::EndingTurn { then } if done => {
                self.turn_open = false;
                self.turn_ended(then)
            }
            State::CommittingLimit if done => self.end(EndReason::IterationLimit),
            State::Stopping if done => self.go(State::Peeking, Action::Peek),
            State::Start
            | State::StartingRun
            | State::StartingTurn
            | State::Appending
            | State::Discarding { .. }
            | State::Committing(_)
            | State::RefusingCalls { .. }
            | State::DiscardingViolation
            | State::Failing(_)
            | State::EndingTurn { .. }
            | State::CommittingLimit
            | State::Stopping
            | State::Ended => self.unexpected(),
        }
    }

    /// A run whose driver lost its place cannot go on; the machine still closes it.
    fn unexpected(&mut self) -> Action {
        self.fail(Failure::Host(RunFailure::Host))
    }

    fn go(&mut self, state: State, action: Action) -> Action {
        self.state = state;
        action
    }

    fn end(&mut self, reason: EndReason) -> Action {
        self.go(State::Ended, Action::EndRun(reason))
    }

    /// Ends a run in which nothing went wrong.
    fn finish(&mut self) -> Action {
        self.end(if self.max_tokens { EndReason::MaxTokens } else { EndReason::Completed })
    }

    /// Announces a failure of this side and ends the run, in whatever state it is.
    fn fail(&mut self, failure: Failure) -> Action {
        let cause = FailureKind::Run(match failure {
            Failure::Answer | Failure::Host(RunFailure::Host) => RunFailure::Host,
            Failure::ProtocolViolation => RunFailure::ProtocolViolation,
            Failure::Host(failure) => failure,
        });
        self.go(State::Failing(self.error(cause)), Action::Fail(failure))
    }

    fn failed(&mut self, reason: EndReason) -> Action {
        if self.turn_open {
            let then = Ending::Stop { failure: None, reason };
            self.go(State::EndingTurn { then }, Action::EndTurn { has_more_tool_calls: false })
        } else {
            self.end(reason)
        }
    }

    fn aborted(cause: AbortCause) -> Ending {
        Ending::Stop { failure: None, reason: EndReason::Aborted { cause } }
    }

    /// Between two turns. Cancellation and the limit are looked at before input is taken, so that
    /// no input is lost to either.
    fn boundary(&mut self, must_go_on: bool) -> Action {
        if let Some(cause) = self.cancelled {
            return self.end(EndReason::Aborted { cause });
        }
        let at_limit = self.limits.max_turns.is_some_and(|limit| self.turn >= limit);
        match (must_go_on, at_limit) {
            (true, false) => self.claim(Queue::Steering, true),
            (true, true) => self.go(State::CommittingLimit, Action::CommitIterationLimit),
            (false, false) => self.go(State::Peeking, Action::Peek),
            (false, true) => self.go(State::PeekingAtLimit, Action::Peek),
        }
    }

    fn waiting(&mut self, steering: bool, follow_up: bool) -> Action {
        if let Some(cause) = self.cancelled {
            return self.end(EndReason::Aborted { cause });
        }
        let [no_steering, no_follow_up] = self.gave_nothing;
        if steering && !no_steering {
            self.claim(Queue::Steering, false)
        } else if follow_up && !no_follow_up {
            self.claim(Queue::FollowUp, false)
        } else if self.stopping_asked {
            self.finish()
        } else {
            self.stopping_asked = true;
            self.go(State::Stopping, Action::AskStopping)
        }
    }

    fn claim(&mut self, queue: Queue, must_go_on: bool) -> Action {
        self.go(State::Claiming { queue, must_go_on }, Action::Claim(queue))
    }

    /// What waited may have been taken back in between; then there is nothing to ask the model,
    /// unless the run must go on anyway.
    fn claimed(&mut self, count: usize, queue: Queue, must_go_on: bool) -> Action {
        if count == 0 && !must_go_on {
            let [steering, follow_up] = &mut self.gave_nothing;
            match queue {
                Queue::Steering => *steering = true,
                Queue::FollowUp => *follow_up = true,
            }
            return self.go(State::Peeking, Action::Peek);
        }
        self.turn += 1;
        self.attempt = Attempts::default();
        self.stopping_asked = false;
        self.gave_nothing = [false; 2];
        self.go(State::StartingTurn, Action::StartTurn { turn: self.turn })
    }

    fn request(&mut self, after: Duration, repair: bool) -> Action {
        self.go(State::Requesting, Action::Request { after, repair })
    }

    fn answered(&mut self, answer: Answer) -> Action {
        if self.cancelled.is_some() || answer.stop_reason == StopReason::Aborted {
            return self.stop_on(&answer, None);
        }
        if answer.violation && answer.calls == 0 {
            return if self.attempt.repaired {
                self.go(State::DiscardingViolation, Action::Discard)
            } else {
                self.attempt.repaired = true;
                self.go(State::Discarding { after: Duration::ZERO, repair: true }, Action::Discard)
            };
        }
        match answer.stop_reason {
            StopReason::Stop | StopReason::ToolUse => {
                let next = if answer.calls > 0 { Next::Batch } else { Next::End(Ending::Done) };
                self.go(State::Committing(next), Action::Commit)
            }
            StopReason::Length => {
                self.max_tokens = true;
                let next = if answer.calls > 0 {
                    Next::Refuse(Refused::Length, Ending::GoOn)
                } else {
                    Next::End(Ending::Done)
                };
                self.go(State::Committing(next), Action::Commit)
            }
            StopReason::Error if self.may_ask_again(&answer) => {
                let after = MID_ANSWER_BACK_OFF * 2_u32.pow(self.attempt.mid_answer_retries);
                self.attempt.mid_answer_retries += 1;
                let repair = self.attempt.repaired;
                self.go(State::Discarding { after, repair }, Action::Discard)
            }
            StopReason::Error
            | StopReason::Refusal
            | StopReason::ContextOverflow
            | StopReason::IterationLimit
            | StopReason::Aborted => self.go(State::Mending(answer), Action::AskRequestError),
        }
    }

    /// An answer that broke off in the middle is asked for again: none of its calls has run. One
    /// that never began was already tried again where the connection was made.
    fn may_ask_again(&self, answer: &Answer) -> bool {
        let Some(kind) = answer.error else { return false };
        let breaks_off = matches!(
            kind,
            ErrorKind::Network
                | ErrorKind::TruncatedStream
                | ErrorKind::Timeout
                | ErrorKind::Overloaded
                | ErrorKind::Server
        );
        answer.begun
            && breaks_off
            && self.attempt.mid_answer_retries < self.limits.mid_answer_retries
    }

    fn mended(&mut self, answer: &Answer, mend: Mend) -> Action {
        match mend {
            Mend::Retry
                if self.cancelled.is_none() && self.attempt.hook_retries < MAX_HOOK_RETRIES =>
            {
                self.attempt.hook_retries += 1;
                let repair = self.attempt.repaired;
                self.go(State::Discarding { after: Duration::ZERO, repair }, Action::Discard)
            }
            Mend::Retry | Mend::Decline => self.stop_on(answer, Some(Failure::Answer)),
        }
    }

    /// The answer is recorded, its calls are refused, and the run ends.
    fn stop_on(&mut self, answer: &Answer, failure: Option<Failure>) -> Action {
        let (refused, ending) = match (self.cancelled, failure) {
            (Some(cause), _) => (Refused::Aborted, Self::aborted(cause)),
            (None, Some(Failure::Host(cause))) => {
                let reason = self.error(FailureKind::Run(cause));
                (Refused::Failed, Ending::Stop { failure, reason })
            }
            (None, Some(Failure::Answer | Failure::ProtocolViolation) | None) => {
                (Refused::Failed, Ending::Stop { failure, reason: self.reason_for(answer) })
            }
        };
        let next = if answer.calls > 0 { Next::Refuse(refused, ending) } else { Next::End(ending) };
        self.go(State::Committing(next), Action::Commit)
    }

    /// The driver fills in the words: the machine has none.
    fn error(&self, cause: FailureKind) -> EndReason {
        EndReason::Error { cause, message: String::new(), turn: self.turn }
    }

    fn reason_for(&self, answer: &Answer) -> EndReason {
        match (answer.stop_reason, answer.error) {
            (StopReason::ContextOverflow, _) | (_, Some(ErrorKind::ContextOverflow)) => {
                EndReason::ContextOverflow
            }
            (StopReason::Refusal, _) | (_, Some(ErrorKind::ContentFilter)) => EndReason::Refusal,
            (_, Some(ErrorKind::Aborted)) => EndReason::Aborted { cause: AbortCause::Host },
            (_, kind) => {
                self.error(FailureKind::Provider(kind.unwrap_or(ErrorKind::MalformedStream)))
            }
        }
    }

    fn committed(&mut self, next: Next) -> Action {
        match (next, self.cancelled) {
            (Next::Batch, None) => self.go(State::RunningBatch, Action::RunBatch),
            (Next::Batch, Some(cause)) => {
                let then = Self::aborted(cause);
                self.go(State::RefusingCalls { then }, Action::RefuseCalls(Refused::Aborted))
            }
            (Next::Refuse(refused, then), _) => {
                self.go(State::RefusingCalls { then }, Action::RefuseCalls(refused))
            }
            (Next::End(ending), _) => self.turn_over(ending),
        }
    }

    fn batch_done(&mut self, terminate: bool, host_failed: bool) -> Action {
        if host_failed {
            return self.fail(Failure::Host(RunFailure::Host));
        }
        self.turn_over(match self.cancelled {
            Some(cause) => Self::aborted(cause),
            None if terminate => Ending::Done,
            None => Ending::GoOn,
        })
    }

    fn turn_over(&mut self, then: Ending) -> Action {
        match then {
            Ending::Stop { failure: Some(failure), reason } => {
                self.go(State::Failing(reason), Action::Fail(failure))
            }
            Ending::Stop { failure: None, .. } | Ending::Done => {
                self.go(State::EndingTurn { then }, Action::EndTurn { has_more_tool_calls: false })
            }
            Ending::GoOn => {
                self.go(State::EndingTurn { then }, Action::EndTurn { has_more_tool_calls: true })
            }
        }
    }

    fn turn_ended(&mut self, then: Ending) -> Action {
        match then {
            Ending::GoOn => self.boundary(true),
            Ending::Done => self.boundary(false),
            Ending::Stop { reason, .. } => self.end(reason),
        }
    }
}
