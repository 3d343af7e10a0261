//! `tool list` and `tool run`: the tools under permissions, without a model.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use tests::bench::Bench;
use tests::program::{Ended, Program};

fn call<'b>(bench: &'b Bench, name: &str, args: &Value) -> Program<'b> {
    bench.program(["tool", "run", name, "--args", &args.to_string()])
}

/// The text of the single output, and whether it is an error and of what kind.
fn output(ended: &Ended) -> (String, Option<String>) {
    let lines = ended.events();
    let [line] = &lines[..] else { panic!("{ended:?}") };
    let kind = line["error_kind"].as_str().map(str::to_owned);
    assert_eq!(line["is_error"], kind.is_some(), "{line}");
    (line["content"][0]["text"].as_str().unwrap_or_default().to_owned(), kind)
}

/// SPEC M19: what the model is told of each tool.
#[tokio::test]
async fn the_tools_are_listed_with_their_schemas() {
    let bench = Bench::new();
    let ended = bench.program(["tool", "list"]).run().await;
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    let tools = ended.json();
    let listed: Vec<(&str, Vec<&str>, &Value)> = tools
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| {
            let schema = &tool["input_schema"];
            let properties = schema["properties"].as_object().unwrap();
            assert_ne!(tool["description"], "");
            jsonschema::validator_for(schema).unwrap();
            (
                tool["name"].as_str().unwrap(),
                properties.keys().map(String::as_str).collect(),
                &schema["required"],
            )
        })
        .collect();
    assert_eq!(
        listed,
        [
            ("Read", vec!["path", "offset", "limit"], &json!(["path"])),
            ("Edit", vec!["path", "edits"], &json!(["path", "edits"])),
            ("Write", vec!["path", "content"], &json!(["path", "content"])),
            (
                "Bash",
                vec!["command", "timeout_ms", "background", "description"],
                &json!(["command"])
            ),
        ]
    );
}

/// SPEC L5, F1: one call, its output as one line of JSON, and the exit code.
#[tokio::test]
async fn one_call_is_one_line() {
    let bench = Bench::new();
    let path = bench.write("a.txt", "alpha\n");
    let ended = call(&bench, "Read", &json!({"path": "a.txt"})).run().await;
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    assert_eq!(
        ended.json(),
        json!({
            "content": [{"type": "text", "text": "1\talpha\n[lines 1-1 of 1: end of file]"}],
            "is_error": false,
            "details": {"path": path, "first_line": 1, "lines": 1, "total_lines": 1},
        })
    );
    let cases = [
        ("Read", json!({"path": "none.txt"}), "none.txt does not exist", "failed"),
        ("Read", json!({}), "invalid arguments for Read: ", "invalid_arguments"),
        ("Read", json!([]), "the arguments are not a JSON object: ", "invalid_arguments"),
        (
            "Fly",
            json!({}),
            "there is no tool Fly; the tools are Read, Edit, Write, Bash",
            "not_found",
        ),
    ];
    for (name, args, beginning, kind) in cases {
        let ended = call(&bench, name, &args).run().await;
        let (text, found) = output(&ended);
        assert_eq!((ended.code, found.as_deref()), (1, Some(kind)), "{name} {args}");
        assert!(text.starts_with(beginning), "{text}");
    }
}

/// SPEC U3, U4
#[tokio::test]
async fn a_call_that_is_none_is_said() {
    let bench = Bench::new();
    let cases: [(&[&str], &str); 3] = [
        (
            &["tool", "run", "Read", "--args", "{"],
            "error: --args is not JSON: EOF while parsing an object at line 1 column 1\n\
             hint: for example --args '{\"path\": \"README.md\"}'\n",
        ),
        (
            &["tool", "run", "--batch", "none.jsonl"],
            "error: cannot read none.jsonl: No such file or directory (os error 2)\n",
        ),
        (
            &["tool", "run", "Read"],
            "error: the following required arguments were not provided:\n  --args <JSON>\n\n\
             Usage: coding-agent tool run --args <JSON> <NAME|--batch <FILE>>\n\n\
             For more information, try '--help'.\n",
        ),
    ];
    for (arguments, expected) in cases {
        let ended = bench.program(arguments).run().await;
        assert_eq!(ended.all(), (2, "", expected), "{arguments:?}");
    }
    let ended = bench
        .program(["tool", "run", "--batch", "-"])
        .piped("{\"name\": \"Read\", \"args\": {\"path\": \"a\"}}\nnonsense\n")
        .run()
        .await;
    assert_eq!((ended.code, ended.stdout.lines().count()), (2, 1), "{ended:?}");
    assert_eq!(
        ended.stderr,
        "error: line 2 of the batch is no call: expected ident at column 2\n\
         hint: a line is {\"name\": \"Read\", \"args\": {\"path\": \"README.md\"}}\n"
    );
}

