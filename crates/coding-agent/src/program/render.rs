//! Rendering: an agent's events as plain lines for a person, with colour where it is wanted.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use agent::{AgentEvent, EndReason, MessageHead, ToolOutput};
use ai::{Message, StreamEvent};

/// Lines of a tool's output that are shown; a person who wants more looks at the thing itself.
const SHOWN_LINES: usize = 12;

/// Characters of one such line.
const SHOWN_COLUMNS: usize = 100;

const DIM: &str = "2";
const BOLD: &str = "1";
const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const CYAN: &str = "36";

/// Writes events as lines.
pub(crate) struct Renderer<W> {
    out: W,
    colour: bool,
    /// Text is being streamed, and its line is not ended yet.
    streaming: bool,
    turns: u32,
    /// Of the calls that are at work, by their ids.
    titles: HashMap<Arc<str>, String>,
}

impl<W: Write> Renderer<W> {
    pub(crate) fn new(out: W, colour: bool) -> Self {
        Self { out, colour, streaming: false, turns: 0, titles: HashMap::new() }
    }

    /// A heading of one's own.
    pub(crate) fn heading(&mut self, text: &str) -> io::Result<()> {
        let text = self.paint(BOLD, text);
        writeln!(self.out, "{text}")?;
        self.out.flush()
    }

    /// A line of one's own.
    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{text}")?;
        self.out.flush()
    }

    /// Shows an event, if there is anything to show of it.
    pub(crate) fn event(&mut self, event: &AgentEvent) -> io::Result<()> {
        match event {
            AgentEvent::TurnStart { turn, .. } => {
                self.turns = *turn;
                let title = self.paint(CYAN, &format!("turn {turn}"));
                let rule = self.paint(DIM, &"─".repeat(60));
                writeln!(self.out, "\n{title} {rule}")?;
            }
            AgentEvent::MessageStart { message: MessageHead::Whole(message) } => {
                if let Message::User(_) = &**message {
                    self.labelled("user", CYAN, &text_of(message))?;
                }
            }
            AgentEvent::MessageUpdate { event, .. } => self.update(event)?,
            AgentEvent::MessageEnd { .. } => self.end_text()?,
            AgentEvent::MessageDiscard { .. } => {
                self.end_text()?;
                let note = self.paint(YELLOW, "  (that answer broke off and is taken back)");
                writeln!(self.out, "{note}")?;
            }
            AgentEvent::ToolExecutionStart { tool_call_id, title, .. } => {
                self.titles.insert(Arc::clone(tool_call_id), title.clone());
                let arrow = self.paint(YELLOW, "→");
                writeln!(self.out, "  {arrow} {}", printable(title))?;
            }
            AgentEvent::ToolExecutionEnd { tool_call_id, tool_name, result, is_error } => {
                // Parallel calls of one tool end in any order; the title says which this was.
                let title = self.titles.remove(tool_call_id);
                self.tool_end(title.as_deref().unwrap_or(tool_name), result, *is_error)?;
            }
            AgentEvent::Retry { attempt, after_ms, kind, message, .. } => {
                self.end_text()?;
                let wait = f64::from(u32::try_from(*after_ms).unwrap_or(u32::MAX)) / 1000.0;
                let why = if message.is_empty() { kind.as_str() } else { message };
                let note = format!(
                    "retry: attempt {attempt} failed ({}); next in {wait:.1} s",
                    printable(why)
                );
                let note = self.paint(YELLOW, &note);
                writeln!(self.out, "{note}")?;
            }
            AgentEvent::Error { kind, message, .. } => {
                let label = self.paint(RED, "error:");
                writeln!(self.out, "{label} {kind}: {}", printable(message))?;
            }
            AgentEvent::AgentEnd { reason, usage, .. } => {
                let mark = match reason {
                    EndReason::Completed => self.paint(GREEN, "■"),
                    _ => self.paint(RED, "■"),
                };
                let turns = self.turns;
                let line = format!(
                    "{} · {turns} turn{} · {} tokens in, {} out",
                    describe(reason),
                    if turns == 1 { "" } else { "s" },
                    usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write),
                    usage.output,
                );
                writeln!(self.out, "\n{mark} {line}")?;
            }
            _ => {}
        }
        self.out.flush()
    }

    fn update(&mut self, event: &StreamEvent) -> io::Result<()> {
        match event {
            StreamEvent::TextStart { .. } => {
                let label = self.paint(GREEN, "assistant");
                write!(self.out, "  {label}  ")?;
                self.streaming = true;
            }
            StreamEvent::TextDelta { delta, .. } => {
                // Continued lines stand below the first.
                write!(self.out, "{}", printable(delta).replace('\n', "\n             "))?;
                self.streaming = true;
            }
            StreamEvent::TextEnd { .. } => self.end_text()?,
            _ => {}
        }
        Ok(())
    }

    fn end_text(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.streaming) {
            writeln!(self.out)?;
        }
        Ok(())
    }

    /// What the model says before its calls. The answer itself is printed elsewhere.
    pub(crate) fn between_calls(&mut self, message: &Message) -> io::Result<()> {
        let Message::Assistant(answer) = message else { return Ok(()) };
        let text = answer.text();
        if answer.tool_calls().next().is_none() || text.trim().is_empty() {
            return Ok(());
        }
        self.labelled("assistant", GREEN, &text)?;
        self.out.flush()
    }

    fn labelled(&mut self, label: &str, colour: &str, text: &str) -> io::Result<()> {
        let label = self.paint(colour, label);
        writeln!(self.out, "  {label}  {}", printable(text).replace('\n', "\n        "))
    }

    fn tool_end(&mut self, name: &str, output: &ToolOutput, is_error: bool) -> io::Result<()> {
        let mark = if is_error { self.paint(RED, "✗") } else { self.paint(GREEN, "✓") };
        writeln!(self.out, "  {mark} {}", printable(name))?;
        // A change is shown as what it changed, anything else as what the model reads of it.
        let text = match output.details.get("diff").and_then(|diff| diff.as_str()) {
            Some(diff) => diff.to_owned(),
            None => output.content_text(),
        };
        let text = printable(&text);
        let mut lines = text.lines();
        for line in lines.by_ref().take(SHOWN_LINES) {
            let shown: String = expand_tabs(line).chars().take(SHOWN_COLUMNS).collect();
            let colour = match line.as_bytes().first() {
                Some(b'+') => GREEN,
                Some(b'-') => RED,
                _ => DIM,
            };
            let shown = self.paint(colour, &shown);
            writeln!(self.out, "      {shown}")?;
        }
        let more = lines.count();
        if more > 0 {
            let note = self.paint(DIM, &format!("… {more} more lines"));
            writeln!(self.out, "      {note}")?;
        }
        Ok(())
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Whether colour is wanted on a terminal, or anywhere else.
pub(crate) fn wants_colour(is_terminal: bool) -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    is_terminal && set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb")
}

