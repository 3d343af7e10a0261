//! The server as its clients see it: bytes over TCP.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod client;
mod encoded;
mod faults;
mod gates;
mod google_rules;
mod host_rules;
mod playing;
mod responses_rules;
mod rules;
mod scripts;
