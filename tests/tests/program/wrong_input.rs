//! Whatever is wrong before anything is asked: said within a second, with the next step, exit code 2.

use ai::Api;
use scripted_model::{Script, ScriptedModel, Turn};
use tests::bench::Bench;
use tests::program::{Ended, KEY};

const SCHEMA: &str = "hint: `coding-agent config schema` has all keys and their types";

const BUILT_IN_SCRIPTS: &str = "hint: scripted/hello and scripted/fix-loop are built in; scripted/./FILE reads a file in the form \
     that docs/scripted-model.md describes";

const NO_SANDBOX: [&str; 2] = [
    "error: permission mode auto needs the sandbox, which this version does not have",
    "hint: use ask, accept-edits or bypass",
];

/// SPEC U3: names that could never be used are refused where they are written.
#[tokio::test]
async fn a_provider_that_could_not_be_named_is_refused() {
    for name in ["scripted", "a/b"] {
        let bench = Bench::new();
        bench.configure(&format!("[providers.\"{name}\"]\napi = 'openai-chat'\n"));
        let ended = bench.program(["models"]).run().await;
        assert_eq!(ended.code, 2, "{ended:?}");
        let said = format!("`{name}` is no name for a provider of one's own");
        assert!(ended.stderr.contains(&said), "{ended:?}");
    }
}

/// The message, with the bench's place replaced.
fn said(bench: &Bench, ended: &Ended) -> (i32, String, Vec<String>) {
    let stderr = ended.stderr.replace(bench.root().to_str().unwrap(), "PLACE");
    (ended.code, ended.stdout.clone(), stderr.lines().map(str::to_owned).collect())
}

fn refused(lines: &[&str]) -> (i32, String, Vec<String>) {
    (2, String::new(), lines.iter().map(|line| (*line).to_owned()).collect())
}

/// SPEC U3, U4
#[tokio::test]
async fn a_wrong_command_line_is_said() {
    let cases: [(&[&str], &[&str]); 17] = [
        (
            &["-p", "x", "--model", "gpt"],
            &[
                "error: `gpt` is no model: expected PROVIDER/MODEL",
                "hint: for example --model anthropic/claude-sonnet-4-5; `coding-agent models` \
                 lists providers",
            ],
        ),
        (
            &["-p", "x"],
            &[
                "error: there is no key for provider `anthropic`: ANTHROPIC_API_KEY is not set",
                "hint: export ANTHROPIC_API_KEY=…, or store a key with `coding-agent login anthropic`, or try it \
                 without a key: --model scripted/hello",
            ],
        ),
        (
            &["-p", "x", "--model", "openai/gpt"],
            &[
                "error: there is no key for provider `openai`: OPENAI_API_KEY is not set",
                "hint: export OPENAI_API_KEY=…, or store a key with `coding-agent login openai`, or try it \
                 without a key: --model scripted/hello",
            ],
        ),
        (
            &["-p", "x", "--model", "scripted/hello", "--cwd", "missing"],
            &[
                "error: missing does not exist",
                "hint: create it, or give --cwd or --add-dir a directory that exists",
            ],
        ),
        (
            &["-p", "x", "--model", "scripted/hello", "--cwd", "file.txt"],
            &[
                "error: file.txt is not a directory",
                "hint: give --cwd or --add-dir the directory that holds it",
            ],
        ),
        (
            &["-p", "x", "--model", "scripted/hello", "--add-dir", "missing"],
            &[
                "error: missing does not exist",
                "hint: create it, or give --cwd or --add-dir a directory that exists",
            ],
        ),
        (&["-p", "x", "--model", "scripted/hello", "--permission-mode", "auto"], &NO_SANDBOX),
        (&["tool", "list", "--permission-mode", "auto"], &NO_SANDBOX),
        (&["-p", "x", "--config", "permission_mode=auto"], &NO_SANDBOX),
        (
            &["-p", "x", "--config", "retry"],
            &["error: --config retry is not a valid configuration: expected KEY=VALUE", SCHEMA],
        ),
        (
            &["-p", "x", "--config", "retry.max_attempts=0"],
            &[
                "error: --config retry.max_attempts=0 is not a valid configuration: \
                 retry.max_attempts must be at least 1",
                SCHEMA,
            ],
        ),
        (
            &["-p", "x", "--model", "scripted/unheard"],
            &[
                "error: no script is named `unheard`; there are fix-loop, hello, and a file is \
                 given as ./FILE or /FILE",
                BUILT_IN_SCRIPTS,
            ],
        ),
        (
            &["-p", "x", "--model", "scripted/hello", "--allowed-tools", "Read,Fly"],
            &["error: there is no tool `Fly`", "hint: the tools are Read, Edit, Write, Bash"],
        ),
        (
            &["hello"],
            &[
                "error: there is no terminal interface yet",
                "hint: coding-agent -p \"what to do\", or coding-agent demo to see it work",
            ],
        ),
        (
            &["-p", "x", "--nope"],
            &[
                "error: unexpected argument '--nope' found",
                "",
                "  tip: to pass '--nope' as a value, use '-- --nope'",
                "",
                "Usage: coding-agent --print [<PROMPT>] [PROMPT]",
                "",
                "For more information, try '--help'.",
            ],
        ),
        (
            &["-p", "x", "--permission-mode", "yolo"],
            &[
                "error: invalid value 'yolo' for '--permission-mode <MODE>': unknown permission \
                 mode `yolo`; known are read-only, ask, accept-edits, auto and bypass",
                "",
                "For more information, try '--help'.",
            ],
        ),
        (
            &["-p", "x", "--max-turns", "0"],
            &[
                "error: invalid value '0' for '--max-turns <N>': 0 is not in 1..=4294967295",
                "",
                "For more information, try '--help'.",
            ],
        ),
    ];
    for (arguments, expected) in cases {
        let bench = Bench::new();
        bench.write("file.txt", "");
        let ended = bench.program(arguments).run().await;
        assert_eq!(said(&bench, &ended), refused(expected), "{arguments:?}");
    }
}