/// SPEC F3, F5, B8: a batch is one session, in order; what one call did the next one finds.
#[tokio::test]
async fn a_batch_is_one_session() {
    let calls = [
        json!({"name": "Write", "args": {"path": "a.txt", "content": "one\n"}}),
        json!({"name": "Edit", "args": {"path": "a.txt", "edits": [{"old_text": "one", "new_text": "two"}]}}),
        json!({"name": "Bash", "args": {"command": "cd /; cat \"$OLDPWD/a.txt\""}}),
        json!({"name": "Bash", "args": {"command": "pwd"}}),
    ];
    let batch: String = calls.iter().map(|call| format!("{call}\n\n")).collect();
    for from_file in [true, false] {
        let bench = Bench::new();
        let program = if from_file {
            bench.write("calls.jsonl", &batch);
            bench.program(["tool", "run", "--batch", "calls.jsonl"])
        } else {
            bench.program(["tool", "run", "--batch", "-"]).piped(&batch)
        };
        let ended = program.arguments(["--permission-mode", "bypass"]).run().await;
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{ended:?}");
        let lines = ended.events();
        let texts: Vec<&str> =
            lines.iter().map(|line| line["content"][0]["text"].as_str().unwrap()).collect();
        assert_eq!(texts.len(), 4, "{texts:?}");
        assert!(texts[2].starts_with("two\n"), "{texts:?}");
        assert!(texts[3].starts_with(bench.work().to_str().unwrap()), "{texts:?}");
        assert_eq!(bench.read("a.txt"), "two\n");
    }
}

