use std::sync::mpsc;
use std::time::Instant;

use agent::{OfferedTool, Partial, Progress};
use ai::ToolErrorKind;
use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};

use super::*;
use crate::tools::fixture::Fixture;

/// How long anything that is waited for may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn bash(fixture: &Fixture) -> Bash {
    Bash::new(fixture.workspace.cwd(), BashSettings::default(), Processes::default())
}

/// The text without the time, which is not always the same: `[exit 0 · T · in DIR]`.
fn timeless(fixture: &Fixture, output: &ToolOutput) -> String {
    let text = output.content_text();
    let (before, footer) = text.rsplit_once("\n[").unwrap();
    let parts: Vec<_> = footer.split(" · ").collect();
    let [ending, time, directory] = parts[..] else { panic!("{footer}") };
    assert!(time.ends_with(" s"), "{footer}");
    let directory = directory.replace(&fixture.workspace.cwd().display().to_string(), "DIR");
    format!("{before}\n[{ending} · T · {directory}")
}

async fn check(command: &str, expected: &str, kind: Option<ToolErrorKind>) {
    let fixture = Fixture::new();
    let output = fixture.run(bash(&fixture), json!({"command": command})).await;
    assert_eq!(timeless(&fixture, &output), expected, "{command}");
    assert_eq!((output.is_error, output.error_kind), (kind.is_some(), kind), "{command}");
}

/// Waits until a process is gone, or is only not yet taken note of by whoever inherited it.
async fn gone(pid: i32) {
    let started = Instant::now();
    let stat = format!("/proc/{pid}/stat");
    while test_kill_process(Pid::from_raw(pid).unwrap()).is_ok()
        && !std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") Z "))
    {
        assert!(started.elapsed() < PATIENCE, "process {pid} still runs");
        tokio::task::yield_now().await;
    }
}

/// Waits for a command to write a process id into a file.
async fn pid_in(fixture: &Fixture, name: &str) -> i32 {
    let started = Instant::now();
    loop {
        let text = std::fs::read_to_string(fixture.path(name)).unwrap_or_default();
        if let Some(pid) = text.strip_suffix('\n') {
            return pid.parse().unwrap();
        }
        assert!(started.elapsed() < PATIENCE, "no process id in {name}");
        tokio::task::yield_now().await;
    }
}

/// SPEC B5, B6, B8
#[tokio::test]
async fn the_result_is_the_output_and_how_it_ended() {
    let failed = Some(ToolErrorKind::Failed);
    let cases = [
        ("echo hello", "hello\n[exit 0 · T · in DIR]", None),
        ("printf hello", "hello\n[exit 0 · T · in DIR]", None),
        ("true", "(no output)\n[exit 0 · T · in DIR]", None),
        ("echo oops; exit 3", "oops\n[exit 3 · T · in DIR]", failed),
        ("kill -SEGV $$", "(no output)\n[killed by SIGSEGV · T · in DIR]", failed),
        (
            "for n in 1 2 3; do echo out $n; echo err $n >&2; done",
            "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n[exit 0 · T · in DIR]",
            None,
        ),
        ("printf 'a\\xffb\\0c\\n'", "a\u{fffd}bc\n[exit 0 · T · in DIR]", None),
        ("printf '10%%\\r\\033[31m100%%\\033[0m\\n'", "100%\n[exit 0 · T · in DIR]", None),
        ("cat; echo end of input", "end of input\n[exit 0 · T · in DIR]", None),
        ("cd /; pwd", "/\n[exit 0 · T · in DIR]", None),
        ("exec >&- 2>&-; exit 4", "(no output)\n[exit 4 · T · in DIR]", failed),
    ];
    for (command, expected, kind) in cases {
        check(command, expected, kind).await;
    }
}

/// SPEC B1
#[tokio::test]
async fn the_environment_asks_nobody_and_holds_no_credentials() {
    let fixture = Fixture::new();
    let path = std::env::var_os("PATH").unwrap();
    let given =
        [("PATH".into(), path), ("SOME_TOKEN".into(), "x".into()), ("KEPT".into(), "y".into())];
    let bash = bash(&fixture).with_environment(given);
    let command = "echo $GIT_EDITOR $PAGER $GIT_TERMINAL_PROMPT $TERM [$SOME_TOKEN] [$KEPT]; \
                   ps -o pgid= -p $$ | tr -d ' ' | grep -qx $$ && echo own group";
    let output = fixture.run(bash, json!({"command": command})).await;
    let expected = "true cat 0 dumb [] [y]\nown group\n[exit 0 · T · in DIR]";
    assert_eq!(timeless(&fixture, &output), expected);
}

