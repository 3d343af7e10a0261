//! The program as its users see it: the real binary, a real model server, real files and processes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod calls;
mod demo;
mod ending;
mod faults;
mod headless;
mod inspection;
mod keys;
mod models;
mod network;
mod providers;
mod secrets;
mod tool_run;
mod violations;
mod wrong_input;
