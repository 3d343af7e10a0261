//! Requests in the form of Chat Completions, and in its dialects by [`Compat`](crate::Compat).
//!
//! Tool messages carry text only: images in a tool's result follow in a user message. What one
//! side says in several messages becomes one, and the user begins and ends, since many hosts and chat
//! templates insist on turns.

use serde::Serialize;
use serde_json::Value;

use crate::compat::{MaxTokensField, ReasoningReplay, SystemRole, ThinkingField};
use crate::message::{AssistantMessage, ContentBlock, Message, ToolCall, ToolResultMessage};
use crate::provider_entry::ProviderEntry;
use crate::providers::{json_text, to_json};
use crate::replay::{
    ANSWER_IMAGE_NOTE, IMAGES_HEAD, Maker, NO_ANSWER, NO_QUESTION, PARAGRAPH, SentImages,
    image_type, is_sendable, result_text, sent_images, volatile_text,
};
use crate::request::{Request, ToolSpec};
use crate::schema_form::{allows_strict, tool_schema};
use crate::thinking::{LevelValue, ThinkingLevel, ThinkingPlan};
use crate::tool_choice::{ToolChoice, choice_to_send};
use crate::tool_names::{ToolIds, wire_name};

/// Sent as reasoning where a host requires some and the message has none, such as one of another
/// model: the field must be there and not empty.
const NO_REASONING: &str = " ";

/// The JSON body of a streaming request.
pub(crate) fn encode(request: &Request, entry: &ProviderEntry) -> Vec<u8> {
    let cap = entry.output_cap(request);
    let (max_tokens, max_completion_tokens) = match entry.compat.max_tokens_field {
        MaxTokensField::MaxTokens => (cap, None),
        MaxTokensField::MaxCompletionTokens => (None, cap),
    };
    let mut conversation = Conversation::of(request, entry);
    if let Some(text) = volatile_text(request) {
        conversation.append_user(vec![Part::Text { text }]);
    }
    to_json(&Body {
        model: &request.model,
        stream: true,
        stream_options: (!entry.compat.no_stream_options)
            .then_some(StreamOptions { include_usage: true }),
        max_tokens,
        max_completion_tokens,
        temperature: entry.temperature(request),
        thinking: thinking(request, entry),
        tool_choice: choice_to_send(request, entry).and_then(wire_choice),
        tools: request.tools.iter().map(|tool| wire_tool(tool, entry)).collect(),
        messages: conversation.messages,
    })
}

fn wire_tool<'a>(tool: &'a ToolSpec, entry: &ProviderEntry) -> Tool<'a> {
    let parameters = tool_schema(&tool.input_schema, entry.compat.schema_form);
    let strict = entry.compat.strict_tools && parameters.as_ref().is_some_and(allows_strict);
    let name = wire_name(&tool.name);
    let description = &*tool.description;
    Tool { r#type: "function", function: Function { name, description, parameters, strict } }
}

fn wire_choice(choice: &ToolChoice) -> Option<WireChoice> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(WireChoice::Word("none")),
        ToolChoice::Required => Some(WireChoice::Word("required")),
        ToolChoice::Tool(name) => {
            let function = ChosenFunction { name: wire_name(name) };
            Some(WireChoice::Tool { r#type: "function", function })
        }
    }
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(flatten)]
    thinking: WireThinking,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<WireChoice>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    messages: Vec<WireMessage<'a>>,
}

