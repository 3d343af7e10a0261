//! Every recorded stream, decoded in one piece, byte by byte and at every split, against what
//! independent clients made of it.
//!
//! The recordings lie outside the repository; see [`tests::recordings`]. Without them this says so and
//! passes, but with `CI=true` it fails.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};

use ai::{Api, AssistantMessage, Compat, ContentBlock, DecodeOptions, Framing, StopReason, Usage};
use serde_json::Value;
use tests::decoded::{events as decode, message};
use tests::recordings::Recording;
use tests::{grammar, recordings};

/// Bodies up to this size are split at every position.
const EVERY_SPLIT: usize = 16 * 1024;

/// Bytes that are decoded for the splits of one body in an ordinary run; the splits of a body that needs
/// more are sampled evenly, so that a debug build takes seconds. All of them are 14 GB: a minute or two
/// of two cores, which `cargo xtask ci` spends.
const SPLIT_BUDGET: usize = 3 * 1024 * 1024;

/// Set to anything, it has every split tried.
const ALL_SPLITS: &str = "ALL_SPLITS";

/// Streams that may differ from what is expected, each with its reason.
const EXCEPTIONS: &[(&str, &str)] = &[];

/// At how many positions a body was split in two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Splits {
    All,
    Sampled,
    None,
}

/// SPEC M1, M4, M5, M6, M7, M8, M9, M10, M11, M12
#[test]
fn recorded_streams_decode_as_expected() {
    let (Some(streams), Some(index)) = (recordings::folder(), recordings::all()) else {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "the recorded streams are missing");
        println!("skipped: no recorded streams");
        return;
    };
    let results = check_all(&streams, &index);
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut failures = Vec::new();
    let mut sampled = 0;
    for (recording, result) in results {
        let api = format!("{} ({})", recording.api, recording.framing);
        let (passed, total) = counts.entry(api).or_default();
        *total += 1;
        match result {
            Ok(splits) => {
                *passed += 1;
                sampled += usize::from(splits == Splits::Sampled);
            }
            Err(difference) => failures.push((&recording.name, difference)),
        }
    }
    for (api, (passed, total)) in &counts {
        println!("{api}: {passed}/{total}");
    }
    println!("bodies whose splits were sampled: {sampled}");
    let unexplained: Vec<_> = failures
        .iter()
        .filter(|(name, _)| !EXCEPTIONS.iter().any(|(known, _)| known == name))
        .collect();
    for (name, difference) in &failures {
        println!("{name}: {difference}");
    }
    assert!(!counts.is_empty(), "no recording was decoded");
    assert!(unexplained.is_empty(), "{} streams differ", unexplained.len());
}

/// Checks every recording of an API and a framing that are decoded here, on every core.
fn check_all<'a>(
    streams: &Path,
    index: &'a [Recording],
) -> Vec<(&'a Recording, Result<Splits, String>)> {
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        let mut results = Vec::new();
        while let Some(recording) = index.get(next.fetch_add(1, Ordering::Relaxed)) {
            let Ok(api) = Api::from_str(&recording.api) else { continue };
            let Ok(framing) = Framing::from_str(&recording.framing) else { continue };
            results.push((recording, check(streams, recording, api, framing)));
        }
        results
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect()
    })
}

fn check(
    streams: &Path,
    recording: &Recording,
    api: Api,
    framing: Framing,
) -> Result<Splits, String> {
    let body = recording.body();
    let expected = streams.join("expected").join(format!("{}.expected.json", recording.name));
    let expected = std::fs::read(expected).expect("an expected result");
    let expected: Value = serde_json::from_slice(&expected).expect("JSON");
    let options = DecodeOptions {
        provider: recording.provider.clone(),
        model: recording.model.clone().unwrap_or_default(),
        compat: Compat::for_provider(&recording.provider),
        framing,
    };
    let whole = decode(api, &options, [&body[..]]);
    grammar::check(&whole)?;
    if expected["contested"] != true {
        compare(&message(&whole), &expected)?;
    }
    if decode(api, &options, body.chunks(1)) != whole {
        return Err("byte by byte differs".to_owned());
    }
    if framing == Framing::Sse {
        for (form, body) in other_forms(&body) {
            if decode(api, &options, [&body[..]]) != whole {
                return Err(format!("{form} differs"));
            }
        }
    }
    let positions = body.len().saturating_sub(1);
    let affordable = match std::env::var_os(ALL_SPLITS) {
        Some(_) => positions,
        None => SPLIT_BUDGET / body.len().max(1),
    };
    let (splits, tried) = if body.len() > EVERY_SPLIT {
        (Splits::None, 0)
    } else if affordable < positions {
        (Splits::Sampled, affordable)
    } else {
        (Splits::All, positions)
    };
    for step in 1..=tried {
        let at = step * positions / tried;
        let (head, tail) = body.split_at(at);
        if decode(api, &options, [head, tail]) != whole {
            return Err(format!("the split at {at} differs"));
        }
    }
    Ok(splits)
}