/// SPEC B6
#[tokio::test]
async fn the_details_say_how_it_ended() {
    let fixture = Fixture::new();
    let mut output = fixture.run(bash(&fixture), json!({"command": "echo x; exit 3"})).await;
    assert!(output.details["duration_ms"].take().is_u64());
    let expected = json!({
        "ended": "exited", "exit_code": 3, "signal": null, "bytes": 2, "left_out": 0,
        "duration_ms": null, "cwd": fixture.workspace.cwd(), "left_running": false,
    });
    assert_eq!(output.details, expected);
}

/// SPEC B3, B6
#[tokio::test]
async fn a_command_that_takes_too_long_is_ended() {
    let fixture = Fixture::new();
    let arguments = json!({"command": "sleep 1000; echo not reached", "timeout_ms": 50});
    let output = fixture.run(bash(&fixture), arguments).await;
    let expected = "(no output)\n[timed out after 0.05 s · T · in DIR]";
    assert_eq!(timeless(&fixture, &output), expected);
    assert_eq!((output.is_error, output.error_kind), (true, Some(ToolErrorKind::TimedOut)));
}

/// SPEC B3
#[tokio::test]
async fn cancelling_kills_the_group_and_still_reports() {
    // Whether the leader ends when it is asked to or not: its child does not.
    for trap in ["trap 'exit 0' TERM", "trap '' TERM"] {
        let fixture = Fixture::new();
        let command = format!(
            "echo begun; bash -c 'trap \"\" TERM; echo $$ >child; while :; do sleep 1000; done' & \
             {trap}; echo $$ >leader; while :; do wait; done"
        );
        let tool = OfferedTool::new(bash(&fixture)).unwrap();
        let call = fixture.call("Bash", json!({"command": command}));
        let cancel = call.cancel.clone();
        let running = tokio::spawn(async move { tool.call(call).await });
        let (child, leader) = (pid_in(&fixture, "child").await, pid_in(&fixture, "leader").await);
        cancel.cancel();
        let output = running.await.unwrap().unwrap();
        assert_eq!(timeless(&fixture, &output), "begun\n[cancelled · T · in DIR]");
        assert_eq!((output.is_error, output.error_kind), (true, Some(ToolErrorKind::Aborted)));
        gone(child).await;
        gone(leader).await;
    }
}

/// SPEC B3
#[tokio::test]
async fn a_dropped_call_kills_the_group() {
    let fixture = Fixture::new();
    let bash = bash(&fixture);
    let processes = bash.processes.clone();
    let arguments = || BashArguments {
        command: "sleep 1000 & echo $! >child; wait".to_owned(),
        timeout_ms: None,
        background: None,
        description: None,
    };
    let call = fixture.call("Bash", json!({}));
    let child = tokio::select! {
        _ = bash.run(arguments(), &call) => unreachable!(),
        child = pid_in(&fixture, "child") => child,
    };
    gone(child).await;
    assert_eq!(processes.count(), 0);
}

/// SPEC B2
#[tokio::test]
async fn a_child_in_the_background_does_not_hold_the_call() {
    let fixture = Fixture::new();
    let bash = bash(&fixture);
    let processes = bash.processes.clone();
    let started = Instant::now();
    // It holds the pipe and writes to it after the call has ended.
    let command = "(while :; do echo noise; sleep 0.01; done) & echo $! >child; echo done >&2";
    let output = fixture.run(bash, json!({"command": command})).await;
    assert!(started.elapsed() < PATIENCE);
    let text = output.content_text();
    assert!(text.contains("done\n"), "{text}");
    assert!(text.contains("\n[still running in the background: process group "), "{text}");
    assert_eq!((output.is_error, &output.details["left_running"]), (false, &json!(true)));
    let child = pid_in(&fixture, "child").await;
    assert_eq!(processes.count(), 1);
    assert!(test_kill_process(Pid::from_raw(child).unwrap()).is_ok());
    processes.kill_all();
    gone(child).await;
    assert_eq!(processes.count(), 0);
}

/// SPEC B2
#[tokio::test]
async fn dropping_the_list_kills_what_was_left_running() {
    let fixture = Fixture::new();
    // It does not hold the pipe.
    let command = "sleep 1000 >/dev/null 2>&1 & echo $! >child";
    let output = fixture.run(bash(&fixture), json!({"command": command})).await;
    assert!(output.content_text().contains("[still running in the background: "), "{output:?}");
    gone(pid_in(&fixture, "child").await).await;
}

