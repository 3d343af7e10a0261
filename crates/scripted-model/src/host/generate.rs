//! What hosts of generateContent ask beyond the parts' shape.

use serde_json::Value;

use super::{Checked, Host, list};
use crate::google_generate::{FOREIGN_SIGNATURES, is_said_by_user};
use crate::refusal::Refusal;

/// Models from before calls had to be signed.
const UNSIGNED_MODELS: [&str; 3] = ["gemini-1", "gemini-2", "gemma"];

pub(super) fn check(host: &Host, model: &str, body: &Value) -> Checked {
    let contents = list(&body["contents"]);
    let wants_signatures = !UNSIGNED_MODELS.iter().any(|name| model.starts_with(name));
    let turn_start = contents.iter().rposition(is_said_by_user).unwrap_or(0);
    for (index, content) in contents.iter().enumerate() {
        let mut is_first_call = true;
        for (part_index, part) in list(&content["parts"]).iter().enumerate() {
            let place = format!("contents[{index}].parts[{part_index}]");
            let signature = part["thoughtSignature"].as_str();
            if let Some(signature) = signature.filter(|it| !FOREIGN_SIGNATURES.contains(it)) {
                host.check_signature(&format!("{place}.thoughtSignature"), model, signature)?;
            }
            if let Some(mime_type) = part["inlineData"]["mimeType"].as_str() {
                host.check_image(&format!("{place}.inlineData.mimeType"), mime_type)?;
            }
            if part.get("functionCall").is_some() {
                let is_asked_for = wants_signatures && is_first_call && index > turn_start;
                if is_asked_for && signature.is_none() {
                    return Err(Refusal::at(
                        place,
                        "function call is missing a thought_signature in functionCall parts",
                    ));
                }
                is_first_call = false;
            }
        }
    }
    Ok(())
}
