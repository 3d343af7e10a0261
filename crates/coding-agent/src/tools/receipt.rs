//! [`Receipt`]: what a change did to a file, for the model, for people, and for whoever undoes it.

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use similar::{ChangeTag, DiffTag, TextDiff};

/// How many unchanged lines stand around a change, as in every unified diff.
const CONTEXT_LINES: usize = 3;

/// How long looking for the shortest diff may take. After it a longer one is as good.
const DIFF_TIME: Duration = Duration::from_millis(200);

/// How much changed text is compared line by line, in bytes; more is counted as replaced.
const MAX_COMPARED_BYTES: usize = 8 * 1024 * 1024;

/// How long the diff in the details may be, in bytes: a line of the log holds it, escaped.
const MAX_DIFF_BYTES: usize = 48 * 1024;

/// How much of the diff the model reads, in bytes. It wrote the change itself.
const MAX_SHOWN_BYTES: usize = 4 * 1024;

/// A change of one file. See the module's documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Receipt {
    path: PathBuf,
    before: Option<String>,
    after: String,
    diff: String,
    /// Lines that are new.
    pub(super) added: usize,
    /// Lines that are gone.
    pub(super) removed: usize,
}

impl Receipt {
    /// The receipt of giving `path` the content `after`; `before` is `None` for a new file.
    pub(super) fn new(path: PathBuf, before: Option<&[u8]>, after: &[u8]) -> Self {
        let (diff, added, removed) = unified(before.unwrap_or_default(), after);
        Self { path, before: before.map(hash), after: hash(after), diff, added, removed }
    }

    /// `{path, before, after, diff, added, removed}`: the hashes as `sha256:HEX`, `before` null for
    /// a new file.
    pub(super) fn details(&self) -> Value {
        json!({
            "path": self.path,
            "before": self.before,
            "after": self.after,
            "diff": cut(&self.diff, MAX_DIFF_BYTES),
            "added": self.added,
            "removed": self.removed,
        })
    }

    /// The diff as far as the model should read it.
    pub(super) fn shown_diff(&self) -> Cow<'_, str> {
        cut(&self.diff, MAX_SHOWN_BYTES)
    }
}

fn hash(content: &[u8]) -> String {
    format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(content)))
}

/// The whole lines that fit, and how many do not.
fn cut(diff: &str, limit: usize) -> Cow<'_, str> {
    if diff.len() <= limit {
        return Cow::Borrowed(diff);
    }
    let fits = memchr::memrchr(b'\n', &diff.as_bytes()[..limit]).map_or(0, |at| at + 1);
    let left_out = diff[fits..].lines().count();
    Cow::Owned(format!("{}[… {left_out} more lines of diff]\n", &diff[..fits]))
}

