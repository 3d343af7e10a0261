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
    ANSWER_IMAGE_NOTE, Maker, NO_OUTPUT, NO_QUESTION, SentImages, image_type, is_sendable,
    sent_images, volatile_text,
};
use crate::request::Request;
use crate::schema_form::required_tool_schema;
use crate::thinking::{LevelValue, ThinkingLevel, ThinkingPlan, fitting_budget};
use crate::tool_choice::{ToolChoice, choice_to_send};
use crate::tool_names::{ToolIds, wire_name};

/// The cap on output tokens, which the API requires, where nobody set one: what current models can
/// write in one answer without a special header.
const DEFAULT_MAX_TOKENS: u32 = 32_000;

/// How a model is told not to think.
const DISABLED: &str = "disabled";

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
            input_schema: required_tool_schema(&tool.input_schema, entry.compat.schema_form),
            cache_control: None,
        })
        .collect();
    let mut system: Vec<Block<'_>> = Vec::new();
    if is_sendable(&request.system_prompt) {
        system.push(Content::Text { text: &request.system_prompt }.into());
    }
    let mut conversation = Conversation::of(request, entry);
    if caching {
        if let Some(tool) = tools.last_mut() {
            tool.cache_control = Some(EPHEMERAL);
        }
        mark(&mut system);
        conversation
            .messages
            .iter_mut()
            .rev()
            .filter(|message| message.role == Role::User)
            .take(CACHED_USER_MESSAGES)
            .for_each(|message| mark(&mut message.content));
    }
    // Behind the marks: what is cached ends before it.
    if let Some(text) = volatile_text(request) {
        conversation.append(Role::User, vec![Content::Text { text }.into()]);
    }
    match conversation.messages.last() {
        Some(last) if last.role == Role::User => {}
        Some(_) | None => conversation.messages.push(WireMessage::asks_nothing()),
    }
    let max_tokens = max_tokens(request, entry);
    let (thinking, output_config) = thinking(request, entry, max_tokens, &conversation.messages);
    // While it thinks, a model takes no temperature but its own.
    let is_thinking = thinking.as_ref().is_some_and(WireThinking::is_on);
    to_json(&Body {
        model: &request.model,
        max_tokens,
        stream: true,
        temperature: entry.temperature(request).filter(|_| !is_thinking),
        thinking,
        output_config,
        tool_choice: choice_to_send(request, entry).and_then(wire_choice),
        tools,
        system,
        messages: conversation.messages,
    })
}

/// The cap on output tokens: what was set, else [`DEFAULT_MAX_TOKENS`] or what the model can write.
fn max_tokens(request: &Request, entry: &ProviderEntry) -> u32 {
    entry.output_cap(request).unwrap_or_else(|| {
        let most = entry.model(&request.model).and_then(|info| info.max_output_tokens);
        most.map_or(DEFAULT_MAX_TOKENS, |most| most.min(DEFAULT_MAX_TOKENS))
    })
}

/// What is said about thinking, and how hard the model shall try.
fn thinking(
    request: &Request,
    entry: &ProviderEntry,
    max_tokens: u32,
    messages: &[WireMessage<'_>],
) -> (Option<WireThinking>, Option<OutputConfig>) {
    // A call that is demanded leaves no room to think.
    let is_forced = match choice_to_send(request, entry) {
        Some(ToolChoice::Required | ToolChoice::Tool(_)) => true,
        Some(ToolChoice::Auto | ToolChoice::None) | None => false,
    };
    let wanted = request.thinking.map(|level| if is_forced { ThinkingLevel::Off } else { level });
    let plan = wanted.map(|level| ThinkingPlan::new(level, entry, &request.model));
    let Some((level, value)) = plan.and_then(|plan| plan.level) else { return (None, None) };
    match value {
        _ if is_forced && level > ThinkingLevel::Off => (None, None),
        // Some models have a word of their own for it.
        LevelValue::Effort(word) if level == ThinkingLevel::Off => {
            (Some(WireThinking::Off { r#type: word }), None)
        }
        _ if level == ThinkingLevel::Off => {
            (Some(WireThinking::Off { r#type: DISABLED.to_owned() }), None)
        }
        LevelValue::Effort(effort) => (Some(WireThinking::Adaptive), Some(OutputConfig { effort })),
        LevelValue::Budget(tokens) => {
            let budget = fitting_budget(tokens, max_tokens);
            let budget = budget.filter(|_| !goes_on_without_thinking(messages));
            (budget.map(|budget_tokens| WireThinking::Enabled { budget_tokens }), None)
        }
        LevelValue::Switch(_) => (Some(WireThinking::Adaptive), None),
    }
}

/// Whether the model is in the middle of a turn that it began without thinking, such as one of
/// another model: thinking with a budget is refused until that turn is over.
fn goes_on_without_thinking(messages: &[WireMessage<'_>]) -> bool {
    let [.., answer, results] = messages else { return false };
    let is_mid_turn = matches!(
        results.content.first().map(|block| &block.content),
        Some(Content::ToolResult { .. })
    );
    is_mid_turn
        && !matches!(
            answer.content.first().map(|block| &block.content),
            Some(Content::Thinking { .. } | Content::RedactedThinking { .. })
        )
}

fn wire_choice(choice: &ToolChoice) -> Option<WireChoice> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(WireChoice::None),
        ToolChoice::Required => Some(WireChoice::Any),
        ToolChoice::Tool(name) => Some(WireChoice::Tool { name: wire_name(name) }),
    }
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
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<WireThinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<WireChoice>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    messages: Vec<WireMessage<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireThinking {
    Adaptive,
    Enabled {
        budget_tokens: u32,
    },
    #[serde(untagged)]
    Off {
        r#type: String,
    },
}

impl WireThinking {
    fn is_on(&self) -> bool {
        match self {
            Self::Off { .. } => false,
            Self::Adaptive | Self::Enabled { .. } => true,
        }
    }
}

#[derive(Serialize)]
struct OutputConfig {
    effort: String,
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

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireChoice {
    None,
    Any,
    Tool { name: String },
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
    sent_images: SentImages,
    ids: ToolIds,
    messages: Vec<WireMessage<'a>>,
    /// How many results stand at the head of the last message.
    results: usize,
}

impl<'a> Conversation<'a> {
    fn of(request: &'a Request, entry: &'a ProviderEntry) -> Self {
        let mut conversation = Self {
            entry,
            model: &request.model,
            sent_images: sent_images(entry, &request.model),
            ids: ToolIds::new(entry.compat.tool_ids),
            messages: Vec::new(),
            results: 0,
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
            Some(_) | None => {
                self.messages.push(WireMessage { role, content: blocks });
                self.results = 0;
            }
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
            Some(last) if last.role == Role::User => last.content.insert(self.results, block),
            Some(_) | None => {
                self.messages.push(WireMessage { role: Role::User, content: vec![block] });
                self.results = 0;
            }
        }
        self.results += 1;
    }

    /// What a user or a tool can say: text and images.
    fn input(&self, content: &'a [ContentBlock]) -> Vec<Block<'a>> {
        content.iter().filter_map(|block| self.input_block(block)).map(Block::from).collect()
    }

    fn input_block(&self, block: &'a ContentBlock) -> Option<Content<'a>> {
        match block {
            ContentBlock::Text { text } => is_sendable(text).then_some(Content::Text { text }),
            ContentBlock::Image { mime_type, data } => {
                Some(match image_type(self.sent_images, mime_type, data) {
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
