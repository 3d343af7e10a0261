//! [`Script`]: what a scripted model says, turn by turn.
//!
//! Owns the shape of a script, in files (see [`parse`]) and in code (the methods that return `Self`).
//! Knows nothing of wire formats and nothing of sockets: a turn is turned into bytes elsewhere.
//!
//! ```
//! use scripted_model::{Script, Turn};
//! use serde_json::json;
//!
//! let script = Script::new("two-turns")
//!     .turn(Turn::new().text("I look at it.").call("Read", json!({"path": "loop.rs"})))
//!     .turn(Turn::text_only("Done."));
//! assert_eq!(script.turns.len(), 2);
//! ```

mod block;
mod expect;
mod fault;
mod parse;
mod stop;

use std::num::NonZeroUsize;
use std::time::Duration;

use ai::Usage;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

pub use block::{Arguments, Block};
pub use expect::{Expect, Texts};
pub use fault::{Fault, FaultBody};
pub use stop::Stop;
pub(crate) use stop::own_word;

/// How many characters of text, thinking or arguments one delta carries unless the turn says
/// otherwise: small enough that a sentence arrives in several.
pub(crate) const DEFAULT_CHUNK_CHARS: NonZeroUsize = match NonZeroUsize::new(16) {
    Some(chars) => chars,
    None => NonZeroUsize::MIN,
};

/// What a scripted model says: one [`Turn`] for each request that it accepts, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The name, which is also what `GET /v1/models` lists.
    pub name: String,
    /// The answers, in the order in which requests are accepted.
    pub turns: Vec<Turn>,
}

impl Script {
    /// A script without turns.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), turns: Vec::new() }
    }

    /// Adds a turn at the end.
    #[must_use]
    pub fn turn(mut self, turn: Turn) -> Self {
        self.turns.push(turn);
        self
    }
}

/// The answer to one request.
///
/// In order: `expect` is compared with the request, `delay_ms` passes, `gate` opens, then the head
/// and the content are sent, until the end or `fault`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Turn {
    /// What the request must look like; if it does not, it is refused and this turn stays next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
    /// The answer's blocks, in order.
    #[serde(deserialize_with = "block::blocks")]
    pub content: Vec<Block>,
    /// The tokens that are reported; estimated from the request and the content when absent.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "usage")]
    pub usage: Option<Usage>,
    /// Why the answer ends; when absent, `tool_use` if there is a call, else `stop`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// Milliseconds of silence before the answer's first byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// The gate that the answer waits for, before its first byte unless one of the two fields below
    /// moves it into the body. See [`crate::ScriptedModel::open_gate`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
    /// The gate is waited for after this many deltas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate_at_delta: Option<usize>,
    /// The gate is waited for after this many bytes of the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate_after_bytes: Option<usize>,
    /// How many characters one delta carries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk_chars: Option<NonZeroUsize>,
    /// What goes wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}

impl Turn {
    /// An answer without content.
    pub fn new() -> Self {
        Self::default()
    }

    /// An answer of one text block.
    pub fn text_only(text: impl Into<String>) -> Self {
        Self::new().text(text)
    }

    /// An answer that is only a fault.
    pub fn fault_only(fault: Fault) -> Self {
        Self::new().fault(fault)
    }

    /// Adds a text block.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.content.push(Block::Text { text: text.into() });
        self
    }

    /// Adds a thinking block, which is signed by the server.
    #[must_use]
    pub fn thinking(mut self, text: impl Into<String>) -> Self {
        self.content.push(Block::Thinking { text: text.into(), signature: None, redacted: false });
        self
    }

    /// Adds a call whose id the server makes. Arguments that are not an object are sent as they are.
    #[must_use]
    pub fn call(mut self, name: impl Into<String>, arguments: Value) -> Self {
        self.content.push(Block::call(None, name, arguments));
        self
    }

    /// Adds a call with an id of its own.
    #[must_use]
    pub fn call_with_id(
        mut self,
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: Value,
    ) -> Self {
        self.content.push(Block::call(Some(id.into()), name, arguments));
        self
    }

    /// Adds a call whose arguments are this text, which need not be JSON.
    #[must_use]
    pub fn raw_call(mut self, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        self.content.push(Block::ToolCall {
            id: None,
            name: name.into(),
            arguments: Arguments::Raw(arguments.into()),
        });
        self
    }

    /// Sets the tokens that are reported.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Sets why the answer ends.
    #[must_use]
    pub fn stop(mut self, stop: impl Into<Stop>) -> Self {
        self.stop = Some(stop.into());
        self
    }

    /// Sets the silence before the first byte, in whole milliseconds.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay_ms = Some(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Makes the answer wait for a gate before its first byte.
    #[must_use]
    pub fn gate(mut self, name: impl Into<String>) -> Self {
        self.gate = Some(name.into());
        self
    }

    /// Makes the answer wait for a gate after `deltas` deltas.
    #[must_use]
    pub fn gate_at_delta(mut self, name: impl Into<String>, deltas: usize) -> Self {
        self.gate = Some(name.into());
        self.gate_at_delta = Some(deltas);
        self
    }

    /// Makes the answer wait for a gate after `bytes` bytes of its body.
    #[must_use]
    pub fn gate_after_bytes(mut self, name: impl Into<String>, bytes: usize) -> Self {
        self.gate = Some(name.into());
        self.gate_after_bytes = Some(bytes);
        self
    }

    /// Sets how many characters one delta carries.
    #[must_use]
    pub fn chunk_chars(mut self, chars: NonZeroUsize) -> Self {
        self.chunk_chars = Some(chars);
        self
    }

    /// Sets what goes wrong.
    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Sets what the request must look like.
    #[must_use]
    pub fn expecting(mut self, expect: Expect) -> Self {
        self.expect = Some(expect);
        self
    }

    /// Whether any block is a call.
    pub(crate) fn has_calls(&self) -> bool {
        self.content.iter().any(|block| match block {
            Block::ToolCall { .. } => true,
            Block::Text { .. } | Block::Thinking { .. } => false,
        })
    }

    /// The tokens to report: the script's, or an estimate of a quarter token a byte, which is the
    /// same for the same request and answer.
    pub(crate) fn usage_for(&self, request_bytes: usize) -> Usage {
        if let Some(usage) = self.usage {
            return usage;
        }
        let tokens = |bytes: usize| u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX);
        let reasoning = self.content.iter().map(Block::thinking_bytes).sum();
        let output: usize = self.content.iter().map(Block::bytes).sum();
        Usage {
            input: tokens(request_bytes),
            output: tokens(output).max(1),
            cache_read: 0,
            cache_write: 0,
            reasoning: tokens(reasoning),
        }
    }
}

/// `ai`'s usage, with a misspelt field refused instead of ignored.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct StrictUsage {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    reasoning: u64,
}

fn usage<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Usage>, D::Error> {
    let usage = Option::<StrictUsage>::deserialize(deserializer)?;
    Ok(usage.map(|usage| Usage {
        input: usage.input,
        output: usage.output,
        cache_read: usage.cache_read,
        cache_write: usage.cache_write,
        reasoning: usage.reasoning,
    }))
}
