use std::os::unix::fs::{MetadataExt, PermissionsExt};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::tools::fixture::Fixture;

fn replacement(old_text: &str, new_text: &str) -> Replacement {
    Replacement { old_text: old_text.to_owned(), new_text: new_text.to_owned(), replace_all: None }
}

fn every(old_text: &str, new_text: &str) -> Replacement {
    Replacement { replace_all: Some(true), ..replacement(old_text, new_text) }
}

/// SPEC F2, F3
#[test]
fn pieces_are_replaced_and_the_rest_is_kept() {
    let one = |old, new| vec![replacement(old, new)];
    let all = |old, new| vec![every(old, new)];
    // before, edits, after
    let cases: Vec<(&[u8], Vec<Replacement>, &[u8])> = vec![
        (b"a b c", one("b", "x"), b"a x c"),
        (b"a b c", one("b ", ""), b"a c"),
        (b"a", one("a", "b"), b"b"),
        // Line ends are the file's, whatever the texts have.
        (b"a\r\nb\r\nc\r\n", one("a\nb\n", "x\ny\n"), b"x\r\ny\r\nc\r\n"),
        (b"a\r\nb\r\n", one("a\nb", "a\nnew\nb"), b"a\r\nnew\r\nb\r\n"),
        (b"a\r\nb\r\n", one("b", "b\nc"), b"a\r\nb\r\nc\r\n"),
        (b"a\r\nb", one("b", "b\nc"), b"a\r\nb\r\nc"),
        (b"a\nb\n", one("a\r\nb\r\n", "a\r\nx\r\n"), b"a\nx\n"),
        (b"a\rb\rc", one("a\nb", "a\nx\nb"), b"a\rx\rb\rc"),
        (b"a\rb", one("b", "b\nc"), b"a\rb\rc"),
        (b"x\r\nfoo\r\n", one("\nfoo", "\nbar"), b"x\r\nbar\r\n"),
        (b"x\r\n\r\ny\r\n", one("x\n\ny", "x\ny"), b"x\r\ny\r\n"),
        // Lines that stay keep their own line ends, in a mixed file too.
        (b"a\r\nb\nc\r\nd\n", one("a\nb\nc\nd", "a\nx\nc\nd"), b"a\r\nx\nc\r\nd\n"),
        (b"a\r\nb\nc\r\n", one("a\nb\nc\n", "a\nb\nnew\nc\n"), b"a\r\nb\nnew\nc\r\n"),
        // Exact comes first: only one of these has a bare line end.
        (b"a\r\nz\na\n", one("a\n", "b\n"), b"a\r\nz\nb\n"),
        // Who names line ends gets them.
        (b"a\r\nb\n", one("a\r\n", "a\n"), b"a\nb\n"),
        (b"a\nb\n", one("a\n", "a\r\n"), b"a\r\nb\n"),
        (b"one line", one("one ", "one\n"), b"one\nline"),
        // Every occurrence.
        (b"a b a b a", all("a", "xx"), b"xx b xx b xx"),
        (b"aaaa", all("aa", "a"), b"aa"),
        (b"a\r\na\n", all("a\n", "b\n"), b"b\r\nb\n"),
        (b"a\r\nb\r\n", all("\n", "\n\n"), b"a\r\n\r\nb\r\n\r\n"),
        // Several edits, each located in the original.
        (b"a b c", vec![replacement("c", "a"), replacement("a", "c")], b"c b a"),
        (b"ab", vec![replacement("a", "b"), replacement("b", "a")], b"ba"),
        // Bytes that are no text, and a byte order mark.
        (b"\xef\xbb\xbfa\r\n\xff\xfe\0b", one("a", "x"), b"\xef\xbb\xbfx\r\n\xff\xfe\0b"),
        ("é".as_bytes(), one("é", "è"), "è".as_bytes()),
    ];
    for (before, edits, after) in cases {
        let plan = plan::plan(before, &edits).map(|plan| plan.after.escape_ascii().to_string());
        let plan = plan.map_err(|error| error.to_string());
        assert_eq!(
            plan,
            Ok(after.escape_ascii().to_string()),
            "{} {edits:?}",
            before.escape_ascii()
        );
    }
}

