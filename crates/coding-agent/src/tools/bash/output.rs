//! [`Output`]: what a command printed, folded and bounded.

use std::time::Duration;

use agent::{Partial, Progress};
use ai::ContentBlock;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::fold::Fold;
use crate::limit::{HeadTail, Shaped};

/// How much of an output is kept, in bytes: about 8,000 tokens, enough for a failing test suite's
/// end and the beginning that explains it.
const MAX_KEPT_BYTES: usize = 30 * 1024;

/// How much of the end is reported while the command runs, in bytes: a screen full.
const MAX_LIVE_BYTES: usize = 4 * 1024;

/// How often the end is reported at most: what an eye can follow.
const LIVE_INTERVAL: Duration = Duration::from_millis(100);

/// What the line in place of the middle tells the model to do.
const HINT: &str = "filter the output, or send it to a file and read that";

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Output {
    fold: Fold,
    kept: HeadTail,
    /// Bytes as they came from the command.
    bytes: u64,
    unreported: bool,
    reported: Instant,
}

impl Output {
    pub(super) fn new() -> Self {
        Self {
            fold: Fold::default(),
            kept: HeadTail::new(MAX_KEPT_BYTES),
            bytes: 0,
            unreported: false,
            reported: Instant::now(),
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.unreported = true;
        let kept = &mut self.kept;
        self.fold.push(bytes, &mut |bytes| kept.push(bytes));
    }

    /// When the next report is due, if there is anything new to report.
    pub(super) fn report_due(&self, progress: &Progress) -> Option<Instant> {
        (self.unreported && progress.is_heard()).then(|| self.reported + LIVE_INTERVAL)
    }

    /// Reports the end of what there is now, if it is time to.
    pub(super) fn report(&mut self, progress: &Progress) {
        let now = Instant::now();
        if self.report_due(progress).is_some_and(|due| due <= now) {
            self.reported = now;
            self.unreported = false;
            let mut text = self.kept.end(MAX_LIVE_BYTES);
            text.push_str(&String::from_utf8_lossy(self.fold.held()));
            let content = vec![ContentBlock::text(printable(text))];
            progress.report(Partial { content, details: Value::Null });
        }
    }

    /// What is kept, and `{bytes, left_out}`: how much the command printed and how much of it is
    /// missing.
    pub(super) fn finish(mut self) -> (String, Value) {
        let kept = &mut self.kept;
        self.fold.finish(&mut |bytes| kept.push(bytes));
        let Shaped { text, left_out } = self.kept.shaped(HINT);
        (printable(text), json!({"bytes": self.bytes, "left_out": left_out}))
    }
}

/// Without control characters, which show nothing and which some providers refuse.
fn printable(text: String) -> String {
    let is_odd = |c: char| c.is_control() && c != '\n' && c != '\t';
    match text.contains(is_odd) {
        true => text.replace(is_odd, ""),
        false => text,
    }
}
