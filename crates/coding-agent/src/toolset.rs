//! The product's own tools, each inside the whole onion.

use std::sync::Arc;

use agent::{InvalidSchema, OfferedTool, Tools};

use crate::stack::Stack;
use crate::tools::{Bash, BashSettings, Edit, Processes, Read, Write};
use crate::workspace::Workspace;

/// Read, Edit, Write and Bash for a session in `workspace`. The session's commands are kept in
/// `processes`, whose owner ends them.
///
/// # Errors
/// When a tool's schema cannot be compiled, which is a defect.
pub fn builtin_tools(
    stack: &Stack,
    workspace: &Arc<Workspace>,
    settings: BashSettings,
    processes: &Processes,
) -> Result<Tools, InvalidSchema> {
    let bash = Bash::new(workspace.cwd(), settings, processes.clone());
    let tools = [
        OfferedTool::new(Read)?,
        OfferedTool::new(Edit)?,
        OfferedTool::new(Write)?,
        OfferedTool::new(bash)?,
    ];
    Ok(tools.into_iter().map(|tool| stack.around(tool)).collect())
}
