//! A provider's own list of its models: where it is, and what it says of them.
//!
//! Every host lists ids; what else is told differs by host and is read by the names that hosts use
//! for it. Sans-IO: the transport asks.

use serde_json::Value;

use crate::api::Api;
use crate::catalogue::{Modality, ModelInfo};
use crate::cost::Price;
use crate::provider_entry::ProviderEntry;

/// More models than any provider lists; the rest is not worth the memory.
const MAX_MODELS: usize = 5_000;

/// How many models are asked for at once: all, where the host pages them.
const PAGE: &str = "1000";

/// The longest id that is one.
const MAX_ID_BYTES: usize = 256;

impl ProviderEntry {
    /// The address of the provider's list of models.
    pub fn models_endpoint(&self) -> String {
        let endpoint = self.endpoint();
        let (path, query) = endpoint.split_at(endpoint.find('?').unwrap_or(endpoint.len()));
        let query = query.replace("?alt=sse", "?").replace("&alt=sse", "");
        let (base, page) = match self.api {
            Api::AnthropicMessages => (path.trim_end_matches("/messages"), "limit="),
            Api::OpenaiChat => (path.trim_end_matches("/chat/completions"), ""),
            Api::OpenaiResponses => (path.trim_end_matches("/responses"), ""),
            Api::GoogleGenerate => {
                (path.rsplit_once("/models/").map_or(path, |(base, _)| base), "pageSize=")
            }
        };
        let mut query = query.trim_start_matches('?').to_owned();
        if !page.is_empty() {
            let and = if query.is_empty() { "" } else { "&" };
            query.push_str(&format!("{and}{page}{PAGE}"));
        }
        let mark = if query.is_empty() { "" } else { "?" };
        format!("{base}/models{mark}{query}")
    }
}

/// The models that a list holds, in its order; `None` where it is no list.
pub(crate) fn read(body: &[u8]) -> Option<Vec<ModelInfo>> {
    let list: Value = serde_json::from_slice(body).ok()?;
    let models = ["data", "models"].iter().find_map(|field| list.get(field));
    let models = models.unwrap_or(&list).as_array()?;
    Some(models.iter().take(MAX_MODELS).filter_map(model).collect())
}

fn model(listed: &Value) -> Option<ModelInfo> {
    let id = ["id", "name", "model"].iter().find_map(|field| listed.get(field)?.as_str())?;
    let id = id.strip_prefix("models/").unwrap_or(id);
    if id.is_empty() || id.len() > MAX_ID_BYTES || id.chars().any(char::is_control) {
        return None;
    }
    // Google lists models of other uses beside those that answer.
    if let Some(methods) = listed.get("supportedGenerationMethods").and_then(Value::as_array)
        && !methods.iter().any(|method| method == "generateContent")
    {
        return None;
    }
    let mut info = ModelInfo::new(id);
    info.context_window = number(
        listed,
        &[
            "/context_length",
            "/context_window",
            "/max_context_length",
            "/max_model_len",
            "/inputTokenLimit",
            "/max_input_tokens",
            "/top_provider/context_length",
        ],
    );
    info.max_output_tokens = number(
        listed,
        &[
            "/max_output_tokens",
            "/max_completion_tokens",
            "/top_provider/max_completion_tokens",
            "/outputTokenLimit",
        ],
    )
    .and_then(|tokens| u32::try_from(tokens).ok());
    info.input = modalities(listed);
    info.price = listed.get("pricing").and_then(price);
    Some(info)
}

/// The first of these fields that holds a count.
fn number(listed: &Value, fields: &[&str]) -> Option<u64> {
    let found = fields.iter().find_map(|field| listed.pointer(field)?.as_u64());
    found.filter(|count| *count > 0)
}

fn modalities(listed: &Value) -> Vec<Modality> {
    if let Some(named) = listed.pointer("/architecture/input_modalities").and_then(Value::as_array)
    {
        return named
            .iter()
            .filter_map(|name| match name.as_str()? {
                "text" => Some(Modality::Text),
                "image" => Some(Modality::Image),
                "file" | "pdf" => Some(Modality::Pdf),
                "audio" => Some(Modality::Audio),
                "video" => Some(Modality::Video),
                _ => None,
            })
            .collect();
    }
    let sees = ["/capabilities/vision", "/supports_image_input", "/supports_image_in"]
        .iter()
        .find_map(|field| listed.pointer(field)?.as_bool());
    match sees {
        Some(true) => vec![Modality::Text, Modality::Image],
        Some(false) => vec![Modality::Text],
        None => Vec::new(),
    }
}

