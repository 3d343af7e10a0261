//! [`Item`]: one output item of a response, from the event that opens it to the one that closes it.
//!
//! Text that was streamed stands; what an item's end repeats is used only where nothing was
//! streamed. Knows nothing of where items come from and in which order.

use serde_json::{Map, Value, json};

use crate::providers::blocks::{Blocks, Handle, Prose};

/// The most parts that one item may have; what lies beyond joins the last. Models write one or two.
const MAX_PARTS: usize = 256;

/// Stands between the parts of a reasoning summary, each of which is a paragraph.
const PARAGRAPH: &str = "\n\n";

/// An item that is not complete yet.
#[derive(Debug)]
pub(super) enum Item {
    /// What the model says: each part is a block.
    Message(Vec<Part>),
    /// What it thought: one block, whatever its parts.
    Reasoning(Reasoning),
    /// A call that the client is to make.
    Call { handle: Handle, form: CallForm },
    /// Anything else is kept whole when it is complete.
    Other,
}

/// One part of a message.
#[derive(Debug)]
pub(super) struct Part {
    /// Its place on the wire, which on some hosts does not begin at zero.
    index: u64,
    handle: Handle,
    has_text: bool,
}

/// The thinking of one reasoning item. A host sends raw text or a summary of it; of one that sends
/// both, what comes first is shown.
#[derive(Debug)]
pub(super) struct Reasoning {
    handle: Handle,
    /// What is being shown, and its part.
    shown: Option<(Source, u64)>,
}

/// Where thinking is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Summary,
    Raw,
}

/// How a call carries its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallForm {
    /// JSON text, which streams, under this name.
    Json,
    /// Text that is no JSON, which streams.
    Text,
    /// An object under this key, whole at the end.
    Object(&'static str),
}

impl CallForm {
    /// The form of an item of this type, if it is a call that the client is to make. Calls that the
    /// host makes itself are none.
    pub(super) fn of(kind: &str) -> Option<Self> {
        match kind {
            "function_call" => Some(Self::Json),
            "custom_tool_call" => Some(Self::Text),
            "local_shell_call" | "shell_call" | "computer_call" => Some(Self::Object("action")),
            "apply_patch_call" => Some(Self::Object("operation")),
            _ => None,
        }
    }

    fn arguments(self, item: &Map<String, Value>) -> String {
        match self {
            Self::Json => match item.get("arguments") {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Null) | None => String::new(),
                // Some hosts put the object itself where its text belongs. Where it is none, what is
                // wrong with it is said when it is parsed.
                Some(
                    json @ (Value::Object(_) | Value::Array(_) | Value::Bool(_) | Value::Number(_)),
                ) => json.to_string(),
            },
            Self::Text => text(item, "input").to_owned(),
            Self::Object(key) => match item.get(key) {
                Some(object) => object.to_string(),
                // A list of them, which is no object, goes under its name.
                None => match item.get("actions") {
                    Some(list) => json!({ "actions": list }).to_string(),
                    None => String::new(),
                },
            },
        }
    }
}

/// A field's text.
pub(super) fn text<'a>(item: &'a Map<String, Value>, key: &str) -> &'a str {
    item.get(key).and_then(Value::as_str).unwrap_or_default()
}

impl Item {
    /// The item that this object announces. What it holds already is repeated at its end.
    pub(super) fn announced(item: &Map<String, Value>, blocks: &mut Blocks) -> Self {
        let kind = text(item, "type");
        match (kind, CallForm::of(kind)) {
            ("message", _) => Self::message(),
            ("reasoning", _) => Self::reasoning(blocks),
            (_, Some(form)) => {
                let id = match text(item, "call_id") {
                    "" => text(item, "id"),
                    id => id,
                };
                // Built-in tools have no name but their type.
                let name = match form {
                    CallForm::Json | CallForm::Text => text(item, "name"),
                    CallForm::Object(_) => kind,
                };
                Self::call(id, name, form, blocks)
            }
            (_, None) => Self::Other,
        }
    }

    /// A message without parts.
    pub(super) fn message() -> Self {
        Self::Message(Vec::new())
    }

    /// Thinking without text.
    pub(super) fn reasoning(blocks: &mut Blocks) -> Self {
        Self::Reasoning(Reasoning { handle: blocks.begin_prose(Prose::Thinking), shown: None })
    }

    /// A call without arguments.
    pub(super) fn call(id: &str, name: &str, form: CallForm, blocks: &mut Blocks) -> Self {
        let handle = blocks.begin_call(id, name);
        if form == CallForm::Text {
            blocks.take_as_text(handle);
        }
        Self::Call { handle, form }
    }

