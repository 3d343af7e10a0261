//! OpenAI's Responses, as OpenAI, Azure, xAI, OpenRouter and local servers speak it.

pub(crate) mod decode;
pub(crate) mod encode;
mod item;
mod wire;