/// SPEC F3
#[test]
fn an_edit_that_cannot_be_made_says_why() {
    let source = "fn main() {\n    let total = add(1, 2);\n    println!(\"{total}\");\n}\n";
    let several: String = "x\n".repeat(12);
    let cases: Vec<(&str, Vec<Replacement>, &str)> = vec![
        ("a", vec![], "edits is empty: there is nothing to do"),
        (
            "a",
            vec![replacement("", "b")],
            "old_text is empty: to fill or replace a whole file use Write, to insert give the line beside the place",
        ),
        (
            "a",
            vec![replacement("a", "a")],
            "old_text and new_text are the same: nothing would change",
        ),
        (
            "a\r\nb\r\n",
            vec![replacement("a\nb", "a\r\nb")],
            "old_text and new_text are the same: nothing would change",
        ),
        (
            "a\nb\na\n",
            vec![replacement("a", "x")],
            "old_text occurs 2 times, at lines 1, 3: add lines around it to tell which, or set replace_all",
        ),
        (
            "aaa",
            vec![replacement("aa", "x")],
            "old_text occurs 2 times, at lines 1, 1: add lines around it to tell which, or set replace_all",
        ),
        (
            &several,
            vec![replacement("b", "x"), replacement("x", "y")],
            "edit 1 of 2: old_text does not occur in it, nor anything like it: read it again",
        ),
        (
            &several,
            vec![replacement("x", "y")],
            "old_text occurs 12 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …: add lines around it to tell which, or set replace_all",
        ),
        (
            "one\ntwo\nthree\n",
            vec![replacement("two\nthree", "x"), replacement("one\ntwo", "y")],
            "edits 1 and 2 overlap at line 2: make them one",
        ),
        (
            source,
            vec![replacement("fn main() {\n  let total = add(1, 2);\n", "x")],
            "old_text does not occur in it; closest are lines 1-2, where only white space differs \
             (- old_text, + the file):\n  1\tfn main() {\n-\t  let total = add(1, 2);\n+ 2\t    let total = add(1, 2);",
        ),
        (
            source,
            vec![replacement("    let totl = add(1, 2);", "x")],
            "old_text does not occur in it; closest is line 2 (- old_text, + the file):\n\
             -\t    let totl = add(1, 2);\n+ 2\t    let total = add(1, 2);",
        ),
        (
            source,
            vec![replacement("nothing of this kind", "x")],
            "old_text does not occur in it, nor anything like it: read it again",
        ),
        (
            "",
            vec![replacement("a", "x")],
            "old_text does not occur in it, nor anything like it: read it again",
        ),
    ];
    for (before, edits, message) in cases {
        let error = plan::plan(before.as_bytes(), &edits).map_err(|error| error.to_string());
        assert_eq!(error, Err(message.to_owned()), "{edits:?}");
    }
}

async fn edit(fixture: &Fixture, path: &str, edits: Value) -> ToolOutput {
    fixture.run(Edit, json!({"path": path, "edits": edits})).await
}

/// SPEC F2
#[tokio::test]
async fn two_encodings_are_not_mixed() {
    let fixture = Fixture::new();
    // before, new text for `b`, what becomes of the file
    let cases: [(&[u8], &str, &[u8]); 4] = [
        (b"\xff\xfea\0b\0", "cc", b"\xff\xfea\0b\0"),
        (b"caf\xe9 b", "\u{e9}", b"caf\xe9 b"),
        (b"caf\xe9 b", "c", b"caf\xe9 c"),
        ("caf\u{e9} b".as_bytes(), "\u{e9}", "caf\u{e9} \u{e9}".as_bytes()),
    ];
    for (before, new_text, after) in cases {
        let path = fixture.file("a.txt", before);
        let edits = json!([{"old_text": "b", "new_text": new_text}]);
        let output = edit(&fixture, "a.txt", edits).await;
        assert_eq!(std::fs::read(path).unwrap(), after, "{new_text}");
        assert_eq!(output.is_error, before == after, "{}", output.content_text());
    }
}

/// SPEC F3, F6
#[tokio::test]
async fn the_result_shows_the_difference() {
    let fixture = Fixture::new();
    let path = fixture.file("a.txt", "one\ntwo\nthree\n");
    let output = edit(&fixture, "a.txt", json!([{"old_text": "two", "new_text": "2"}])).await;
    let diff = "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";
    let expected = format!("edited a.txt: 1 replacement, +1 -1 lines\n{}", diff.trim_end());
    assert_eq!(output.content_text(), expected);
    assert_eq!(output.details["path"], json!(path));
    assert_eq!(output.details["diff"], json!(diff));
    assert_eq!(fixture.content("a.txt"), b"one\n2\nthree\n");
}

