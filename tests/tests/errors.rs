//! Every recorded error answer comes out as its category (SPEC M12).
//!
//! Without the recordings the suite says that it was skipped; in CI it fails.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use ai::{ErrorKind, error_response};
use serde::Deserialize;

#[derive(Deserialize)]
struct Recorded {
    category: String,
    status: Option<u16>,
    #[serde(default)]
    headers: Option<BTreeMap<String, serde_json::Value>>,
    body: serde_json::Value,
    body_raw: Option<String>,
}

fn recordings() -> Option<PathBuf> {
    let shared = match std::env::var_os("CODING_AGENT_SHARED") {
        Some(shared) => PathBuf::from(shared),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
    };
    let errors = shared.join("streams/error");
    if errors.is_dir() {
        return Some(errors);
    }
    let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!in_ci, "no recorded errors at {}", errors.display());
    eprintln!("skipped: no recorded errors at {}", errors.display());
    None
}

/// Whether `kind` is what the recordings call `category`.
///
/// They know one word for a bad key and for a key without the right; a 403 that does not speak of
/// the key itself (an API that the project has not enabled) is the second, for which another key of
/// the same account is no remedy.
fn is_category(kind: ErrorKind, category: &str, status: Option<u16>) -> bool {
    match category {
        "auth" if status == Some(403) => {
            matches!(kind, ErrorKind::Auth | ErrorKind::Permission)
        }
        "context_length" => kind == ErrorKind::ContextOverflow,
        "server_error" => kind == ErrorKind::Server,
        same => kind.as_str() == same,
    }
}

/// The host's own sentence, where it is in one of the usual places.
fn said(body: &serde_json::Value) -> Option<&str> {
    let body = body.get(0).unwrap_or(body);
    ["/error/message", "/message", "/error", "/detail"]
        .into_iter()
        .find_map(|place| body.pointer(place).and_then(serde_json::Value::as_str))
}

/// SPEC M12
#[test]
fn recorded_errors_come_out_as_their_category() {
    let Some(folder) = recordings() else { return };
    let mut tally: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    for path in files {
        let recorded: Recorded = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let headers: Vec<(String, String)> = recorded
            .headers
            .unwrap_or_default()
            .into_iter()
            .map(|(name, value)| {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                (name.to_lowercase(), value)
            })
            .collect();
        let body = recorded.body_raw.unwrap_or_else(|| recorded.body.to_string());
        let error = error_response::from_body(recorded.status, &headers, body.as_bytes());
        let (passed, total) = tally.entry(recorded.category.clone()).or_default();
        *total += 1;
        if is_category(error.kind, &recorded.category, recorded.status)
            && error.status == recorded.status
            && !error.message.is_empty()
            && said(&recorded.body).is_none_or(|said| error.message.contains(said.trim()))
        {
            *passed += 1;
        } else {
            wrong.push(format!(
                "{}: {} {error:?}",
                path.file_name().unwrap().display(),
                recorded.category
            ));
        }
    }
    for (category, (passed, total)) in &tally {
        println!("{category}: {passed}/{total}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
