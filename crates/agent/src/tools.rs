//! [`Tools`]: the tools of one context, by name.

use std::sync::Arc;

use ai::ToolSpec;

use crate::tool_service::OfferedTool;

/// A set of tools, in the order in which they are offered. Cheap to clone; changing a clone leaves
/// the others as they are.
#[derive(Clone, Debug, Default)]
pub struct Tools {
    tools: Arc<[OfferedTool]>,
    specs: Arc<[ToolSpec]>,
}

impl Tools {
    /// No tools.
    pub fn none() -> Self {
        Self::default()
    }

    /// The tool of this name.
    pub fn get(&self, name: &str) -> Option<&OfferedTool> {
        self.tools.iter().find(|tool| tool.spec().name == name)
    }

    /// The tools, in the order in which they are offered.
    pub fn iter(&self) -> impl Iterator<Item = &OfferedTool> {
        self.tools.iter()
    }

    /// What the model is told of them.
    pub fn specs(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.specs)
    }

    /// Only those tools for which `keep` answers yes.
    #[must_use]
    pub fn filter(&self, keep: impl Fn(&OfferedTool) -> bool) -> Self {
        self.iter().filter(|tool| keep(tool)).cloned().collect()
    }
}

/// Of several tools with one name, the last is kept, in the place of the first.
impl FromIterator<OfferedTool> for Tools {
    fn from_iter<I: IntoIterator<Item = OfferedTool>>(tools: I) -> Self {
        let mut kept: Vec<OfferedTool> = Vec::new();
        for tool in tools {
            match kept.iter_mut().find(|other| other.spec().name == tool.spec().name) {
                Some(other) => *other = tool,
                None => kept.push(tool),
            }
        }
        let specs = kept.iter().map(|tool| ToolSpec::clone(tool.spec())).collect();
        Self { tools: kept.into(), specs }
    }
}
