use std::os::unix::net::UnixListener;

use ai::ToolErrorKind;
use serde_json::{Value, json};

use super::*;
use crate::tools::fixture::Fixture;

async fn check(fixture: &Fixture, arguments: Value, expected: &str) {
    let output = fixture.run(Read, arguments.clone()).await;
    assert_eq!((output.content_text().as_str(), output.is_error), (expected, false), "{arguments}");
}

async fn check_error(fixture: &Fixture, arguments: Value, expected: &str) {
    let output = fixture.run(Read, arguments.clone()).await;
    assert_eq!((output.content_text().as_str(), output.is_error), (expected, true), "{arguments}");
}

/// SPEC F1
#[tokio::test]
async fn text_is_numbered_and_has_a_footer() {
    let fixture = Fixture::new();
    let cases: [(&[u8], Value, &str); 14] = [
        (b"a\nb\n", json!({}), "1\ta\n2\tb\n[lines 1-2 of 2: end of file]"),
        (b"a\nb", json!({}), "1\ta\n2\tb\n[lines 1-2 of 2: end of file, without a final newline]"),
        (b"a\r\nb\r\n", json!({}), "1\ta\n2\tb\n[lines 1-2 of 2: end of file]"),
        (b"\xef\xbb\xbfa\n", json!({}), "1\ta\n[lines 1-1 of 1: end of file]"),
        (b"\n\n", json!({}), "1\t\n2\t\n[lines 1-2 of 2: end of file]"),
        (b"", json!({}), "[the file is empty]"),
        (b"", json!({"offset": 7}), "[the file is empty]"),
        (
            b"a\nb\nc\nd\n",
            json!({"limit": 1}),
            "1\ta\n[lines 1-1 of 4: 3 lines left, go on with offset 2]",
        ),
        (
            b"a\nb\nc\nd",
            json!({"offset": 2, "limit": 2}),
            "2\tb\n3\tc\n[lines 2-3 of 4: 1 line left, go on with offset 4]",
        ),
        (b"a\nb\n", json!({"offset": 2, "limit": 1}), "2\tb\n[lines 2-2 of 2: end of file]"),
        (b"a\nb\n", json!({"offset": 0}), "1\ta\n2\tb\n[lines 1-2 of 2: end of file]"),
        (
            b"a\nb\n",
            json!({"limit": 0}),
            "1\ta\n[lines 1-1 of 2: 1 line left, go on with offset 2]",
        ),
        (
            b"a\nb",
            json!({"offset": 2}),
            "2\tb\n[lines 2-2 of 2: end of file, without a final newline]",
        ),
        (
            b"caf\xe9\n",
            json!({}),
            "1\tcaf\u{fffd}\n[bytes that are not UTF-8 are shown as \u{fffd}]\n[lines 1-1 of 1: end of file]",
        ),
    ];
    for (content, mut arguments, expected) in cases {
        fixture.file("file", content);
        arguments["path"] = "file".into();
        check(&fixture, arguments, expected).await;
    }
}

/// SPEC F1
#[tokio::test]
async fn the_details_say_what_was_shown() {
    let fixture = Fixture::new();
    let path = fixture.file("file", "a\nb\nc\n");
    let output = fixture.run(Read, json!({"path": "file", "offset": 2, "limit": 1})).await;
    let expected = json!({"path": path, "first_line": 2, "lines": 1, "total_lines": 3});
    assert_eq!(output.details, expected);
}

/// SPEC F1
#[tokio::test]
async fn long_files_and_lines_are_cut() {
    let fixture = Fixture::new();
    fixture.file("long", format!("{}é and more\nnext\n", "x".repeat(1_999)));
    let expected = format!(
        "1\t{} [… 11 more bytes in this line]\n2\tnext\n[lines 1-2 of 2: end of file]",
        "x".repeat(1_999)
    );
    check(&fixture, json!({"path": "long"}), &expected).await;

    let lines: String = (1..=2_500).map(|n| format!("{n}\n")).collect();
    fixture.file("many", lines);
    for arguments in [json!({"path": "many"}), json!({"path": "many", "limit": 9_000})] {
        let text = fixture.run(Read, arguments).await.content_text();
        assert!(text.ends_with(
            "\n2000\t2000\n[lines 1-2000 of 2500: 500 lines left, go on with offset 2001]"
        ));
    }

    fixture.file("wide", format!("{}\n", "y".repeat(1_000)).repeat(100));
    let text = fixture.run(Read, json!({"path": "wide"})).await.content_text();
    assert!(text.len() < 49 * 1024);
    assert!(text.ends_with("[lines 1-48 of 100: 52 lines left, go on with offset 49]"), "{text}");
}

