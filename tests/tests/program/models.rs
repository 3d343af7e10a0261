//! What is known of a model: listed, laid over by configuration, asked for, and put to use.

use ai::{Api, Usage};
use scripted_model::{Script, ScriptedModel, Turn};
use serde_json::{Value, json};
use tests::bench::Bench;
use tests::program::KEY;

async fn says(usage: Usage, times: usize) -> ScriptedModel {
    let turn = || Turn::text_only("done").usage(usage);
    let script = (0..times).fold(Script::new("scripted"), |script, _| script.turn(turn()));
    ScriptedModel::start(script).await.unwrap()
}

/// Facts of the model that the tests ask.
const KNOWN: &str = "[providers.openai]
models = [{id = 'scripted', price = {input = 2, output = 10, cache_read = 0.5},
           thinking = {form = 'effort', levels = {off = 'none', low = 'low', high = 'xhigh'}}}]
[providers.anthropic]
models = [{id = 'scripted', price = {input = 2, output = 10, cache_read = 0.5},
           thinking = {form = 'budget', levels = {low = 2048}}}]
";

/// SPEC M10: known prices make a cost, unknown ones none.
#[tokio::test]
async fn a_known_price_makes_a_cost() {
    let usage = Usage { input: 100_000, output: 20_000, cache_read: 200_000, ..Usage::default() };
    for (api, configured, cost) in [
        (Api::OpenaiChat, KNOWN, json!(0.5)),
        (Api::AnthropicMessages, KNOWN, json!(0.5)),
        (Api::OpenaiChat, "", Value::Null),
    ] {
        let bench = Bench::new();
        bench.configure(configured);
        let model = says(usage, 1).await;
        let program = bench.program(["-p", "hello", "--output-format", "json"]);
        let ended = program.asking(&model, api).run().await;
        assert_eq!(ended.json()["cost_usd"], cost, "{api} {configured}");
    }
}

#[tokio::test]
async fn a_thinking_level_reaches_the_model_or_a_note_says_what_does() {
    let budget = |tokens| json!({"thinking": {"type": "enabled", "budget_tokens": tokens}});
    for (api, arguments, told, note) in [
        (Api::OpenaiChat, &["--thinking", "low"][..], json!({"reasoning_effort": "low"}), ""),
        (
            Api::OpenaiChat,
            &["--config", "thinking=max"],
            json!({"reasoning_effort": "xhigh"}),
            "note: scripted has no thinking level `max`; the nearest, `high`, is used\n",
        ),
        (Api::OpenaiChat, &[], json!({}), ""),
        (Api::AnthropicMessages, &["--thinking", "low"], budget(2048), ""),
    ] {
        let bench = Bench::new();
        bench.configure(KNOWN);
        let model = says(Usage::default(), 1).await;
        let program = bench.program(["-p", "hello"]).asking(&model, api);
        let ended = program.arguments(arguments).run().await;
        assert_eq!(ended.all(), (0, "done\n", note), "{arguments:?}");
        let body = &model.requests()[0].body;
        for field in ["thinking", "reasoning_effort"] {
            assert_eq!(body.get(field), told.get(field), "{arguments:?}");
        }
    }
}

#[tokio::test]
async fn what_cannot_be_told_is_not_sent_and_said() {
    let bench = Bench::new();
    let model = says(Usage::default(), 1).await;
    let ended = bench
        .program(["-p", "hello", "--thinking", "high"])
        .asking(&model, Api::OpenaiChat)
        .run()
        .await;
    let note = "note: nothing is known of how scripted thinks, so `thinking = high` is not sent\n";
    assert_eq!(ended.all(), (0, "done\n", note));
    let wrong = bench.program(["-p", "hello", "--thinking", "hard"]).run().await;
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("expected off, minimal, low, medium, high or max"));
}

