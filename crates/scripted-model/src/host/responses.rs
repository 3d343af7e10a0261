//! What hosts of Responses ask beyond the items' shape.

use serde_json::Value;

use super::{Checked, Host, list};

pub(super) fn check(host: &Host, model: &str, body: &Value) -> Checked {
    for (index, item) in list(&body["input"]).iter().enumerate() {
        let place = format!("input[{index}]");
        if item["type"] == "reasoning" {
            let cipher = item["encrypted_content"].as_str().unwrap_or_default();
            host.check_signature(&format!("{place}.encrypted_content"), model, cipher)?;
        }
        for name in ["content", "output"] {
            for (part_index, part) in list(&item[name]).iter().enumerate() {
                if part["type"] == "input_image" {
                    let place = format!("{place}.{name}[{part_index}].image_url");
                    let address = part["image_url"].as_str().unwrap_or_default();
                    host.check_image_address(&place, address)?;
                }
            }
        }
    }
    Ok(())
}
