//! OpenAI's Chat Completions, and everything that calls itself compatible with it.

mod calls;
pub(crate) mod decode;
pub(crate) mod encode;
mod reasoning_details;
mod thinking_tags;
mod usage;
mod wire;
