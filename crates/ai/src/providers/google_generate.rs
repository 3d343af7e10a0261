//! Google's generateContent, as Gemini's own API and Vertex speak it.

mod arguments;
pub(crate) mod decode;
pub(crate) mod encode;
mod wire;

/// What a candidate says about the answer as a whole: kept with it, and never sent back.
const METADATA: [&str; 3] = ["groundingMetadata", "urlContextMetadata", "citationMetadata"];
