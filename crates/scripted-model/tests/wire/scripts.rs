//! Scripts as files: both forms, and what is said about a wrong one.

use std::num::NonZeroUsize;
use std::path::Path;

use ai::{StopReason, Usage};
use scripted_model::{Expect, Fault, FaultBody, Script, Turn, fix_loop, load};
use serde_json::json;

const TOML: &str = r#"
name = "everything"

[[turns]]
delay_ms = 5
gate = "go"
gate_at_delta = 2
chunk_chars = 3
stop = "length"
usage = { input = 1, cache_read = 2 }
content = [
  { type = "thinking", text = "hm", signature = "s" },
  { type = "text", text = "hi" },
  { type = "tool_call", id = "a", name = "Read", arguments = { path = "x", limit = 3 } },
  { type = "tool_call", name = "Read", raw_arguments = "{" },
]
[turns.expect]
messages = 1
last_user_contains = "hello"
last_result_contains = ["a", "b"]
is_error = true
tools = ["Read"]

[[turns]]
[turns.fault]
kind = "status"
code = 429
headers = { retry-after = "1" }
body = { error = "slow down" }

[[turns]]
fault = { kind = "cut", after_bytes = 7 }
"#;

const JSON: &str = r#"{
  "name": "everything",
  "turns": [
    {
      "expect": {
        "messages": 1, "last_user_contains": ["hello"], "last_result_contains": ["a", "b"],
        "is_error": true, "tools": ["Read"]
      },
      "content": [
        {"type": "thinking", "text": "hm", "signature": "s"},
        {"type": "text", "text": "hi"},
        {"type": "tool_call", "id": "a", "name": "Read", "arguments": {"path": "x", "limit": 3}},
        {"type": "tool_call", "name": "Read", "raw_arguments": "{"}
      ],
      "usage": {"input": 1, "cache_read": 2},
      "stop": "length", "delay_ms": 5, "gate": "go", "gate_at_delta": 2, "chunk_chars": 3
    },
    {"fault": {"kind": "status", "code": 429, "headers": {"retry-after": "1"},
               "body": {"error": "slow down"}}},
    {"fault": {"kind": "cut", "after_bytes": 7}}
  ]
}"#;

fn everything() -> Script {
    let mut first = Turn::new()
        .text("hi")
        .call_with_id("a", "Read", json!({"path": "x", "limit": 3}))
        .raw_call("Read", "{")
        .usage(Usage { input: 1, cache_read: 2, ..Usage::default() })
        .stop(StopReason::Length)
        .delay(std::time::Duration::from_millis(5))
        .gate_at_delta("go", 2)
        .chunk_chars(NonZeroUsize::new(3).unwrap())
        .expecting(
            Expect::new()
                .messages(1)
                .last_user_contains("hello")
                .last_result_contains("a")
                .last_result_contains("b")
                .is_error(true)
                .tool("Read"),
        );
    first.content.insert(
        0,
        scripted_model::Block::Thinking {
            text: "hm".to_owned(),
            signature: Some("s".to_owned()),
            redacted: false,
        },
    );
    Script::new("everything")
        .turn(first)
        .turn(Turn::fault_only(Fault::Status {
            code: 429,
            headers: [("retry-after".to_owned(), "1".to_owned())].into(),
            body: Some(FaultBody::Json(json!({"error": "slow down"}))),
        }))
        .turn(Turn::fault_only(Fault::Cut { after_bytes: Some(7) }))
}

#[test]
fn both_forms_and_code_make_the_same_script() {
    assert_eq!(Script::from_toml(TOML).unwrap(), everything());
    assert_eq!(Script::from_json(JSON).unwrap(), everything());
    let written = serde_json::to_string(&everything()).unwrap();
    assert_eq!(Script::from_json(&written).unwrap(), everything());
}

#[test]
fn errors_say_where_and_what_was_expected() {
    let json: &[(&str, &str)] = &[
        (
            "{\"name\": \"x\",\n \"turn\": []}",
            "script:2:7: unknown field `turn`, expected `name` or `turns`",
        ),
        ("{\"name\": \"x\"}", "script:1:13: missing field `turns`"),
        (
            "{\"name\": \"x\", \"turns\": [\n{\"content\": [{\"type\": \"txt\"}]}]}",
            "script:2:27: unknown variant `txt`, expected one of `text`, `thinking`, `tool_call`",
        ),
        (
            "{\"name\": \"x\", \"turns\": [{\"content\": [{\"type\": \"text\", \"name\": \"n\"}]}]}",
            "script:1:67: block 1: a text block has `text` and nothing else",
        ),
        (
            "{\"name\": \"x\", \"turns\": [{\"fault\": {\"kind\": \"cut\", \"code\": 3}}]}",
            "script:1:61: a fault of kind cut has no `code`, expected after_bytes",
        ),
        (
            "{\"name\": \"x\", \"turns\": [{\"usage\": {\"inputs\": 3}}]}",
            "script:1:43: unknown field `inputs`, expected one of `input`, `output`, `cache_read`, \
             `cache_write`, `reasoning`",
        ),
        ("{\"name\": ", "script:1:9: EOF while parsing a value"),
    ];
    for (text, expected) in json {
        assert_eq!(Script::from_json(text).unwrap_err().to_string(), *expected);
    }
    let toml: &[(&str, &str)] = &[
        (
            "name = \"x\"\nturn = []\n",
            "script:2:1: unknown field `turn`, expected `name` or `turns`",
        ),
        (
            "name = \"x\"\n[[turns]]\ndelay_ms = \"5\"\n",
            "script:3:12: invalid type: string \"5\", expected u64",
        ),
        (
            "name = \"x\"\n[[turns]]\ncontent = [\n  { type = \"tool_call\", name = \"n\" },\n]\n",
            "script:3:11: block 1: a tool_call block needs either `arguments`, which is an object, or \
             `raw_arguments`, which is a string",
        ),
    ];
    for (text, expected) in toml {
        assert_eq!(Script::from_toml(text).unwrap_err().to_string(), *expected);
    }
}

#[test]
fn names_and_files_are_loaded() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.toml"), TOML).unwrap();
    std::fs::write(dir.path().join("b.json"), JSON).unwrap();
    std::fs::write(dir.path().join("sniffed-toml"), TOML).unwrap();
    std::fs::write(dir.path().join("sniffed-json"), format!("\u{feff}{JSON}")).unwrap();
    for name in ["./a.toml", "./b.json", "./sniffed-toml", "./sniffed-json"] {
        assert_eq!(load(name, dir.path()).unwrap(), everything());
    }
    let absolute = dir.path().join("a.toml");
    assert_eq!(load(absolute.to_str().unwrap(), Path::new("/")).unwrap(), everything());
    assert_eq!(load("fix-loop", dir.path()).unwrap(), fix_loop::script());

    assert_eq!(
        load("fix-lop", dir.path()).unwrap_err().to_string(),
        "no script is named `fix-lop`; there are fix-loop, hello, and a file is given as ./FILE or \
         /FILE"
    );
    let missing = load("./none.toml", dir.path()).unwrap_err().to_string();
    assert!(missing.starts_with("cannot read the script "), "{missing}");
    std::fs::write(dir.path().join("bad.json"), "{}").unwrap();
    let bad = load("./bad.json", dir.path()).unwrap_err().to_string();
    assert!(bad.ends_with("bad.json:1:2: missing field `name`"), "{bad}");
}
