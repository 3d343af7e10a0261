//! [`Write`]: gives a file a whole new content.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use agent::{Effect, Effects, Tool, ToolCall, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use super::atomic_write::{self, WriteError, Written};
use super::blocking::blocking;
use super::receipt::Receipt;
use super::regular_file::{self, Found};
use crate::grant::{Access, Grant};
use crate::workspace::ResolvedPath;

/// How large an overwritten file may be to be read for the receipt. A larger one is not overwritten:
/// its receipt could not tell what it was.
const MAX_OVERWRITTEN_BYTES: u64 = 256 * 1024 * 1024;

/// Creates and overwrites files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Write;

/// What Write is asked for.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct WriteArguments {
    /// File to create or overwrite.
    pub path: String,
    /// Its whole new content.
    pub content: String,
}

impl Tool for Write {
    type Arguments = WriteArguments;

    fn name(&self) -> &str {
        "Write"
    }

    fn description(&self) -> &str {
        "Creates a file, or replaces its whole content, with the directories it needs. To change \
         part of a file use Edit."
    }

    fn other_names(&self) -> &'static [(&'static str, &'static str)] {
        &[("file_path", "path")]
    }

    fn effects(&self, arguments: &WriteArguments) -> Effects {
        Effects::Declared(vec![Effect::write(&arguments.path)])
    }

    fn title(&self, arguments: &WriteArguments) -> String {
        format!("Write {}", arguments.path)
    }

    async fn run(
        &self,
        arguments: WriteArguments,
        call: &ToolCall,
    ) -> Result<ToolOutput, ToolError> {
        let path = Grant::of(call)?.file(&arguments.path, Access::Write)?.clone();
        if ["/", "/.", "/.."].iter().any(|ending| arguments.path.ends_with(ending)) {
            let message = format!("{} is a directory's name: name the file in it", arguments.path);
            return Err(ToolError::failed(message));
        }
        blocking(move || write(&path, arguments.content.as_bytes())).await
    }
}

fn write(path: &ResolvedPath, content: &[u8]) -> Result<ToolOutput, ToolError> {
    let shown = &path.shown;
    let before = before(path)?;
    let directories = Directories::create(path.path.parent().unwrap_or(Path::new("/")))
        .map_err(|error| ToolError::failed(format!("cannot write {shown}: {error}")))?;
    let written = atomic_write::write(&path.path, content).map_err(|error| failed(path, &error))?;
    directories.keep();
    let lines = content.split_inclusive(|&byte| byte == b'\n').count();
    let lines = format!("{lines} {}", if lines == 1 { "line" } else { "lines" });
    let bytes = content.len();
    let text = match written {
        Written::Created => format!("created {shown}: {lines}, {bytes} bytes"),
        Written::Replaced => format!("overwrote {shown}: {lines}, {bytes} bytes"),
        Written::InPlace => format!("overwrote {shown} in place: {lines}, {bytes} bytes"),
    };
    let receipt = Receipt::new(path.path.clone(), before.as_deref(), content);
    Ok(ToolOutput::text(text).with_details(receipt.details()))
}

/// Why a file could not be written, for the model.
pub(super) fn failed(path: &ResolvedPath, error: &WriteError) -> ToolError {
    ToolError::failed(format!("cannot write {}: {error}", path.shown))
}

fn before(path: &ResolvedPath) -> Result<Option<Vec<u8>>, ToolError> {
    let shown = &path.shown;
    let unreadable = |error| regular_file::unreadable(path, &error);
    match regular_file::find(&path.path).map_err(unreadable)? {
        Found::File(file, metadata) if metadata.len() <= MAX_OVERWRITTEN_BYTES => {
            let mut before = Vec::new();
            file.take(MAX_OVERWRITTEN_BYTES).read_to_end(&mut before).map_err(unreadable)?;
            Ok(Some(before))
        }
        Found::File(_, metadata) => Err(ToolError::failed(format!(
            "{shown} has {} bytes, too many to be overwritten; remove it first",
            metadata.len()
        ))),
        Found::Directory => Err(failed(path, &WriteError::IsDirectory)),
        Found::Missing => Ok(None),
        Found::Special(_) => Err(failed(path, &WriteError::Special)),
    }
}

/// The directories made for a file, taken away again unless they are kept.
struct Directories(Vec<PathBuf>);

impl Directories {
    fn create(directory: &Path) -> io::Result<Self> {
        let missing: Vec<_> =
            directory.ancestors().take_while(|directory| !directory.exists()).collect();
        let mut created = Self(Vec::new());
        for directory in missing.into_iter().rev() {
            match std::fs::create_dir(directory) {
                Ok(()) => created.0.push(directory.to_owned()),
                // Somebody else made it; so they keep it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(created)
    }

    fn keep(mut self) {
        for directory in std::mem::take(&mut self.0) {
            // The file is there and synced; a name that is not yet on disk is no failure of it.
            let _ = directory.parent().map(atomic_write::sync_directory);
        }
    }
}

impl Drop for Directories {
    fn drop(&mut self) {
        for directory in self.0.iter().rev() {
            // One that is not empty any more is somebody else's now.
            let _ = std::fs::remove_dir(directory);
        }
    }
}

#[cfg(test)]
mod tests;
