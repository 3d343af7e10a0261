//! The demo's task: an agent finds out why its own loop never ended, and mends it.
//!
//! Three turns: two parallel `Read` calls, one `Edit`, the answer. The workspace of the task is here
//! too, because the edit must fit the file to the letter. [`LOOP_RS`] is a real program: it compiles
//! with `rustc loop.rs`, never ends as it is, and ends at once when it is mended.

use serde_json::json;

use crate::script::{Expect, Script, Turn};

/// The script's name.
pub const NAME: &str = "fix-loop";

/// What the user asks for.
pub const PROMPT: &str = "Read loop.rs and the crash.log that it just left, find out why you got \
                          stuck in an endless loop, and fix that bug.";

/// The program's file, in the workspace.
pub const LOOP_PATH: &str = "loop.rs";

/// The program with its bug.
pub const LOOP_RS: &str = include_str!("../fix-loop/loop.rs");

/// The log's file, in the workspace.
pub const CRASH_PATH: &str = "crash.log";

/// What the watchdog wrote.
pub const CRASH_LOG: &str = include_str!("../fix-loop/crash.log");

/// What is replaced. It is in [`LOOP_RS`] once.
pub const OLD_TEXT: &str = "        answered += 1;\n";

/// What it is replaced with.
pub const NEW_TEXT: &str = "        answered += 1;\n        pending.pop_front();\n";

/// The line that the mended program has and the other lacks.
pub const FIXED_LINE: &str = "        pending.pop_front();";

/// What the mended program prints.
pub const SUCCESS: &str = "done: 2 calls answered, none pending";

/// The files of the workspace, as (path, text).
pub const FILES: [(&str, &str); 2] = [(LOOP_PATH, LOOP_RS), (CRASH_PATH, CRASH_LOG)];

/// The script. Its second and third turn expect the results of the calls before them, so that it
/// never claims what did not happen.
pub fn script() -> Script {
    Script::new(NAME)
        .turn(
            Turn::new()
                .text("I look at the loop and at what the crash left behind.")
                .call("Read", json!({"path": LOOP_PATH}))
                .call("Read", json!({"path": CRASH_PATH})),
        )
        .turn(
            Turn::new()
                .expecting(
                    Expect::new()
                        .results(2)
                        .is_error(false)
                        .last_result_contains("while let Some(call) = pending.front()")
                        .last_result_contains("watchdog: no progress"),
                )
                .text(
                    "The loop looks at the first pending call, answers it, and never takes it off \
                     the queue: it answers the same call for ever. The log says the same: the \
                     number of pending calls never falls.",
                )
                .call(
                    "Edit",
                    json!({
                        "path": LOOP_PATH,
                        "edits": [{"old_text": OLD_TEXT, "new_text": NEW_TEXT}],
                    }),
                ),
        )
        .turn(Turn::new().expecting(Expect::new().results(1).is_error(false)).text(
            "I have repaired myself. `main` in loop.rs left every answered call at the \
                     front of the queue, so the queue never ran dry. Each call is now taken off \
                     once it is answered, and the loop ends when none is pending.",
        ))
}
