//! What a missing file may have been meant to be: a suggestion in words, never acted on.

use std::path::Path;

use agent::ToolError;

use crate::workspace::ResolvedPath;

/// How many names of a directory are looked at: a suggestion is not worth more time than that.
const MAX_LOOKED_AT: usize = 2_000;

/// How many names are suggested: what a model can choose from at a glance.
const MAX_SUGGESTED: usize = 3;

/// How alike a name must be, from 0 to 1: one or two letters of a short name may differ.
const ALIKE: f32 = 0.7;

/// Says that nothing is at the path, and what is near.
pub(super) fn missing(path: &ResolvedPath) -> ToolError {
    let shown = &path.shown;
    let Some((parent, name)) = path.path.parent().zip(path.path.file_name()) else {
        return ToolError::failed(format!("{shown} does not exist"));
    };
    if !parent.is_dir() {
        let there = parent.ancestors().find(|ancestor| ancestor.is_dir());
        let there = there.unwrap_or(Path::new("/")).display();
        return ToolError::failed(format!(
            "{shown} does not exist: its directory does not exist either; {there} is the closest that does"
        ));
    }
    let near = near(parent, &name.to_string_lossy());
    ToolError::failed(match near.is_empty() {
        true => format!("{shown} does not exist"),
        false => {
            let shown_parent = Path::new(shown).parent().unwrap_or(Path::new(""));
            let near: Vec<_> =
                near.iter().map(|name| shown_parent.join(name).display().to_string()).collect();
            format!("{shown} does not exist; near it: {}", near.join(", "))
        }
    })
}

fn near(directory: &Path, name: &str) -> Vec<String> {
    let Ok(entries) = directory.read_dir() else { return Vec::new() };
    let names: Vec<String> = entries
        .take(MAX_LOOKED_AT)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    let lower: Vec<(String, &String)> =
        names.iter().map(|name| (name.to_lowercase(), name)).collect();
    let mut possibilities: Vec<&str> = lower.iter().map(|(lower, _)| lower.as_str()).collect();
    possibilities.sort_unstable();
    possibilities.dedup();
    similar::get_close_matches(name.to_lowercase().as_str(), &possibilities, MAX_SUGGESTED, ALIKE)
        .into_iter()
        .filter_map(|close| {
            lower.iter().find(|(lower, _)| lower == close).map(|(_, name)| (*name).clone())
        })
        .collect()
}
