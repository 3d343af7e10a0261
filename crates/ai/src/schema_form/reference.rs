//! What a `$ref` points to, within its own schema. Nothing is ever fetched.

use serde_json::Value;

/// Where named schemas stand: the newer and the older word for it.
pub(super) const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// What a reference points to; nothing for one that leads out of the schema, to an anchor or nowhere.
pub(super) fn target<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = percent_decoded(reference.strip_prefix('#')?)?;
    root.pointer(&pointer).filter(|target| target.is_object() || target.is_boolean())
}

/// Whether a reference names one of the definitions at the root.
pub(super) fn is_to_definition(reference: &str) -> bool {
    DEFINITIONS.iter().any(|home| {
        reference
            .strip_prefix("#/")
            .and_then(|path| path.strip_prefix(home))
            .and_then(|path| path.strip_prefix('/'))
            .is_some_and(|name| !name.is_empty() && !name.contains('/'))
    })
}

/// A fragment of a URI as text (RFC 3986, 2.1).
fn percent_decoded(fragment: &str) -> Option<String> {
    if !fragment.contains('%') {
        return Some(fragment.to_owned());
    }
    let mut pieces = fragment.split('%');
    let mut bytes = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        let (digits, rest) = piece.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_lead_to_schemas_of_the_same_document() {
        let root = json!({
            "$defs": {"A": {"type": "string"}, "B<C>": true, "a/b~c": {"type": "null"}, "%": {}},
            "anyOf": [{"type": "integer"}],
            "required": ["x"],
        });
        for (reference, expected) in [
            ("#", Some(&root)),
            ("#/$defs/A", Some(&root["$defs"]["A"])),
            ("#/$defs/B%3CC%3E", Some(&json!(true))),
            ("#/$defs/a~1b~0c", Some(&root["$defs"]["a/b~c"])),
            ("#/$defs/%25", Some(&root["$defs"]["%"])),
            ("#/anyOf/0", Some(&root["anyOf"][0])),
            ("#/required", None),
            ("#/$defs/%", None),
            ("#/$defs/%C3", None),
            ("#/$defs/%é", None),
            ("#anchor", None),
            ("other.json#/$defs/A", None),
            ("https://host/schema.json", None),
            ("", None),
        ] {
            assert_eq!(target(&root, reference), expected, "{reference}");
        }
        for (reference, expected) in [
            ("#/$defs/A", true),
            ("#/definitions/A", true),
            ("#/$defs/", false),
            ("#/$defs", false),
            ("#/$defs/A/properties/x", false),
            ("#/properties/A", false),
            ("#", false),
        ] {
            assert_eq!(is_to_definition(reference), expected, "{reference}");
        }
    }
}
