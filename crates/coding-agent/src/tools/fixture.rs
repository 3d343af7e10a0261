//! A workspace in a temporary directory, and calls with everything granted, for the tools' tests.

use std::path::{Path, PathBuf};

use agent::{OfferedTool, Tool, ToolCall, ToolOutput};
use serde_json::Value;

use crate::grant::{Access, Grant};
use crate::workspace::Workspace;

pub(super) struct Fixture {
    _directory: tempfile::TempDir,
    pub(super) workspace: Workspace,
}

impl Fixture {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let workspace = Workspace::new(directory.path(), &[]).unwrap();
        Self { _directory: directory, workspace }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.workspace.cwd().join(name)
    }

    pub(super) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(super) fn content(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub(super) fn names(&self, directory: &Path) -> Vec<String> {
        let entries = self.workspace.cwd().join(directory).read_dir().unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// A call that may do everything that its arguments name.
    pub(super) fn call(&self, tool: &str, arguments: Value) -> ToolCall {
        let mut grant = Grant::builder().allow_command();
        if let Some(path) = arguments["path"].as_str() {
            for access in [Access::Read, Access::Write] {
                let resolved = self.workspace.resolve(path).unwrap();
                grant = grant.allow_file(path, resolved, access);
            }
        }
        let mut call = ToolCall::new("call", tool, arguments);
        call.extensions.insert(grant.build());
        call
    }

    pub(super) async fn run(&self, tool: impl Tool, arguments: Value) -> ToolOutput {
        let tool = OfferedTool::new(tool).unwrap();
        let call = self.call(&tool.spec().name, arguments);
        tool.call(call).await.unwrap()
    }
}
