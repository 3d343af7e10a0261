//! `-p`: one prompt, worked on without asking anybody.

use std::io::IsTerminal;
use std::sync::Arc;

use agent::{
    AgentContext, AgentEvent, AgentLoopConfig, CancelGrace, EndReason, MAX_MID_ANSWER_RETRIES,
    MachineLimits, Run, RunOutcome, Tools, agent_loop,
};
use ai::{Message, Origin, Usage, UserMessage};
use coding_agent::system_prompt;
use futures::{FutureExt, StreamExt};
use serde::Serialize;
use serde_json::json;

use crate::program::cli::{Cli, OutputFormat};
use crate::program::exit::Exit;
use crate::program::failure::Failure;
use crate::program::output::{Output, cancel_without_reader};
use crate::program::progress::Progress;
use crate::program::prompt;
use crate::program::render::printable;
use crate::program::session::{ChosenModel, Session};
use crate::program::signals::{Signals, cancel_on_signals};

/// Works on the prompt of the command line.
pub(crate) async fn run(cli: &Cli) -> Result<Exit, Failure> {
    if let (Some(_), Some(surplus)) = (&cli.prompt, &cli.interactive_prompt) {
        return Err(Failure::usage(format!("there is one prompt, and `{surplus}` comes after it"))
            .hint("a prompt of several words needs quotes: -p \"what to do\""));
    }
    let Some(argument) = &cli.prompt else {
        return Err(Failure::usage("there is no terminal interface yet")
            .hint("coding-agent -p \"what to do\", or coding-agent demo to see it work"));
    };
    let mut session = Session::open(&cli.session)?;
    session.check_mode()?;
    session.report_notes();
    if let Some(turns) = cli.max_turns {
        session.config.max_turns = turns;
    }
    let prompt = prompt::read(argument)?;
    let tools = offered(&session.tools, cli)?;
    let model = session.model().await?;
    let appended = cli.append_system_prompt.as_deref();
    let context = AgentContext {
        system_prompt: system_prompt(session.workspace.cwd(), appended).into(),
        tools,
        ..AgentContext::default()
    };
    let progress = Progress::new(std::io::stderr().is_terminal());
    work(&session, &model, context, prompt, cli.output_format, progress).await
}

/// Runs the model and prints in the chosen format.
pub(crate) async fn work(
    session: &Session,
    model: &ChosenModel,
    context: AgentContext,
    prompt: String,
    format: OutputFormat,
    mut progress: Progress,
) -> Result<Exit, Failure> {
    let id = uuid::Uuid::now_v7().to_string();
    let offered = context.tools.clone();
    let signals = Signals::listen()?;
    let run = start(session, model, context, prompt);
    let run = match format {
        OutputFormat::StreamJson => run,
        OutputFormat::Text | OutputFormat::Json => run.without_message_updates(),
    };
    let _signals = cancel_on_signals(
        signals,
        run.cancel(),
        session.processes.clone(),
        session.config.cancel_grace,
    );
    cancel_without_reader(run.cancel());
    let mut printer = Printer { output: Output::new(), format };
    printer.session(&id, session, model, &offered)?;
    let outcome = follow(run, &mut printer, &mut progress).await?;
    let unanswered = session.permission.unanswered();
    printer.outcome(&id, &outcome, model.spend.spent_usd())?;
    progress.ended(&outcome.ended.reason, unanswered, &model.asked);
    Ok(Exit::of_run(&outcome.ended.reason, unanswered))
}

/// Runs the model and hands each event to `see`.
pub(crate) async fn show(
    session: &Session,
    model: &ChosenModel,
    context: AgentContext,
    prompt: String,
    mut see: impl FnMut(&AgentEvent) -> Result<(), Failure>,
) -> Result<Exit, Failure> {
    let signals = Signals::listen()?;
    let mut run = start(session, model, context, prompt);
    let _signals = cancel_on_signals(
        signals,
        run.cancel(),
        session.processes.clone(),
        session.config.cancel_grace,
    );
    cancel_without_reader(run.cancel());
    while let Some(event) = run.next().await {
        see(&event)?;
    }
    let outcome = run.result().await;
    Ok(Exit::of_run(&outcome.reason, session.permission.unanswered()))
}

fn start(session: &Session, model: &ChosenModel, context: AgentContext, prompt: String) -> Run {
    let mut config = AgentLoopConfig::new(model.model.clone());
    config.thinking = session.config.thinking;
    config.limits = MachineLimits {
        max_turns: Some(session.config.max_turns),
        // Whoever allows one attempt does not pay for four.
        mid_answer_retries: MAX_MID_ANSWER_RETRIES
            .min(session.config.retry_attempts.saturating_sub(1)),
    };
    config.cancel_grace = CancelGrace::After(session.config.cancel_grace);
    config.scheduling.max_parallel = session.config.max_parallel_tool_calls;
    agent_loop(vec![UserMessage::text(prompt, Origin::User)], context, config)
}

/// What was counted while the run went on.
struct Followed {
    ended: RunOutcome,
    turns: u32,
    error: Option<serde_json::Value>,
}

