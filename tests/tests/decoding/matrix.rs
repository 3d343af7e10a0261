//! Every maker's history, sent to every provider (SPEC M9, M16).
//!
//! Histories come from hand-written streams of each API and dialect through the real decoder, become
//! what the product sends through the agent's projection and the real encoder, and go over HTTP to a
//! server that is as strict as the target's host.

use std::sync::Arc;
use std::time::Duration;

use ai::{
    ApiKey, AssistantMessage, BUILTIN_PROVIDERS, History, HttpClient, HttpProvider, Message,
    Origin, Provider, ProviderEntry, Request, StopReason, Timeouts, ToolErrorKind,
    ToolResultMessage, ToolSpec, UserMessage,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use scripted_model::{Host, RecordedRequest, ScriptedModel, Turn};
use serde_json::json;

use super::makers::{MODEL, Maker, entry, makers};
use super::*;

/// A model that no maker is.
const OTHER_MODEL: &str = "model-9";

/// What every server answers.
const ANSWER: &str = "accepted";

/// Servers of all hosts, and a client for each.
struct Targets(Vec<Target>);

struct Target {
    name: &'static str,
    server: ScriptedModel,
    provider: HttpProvider,
}

impl Targets {
    async fn start() -> Self {
        let client = HttpClient::new(Timeouts::default());
        let mut targets = Vec::new();
        for host in Host::all() {
            let answer = |_: &RecordedRequest| Turn::text_only(ANSWER);
            let server = ScriptedModel::start_as(host, answer).await.expect("a port");
            let mut entry = entry(host.name());
            entry.base_url = server.base_url(entry.api);
            entry.api_key = Some(ApiKey::new("k"));
            entry.max_output_tokens = Some(64);
            let provider = HttpProvider::new(entry, client.clone());
            targets.push(Target { name: host.name(), server, provider });
        }
        Self(targets)
    }
}

impl Target {
    fn entry(&self) -> &ProviderEntry {
        self.provider.entry()
    }

    /// Sends a history as the product does; the server's reason if it is refused.
    async fn ask(&self, model: &str, history: &[Arc<Message>]) -> Result<(), String> {
        let mut request = Request::new(model, History::from(agent::project(history)));
        request.system_prompt = "be brief".into();
        request.tools = ["Read", "mcp.server/read it", "9lives"]
            .map(|name| ToolSpec {
                name: name.to_owned(),
                description: "reads".to_owned(),
                input_schema: json!({"type": "object", "properties": {}}),
            })
            .into();
        let answer = self.provider.stream(request).result().await;
        if answer.stop_reason == StopReason::Stop && answer.text() == ANSWER {
            return Ok(());
        }
        let body = self.server.requests().pop().map(|request| request.body);
        Err(format!(
            "{} refuses: {:?}\n{}",
            self.name,
            answer.error,
            body.map(|body| body.to_string()).unwrap_or_default()
        ))
    }

    /// The body that it got last.
    fn last_body(&self) -> String {
        self.server.requests().pop().expect("a request").body.to_string()
    }
}

fn user(content: Vec<ContentBlock>) -> Message {
    let mut message = UserMessage::text("", Origin::User);
    message.content = content;
    Message::User(message)
}

fn image(mime_type: &str) -> ContentBlock {
    ContentBlock::Image { mime_type: mime_type.to_owned(), data: "QUJD".to_owned() }
}

fn result(call: &ToolCall, content: Vec<ContentBlock>, failed: bool) -> Message {
    Message::ToolResult(ToolResultMessage {
        id: MessageId::from("r"),
        timestamp: Timestamp(0),
        content,
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        is_error: failed,
        error_kind: failed.then_some(ToolErrorKind::Failed),
    })
}

/// A session in which all answers of a maker were given: results come out of order or not at all,
/// with images, empty; the user speaks before, between and behind them, or says nothing.
fn session(maker: &Maker) -> Vec<Arc<Message>> {
    let mut messages = vec![user(vec![ContentBlock::text("look"), image("image/png")])];
    for (position, answer) in maker.answers.iter().enumerate() {
        messages.push(answer.clone().into());
        let calls: Vec<&ToolCall> = answer.tool_calls().collect();
        for (index, call) in calls.iter().enumerate().rev() {
            messages.push(match (index, position % 3) {
                (0, 1) => continue,
                (0, _) => result(call, vec![image("image/webp"), ContentBlock::text(" ")], false),
                (_, 0) => user(vec![ContentBlock::text("meanwhile")]),
                (_, _) => result(call, vec![], true),
            });
            if index > 0 && position % 3 == 0 {
                messages.push(result(call, vec![ContentBlock::text("late")], false));
            }
        }
        messages.push(match position % 4 {
            0 => user(vec![ContentBlock::text(" \n")]),
            1 => user(vec![image("image/svg+xml"), image("image/gif")]),
            // The next answer comes right behind: it was tried again.
            2 => continue,
            _ => user(vec![ContentBlock::text("and now?")]),
        });
    }
    messages.into_iter().map(Arc::new).collect()
}

fn asked(mut session: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
    session.push(Arc::new(UserMessage::text("well?", Origin::User).into()));
    session
}

/// SPEC M16
#[test]
fn every_provider_has_its_host() {
    for provider in BUILTIN_PROVIDERS {
        let host = Host::find(provider.name).expect(provider.name);
        assert_eq!(host.api(), provider.api, "{}", provider.name);
    }
}

/// SPEC M9, M15, M16
#[tokio::test]
async fn a_history_of_any_maker_is_accepted_by_every_provider() {
    let targets = Targets::start().await;
    let makers = makers();
    let everything: Vec<Arc<Message>> = makers.iter().flat_map(session).collect();
    let mut refused = Vec::new();
    for target in &targets.0 {
        for model in [MODEL, OTHER_MODEL] {
            for maker in &makers {
                // A run that is taken up again has nothing of the user's at its end.
                let taken_up = (model == MODEL).then(|| session(maker));
                for history in taken_up.into_iter().chain([asked(session(maker))]) {
                    if let Err(reason) = target.ask(model, &history).await {
                        refused.push(format!("{} to {reason}", maker.name));
                    }
                }
            }
            if let Err(reason) = target.ask(model, &asked(everything.clone())).await {
                refused.push(format!("everything to {reason}"));
            }
        }
        assert_eq!(target.server.problems().len(), refused.len(), "{}", target.name);
        assert!(refused.is_empty(), "{}", refused.join("\n\n"));
    }
}

/// A session goes through all makers twice, so for each it goes away and comes back: all that it
/// signed is in its request twice, and in nobody else's.
///
/// SPEC M9
#[tokio::test]
async fn what_a_model_signed_comes_back_to_it_alone() {
    let targets = Targets::start().await;
    let makers = makers();
    assert_eq!(makers.iter().filter(|maker| !maker.proofs.is_empty()).count(), 4);
    let once: Vec<Arc<Message>> = makers.iter().flat_map(session).collect();
    let history = asked([once.clone(), once].concat());
    for target in &targets.0 {
        for model in [MODEL, OTHER_MODEL] {
            target.ask(model, &history).await.expect(target.name);
            let body = target.last_body();
            for maker in &makers {
                let times = if maker.name == target.name && model == MODEL { 2 } else { 0 };
                for proof in &maker.proofs {
                    let found = body.matches(proof.as_str()).count();
                    assert_eq!(found, times, "{} to {} {model}", maker.name, target.name);
                }
            }
        }
    }
}

/// What an answer may look like that another program wrote into the log, or half of one.
#[derive(Clone, Debug)]
enum Harm {
    None,
    Id(&'static str),
    Name(&'static str),
    Keep(usize),
    Drop(prop::sample::Index),
    Reverse,
}

#[derive(Clone, Debug)]
enum Step {
    User(Vec<usize>),
    Answer { maker: prop::sample::Index, answer: prop::sample::Index, harm: Harm },
    Result { call: prop::sample::Index, content: Vec<usize>, failed: bool },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let content = || prop::collection::vec(0..inputs().len(), 0..3);
    let harm = prop_oneof![
        4 => Just(Harm::None),
        1 => prop::sample::select(vec!["", "same", "a.b:c", "ünique"]).prop_map(Harm::Id),
        1 => prop::sample::select(vec!["", "a b", "-", "ünique"]).prop_map(Harm::Name),
        1 => (0..4_usize).prop_map(Harm::Keep),
        1 => any::<prop::sample::Index>().prop_map(Harm::Drop),
        1 => Just(Harm::Reverse),
    ];
    let step = prop_oneof![
        2 => content().prop_map(Step::User),
        4 => (any::<prop::sample::Index>(), any::<prop::sample::Index>(), harm)
            .prop_map(|(maker, answer, harm)| Step::Answer { maker, answer, harm }),
        3 => (any::<prop::sample::Index>(), content(), any::<bool>())
            .prop_map(|(call, content, failed)| Step::Result { call, content, failed }),
    ];
    prop::collection::vec(step, 0..16)
}

/// What users and tools say.
fn inputs() -> Vec<ContentBlock> {
    vec![
        ContentBlock::text("words"),
        ContentBlock::text(""),
        ContentBlock::text(" \n\t"),
        image("image/png"),
        image("image/gif"),
        image("application/pdf"),
        ContentBlock::Image { mime_type: "image/png".to_owned(), data: String::new() },
        ContentBlock::Opaque { api: "anthropic-messages".to_owned(), data: json!([1]) },
    ]
}

fn harmed(mut answer: AssistantMessage, harm: &Harm) -> AssistantMessage {
    match harm {
        Harm::None => {}
        Harm::Id(id) => calls_of(&mut answer).for_each(|call| call.id = (*id).to_owned()),
        Harm::Name(name) => calls_of(&mut answer).for_each(|call| call.name = (*name).to_owned()),
        Harm::Keep(count) => answer.content.truncate(*count),
        Harm::Drop(index) if !answer.content.is_empty() => {
            answer.content.remove(index.index(answer.content.len()));
        }
        Harm::Drop(_) => {}
        Harm::Reverse => answer.content.reverse(),
    }
    answer
}

fn calls_of(answer: &mut AssistantMessage) -> impl Iterator<Item = &mut ToolCall> {
    answer.content.iter_mut().filter_map(|block| match block {
        ContentBlock::ToolCall(call) => Some(call),
        _ => None,
    })
}

fn played(steps: &[Step], makers: &[Maker]) -> Vec<Arc<Message>> {
    let content = |picks: &[usize]| picks.iter().map(|&pick| inputs().swap_remove(pick)).collect();
    let mut calls: Vec<ToolCall> = Vec::new();
    let mut messages: Vec<Message> = Vec::new();
    for step in steps {
        match step {
            Step::User(picks) => messages.push(user(content(picks))),
            Step::Answer { maker, answer, harm } => {
                let answer = harmed(answer.get(&maker.get(makers).answers).clone(), harm);
                calls.extend(answer.tool_calls().cloned());
                messages.push(answer.into());
            }
            Step::Result { call, content: picks, failed } if !calls.is_empty() => {
                messages.push(result(call.get(&calls), content(picks), *failed));
            }
            Step::Result { .. } => {}
        }
    }
    messages.into_iter().map(Arc::new).collect()
}

/// SPEC M15, M16
#[test]
fn any_history_is_accepted_by_any_provider() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("one");
    let targets = runtime.block_on(Targets::start());
    let makers = makers();
    let config = Config {
        cases: 2048,
        failure_persistence: None,
        max_shrink_time: u32::try_from(Duration::from_secs(10).as_millis()).expect("short"),
        ..Config::default()
    };
    let strategy = (steps(), any::<prop::sample::Index>(), any::<bool>());
    TestRunner::new(config)
        .run(&strategy, |(steps, target, same)| {
            let target = target.get(&targets.0);
            let model = if same { MODEL } else { OTHER_MODEL };
            let history = played(&steps, &makers);
            let asked = runtime.block_on(target.ask(model, &history));
            asked.map_err(TestCaseError::fail)
        })
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(targets.0.iter().all(|target| target.entry().api_key.is_some()));
}
