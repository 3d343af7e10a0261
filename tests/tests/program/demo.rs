//! `demo`: the task of the source documents, end to end.

use serde_json::{Value, json};
use tests::bench::Bench;
use tests::outline::outline;

/// The project stays, so that its user can look at it.
const PROJECT: &str = "coding-agent-demo-";

/// A directory without any program, for a `PATH` on which there is no compiler.
fn nothing(bench: &Bench) -> std::path::PathBuf {
    let directory = bench.root().join("empty");
    std::fs::create_dir(&directory).unwrap();
    directory
}

/// SPEC L1: the whole order, as the program prints it.
#[tokio::test]
async fn the_events_are_those_of_the_task_in_its_order() {
    let bench = Bench::new();
    let ended = bench
        .program(["demo", "--output-format", "stream-json"])
        .variable("PATH", nothing(&bench))
        .keeps(PROJECT)
        .run()
        .await;
    assert_eq!(ended.code, 0, "{ended:?}");
    let events = ended.events();
    let mut lines = outline(&events);
    // The two reads run at the same time, so either may end first.
    let ends = lines.iter().position(|line| line.starts_with("tool_execution_end")).unwrap();
    lines[ends..ends + 2].sort();
    assert_eq!(
        lines,
        [
            "session",
            "agent_status running",
            "agent_start",
            "turn_start 1",
            "message_start user",
            "message_end user",
            "message_start assistant",
            "message_update text_start 0",
            "message_update text_delta 0",
            "message_update text_end 0",
            "message_update toolcall_start 1",
            "message_update toolcall_delta 1",
            "message_update toolcall_end 1",
            "message_update toolcall_start 2",
            "message_update toolcall_delta 2",
            "message_update toolcall_end 2",
            "message_end assistant",
            "tool_execution_start toolu_0001 Read loop.rs",
            "tool_execution_start toolu_0002 Read crash.log",
            "tool_execution_end toolu_0001 is_error=false",
            "tool_execution_end toolu_0002 is_error=false",
            "message_start tool_result toolu_0001",
            "message_end tool_result toolu_0001",
            "message_start tool_result toolu_0002",
            "message_end tool_result toolu_0002",
            "turn_end 1 results=2 more=true",
            "turn_start 2",
            "message_start assistant",
            "message_update text_start 0",
            "message_update text_delta 0",
            "message_update text_end 0",
            "message_update toolcall_start 1",
            "message_update toolcall_delta 1",
            "message_update toolcall_end 1",
            "message_end assistant",
            "tool_execution_start toolu_0003 Edit loop.rs",
            "tool_execution_end toolu_0003 is_error=false",
            "message_start tool_result toolu_0003",
            "message_end tool_result toolu_0003",
            "turn_end 2 results=1 more=true",
            "turn_start 3",
            "message_start assistant",
            "message_update text_start 0",
            "message_update text_delta 0",
            "message_update text_end 0",
            "message_end assistant",
            "turn_end 3 results=0 more=false",
            "agent_end completed messages=7",
            "agent_status idle",
        ]
    );

    // What the run says it added is what was seen to end, each message once and in that order.
    let of = |kind: &'static str| events.iter().filter(move |event| event["type"] == kind);
    let seen: Vec<&Value> = of("message_end").map(|event| &event["message"]).collect();
    let added: Vec<&Value> =
        of("agent_end").flat_map(|event| event["messages"].as_array().unwrap()).collect();
    assert_eq!(added, seen);
    let updated: Vec<&Value> = of("message_update").map(|event| &event["message_id"]).collect();
    assert!(updated.iter().all(|id| seen.iter().any(|message| message["id"] == **id)));

    let session = &events[0];
    let project = session["cwd"].as_str().unwrap();
    assert_eq!(
        *session,
        json!({
            "type": "session",
            "id": session["id"],
            "cwd": project,
            "model": "scripted/fix-loop",
            "api": "anthropic-messages",
            "permission_mode": "accept-edits",
            "tools": ["Read", "Edit", "Write", "Bash"],
            "version": env!("CARGO_PKG_VERSION"),
        })
    );
    let mended = bench.read(format!("{project}/loop.rs"));
    assert_eq!(
        mended,
        scripted_model::fix_loop::LOOP_RS
            .replace(scripted_model::fix_loop::OLD_TEXT, scripted_model::fix_loop::NEW_TEXT)
    );
    assert_eq!(bench.names(project), ["crash.log", "loop.rs"]);
}

