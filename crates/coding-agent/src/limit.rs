//! The limit layer: whatever a tool returns, the model reads no more than this.
//!
//! Innermost of the onion, around the tool. Our own tools shape their output themselves and stay
//! below these limits; the layer is for every other tool, and for mistakes. What is cut is cut in
//! the middle, between lines where there are any and never inside a character, and a line in its
//! place says how much is missing and how to get it.
//!
//! Pictures and `details` pass: the one because half a picture is none, the other because no model
//! reads it.

mod head_tail;

use std::task::{Context, Poll};

use agent::{ToolCall, ToolFault, ToolOutput};
use ai::ContentBlock;
use futures::future::{MapOk, TryFutureExt};
use tower::{Layer, Service};

pub use self::head_tail::{HeadTail, Shaped};

/// How long one text block may be, in bytes: about 16,000 tokens, more than any one look at a file
/// or a command needs, and above what our own tools return.
pub const MAX_BLOCK_BYTES: usize = 64 * 1024;

/// How long all text blocks of one output may be together, in bytes: two whole blocks, so that one
/// call cannot fill a small model's window.
pub const MAX_OUTPUT_BYTES: usize = 2 * MAX_BLOCK_BYTES;

/// What the cut tells the model to do.
const HINT: &str = "ask for less at a time to see it";

/// Makes [`Limit`] services.
#[derive(Clone, Copy, Debug)]
pub struct LimitLayer {
    block_bytes: usize,
    output_bytes: usize,
}

impl LimitLayer {
    /// A layer with other limits than [`MAX_BLOCK_BYTES`] and [`MAX_OUTPUT_BYTES`].
    pub fn new(block_bytes: usize, output_bytes: usize) -> Self {
        Self { block_bytes, output_bytes }
    }

    fn shape(self, mut output: ToolOutput) -> ToolOutput {
        let context = output.context.iter_mut().flat_map(|message| message.content.iter_mut());
        let mut left = self.output_bytes;
        for block in output.content.iter_mut().chain(context) {
            if let ContentBlock::Text { text } = block {
                let allowed = self.block_bytes.min(left);
                if text.len() > allowed {
                    *text = HeadTail::of(text, allowed).shaped(HINT).text;
                }
                left = left.saturating_sub(text.len());
            }
        }
        output
    }
}

impl Default for LimitLayer {
    fn default() -> Self {
        Self::new(MAX_BLOCK_BYTES, MAX_OUTPUT_BYTES)
    }
}

impl<S> Layer<S> for LimitLayer {
    type Service = Limit<S>;

    fn layer(&self, inner: S) -> Limit<S> {
        Limit { inner, layer: *self }
    }
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Limit<S> {
    inner: S,
    layer: LimitLayer,
}

type Shape = Box<dyn FnOnce(ToolOutput) -> ToolOutput + Send>;

impl<S> Service<ToolCall> for Limit<S>
where
    S: Service<ToolCall, Response = ToolOutput, Error = ToolFault>,
{
    type Response = ToolOutput;
    type Error = ToolFault;
    type Future = MapOk<S::Future, Shape>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolFault>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let layer = self.layer;
        let shape: Shape = Box::new(move |output| layer.shape(output));
        self.inner.call(call).map_ok(shape)
    }
}

#[cfg(test)]
mod tests {
    use tower::{ServiceExt, service_fn};

    use super::*;

    async fn limited(layer: LimitLayer, texts: &[&str]) -> Vec<String> {
        let content: Vec<_> = texts.iter().map(|text| ContentBlock::text(*text)).collect();
        let output = ToolOutput { content, ..ToolOutput::default() };
        let tool =
            service_fn(move |_: ToolCall| std::future::ready(Ok::<_, ToolFault>(output.clone())));
        let call = ToolCall::new("call", "Any", serde_json::json!({}));
        let output = layer.layer(tool).oneshot(call).await.unwrap();
        output.content.iter().filter_map(ContentBlock::as_text).map(str::to_owned).collect()
    }

    #[tokio::test]
    async fn what_fits_passes_unchanged() {
        let texts = ["0123456789", "", "é"];
        assert_eq!(limited(LimitLayer::new(10, 12), &texts).await, texts);
    }

    #[tokio::test]
    async fn the_middle_of_a_long_block_is_left_out() {
        let lines: String = (1..=9).map(|n| format!("line {n}\n")).collect();
        let expected = "line 1\n[… 42 bytes (6 lines) left out here: ask for less at a time to see it …]\n\
                        line 8\nline 9\n";
        assert_eq!(limited(LimitLayer::new(24, 100), &[&lines]).await, [expected]);
    }

    #[tokio::test]
    async fn no_character_is_cut() {
        let expected = "éé\n[… 8 bytes left out here: ask for less at a time to see it …]\néééé";
        assert_eq!(limited(LimitLayer::new(13, 100), &["éééééééééé"]).await, [expected]);
    }

    #[tokio::test]
    async fn all_blocks_together_have_a_limit() {
        let cut = "[… 10 bytes left out here: ask for less at a time to see it …]";
        let texts = ["0123456789", "abcdefghij"];
        assert_eq!(limited(LimitLayer::new(10, 10), &texts).await, ["0123456789", cut]);
    }
}
