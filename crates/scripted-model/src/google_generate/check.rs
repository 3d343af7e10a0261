//! The rules that a generateContent request is held to.
//!
//! **Invariant:** what passes here is accepted by Gemini, as far as the body's shape decides it. Where
//! Gemini is lenient (it takes snake case, contents of one role in a row, and text that is blank),
//! this refuses, because a client that needs it has lost count of its history.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::google_generate::call_mark::{fits, is_marked};
use crate::google_generate::schema::{check_references, check_schema};
use crate::refusal::Refusal;

type Checked = Result<(), Refusal>;

/// What a body may have at its top; the real API refuses anything else.
const FIELDS: [&str; 9] = [
    "contents",
    "tools",
    "toolConfig",
    "safetySettings",
    "systemInstruction",
    "generationConfig",
    "cachedContent",
    "serviceTier",
    "store",
];

/// What `generationConfig` may have.
const GENERATION_FIELDS: [&str; 24] = [
    "stopSequences",
    "responseMimeType",
    "responseSchema",
    "responseJsonSchema",
    "_responseJsonSchema",
    "responseModalities",
    "candidateCount",
    "maxOutputTokens",
    "temperature",
    "topP",
    "topK",
    "seed",
    "presencePenalty",
    "frequencyPenalty",
    "responseLogprobs",
    "logprobs",
    "enableEnhancedCivicAnswers",
    "speechConfig",
    "thinkingConfig",
    "imageConfig",
    "mediaResolution",
    "responseFormat",
    "audioTimestamp",
    "routingConfig",
];

/// What a part may hold, one of these each.
const DATA_FIELDS: [&str; 9] = [
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
];

/// What a part may have beside its data.
const PART_FIELDS: [&str; 5] =
    ["thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata"];

/// Tools of the provider's own.
const OWN_TOOLS: [&str; 8] = [
    "googleSearch",
    "googleSearchRetrieval",
    "codeExecution",
    "urlContext",
    "fileSearch",
    "computerUse",
    "googleMaps",
    "mcpServers",
];

/// Longest name of a function.
const MAX_FUNCTION_NAME: usize = 64;

/// Signatures that Gemini takes for calls that it did not make itself.
pub(crate) const FOREIGN_SIGNATURES: [&str; 2] =
    ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"];

/// Checks a request's body.
pub(crate) fn check_body(body: &Value) -> Checked {
    let Value::Object(body) = body else {
        return Err(Refusal::at("body", "expected an object"));
    };
    check_fields("", body, &FIELDS)?;
    if let Some(config) = body.get("generationConfig") {
        check_generation(config)?;
    }
    if let Some(system) = body.get("systemInstruction") {
        check_system(system)?;
    }
    let names = check_tools(body.get("tools"))?;
    if let Some(config) = body.get("toolConfig") {
        check_tool_config(config, &names)?;
    }
    check_contents(body.get("contents"))
}

/// Checks that an object has no field but these. `place` is empty for the body itself.
fn check_fields(place: &str, object: &Map<String, Value>, known: &[&str]) -> Checked {
    match object.keys().find(|field| !known.contains(&field.as_str())) {
        Some(field) => {
            Err(Refusal::at(place, format!("unknown name {field:?}: cannot find field")))
        }
        None => Ok(()),
    }
}

fn check_object<'v>(
    place: &str,
    value: &'v Value,
    known: &[&str],
) -> Result<&'v Map<String, Value>, Refusal> {
    let Value::Object(object) = value else {
        return Err(Refusal::at(place, "expected an object"));
    };
    check_fields(place, object, known)?;
    Ok(object)
}

