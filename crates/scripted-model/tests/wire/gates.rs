//! Gates, and waiting for what clients do: what tests use instead of sleeping.

use std::num::NonZeroUsize;

use scripted_model::{Progress, Script, ScriptedModel, Turn};

use crate::client::{ALL, CHAT, Exchange, ask, asking};

#[tokio::test]
async fn a_gate_holds_the_first_byte() {
    let script = Script::new("s").turn(Turn::text_only("x").gate("go"));
    let model = ScriptedModel::start(script).await.unwrap();
    let exchange = Exchange::post(&model, CHAT, &asking(CHAT, "hi")).await;
    model.wait_at_gate("go", 1).await;
    assert_eq!(exchange.received(), "");
    assert_eq!(model.requests()[0].progress, Progress::Answering);
    model.open_gate("go");
    assert_eq!(exchange.response().await.status, 200);
    assert_eq!(model.wait_for_end(0).await, Progress::Answered);
}

#[tokio::test]
async fn a_gate_inside_the_body_holds_what_is_behind_it() {
    let turn = || Turn::text_only("abcdef").chunk_chars(NonZeroUsize::new(2).unwrap());
    for path in ALL {
        let script = Script::new("s").turn(turn().gate_at_delta("go", 2));
        let model = ScriptedModel::start(script).await.unwrap();
        let mut exchange = Exchange::post(&model, path, &asking(path, "hi")).await;
        exchange.read_until("\"cd\"").await;
        model.wait_at_gate("go", 1).await;
        assert!(!exchange.received().contains("\"ef\""));
        model.open_gate("go");
        assert!(exchange.response().await.text().contains("\"ef\""));
    }

    let script = Script::new("s").turn(turn().gate_after_bytes("go", 10));
    let model = ScriptedModel::start(script).await.unwrap();
    let mut exchange = Exchange::post(&model, CHAT, &asking(CHAT, "hi")).await;
    exchange.read_until("\r\n\r\nA\r\ndata: {\"id\r\n").await;
    model.wait_at_gate("go", 1).await;
    model.open_gate("go");
    assert!(exchange.response().await.text().ends_with("data: [DONE]\n\n"));
}

#[tokio::test]
async fn an_open_gate_stays_open() {
    let script = Script::new("s").turn(Turn::text_only("x").gate("go"));
    let model = ScriptedModel::start(script).await.unwrap();
    model.open_gate("go");
    assert_eq!(ask(&model, CHAT, &asking(CHAT, "hi")).await.status, 200);
}

#[tokio::test]
async fn a_client_that_leaves_is_noticed_at_a_gate() {
    let script = Script::new("s")
        .turn(Turn::text_only("x").gate("first"))
        .turn(Turn::text_only("abc").gate_at_delta("second", 0));
    let model = ScriptedModel::start(script).await.unwrap();
    for (index, gate) in ["first", "second"].into_iter().enumerate() {
        let exchange = Exchange::post(&model, CHAT, &asking(CHAT, "hi")).await;
        model.wait_at_gate(gate, 1).await;
        drop(exchange);
        assert_eq!(model.wait_for_end(index).await, Progress::Left);
    }
}
