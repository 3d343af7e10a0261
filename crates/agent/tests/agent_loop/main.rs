//! `agent_loop` as its users see it: events, results, isolation, cancellation.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "functions that tests share")]

mod batch;
mod cancel;
mod context;
mod events;
mod failures;
mod lines;
mod script;
