//! A coding agent for real repositories: tools behind tower layers, and the program.

mod grant;
mod limit;
mod tools;
mod workspace;

pub use grant::{Access, Grant, GrantBuilder};
pub use limit::{HeadTail, Limit, LimitLayer, MAX_BLOCK_BYTES, MAX_OUTPUT_BYTES, Shaped};
pub use tools::{
    Bash, BashArguments, BashSettings, Edit, EditArguments, Processes, Read, ReadArguments,
    Replacement, Write, WriteArguments,
};
pub use workspace::{PathError, ResolvedPath, Workspace, WorkspaceError};
