//! The heart of a small agent: answer every tool call that the model has made, then end the run.

use std::collections::VecDeque;

/// A call that the model has made.
struct Call {
    tool: &'static str,
    path: &'static str,
}

/// What a call came to.
fn answer(call: &Call) -> String {
    format!("{} {}: ok", call.tool, call.path)
}

fn main() {
    let mut pending = VecDeque::new();
    pending.push_back(Call { tool: "Read", path: "loop.rs" });
    pending.push_back(Call { tool: "Read", path: "crash.log" });

    let mut answered: u64 = 0;
    let mut last = String::new();
    while let Some(call) = pending.front() {
        last = answer(call);
        answered += 1;
    }

    assert_eq!(last, "Read crash.log: ok");
    println!("done: {answered} calls answered, none pending");
}
