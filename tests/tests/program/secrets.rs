//! Keys are never shown. Every run of every suite is looked through for the one key that all
//! providers are asked with; here are the places where it could slip out.

use ai::Api;
use scripted_model::{Fault, FaultBody, Script, ScriptedModel, Turn};
use serde_json::json;
use tests::bench::Bench;
use tests::program::KEY;

const APIS: [Api; 2] = [Api::AnthropicMessages, Api::OpenaiChat];

/// SPEC M20: a provider that repeats the key in its error, in each shape that errors have.
#[tokio::test]
async fn a_key_that_a_provider_repeats_is_not_passed_on() {
    let message = format!("Incorrect API key provided: {KEY}. Get one at https://example.org.");
    let bodies = [
        FaultBody::Json(json!({"error": {"message": message, "type": "invalid_request_error"}})),
        FaultBody::Json(
            json!({"type": "error", "error": {"type": "authentication_error", "message": message}}),
        ),
        FaultBody::Json(json!({"detail": {"authorization": format!("Bearer {KEY}")}})),
        FaultBody::Text(format!("<html><body><h1>401</h1>x-api-key: {KEY}</body></html>")),
        FaultBody::Text(format!("no key like {KEY}")),
    ];
    for api in APIS {
        for body in &bodies {
            // The errors differ by their bodies, the formats by what else they hold.
            for format in ["text", "stream-json"] {
                let bench = Bench::new();
                let fault = Fault::Status {
                    code: 401,
                    headers: [("x-request-id".to_owned(), format!("req-{KEY}"))].into(),
                    body: Some(body.clone()),
                };
                let script = Script::new("scripted").turn(Turn::fault_only(fault));
                let model = ScriptedModel::start(script).await.unwrap();
                // What is printed is looked through at its end.
                let ended = bench
                    .program(["-p", "hello", "--output-format", format])
                    .asking(&model, api)
                    .variable("CODING_AGENT_LOG", "trace")
                    .run()
                    .await;
                assert_eq!(ended.code, 1, "{ended:?}");
                assert!(ended.stderr.contains("error: auth: "), "{ended:?}");
            }
        }
    }
}

/// SPEC M20: the same for an error in the middle of an answer.
#[tokio::test]
async fn a_key_in_an_error_event_is_not_passed_on() {
    for api in APIS {
        let message = format!("the key {KEY} has been revoked");
        let body = match api {
            Api::OpenaiChat => json!({"error": {"message": message, "code": "invalid_api_key"}}),
            _ => {
                json!({"type": "error", "error": {"type": "authentication_error", "message": message}})
            }
        };
        let bench = Bench::new();
        let fault = Fault::ErrorEvent { after_bytes: None, body: Some(body) };
        let script = Script::new("scripted").turn(Turn::text_only("Never.").fault(fault));
        let model = ScriptedModel::start(script).await.unwrap();
        let ended = bench
            .program(["-p", "hello", "--output-format", "stream-json"])
            .asking(&model, api)
            .variable("CODING_AGENT_LOG", "trace")
            .run()
            .await;
        assert_eq!(ended.code, 1, "{ended:?}");
        assert!(ended.stderr.contains("has been revoked"), "{ended:?}");
    }
}

/// SPEC M20: a whole run with everything logged.
#[tokio::test]
async fn the_log_holds_no_key() {
    for api in APIS {
        let bench = Bench::new();
        bench.write("a.txt", "alpha\n");
        let script = Script::new("scripted")
            .turn(Turn::fault_only(Fault::status_with_header(429, "retry-after-ms", "1")))
            .turn(Turn::new().call("Read", json!({"path": "a.txt"})))
            .turn(Turn::text_only("Done."));
        let model = ScriptedModel::start(script).await.unwrap();
        let ended = bench
            .program(["-p", "hello"])
            .asking(&model, api)
            .variable("CODING_AGENT_LOG", "trace")
            .run()
            .await;
        assert_eq!((ended.code, ended.stdout.as_str()), (0, "Done.\n"));
    }
}

/// SPEC M20: nor do the commands that show what is set up.
#[tokio::test]
async fn what_is_set_up_is_shown_without_keys() {
    for arguments in [
        &["doctor"][..],
        &["models"],
        &["config", "show"],
        &["config", "schema"],
        &["tool", "list"],
        &["-p", "x", "--model", "nobody/x"],
        &["-p", "x", "--model", "mine/x"],
    ] {
        let bench = Bench::new();
        bench.configure("[providers.mine]\napi = 'openai-chat'\nkey_env = 'MINE_API_KEY'\n");
        let mut program = bench.program(arguments).variable("CODING_AGENT_LOG", "trace");
        for name in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "MINE_API_KEY", "GITHUB_TOKEN"] {
            program = program.variable(name, KEY);
        }
        let ended = program.run().await;
        assert!([0, 2].contains(&ended.code), "{ended:?}");
    }
}

/// SPEC M20, U4: a key that no header can carry is refused in words that do not hold it.
#[tokio::test]
async fn a_key_that_cannot_be_sent_is_not_shown() {
    let bench = Bench::new();
    let ended = bench
        .program(["-p", "hello", "--model", "openai/gpt", "--config", "retry.max_attempts=1"])
        .variable("OPENAI_API_KEY", format!("{KEY}\nsecond line"))
        .variable("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
        .run()
        .await;
    assert!([1, 2].contains(&ended.code), "{ended:?}");
    assert_ne!(ended.stderr, "");
}
