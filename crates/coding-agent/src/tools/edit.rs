//! [`Edit`]: replaces pieces of a file, all of them or none.
//!
//! Works on bytes: what is not part of a replaced piece stays identical, whatever its encoding and
//! its line ends. The tool reads, has [`plan`] decide, and writes.

mod closest;
mod locate;
mod plan;
mod splice;

use std::io::Read as _;

use agent::{Effect, Effects, Tool, ToolCall, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use super::atomic_write::{self, Written};
use super::blocking::blocking;
use super::receipt::Receipt;
use super::{regular_file, write};
use crate::grant::{Access, Grant};
use crate::workspace::ResolvedPath;

/// How large an edited file may be: it is held in memory a few times over.
const MAX_EDITED_BYTES: u64 = 64 * 1024 * 1024;

/// Edits files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Edit;

/// What Edit is asked for.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct EditArguments {
    /// File to change.
    pub path: String,
    /// All are located in the file as it is now.
    pub edits: Vec<Replacement>,
}

/// One piece to replace.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Replacement {
    /// Text in the file, without line numbers; must occur exactly once.
    pub old_text: String,
    /// What to put there.
    pub new_text: String,
    /// Replace every occurrence.
    pub replace_all: Option<bool>,
}

impl Tool for Edit {
    type Arguments = EditArguments;

    fn name(&self) -> &str {
        "Edit"
    }

    fn description(&self) -> &str {
        "Replaces pieces of a file: all edits or none. Give enough surrounding lines to make each \
         old_text unique. Line ends are matched loosely and kept as the file has them."
    }

    fn other_names(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("file_path", "path"),
            ("old_string", "old_text"),
            ("new_string", "new_text"),
            ("oldString", "old_text"),
            ("newString", "new_text"),
            ("old_str", "old_text"),
            ("new_str", "new_text"),
            ("oldText", "old_text"),
            ("newText", "new_text"),
        ]
    }

    fn effects(&self, arguments: &EditArguments) -> Effects {
        Effects::Declared(vec![Effect::read(&arguments.path), Effect::write(&arguments.path)])
    }

    fn title(&self, arguments: &EditArguments) -> String {
        format!("Edit {}", arguments.path)
    }

    async fn run(
        &self,
        arguments: EditArguments,
        call: &ToolCall,
    ) -> Result<ToolOutput, ToolError> {
        let grant = Grant::of(call)?;
        let readable = grant.file(&arguments.path, Access::Read)?.clone();
        let writable = grant.file(&arguments.path, Access::Write)?.clone();
        blocking(move || edit(&readable, &writable, &arguments.edits)).await
    }
}

fn edit(
    readable: &ResolvedPath,
    writable: &ResolvedPath,
    edits: &[Replacement],
) -> Result<ToolOutput, ToolError> {
    let shown = &readable.shown;
    let (file, metadata) = regular_file::open(readable)?;
    let too_large = || {
        let limit = MAX_EDITED_BYTES / 1024 / 1024;
        ToolError::failed(format!(
            "{shown} is larger than the {limit} MiB that can be edited; use a command such as sed"
        ))
    };
    if metadata.len() > MAX_EDITED_BYTES {
        return Err(too_large());
    }
    let mut before = Vec::new();
    let read = file.take(MAX_EDITED_BYTES + 1).read_to_end(&mut before);
    read.map_err(|error| regular_file::unreadable(readable, &error))?;
    if before.len() as u64 > MAX_EDITED_BYTES {
        return Err(too_large());
    }
    if let Some(reason) = other_encoding(&before, edits) {
        return Err(ToolError::failed(format!("{shown} is unchanged: {reason}")));
    }
    let plan = plan::plan(&before, edits)
        .map_err(|error| ToolError::failed(format!("{shown} is unchanged: {error}")))?;
    let written = atomic_write::write(&writable.path, &plan.after)
        .map_err(|error| write::failed(writable, &error))?;
    let receipt = Receipt::new(writable.path.clone(), Some(&before), &plan.after);
    let replacements = match plan.replacements {
        1 => "1 replacement".to_owned(),
        count => format!("{count} replacements"),
    };
    let place = match written {
        Written::Created | Written::Replaced => "",
        Written::InPlace => " in place",
    };
    let (added, removed) = (receipt.added, receipt.removed);
    let diff = receipt.shown_diff();
    let text = format!("edited {shown}{place}: {replacements}, +{added} -{removed} lines\n{diff}");
    Ok(ToolOutput::text(text.trim_end()).with_details(receipt.details()))
}

/// Why these edits would mix two encodings in one file, if they would.
fn other_encoding(before: &[u8], edits: &[Replacement]) -> Option<&'static str> {
    if before.starts_with(&[0xff, 0xfe]) || before.starts_with(&[0xfe, 0xff]) {
        return Some("it is UTF-16 text; convert it with `iconv -f UTF-16 -t UTF-8` first");
    }
    // What is ASCII has the same bytes in every encoding that is left.
    (edits.iter().any(|edit| !edit.new_text.is_ascii()) && std::str::from_utf8(before).is_err())
        .then_some(
            "it is not UTF-8 text, and a new_text has characters that its encoding writes \
             otherwise; use a command that knows the encoding, such as `iconv`",
        )
}

#[cfg(test)]
mod tests;
