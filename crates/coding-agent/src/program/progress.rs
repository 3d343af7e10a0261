//! Progress: what a headless run says on standard error.
//!
//! To a terminal, each turn and call as it happens. Where nobody watches, only what went wrong.

use std::io::{self, Stderr};

use agent::{AbortCause, AgentEvent, EndReason, FailureKind};

use crate::program::render::{Renderer, describe, wants_colour};
use crate::program::session::Asked;

/// Says what happens. Nobody is told when standard error cannot be written to.
pub(crate) struct Progress {
    renderer: Renderer<Stderr>,
    watched: bool,
}

impl Progress {
    /// `watched` tells whether a person looks on.
    pub(crate) fn new(watched: bool) -> Self {
        Self { renderer: Renderer::new(io::stderr(), wants_colour(watched)), watched }
    }

    pub(crate) fn event(&mut self, event: &AgentEvent) {
        let shown = match event {
            AgentEvent::Retry { .. } | AgentEvent::Error { .. } => true,
            // The answer itself goes to standard output.
            AgentEvent::MessageUpdate { .. } | AgentEvent::AgentEnd { .. } => false,
            _ => self.watched,
        };
        if shown {
            let _ = self.renderer.event(event);
        }
        if self.watched
            && let AgentEvent::MessageEnd { message } = event
        {
            let _ = self.renderer.between_calls(message);
        }
    }

    /// The last word, where the exit code alone would leave questions.
    pub(crate) fn ended(&mut self, reason: &EndReason, unanswered: usize, asked: &Asked) {
        let line = match reason {
            EndReason::Error { cause: FailureKind::Provider(kind), .. } => {
                match asked.hint(*kind) {
                    Some(hint) => format!("hint: {hint}"),
                    None => return,
                }
            }
            // Whoever read the output has gone.
            EndReason::Aborted { cause: AbortCause::Host } => return,
            // What failed was said when it failed.
            EndReason::Error { .. } | EndReason::Refusal | EndReason::ContextOverflow => return,
            EndReason::Completed if unanswered == 0 => return,
            EndReason::Completed => format!(
                "note: {unanswered} call{} denied because nobody could be asked; what needs asking \
                 depends on --permission-mode and --add-dir",
                if unanswered == 1 { " was" } else { "s were" }
            ),
            EndReason::IterationLimit => {
                "note: the limit of turns was reached (--max-turns, limits.max_turns)".to_owned()
            }
            other => format!("note: {}", describe(other)),
        };
        let _ = self.renderer.line(&line);
    }
}
