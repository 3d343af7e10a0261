//! Effects: what a call will do to the world, declared before it is done.
//!
//! A tool derives its effects from its final arguments; whoever decides about permission judges
//! them, and a question to a person lists them. This crate never performs or checks one.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// One thing that a call reaches outside the process for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Effect {
    /// What is done.
    pub kind: EffectKind,
    /// To which file or directory, as the arguments name it or as it was resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// With which host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// By running what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argv: Option<Vec<String>>,
}

impl Effect {
    /// Reads a file or directory.
    pub fn read(path: impl Into<PathBuf>) -> Self {
        Self { kind: EffectKind::Read, path: Some(path.into()), host: None, argv: None }
    }

    /// Creates or changes a file.
    pub fn write(path: impl Into<PathBuf>) -> Self {
        Self { kind: EffectKind::Write, path: Some(path.into()), host: None, argv: None }
    }

    /// Does something that cannot be told.
    pub fn unknown() -> Self {
        Self { kind: EffectKind::Unknown, path: None, host: None, argv: None }
    }

    /// Runs a program.
    pub fn execute(argv: Vec<String>) -> Self {
        Self { kind: EffectKind::Execute, path: None, host: None, argv: Some(argv) }
    }
}

/// The kinds of effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EffectKind {
    /// A file or directory is read.
    Read,
    /// A file is created or changed.
    Write,
    /// A file is removed.
    Delete,
    /// A program is run.
    Execute,
    /// A host is contacted.
    Network,
    /// Something that cannot be told from the arguments.
    Unknown,
}

/// What a tool says of a call before it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effects {
    /// The tool does not say. Permission is then always asked for.
    Undeclared,
    /// All of them; an empty list means that nothing outside the process is touched.
    Declared(Vec<Effect>),
}
