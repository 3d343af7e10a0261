//! What a request is built from: isolation, hooks, input, the limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agent::{
    AgentContext, ClaimSize, EndReason, ExecutionMode, HookError, InputQueue, MachineLimits,
    ToolOutput, agent_loop,
};
use ai::{
    ErrorKind, History, Message, MessageId, Origin, ProviderError, StopReason, StreamEvent,
    ToolErrorKind, UserMessage,
};

use crate::lines::*;
use crate::script::*;

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
async fn the_iteration_limit_ends_the_run_with_an_empty_message() {
    let script = Script::new([makes(&[("a", "Read", r#"{"path":"x"}"#)])]);
    let mut config = config(&script);
    config.limits = MachineLimits { max_turns: Some(1), ..MachineLimits::default() };
    let outcome = agent_loop(prompt("go"), context([read()]), config).result().await;
    assert_eq!(outcome.reason, EndReason::IterationLimit);
    let Message::Assistant(last) = &**outcome.messages.last().unwrap() else { panic!() };
    assert_eq!((last.stop_reason, last.content.len()), (StopReason::IterationLimit, 0));
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
    config.limits = MachineLimits { max_turns: Some(1), ..MachineLimits::default() };
    config.steering = Some(Arc::new(steering.clone()));
    let outcome = agent_loop(prompt("go"), context([steers]), config).result().await;
    assert_eq!(outcome.reason, EndReason::IterationLimit);
    assert_eq!(steering.claim().len(), 1);
}

/// SPEC T6: what a tool says besides its result is not lost where no turn comes any more.
#[tokio::test]
async fn additional_context_survives_the_end_of_the_run() {
    let ends = tool("Ends", ExecutionMode::Parallel, |_, _| async {
        let note = UserMessage::text("by the way", Origin::Tool);
        Ok(ToolOutput { terminate: true, context: vec![note], ..ToolOutput::text("ok") })
    });
    let script = Script::new([makes(&[("a", "Ends", r#"{"path":"1"}"#)])]);
    let outcome = agent_loop(prompt("go"), context([ends]), config(&script)).result().await;
    let texts: Vec<String> = outcome.messages.iter().map(|message| text(message)).collect();
    assert_eq!(texts, ["go", "", "ok", "by the way"]);
}