/// Reads the run to its end. A reader of standard output that goes away cancels it quietly: the run
/// still closes its calls, and what the program ends with is that failure.
async fn follow(
    mut run: Run,
    printer: &mut Printer,
    progress: &mut Progress,
) -> Result<Followed, Failure> {
    let mut turns = 0;
    let mut error = None;
    let mut broken = None;
    loop {
        // Written in one piece while events are there, and shown before waiting for more.
        let event = match run.next().now_or_never() {
            Some(event) => event,
            None => {
                if broken.is_none() {
                    broken = printer.output.flush().err();
                }
                run.next().await
            }
        };
        let Some(event) = event else { break };
        progress.event(&event);
        match &event {
            AgentEvent::TurnStart { .. } => turns += 1,
            AgentEvent::Error { kind, message, .. } => {
                error = Some(json!({"kind": kind, "message": message}));
            }
            _ => {}
        }
        if broken.is_none() {
            broken = printer.event(&event).err();
        }
        if broken.is_some() {
            run.cancel().cancel(agent::AbortCause::Host);
        }
    }
    let ended = run.result().await;
    match broken {
        Some(failure) => Err(failure),
        None => Ok(Followed { ended, turns, error }),
    }
}

struct Printer {
    output: Output,
    format: OutputFormat,
}

impl Printer {
    fn session(
        &mut self,
        id: &str,
        session: &Session,
        model: &ChosenModel,
        offered: &Tools,
    ) -> Result<(), Failure> {
        if self.format != OutputFormat::StreamJson {
            return Ok(());
        }
        let tools: Vec<&str> = offered.iter().map(|tool| tool.spec().name.as_str()).collect();
        self.output.json(&json!({
            "type": "session",
            "id": id,
            "cwd": session.workspace.cwd(),
            "model": session.config.model,
            "api": model.model.api(),
            "permission_mode": session.config.permission_mode,
            "tools": tools,
            "version": env!("CARGO_PKG_VERSION"),
        }))?;
        self.output.json(&json!({"type": "agent_status", "status": "running"}))
    }

    fn event(&mut self, event: &AgentEvent) -> Result<(), Failure> {
        match self.format {
            OutputFormat::StreamJson => self.output.json(event),
            OutputFormat::Text | OutputFormat::Json => Ok(()),
        }
    }

    fn outcome(
        &mut self,
        id: &str,
        followed: &Followed,
        cost_usd: Option<f64>,
    ) -> Result<(), Failure> {
        let outcome = &followed.ended;
        match self.format {
            OutputFormat::Text => {
                let text = last_text(outcome);
                // Files and pipes get the answer as it is.
                let obeyed = std::io::stdout().is_terminal();
                self.output.text(&if obeyed { printable(&text) } else { text })?;
            }
            OutputFormat::Json => self.output.json(&Summary {
                session_id: id,
                reason: &outcome.reason,
                text: last_text(outcome),
                turns: followed.turns,
                usage: outcome.usage,
                cost_usd,
                messages: &outcome.messages,
                error: followed.error.as_ref(),
            })?,
            OutputFormat::StreamJson => {
                let status =
                    json!({"type": "agent_status", "status": "idle", "cost_usd": cost_usd});
                self.output.json(&status)?;
            }
        }
        self.output.flush()
    }
}

/// What `--output-format json` prints.
#[derive(Serialize)]
struct Summary<'a> {
    session_id: &'a str,
    reason: &'a EndReason,
    text: String,
    turns: u32,
    usage: Usage,
    /// Of every request, also of attempts that failed; null where a price is not known.
    cost_usd: Option<f64>,
    messages: &'a [Arc<Message>],
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a serde_json::Value>,
}

/// The text of the last answer that has any.
fn last_text(outcome: &RunOutcome) -> String {
    let texts = outcome.messages.iter().rev().filter_map(|message| match &**message {
        Message::Assistant(answer) => Some(answer.text()),
        Message::User(_) | Message::ToolResult(_) => None,
    });
    texts.into_iter().find(|text| !text.trim().is_empty()).unwrap_or_default()
}

/// The tools that the options leave. A name that is no tool's is a mistake and is said.
fn offered(tools: &Tools, cli: &Cli) -> Result<Tools, Failure> {
    let named = cli.allowed_tools.iter().flatten().chain(&cli.disallowed_tools);
    for name in named {
        if tools.get(name.trim()).is_none() {
            let known: Vec<&str> = tools.iter().map(|tool| tool.spec().name.as_str()).collect();
            return Err(Failure::usage(format!("there is no tool `{}`", name.trim()))
                .hint(format!("the tools are {}", known.join(", "))));
        }
    }
    let lists = |list: &[String], name: &str| list.iter().any(|listed| listed.trim() == name);
    Ok(tools.filter(|tool| {
        let name = tool.spec().name.as_str();
        cli.allowed_tools.as_ref().is_none_or(|list| lists(list, name))
            && !lists(&cli.disallowed_tools, name)
    }))
}
