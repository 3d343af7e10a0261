//! A [`Request`] as the body that its API takes.
//!
//! Pure and deterministic: the same request and entry give the same bytes, which is what providers'
//! prompt caches live on.

use crate::api::Api;
use crate::provider_entry::ProviderEntry;
use crate::providers::{anthropic_messages, google_generate, openai_chat, openai_responses};
use crate::request::Request;

/// The JSON body of a streaming request.
pub fn encode_request(request: &Request, entry: &ProviderEntry) -> Vec<u8> {
    match entry.api {
        Api::AnthropicMessages => anthropic_messages::encode::encode(request, entry),
        Api::OpenaiChat => openai_chat::encode::encode(request, entry),
        Api::OpenaiResponses => openai_responses::encode::encode(request, entry),
        Api::GoogleGenerate => google_generate::encode::encode(request, entry),
    }
}

#[cfg(test)]
#[path = "encode/tests.rs"]
mod tests;
