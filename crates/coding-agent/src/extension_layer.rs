//! The extension layer: other people's code before and after every call.
//!
//! Outside of permission, so that what extensions make of the arguments is judged like what the
//! model wrote. An extension that panics before a call blocks it; one that panics after it is
//! reported and changes nothing.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll};

use agent::{BeforeToolCall, Extension, ToolCall, ToolCallEnd, ToolFault, ToolOutput};
use ai::ToolErrorKind;
use futures::FutureExt;
use futures::future::BoxFuture;
use tower::{Layer, Service, ServiceExt};

/// Makes [`ExtensionService`]s.
#[derive(Clone, Default)]
pub struct ExtensionLayer {
    extensions: Arc<[Arc<dyn Extension>]>,
}

impl ExtensionLayer {
    /// Asks the extensions in this order before a call and in reverse after it.
    pub fn new(extensions: impl IntoIterator<Item = Arc<dyn Extension>>) -> Self {
        Self { extensions: extensions.into_iter().collect() }
    }
}

impl<S> Layer<S> for ExtensionLayer {
    type Service = ExtensionService<S>;

    fn layer(&self, inner: S) -> ExtensionService<S> {
        ExtensionService { inner, extensions: Arc::clone(&self.extensions) }
    }
}

/// See the module's documentation.
#[derive(Clone)]
pub struct ExtensionService<S> {
    inner: S,
    extensions: Arc<[Arc<dyn Extension>]>,
}

impl<S> Service<ToolCall> for ExtensionService<S>
where
    S: Service<ToolCall, Response = ToolOutput, Error = ToolFault> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = ToolOutput;
    type Error = ToolFault;
    type Future = BoxFuture<'static, Result<ToolOutput, ToolFault>>;

    /// Always ready: the inner service is asked once the extensions have spoken.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ToolFault>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        if self.extensions.is_empty() {
            return Box::pin(self.inner.clone().oneshot(call));
        }
        let inner = self.inner.clone();
        let extensions = Arc::clone(&self.extensions);
        Box::pin(async move {
            let asked = call.clone();
            let output = match before(&extensions, call).await {
                // A panic inside must not keep the extensions from hearing of the end.
                Ok(call) => AssertUnwindSafe(inner.oneshot(call)).catch_unwind().await,
                Err(blocked) => Ok(Ok(blocked)),
            };
            let fault;
            let heard = match &output {
                Ok(Ok(output)) => Ok(output),
                Ok(Err(error)) => {
                    fault = error.to_string();
                    Err(fault.as_str())
                }
                Err(_) => Err("the tool panicked"),
            };
            after(&extensions, ToolCallEnd { call: &asked, output: heard }).await;
            output.unwrap_or_else(|payload| std::panic::resume_unwind(payload))
        })
    }
}

/// The call as the extensions leave it, or the output that stands in for it.
async fn before(
    extensions: &[Arc<dyn Extension>],
    mut call: ToolCall,
) -> Result<ToolCall, ToolOutput> {
    for extension in extensions {
        let answer = AssertUnwindSafe(extension.before_tool_call(&call)).catch_unwind().await;
        let blocked = match answer {
            Ok(BeforeToolCall::Go) => continue,
            Ok(BeforeToolCall::Rewrite(arguments)) => {
                call.arguments = arguments;
                continue;
            }
            Ok(BeforeToolCall::Block { reason }) => {
                format!("blocked by {}: {reason}", extension.name())
            }
            Err(_) => format!("blocked: {} failed before the call", extension.name()),
        };
        return Err(ToolOutput::error(ToolErrorKind::Denied, blocked));
    }
    Ok(call)
}

async fn after(extensions: &[Arc<dyn Extension>], end: ToolCallEnd<'_>) {
    for extension in extensions.iter().rev() {
        if AssertUnwindSafe(extension.after_tool_call(end)).catch_unwind().await.is_err() {
            tracing::warn!(extension = extension.name(), "an extension failed after a call");
        }
    }
}