/// Thinking is paid for, so a project may only ask for less of it.
#[tokio::test]
async fn a_project_does_not_raise_thinking() {
    for (user, project, effort, ignored) in [
        ("", "thinking = 'low'", None, true),
        ("thinking = 'low'\n", "thinking = 'high'", Some("low"), true),
        ("thinking = 'high'\n", "thinking = 'low'", Some("low"), false),
    ] {
        let bench = Bench::new();
        bench.configure(&format!("{user}{KNOWN}"));
        bench.write(".coding-agent/config.toml", project);
        let model = says(Usage::default(), 1).await;
        let ended = bench.program(["-p", "hello"]).asking(&model, Api::OpenaiChat).run().await;
        assert_eq!(ended.stderr.contains("sets `thinking`"), ignored, "{}", ended.stderr);
        let body = &model.requests()[0].body;
        assert_eq!(body.get("reasoning_effort").and_then(Value::as_str), effort);
    }
}

#[tokio::test]
async fn models_are_listed_with_what_is_known_of_them() {
    let bench = Bench::new();
    bench.configure(
        "[providers.anthropic]\nmodels = [{id = 'claude-sonnet-4-5', context_window = 77}, 'new']",
    );
    let listing = bench.program(["models", "anthropic"]).run().await;
    assert_eq!((listing.code, listing.stderr.as_str()), (0, ""));
    let row = |id: &str| {
        let id = format!("anthropic/{id}");
        let mut rows = listing.stdout.lines().map(str::split_whitespace);
        rows.find_map(|mut row| {
            (row.next() == Some(&id)).then(|| row.collect::<Vec<_>>().join(" "))
        })
    };
    let known = row("claude-sonnet-4-5").unwrap();
    assert!(known.starts_with("77 window 64k out $3 in $15 out images thinking off|"), "{known}");
    assert_eq!(row("new").as_deref(), Some(""));

    let program = bench.program(["models", "anthropic", "--output-format", "json"]);
    let listed = program.run().await.json();
    let provider = &listed["providers"][0];
    assert_eq!((&provider["provider"], &provider["ready"]), (&json!("anthropic"), &json!(false)));
    let models = provider["models"].as_array().unwrap();
    let model = models.iter().find(|model| model["id"] == "claude-sonnet-4-5").unwrap();
    assert_eq!((&model["context_window"], &model["price"]["output"]), (&json!(77), &json!(15.0)));

    let unknown = bench.program(["models", "nobody"]).run().await;
    assert_eq!(
        unknown.all(),
        (
            2,
            "",
            "error: unknown provider `nobody`\n\
             hint: `coding-agent models` lists those that are known\n"
        )
    );
}

/// SPEC M20
#[tokio::test]
async fn a_providers_own_list_is_asked_for_and_kept() {
    let model = says(Usage::default(), 1).await;
    for (provider, api) in [
        ("one", Api::AnthropicMessages),
        ("two", Api::OpenaiChat),
        ("three", Api::OpenaiResponses),
        ("four", Api::GoogleGenerate),
    ] {
        let bench = Bench::new();
        bench.configure(&format!(
            "[providers.{provider}]\napi = '{api}'\nbase_url = '{}'\nkey_env = 'MINE'",
            model.base_url(api)
        ));
        let listed = async |arguments: &[&str]| {
            let ended = bench.program(arguments).variable("MINE", KEY).run().await;
            let note = if arguments.contains(&"--refresh") {
                format!("note: {provider} lists 1 models\n")
            } else {
                String::new()
            };
            assert_eq!((ended.code, ended.stderr), (0, note), "{provider}");
            ended.stdout.contains(&format!("    {provider}/scripted"))
        };
        assert!(!listed(&["models", provider]).await);
        assert!(listed(&["models", provider, "--refresh"]).await);
        assert!(listed(&["models"]).await);
        // A list belongs to the address that gave it.
        let elsewhere = format!("providers.{provider}.base_url=http://127.0.0.1:9");
        assert!(!listed(&["models", provider, "--config", &elsewhere]).await);
    }
}

#[tokio::test]
async fn a_provider_that_gives_no_list_is_named() {
    let bench = Bench::new();
    bench.configure("[providers.mine]\napi = 'openai-chat'\nbase_url = 'http://127.0.0.1:9/v1'");
    let ended = bench.program(["models", "mine", "--refresh"]).run().await;
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.starts_with("error: mine: "), "{}", ended.stderr);
    assert!(ended.stderr.contains("connection to 127.0.0.1:9 refused"), "{}", ended.stderr);
    assert!(ended.stdout.starts_with("mine "), "{}", ended.stdout);
}
