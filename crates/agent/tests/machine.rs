//! The machine on its own: rules by table, invariants by property.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use agent::{
    AbortCause, Action, Answer, EndReason, Failure, FailureKind, Input, MAX_MID_ANSWER_RETRIES,
    Machine, MachineLimits, Mend, Queue, RunFailure,
};
use ai::{ErrorKind, StopReason};
use proptest::prelude::*;

fn done() -> Answer {
    Answer { stop_reason: StopReason::Stop, error: None, begun: true, calls: 0, violation: false }
}

fn calls(calls: usize) -> Answer {
    Answer { stop_reason: StopReason::ToolUse, calls, ..done() }
}

fn stopped(stop_reason: StopReason) -> Answer {
    Answer { stop_reason, ..done() }
}

fn failed(kind: ErrorKind) -> Answer {
    Answer { error: Some(kind), ..stopped(StopReason::Error) }
}

fn refused_connection() -> Answer {
    Answer { begun: false, ..failed(ErrorKind::Network) }
}

fn violation() -> Answer {
    Answer { violation: true, ..done() }
}

/// What happens around the machine, in the order in which it asks.
#[derive(Default)]
struct World {
    limits: MachineLimits,
    answers: Vec<Answer>,
    /// How many steering messages wait at each look or claim of that queue; then none.
    steering: Vec<usize>,
    follow_ups: Vec<usize>,
    mends: Vec<Mend>,
    /// Every result of every batch asks for the end.
    terminate: bool,
    /// The run is cancelled just before this action's name comes up.
    cancel_at: Option<&'static str>,
    /// What the host cannot do.
    fail_at: Option<(&'static str, RunFailure)>,
    host_fails: bool,
}

fn first(list: &mut Vec<usize>) -> usize {
    if list.is_empty() { 0 } else { list.remove(0) }
}

fn name(action: &Action) -> String {
    match action {
        Action::StartRun => "run".into(),
        Action::Peek => "peek".into(),
        Action::Claim(Queue::Steering) => "claim".into(),
        Action::Claim(Queue::FollowUp) => "claim-follow-up".into(),
        Action::StartTurn { turn } => format!("turn{turn}"),
        Action::AppendInputs => "append".into(),
        Action::Request { after, repair } => {
            let wait = if *after == Duration::ZERO {
                String::new()
            } else {
                format!("+{}ms", after.as_millis())
            };
            format!("request{}{wait}", if *repair { "!" } else { "" })
        }
        Action::Discard => "discard".into(),
        Action::AskRequestError => "mend?".into(),
        Action::Commit => "commit".into(),
        Action::RunBatch => "batch".into(),
        Action::RefuseCalls(refused) => format!("refuse-{refused:?}").to_lowercase(),
        Action::Fail(Failure::Answer) => "fail".into(),
        Action::Fail(Failure::ProtocolViolation) => "fail-violation".into(),
        Action::Fail(Failure::Host(_)) => "fail-host".into(),
        Action::CommitIterationLimit => "limit".into(),
        Action::EndTurn { has_more_tool_calls: true } => "end+".into(),
        Action::EndTurn { has_more_tool_calls: false } => "end".into(),
        Action::AskStopping => "stopping".into(),
        Action::EndRun(reason) => match reason {
            EndReason::Error { cause, turn, .. } => format!("error({cause}, {turn})"),
            EndReason::Aborted { cause } => format!("aborted({cause:?})").to_lowercase(),
            other => serde_json::to_value(other).unwrap()["kind"].as_str().unwrap().to_owned(),
        },
    }
}

fn run(mut world: World) -> String {
    let mut machine = Machine::new(world.limits);
    let mut input = Input::Begin;
    let mut names = Vec::new();
    let mut peeked_steering = 0;
    let mut peeked_follow_ups = 0;
    loop {
        let action = machine.step(input);
        let name = name(&action);
        names.push(name.clone());
        if world.cancel_at == Some(name.as_str()) {
            machine.cancel(AbortCause::User);
            world.cancel_at = None;
        }
        if let Some((at, failure)) = world.fail_at
            && at == name
        {
            world.fail_at = None;
            input = Input::Failed(failure);
            continue;
        }
        input = match action {
            Action::EndRun(_) => return names.join(" "),
            Action::Peek => {
                if peeked_steering == 0 {
                    peeked_steering = first(&mut world.steering);
                }
                if peeked_follow_ups == 0 {
                    peeked_follow_ups = first(&mut world.follow_ups);
                }
                Input::Waiting { steering: peeked_steering > 0, follow_up: peeked_follow_ups > 0 }
            }
            Action::Claim(Queue::Steering) => {
                let count =
                    if peeked_steering > 0 { peeked_steering } else { first(&mut world.steering) };
                peeked_steering = 0;
                Input::Claimed(count)
            }
            Action::Claim(Queue::FollowUp) => {
                Input::Claimed(std::mem::take(&mut peeked_follow_ups))
            }
            Action::Request { .. } => Input::Answered(world.answers.remove(0)),
            Action::AskRequestError => Input::Mended(if world.mends.is_empty() {
                Mend::Decline
            } else {
                world.mends.remove(0)
            }),
            Action::RunBatch => {
                Input::BatchDone { terminate: world.terminate, host_failed: world.host_fails }
            }
            _ => Input::Done,
        };
    }
}

#[track_caller]
fn check(world: World, expected: &str) {
    let expected = expected.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(run(world), expected);
}

/// SPEC L1, L2
#[test]
fn tools_then_an_answer() {
    check(
        World { answers: vec![calls(2), calls(1), done()], ..World::default() },
        "run claim turn1 append request commit batch end+
         claim turn2 append request commit batch end+
         claim turn3 append request commit end peek stopping peek completed",
    );
}

/// SPEC L6
#[test]
fn steering_goes_on_when_the_model_was_done_and_follow_ups_come_last() {
    check(
        World {
            answers: vec![done(), done(), done()],
            // Nothing at the first claim; one when the model was done.
            steering: vec![0, 1],
            follow_ups: vec![1],
            ..World::default()
        },
        "run claim turn1 append request commit end
         peek claim turn2 append request commit end
         peek claim-follow-up turn3 append request commit end
         peek stopping peek completed",
    );
}

/// SPEC Q7
#[test]
fn steering_added_while_the_run_stops_is_heard() {
    check(
        World { answers: vec![done(), done()], steering: vec![0, 0, 1], ..World::default() },
        "run claim turn1 append request commit end peek stopping
         peek claim turn2 append request commit end peek stopping peek completed",
    );
}

/// SPEC L7
#[test]
fn the_limit_is_looked_at_before_input_is_taken() {
    let limits = MachineLimits { max_turns: Some(2), ..MachineLimits::default() };
    check(
        World {
            limits,
            answers: vec![calls(1), calls(1)],
            steering: vec![0, 0, 1],
            ..World::default()
        },
        "run claim turn1 append request commit batch end+
         claim turn2 append request commit batch end+ limit iteration_limit",
    );
    check(
        World { limits, answers: vec![calls(1), done()], ..World::default() },
        "run claim turn1 append request commit batch end+
         claim turn2 append request commit end peek completed",
    );
    check(
        World { limits, answers: vec![calls(1), done()], follow_ups: vec![1], ..World::default() },
        "run claim turn1 append request commit batch end+
         claim turn2 append request commit end peek limit iteration_limit",
    );
}

/// SPEC L8, Q6
#[test]
fn failures_are_recorded_and_end_the_run() {
    check(
        World { answers: vec![failed(ErrorKind::Auth)], ..World::default() },
        "run claim turn1 append request mend? commit fail end error(auth, 1)",
    );
    check(
        World {
            answers: vec![Answer { calls: 2, ..failed(ErrorKind::InvalidRequest) }],
            ..World::default()
        },
        "run claim turn1 append request mend? commit refuse-failed fail end error(invalid_request, 1)",
    );
    check(
        World { answers: vec![stopped(StopReason::Refusal)], ..World::default() },
        "run claim turn1 append request mend? commit fail end refusal",
    );
    check(
        World { answers: vec![stopped(StopReason::ContextOverflow)], ..World::default() },
        "run claim turn1 append request mend? commit fail end context_overflow",
    );
    check(
        World { answers: vec![failed(ErrorKind::ContextOverflow)], ..World::default() },
        "run claim turn1 append request mend? commit fail end context_overflow",
    );
}

/// SPEC L8, Q6
#[test]
fn the_output_cap_marks_the_run_and_delivers_results() {
    check(
        World {
            answers: vec![Answer { calls: 2, ..stopped(StopReason::Length) }, done()],
            ..World::default()
        },
        "run claim turn1 append request commit refuse-length end+
         claim turn2 append request commit end peek stopping peek max_tokens",
    );
    check(
        World {
            answers: vec![stopped(StopReason::Length), done()],
            steering: vec![0, 1],
            ..World::default()
        },
        "run claim turn1 append request commit end
         peek claim turn2 append request commit end peek stopping peek max_tokens",
    );
}

/// SPEC L10
#[test]
fn a_violation_is_repaired_once() {
    check(
        World { answers: vec![violation(), calls(1), done()], ..World::default() },
        "run claim turn1 append request discard request! commit batch end+
         claim turn2 append request commit end peek stopping peek completed",
    );
    check(
        World { answers: vec![violation(), violation()], ..World::default() },
        "run claim turn1 append request discard request! discard fail-violation end
         error(protocol_violation, 1)",
    );
}

/// SPEC Q11
#[test]
fn an_answer_that_breaks_off_is_asked_for_again() {
    let broken = || failed(ErrorKind::TruncatedStream);
    check(
        World { answers: vec![broken(), broken(), done()], ..World::default() },
        "run claim turn1 append request discard request+500ms discard request+1000ms commit end
         peek stopping peek completed",
    );
    check(
        World {
            answers: (0..=MAX_MID_ANSWER_RETRIES).map(|_| broken()).collect(),
            ..World::default()
        },
        "run claim turn1 append request discard request+500ms discard request+1000ms
         discard request+2000ms mend? commit fail end error(truncated_stream, 1)",
    );
    check(
        World {
            limits: MachineLimits { mid_answer_retries: 0, ..MachineLimits::default() },
            answers: vec![broken()],
            ..World::default()
        },
        "run claim turn1 append request mend? commit fail end error(truncated_stream, 1)",
    );
    // One that never began was tried again where the connection is made.
    check(
        World { answers: vec![refused_connection()], ..World::default() },
        "run claim turn1 append request mend? commit fail end error(network, 1)",
    );
    // The hook decides about the rest.
    check(
        World {
            answers: vec![stopped(StopReason::ContextOverflow), done()],
            mends: vec![Mend::Retry],
            ..World::default()
        },
        "run claim turn1 append request mend? discard request commit end peek stopping peek completed",
    );
}

/// SPEC L11, T4
#[test]
fn cancel_ends_the_run_at_the_next_boundary() {
    let cancelled_at = |at, answers| World { cancel_at: Some(at), answers, ..World::default() };
    check(
        cancelled_at("request", vec![stopped(StopReason::Aborted)]),
        "run claim turn1 append request commit end aborted(user)",
    );
    check(
        cancelled_at("request", vec![calls(2)]),
        "run claim turn1 append request commit refuse-aborted end aborted(user)",
    );
    check(
        cancelled_at("commit", vec![calls(2)]),
        "run claim turn1 append request commit refuse-aborted end aborted(user)",
    );
    check(
        cancelled_at("batch", vec![calls(2)]),
        "run claim turn1 append request commit batch end aborted(user)",
    );
    check(cancelled_at("run", vec![]), "run aborted(user)");
}

/// SPEC L13
#[test]
fn terminate_ends_the_run() {
    check(
        World { answers: vec![calls(1)], terminate: true, ..World::default() },
        "run claim turn1 append request commit batch end peek stopping peek completed",
    );
}

/// SPEC T5, L2
#[test]
fn a_failure_of_the_host_closes_the_turn_and_the_run() {
    check(
        World { answers: vec![calls(1)], host_fails: true, ..World::default() },
        "run claim turn1 append request commit batch fail-host end error(host, 1)",
    );
    check(
        World { fail_at: Some(("append", RunFailure::Log)), ..World::default() },
        "run claim turn1 append fail-host end error(log, 1)",
    );
    check(
        World { fail_at: Some(("run", RunFailure::Log)), ..World::default() },
        "run fail-host error(log, 0)",
    );
}

/// An input that answers another action is a defect; the run is still closed.
#[test]
fn a_driver_that_loses_its_place_ends_the_run() {
    let mut machine = Machine::new(MachineLimits::default());
    assert_eq!(machine.step(Input::Begin), Action::StartRun);
    assert_eq!(machine.step(Input::Claimed(1)), Action::Fail(Failure::Host(RunFailure::Host)));
    let reason = EndReason::Error {
        cause: FailureKind::Run(RunFailure::Host),
        message: String::new(),
        turn: 0,
    };
    assert_eq!(machine.step(Input::Done), Action::EndRun(reason));
}

/// A source that says that something waits and never gives it does not keep the run from its end.
#[test]
fn a_source_that_errs_does_not_spin_the_run() {
    let mut machine = Machine::new(MachineLimits::default());
    let mut input = Input::Begin;
    let mut names = Vec::new();
    loop {
        let action = machine.step(input);
        names.push(name(&action));
        assert!(names.len() < 100, "{names:?}");
        input = match action {
            Action::EndRun(_) => break,
            Action::Peek => Input::Waiting { steering: true, follow_up: true },
            Action::Claim(_) => Input::Claimed(0),
            Action::Request { .. } => Input::Answered(done()),
            _ => Input::Done,
        };
    }
    assert_eq!(
        names.join(" "),
        "run claim turn1 append request commit end peek claim peek claim-follow-up peek stopping \
         peek completed"
    );
}

fn any_answer() -> impl Strategy<Value = Answer> {
    let stop_reason = prop_oneof![
        4 => Just(StopReason::Stop),
        4 => Just(StopReason::ToolUse),
        1 => Just(StopReason::Length),
        1 => Just(StopReason::Refusal),
        1 => Just(StopReason::ContextOverflow),
        2 => Just(StopReason::Error),
        1 => Just(StopReason::Aborted),
    ];
    let error = prop_oneof![
        Just(ErrorKind::Network),
        Just(ErrorKind::Auth),
        Just(ErrorKind::ContextOverflow),
        Just(ErrorKind::Server),
    ];
    (stop_reason, error, any::<bool>(), 0..4_usize, any::<bool>()).prop_map(
        |(stop_reason, error, begun, calls, violation)| Answer {
            stop_reason,
            error: (stop_reason == StopReason::Error).then_some(error),
            begun,
            calls,
            violation,
        },
    )
}

proptest! {
    /// SPEC L2, L7, L8, L13, T4: whatever happens around it, a run is one bracket of turns, its
    /// calls are answered exactly once, and nothing is asked of the model after the end.
    #[test]
    fn every_run_is_well_formed(
        answers in prop::collection::vec(any_answer(), 0..12),
        max_turns in prop::option::of(1..6_u32),
        waits in prop::collection::vec((any::<bool>(), any::<bool>()), 0..12),
        mends in prop::collection::vec(any::<bool>(), 0..6),
        cancel_at in prop::option::of(0..60_usize),
        terminate in any::<bool>(),
    ) {
        let mut machine = Machine::new(MachineLimits { max_turns, ..MachineLimits::default() });
        let (mut answers, mut waits, mut mends) =
            (answers.into_iter(), waits.into_iter(), mends.into_iter());
        let mut input = Input::Begin;
        let (mut turns, mut open, mut steps) = (0, false, 0);
        let mut pending: Option<Answer> = None;
        let mut unanswered = 0;
        let mut cancelled = false;
        loop {
            let action = machine.step(input);
            steps += 1;
            prop_assert!(steps < 1_000, "the run does not end");
            input = match action {
                Action::EndRun(_) => {
                    prop_assert!(!open && unanswered == 0);
                    break;
                }
                Action::StartTurn { turn } => {
                    prop_assert!(!open && unanswered == 0);
                    turns += 1;
                    open = true;
                    prop_assert_eq!(turn, turns);
                    prop_assert!(max_turns.is_none_or(|limit| turn <= limit));
                    Input::Done
                }
                Action::EndTurn { .. } => {
                    prop_assert!(open && unanswered == 0);
                    open = false;
                    Input::Done
                }
                Action::Request { .. } => {
                    prop_assert!(open && unanswered == 0);
                    let answer = answers.next().unwrap_or_else(done);
                    pending = Some(answer.clone());
                    Input::Answered(answer)
                }
                Action::Discard => {
                    pending = None;
                    Input::Done
                }
                Action::Commit => {
                    let answer = pending.take();
                    prop_assert!(answer.is_some());
                    unanswered = answer.as_ref().map_or(0, |answer| answer.calls);
                    prop_assert!(!answer.is_some_and(|answer| answer.violation && answer.calls == 0
                        && !cancelled && answer.stop_reason != StopReason::Aborted));
                    Input::Done
                }
                Action::RunBatch => {
                    prop_assert!(unanswered > 0 && !cancelled);
                    unanswered = 0;
                    Input::BatchDone { terminate, host_failed: false }
                }
                Action::RefuseCalls(_) => {
                    prop_assert!(unanswered > 0);
                    unanswered = 0;
                    Input::Done
                }
                Action::Peek => {
                    let (steering, follow_up) = waits.next().unwrap_or((false, false));
                    Input::Waiting { steering, follow_up }
                }
                Action::Claim(_) => {
                    prop_assert!(!cancelled);
                    Input::Claimed(1)
                }
                Action::AskRequestError => Input::Mended(
                    if mends.next().unwrap_or(false) { Mend::Retry } else { Mend::Decline },
                ),
                Action::StartRun
                | Action::AppendInputs
                | Action::Fail(_)
                | Action::CommitIterationLimit
                | Action::AskStopping => Input::Done,
            };
            if cancel_at == Some(steps) {
                machine.cancel(AbortCause::User);
                cancelled = true;
            }
        }
    }
}