/// SPEC F1
#[tokio::test]
async fn a_huge_file_is_streamed() {
    let fixture = Fixture::new();
    let path = fixture.file("huge", "first\nsecond\n");
    // Two gigabytes that take no room.
    let file = File::options().write(true).open(path).unwrap();
    file.set_len(2_000_000_000).unwrap();
    // Zeros behind the part that is looked at would make it binary otherwise.
    std::os::unix::fs::FileExt::write_all_at(&file, "a line\n".repeat(2_000).as_bytes(), 0)
        .unwrap();
    let expected = "1\ta line\n[lines 1-1: 1999999993 bytes left, go on with offset 2]";
    check(&fixture, json!({"path": "huge", "limit": 1}), expected).await;
}

/// SPEC F1
#[tokio::test]
async fn what_is_no_text_is_shown_or_refused_in_words() {
    let fixture = Fixture::new();
    let cases: [(&str, &[u8], &str); 4] = [
        ("a.bin", b"ab\0c", "a.bin is a binary file; look at it with `file`, `xxd` or `strings`"),
        (
            "a.pdf",
            b"%PDF-1.7\n",
            "a.pdf is a PDF; convert it with a command such as `pdftotext FILE -`",
        ),
        (
            "a.txt",
            b"\xff\xfea\0",
            "a.txt is UTF-16 text; convert it with `iconv -f UTF-16 -t UTF-8 FILE`",
        ),
        ("b", b"one\n", "offset 3 is past the end: b has 1 line"),
    ];
    for (name, content, expected) in cases {
        fixture.file(name, content);
        check_error(&fixture, json!({"path": name, "offset": 3}), expected).await;
    }
    let png = b"\x89PNG\r\n\x1a\nrest";
    fixture.file("a.png", png);
    let output = fixture.run(Read, json!({"path": "a.png"})).await;
    let image = ai::ContentBlock::Image {
        mime_type: "image/png".to_owned(),
        data: "iVBORw0KGgpyZXN0".to_owned(),
    };
    let text = ai::ContentBlock::text("[a.png: image/png, 12 bytes]");
    assert_eq!(output.content, [text, image]);
}

/// SPEC F1
#[tokio::test]
async fn a_directory_is_listed() {
    let fixture = Fixture::new();
    check(&fixture, json!({"path": "."}), "[the directory . is empty]").await;
    fixture.file("src/b.rs", "");
    fixture.file("a.txt", "");
    check(&fixture, json!({"path": "."}), "a.txt\nsrc/\n[directory .: 2 entries]").await;
    check(&fixture, json!({"path": "src/"}), "b.rs\n[directory src: 1 entry]").await;
}

/// SPEC F8
#[tokio::test]
async fn a_missing_file_has_near_names() {
    let fixture = Fixture::new();
    for name in ["src/machine.rs", "src/Makefile", "src/other.txt"] {
        fixture.file(name, "");
    }
    let cwd = fixture.workspace.cwd().display();
    let cases = [
        ("src/machines.rs", "src/machines.rs does not exist; near it: src/machine.rs".to_owned()),
        ("src/makefile", "src/makefile does not exist; near it: src/Makefile".to_owned()),
        ("src/qqq", "src/qqq does not exist".to_owned()),
        (
            "no/where/at/all",
            format!(
                "no/where/at/all does not exist: its directory does not exist either; {cwd} is the closest that does"
            ),
        ),
    ];
    for (path, expected) in cases {
        check_error(&fixture, json!({"path": path}), &expected).await;
    }
}

/// SPEC F9
#[tokio::test]
async fn devices_fifos_and_sockets_do_not_hang() {
    let fixture = Fixture::new();
    let fifo = fixture.path("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let _listener = UnixListener::bind(fixture.path("socket")).unwrap();
    let cases = [
        ("fifo", "fifo is a FIFO, not a file"),
        ("socket", "socket is a socket, not a file"),
        ("/dev/zero", "/dev/zero is a device, not a file"),
        ("/dev/tty", "/dev/tty is a device, not a file"),
    ];
    for (path, expected) in cases {
        check_error(&fixture, json!({"path": path}), expected).await;
    }
    let output = fixture.run(Read, json!({"path": "/proc/self/status", "limit": 1})).await;
    assert!(output.content_text().starts_with("1\tName:"), "{output:?}");
}

#[tokio::test]
async fn nothing_is_read_without_a_grant() {
    let fixture = Fixture::new();
    fixture.file("a", "secret");
    let tool = agent::OfferedTool::new(Read).unwrap();
    let call = ToolCall::new("call", "Read", json!({"path": "a"}));
    let output = tool.call(call).await.unwrap();
    let expected = ToolOutput::error(ToolErrorKind::Denied, "nothing was granted to Read");
    assert_eq!(output, expected);

    let mut call = ToolCall::new("call", "Read", json!({"path": "a"}));
    call.extensions.insert(Grant::builder().allow_command().build());
    let output = tool.call(call).await.unwrap();
    assert_eq!(output, ToolOutput::error(ToolErrorKind::Denied, "reading a was not granted"));
}