fn check_generation(config: &Value) -> Checked {
    let place = "generationConfig";
    let config = check_object(place, config, &GENERATION_FIELDS)?;
    for name in ["maxOutputTokens", "topK", "candidateCount"] {
        if config.get(name).is_some_and(|value| value.as_u64().is_none_or(|count| count == 0)) {
            return Err(Refusal::at(
                format!("{place}.{name}"),
                "expected an integer of at least 1",
            ));
        }
    }
    for (name, most) in [("temperature", 2.0), ("topP", 1.0)] {
        let in_range = |value: &Value| value.as_f64().is_some_and(|it| (0.0..=most).contains(&it));
        if config.get(name).is_some_and(|value| !in_range(value)) {
            return Err(Refusal::at(
                format!("{place}.{name}"),
                format!("expected a number from 0 to {most}"),
            ));
        }
    }
    let Some(thinking) = config.get("thinkingConfig") else {
        return Ok(());
    };
    let place = "generationConfig.thinkingConfig";
    let known = ["includeThoughts", "thinkingBudget", "thinkingLevel"];
    let thinking = check_object(place, thinking, &known)?;
    if thinking.contains_key("thinkingBudget") && thinking.contains_key("thinkingLevel") {
        return Err(Refusal::at(place, "only one of thinkingBudget and thinkingLevel can be set"));
    }
    if thinking.get("includeThoughts").is_some_and(|value| !value.is_boolean()) {
        return Err(Refusal::at(format!("{place}.includeThoughts"), "expected a boolean"));
    }
    // -1 leaves the budget to the model.
    let is_budget = |value: &Value| value.as_i64().is_some_and(|budget| budget >= -1);
    if thinking.get("thinkingBudget").is_some_and(|value| !is_budget(value)) {
        return Err(Refusal::at(
            format!("{place}.thinkingBudget"),
            "expected an integer of at least -1",
        ));
    }
    let is_level = |value: &Value| {
        let levels = ["MINIMAL", "LOW", "MEDIUM", "HIGH"];
        value.as_str().is_some_and(|it| levels.contains(&it.to_ascii_uppercase().as_str()))
    };
    if thinking.get("thinkingLevel").is_some_and(|value| !is_level(value)) {
        return Err(Refusal::at(
            format!("{place}.thinkingLevel"),
            "expected one of MINIMAL, LOW, MEDIUM, HIGH",
        ));
    }
    Ok(())
}

fn check_system(system: &Value) -> Checked {
    let place = "systemInstruction";
    let system = check_object(place, system, &["role", "parts"])?;
    for (index, part) in parts(place, system.get("parts"))?.iter().enumerate() {
        let place = format!("{place}.parts[{index}]");
        match part.get("text").and_then(Value::as_str) {
            Some(text) => check_text(&format!("{place}.text"), text)?,
            None => return Err(Refusal::at(place, "expected a text")),
        }
    }
    Ok(())
}

/// The names of the functions that are declared.
fn check_tools(tools: Option<&Value>) -> Result<HashSet<&str>, Refusal> {
    let mut names = HashSet::new();
    let tools = match tools {
        None => return Ok(names),
        Some(Value::Array(tools)) => tools,
        Some(_) => return Err(Refusal::at("tools", "expected an array")),
    };
    for (index, tool) in tools.iter().enumerate() {
        let place = format!("tools[{index}]");
        let known = [&["functionDeclarations"][..], &OWN_TOOLS].concat();
        let tool = check_object(&place, tool, &known)?;
        if tool.is_empty() {
            return Err(Refusal::at(place, "expected at least one tool"));
        }
        let Some(declarations) = tool.get("functionDeclarations") else {
            continue;
        };
        let place = format!("{place}.functionDeclarations");
        let declarations = match declarations {
            Value::Array(declarations) if !declarations.is_empty() => declarations,
            _ => return Err(Refusal::at(place, "expected an array of at least one function")),
        };
        for (index, declaration) in declarations.iter().enumerate() {
            let place = format!("{place}[{index}]");
            let name = check_declaration(&place, declaration)?;
            if !names.insert(name) {
                return Err(Refusal::at(
                    format!("{place}.name"),
                    format!("duplicate function declaration found: {name}"),
                ));
            }
        }
    }
    Ok(names)
}

