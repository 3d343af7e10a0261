//! The program as its users see it: the real binary, a real model server, real files and processes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod demo;
mod ending;
mod faults;
mod headless;
mod wrong_input;
