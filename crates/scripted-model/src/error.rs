//! [`ScriptError`]: why there is no script.

use std::io;
use std::path::PathBuf;

/// Why there is no script.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The file could not be read.
    #[error("cannot read the script {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is larger than any script.
    #[error("the script {} is larger than {limit} bytes", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The bound, in bytes.
        limit: u64,
    },
    /// The text is not a script.
    #[error("{origin}:{line}:{column}: {message}")]
    Syntax {
        /// The file, or `script` for text that came from none.
        origin: String,
        /// From 1.
        line: usize,
        /// From 1, in characters for TOML and in bytes for JSON.
        column: usize,
        /// What is wrong and what was expected.
        message: String,
    },
    /// No script has this name.
    #[error(
        "no script is named `{name}`; there are {}, and a file is given as ./FILE or /FILE",
        crate::builtin::NAMES.join(", ")
    )]
    UnknownName {
        /// What was asked for.
        name: String,
    },
}