/// SPEC U2: whoever drives the batch reads each answer before writing the next line.
#[tokio::test]
async fn a_batch_answers_each_line_before_it_reads_the_next() {
    let bench = Bench::new();
    bench.write("a.txt", "alpha\n");
    let mut running =
        bench.program(["tool", "run", "--batch", "-"]).input(tests::program::Input::Open).start();
    for _ in 0..3 {
        running.send_line(r#"{"name": "Read", "args": {"path": "a.txt"}}"#).await;
        let line: Value = serde_json::from_str(&running.next_line().await).unwrap();
        assert_eq!(line["content"][0]["text"], "1\talpha\n[lines 1-1 of 1: end of file]");
    }
    running.close_input();
    let ended = running.end().await;
    assert_eq!((ended.code, ended.stdout.lines().count(), ended.stderr.as_str()), (0, 3, ""));
}

/// SPEC I10: a batch that is interrupted while it waits for its next line ends.
#[tokio::test]
async fn a_waiting_batch_ends_at_a_signal() {
    let bench = Bench::new();
    bench.write("a.txt", "alpha\n");
    let mut running =
        bench.program(["tool", "run", "--batch", "-"]).input(tests::program::Input::Open).start();
    running.send_line(r#"{"name": "Read", "args": {"path": "a.txt"}}"#).await;
    running.next_line().await;
    running.signal(rustix::process::Signal::INT);
    let ended = running.end_with_input_open().await;
    assert_eq!((ended.code, ended.stdout.lines().count(), ended.stderr.as_str()), (130, 1, ""));
}

/// SPEC B2, I10: what a command left in the background ends with the session.
#[tokio::test]
async fn what_a_command_left_running_ends_with_the_session() {
    let bench = Bench::new();
    let command = "sleep 100 >/dev/null 2>&1 & echo left $!";
    let ended = call(&bench, "Bash", &json!({"command": command}))
        .arguments(["--permission-mode", "bypass"])
        .run()
        .await;
    let (text, kind) = output(&ended);
    assert_eq!((ended.code, kind), (0, None), "{ended:?}");
    assert!(text.starts_with("left "), "{text}");
}

/// What permission says of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Allowed,
    /// Nobody can be asked, so it is denied and counted.
    Asked,
    Refused,
}

fn verdict(output: &Value) -> Verdict {
    let text = output["content"][0]["text"].as_str().unwrap();
    match output["error_kind"].as_str() {
        None => Verdict::Allowed,
        Some("denied") if text.contains("nobody can be asked") => Verdict::Asked,
        Some("denied") => Verdict::Refused,
        Some(_) => panic!("{output}"),
    }
}

/// SPEC P5, P6: what each mode allows, asks about (and so denies here) and refuses.
#[tokio::test]
async fn modes_allow_ask_and_refuse() {
    use Verdict::{Allowed as Yes, Asked as Ask, Refused as No};
    let edits = json!([{"old_text": "alpha", "new_text": "beta"}]);
    let calls = [
        json!({"name": "Read", "args": {"path": "a.txt"}}),
        json!({"name": "Edit", "args": {"path": "a.txt", "edits": edits}}),
        json!({"name": "Write", "args": {"path": "new.txt", "content": "x"}}),
        json!({"name": "Bash", "args": {"command": "echo x >by-bash.txt"}}),
        json!({"name": "Read", "args": {"path": "../outside.txt"}}),
        json!({"name": "Write", "args": {"path": "../outside.txt", "content": "x"}}),
        json!({"name": "Write", "args": {"path": ".git/hooks/pre-commit", "content": "x"}}),
    ];
    let batch: String = calls.iter().map(|call| format!("{call}\n")).collect();
    let cases = [
        ("read-only", 3, [Yes, No, No, No, Ask, No, No], &["a.txt"][..]),
        ("ask", 3, [Yes, Ask, Ask, Ask, Ask, Ask, Ask], &["a.txt"]),
        ("accept-edits", 3, [Yes, Yes, Yes, Ask, Ask, Ask, Ask], &["a.txt", "new.txt"]),
        ("bypass", 0, [Yes; 7], &[".git", "a.txt", "by-bash.txt", "new.txt"]),
    ];
    for (mode, code, expected, names) in cases {
        let bench = Bench::new();
        bench.write("a.txt", "alpha\n");
        bench.write("../outside.txt", "outside\n");
        let ended = bench
            .program(["tool", "run", "--batch", "-", "--permission-mode", mode])
            .piped(&batch)
            .run()
            .await;
        let verdicts: Vec<Verdict> = ended.events().iter().map(verdict).collect();
        assert_eq!((ended.code, &verdicts[..]), (code, &expected[..]), "{mode} {ended:?}");
        assert_eq!(bench.names("."), names, "{mode}");
        let changed = |verdict| if verdict == Yes { "beta\n" } else { "alpha\n" };
        assert_eq!(bench.read("a.txt"), changed(expected[1]), "{mode}");
        let outside = if expected[5] == Yes { "x" } else { "outside\n" };
        assert_eq!(bench.read("../outside.txt"), outside, "{mode}");
    }
}

/// SPEC P7, F8: however the path is written, and in every mode.
#[tokio::test]
async fn credentials_are_refused_in_every_mode() {
    let bench = Bench::new();
    let secret = "SECRET-OF-THE-USER";
    bench.write(bench.user_home().join(".ssh/id_rsa"), secret);
    bench.write(bench.user_home().join(".aws/credentials"), secret);
    bench.write(bench.agent_home().join("config/credentials.toml"), secret);
    bench.write(bench.agent_home().join("data/sessions/1/log.jsonl"), secret);
    bench.write(".env", secret);
    bench.write("sub/.env.production", secret);
    symlink(bench.user_home().join(".ssh/id_rsa"), bench.work().join("innocent.txt")).unwrap();
    symlink(bench.user_home().join(".ssh"), bench.work().join("folder")).unwrap();
    symlink(".env", bench.work().join("settings")).unwrap();
    let home = bench.user_home().display().to_string();
    let paths = [
        "~/.ssh/id_rsa",
        "~/.ssh",
        "~/.aws/credentials",
        "../user/.ssh/id_rsa",
        "sub/../../user/.ssh/./id_rsa",
        "../agent/config/credentials.toml",
        "../agent/data/sessions/1/log.jsonl",
        &format!("{home}/.ssh/id_rsa"),
        &format!("file://{home}/.ssh/id_rsa"),
        &format!("@{home}/.ssh/id_rsa"),
        ".env",
        "./.env",
        "@.env",
        "sub/.env.production",
        "innocent.txt",
        "folder/id_rsa",
        "folder/../.ssh/id_rsa",
        "settings",
    ];
    let mut batch = String::new();
    for path in paths {
        batch += &format!("{}\n", json!({"name": "Read", "args": {"path": path}}));
        let args = json!({"path": path, "content": "overwritten"});
        batch += &format!("{}\n", json!({"name": "Write", "args": args}));
        let edits = json!([{"old_text": "SECRET", "new_text": "x"}]);
        let args = json!({"path": path, "edits": edits});
        batch += &format!("{}\n", json!({"name": "Edit", "args": args}));
    }
    for mode in ["read-only", "ask", "accept-edits", "bypass"] {
        let ended = bench
            .program(["tool", "run", "--batch", "-", "--permission-mode", mode])
            .piped(&batch)
            .run()
            .await;
        assert_eq!((ended.code, ended.stderr.as_str()), (1, ""), "{mode} {ended:?}");
        assert!(!ended.stdout.contains(secret), "{}", ended.stdout);
        let outputs = ended.events();
        assert_eq!(outputs.len(), paths.len() * 3);
        for (output, path) in outputs.iter().zip(paths.iter().flat_map(|path| [path; 3])) {
            assert_eq!(output["error_kind"], "denied", "{mode} {path}: {output}");
            let text = output["content"][0]["text"].as_str().unwrap();
            assert!(text.contains("may hold credentials"), "{mode} {path}: {text}");
        }
    }
    assert_eq!(bench.read(".env"), secret);
    assert_eq!(bench.read(bench.user_home().join(".ssh/id_rsa")), secret);
}

/// SPEC P5: the workspace is what is meant by `..`, links and further directories.
#[tokio::test]
async fn the_workspace_ends_at_its_roots() {
    let bench = Bench::new();
    bench.write("a.txt", "inside\n");
    bench.write("../outside/b.txt", "outside\n");
    bench.write("../extra/c.txt", "extra\n");
    symlink("../outside", bench.work().join("out")).unwrap();
    let outside = bench.root().join("outside/b.txt");
    let cases = [
        ("sub/../a.txt", 0, 0),
        ("../outside/b.txt", 3, 3),
        ("out/b.txt", 3, 3),
        (outside.to_str().unwrap(), 3, 3),
        ("../extra/c.txt", 3, 0),
        ("../work/a.txt", 0, 0),
    ];
    for (path, without, with) in cases {
        let args = json!({"path": path});
        let ended = call(&bench, "Read", &args).run().await;
        assert_eq!(ended.code, without, "{path} {ended:?}");
        if without == 3 {
            assert!(!ended.stdout.contains("\\t"), "nothing is shown: {}", ended.stdout);
        }
        let ended = call(&bench, "Read", &args).arguments(["--add-dir", "../extra"]).run().await;
        assert_eq!(ended.code, with, "{path} {ended:?}");
    }
    let ended = call(&bench, "Read", &json!({"path": "b.txt"}))
        .arguments(["--cwd", "../outside"])
        .run()
        .await;
    assert_eq!(output(&ended).0, "1\toutside\n[lines 1-1 of 1: end of file]");
}

/// SPEC B1, M20: a command does not get the keys that the program was given.
#[tokio::test]
async fn a_command_does_not_get_the_keys() {
    let bench = Bench::new();
    let ended = call(&bench, "Bash", &json!({"command": "env"}))
        .arguments(["--permission-mode", "bypass"])
        .variable("ANTHROPIC_API_KEY", tests::program::KEY)
        .variable("MY_GITHUB_TOKEN", tests::program::KEY)
        .variable("HARMLESS", "is kept")
        .run()
        .await;
    let (text, _) = output(&ended);
    assert_eq!(ended.code, 0);
    assert!(text.contains("HARMLESS=is kept\n") && !text.contains("API_KEY"), "{text}");
}
