//! What the end-to-end suites share.

pub mod grammar;
