//! The onion as a host composes it: extensions, validation, permission and tools in one `Stack`,
//! around probes that write down what they see.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod approval;
mod extensions;
mod probes;
