//! Requests in the form of Responses.
//!
//! The host keeps nothing: each request carries the whole conversation as items, and the model's
//! reasoning as the cipher that it came in, in its place among them. Outputs of calls carry text
//! only, which every host takes: images in a tool's result follow in a user message.

use serde::Serialize;
use serde_json::Value;

use crate::catalogue::ModelInfo;
use crate::message::{AssistantMessage, ContentBlock, Message, ToolCall, ToolResultMessage};
use crate::provider_entry::ProviderEntry;
use crate::providers::{json_text, to_json};
use crate::replay::{
    ANSWER_IMAGE_NOTE, IMAGES_HEAD, Maker, NO_QUESTION, SentImages, image_type, is_sendable,
    result_text, sent_images, volatile_text,
};
use crate::request::{Request, ToolSpec};
use crate::schema_form::{allows_strict, required_tool_schema};
use crate::thinking::{LevelValue, ThinkingLevel, ThinkingPlan};
use crate::tool_choice::{ToolChoice, choice_to_send};
use crate::tool_names::{ToolIds, wire_name};

/// Without this, reasoning of a response that is not stored could not go back to its model.
const ENCRYPTED_REASONING: &str = "reasoning.encrypted_content";

/// The JSON body of a streaming request.
pub(crate) fn encode(request: &Request, entry: &ProviderEntry) -> Vec<u8> {
    let thinks = entry.model(&request.model).and_then(ModelInfo::thinks);
    let may_reason = !entry.compat.no_encrypted_reasoning && thinks != Some(false);
    let mut conversation = Conversation::of(request, entry);
    if let Some(text) = volatile_text(request) {
        conversation.append_user(vec![Part::InputText { text }]);
    }
    to_json(&Body {
        model: &request.model,
        stream: true,
        store: false,
        include: may_reason.then_some([ENCRYPTED_REASONING]),
        reasoning: reasoning(request, entry),
        max_output_tokens: entry.output_cap(request),
        temperature: entry.temperature(request),
        instructions: is_sendable(&request.system_prompt).then_some(&*request.system_prompt),
        tool_choice: choice_to_send(request, entry).and_then(wire_choice),
        tools: request.tools.iter().map(|tool| wire_tool(tool, entry)).collect(),
        input: conversation.items,
    })
}

fn wire_tool<'a>(tool: &'a ToolSpec, entry: &ProviderEntry) -> Tool<'a> {
    let parameters = required_tool_schema(&tool.input_schema, entry.compat.schema_form);
    Tool {
        r#type: "function",
        name: wire_name(&tool.name),
        description: &tool.description,
        strict: entry.compat.strict_tools && allows_strict(&parameters),
        parameters,
    }
}

