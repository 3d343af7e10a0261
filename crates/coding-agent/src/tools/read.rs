//! [`Read`]: a file's text with line numbers, a picture, or the names in a directory.
//!
//! Owns what a model sees of a file: line numbers, limits, the footer that says what is left and
//! how to get it. A file is streamed: a huge one costs no more than the lines that are asked for
//! and those before them.

mod directory;
mod image;
mod lines;

use std::fs::{File, Metadata};
use std::io::{BufRead, BufReader};

use agent::{Effect, Effects, ExecutionMode, Tool, ToolCall, ToolError, ToolOutput};
use ai::ToolErrorKind;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use self::lines::{MAX_LINES, Window};
use super::blocking::blocking;
use super::near_names;
use super::regular_file::{self, Found};
use crate::grant::{Access, Grant};
use crate::workspace::ResolvedPath;

/// How much of a file is looked at to tell text from other things. Reading starts with one buffer
/// of this size.
const BUFFER_BYTES: usize = 64 * 1024;

/// How far into a file a NUL byte makes it no text: what `grep` and `git` look at, roughly.
const BINARY_PROBE_BYTES: usize = 8_000;

/// Reads files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Read;

/// What Read is asked for.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct ReadArguments {
    /// File or directory.
    pub path: String,
    /// First line, from 1.
    pub offset: Option<u64>,
    /// How many lines, at most 2000.
    pub limit: Option<u64>,
}

impl Tool for Read {
    type Arguments = ReadArguments;

    fn name(&self) -> &str {
        "Read"
    }

    fn description(&self) -> &str {
        "Reads a text file as `number<TAB>line`, an image, or a directory's names. The last line \
         says what is left; go on with offset. Line numbers are not part of the file."
    }

    fn other_names(&self) -> &'static [(&'static str, &'static str)] {
        &[("file_path", "path")]
    }

    fn execution_mode(&self, _: &ReadArguments) -> ExecutionMode {
        ExecutionMode::Parallel
    }

    fn effects(&self, arguments: &ReadArguments) -> Effects {
        Effects::Declared(vec![Effect::read(&arguments.path)])
    }

    fn title(&self, arguments: &ReadArguments) -> String {
        format!("Read {}", arguments.path)
    }

    async fn run(
        &self,
        arguments: ReadArguments,
        call: &ToolCall,
    ) -> Result<ToolOutput, ToolError> {
        let path = Grant::of(call)?.file(&arguments.path, Access::Read)?.clone();
        let cancel = call.cancel.clone();
        let window = Window {
            // A model that counts from 0 means the first line.
            offset: arguments.offset.unwrap_or(1).max(1),
            limit: arguments.limit.unwrap_or(MAX_LINES).clamp(1, MAX_LINES),
        };
        blocking(move || read(&path, window, &cancel)).await
    }
}

fn read(
    path: &ResolvedPath,
    window: Window,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    match regular_file::find(&path.path).map_err(|error| regular_file::unreadable(path, &error))? {
        Found::File(file, metadata) => read_file(path, file, &metadata, window, cancel),
        Found::Directory => directory::list(path),
        Found::Missing => Err(near_names::missing(path)),
        Found::Special(kind) => Err(regular_file::special(path, kind)),
    }
}

fn read_file(
    path: &ResolvedPath,
    file: File,
    metadata: &Metadata,
    window: Window,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let shown = &path.shown;
    let failed = |error| match cancel.is_cancelled() {
        true => ToolError::new(ToolErrorKind::Aborted, "cancelled"),
        false => regular_file::unreadable(path, &error),
    };
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, file);
    let start = reader.fill_buf().map_err(failed)?;
    if let Some(format) = image::format(start) {
        return image::show(path, format, reader, metadata.len());
    }
    if let Some(reason) = not_text(start) {
        return Err(ToolError::failed(format!("{shown} {reason}")));
    }
    let excerpt = lines::excerpt(&mut reader, window, metadata.len(), cancel).map_err(failed)?;
    let details = json!({
        "path": path.path,
        "first_line": window.offset,
        "lines": excerpt.shown_lines(),
        "total_lines": excerpt.total_lines(),
    });
    if let Some(total) = excerpt.past_end() {
        let offset = window.offset;
        let lines = if total == 1 { "line" } else { "lines" };
        let message = format!("offset {offset} is past the end: {shown} has {total} {lines}");
        return Err(ToolError::failed(message).with_details(details));
    }
    Ok(ToolOutput::text(excerpt.with_footer(window)).with_details(details))
}

/// Why this is not shown as text, if it is not.
fn not_text(start: &[u8]) -> Option<&'static str> {
    if start.starts_with(b"%PDF-") {
        return Some("is a PDF; convert it with a command such as `pdftotext FILE -`");
    }
    if start.starts_with(&[0xff, 0xfe]) || start.starts_with(&[0xfe, 0xff]) {
        return Some("is UTF-16 text; convert it with `iconv -f UTF-16 -t UTF-8 FILE`");
    }
    let probe = &start[..start.len().min(BINARY_PROBE_BYTES)];
    memchr::memchr(0, probe).map(|_| "is a binary file; look at it with `file`, `xxd` or `strings`")
}

#[cfg(test)]
mod tests;