fn check_declaration<'v>(place: &str, declaration: &'v Value) -> Result<&'v str, Refusal> {
    let known = [
        "name",
        "description",
        "behavior",
        "parameters",
        "parametersJsonSchema",
        "response",
        "responseJsonSchema",
    ];
    let declaration = check_object(place, declaration, &known)?;
    let name = declaration.get("name").and_then(Value::as_str).unwrap_or_default();
    check_name(&format!("{place}.name"), name)?;
    match (declaration.get("parameters"), declaration.get("parametersJsonSchema")) {
        (Some(_), Some(_)) => {
            Err(Refusal::at(place, "only one of parameters and parametersJsonSchema can be set"))
        }
        (Some(schema), None) => {
            let place = format!("{place}.parameters");
            check_schema(&place, schema)?;
            let is_object =
                schema["type"].as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("object"));
            if !is_object {
                return Err(Refusal::at(place, "schema should be of the type OBJECT"));
            }
            if schema.get("properties").is_none() {
                return Err(Refusal::at(
                    format!("{place}.properties"),
                    "should be non-empty for the type OBJECT",
                ));
            }
            Ok(name)
        }
        (None, Some(schema)) if schema["type"] != "object" => Err(Refusal::at(
            format!("{place}.parametersJsonSchema"),
            "schema should be of the type 'object'",
        )),
        (None, Some(schema)) => {
            check_references(&format!("{place}.parametersJsonSchema"), schema, schema)?;
            Ok(name)
        }
        (None, None) => Ok(name),
    }
}

fn check_tool_config(config: &Value, names: &HashSet<&str>) -> Checked {
    let place = "toolConfig";
    let known = ["functionCallingConfig", "retrievalConfig", "includeServerSideToolInvocations"];
    let config = check_object(place, config, &known)?;
    let Some(calling) = config.get("functionCallingConfig") else {
        return Ok(());
    };
    let place = "toolConfig.functionCallingConfig";
    let known = ["mode", "allowedFunctionNames", "streamFunctionCallArguments"];
    let calling = check_object(place, calling, &known)?;
    let mode = match calling.get("mode").map(Value::as_str) {
        None => "AUTO",
        Some(Some(mode @ ("AUTO" | "ANY" | "NONE" | "VALIDATED"))) => mode,
        Some(_) => {
            return Err(Refusal::at(
                format!("{place}.mode"),
                "expected one of AUTO, ANY, NONE, VALIDATED",
            ));
        }
    };
    if mode == "ANY" && names.is_empty() {
        return Err(Refusal::at(place, "should be set with functionDeclarations only"));
    }
    let Some(allowed) = calling.get("allowedFunctionNames") else {
        return Ok(());
    };
    let place = format!("{place}.allowedFunctionNames");
    if mode != "ANY" && mode != "VALIDATED" {
        return Err(Refusal::at(place, "should be set only in the modes ANY and VALIDATED"));
    }
    let is_declared = |name: &Value| name.as_str().is_some_and(|name| names.contains(name));
    match allowed {
        Value::Array(allowed) if allowed.iter().all(is_declared) => Ok(()),
        _ => Err(Refusal::at(place, "expected names of declared functions")),
    }
}

fn check_contents(contents: Option<&Value>) -> Checked {
    let contents = match contents {
        Some(Value::Array(contents)) if !contents.is_empty() => contents,
        Some(_) | None => return Err(Refusal::at("contents", "contents is not specified")),
    };
    // Only the calls behind what the user said last have to be signed.
    let turn_start = contents.iter().rposition(is_said_by_user).unwrap_or(0);
    let mut ids = HashSet::new();
    let mut open: Vec<&Value> = Vec::new();
    for (index, content) in contents.iter().enumerate() {
        let place = format!("contents[{index}]");
        let fields = check_object(&place, content, &["role", "parts"])?;
        let role = fields.get("role").and_then(Value::as_str);
        let parts = parts(&place, fields.get("parts"))?;
        let expected = if index % 2 == 0 { "user" } else { "model" };
        match role {
            Some("user" | "model") if role == Some(expected) => {}
            Some("model") if index == 0 => {
                return Err(Refusal::at(place, "the first content must be the user's"));
            }
            Some(role @ ("user" | "model")) => {
                return Err(Refusal::at(
                    place,
                    format!("roles must alternate between user and model, got {role} twice"),
                ));
            }
            Some(_) | None => {
                return Err(Refusal::at(
                    format!("{place}.role"),
                    "please use a valid role: user, model",
                ));
            }
        }
        if expected == "model" {
            open = check_model(&place, parts, index > turn_start, &mut ids)?;
        } else {
            check_user(&place, parts, &open)?;
        }
    }
    if contents.len() % 2 == 0 {
        return Err(Refusal::at(
            "contents",
            "please ensure that the request ends with a user role",
        ));
    }
    Ok(())
}

