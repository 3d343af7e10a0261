//! Each fault, as it is on the wire.

use std::collections::BTreeMap;

use scripted_model::{Fault, FaultBody, Progress, Script, ScriptedModel, Turn};
use serde_json::json;

use crate::client::{
    ALL, ANTHROPIC, CHAT, Ending, Exchange, GOOGLE, RESPONSES, Response, ask, asking,
};

async fn start(fault: Fault) -> ScriptedModel {
    ScriptedModel::start(Script::new("s").turn(Turn::text_only("Hello you there").fault(fault)))
        .await
        .unwrap()
}

async fn play(path: &str, fault: Fault) -> (Option<Response>, Ending, Progress) {
    let model = start(fault).await;
    let exchange = Exchange::post(&model, path, &asking(path, "hi")).await;
    let (response, ending) = exchange.finish().await;
    (response, ending, model.wait_for_end(0).await)
}

/// The whole answer without a fault.
async fn whole(path: &str) -> Vec<u8> {
    let script = Script::new("s").turn(Turn::text_only("Hello you there"));
    let model = ScriptedModel::start(script).await.unwrap();
    ask(&model, path, &asking(path, "hi")).await.body
}

#[tokio::test]
async fn broken_connections_carry_exactly_the_bytes_before_the_fault() {
    for path in ALL {
        let whole = whole(path).await;
        for after in [0, 1, 100, whole.len(), whole.len() + 1000] {
            let expected = &whole[..after.min(whole.len())];
            let after_bytes = Some(after);
            for (fault, ending) in [
                (Fault::Cut { after_bytes }, Ending::Closed),
                (Fault::Disconnect { after_bytes }, Ending::Reset),
            ] {
                let (response, ended, progress) = play(path, fault).await;
                let response = response.unwrap();
                assert_eq!(response.body, expected);
                assert_eq!((response.status, ended, progress), (200, ending, Progress::Broken));
            }
        }
    }
}

#[tokio::test]
async fn without_a_count_the_connection_breaks_before_the_head() {
    for (fault, ending) in [
        (Fault::Cut { after_bytes: None }, Ending::Closed),
        (Fault::Disconnect { after_bytes: None }, Ending::Reset),
    ] {
        let (response, ended, progress) = play(CHAT, fault).await;
        assert!(response.is_none());
        assert_eq!((ended, progress), (ending, Progress::Broken));
    }
}

/// SPEC M5: the body is whole for HTTP and not for the API.
#[tokio::test]
async fn a_body_can_end_in_order_without_its_end_marker() {
    for (path, marker, blank) in [
        (ANTHROPIC, "message_delta", "\n\n"),
        (CHAT, "\"finish_reason\":\"stop\"", "\n\n"),
        (RESPONSES, "response.completed", "\n\n"),
        (GOOGLE, "\"finishReason\":\"STOP\"", "\r\n\r\n"),
    ] {
        let whole = String::from_utf8(whole(path).await).unwrap();
        let end = whole[..whole.find(marker).unwrap()].rfind(blank).unwrap() + blank.len();
        let (response, ending, progress) = play(path, Fault::NoEnd { after_bytes: None }).await;
        assert_eq!(response.unwrap().text(), whole[..end]);
        assert_eq!((ending, progress), (Ending::Whole, Progress::Answered));
        let (response, ..) = play(path, Fault::NoEnd { after_bytes: Some(50) }).await;
        assert_eq!(response.unwrap().text(), whole[..50]);
    }
}

/// SPEC M14
#[tokio::test]
async fn a_stall_is_silent_until_the_client_leaves() {
    let whole = whole(CHAT).await;
    for after_bytes in [None, Some(0), Some(40)] {
        let model = start(Fault::Stall { after_bytes }).await;
        let mut exchange = Exchange::post(&model, CHAT, &asking(CHAT, "hi")).await;
        model.wait_for_requests(1).await;
        if let Some(bytes) = after_bytes {
            exchange.read_until("\r\n\r\n").await;
            exchange.read_until(std::str::from_utf8(&whole[..bytes]).unwrap()).await;
        }
        assert_eq!(model.requests()[0].progress, Progress::Answering);
        drop(exchange);
        assert_eq!(model.wait_for_end(0).await, Progress::Left);
    }
}

#[tokio::test]
async fn garbage_is_put_into_a_stream_that_goes_on() {
    let whole = whole(ANTHROPIC).await;
    let fault = Fault::Malformed { after_bytes: Some(30), garbage: Some("?!".to_owned()) };
    let (response, ending, _) = play(ANTHROPIC, fault).await;
    assert_eq!(response.unwrap().body, [&whole[..30], b"?!", &whole[30..]].concat());
    assert_eq!(ending, Ending::Whole);

    let fault = Fault::Malformed { after_bytes: None, garbage: None };
    let body = play(ANTHROPIC, fault).await.0.unwrap().body;
    assert!(std::str::from_utf8(&body).is_err());
    assert!(body.ends_with(&whole));
}