/// SPEC U1
#[tokio::test]
async fn a_person_sees_what_happens() {
    let bench = Bench::new();
    let ended =
        bench.program(["demo"]).variable("PATH", nothing(&bench)).keeps(PROJECT).run().await;
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{ended:?}");
    let project = bench.temporary().join(&bench.names(bench.temporary())[0]);
    let shown: Vec<&str> = ended
        .stdout
        .lines()
        .map(str::trim_end)
        .filter(|line| {
            let line = line.trim_start();
            ["A project", "turn", "→", "✓", "+   ", "■", "Not proved"]
                .iter()
                .any(|start| line.starts_with(start))
        })
        .map(|line| line.trim_end_matches(['─', ' ']))
        .collect();
    let end = shown[shown.len() - 2];
    assert!(end.starts_with("■ completed · 3 turns · "), "{end}");
    let mut shown = shown;
    let last = shown.len() - 2;
    shown[last] = "■";
    // The two reads work at the same time and end in either order.
    shown[4..6].sort_unstable();
    assert_eq!(
        shown,
        [
            format!("A project with a bug, in {}", project.display()).as_str(),
            "turn 1",
            "  → Read loop.rs",
            "  → Read crash.log",
            "  ✓ Read crash.log",
            "  ✓ Read loop.rs",
            "turn 2",
            "  → Edit loop.rs",
            "  ✓ Edit loop.rs",
            "      +        pending.pop_front();",
            "turn 3",
            "■",
            "Not proved: there is no rustc here to compile the mended program with.",
        ]
    );
    assert!(!ended.stdout.contains('\u{1b}'), "no colour into a pipe");
}

/// SPEC U1: whoever doubts the agent's word is shown that the program runs.
#[tokio::test]
async fn the_mended_program_is_compiled_and_run() {
    let bench = Bench::new();
    // rustup's proxies look for the toolchain below the real home.
    let rustup = std::env::var_os("RUSTUP_HOME")
        .map(std::path::PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".rustup")));
    let mut program = bench.program(["demo"]).keeps(PROJECT);
    if let Some(rustup) = rustup.filter(|path| path.exists()) {
        program = program.variable("RUSTUP_HOME", rustup);
    }
    if let Some(toolchain) = std::env::var_os("RUSTUP_TOOLCHAIN") {
        program = program.variable("RUSTUP_TOOLCHAIN", toolchain);
    }
    let ended = program.run().await;
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{ended:?}");
    let last = ended.stdout.lines().last().unwrap();
    if last.starts_with("Not proved: there is no rustc") {
        eprintln!("skipped: there is no rustc on this machine");
        return;
    }
    assert_eq!(
        last,
        "Proved: the mended loop.rs compiles, runs and ends. It says: \
         done: 2 calls answered, none pending"
    );
}

/// SPEC U3: no place for its project is said, with what to do.
#[tokio::test]
async fn a_demo_without_a_place_for_its_files_says_so() {
    let bench = Bench::new();
    let missing = bench.root().join("missing");
    let ended = bench.program(["demo"]).variable("TMPDIR", &missing).run().await;
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""));
    let lines: Vec<&str> = ended.stderr.lines().collect();
    let place = format!(" at path \"{}/{PROJECT}", missing.display());
    let (what, _) = lines[0].split_once(&place).unwrap();
    assert_eq!(
        (what, &lines[1..]),
        (
            "error: cannot write the demo's project: No such file or directory (os error 2)",
            &["hint: set TMPDIR to a directory that can be written to"][..]
        )
    );
}