/// Prices as OpenRouter lists them: for one token, and as strings. Others list other things under
/// the same name, which are not read.
fn price(pricing: &Value) -> Option<Price> {
    let for_a_million = |field: &str| {
        let dollars: f64 = pricing.get(field)?.as_str()?.parse().ok()?;
        // Rounded to where a price ends: a product of decimal fractions is not one.
        let price = (dollars * 1e6 * 1e6).round() / 1e6;
        (price.is_finite() && price >= 0.0).then_some(price)
    };
    Some(Price {
        input: for_a_million("prompt")?,
        output: for_a_million("completion")?,
        cache_read: for_a_million("input_cache_read"),
        cache_write: for_a_million("input_cache_write"),
        above: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_list_is_beside_the_endpoint() {
        for (api, base, expected) in [
            (Api::AnthropicMessages, "https://h", "https://h/v1/models?limit=1000"),
            (Api::AnthropicMessages, "https://h/v1/messages", "https://h/v1/models?limit=1000"),
            (Api::OpenaiChat, "https://h/v1", "https://h/v1/models"),
            (Api::OpenaiChat, "https://h/v1/chat/completions?v=1", "https://h/v1/models?v=1"),
            (Api::OpenaiResponses, "https://h/v1/", "https://h/v1/models"),
            (Api::GoogleGenerate, "https://h/v1beta", "https://h/v1beta/models?pageSize=1000"),
            (Api::GoogleGenerate, "https://h/v1?k=1", "https://h/v1/models?k=1&pageSize=1000"),
        ] {
            assert_eq!(ProviderEntry::new("p", api, base).models_endpoint(), expected, "{api}");
        }
    }

    #[test]
    fn each_hosts_list_is_read() {
        let read = |list: Value| read(list.to_string().as_bytes());
        let known = |facts: Value| serde_json::from_value::<ModelInfo>(facts).unwrap();
        for (list, expected) in [
            (json!({"object": "list", "data": [{"id": "a"}, {"id": "b"}]}), json!(["a", "b"])),
            (json!([{"id": "a"}]), json!(["a"])),
            (
                json!({"data": [{"id": ""}, {"id": 5}, {}, 7, {"id": "a\nb"}, {"id": "ok"}]}),
                json!(["ok"]),
            ),
            (
                json!({"models": [
                    {"name": "models/g", "inputTokenLimit": 100, "outputTokenLimit": 10,
                     "supportedGenerationMethods": ["generateContent"]},
                    {"name": "models/e", "supportedGenerationMethods": ["embedContent"]},
                ]}),
                json!([{"id": "g", "context_window": 100, "max_output_tokens": 10}]),
            ),
            (
                json!({"data": [{
                    "id": "x/y", "context_length": 200,
                    "top_provider": {"max_completion_tokens": 20},
                    "architecture": {"input_modalities": ["text", "image", "file", "smell"]},
                    "pricing": {"prompt": "0.000003", "completion": "0.000015", "input_cache_read": "0.0000003"},
                }]}),
                json!([{
                    "id": "x/y", "context_window": 200, "max_output_tokens": 20,
                    "input": ["text", "image", "pdf"],
                    "price": {"input": 3, "output": 15, "cache_read": 0.3},
                }]),
            ),
            (
                json!({"data": [{"id": "m", "max_context_length": 0, "capabilities": {"vision": false},
                                 "pricing": {"input": 3, "output": 4}}]}),
                json!([{"id": "m", "input": ["text"]}]),
            ),
        ] {
            let expected: Vec<ModelInfo> =
                expected.as_array().unwrap().iter().cloned().map(known).collect();
            assert_eq!(read(list.clone()), Some(expected), "{list}");
        }
        for list in [json!({}), json!("a"), json!({"data": 5}), json!({"error": {"message": "no"}})]
        {
            assert_eq!(read(list.clone()), None, "{list}");
        }
    }
}
