//! One module an API: its private wire types, what it sends and how what it gets becomes events.

pub(crate) mod anthropic_messages;
pub(crate) mod blocks;
pub(crate) mod google_generate;
mod json_extent;
pub(crate) mod lenient;
pub(crate) mod openai_chat;
pub(crate) mod openai_responses;
pub(crate) mod payload;
#[cfg(test)]
mod said;
mod stop_word;
#[cfg(test)]
mod thinking_tests;

/// JSON inside JSON, as Chat Completions carries arguments.
#[expect(
    clippy::expect_used,
    reason = "a map from strings to JSON values is JSON, and a `String` takes every write"
)]
fn json_text(fields: &serde_json::Map<String, serde_json::Value>) -> String {
    serde_json::to_string(fields).expect("a JSON object is JSON")
}

/// The bytes of a body.
#[expect(
    clippy::expect_used,
    reason = "serialising fails for map keys that are no strings and for failing `Serialize` \
              implementations; the adapters' wire types have neither, and a `Vec` takes every write"
)]
fn to_json<T: serde::Serialize>(body: &T) -> Vec<u8> {
    serde_json::to_vec(body).expect("wire types are plain JSON")
}