/// Tabs as spaces: behind an indent of our own the terminal's stops are not the text's.
fn expand_tabs(line: &str) -> String {
    const STOP: usize = 8;
    let mut expanded = String::with_capacity(line.len());
    let mut column = 0;
    for c in line.chars() {
        let width = if c == '\t' { STOP - column % STOP } else { 1 };
        if c == '\t' {
            expanded.extend(std::iter::repeat_n(' ', width));
        } else {
            expanded.push(c);
        }
        column += width;
    }
    expanded
}

/// Why a run ended, in words for a person.
pub(crate) fn describe(reason: &EndReason) -> String {
    match reason {
        EndReason::Completed => "completed".to_owned(),
        EndReason::MaxTokens => "an answer was cut by the limit of output tokens".to_owned(),
        EndReason::Blocked { message } => format!("blocked: {message}"),
        EndReason::Aborted { .. } => "cancelled".to_owned(),
        EndReason::Error { cause, .. } => format!("failed ({cause})"),
        EndReason::ContextOverflow => "the model's context window is full".to_owned(),
        EndReason::Refusal => "the model refused".to_owned(),
        EndReason::IterationLimit => "the limit of turns was reached".to_owned(),
        EndReason::Interrupted => "interrupted".to_owned(),
        _ => "ended".to_owned(),
    }
}

fn text_of(message: &Message) -> String {
    message.content().iter().filter_map(|block| block.as_text()).collect()
}

/// Text without characters that a terminal obeys instead of showing them: what a model or a file says
/// must not move the cursor, change the title or hide text.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .filter(|c| !matches!(c, '\r' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
        .map(|c| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_tabs_stand_under_each_other() {
        let shown = ["9\t}", "10\t", "11\tfn x", "\ta\tb"].map(expand_tabs);
        assert_eq!(shown, ["9       }", "10      ", "11      fn x", "        a       b"]);
    }

    #[test]
    fn a_terminal_is_not_commanded_by_what_is_shown() {
        assert_eq!(printable("a\x1b[2Jb\u{9b}c\u{202e}d\te\r\n"), "a\u{fffd}[2Jb\u{fffd}cd\te\n");
    }
}
