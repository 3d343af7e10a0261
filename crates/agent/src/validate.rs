//! The validate layer: arguments are checked against the tool's JSON Schema.
//!
//! It stands in the onion twice. The outer one answers for the model, before any extension sees the
//! arguments; the inner one answers for the extensions, before permission judges what they left.

use std::sync::Arc;
use std::task::{Context, Poll};

use ai::{ArgumentValidator, ContentBlock, ToolErrorKind};
use futures::future::{self, Either, FutureExt, Map, Ready};
use tower::{Layer, Service};

use crate::tool::ToolOutput;
use crate::tool_call::{ToolCall, UnreadableArguments};
use crate::tool_service::ToolFault;

/// How much of unreadable arguments is quoted back, in bytes: enough to find the mistake in a short
/// call, while a megabyte of broken JSON does not come back as a megabyte of error.
const QUOTED_ARGUMENTS: usize = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Author {
    Model,
    Extensions,
}

/// Makes [`Validate`] services.
#[derive(Clone)]
pub struct ValidateLayer {
    validator: Arc<ArgumentValidator>,
    author: Author,
}

impl ValidateLayer {
    /// Checks what the model wrote.
    pub fn model(validator: Arc<ArgumentValidator>) -> Self {
        Self { validator, author: Author::Model }
    }

    /// Checks what the extensions left.
    pub fn extensions(validator: Arc<ArgumentValidator>) -> Self {
        Self { validator, author: Author::Extensions }
    }
}

impl<S> Layer<S> for ValidateLayer {
    type Service = Validate<S>;

    fn layer(&self, inner: S) -> Validate<S> {
        Validate { inner, layer: self.clone() }
    }
}

/// See the module's documentation.
#[derive(Clone)]
pub struct Validate<S> {
    inner: S,
    layer: ValidateLayer,
}

type Answer = Result<ToolOutput, ToolFault>;
type WithNotes<F> = Map<F, Box<dyn FnOnce(Answer) -> Answer + Send>>;

impl<S> Service<ToolCall> for Validate<S>
where
    S: Service<ToolCall, Response = ToolOutput, Error = ToolFault>,
{
    type Response = ToolOutput;
    type Error = ToolFault;
    type Future = Either<Ready<Answer>, Either<S::Future, WithNotes<S::Future>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolFault>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut call: ToolCall) -> Self::Future {
        match self.layer.check(&mut call) {
            Err(message) => Either::Left(future::ready(Ok(ToolOutput::error(
                ToolErrorKind::InvalidArguments,
                message,
            )))),
            Ok(notes) if notes.is_empty() => Either::Right(Either::Left(self.inner.call(call))),
            Ok(notes) => {
                let add: Box<dyn FnOnce(Answer) -> Answer + Send> =
                    Box::new(move |answer| answer.map(|output| with_notes(output, &notes)));
                Either::Right(Either::Right(self.inner.call(call).map(add)))
            }
        }
    }
}

impl ValidateLayer {
    fn check(&self, call: &mut ToolCall) -> Result<Vec<String>, String> {
        if let Some(unreadable) = &call.unreadable {
            return Err(describe_unreadable(unreadable));
        }
        self.validator.validate(&mut call.arguments).map_err(|error| match self.author {
            Author::Model => format!("invalid arguments for {}: {error}", call.name),
            Author::Extensions => format!(
                "an extension changed the arguments of {} into ones that its schema does not \
                 allow; this is the extension's fault, not yours: {error}",
                call.name
            ),
        })
    }
}

/// The model learns how its arguments were read, so that it writes better ones next time.
fn with_notes(mut output: ToolOutput, notes: &[String]) -> ToolOutput {
    output.content.push(ContentBlock::text(format!("[arguments: {}]", notes.join("; "))));
    output
}

fn describe_unreadable(unreadable: &UnreadableArguments) -> String {
    let UnreadableArguments { raw, error } = unreadable;
    if raw.len() <= QUOTED_ARGUMENTS {
        return format!("the arguments are not a JSON object: {error}\nthey were: {raw}");
    }
    let start = &raw[..raw.floor_char_boundary(QUOTED_ARGUMENTS / 2)];
    let end = &raw[raw.ceil_char_boundary(raw.len() - QUOTED_ARGUMENTS / 2)..];
    let left_out = raw.len() - start.len() - end.len();
    format!(
        "the arguments are not a JSON object: {error}\n\
         they were: {start} … ({left_out} bytes left out) … {end}"
    )
}
