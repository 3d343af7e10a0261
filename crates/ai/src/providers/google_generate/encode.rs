//! Requests in the form of generateContent.
//!
//! What the API asks beyond the pairing of calls and results: the conversation begins with the user,
//! all results of one answer stand together at the head of the content behind it, and newer models
//! refuse an answer's calls if the first of them has no signature.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::METADATA;
use crate::compat::SchemaForm;
use crate::message::{AssistantMessage, ContentBlock, Message, ToolCall, ToolResultMessage};
use crate::provider_entry::ProviderEntry;
use crate::providers::to_json;
use crate::replay::{
    Maker, NO_QUESTION, SentImages, image_type, is_sendable, result_text, sent_images,
    volatile_text,
};
use crate::request::Request;
use crate::schema_form::tool_schema;
use crate::thinking::{LevelValue, ThinkingLevel, ThinkingPlan};
use crate::tool_choice::{ToolChoice, choice_to_send};
use crate::tool_names::{ToolIds, wire_name};

/// What the API takes in place of a signature for calls that another model made.
const FOREIGN_SIGNATURE: &str = "skip_thought_signature_validator";

/// Models from before signatures were checked; they may not know [`FOREIGN_SIGNATURE`].
const UNCHECKED_MODELS: [&str; 3] = ["gemini-1", "gemini-2", "gemma"];

/// The JSON body of a streaming request.
pub(crate) fn encode(request: &Request, entry: &ProviderEntry) -> Vec<u8> {
    let functions: Vec<Function<'_>> = request
        .tools
        .iter()
        .map(|tool| {
            let (parameters, parameters_json_schema) = match entry.compat.schema_form {
                SchemaForm::OpenApi => (tool_schema(&tool.input_schema, SchemaForm::OpenApi), None),
                // The API takes references here and there, with nothing beside them, and no circles.
                SchemaForm::JsonSchema | SchemaForm::NoReferences | SchemaForm::Grammar => {
                    (None, tool_schema(&tool.input_schema, SchemaForm::NoReferences))
                }
            };
            Function {
                name: wire_name(&tool.name),
                description: &tool.description,
                parameters,
                parameters_json_schema,
            }
        })
        .collect();
    let config = GenerationConfig {
        max_output_tokens: entry.output_cap(request),
        temperature: entry.temperature(request),
        thinking_config: thinking_config(request, entry),
    };
    let mut conversation = Conversation::of(request, entry);
    if let Some(text) = volatile_text(request) {
        conversation.append(Role::User, vec![Part::from(Data::Text(text))]);
    }
    let system = Some(&*request.system_prompt).filter(|text| is_sendable(text));
    to_json(&Body {
        system_instruction: system
            .map(|text| Instruction { parts: vec![Part::from(Data::Text(text))] }),
        tools: if functions.is_empty() {
            Vec::new()
        } else {
            vec![Tools { function_declarations: functions }]
        },
        tool_config: choice_to_send(request, entry)
            .and_then(calling_config)
            .map(|function_calling_config| ToolConfig { function_calling_config }),
        contents: conversation.contents,
        generation_config: (config != GenerationConfig::default()).then_some(config),
    })
}

fn calling_config(choice: &ToolChoice) -> Option<CallingConfig> {
    let (mode, allowed_function_names) = match choice {
        ToolChoice::Auto => return None,
        ToolChoice::None => ("NONE", None),
        ToolChoice::Required => ("ANY", None),
        ToolChoice::Tool(name) => ("ANY", Some([wire_name(name)])),
    };
    Some(CallingConfig { mode, allowed_function_names })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Instruction<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tools<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig>,
    contents: Vec<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_config: Option<GenerationConfig>,
}

#[derive(Serialize)]
struct Instruction<'a> {
    parts: Vec<Part<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: Vec<Function<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Function<'a> {
    name: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    /// A dialect of JSON Schema, and the only one of the two that older models know.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Value>,
    /// A whole JSON Schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters_json_schema: Option<Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig {
    function_calling_config: CallingConfig,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallingConfig {
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_function_names: Option<[String; 1]>,
}

#[derive(Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig>,
}

#[derive(PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ThinkingConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<String>,
    include_thoughts: bool,
}

fn thinking_config(request: &Request, entry: &ProviderEntry) -> Option<ThinkingConfig> {
    let plan = ThinkingPlan::new(request.thinking?, entry, &request.model);
    let (level, value) = plan.level?;
    let (thinking_budget, thinking_level) = match value {
        LevelValue::Budget(tokens) => (Some(tokens), None),
        LevelValue::Effort(word) => (None, Some(word)),
        // The API has no such form.
        LevelValue::Switch(_) => return None,
    };
    let include_thoughts = level > ThinkingLevel::Off;
    Some(ThinkingConfig { thinking_budget, thinking_level, include_thoughts })
}

