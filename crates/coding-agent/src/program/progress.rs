//! Progress: what a headless run says on standard error.
//!
//! To a terminal, each turn and call as it happens. Where nobody watches, only what went wrong.

use std::io::{self, Stderr};

use agent::{AbortCause, AgentEvent, EndReason};

use crate::program::render::{Renderer, describe};

/// Says what happens. Nobody is told when standard error cannot be written to.
pub(crate) struct Progress {
    renderer: Renderer<Stderr>,
    watched: bool,
}

impl Progress {
    /// `watched` tells whether a person looks on.
    pub(crate) fn new(watched: bool) -> Self {
        let colour = watched && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { renderer: Renderer::new(io::stderr(), colour), watched }
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
    }

    /// The last word, where the exit code alone would leave questions.
    pub(crate) fn ended(&mut self, reason: &EndReason, unanswered: usize) {
        let line = match reason {
            // Whoever read the output has gone.
            EndReason::Aborted { cause: AbortCause::Host } => return,
            // What failed was said when it failed.
            EndReason::Error { .. } | EndReason::Refusal | EndReason::ContextOverflow => return,
            EndReason::Completed if unanswered == 0 => return,
            EndReason::Completed => format!(
                "note: {unanswered} call{} denied because nobody could be asked; \
                 --permission-mode accept-edits or bypass allows more",
                if unanswered == 1 { " was" } else { "s were" }
            ),
            other => format!("note: {}", describe(other)),
        };
        let _ = self.renderer.line(&line);
    }
}