/// SPEC F3
#[tokio::test]
async fn all_or_nothing() {
    let fixture = Fixture::new();
    let path = fixture.file("a.txt", "one\ntwo\n");
    let before = path.metadata().unwrap();
    let edits = json!([{"old_text": "one", "new_text": "1"}, {"old_text": "", "new_text": "2"}]);
    let output = edit(&fixture, "a.txt", edits).await;
    let expected = "a.txt is unchanged: edit 2 of 2: old_text is empty: to fill or replace a whole \
                    file use Write, to insert give the line beside the place";
    assert_eq!((output.content_text().as_str(), output.is_error), (expected, true));
    let after = path.metadata().unwrap();
    assert_eq!((before.ino(), before.mtime_nsec()), (after.ino(), after.mtime_nsec()));
}

/// SPEC F2
#[tokio::test]
async fn mode_and_links_are_kept() {
    let fixture = Fixture::new();
    let path = fixture.file("run.sh", "echo one\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o750)).unwrap();
    std::os::unix::fs::symlink("run.sh", fixture.path("link")).unwrap();
    let output = edit(&fixture, "link", json!([{"old_text": "one", "new_text": "two"}])).await;
    assert!(!output.is_error, "{output:?}");
    assert_eq!(fixture.content("run.sh"), b"echo two\n");
    assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o750);
    assert!(fixture.path("link").symlink_metadata().unwrap().is_symlink());
}

#[tokio::test]
async fn what_is_no_file_is_refused() {
    let fixture = Fixture::new();
    fixture.file("src/main.rs", "");
    let cases = [
        ("src", "src is a directory"),
        ("src/maim.rs", "src/maim.rs does not exist; near it: src/main.rs"),
        ("/dev/null", "/dev/null is a device, not a file"),
    ];
    for (path, expected) in cases {
        let output = edit(&fixture, path, json!([{"old_text": "a", "new_text": "b"}])).await;
        assert_eq!((output.content_text().as_str(), output.is_error), (expected, true));
    }
}

/// A file of lines with any line ends, perhaps a byte order mark, perhaps bytes that are no text.
fn files() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let end = prop::sample::select(vec!["\n", "\r\n", "\r"]);
    let text = prop::collection::vec(any::<u8>(), 0..12);
    let part = || {
        prop::collection::vec((text.clone(), end.clone()), 0..6).prop_map(|lines| {
            let lines = lines.into_iter().map(|(text, end)| [&text, end.as_bytes()].concat());
            lines.collect::<Vec<_>>().concat()
        })
    };
    (any::<bool>(), part(), part()).prop_map(|(mark, before, after)| {
        let mark = if mark { "\u{feff}".as_bytes() } else { b"" };
        ([mark, &before].concat(), after)
    })
}

proptest! {
    /// SPEC F2
    #[test]
    fn untouched_bytes_stay_identical(
        (before, after) in files(),
        lines in prop::collection::vec("[a-z ]{1,8}", 1..4),
        new_lines in prop::collection::vec("[A-Z ]{0,8}", 1..4),
        end in prop::sample::select(vec!["\n", "\r\n"]),
    ) {
        // Marked so that it is there once.
        let old_text = format!("<<{}>>", lines.join("\n"));
        let new_text = format!("[[{}]]", new_lines.join("\n"));
        let here = old_text.replace('\n', end);
        prop_assume!(memchr::memmem::find(&[&before[..], &after].concat(), b"<<").is_none());
        let original = [&before[..], here.as_bytes(), &after].concat();
        let plan = plan::plan(&original, &[replacement(&old_text, &new_text)]);
        let plan = plan.map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert!(plan.after.starts_with(&before));
        prop_assert!(plan.after.ends_with(&after));
        let middle = &plan.after[before.len()..plan.after.len() - after.len()];
        let middle = String::from_utf8(middle.to_vec()).map(|text| {
            text.replace("\r\n", "\n").replace('\r', "\n")
        });
        prop_assert_eq!(middle, Ok(new_text));
    }

    /// SPEC F3
    #[test]
    fn an_edit_and_its_reverse_give_the_original(
        lines in prop::collection::vec("[a-c]{0,3}", 1..12),
        end in prop::sample::select(vec!["\n", "\r\n"]),
        at in any::<prop::sample::Index>(),
        new_lines in prop::collection::vec("[x-z]{1,3}", 1..4),
    ) {
        let mut lines = lines;
        let index = at.index(lines.len());
        lines[index] = "unique".to_owned();
        let original = lines.join(end);
        let new_text = new_lines.join("\n");
        let there = plan::plan(original.as_bytes(), &[replacement("unique", &new_text)]);
        let there = there.map_err(|error| TestCaseError::fail(error.to_string()))?;
        let back = plan::plan(&there.after, &[replacement(&new_text, "unique")]);
        let back = back.map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(String::from_utf8(back.after), Ok(original));
    }
}
