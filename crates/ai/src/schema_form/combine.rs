//! Several schemas as one that accepts at least what they accept together.

use std::collections::HashSet;

use serde_json::{Map, Value};

/// Adds what must hold as well: what only one of them says is said, and of two that speak of the same
/// thing the first is believed.
pub(super) fn absorb(base: &mut Map<String, Value>, other: &Map<String, Value>) {
    for (keyword, value) in other {
        match (keyword.as_str(), base.get_mut(keyword), value) {
            ("properties", Some(Value::Object(known)), Value::Object(more)) => {
                for (name, schema) in more {
                    known.entry(name.as_str()).or_insert_with(|| schema.clone());
                }
            }
            ("required", Some(Value::Array(known)), Value::Array(more)) => {
                let added = {
                    let mut seen: HashSet<&Value> = known.iter().collect();
                    more.iter().filter(|name| seen.insert(*name)).cloned().collect::<Vec<_>>()
                };
                known.extend(added);
            }
            (_, Some(_), _) => {}
            (_, None, _) => {
                base.insert(keyword.clone(), value.clone());
            }
        }
    }
}

/// Adds what holds when one of several objects fits: the properties of all of them, each in any of its
/// forms, and required is what all require.
pub(super) fn absorb_alternatives(base: &mut Map<String, Value>, objects: &[Map<String, Value>]) {
    let mut properties: Map<String, Value> = Map::new();
    for (name, schema) in objects.iter().flat_map(|object| entries(object, "properties")) {
        let forms = properties.entry(name.as_str()).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(forms) = forms
            && !forms.contains(schema)
        {
            forms.push(schema.clone());
        }
    }
    for forms in properties.values_mut() {
        if let Value::Array(list) = forms {
            *forms = match (list.len(), list.pop()) {
                (1, Some(only)) => only,
                (_, last) => {
                    list.extend(last);
                    let list = std::mem::take(list);
                    Value::Object(Map::from_iter([("anyOf".to_owned(), Value::Array(list))]))
                }
            };
        }
    }
    let required = objects.split_first().map_or_else(Vec::new, |(first, others)| {
        let others: Vec<HashSet<&Value>> = others.iter().map(required_names).collect();
        let in_all = |name: &&Value| others.iter().all(|names| names.contains(*name));
        first
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter(in_all)
            .collect()
    });
    let mut together = Map::new();
    if !properties.is_empty() {
        together.insert("properties".into(), Value::Object(properties));
    }
    if !required.is_empty() {
        together.insert("required".into(), required.into_iter().cloned().collect());
    }
    absorb(base, &together);
}

fn required_names(object: &Map<String, Value>) -> HashSet<&Value> {
    object.get("required").and_then(Value::as_array).into_iter().flatten().collect()
}

fn entries<'a>(
    fields: &'a Map<String, Value>,
    keyword: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    fields.get(keyword).and_then(Value::as_object).into_iter().flatten()
}
