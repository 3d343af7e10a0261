//! [`ViolationWatch`]: marks the end of a stream whose text is a call in disguise (SPEC M18).
//!
//! Keeps the text as it passes, so that a delta costs what it is long, and asks [`find_violation`]
//! once, at the end. Where no tool is offered or a call was really made it keeps nothing.

use crate::event::StreamEvent;
use crate::message::StopReason;
use crate::request::ToolSpec;
use crate::tool_names::wire_name;
use crate::violation::find_violation;

/// How much text is kept. No model's answer is as long; of one that is, the rest is not looked at.
const MAX_TEXT_BYTES: usize = 1024 * 1024;

/// Watches one answer. [`crate::HttpProvider`] has one in each stream; a provider of another kind
/// passes its events through one of its own:
///
/// ```
/// use ai::{StopReason, StreamEvent, ToolSpec, Usage, ViolationWatch};
///
/// let tools = [ToolSpec {
///     name: "Read".into(),
///     description: "reads a file".into(),
///     input_schema: serde_json::json!({"type": "object"}),
/// }];
/// let mut watch = ViolationWatch::new(&tools);
/// let delta = "<invoke name=\"Read\"></invoke>".into();
/// watch.pass(&mut StreamEvent::TextDelta { index: 0, delta });
/// let mut end = StreamEvent::Done {
///     stop_reason: StopReason::Stop,
///     stop_raw: None,
///     usage: Usage::default(),
///     violation: None,
/// };
/// watch.pass(&mut end);
/// assert!(matches!(end, StreamEvent::Done { violation: Some(_), .. }));
/// ```
#[derive(Clone, Debug)]
pub struct ViolationWatch {
    /// Each tool as the model sees it, and by its own name.
    offered: Vec<(String, String)>,
    text: String,
    /// The block that the text's end belongs to.
    block: Option<usize>,
    /// More came than is kept.
    full: bool,
}

impl ViolationWatch {
    /// A watch over the answer to a request that offers these tools.
    pub fn new(tools: &[ToolSpec]) -> Self {
        let offered = tools.iter().map(|tool| (wire_name(&tool.name), tool.name.clone())).collect();
        Self { offered, text: String::new(), block: None, full: false }
    }

    /// Takes note of an event that is about to be handed out, and marks the end that needs it.
    pub fn pass(&mut self, event: &mut StreamEvent) {
        if self.offered.is_empty() {
            return;
        }
        match event {
            StreamEvent::TextDelta { index, delta } => self.keep(*index, delta),
            // An answer that makes a call is none that only writes of one.
            StreamEvent::ToolcallStart { .. }
            | StreamEvent::ToolcallDelta { .. }
            | StreamEvent::ToolcallEnd { .. }
            | StreamEvent::Error { .. } => self.stop(),
            StreamEvent::Done { stop_reason, violation, .. } => {
                if matches!(
                    stop_reason,
                    StopReason::Stop | StopReason::ToolUse | StopReason::Length
                ) && violation.is_none()
                {
                    *violation = self.find();
                }
                self.stop();
            }
            StreamEvent::Retry { .. }
            | StreamEvent::Start { .. }
            | StreamEvent::TextStart { .. }
            | StreamEvent::TextEnd { .. }
            | StreamEvent::ThinkingStart { .. }
            | StreamEvent::ThinkingDelta { .. }
            | StreamEvent::ThinkingEnd { .. }
            | StreamEvent::Opaque { .. } => {}
        }
    }

    fn keep(&mut self, index: usize, delta: &str) {
        self.full |= self.text.len().saturating_add(delta.len()) > MAX_TEXT_BYTES;
        if self.full {
            return;
        }
        // Blocks are apart: what the next one begins with begins a line.
        if self.block.is_some_and(|block| block != index) {
            self.text.push('\n');
        }
        self.block = Some(index);
        self.text.push_str(delta);
    }

    fn stop(&mut self) {
        self.offered = Vec::new();
        self.text = String::new();
    }

