//! Projection: whatever a history looks like, what is sent is in order.

use std::collections::HashSet;
use std::sync::Arc;

use agent::{MISSING_RESULT, project};
use ai::{
    Assembler, AssistantMessage, ContentBlock, Message, MessageId, Origin, Timestamp, ToolCall,
    ToolResultMessage, UserMessage,
};
use proptest::prelude::*;

fn user(text: &str) -> Message {
    let mut message = UserMessage::text(text, Origin::User);
    message.id = MessageId::from(format!("user {text}"));
    message.timestamp = Timestamp(1);
    message.into()
}

fn assistant(calls: &[&str], text: &str) -> Message {
    let empty = Assembler::new(MessageId::from(format!("answer {calls:?} {text}")), Timestamp(2));
    let mut content = Vec::new();
    if !text.is_empty() {
        content.push(ContentBlock::text(text));
    }
    for id in calls {
        content.push(ContentBlock::ToolCall(ToolCall::parse(
            (*id).to_owned(),
            "Read".to_owned(),
            String::new(),
        )));
    }
    AssistantMessage { content, ..empty.finish() }.into()
}

fn result(id: &str, text: &str) -> Message {
    Message::ToolResult(ToolResultMessage {
        id: MessageId::from(format!("result {id} {text}")),
        timestamp: Timestamp(3),
        content: vec![ContentBlock::text(text)],
        tool_call_id: id.to_owned(),
        tool_name: "Read".to_owned(),
        is_error: false,
        error_kind: None,
    })
}

fn shared(messages: Vec<Message>) -> Vec<Arc<Message>> {
    messages.into_iter().map(Arc::new).collect()
}

/// One word a message.
fn words(messages: &[Arc<Message>]) -> Vec<String> {
    let word = |message: &Arc<Message>| match &**message {
        Message::User(user) => user.content[0].as_text().unwrap_or_default().to_owned(),
        Message::Assistant(answer) => {
            let calls: Vec<&str> = answer.tool_calls().map(|call| call.id.as_str()).collect();
            format!("{}[{}]", answer.text(), calls.join(" "))
        }
        Message::ToolResult(result) => {
            let text = result.content[0].as_text().unwrap_or_default();
            format!("{}={text}", result.tool_call_id)
        }
    };
    messages.iter().map(word).collect()
}

#[track_caller]
fn check(history: Vec<Message>, expected: &[&str]) {
    assert_eq!(words(&project(&shared(history))), expected);
}

/// SPEC L9, I3
#[test]
fn what_is_out_of_order_is_put_in_order() {
    // Left as it is.
    check(
        vec![user("q"), assistant(&["a", "b"], ""), result("a", "1"), result("b", "2"), user("r")],
        &["q", "[a b]", "a=1", "b=2", "r"],
    );
    // An answer that never was.
    check(vec![user("q"), assistant(&[], ""), user("r")], &["q", "r"]);
    // Results without a call, before it or at all.
    check(vec![result("a", "1"), user("q"), result("z", "2")], &["q"]);
    // Results in the wrong order and in the wrong place.
    check(
        vec![assistant(&["a", "b"], "t"), result("b", "2"), user("between"), result("a", "1")],
        &["t[a b]", "a=1", "b=2", "between"],
    );
    // Missing results.
    check(
        vec![assistant(&["a", "b"], ""), result("b", "2"), user("q")],
        &["[a b]", &format!("a={MISSING_RESULT}"), "b=2", "q"],
    );
    // Two results for one call: the first is the one that the model saw.
    check(vec![assistant(&["a"], ""), result("a", "1"), result("a", "2")], &["[a]", "a=1"]);
    // SPEC M7: an id that is used again belongs to the nearer call.
    check(
        vec![assistant(&["a"], "x"), result("a", "1"), assistant(&["a"], "y"), result("a", "2")],
        &["x[a]", "a=1", "y[a]", "a=2"],
    );
    check(
        vec![assistant(&["a"], "x"), assistant(&["a"], "y"), result("a", "2")],
        &["x[a]", &format!("a={MISSING_RESULT}"), "y[a]", "a=2"],
    );
}

fn any_message() -> impl Strategy<Value = Message> {
    let id = prop_oneof![Just("a"), Just("b"), Just("c")];
    let ids = prop::sample::subsequence(vec!["a", "b", "c"], 0..=3);
    prop_oneof![
        any::<u8>().prop_map(|n| user(&n.to_string())),
        (ids, any::<bool>()).prop_map(|(ids, text)| assistant(&ids, if text { "t" } else { "" })),
        (id, any::<u8>()).prop_map(|(id, n)| result(id, &n.to_string())),
    ]
}

proptest! {
    /// SPEC L9, I3: every history projects to one that any provider accepts, and a second time to
    /// the same.
    #[test]
    fn every_history_projects(history in prop::collection::vec(any_message(), 0..20)) {
        let history = shared(history);
        let projected = project(&history);
        prop_assert_eq!(&project(&projected), &projected);
        prop_assert_eq!(&project(&history), &projected);
        let mut position = 0;
        while let Some(message) = projected.get(position) {
            prop_assert!(!message.content().is_empty());
            position += 1;
            match &**message {
                Message::ToolResult(_) => prop_assert!(false, "a result without its call"),
                Message::User(_) => {}
                Message::Assistant(answer) => {
                    for call in answer.tool_calls() {
                        let next = projected.get(position).map(|message| &**message);
                        let Some(Message::ToolResult(result)) = next else {
                            return Err(TestCaseError::fail("a call without its result"));
                        };
                        prop_assert_eq!(&result.tool_call_id, &call.id);
                        position += 1;
                    }
                }
            }
        }
        // What was said is neither lost nor said twice.
        let users = |messages: &[Arc<Message>]| {
            messages.iter().filter(|message| matches!(***message, Message::User(_))).count()
        };
        prop_assert_eq!(users(&projected), users(&history));
        let unique: HashSet<*const Message> = projected.iter().map(Arc::as_ptr).collect();
        prop_assert_eq!(unique.len(), projected.len());
    }
}
