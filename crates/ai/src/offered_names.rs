//! The way back from names on the wire to the names of the tools on offer (SPEC M15).
//!
//! The way there is [`crate::tool_names`].

use std::collections::HashMap;

use crate::event::StreamEvent;
use crate::request::ToolSpec;
use crate::tool_names::wire_name;

/// The tools on offer whose names had to be changed, by the name that they were offered under.
#[derive(Debug, Default)]
pub(crate) struct OfferedNames(HashMap<String, String>);

impl OfferedNames {
    /// The table for a request's tools.
    pub(crate) fn new(tools: &[ToolSpec]) -> Self {
        Self(
            tools
                .iter()
                .map(|tool| (wire_name(&tool.name), tool.name.clone()))
                .filter(|(wire, name)| wire != name)
                .collect(),
        )
    }

    /// Gives a call in `event` their tool's own name.
    pub(crate) fn restore(&self, event: &mut StreamEvent) {
        if self.0.is_empty() {
            return;
        }
        let name = match event {
            StreamEvent::ToolcallStart { name, .. } => name,
            StreamEvent::ToolcallEnd { call, .. } => &mut call.name,
            StreamEvent::Retry { .. }
            | StreamEvent::Start { .. }
            | StreamEvent::TextStart { .. }
            | StreamEvent::TextDelta { .. }
            | StreamEvent::TextEnd { .. }
            | StreamEvent::ThinkingStart { .. }
            | StreamEvent::ThinkingDelta { .. }
            | StreamEvent::ThinkingEnd { .. }
            | StreamEvent::ToolcallDelta { .. }
            | StreamEvent::Opaque { .. }
            | StreamEvent::Done { .. }
            | StreamEvent::Error { .. } => return,
        };
        if let Some(own) = self.0.get(name) {
            name.clone_from(own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SPEC M15
    #[test]
    fn a_call_comes_back_under_its_tools_own_name() {
        let tools = [ToolSpec {
            name: "a.b".into(),
            description: String::new(),
            input_schema: serde_json::json!({}),
        }];
        let mut event =
            StreamEvent::ToolcallStart { index: 0, id: "1".into(), name: wire_name("a.b") };
        OfferedNames::new(&tools).restore(&mut event);
        assert_eq!(
            event,
            StreamEvent::ToolcallStart { index: 0, id: "1".into(), name: "a.b".into() }
        );
    }
}