#[derive(Serialize)]
struct Content<'a> {
    role: Role,
    parts: Vec<Part<'a>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    User,
    Model,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(flatten)]
    data: Data<'a>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

impl<'a> From<Data<'a>> for Part<'a> {
    fn from(data: Data<'a>) -> Self {
        Self { data, thought: false, thought_signature: None }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Data<'a> {
    Text(&'a str),
    #[serde(rename = "inlineData", rename_all = "camelCase")]
    Inline {
        mime_type: &'a str,
        data: &'a str,
    },
    FunctionCall {
        id: String,
        name: String,
        args: &'a Map<String, Value>,
    },
    FunctionResponse {
        id: String,
        name: String,
        response: Response,
    },
    /// The API's own part, as it was.
    #[serde(untagged)]
    Opaque(&'a Map<String, Value>),
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Response {
    Output(String),
    Error(String),
}

/// The contents on the wire, growing.
struct Conversation<'a> {
    entry: &'a ProviderEntry,
    model: &'a str,
    sent_images: SentImages,
    ids: ToolIds,
    /// The names of the last answer's calls by their ids as sent: a response has its call's name.
    names: HashMap<String, String>,
    contents: Vec<Content<'a>>,
    /// How many results stand at the head of the last content.
    results: usize,
}

impl<'a> Conversation<'a> {
    fn of(request: &'a Request, entry: &'a ProviderEntry) -> Self {
        let mut conversation = Self {
            entry,
            model: &request.model,
            sent_images: sent_images(entry, &request.model),
            ids: ToolIds::new(entry.compat.tool_ids),
            names: HashMap::new(),
            contents: Vec::new(),
            results: 0,
        };
        for message in &request.messages {
            match &**message {
                Message::User(user) => {
                    let parts = conversation.input(&user.content);
                    conversation.append(Role::User, parts);
                }
                Message::Assistant(assistant) => {
                    let parts = conversation.answer(assistant);
                    conversation.append(Role::Model, parts);
                }
                Message::ToolResult(result) => conversation.append_result(result),
            }
        }
        match conversation.contents.last() {
            Some(last) if last.role == Role::User => {}
            Some(_) | None => conversation.append(Role::User, vec![Data::Text(NO_QUESTION).into()]),
        }
        conversation
    }

    /// Adds parts to the last content if it has the same role, else as a new one.
    fn append(&mut self, role: Role, parts: Vec<Part<'a>>) {
        if parts.is_empty() {
            return;
        }
        if self.contents.is_empty() && role == Role::Model {
            let question = Part::from(Data::Text(NO_QUESTION));
            self.contents.push(Content { role: Role::User, parts: vec![question] });
        }
        match self.contents.last_mut() {
            Some(last) if last.role == role => last.parts.extend(parts),
            Some(_) | None => {
                self.contents.push(Content { role, parts });
                self.results = 0;
            }
        }
    }

    /// Results come first in the content behind their calls, and their images behind all of them.
    fn append_result(&mut self, result: &'a ToolResultMessage) {
        let mut texts = Vec::new();
        let mut images = Vec::new();
        for part in self.input(&result.content) {
            match part.data {
                Data::Text(text) => texts.push(text),
                Data::Inline { .. }
                | Data::FunctionCall { .. }
                | Data::FunctionResponse { .. }
                | Data::Opaque(_) => images.push(part),
            }
        }
        let text = result_text(&texts, !images.is_empty());
        let id = self.ids.result(&result.tool_call_id);
        let name = self.names.get(&id).cloned();
        let response = Part::from(Data::FunctionResponse {
            id,
            name: name.unwrap_or_else(|| wire_name(&result.tool_name)),
            response: if result.is_error { Response::Error(text) } else { Response::Output(text) },
        });
        match self.contents.last_mut() {
            Some(last) if last.role == Role::User => {
                last.parts.insert(self.results, response);
                last.parts.extend(images);
            }
            Some(_) | None => {
                let parts = std::iter::once(response).chain(images).collect();
                self.contents.push(Content { role: Role::User, parts });
                self.results = 0;
            }
        }
        self.results += 1;
    }

    /// What a user or a tool can say: text and images.
    fn input(&self, content: &'a [ContentBlock]) -> Vec<Part<'a>> {
        content
            .iter()
            .filter_map(|block| match block {
                ContentBlock::Text { text } => is_sendable(text).then_some(Data::Text(text)),
                ContentBlock::Image { mime_type, data } => {
                    Some(match image_type(self.sent_images, mime_type, data) {
                        Ok(mime_type) => Data::Inline { mime_type, data },
                        Err(text) => Data::Text(text),
                    })
                }
                ContentBlock::Thinking { .. }
                | ContentBlock::ToolCall(_)
                | ContentBlock::Opaque { .. } => None,
            })
            .map(Part::from)
            .collect()
    }

    fn answer(&mut self, message: &'a AssistantMessage) -> Vec<Part<'a>> {
        let own = Maker::of(message, self.entry, self.model) == Maker::SameModel;
        self.ids.begin_message();
        self.names.clear();
        let mut parts: Vec<Part<'a>> = Vec::new();
        // Whether the answer says anything, or is thoughts and signatures alone.
        let mut speaks = false;
        for block in &message.content {
            match block {
                ContentBlock::Text { text } => {
                    // A model's own blank text may carry its signature.
                    if is_sendable(text) || (own && !text.is_empty()) {
                        speaks |= is_sendable(text);
                        parts.push(Data::Text(text).into());
                    }
                }
                ContentBlock::Thinking { text, signature, redacted: false } if own => {
                    let mut part = Part::from(Data::Text(text));
                    part.thought = true;
                    part.thought_signature = signature.as_deref();
                    parts.push(part);
                }
                ContentBlock::ToolCall(call) => {
                    speaks = true;
                    let mut part = Part::from(self.function_call(call));
                    part.thought_signature = call.signature.as_deref().filter(|_| own);
                    parts.push(part);
                }
                ContentBlock::Opaque { api, data: Value::Object(data) }
                    if own && api == self.entry.api.as_str() && !is_metadata(data) =>
                {
                    match (lone_signature(data), parts.last_mut()) {
                        (
                            Some(signature),
                            Some(Part { data: Data::Text(_), thought: false, thought_signature }),
                        ) if thought_signature.is_none() => {
                            *thought_signature = Some(signature);
                        }
                        (Some(signature), _) => {
                            let mut part = Part::from(Data::Text(""));
                            part.thought_signature = Some(signature);
                            parts.push(part);
                        }
                        (None, _) => {
                            speaks |= !data.contains_key("text");
                            parts.push(Data::Opaque(data).into());
                        }
                    }
                }
                ContentBlock::Image { .. } => {
                    let image = self.input(std::slice::from_ref(block));
                    speaks |= !image.is_empty();
                    parts.extend(image);
                }
                ContentBlock::Thinking { .. } | ContentBlock::Opaque { .. } => {}
            }
        }
        if !speaks {
            return Vec::new();
        }
        parts.retain(|part| match part.data {
            Data::Text(text) => is_sendable(text) || part.thought_signature.is_some(),
            Data::Inline { .. }
            | Data::FunctionCall { .. }
            | Data::FunctionResponse { .. }
            | Data::Opaque(_) => true,
        });
        if !UNCHECKED_MODELS.iter().any(|model| self.model.starts_with(model)) {
            sign_first_call(&mut parts);
        }
        parts
    }

    fn function_call(&mut self, call: &'a ToolCall) -> Data<'a> {
        let (id, name) = (self.ids.call(&call.id), wire_name(&call.name));
        self.names.insert(id.clone(), name.clone());
        Data::FunctionCall {
            id,
            name,
            // Arguments that could not be read are an empty object here, which is accepted; the
            // call's error result says what they were.
            args: &call.arguments,
        }
    }
}

/// Puts [`FOREIGN_SIGNATURE`] where a signature is asked for and there is none.
fn sign_first_call(parts: &mut [Part<'_>]) {
    let first = parts.iter_mut().find(|part| matches!(part.data, Data::FunctionCall { .. }));
    if let Some(first) = first {
        first.thought_signature.get_or_insert(FOREIGN_SIGNATURE);
    }
}

/// What the decoder keeps of an answer besides its parts; it is no part.
fn is_metadata(data: &Map<String, Value>) -> bool {
    data.len() == 1 && METADATA.iter().any(|key| data.contains_key(*key))
}

/// The signature of the text block before, which has no place for it.
fn lone_signature(data: &Map<String, Value>) -> Option<&str> {
    data.get("thoughtSignature").filter(|_| data.len() == 1)?.as_str()
}

#[cfg(test)]
#[path = "encode/tests.rs"]
mod tests;