    /// The item is complete: `whole` is what the wire says of it then.
    pub(super) fn end(self, whole: Map<String, Value>, blocks: &mut Blocks) {
        let parts = |key: &str| whole.get(key).and_then(Value::as_array).into_iter().flatten();
        match self {
            Self::Message(mut seen) => {
                let texts = parts("content").map(part_text).filter(|text| !text.is_empty());
                for (position, text) in texts.enumerate() {
                    // The n-th part here is the n-th that was streamed: the wire's indices need not
                    // be the same.
                    let index = match seen.get(position) {
                        Some(part) => part.index,
                        None => beyond(&seen),
                    };
                    fill_part(&mut seen, index, text, blocks);
                }
                end_parts(seen, blocks);
            }
            Self::Reasoning(mut reasoning) => {
                if reasoning.shown.is_none() {
                    let raw: String = parts("content").map(part_text).collect();
                    let summary: Vec<&str> = parts("summary").map(part_text).collect();
                    if raw.is_empty() {
                        reasoning.grow(Source::Summary, 0, &summary.join(PARAGRAPH), blocks);
                    } else {
                        reasoning.grow(Source::Raw, 0, &raw, blocks);
                    }
                }
                blocks.end(reasoning.handle);
                // The cipher goes back with the summary that it belongs to, part by part.
                if !text(&whole, "encrypted_content").is_empty() {
                    keep(whole, blocks);
                }
            }
            Self::Call { handle, form } => {
                blocks.identify_call(handle, text(&whole, "call_id"), text(&whole, "name"));
                fill_call(handle, &form.arguments(&whole), blocks);
                blocks.end(handle);
            }
            Self::Other => keep(whole, blocks),
        }
    }

    /// The item will not be completed: what was streamed of it stands.
    pub(super) fn abandon(self, blocks: &mut Blocks) {
        match self {
            Self::Message(parts) => end_parts(parts, blocks),
            Self::Reasoning(reasoning) => blocks.end(reasoning.handle),
            Self::Call { handle, .. } => blocks.end(handle),
            // Half of it is worth nothing.
            Self::Other => {}
        }
    }

    /// Whether this is an item of that type on the wire.
    pub(super) fn is_of_type(&self, kind: &str) -> bool {
        match self {
            Self::Message(_) => kind == "message",
            Self::Reasoning(_) => kind == "reasoning",
            Self::Call { form, .. } => CallForm::of(kind) == Some(*form),
            Self::Other => !matches!(kind, "message" | "reasoning") && CallForm::of(kind).is_none(),
        }
    }
}

impl Reasoning {
    /// Appends to a part of the thinking.
    pub(super) fn grow(&mut self, source: Source, part: u64, delta: &str, blocks: &mut Blocks) {
        if delta.is_empty() {
            return;
        }
        match self.shown {
            Some((shown, _)) if shown != source => return,
            Some((Source::Summary, last)) if last != part => {
                blocks.grow_prose(self.handle, PARAGRAPH);
            }
            Some(_) | None => {}
        }
        self.shown = Some((source, part));
        blocks.grow_prose(self.handle, delta);
    }

    /// A part is complete; its text is new where none of it was streamed.
    pub(super) fn fill(&mut self, source: Source, part: u64, whole: &str, blocks: &mut Blocks) {
        let is_new = match self.shown {
            Some((shown, last)) => shown == source && part > last,
            None => true,
        };
        if is_new {
            self.grow(source, part, whole, blocks);
        }
    }
}

/// Appends to a part of a message, which is begun if it is new.
pub(super) fn grow_part(parts: &mut Vec<Part>, index: u64, delta: &str, blocks: &mut Blocks) {
    if delta.is_empty() {
        return;
    }
    if let Some(part) = open_part(parts, index, blocks) {
        part.has_text = true;
        blocks.grow_prose(part.handle, delta);
    }
}

/// A part of a message is complete; its text is new where none of it was streamed.
pub(super) fn fill_part(parts: &mut Vec<Part>, index: u64, whole: &str, blocks: &mut Blocks) {
    if !parts.iter().any(|part| part.index == index && part.has_text) {
        grow_part(parts, index, whole, blocks);
    }
}

fn open_part<'a>(
    parts: &'a mut Vec<Part>,
    index: u64,
    blocks: &mut Blocks,
) -> Option<&'a mut Part> {
    let at = parts.iter().rposition(|part| part.index == index);
    if at.is_none() && parts.len() < MAX_PARTS {
        let handle = blocks.begin_prose(Prose::Text);
        parts.push(Part { index, handle, has_text: false });
    }
    match at {
        Some(at) => parts.get_mut(at),
        None => parts.last_mut(),
    }
}

/// An index that no part has.
fn beyond(parts: &[Part]) -> u64 {
    parts.iter().map(|part| part.index.saturating_add(1)).max().unwrap_or_default()
}

fn end_parts(parts: Vec<Part>, blocks: &mut Blocks) {
    for part in parts {
        blocks.end(part.handle);
    }
}

/// A call's arguments are complete; they are new where none of them were streamed.
pub(super) fn fill_call(handle: Handle, whole: &str, blocks: &mut Blocks) {
    if !blocks.has_arguments(handle) {
        blocks.grow_call(handle, whole);
    }
}

/// A part's text; a refusal is what the model says, so it is text too.
fn part_text(part: &Value) -> &str {
    let field = |key: &str| part.get(key).and_then(Value::as_str);
    field("text").or_else(|| field("refusal")).unwrap_or_default()
}

/// Whether a complete message holds a refusal.
pub(super) fn has_refusal(whole: &Map<String, Value>) -> bool {
    let parts = whole.get("content").and_then(Value::as_array).into_iter().flatten();
    text(whole, "type") == "message"
        && parts.into_iter().any(|part| {
            part.get("refusal").and_then(Value::as_str).is_some_and(|text| !text.is_empty())
        })
}

fn keep(whole: Map<String, Value>, blocks: &mut Blocks) {
    let size = serde_json::to_string(&whole).map_or(0, |text| text.len());
    if !whole.is_empty() && blocks.hold(size) {
        blocks.opaque(Value::Object(whole));
    }
}