/// SPEC U4: what is known is listed.
#[tokio::test]
async fn an_unknown_provider_is_said() {
    let bench = Bench::new();
    bench.configure("[providers.mine]\napi = 'openai-chat'\nbase_url = 'http://127.0.0.1:1/v1'\n");
    let ended = bench.program(["-p", "x", "--model", "nobody/x"]).run().await;
    let (code, stdout, lines) = said(&bench, &ended);
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert_eq!(lines[0], "error: unknown provider `nobody`");
    let known = lines[1].strip_prefix("hint: known are ").unwrap();
    let (known, rest) = known.split_once("; ").unwrap();
    assert_eq!(rest, "one of your own is [providers.NAME] in the configuration");
    let known: Vec<&str> = known.split(", ").collect();
    for name in ["anthropic", "openai", "mine", "scripted"] {
        assert!(known.contains(&name), "{name} in {known:?}");
    }
}

/// SPEC U4: with line and column.
#[tokio::test]
async fn a_malformed_configuration_is_said_where_it_stands() {
    let file =
        "error: PLACE/agent/config/config.toml is not a valid configuration: TOML parse error";
    let cases: [(&str, &[&str]); 3] = [
        (
            "model = \"a/b\"\n[retry]\nmax_attempts = \"x\"\n",
            &[
                &format!("{file} at line 3, column 16"),
                "  |",
                "3 | max_attempts = \"x\"",
                "  |                ^^^",
                "invalid type: string \"x\", expected u32",
                SCHEMA,
            ],
        ),
        (
            "[retry]\nmax_atempts = 3\n",
            &[
                &format!("{file} at line 2, column 1"),
                "  |",
                "2 | max_atempts = 3",
                "  | ^^^^^^^^^^^",
                "unknown field `max_atempts`, expected `max_attempts` or `max_elapsed_ms`",
                SCHEMA,
            ],
        ),
        (
            "model = \n",
            &[
                &format!("{file} at line 1, column 9"),
                "  |",
                "1 | model = ",
                "  |         ^",
                "string values must be quoted, expected literal string",
                SCHEMA,
            ],
        ),
    ];
    for (toml, expected) in cases {
        let bench = Bench::new();
        bench.configure(toml);
        for arguments in [&["-p", "x"][..], &["models"], &["doctor"], &["config", "show"]] {
            let ended = bench.program(arguments).run().await;
            assert_eq!(said(&bench, &ended), refused(expected), "{arguments:?}");
        }
    }
}

/// SPEC U4: the project's own file is held to the same.
#[tokio::test]
async fn a_malformed_configuration_of_the_project_is_said() {
    let bench = Bench::new();
    bench.write(".coding-agent/config.toml", "[limits]\nmax_turns = 0\n");
    let ended = bench.program(["-p", "x", "--model", "scripted/hello"]).run().await;
    let expected = [
        "error: PLACE/work/.coding-agent/config.toml is not a valid configuration: \
         limits.max_turns must be at least 1",
        SCHEMA,
    ];
    assert_eq!(said(&bench, &ended), refused(&expected));
}

