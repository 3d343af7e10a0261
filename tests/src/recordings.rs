//! The recorded streams, which lie outside the repository: in `$CODING_AGENT_SHARED/streams`, else in
//! `../shared/streams` beside the workspace.
//!
//! Owns where they are and how their index reads. Knows nothing of what is done with them.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// One recorded response body.
#[derive(Clone, Debug, Deserialize)]
pub struct Recording {
    /// Its name, which its expected result has too.
    pub name: String,
    /// Who sent it.
    pub provider: String,
    /// The API's name; not every one is decoded here.
    pub api: String,
    /// The framing's name.
    pub framing: String,
    /// The model that was asked for.
    #[serde(default)]
    pub model: Option<String>,
    body_file: String,
}

impl Recording {
    /// The bytes.
    ///
    /// # Panics
    /// When the index names a file that is not there.
    pub fn body(&self) -> Vec<u8> {
        let folder = folder().expect("the folder that the index is in");
        fs::read(folder.join("raw").join(&self.body_file)).expect("a body")
    }
}

/// Where the recorded streams are, if they are anywhere.
pub fn folder() -> Option<PathBuf> {
    let shared = std::env::var_os("CODING_AGENT_SHARED")
        .map(PathBuf::from)
        .unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"));
    Some(shared.join("streams")).filter(|streams| streams.join("index.json").is_file())
}

/// All of them; nothing where there are none.
///
/// # Panics
/// When the index cannot be read.
pub fn all() -> Option<Vec<Recording>> {
    let index = fs::read(folder()?.join("index.json")).expect("index.json");
    Some(serde_json::from_slice(&index).expect("the index"))
}