/// The same events as other hosts frame them (SPEC M4).
fn other_forms(body: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let Ok(text) = std::str::from_utf8(body) else { return Vec::new() };
    let text = text.replace("\r\n", "\n");
    let mut forms = vec![
        ("CRLF", text.replace('\n', "\r\n")),
        ("CR", text.replace('\n', "\r")),
        ("no space", text.replace("\ndata: ", "\ndata:").replace("\nevent: ", "\nevent:")),
        ("a byte-order mark", format!("\u{feff}{text}")),
        ("comments", text.replace("\n\n", "\n\n: here\n\n")),
    ];
    // Where events have names, those without a blank line between them have one name.
    if !text.contains("event:") {
        forms.push(("no blank lines", text.replace("\n\n", "\n")));
    }
    forms.into_iter().map(|(form, text)| (form, text.into_bytes())).collect()
}

/// What is compared, in words that show where two results part.
#[derive(Debug, PartialEq)]
struct Outcome {
    model: Option<String>,
    text: String,
    thinking: String,
    /// How many pieces of reasoning only their model can read (SPEC M9). Their bytes are no measure: a
    /// response's end brings each encrypted anew.
    ciphers: usize,
    calls: Vec<Call>,
    /// Every block that shows, with its text.
    order: Vec<(&'static str, String)>,
    /// Signatures and redacted thinking, in order; Chat's and Responses' have forms of their own.
    signatures: Vec<String>,
    stop: Vec<StopReason>,
    stop_raw: Option<String>,
    has_error: bool,
    /// The host's own words, where the stream holds an error.
    error: Option<String>,
    usage: Usage,
}

#[derive(Debug, PartialEq)]
struct Call {
    /// The wire's own id, where it has one.
    id: Option<String>,
    name: String,
    /// The arguments, or the text that is none.
    arguments: Result<Value, String>,
}

fn compare(message: &AssistantMessage, expected: &Value) -> Result<(), String> {
    let mut wanted = expected_outcome(expected);
    let mut got = outcome(message);
    // The recordings name no model where the wire does not.
    if wanted.model.is_none() {
        got.model = None;
    }
    let api = Api::from_str(&message.api).expect("an API");
    if matches!(api, Api::OpenaiChat | Api::OpenaiResponses) {
        got.signatures.clear();
        wanted.signatures.clear();
    }
    if wanted
        .error
        .as_ref()
        .is_none_or(|wanted| got.error.as_ref().is_some_and(|got| got.contains(wanted)))
    {
        got.error.clone_from(&wanted.error);
    }
    for (got, wanted) in got.calls.iter_mut().zip(&wanted.calls) {
        if wanted.id.is_none() {
            got.id = None;
        }
    }
    if got.stop.iter().all(|stop| wanted.stop.contains(stop)) {
        got.stop.clone_from(&wanted.stop);
    }
    if got == wanted { Ok(()) } else { Err(format!("\n   got {got:?}\nwanted {wanted:?}")) }
}

fn outcome(message: &AssistantMessage) -> Outcome {
    let thinking = message.content.iter().filter_map(|block| match block {
        ContentBlock::Thinking { text, .. } => Some(text.as_str()),
        _ => None,
    });
    Outcome {
        model: Some(message.model.clone()),
        text: message.text(),
        thinking: thinking.collect(),
        ciphers: message
            .content
            .iter()
            .filter(|block| match block {
                ContentBlock::Opaque { data, .. } => {
                    data["type"] == "reasoning" && data["encrypted_content"].is_string()
                }
                _ => false,
            })
            .count(),
        calls: message
            .tool_calls()
            .map(|call| Call {
                id: Some(call.id.clone()),
                name: call.name.clone(),
                arguments: match &call.raw_arguments {
                    Some(raw) => Err(raw.clone()),
                    None => Ok(Value::Object(call.arguments.clone())),
                },
            })
            .collect(),
        order: message
            .content
            .iter()
            .filter_map(|block| match block {
                ContentBlock::Text { text } => Some(("text", text.clone())),
                ContentBlock::Thinking { text, .. } => Some(("thinking", text.clone())),
                ContentBlock::ToolCall(call) => Some(("tool_call", call.name.clone())),
                _ => None,
            })
            .collect(),
        signatures: message.content.iter().filter_map(signature).collect(),
        stop: vec![message.stop_reason],
        stop_raw: message.stop_raw.clone(),
        has_error: message.error.is_some(),
        error: message.error.as_ref().map(|error| error.message.clone()),
        usage: message.usage,
    }
}

fn signature(block: &ContentBlock) -> Option<String> {
    let signature = match block {
        ContentBlock::Thinking { signature, .. } => signature.as_deref(),
        ContentBlock::ToolCall(call) => call.signature.as_deref(),
        ContentBlock::Opaque { data, .. } => data["thoughtSignature"].as_str(),
        _ => None,
    };
    signature.map(in_one_alphabet)
}

/// The client that made the expected results writes Base64 in the alphabet for addresses.
fn in_one_alphabet(signature: &str) -> String {
    signature.replace('-', "+").replace('_', "/")
}

fn expected_outcome(expected: &Value) -> Outcome {
    let text = |key: &str| expected[key].as_str().unwrap_or_default();
    let list = |key: &str| expected[key].as_array().map(Vec::as_slice).unwrap_or_default();
    // A refusal is what the model says to the user, so it is text here, and the reason is `refusal`
    // whatever word the wire ended with (SPEC M11).
    let refusal = text("refusal");
    let has_error = !expected["error"].is_null();
    let stop = match expected["stop"]["normalised"].as_str() {
        _ if has_error => vec![StopReason::Error],
        Some("stop" | "stop_sequence") if !refusal.is_empty() => vec![StopReason::Refusal],
        Some("stop" | "stop_sequence" | "pause" | "compaction") => vec![StopReason::Stop],
        Some("length") => vec![StopReason::Length],
        Some("tool_calls") => vec![StopReason::ToolUse],
        Some("content_filter" | "refusal") => vec![StopReason::Refusal],
        Some("context_window") => vec![StopReason::ContextOverflow],
        Some(_) | None => vec![StopReason::Error],
    };
    Outcome {
        model: expected["model"].as_str().map(str::to_owned),
        text: format!("{}{refusal}", text("text")),
        thinking: text("thinking").to_owned(),
        ciphers: list("blocks").iter().filter(|block| block["encrypted"].is_string()).count(),
        calls: list("tool_calls")
            .iter()
            .map(|call| Call {
                id: call["id"].as_str().filter(|id| !id.is_empty()).map(str::to_owned),
                name: call["name"].as_str().unwrap_or_default().to_owned(),
                arguments: match &call["arguments"] {
                    Value::Null => {
                        Err(call["arguments_raw"].as_str().unwrap_or_default().to_owned())
                    }
                    arguments => Ok(arguments.clone()),
                },
            })
            .collect(),
        order: list("blocks").iter().filter_map(expected_kind).collect(),
        signatures: list("blocks")
            .iter()
            .filter_map(|block| block["signature"].as_str().or(block["data"].as_str()))
            .filter(|signature| !signature.is_empty())
            .map(in_one_alphabet)
            .collect(),
        has_error: has_error || stop == [StopReason::Error],
        error: expected["error"]["message"].as_str().map(str::to_owned),
        stop,
        stop_raw: expected["stop"]["raw"].as_str().map(str::to_owned),
        usage: expected_usage(&expected["usage"]["neutral"]),
    }
}

/// The kind of an expected block, if it shows here: an empty one does not (SPEC M8).
fn expected_kind(block: &Value) -> Option<(&'static str, String)> {
    let text = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
    let has = |key: &str| !text(key).is_empty();
    match block["type"].as_str()? {
        "text" | "refusal" => has("text").then(|| ("text", text("text"))),
        "thinking" => (has("text") || has("signature")).then(|| ("thinking", text("text"))),
        "redacted_thinking" => Some(("thinking", String::new())),
        "tool_call" => Some(("tool_call", text("name"))),
        _ => None,
    }
}

fn expected_usage(neutral: &Value) -> Usage {
    let count = |key: &str| neutral[key].as_u64().unwrap_or_default();
    let (cache_read, cache_write) = (count("cache_read_tokens"), count("cache_write_tokens"));
    Usage {
        input: count("input_tokens").saturating_sub(cache_read).saturating_sub(cache_write),
        output: count("output_tokens"),
        cache_read,
        cache_write,
        reasoning: count("reasoning_tokens"),
    }
}
