//! Providers: the built-in ones by a variable, one's own by four lines.

use ai::{Api, AuthScheme, BUILTIN_PROVIDERS, KeyNeed};
use scripted_model::{Script, ScriptedModel, Turn};
use tests::bench::Bench;
use tests::program::KEY;

async fn model() -> ScriptedModel {
    ScriptedModel::start(Script::new("scripted").turn(Turn::text_only("Here."))).await.unwrap()
}

/// The one request that the model got: its wire format, and the header that carried the key.
fn asked(model: &ScriptedModel) -> (Api, Option<String>) {
    let requests = model.requests();
    let [request] = requests.as_slice() else { panic!("{requests:?}") };
    let with_key = request.headers.iter().filter(|(_, value)| value.contains(KEY));
    let names: Vec<&str> = with_key.map(|(name, _)| name.as_str()).collect();
    assert!(names.len() < 2, "{names:?}");
    (request.api, names.first().map(|name| (*name).to_owned()))
}

fn header(auth: AuthScheme) -> &'static str {
    match auth {
        AuthScheme::Bearer => "authorization",
        AuthScheme::XApiKey => "x-api-key",
        AuthScheme::XGoogApiKey => "x-goog-api-key",
        AuthScheme::ApiKey => "api-key",
        other => panic!("no test knows {other:?}"),
    }
}

/// A variable cannot have a hyphen, and some providers do.
#[tokio::test]
async fn a_variable_reaches_a_provider_with_a_hyphen() {
    let bench = Bench::new();
    let ended = bench
        .program(["config", "show"])
        .variable("CODING_AGENT_PROVIDERS__GITHUB_MODELS__BASE_URL", "http://127.0.0.1:9")
        .variable("CODING_AGENT_PROVIDERS__OWN_ONE__BASE_URL", "http://127.0.0.1:9")
        .run()
        .await;
    assert!(ended.stdout.contains("[providers.github-models]"), "{ended:?}");
    assert!(ended.stdout.contains("[providers.own_one]"), "{ended:?}");
}

/// SPEC M15: a provider of one's own, in each wire format.
#[tokio::test]
async fn a_custom_provider_is_four_lines() {
    for (api, usual) in [
        (Api::AnthropicMessages, "x-api-key"),
        (Api::OpenaiChat, "authorization"),
        (Api::OpenaiResponses, "authorization"),
        (Api::GoogleGenerate, "x-goog-api-key"),
    ] {
        let bench = Bench::new();
        let model = model().await;
        bench.configure(&format!(
            "[providers.mine]\napi = '{api}'\nbase_url = '{}'\nkey_env = 'MINE_API_KEY'\n",
            model.base_url(api)
        ));
        let ended = bench
            .program(["-p", "hello", "--model", "mine/scripted"])
            .checked_by(&model)
            .variable("MINE_API_KEY", KEY)
            .run()
            .await;
        assert_eq!(ended.all(), (0, "Here.\n", ""), "{api}");
        assert_eq!(asked(&model), (api, Some(usual.to_owned())));
    }
}

/// Every built-in name with nothing but its variables.
#[tokio::test]
async fn a_built_in_provider_needs_a_variable() {
    for provider in BUILTIN_PROVIDERS {
        let entry = provider.entry();
        let keys = provider.key_variables.iter().map(Some);
        // A server on the own machine is asked without a key as well.
        let none = (provider.key_need == KeyNeed::Optional).then_some(None);
        for key in keys.chain(none) {
            let bench = Bench::new();
            let model = model().await;
            let mut program = bench
                .program(["-p", "hello", "--model", &format!("{}/scripted", provider.name)])
                .checked_by(&model)
                .variable(provider.base_url_variable, model.base_url(provider.api));
            match key {
                Some(name) => program = program.variable(name, KEY),
                // The scripted model insists on one, and says so as a real one would.
                None => program = program.expecting_problems(1),
            }
            let ended = program.run().await;
            let expected = if key.is_some() { (0, "Here.\n") } else { (1, "") };
            assert_eq!((ended.code, ended.stdout.as_str()), expected, "{key:?} {ended:?}");
            let header = key.map(|_| header(entry.auth).to_owned());
            assert_eq!(asked(&model), (provider.api, header), "{}", provider.name);
        }
    }
}

/// A built-in provider through another of its wire formats, its key sent in another way, and headers.
#[tokio::test]
async fn a_built_in_provider_is_changed_by_configuration() {
    for (provider, key, api, auth) in [
        ("openai", "OPENAI_API_KEY", Api::OpenaiResponses, None),
        ("openrouter", "OPENROUTER_API_KEY", Api::AnthropicMessages, None),
        ("moonshot", "MOONSHOT_API_KEY", Api::AnthropicMessages, Some(AuthScheme::Bearer)),
        ("azure", "AZURE_OPENAI_API_KEY", Api::OpenaiResponses, None),
    ] {
        let bench = Bench::new();
        let model = model().await;
        let way = auth.map_or(String::new(), |_| "auth = 'bearer'\n".to_owned());
        bench.configure(&format!(
            "[providers.{provider}]\napi = '{api}'\nbase_url = '{}'\n{way}\
             headers = {{ X-Team = 'blue' }}\n",
            model.base_url(api)
        ));
        let ended = bench
            .program(["-p", "hello", "--model", &format!("{provider}/scripted")])
            .checked_by(&model)
            .variable(key, KEY)
            .run()
            .await;
        assert_eq!(ended.all(), (0, "Here.\n", ""), "{provider}");
        let usual = match (provider, api) {
            ("azure", _) => AuthScheme::ApiKey,
            (_, Api::AnthropicMessages) => AuthScheme::XApiKey,
            _ => AuthScheme::Bearer,
        };
        let expected = header(auth.unwrap_or(usual)).to_owned();
        assert_eq!(asked(&model), (api, Some(expected)), "{provider}");
        assert_eq!(model.requests()[0].header("x-team"), Some("blue"));
    }
}

/// SPEC U4: where only the customer knows the address, what has to be set is said.
#[tokio::test]
async fn an_address_that_nobody_knows_is_asked_for() {
    for (provider, key, said) in [
        (
            "azure",
            "AZURE_OPENAI_API_KEY",
            "error: there is no address for provider `azure`: AZURE_OPENAI_BASE_URL or \
             AZURE_OPENAI_ENDPOINT is not set\nhint: export AZURE_OPENAI_BASE_URL=https://…, or set \
             base_url in [providers.azure]\n",
        ),
        (
            "databricks",
            "DATABRICKS_TOKEN",
            "error: there is no address for provider `databricks`: DATABRICKS_BASE_URL or \
             DATABRICKS_HOST is not set\nhint: export DATABRICKS_BASE_URL=https://…, or set base_url \
             in [providers.databricks]\n",
        ),
    ] {
        let bench = Bench::new();
        let model = format!("{provider}/m");
        let program = bench.program(["-p", "x", "--model", &model]).variable(key, KEY);
        assert_eq!(program.run().await.all(), (2, "", said));
    }
}
