//! Standard output: lines of JSON and text, for readers that may go away.

use std::io::{self, BufWriter, StdoutLock, Write};

use serde::Serialize;

use crate::program::failure::Failure;

/// Writes to standard output. Nothing is seen before [`Output::flush`].
pub(crate) struct Output(BufWriter<StdoutLock<'static>>);

impl Output {
    pub(crate) fn new() -> Self {
        Self(BufWriter::with_capacity(64 * 1024, io::stdout().lock()))
    }

    /// One line of JSON.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        serde_json::to_writer(&mut self.0, value)
            .map_err(|error| Failure::output(&error.into()))?;
        self.0.write_all(b"\n").map_err(|error| Failure::output(&error))
    }

    /// JSON for people.
    pub(crate) fn pretty_json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        serde_json::to_writer_pretty(&mut self.0, value)
            .map_err(|error| Failure::output(&error.into()))?;
        self.0.write_all(b"\n").map_err(|error| Failure::output(&error))
    }

    /// Text as it is, and a line end if it has none.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Failure> {
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        write!(self.0, "{text}{end}").map_err(|error| Failure::output(&error))
    }

    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.0.flush().map_err(|error| Failure::output(&error))
    }
}