    fn find(&self) -> Option<crate::Violation> {
        let names = self.offered.iter().flat_map(|(wire, own)| [wire.as_str(), own.as_str()]);
        let mut found = find_violation(&self.text, &names.collect::<Vec<_>>())?;
        for tool in &mut found.tools {
            if let Some((_, own)) = self.offered.iter().find(|(wire, _)| wire == tool) {
                tool.clone_from(own);
            }
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::{ToolCall, Usage, Violation};

    const CALL: &str = "I look.\n<invoke name=\"Read\">\n</invoke>";

    fn tool(name: &str) -> ToolSpec {
        ToolSpec { name: name.into(), description: String::new(), input_schema: json!({}) }
    }

    fn text(index: usize, delta: &str) -> StreamEvent {
        StreamEvent::TextDelta { index, delta: delta.into() }
    }

    /// What the end of these events is marked with.
    fn watched(
        tools: &[ToolSpec],
        events: impl IntoIterator<Item = StreamEvent>,
        stop_reason: StopReason,
    ) -> Option<Vec<String>> {
        let mut watch = ViolationWatch::new(tools);
        for mut event in events {
            watch.pass(&mut event);
        }
        let usage = Usage::default();
        let mut end = StreamEvent::Done { stop_reason, stop_raw: None, usage, violation: None };
        watch.pass(&mut end);
        let StreamEvent::Done { violation, .. } = end else { panic!("{end:?}") };
        violation.map(|Violation { tools }| tools)
    }

    /// SPEC M18: whatever the pieces are, whatever tools are called on the wire, and only at an end
    /// that is one.
    #[test]
    fn an_end_is_marked_when_the_text_is_a_call() {
        let read = [tool("Read")];
        let found = Some(vec!["Read".to_owned()]);
        let pieces = || CALL.chars().map(|c| text(0, &c.to_string()));
        for stop in [StopReason::Stop, StopReason::ToolUse, StopReason::Length] {
            assert_eq!(watched(&read, pieces(), stop), found, "{stop:?}");
        }
        for stop in [StopReason::Refusal, StopReason::ContextOverflow, StopReason::Error] {
            assert_eq!(watched(&read, pieces(), stop), None, "{stop:?}");
        }
        assert_eq!(watched(&[], pieces(), StopReason::Stop), None, "no tools");
        assert_eq!(watched(&[tool("Write")], pieces(), StopReason::Stop), None, "not offered");
        let blocks = [text(0, "I look"), text(2, "<invoke name=\"Read\"></invoke>")];
        assert_eq!(watched(&read, blocks, StopReason::Stop), found, "a block of its own");
        let wire = format!("<invoke name=\"{}\"></invoke>", wire_name("a.b c"));
        assert_eq!(
            watched(&[tool("a.b c")], [text(0, &wire)], StopReason::Stop),
            Some(vec!["a.b c".to_owned()]),
            "the tool's own name"
        );
    }

    /// SPEC M18: an answer that makes a call is no violation, wherever the call stands.
    #[test]
    fn a_real_call_excuses_the_text() {
        let call = StreamEvent::ToolcallEnd {
            index: 1,
            call: ToolCall::parse("1".into(), "Read".into(), "{}".into()),
        };
        for events in [[text(0, CALL), call.clone()], [call, text(2, CALL)]] {
            assert_eq!(watched(&[tool("Read")], events, StopReason::ToolUse), None);
        }
    }

    /// SPEC M18: what is kept is bounded.
    #[test]
    fn text_beyond_the_bound_is_not_kept() {
        let mut watch = ViolationWatch::new(&[tool("Read")]);
        let piece = "x".repeat(300 * 1024);
        for _ in 0..16 {
            watch.pass(&mut text(0, &piece));
        }
        // Nothing is kept from behind a gap.
        watch.pass(&mut text(0, "y"));
        assert_eq!(watch.text.len(), 3 * piece.len());
    }
}
