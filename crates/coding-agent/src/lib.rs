//! A coding agent for real repositories: its tools, and the layers around them.
//!
//! [`Stack`] composes the onion that every call goes through; [`builtin_tools`] are the tools inside
//! it. This is the only crate that touches a workspace, processes, permissions and the user's
//! configuration; the loop that calls the tools is `agent`'s.
//!
//! ```
//! use std::sync::Arc;
//!
//! use agent::{Nobody, ToolCall};
//! use coding_agent::{
//!     BashSettings, Credentials, ExtensionLayer, LimitLayer, Permission, PermissionMode, Policy,
//!     Processes, Stack, Workspace, builtin_tools,
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let directory = tempfile::tempdir()?;
//! std::fs::write(directory.path().join("notes.md"), "remember the milk\n")?;
//!
//! let workspace = Arc::new(Workspace::new(directory.path(), &[])?);
//! let policy = Policy { mode: PermissionMode::ReadOnly, credentials: Credentials::default() };
//! let stack = Stack {
//!     extensions: ExtensionLayer::default(),
//!     permission: Permission::new(Arc::clone(&workspace), policy, Arc::new(Nobody)),
//!     limit: LimitLayer::default(),
//! };
//! let tools = builtin_tools(&stack, &workspace, BashSettings::default(), &Processes::default())?;
//!
//! let read = tools.get("Read").ok_or("Read is built in")?;
//! let call = ToolCall::new("call_1", "Read", serde_json::json!({"path": "notes.md"}));
//! assert!(read.call(call).await?.content_text().contains("remember the milk"));
//!
//! let write = tools.get("Write").ok_or("Write is built in")?;
//! let arguments = serde_json::json!({"path": "notes.md", "content": ""});
//! assert!(write.call(ToolCall::new("call_2", "Write", arguments)).await?.is_error);
//! # Ok(())
//! # }
//! ```

pub mod config;
mod directories;
mod extension_layer;
mod grant;
pub mod keys;
mod limit;
mod model_choice;
mod model_lists;
mod permission;
mod stack;
mod system_prompt;
mod tools;
mod toolset;
mod workspace;

pub use directories::{Directories, project_config_file};
pub use extension_layer::{ExtensionLayer, ExtensionService};
pub use grant::{Access, Grant, GrantBuilder};
pub use limit::{HeadTail, Limit, LimitLayer, MAX_BLOCK_BYTES, MAX_OUTPUT_BYTES, Shaped};
pub use model_choice::{
    FoundProvider, ModelError, ModelName, SCRIPTED_PROVIDER, key_account, key_variables,
    known_models, provider_entry, provider_names,
};
pub use model_lists::ModelLists;
pub use permission::{
    Credentials, Judged, Judgement, Permission, PermissionLayer, PermissionMode, PermissionService,
    Policy, Reason, ReasonSource, UnknownMode, Verdict,
};
pub use stack::Stack;
pub use system_prompt::system_prompt;
pub use tools::{
    Bash, BashArguments, BashSettings, Edit, EditArguments, Processes, Read, ReadArguments,
    Replacement, Write, WriteArguments,
};
pub use toolset::builtin_tools;
pub use workspace::{PathError, ResolvedPath, Workspace, WorkspaceError};
