//! Requests in the form of Messages.
//!
//! What the API asks beyond the pairing of calls and results: roles alternate, all results of one
//! assistant message stand together at the head of the user message behind it, no text is blank,
//! thinking carries its signature and goes only to the model that made it, and no assistant message
//! ends in thinking.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::message::{AssistantMessage, ContentBlock, Message, ToolCall, ToolResultMessage};
use crate::provider_entry::ProviderEntry;
use crate::providers::to_json;
use crate::replay::{
    ANSWER_IMAGE_NOTE, Maker, NO_OUTPUT, NO_QUESTION, image_type, is_sendable, plain_schema,
};
use crate::request::Request;
use crate::tool_names::{ToolIds, wire_name};

/// The cap on output tokens, which the API requires, where nobody set one: what current models can
/// write in one answer without a special header.
const DEFAULT_MAX_TOKENS: u32 = 32_000;

/// How many of the last user messages are marked for the cache. The last is written for the next
/// request, the one before was written by the last request and is read by this one.
const CACHED_USER_MESSAGES: usize = 2;

/// The JSON body of a streaming request.
pub(crate) fn encode(request: &Request, entry: &ProviderEntry) -> Vec<u8> {
    let caching = !entry.compat.no_cache_control;
    let mut tools: Vec<Tool<'_>> = request
        .tools
        .iter()
        .map(|tool| Tool {
            name: wire_name(&tool.name),
            description: &tool.description,
            input_schema: plain_schema(&tool.input_schema),
            cache_control: None,
        })
        .collect();
    let mut system: Vec<Block<'_>> = Vec::new();
    if is_sendable(&request.system_prompt) {
        system.push(Content::Text { text: &request.system_prompt }.into());
    }
    let mut messages = Conversation::of(request, entry).messages;
    if caching {
        if let Some(tool) = tools.last_mut() {
            tool.cache_control = Some(EPHEMERAL);
        }
        mark(&mut system);
        messages
            .iter_mut()
            .rev()
            .filter(|message| message.role == Role::User)
            .take(CACHED_USER_MESSAGES)
            .for_each(|message| mark(&mut message.content));
    }
    match messages.last() {
        Some(last) if last.role == Role::User => {}
        Some(_) | None => messages.push(WireMessage::asks_nothing()),
    }
    to_json(&Body {
        model: &request.model,
        max_tokens: request
            .max_output_tokens
            .or(entry.max_output_tokens)
            .unwrap_or(DEFAULT_MAX_TOKENS),
        stream: true,
        temperature: request.temperature,
        tools,
        system,
        messages,
    })
}

