//! What the end-to-end suites share.

pub mod bench;
pub mod decoded;
pub mod grammar;
pub mod outline;
pub mod program;
pub mod recordings;
