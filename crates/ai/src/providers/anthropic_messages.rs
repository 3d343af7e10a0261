//! Anthropic's Messages.

pub(crate) mod encode;