fn wire_choice(choice: &ToolChoice) -> Option<WireChoice> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(WireChoice::Word("none")),
        ToolChoice::Required => Some(WireChoice::Word("required")),
        ToolChoice::Tool(name) => {
            Some(WireChoice::Tool { r#type: "function", name: wire_name(name) })
        }
    }
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    include: Option<[&'static str; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Effort>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<WireChoice>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    input: Vec<Item<'a>>,
}

/// How much the model shall reason, and whether it tells of it.
#[derive(Serialize)]
struct Effort {
    effort: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'static str>,
}

fn reasoning(request: &Request, entry: &ProviderEntry) -> Option<Effort> {
    let plan = ThinkingPlan::new(request.thinking?, entry, &request.model);
    match plan.level? {
        (level, LevelValue::Effort(effort)) => {
            let is_told = level > ThinkingLevel::Off && !entry.compat.no_reasoning_summary;
            Some(Effort { effort, summary: is_told.then_some("auto") })
        }
        // The API has words only.
        (_, LevelValue::Switch(_) | LevelValue::Budget(_)) => None,
    }
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    name: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    parameters: Value,
    /// Always said: it is on where nothing is said, and refused for a schema that does not allow it.
    strict: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum WireChoice {
    Word(&'static str),
    Tool { r#type: &'static str, name: String },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message {
        role: Role,
        content: Vec<Part<'a>>,
    },
    FunctionCall {
        call_id: String,
        name: String,
        arguments: String,
    },
    FunctionCallOutput {
        call_id: String,
        output: String,
    },
    Reasoning(Reasoning<'a>),
    #[serde(untagged)]
    Other(&'a Value),
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Role {
    User,
    Assistant,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    InputText { text: &'a str },
    InputImage { image_url: String },
    OutputText { text: &'a str, annotations: [(); 0] },
}

/// Reasoning without its id, which names something that the host did not store.
#[derive(Serialize)]
struct Reasoning<'a> {
    summary: &'a Value,
    encrypted_content: &'a str,
}

/// The items on the wire, growing.
struct Conversation<'a> {
    entry: &'a ProviderEntry,
    model: &'a str,
    sent_images: SentImages,
    ids: ToolIds,
    items: Vec<Item<'a>>,
    /// Images of results, until the last result of their message is there.
    images: Vec<Part<'a>>,
}

impl<'a> Conversation<'a> {
    fn of(request: &'a Request, entry: &'a ProviderEntry) -> Self {
        let mut conversation = Self {
            entry,
            model: &request.model,
            sent_images: sent_images(entry, &request.model),
            ids: ToolIds::new(entry.compat.tool_ids),
            items: Vec::new(),
            images: Vec::new(),
        };
        for message in &request.messages {
            match &**message {
                Message::User(user) => {
                    conversation.release_images();
                    let parts = conversation.parts(&user.content);
                    conversation.append_user(parts);
                }
                Message::Assistant(assistant) => {
                    conversation.release_images();
                    conversation.append_answer(assistant);
                }
                Message::ToolResult(result) => conversation.append_result(result),
            }
        }
        conversation.release_images();
        if conversation.items.is_empty() {
            conversation.append_user(vec![Part::InputText { text: NO_QUESTION }]);
        }
        conversation
    }

    fn release_images(&mut self) {
        if self.images.is_empty() {
            return;
        }
        let mut parts = vec![Part::InputText { text: IMAGES_HEAD }];
        parts.append(&mut self.images);
        self.append_user(parts);
    }

    /// Local servers put items through chat templates, many of which insist on alternation: what a
    /// user says in several messages is one.
    fn append_user(&mut self, parts: Vec<Part<'a>>) {
        if parts.is_empty() {
            return;
        }
        match self.items.last_mut() {
            Some(Item::Message { role: Role::User, content }) => content.extend(parts),
            Some(_) | None => {
                self.items.push(Item::Message { role: Role::User, content: parts });
            }
        }
    }

    fn parts(&self, content: &'a [ContentBlock]) -> Vec<Part<'a>> {
        content
            .iter()
            .filter_map(|block| match block {
                ContentBlock::Text { text } => {
                    is_sendable(text).then_some(Part::InputText { text })
                }
                ContentBlock::Image { mime_type, data } => {
                    Some(match image_type(self.sent_images, mime_type, data) {
                        Ok(mime_type) => Part::InputImage {
                            image_url: format!("data:{mime_type};base64,{data}"),
                        },
                        Err(text) => Part::InputText { text },
                    })
                }
                ContentBlock::Thinking { .. }
                | ContentBlock::ToolCall(_)
                | ContentBlock::Opaque { .. } => None,
            })
            .collect()
    }

    fn append_result(&mut self, result: &'a ToolResultMessage) {
        let mut texts = Vec::new();
        let mut has_images = false;
        for part in self.parts(&result.content) {
            match part {
                Part::InputText { text } | Part::OutputText { text, .. } => texts.push(text),
                image @ Part::InputImage { .. } => {
                    has_images = true;
                    self.images.push(image);
                }
            }
        }
        let output = result_text(&texts, has_images);
        self.items.push(Item::FunctionCallOutput {
            call_id: self.ids.result(&result.tool_call_id),
            output,
        });
    }

    fn append_answer(&mut self, message: &'a AssistantMessage) {
        let maker = Maker::of(message, self.entry, self.model);
        self.ids.begin_message();
        // Adjacent texts are parts of one message, but never of the message before this one.
        let mut is_text_last = false;
        // What the provider's own tools left behind is refused without the reasoning before it,
        // and nothing says whether it was made after some: where there is any, it goes back only
        // behind reasoning that does.
        let mut lacks_reasoning = message.content.iter().any(is_reasoning);
        for block in &message.content {
            match block {
                ContentBlock::Text { text } if !is_sendable(text) => {}
                ContentBlock::Text { .. } | ContentBlock::Image { .. } => {
                    let text = block.as_text().unwrap_or(ANSWER_IMAGE_NOTE);
                    let part = Part::OutputText { text, annotations: [] };
                    match self.items.last_mut() {
                        Some(Item::Message { content, .. }) if is_text_last => content.push(part),
                        Some(_) | None => self
                            .items
                            .push(Item::Message { role: Role::Assistant, content: vec![part] }),
                    }
                    is_text_last = true;
                }
                // What it was kept in follows, if it can be replayed.
                ContentBlock::Thinking { .. } => lacks_reasoning = true,
                ContentBlock::ToolCall(call) => {
                    let call = self.wire_call(call);
                    self.items.push(call);
                    is_text_last = false;
                }
                ContentBlock::Opaque { api, data }
                    if maker == Maker::SameModel && api == self.entry.api.as_str() =>
                {
                    match replayed(data) {
                        Some(Item::Other(_)) if lacks_reasoning => {}
                        Some(item) => {
                            lacks_reasoning = false;
                            self.items.push(item);
                            is_text_last = false;
                        }
                        None => lacks_reasoning = true,
                    }
                }
                ContentBlock::Opaque { .. } => {}
            }
        }
        // Reasoning is refused without what it led to, which a broken-off answer may lack.
        while let Some(Item::Reasoning(_)) = self.items.last() {
            self.items.pop();
        }
    }

    fn wire_call(&mut self, call: &ToolCall) -> Item<'a> {
        Item::FunctionCall {
            call_id: self.ids.call(&call.id),
            name: wire_name(&call.name),
            // Arguments that could not be read are an empty object here, which is accepted; the
            // call's error result says what they were.
            arguments: json_text(&call.arguments),
        }
    }
}

fn is_reasoning(block: &ContentBlock) -> bool {
    match block {
        ContentBlock::Thinking { .. } => true,
        ContentBlock::Opaque { data, .. } => data["type"] == "reasoning",
        ContentBlock::Text { .. } | ContentBlock::Image { .. } | ContentBlock::ToolCall(_) => false,
    }
}

/// The item that an opaque block holds, as it goes back.
fn replayed(data: &Value) -> Option<Item<'_>> {
    let kind = data.get("type")?.as_str()?;
    if kind != "reasoning" {
        return Some(Item::Other(data));
    }
    Some(Item::Reasoning(Reasoning {
        summary: data.get("summary").filter(|summary| summary.is_array()).unwrap_or(&NO_SUMMARY),
        encrypted_content: data.get("encrypted_content")?.as_str()?,
    }))
}

/// The summary is asked for even where there is none.
static NO_SUMMARY: Value = Value::Array(Vec::new());

#[cfg(test)]
#[path = "encode/tests.rs"]
mod tests;
