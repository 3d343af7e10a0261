//! Anthropic's Messages, as Anthropic, Bedrock, Vertex and gateways speak it.

pub(crate) mod decode;
pub(crate) mod encode;
mod wire;
