//! Scripts as files: JSON or TOML, one shape for both.
//!
//! **Invariant:** every error of a file's text says its line and column, and what was expected there.

use std::fs;
use std::path::Path;

use crate::error::ScriptError;
use crate::script::Script;

/// The largest script that is read, in bytes. A script is written by hand or by a test; what is
/// larger is a mistake in the file's name.
pub(crate) const MAX_SCRIPT_BYTES: u64 = 64 * 1024 * 1024;

/// What a script's text is called in errors when it is not a file's.
const UNNAMED: &str = "script";

impl Script {
    /// Reads a script from JSON text.
    ///
    /// # Errors
    /// [`ScriptError::Syntax`], with the place in the text.
    pub fn from_json(text: &str) -> Result<Self, ScriptError> {
        json(UNNAMED, text)
    }

    /// Reads a script from TOML text.
    ///
    /// # Errors
    /// [`ScriptError::Syntax`], with the place in the text.
    pub fn from_toml(text: &str) -> Result<Self, ScriptError> {
        toml(UNNAMED, text)
    }

    /// Reads a script from a file: `.json` and `.toml` by their names, any other by its first
    /// character, which for JSON is a brace.
    ///
    /// # Errors
    /// When the file cannot be read, is too large, or is not a script.
    pub fn read(path: &Path) -> Result<Self, ScriptError> {
        let unreadable = |source| ScriptError::Read { path: path.to_owned(), source };
        let length = fs::metadata(path).map_err(unreadable)?.len();
        if length > MAX_SCRIPT_BYTES {
            return Err(ScriptError::TooLarge { path: path.to_owned(), limit: MAX_SCRIPT_BYTES });
        }
        let text = fs::read_to_string(path).map_err(unreadable)?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let origin = path.display().to_string();
        let is_json = match path.extension().and_then(|extension| extension.to_str()) {
            Some("json") => true,
            Some("toml") => false,
            Some(_) | None => text.trim_start().starts_with('{'),
        };
        if is_json { json(&origin, text) } else { toml(&origin, text) }
    }
}

fn json(origin: &str, text: &str) -> Result<Script, ScriptError> {
    serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let said = error.to_string();
        // The place is said once, in our own form.
        let place = format!(" at line {line} column {column}");
        let message = said.strip_suffix(&place).unwrap_or(&said).to_owned();
        ScriptError::Syntax { origin: origin.to_owned(), line, column, message }
    })
}

fn toml(origin: &str, text: &str) -> Result<Script, ScriptError> {
    toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let before = &text[..text.floor_char_boundary(start)];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let message = error.message().trim().replace('\n', ", ");
        ScriptError::Syntax { origin: origin.to_owned(), line, column, message }
    })
}
