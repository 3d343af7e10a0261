//! The names in a directory, for a model that read it as if it were a file.

use agent::{ToolError, ToolOutput};
use serde_json::json;

use crate::tools::regular_file;
use crate::workspace::ResolvedPath;

/// How many names are shown: a page of them; who wants more wants a search.
const MAX_SHOWN: usize = 200;

/// How many names are read in order to sort and count them.
const MAX_READ: usize = 100_000;

pub(super) fn list(path: &ResolvedPath) -> Result<ToolOutput, ToolError> {
    let failed = |error| regular_file::unreadable(path, &error);
    let mut names = Vec::new();
    for entry in path.path.read_dir().map_err(failed)?.take(MAX_READ) {
        let entry = entry.map_err(failed)?;
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let slash = if is_directory { "/" } else { "" };
        names.push(format!("{}{slash}", entry.file_name().to_string_lossy()));
    }
    names.sort_unstable();
    let total = names.len();
    names.truncate(MAX_SHOWN);
    let shown = &path.shown;
    names.push(match total {
        0 => format!("[the directory {shown} is empty]"),
        1 => format!("[directory {shown}: 1 entry]"),
        _ if total > MAX_SHOWN => {
            format!("[directory {shown}: the first {MAX_SHOWN} of {total} entries]")
        }
        _ => format!("[directory {shown}: {total} entries]"),
    });
    let details = json!({"path": path.path, "entries": total});
    Ok(ToolOutput::text(names.join("\n")).with_details(details))
}