/// What is said about thinking, in whichever field the host has for it.
#[derive(Default, Serialize)]
struct WireThinking {
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<ReasoningObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Switch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    enable_thinking: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum ReasoningObject {
    Enabled(bool),
    MaxTokens(u32),
    Effort(String),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Switch {
    Enabled,
    Disabled,
}

fn thinking(request: &Request, entry: &ProviderEntry) -> WireThinking {
    let plan = request.thinking.map(|level| ThinkingPlan::new(level, entry, &request.model));
    let mut wire = WireThinking::default();
    let Some((level, value)) = plan.and_then(|plan| plan.level) else { return wire };
    let is_on = level > ThinkingLevel::Off;
    match entry.compat.thinking_field {
        ThinkingField::ReasoningEffort => match value {
            LevelValue::Effort(effort) => wire.reasoning_effort = Some(effort),
            // The field has words only.
            LevelValue::Switch(_) | LevelValue::Budget(_) => {}
        },
        ThinkingField::ReasoningObject => {
            wire.reasoning = Some(match value {
                LevelValue::Switch(enabled) => ReasoningObject::Enabled(enabled),
                LevelValue::Budget(_) if !is_on => ReasoningObject::Enabled(false),
                LevelValue::Budget(tokens) => ReasoningObject::MaxTokens(tokens),
                LevelValue::Effort(effort) => ReasoningObject::Effort(effort),
            });
        }
        ThinkingField::ThinkingType => {
            wire.thinking = Some(if is_on { Switch::Enabled } else { Switch::Disabled });
            if let (true, LevelValue::Effort(effort)) = (is_on, value) {
                wire.reasoning_effort = Some(effort);
            }
        }
        ThinkingField::EnableThinking => {
            wire.enable_thinking = Some(is_on);
            if let (true, LevelValue::Budget(tokens)) = (is_on, value) {
                wire.thinking_budget = Some(tokens);
            }
        }
    }
    wire
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Value>,
    /// Only said where it is on: most hosts do not know it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    strict: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum WireChoice {
    Word(&'static str),
    Tool { r#type: &'static str, function: ChosenFunction },
}

#[derive(Serialize)]
struct ChosenFunction {
    name: String,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum WireMessage<'a> {
    System { content: &'a str },
    Developer { content: &'a str },
    User { content: UserContent<'a> },
    Assistant(Answer<'a>),
    Tool { tool_call_id: String, content: String },
}

impl WireMessage<'_> {
    fn is_instruction(&self) -> bool {
        match self {
            Self::System { .. } | Self::Developer { .. } => true,
            Self::User { .. } | Self::Assistant(_) | Self::Tool { .. } => false,
        }
    }
}

#[derive(Default, Serialize)]
struct Answer<'a> {
    /// `null` beside tool calls; never blank.
    content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasoning_details: Vec<&'a Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall>,
}

impl Answer<'_> {
    fn text(text: &str, reasoning: ReasoningReplay) -> Self {
        let wants_reasoning = match reasoning {
            ReasoningReplay::Never | ReasoningReplay::WithToolCalls => false,
            ReasoningReplay::Always => true,
        };
        Self {
            content: Some(text.to_owned()),
            reasoning_content: wants_reasoning.then(|| NO_REASONING.to_owned()),
            ..Self::default()
        }
    }
}

impl<'a> Answer<'a> {
    /// Adds what was said next to what was said.
    fn append(&mut self, next: Answer<'a>) {
        self.content = joined(self.content.take(), next.content);
        self.reasoning_content = joined(
            self.reasoning_content.take().filter(|text| is_sendable(text)),
            next.reasoning_content,
        );
        self.reasoning_details.extend(next.reasoning_details);
        self.tool_calls.extend(next.tool_calls);
    }
}

fn joined(one: Option<String>, next: Option<String>) -> Option<String> {
    match (one, next) {
        (Some(one), Some(next)) => Some(format!("{one}{PARAGRAPH}{next}")),
        (one, next) => one.or(next),
    }
}

/// What a user says: a string where there is only text, which every host takes.
struct UserContent<'a>(Vec<Part<'a>>);

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

impl Serialize for UserContent<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let texts: Option<Vec<&str>> = self
            .0
            .iter()
            .map(|part| match part {
                Part::Text { text } => Some(*text),
                Part::ImageUrl { .. } => None,
            })
            .collect();
        match texts {
            Some(texts) => serializer.serialize_str(&texts.join(PARAGRAPH)),
            None => self.0.serialize(serializer),
        }
    }
}

#[derive(Serialize)]
struct WireCall {
    id: String,
    r#type: &'static str,
    function: WireCallFunction,
}

#[derive(Serialize)]
struct WireCallFunction {
    name: String,
    arguments: String,
}

/// The messages on the wire, growing.
struct Conversation<'a> {
    entry: &'a ProviderEntry,
    model: &'a str,
    sent_images: SentImages,
    ids: ToolIds,
    messages: Vec<WireMessage<'a>>,
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
            messages: Vec::new(),
            images: Vec::new(),
        };
        if is_sendable(&request.system_prompt) {
            let content = &*request.system_prompt;
            conversation.messages.push(match entry.compat.system_role {
                SystemRole::System => WireMessage::System { content },
                SystemRole::Developer => WireMessage::Developer { content },
            });
        }
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
        match conversation.messages.last() {
            Some(WireMessage::User { .. } | WireMessage::Tool { .. }) => {}
            Some(
                WireMessage::System { .. }
                | WireMessage::Developer { .. }
                | WireMessage::Assistant(_),
            )
            | None => conversation.ask_nothing(),
        }
        conversation
    }

    /// Lets the user speak where nothing was said: many hosts insist on a user who begins and ends.
    fn ask_nothing(&mut self) {
        self.append_user(vec![Part::Text { text: NO_QUESTION }]);
    }

    fn release_images(&mut self) {
        if self.images.is_empty() {
            return;
        }
        let mut parts = vec![Part::Text { text: IMAGES_HEAD }];
        parts.append(&mut self.images);
        self.append_user(parts);
    }

    fn append_user(&mut self, parts: Vec<Part<'a>>) {
        if parts.is_empty() {
            return;
        }
        match self.messages.last_mut() {
            Some(WireMessage::User { content }) => content.0.extend(parts),
            Some(WireMessage::Tool { .. }) if self.entry.compat.no_user_after_result => {
                let answer = Answer::text(NO_ANSWER, self.entry.compat.reasoning_replay);
                self.messages.push(WireMessage::Assistant(answer));
                self.messages.push(WireMessage::User { content: UserContent(parts) });
            }
            Some(_) | None => {
                self.messages.push(WireMessage::User { content: UserContent(parts) });
            }
        }
    }

    fn parts(&self, content: &'a [ContentBlock]) -> Vec<Part<'a>> {
        content
            .iter()
            .filter_map(|block| match block {
                ContentBlock::Text { text } => is_sendable(text).then_some(Part::Text { text }),
                ContentBlock::Image { mime_type, data } => {
                    Some(match image_type(self.sent_images, mime_type, data) {
                        Ok(mime_type) => {
                            let url = format!("data:{mime_type};base64,{data}");
                            Part::ImageUrl { image_url: ImageUrl { url } }
                        }
                        Err(text) => Part::Text { text },
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
                Part::Text { text } => texts.push(text),
                image @ Part::ImageUrl { .. } => {
                    has_images = true;
                    self.images.push(image);
                }
            }
        }
        let content = result_text(&texts, has_images);
        self.messages.push(WireMessage::Tool {
            tool_call_id: self.ids.result(&result.tool_call_id),
            content,
        });
    }

    fn append_answer(&mut self, message: &'a AssistantMessage) {
        let maker = Maker::of(message, self.entry, self.model);
        self.ids.begin_message();
        let mut text = String::new();
        let mut thinking = String::new();
        let mut reasoning_details = Vec::new();
        let mut tool_calls = Vec::new();
        for block in &message.content {
            match block {
                ContentBlock::Text { text: more } => text.push_str(more),
                ContentBlock::Thinking { text: more, redacted: false, .. } => {
                    thinking.push_str(more);
                }
                ContentBlock::ToolCall(call) => tool_calls.push(self.wire_call(call)),
                ContentBlock::Opaque { api, data }
                    if maker == Maker::SameModel && api == self.entry.api.as_str() =>
                {
                    reasoning_details.extend(details(data));
                }
                ContentBlock::Thinking { redacted: true, .. } | ContentBlock::Opaque { .. } => {}
                ContentBlock::Image { .. } => text.push_str(ANSWER_IMAGE_NOTE),
            }
        }
        let content = is_sendable(&text).then_some(text);
        if content.is_none() && tool_calls.is_empty() {
            return;
        }
        let wants_reasoning = match self.entry.compat.reasoning_replay {
            ReasoningReplay::Never => false,
            ReasoningReplay::WithToolCalls => !tool_calls.is_empty(),
            ReasoningReplay::Always => true,
        };
        let reasoning_content = wants_reasoning
            .then(|| if is_sendable(&thinking) { thinking } else { NO_REASONING.to_owned() });
        let answer = Answer { content, reasoning_content, reasoning_details, tool_calls };
        if self.messages.iter().all(WireMessage::is_instruction) {
            self.ask_nothing();
        }
        match self.messages.last_mut() {
            Some(WireMessage::Assistant(last)) if last.tool_calls.is_empty() => last.append(answer),
            Some(_) | None => self.messages.push(WireMessage::Assistant(answer)),
        }
    }

    fn wire_call(&mut self, call: &ToolCall) -> WireCall {
        WireCall {
            id: self.ids.call(&call.id),
            r#type: "function",
            function: WireCallFunction {
                name: wire_name(&call.name),
                // Arguments that could not be read are an empty object here, which is accepted;
                // the call's error result says what they were.
                arguments: json_text(&call.arguments),
            },
        }
    }
}

/// The `reasoning_details` that an opaque block holds: the whole field, a list, or one entry.
fn details(data: &Value) -> Vec<&Value> {
    match data.get("reasoning_details").unwrap_or(data) {
        Value::Array(entries) => entries.iter().collect(),
        entry @ Value::Object(_) => vec![entry],
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

#[cfg(test)]
#[path = "encode/tests.rs"]
mod tests;