/// SPEC P8: what an untrusted project would loosen is ignored, and said to be.
#[tokio::test]
async fn a_project_cannot_loosen_anything() {
    let bench = Bench::new();
    bench.write(
        ".coding-agent/config.toml",
        "permission_mode = 'bypass'\n[providers.anthropic]\nbase_url = 'http://127.0.0.1:1'\n",
    );
    let script = Script::new("scripted")
        .turn(Turn::new().call("Bash", serde_json::json!({"command": "echo done >by-bash"})))
        .turn(Turn::text_only("Denied."));
    let model = ScriptedModel::start(script).await.unwrap();
    let ended = bench.program(["-p", "x"]).asking(&model, Api::AnthropicMessages).run().await;
    let (code, stdout, lines) = said(&bench, &ended);
    assert_eq!((code, stdout.as_str()), (3, "Denied.\n"));
    let file = "note: PLACE/work/.coding-agent/config.toml sets";
    assert_eq!(
        lines[..2],
        [
            format!("{file} `providers`, which no project may; it is ignored"),
            format!("{file} `permission_mode`, which a project may only tighten; it is ignored"),
        ]
    );
    assert_eq!(bench.names("."), [".coding-agent"]);
}

/// SPEC U4: something else in the configuration's place is not waited for.
#[tokio::test]
async fn an_unreadable_configuration_is_said() {
    let expected = [
        "error: cannot read PLACE/agent/config/config.toml: it is not a regular file",
        "hint: mend it, or move it out of the way",
    ];
    let bench = Bench::new();
    let place = bench.agent_home().join("config/config.toml");
    std::fs::create_dir(&place).unwrap();
    let ended = bench.program(["-p", "x"]).run().await;
    assert_eq!(said(&bench, &ended), refused(&expected), "a directory");

    std::fs::remove_dir(&place).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &place, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let ended = bench.program(["-p", "x"]).run().await;
    assert_eq!(said(&bench, &ended), refused(&expected), "a FIFO");

    std::fs::remove_file(&place).unwrap();
    bench.configure("model = 'a/b'");
    std::fs::write(&place, b"model = '\xff'").unwrap();
    let ended = bench.program(["-p", "x"]).run().await;
    let expected = [
        "error: cannot read PLACE/agent/config/config.toml: stream did not contain valid UTF-8",
        "hint: mend it, or move it out of the way",
    ];
    assert_eq!(said(&bench, &ended), refused(&expected), "no text");
}

/// SPEC U4: line and column of a script, too.
#[tokio::test]
async fn a_malformed_script_is_said_where_it_stands() {
    let cases = [
        (
            "bad.toml",
            "name = \"x\"\n[[turns]]\ncontent = [{type = \"txt\"}]\n",
            ":3:20: unknown variant `txt`, expected one of `text`, `thinking`, `tool_call`",
        ),
        ("bad.json", "{\"name\": \"x\",\n \"turns\": [,]}", ":2:12: expected value"),
    ];
    for (name, script, place) in cases {
        let bench = Bench::new();
        bench.write(name, script);
        let ended =
            bench.program(["-p", "x", "--model", &format!("scripted/./{name}")]).run().await;
        let expected = [&format!("error: PLACE/work/./{name}{place}"), BUILT_IN_SCRIPTS];
        assert_eq!(said(&bench, &ended), refused(&expected), "{name}");
    }
    let bench = Bench::new();
    let ended = bench.program(["-p", "x", "--model", "scripted/./none.toml"]).run().await;
    let expected = [
        "error: cannot read the script PLACE/work/./none.toml: No such file or directory (os \
         error 2)",
        BUILT_IN_SCRIPTS,
    ];
    assert_eq!(said(&bench, &ended), refused(&expected));
}

/// SPEC U4: a directory that vanished under the program's feet.
#[tokio::test]
async fn a_missing_working_directory_is_said() {
    let bench = Bench::new();
    let gone = bench.work().join("gone");
    let binary = bench.program(["-p", "x", "--model", "scripted/hello"]).within_vanished(&gone);
    let ended = binary.run().await;
    let expected = [
        "error: the working directory cannot be used: No such file or directory (os error 2)",
        "hint: change to a directory that exists, or name one with --cwd",
    ];
    assert_eq!(said(&bench, &ended), refused(&expected));
}

/// SPEC U4: an address that cannot be one.
#[tokio::test]
async fn an_address_that_is_none_is_said() {
    let bench = Bench::new();
    let ended = bench
        .program(["-p", "x", "--model", "openai/gpt"])
        .variable("OPENAI_API_KEY", KEY)
        .variable("OPENAI_BASE_URL", "ftp://example.org")
        .run()
        .await;
    let expected = [
        "error: the address of provider `openai` is not usable: `ftp://example.org` does not \
         begin with http:// or https:// and a host",
        "hint: set base_url in [providers.openai], or the variable that overrides it",
    ];
    assert_eq!(said(&bench, &ended), refused(&expected));
}

/// SPEC U4: a prompt of several words without quotes is not answered in part.
#[tokio::test]
async fn a_prompt_without_quotes_is_refused() {
    let bench = Bench::new();
    let ended = bench.program(["-p", "fix", "the bug", "--model", "scripted/hello"]).run().await;
    let expected = [
        "error: there is one prompt, and `the bug` comes after it",
        "hint: a prompt of several words needs quotes: -p \"what to do\"",
    ];
    assert_eq!(said(&bench, &ended), refused(&expected));
}