/// Whether the user says something in a content, beside what tools do.
pub(crate) fn is_said_by_user(content: &Value) -> bool {
    let parts = content["parts"].as_array().map_or(&[][..], Vec::as_slice);
    content["role"] == "user" && parts.iter().any(|part| part.get("functionResponse").is_none())
}

fn parts<'v>(place: &str, parts: Option<&'v Value>) -> Result<&'v [Value], Refusal> {
    match parts {
        Some(Value::Array(parts)) if !parts.is_empty() => Ok(parts),
        Some(_) | None => {
            Err(Refusal::at(format!("{place}.parts"), "contents.parts must not be empty"))
        }
    }
}

/// The name of a part's data.
fn check_part(place: &str, part: &Value) -> Result<&'static str, Refusal> {
    let known = [&DATA_FIELDS[..], &PART_FIELDS].concat();
    let part = check_object(place, part, &known)?;
    let mut data = DATA_FIELDS.iter().filter(|name| part.contains_key(**name));
    let Some(kind) = data.next() else {
        return Err(Refusal::at(
            format!("{place}.data"),
            "required oneof field 'data' must have one initialized field",
        ));
    };
    if let Some(other) = data.next() {
        return Err(Refusal::at(
            place,
            format!("oneof field 'data' is already set, cannot set '{other}'"),
        ));
    }
    if part.get("thought").is_some_and(|value| !value.is_boolean()) {
        return Err(Refusal::at(format!("{place}.thought"), "expected a boolean"));
    }
    let is_signature = |value: &Value| {
        value.as_str().is_some_and(|it| FOREIGN_SIGNATURES.contains(&it) || is_base64(it))
    };
    if part.get("thoughtSignature").is_some_and(|value| !is_signature(value)) {
        return Err(Refusal::at(
            format!("{place}.thoughtSignature"),
            "base64 decoding failed for a thought signature",
        ));
    }
    let data = &part[*kind];
    match *kind {
        "inlineData" => check_filled(&format!("{place}.inlineData"), data, &["mimeType", "data"])?,
        "fileData" => check_filled(&format!("{place}.fileData"), data, &["fileUri"])?,
        _ => {}
    }
    Ok(kind)
}

fn check_filled(place: &str, data: &Value, names: &[&str]) -> Checked {
    match names.iter().find(|name| data[**name].as_str().is_none_or(str::is_empty)) {
        Some(name) => Err(Refusal::at(format!("{place}.{name}"), "is required")),
        None => Ok(()),
    }
}

/// The calls of a model's content.
fn check_model<'v>(
    place: &str,
    parts: &'v [Value],
    is_in_turn: bool,
    ids: &mut HashSet<&'v str>,
) -> Result<Vec<&'v Value>, Refusal> {
    let mut calls = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let place = format!("{place}.parts[{index}]");
        let signature = part["thoughtSignature"].as_str();
        match check_part(&place, part)? {
            "text" => match part["text"].as_str() {
                // What carries a signature may say nothing.
                Some(text) if signature.is_some() && text.trim().is_empty() => {}
                Some(text) => check_text(&format!("{place}.text"), text)?,
                None => return Err(Refusal::at(format!("{place}.text"), "expected a string")),
            },
            "functionCall" => {
                let call = &part["functionCall"];
                let id = check_call(&format!("{place}.functionCall"), call)?;
                if !id.is_empty() && !ids.insert(id) {
                    return Err(Refusal::at(
                        format!("{place}.functionCall.id"),
                        format!("ids of calls must be unique, {id:?} is twice"),
                    ));
                }
                check_signature(&place, id, signature, is_in_turn)?;
                calls.push(call);
            }
            "functionResponse" => {
                return Err(Refusal::at(place, "a function response belongs to the role user"));
            }
            _ => {}
        }
    }
    Ok(calls)
}

fn check_signature(place: &str, id: &str, signature: Option<&str>, is_in_turn: bool) -> Checked {
    let place = format!("{place}.thoughtSignature");
    match signature {
        None if is_in_turn && is_marked(id) => Err(Refusal::at(
            place,
            format!("the function call {id} is missing a thought_signature"),
        )),
        Some(signature) if !fits(id, signature) && !FOREIGN_SIGNATURES.contains(&signature) => {
            Err(Refusal::at(place, "thought signature is not valid"))
        }
        Some(_) | None => Ok(()),
    }
}