/// SPEC M12
#[tokio::test]
async fn an_error_inside_a_stream_is_its_last_event() {
    let fault = || Fault::ErrorEvent { after_bytes: Some(1), body: None };
    let (response, ending, _) = play(ANTHROPIC, fault()).await;
    let events = response.unwrap().events();
    assert_eq!((events.len(), ending), (2, Ending::Whole));
    assert_eq!(
        events[1],
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    );
    let events = play(CHAT, fault()).await.0.unwrap().events();
    assert_eq!(events[1]["error"]["type"], "server_error");
    let response = play(RESPONSES, fault()).await.0.unwrap();
    assert!(response.text().contains("\n\nevent: error\ndata: {"), "{}", response.text());
    assert_eq!(
        response.events()[1..],
        [json!({"type": "error", "error": {"type": "server_error", "code": "server_is_overloaded",
            "message": "the server is overloaded", "param": null}})]
    );
    let events = play(GOOGLE, fault()).await.0.unwrap().events();
    assert_eq!(
        events[1..],
        [json!({"error": {"code": 503, "message": "the model is overloaded",
            "status": "UNAVAILABLE"}})]
    );

    let body = json!({"error": {"message": "mine"}});
    for path in ALL {
        let fault = Fault::ErrorEvent { after_bytes: None, body: Some(body.clone()) };
        assert_eq!(play(path, fault).await.0.unwrap().events(), std::slice::from_ref(&body));
    }
    // In Responses a body names its own event.
    let body = json!({"type": "response.failed", "response": {"status": "failed"}});
    let fault = Fault::ErrorEvent { after_bytes: None, body: Some(body.clone()) };
    let text = play(RESPONSES, fault).await.0.unwrap().text();
    assert_eq!(text, format!("event: response.failed\ndata: {body}\n\n"));
}

/// SPEC M12
#[tokio::test]
async fn statuses_come_with_the_apis_body() {
    let cases: &[(&str, u16, &str)] = &[
        (ANTHROPIC, 400, "invalid_request_error"),
        (ANTHROPIC, 401, "authentication_error"),
        (ANTHROPIC, 403, "permission_error"),
        (ANTHROPIC, 429, "rate_limit_error"),
        (ANTHROPIC, 500, "api_error"),
        (ANTHROPIC, 529, "overloaded_error"),
        (CHAT, 401, "invalid_request_error"),
        (CHAT, 402, "insufficient_quota"),
        (CHAT, 429, "tokens"),
        (CHAT, 500, "server_error"),
        (RESPONSES, 429, "tokens"),
        (RESPONSES, 500, "server_error"),
    ];
    for (path, code, kind) in cases {
        let (response, ending, progress) =
            play(path, Fault::status_with_header(*code, "retry-after", "7")).await;
        let response = response.unwrap();
        assert_eq!((response.status, ending, progress), (*code, Ending::Whole, Progress::Answered));
        assert_eq!(response.json()["error"]["type"], *kind);
        assert_eq!(response.header("retry-after"), Some("7"));
        assert_eq!(response.header("content-type"), Some("application/json"));
    }
}

/// SPEC M12
#[tokio::test]
async fn google_says_each_status_by_its_name() {
    let cases: &[(u16, &str)] = &[
        (400, "INVALID_ARGUMENT"),
        (401, "UNAUTHENTICATED"),
        (403, "PERMISSION_DENIED"),
        (404, "NOT_FOUND"),
        (429, "RESOURCE_EXHAUSTED"),
        (500, "INTERNAL"),
        (503, "UNAVAILABLE"),
        (504, "DEADLINE_EXCEEDED"),
    ];
    for (code, status) in cases {
        let response = play(GOOGLE, Fault::status(*code)).await.0.unwrap();
        let error = response.json()["error"].clone();
        assert_eq!(response.status, *code);
        assert_eq!((error["code"].clone(), error["status"].clone()), (json!(code), json!(status)));
    }
}

#[tokio::test]
async fn a_statuses_body_and_headers_can_be_anything() {
    for text in ["<html>bad gateway</html>", ""] {
        let fault = Fault::Status {
            code: 502,
            headers: BTreeMap::from([("Content-Type".to_owned(), "text/html".to_owned())]),
            body: Some(FaultBody::Text(text.to_owned())),
        };
        let (response, _, progress) = play(CHAT, fault).await;
        let response = response.unwrap();
        assert_eq!((response.status, response.text().as_str()), (502, text));
        assert_eq!(response.header("content-type"), Some("text/html"));
        assert_eq!(progress, Progress::Answered);
    }
}

#[tokio::test]
async fn a_fault_is_spent_by_the_attempt_that_meets_it() {
    let script = Script::new("s")
        .turn(Turn::fault_only(Fault::status(529)))
        .turn(Turn::fault_only(Fault::Disconnect { after_bytes: None }))
        .turn(Turn::text_only("at last"));
    let model = ScriptedModel::start(script).await.unwrap();
    let body = asking(CHAT, "hi");
    assert_eq!(ask(&model, CHAT, &body).await.status, 529);
    let dropped = Exchange::post(&model, CHAT, &body).await.finish().await;
    assert_eq!(dropped.1, Ending::Reset);
    assert!(ask(&model, CHAT, &body).await.text().contains("at last"));
    assert_eq!(model.problems(), []);
}

#[tokio::test]
async fn a_slow_answer_is_the_same_answer() {
    let whole = whole(CHAT).await;
    let (response, ending, _) = play(CHAT, Fault::Slow { delay_ms: 1 }).await;
    assert_eq!(response.unwrap().body, whole);
    assert_eq!(ending, Ending::Whole);
}