/// A unified diff without the names of files, and how many lines were added and removed.
fn unified(before: &[u8], after: &[u8]) -> (String, usize, usize) {
    let (old, new) = (lines(before), lines(after));
    let prefix = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let most = old.len().min(new.len()) - prefix;
    let pairs = old.iter().rev().zip(new.iter().rev());
    let suffix = pairs.take(most).take_while(|(old, new)| old == new).count();
    // What is equal at both ends is not compared again, but for the context.
    let skipped = prefix.saturating_sub(CONTEXT_LINES);
    let trailing = suffix.saturating_sub(CONTEXT_LINES);
    let old = &old[skipped..old.len() - trailing];
    let new = &new[skipped..new.len() - trailing];
    let compared = |lines: &[&[u8]]| lines.iter().map(|line| line.len()).sum::<usize>();
    if compared(old) + compared(new) > MAX_COMPARED_BYTES {
        return ("[too much changed to show]\n".to_owned(), new.len(), old.len());
    }
    let old: Vec<_> = old.iter().map(|line| String::from_utf8_lossy(line)).collect();
    let new: Vec<_> = new.iter().map(|line| String::from_utf8_lossy(line)).collect();
    let (old, new): (Vec<&str>, Vec<&str>) =
        (old.iter().map(AsRef::as_ref).collect(), new.iter().map(AsRef::as_ref).collect());
    let diff = TextDiff::configure().timeout(DIFF_TIME).diff_slices(&old, &new);
    let (mut text, mut added, mut removed) = (String::new(), 0, 0);
    for group in diff.grouped_ops(CONTEXT_LINES) {
        let Some((first, last)) = group.first().zip(group.last()) else { continue };
        let range = |start: usize, end: usize| match end - start {
            // A range of no lines is named by the line before it.
            0 => format!("{},0", start + skipped),
            1 => format!("{}", start + skipped + 1),
            count => format!("{},{count}", start + skipped + 1),
        };
        text.push_str(&format!(
            "@@ -{} +{} @@\n",
            range(first.old_range().start, last.old_range().end),
            range(first.new_range().start, last.new_range().end),
        ));
        for op in &group {
            match op.tag() {
                DiffTag::Equal => {}
                DiffTag::Delete | DiffTag::Insert | DiffTag::Replace => {
                    added += op.new_range().len();
                    removed += op.old_range().len();
                }
            }
            for change in diff.iter_changes(op) {
                text.push(match change.tag() {
                    ChangeTag::Equal => ' ',
                    ChangeTag::Delete => '-',
                    ChangeTag::Insert => '+',
                });
                let line = change.value();
                let shown = line.strip_suffix('\n').unwrap_or(line);
                text.push_str(shown.strip_suffix('\r').unwrap_or(shown));
                text.push('\n');
                if !line.ends_with('\n') {
                    text.push_str("\\ No newline at end of file\n");
                }
            }
        }
    }
    (text, added, removed)
}

fn lines(content: &[u8]) -> Vec<&[u8]> {
    content.split_inclusive(|&byte| byte == b'\n').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_diff_has_the_files_line_numbers() {
        let before: String = (1..=60).map(|n| format!("line {n}\n")).collect();
        let after = before.replace("line 20\n", "line twenty\n").replace("line 50\n", "");
        let expected = "@@ -17,7 +17,7 @@\n line 17\n line 18\n line 19\n-line 20\n+line twenty\n \
                        line 21\n line 22\n line 23\n@@ -47,7 +47,6 @@\n line 47\n line 48\n line 49\n\
                        -line 50\n line 51\n line 52\n line 53\n";
        assert_eq!(unified(before.as_bytes(), after.as_bytes()), (expected.to_owned(), 1, 2));
    }

    /// Both contents, the diff, how many lines it adds and removes.
    type Case = ([&'static [u8]; 2], &'static str, [usize; 2]);

    #[test]
    fn the_ends_of_a_file_are_shown() {
        let cases: [Case; 5] = [
            ([b"", b"a\nb\n"], "@@ -0,0 +1,2 @@\n+a\n+b\n", [2, 0]),
            ([b"a\n", b""], "@@ -1 +0,0 @@\n-a\n", [0, 1]),
            ([b"a", b"a\n"], "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n", [1, 1]),
            ([b"\xff\r\nb\r\n", b"\xff\r\nc\r\n"], "@@ -1,2 +1,2 @@\n \u{fffd}\n-b\n+c\n", [1, 1]),
            ([b"a\n", b"a\n"], "", [0, 0]),
        ];
        for ([before, after], diff, [added, removed]) in cases {
            assert_eq!(unified(before, after), (diff.to_owned(), added, removed));
        }
    }

    #[test]
    fn a_receipt_names_both_contents() {
        let receipt = Receipt::new("/w/a".into(), None, b"abc");
        let expected = json!({
            "path": "/w/a",
            "before": null,
            "after": "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            "diff": "@@ -0,0 +1 @@\n+abc\n\\ No newline at end of file\n",
            "added": 1,
            "removed": 0,
        });
        assert_eq!(receipt.details(), expected);
    }

    #[test]
    fn a_long_diff_is_cut_between_lines() {
        assert_eq!(cut("+one\n+two\n+three\n", 12), "+one\n+two\n[… 1 more lines of diff]\n");
    }
}