fn mark(blocks: &mut [Block<'_>]) {
    if let Some(block) = blocks.last_mut() {
        block.cache_control = Some(EPHEMERAL);
    }
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    messages: Vec<WireMessage<'a>>,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    input_schema: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Clone, Copy, Serialize)]
struct CacheControl {
    r#type: &'static str,
}

const EPHEMERAL: CacheControl = CacheControl { r#type: "ephemeral" };

#[derive(Serialize)]
struct WireMessage<'a> {
    role: Role,
    content: Vec<Block<'a>>,
}

impl WireMessage<'_> {
    /// The user's part where nothing was said: a conversation begins and ends with the user.
    fn asks_nothing() -> Self {
        Self { role: Role::User, content: vec![Content::Text { text: NO_QUESTION }.into()] }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    User,
    Assistant,
}

#[derive(Serialize)]
struct Block<'a> {
    #[serde(flatten)]
    content: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

impl<'a> From<Content<'a>> for Block<'a> {
    fn from(content: Content<'a>) -> Self {
        Self { content, cache_control: None }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Content<'a> {
    Text {
        text: &'a str,
    },
    Image {
        source: ImageSource<'a>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: String,
        name: String,
        input: &'a Map<String, Value>,
    },
    ToolResult {
        tool_use_id: String,
        content: Vec<Block<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    /// The API's own JSON.
    #[serde(untagged)]
    Opaque(&'a Map<String, Value>),
}

#[derive(Serialize)]
struct ImageSource<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

/// The messages on the wire, growing.
struct Conversation<'a> {
    entry: &'a ProviderEntry,
    model: &'a str,
    ids: ToolIds,
    messages: Vec<WireMessage<'a>>,
}

impl<'a> Conversation<'a> {
    fn of(request: &'a Request, entry: &'a ProviderEntry) -> Self {
        let mut conversation = Self {
            entry,
            model: &request.model,
            ids: ToolIds::new(entry.compat.tool_ids),
            messages: Vec::new(),
        };
        for message in &request.messages {
            match &**message {
                Message::User(user) => {
                    let blocks = conversation.input(&user.content);
                    conversation.append(Role::User, blocks);
                }
                Message::Assistant(assistant) => {
                    let blocks = conversation.answer(assistant);
                    conversation.append(Role::Assistant, blocks);
                }
                Message::ToolResult(result) => conversation.append_result(result),
            }
        }
        conversation
    }

    /// Adds blocks to the last message if it has the same role, else as a new one.
    fn append(&mut self, role: Role, blocks: Vec<Block<'a>>) {
        if blocks.is_empty() {
            return;
        }
        if self.messages.is_empty() && role == Role::Assistant {
            self.messages.push(WireMessage::asks_nothing());
        }
        match self.messages.last_mut() {
            Some(last) if last.role == role => last.content.extend(blocks),
            Some(_) | None => self.messages.push(WireMessage { role, content: blocks }),
        }
    }

    /// Results come first in the message behind their calls.
    fn append_result(&mut self, result: &'a ToolResultMessage) {
        let mut content = self.input(&result.content);
        if content.is_empty() {
            content.push(Content::Text { text: NO_OUTPUT }.into());
        }
        let block = Block::from(Content::ToolResult {
            tool_use_id: self.ids.result(&result.tool_call_id),
            content,
            is_error: result.is_error,
        });
        match self.messages.last_mut() {
            Some(last) if last.role == Role::User => {
                let results = last
                    .content
                    .iter()
                    .take_while(|block| matches!(block.content, Content::ToolResult { .. }))
                    .count();
                last.content.insert(results, block);
            }
            Some(_) | None => {
                self.messages.push(WireMessage { role: Role::User, content: vec![block] });
            }
        }
    }

    /// What a user or a tool can say: text and images.
    fn input(&self, content: &'a [ContentBlock]) -> Vec<Block<'a>> {
        content.iter().filter_map(|block| self.input_block(block)).map(Block::from).collect()
    }

    fn input_block(&self, block: &'a ContentBlock) -> Option<Content<'a>> {
        match block {
            ContentBlock::Text { text } => is_sendable(text).then_some(Content::Text { text }),
            ContentBlock::Image { mime_type, data } => {
                Some(match image_type(self.entry, mime_type, data) {
                    Ok(media_type) => Content::Image {
                        source: ImageSource { r#type: "base64", media_type, data },
                    },
                    Err(text) => Content::Text { text },
                })
            }
            ContentBlock::Opaque { api, data } => self.opaque(api, data),
            ContentBlock::Thinking { .. } | ContentBlock::ToolCall(_) => None,
        }
    }

    fn answer(&mut self, message: &'a AssistantMessage) -> Vec<Block<'a>> {
        let maker = Maker::of(message, self.entry, self.model);
        self.ids.begin_message();
        let mut blocks: Vec<Block<'a>> = Vec::new();
        let halves = halves(&message.content);
        for (position, block) in message.content.iter().enumerate() {
            let content = match block {
                ContentBlock::Text { .. } => self.input_block(block),
                ContentBlock::Image { .. } => Some(Content::Text { text: ANSWER_IMAGE_NOTE }),
                ContentBlock::Thinking { text, signature, redacted } => {
                    match (maker, signature.as_deref().filter(|it| !it.is_empty())) {
                        (Maker::SameModel, Some(data)) if *redacted => {
                            Some(Content::RedactedThinking { data })
                        }
                        (Maker::SameModel, Some(signature)) => {
                            Some(Content::Thinking { thinking: text, signature })
                        }
                        // Unsigned thinking was cut off, or is another API's; both are refused.
                        (Maker::SameModel, None) | (Maker::SameProvider | Maker::Other, _) => None,
                    }
                }
                ContentBlock::ToolCall(call) => Some(self.tool_use(call)),
                ContentBlock::Opaque { api, data } => match maker {
                    Maker::SameModel | Maker::SameProvider if !halves.contains(&position) => {
                        self.opaque(api, data)
                    }
                    Maker::SameModel | Maker::SameProvider | Maker::Other => None,
                },
            };
            blocks.extend(content.map(Block::from));
        }
        while blocks.last().is_some_and(|block| {
            matches!(block.content, Content::Thinking { .. } | Content::RedactedThinking { .. })
        }) {
            blocks.pop();
        }
        blocks
    }

    fn tool_use(&mut self, call: &'a ToolCall) -> Content<'a> {
        Content::ToolUse {
            id: self.ids.call(&call.id),
            name: wire_name(&call.name),
            // Arguments that could not be read are an empty object here, which is accepted; the
            // call's error result says what they were.
            input: &call.arguments,
        }
    }

    fn opaque(&self, api: &str, data: &'a Value) -> Option<Content<'a>> {
        data.as_object().filter(|_| api == self.entry.api.as_str()).map(Content::Opaque)
    }
}

/// Where in an answer half of one of the provider's own tools is: a use without its result behind it,
/// as an answer has it that was cut off, or a result without its use. Both are refused.
fn halves(content: &[ContentBlock]) -> HashSet<usize> {
    let mut halves = HashSet::new();
    let mut uses = HashMap::new();
    for (position, block) in content.iter().enumerate() {
        let ContentBlock::Opaque { data, .. } = block else { continue };
        let text = |key: &str| data[key].as_str().unwrap_or_default();
        match text("type") {
            "server_tool_use" | "mcp_tool_use" => {
                halves.insert(position);
                uses.insert(text("id"), position);
            }
            kind if kind.ends_with("_tool_result") => match uses.remove(text("tool_use_id")) {
                Some(used) => drop(halves.remove(&used)),
                None => drop(halves.insert(position)),
            },
            _ => {}
        }
    }
    halves
}

#[cfg(test)]
#[path = "encode/tests.rs"]
mod tests;