/// SPEC B2
#[tokio::test]
async fn a_process_that_left_the_group_does_not_hold_the_call() {
    let fixture = Fixture::new();
    let command = "setsid sleep 1000 & \
                   until [ $(ps -o sid= -p $!) = $! ]; do :; done; echo $! >child";
    let output = fixture.run(bash(&fixture), json!({"command": command})).await;
    let expected = "(no output)\n[a process that left the command's process group still holds its \
                    output; what it prints now is discarded]\n[exit 0 · T · in DIR]";
    assert_eq!(timeless(&fixture, &output), expected);
    let child = Pid::from_raw(pid_in(&fixture, "child").await).unwrap();
    rustix::process::kill_process(child, rustix::process::Signal::KILL).unwrap();
}

/// SPEC B5
#[tokio::test]
async fn long_output_loses_its_middle() {
    let fixture = Fixture::new();
    let command = "seq 1000000; yes | head -c 50000000; echo the end";
    let output = fixture.run(bash(&fixture), json!({"command": command})).await;
    let text = output.content_text();
    assert!(text.len() < 31 * 1024, "{}", text.len());
    assert!(text.starts_with("1\n2\n3\n"));
    let (_, rest) = text.split_once("\n[… ").unwrap();
    let (middle, rest) = rest.split_once('\n').unwrap();
    let kept = 30 * 1024;
    let left_out = output.details["left_out"].as_u64().unwrap();
    let bytes = 6_888_896 + 50_000_000 + 8;
    assert_eq!(output.details["bytes"], json!(bytes));
    assert!((bytes - kept..bytes - kept + 20).contains(&left_out), "{left_out}");
    assert!(middle.starts_with(&format!("{left_out} bytes (")), "{middle}");
    assert!(middle.ends_with(
        " lines) left out here: filter the output, or send it to a file and read that …]"
    ));
    assert!(rest.starts_with("y\ny\n"));
    assert!(!output.is_error);
    assert!(rest.contains("y\nthe end\n[exit 0 · "));
}

#[tokio::test]
async fn the_end_of_the_output_is_reported_while_it_runs() {
    let fixture = Fixture::new();
    let tool = OfferedTool::new(bash(&fixture)).unwrap();
    let command = "echo begun; while ! test -e go; do sleep 0.01; done; echo over";
    let mut call = fixture.call("Bash", json!({"command": command}));
    let (sender, receiver) = mpsc::sync_channel(100);
    let go = fixture.path("go");
    call.progress = Progress::new(move |partial: Partial| {
        // The command goes on only when it has been heard.
        std::fs::write(&go, "").unwrap();
        sender.try_send(partial).unwrap();
    });
    let output = tool.call(call).await.unwrap();
    assert_eq!(timeless(&fixture, &output), "begun\nover\n[exit 0 · T · in DIR]");
    let first = receiver.recv().unwrap();
    let content = vec![ai::ContentBlock::text("begun\n")];
    assert_eq!(first, Partial { content, details: Value::Null });
}

#[tokio::test]
async fn what_cannot_be_run_is_said_in_words() {
    let fixture = Fixture::new();
    let long = format!("echo {}", "x".repeat(200_000));
    let cases = [
        (
            json!({"command": "sleep 1", "background": true}),
            "background commands are not available: run it in the foreground with a timeout_ms, or \
             end the command with `>FILE 2>&1 &` and read FILE later",
        ),
        (json!({"command": "echo \0"}), "the command holds a NUL character"),
        (json!({"command": long}), "the command is too long: put it into a file and run that"),
    ];
    for (arguments, expected) in cases {
        let output = fixture.run(bash(&fixture), arguments).await;
        assert_eq!((output.content_text().as_str(), output.is_error), (expected, true));
    }
    let gone = Bash::new(fixture.path("gone"), BashSettings::default(), Processes::default());
    let output = fixture.run(gone, json!({"command": "pwd"})).await;
    let expected =
        format!("the working directory {} does not exist any more", fixture.path("gone").display());
    assert_eq!(output.content_text(), expected);
}

#[tokio::test]
async fn nothing_runs_without_a_grant() {
    let fixture = Fixture::new();
    let tool = OfferedTool::new(bash(&fixture)).unwrap();
    let mut call = ToolCall::new("call", "Bash", json!({"command": "touch ran"}));
    call.extensions.insert(Grant::builder().build());
    let output = tool.call(call).await.unwrap();
    let expected = ToolOutput::error(ToolErrorKind::Denied, "running a command was not granted");
    assert_eq!(output, expected);
    assert!(!fixture.path("ran").exists());
}