/// The call's id, empty when it has none.
fn check_call<'v>(place: &str, call: &'v Value) -> Result<&'v str, Refusal> {
    let call = check_object(place, call, &["id", "name", "args"])?;
    check_name(
        &format!("{place}.name"),
        call.get("name").and_then(Value::as_str).unwrap_or_default(),
    )?;
    if call.get("args").is_some_and(|args| !args.is_object()) {
        return Err(Refusal::at(format!("{place}.args"), "expected an object"));
    }
    check_id(place, call)
}

fn check_id<'v>(place: &str, call: &'v Map<String, Value>) -> Result<&'v str, Refusal> {
    match call.get("id").map(Value::as_str) {
        None => Ok(""),
        Some(Some(id)) if !id.is_empty() => Ok(id),
        Some(_) => Err(Refusal::at(format!("{place}.id"), "expected a string that is not empty")),
    }
}

/// Checks a user's content behind a model's with these calls, of which each wants its response.
fn check_user(place: &str, parts: &[Value], calls: &[&Value]) -> Checked {
    let mut responses = Vec::new();
    let mut responses_are_over = false;
    for (index, part) in parts.iter().enumerate() {
        let place = format!("{place}.parts[{index}]");
        match check_part(&place, part)? {
            "functionResponse" => {
                if responses_are_over {
                    return Err(Refusal::at(place, "function responses come first"));
                }
                responses.push((format!("{place}.functionResponse"), &part["functionResponse"]));
                continue;
            }
            "functionCall" => {
                return Err(Refusal::at(place, "a function call belongs to the role model"));
            }
            "text" => {
                let place = format!("{place}.text");
                check_text(&place, part["text"].as_str().unwrap_or_default())?;
            }
            _ => {}
        }
        if part.get("thought").is_some() {
            return Err(Refusal::at(place, "a thought belongs to the role model"));
        }
        responses_are_over = true;
    }
    if responses.len() != calls.len() {
        return Err(Refusal::at(
            place,
            format!(
                "please ensure that the number of function response parts is equal to the number \
                 of function call parts of the function call turn: {} for {}",
                responses.len(),
                calls.len()
            ),
        ));
    }
    for ((place, response), call) in responses.iter().zip(calls) {
        check_response(place, response, call)?;
    }
    Ok(())
}

fn check_response(place: &str, response: &Value, call: &Value) -> Checked {
    let known = ["id", "name", "response", "parts", "willContinue", "scheduling"];
    let fields = check_object(place, response, &known)?;
    let id = check_id(place, fields)?;
    for (name, given, wanted) in [
        ("name", response["name"].as_str().unwrap_or_default(), &call["name"]),
        ("id", id, &call["id"]),
    ] {
        let wanted = wanted.as_str().unwrap_or_default();
        if given != wanted {
            return Err(Refusal::at(
                format!("{place}.{name}"),
                format!("expected the call's, {wanted:?}, got {given:?}"),
            ));
        }
    }
    if !response["response"].is_object() {
        return Err(Refusal::at(format!("{place}.response"), "expected an object"));
    }
    Ok(())
}

fn check_name(place: &str, name: &str) -> Checked {
    let is_first = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    let is_rest = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    let fits = name.len() <= MAX_FUNCTION_NAME
        && name.bytes().next().is_some_and(is_first)
        && name.bytes().all(is_rest);
    if fits {
        return Ok(());
    }
    Err(Refusal::at(
        place,
        format!(
            "invalid function name {name:?}: it must start with a letter or an underscore, and have \
             letters, digits, underscores, dots and dashes, at most {MAX_FUNCTION_NAME}"
        ),
    ))
}

fn check_text(place: &str, text: &str) -> Checked {
    if text.trim().is_empty() {
        return Err(Refusal::at(place, "text must not be empty"));
    }
    Ok(())
}

/// Whether a text is base64, of either alphabet, with its padding or without.
fn is_base64(text: &str) -> bool {
    let data = text.trim_end_matches('=');
    let padding = text.len() - data.len();
    !data.is_empty()
        && data.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte))
        && data.len() % 4 != 1
        && (padding == 0 || (padding <= 2 && text.len().is_multiple_of(4)))
}
