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
            let mut unheard = Unheard { extensions: extensions.to_vec(), call: call.clone() };
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
            unheard.tell(heard).await;
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
        // Asked inside, so that a panic before its first await is the extension's, too.
        let asked = async { extension.before_tool_call(&call).await };
        let answer = AssertUnwindSafe(asked).catch_unwind().await;
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

/// The extensions that have not heard of a call's end. Dropped with the call, by a layer outside that
/// lost its patience, it still tells them, in a task of its own.
struct Unheard {
    extensions: Vec<Arc<dyn Extension>>,
    call: ToolCall,
}

impl Unheard {
    async fn tell(&mut self, output: Result<&ToolOutput, &str>) {
        while let Some(extension) = self.extensions.pop() {
            after(&*extension, ToolCallEnd { call: &self.call, output }).await;
        }
    }
}

impl Drop for Unheard {
    fn drop(&mut self) {
        if self.extensions.is_empty() {
            return;
        }
        // Without a runtime the program is ending, and nobody is there to hear.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let extensions = std::mem::take(&mut self.extensions);
            let call = self.call.clone();
            runtime.spawn(async move {
                for extension in extensions.iter().rev() {
                    let output = Err("the call was dropped before its end");
                    after(&**extension, ToolCallEnd { call: &call, output }).await;
                }
            });
        }
    }
}

async fn after(extension: &dyn Extension, end: ToolCallEnd<'_>) {
    // Told inside, so that a panic before its first await is the extension's, too.
    let told = async { extension.after_tool_call(end).await };
    if AssertUnwindSafe(told).catch_unwind().await.is_err() {
        tracing::warn!(extension = extension.name(), "an extension failed after a call");
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use tokio::sync::mpsc;
    use tower::{ServiceBuilder, service_fn};

    use super::*;

    /// Says yes, no or nothing sensible, and tells what it hears.
    struct Probe {
        name: &'static str,
        before: fn() -> BeforeToolCall,
        heard: mpsc::Sender<String>,
    }

    impl Extension for Probe {
        fn name(&self) -> &str {
            self.name
        }

        fn before_tool_call<'a>(&'a self, _: &'a ToolCall) -> BoxFuture<'a, BeforeToolCall> {
            let answer = (self.before)();
            Box::pin(std::future::ready(answer))
        }

        fn after_tool_call<'a>(&'a self, end: ToolCallEnd<'a>) -> BoxFuture<'a, ()> {
            let words = match end.output {
                Ok(output) => output.content_text(),
                Err(fault) => format!("fault: {fault}"),
            };
            self.heard.try_send(format!("{}: {words}", self.name)).unwrap();
            assert_ne!(self.name, "panics");
            Box::pin(std::future::ready(()))
        }
    }

    type Answer = Result<ToolOutput, ToolFault>;

    /// A probe's name and what it says before a call.
    type Named = (&'static str, fn() -> BeforeToolCall);

    fn around(
        probes: &[Named],
        answer: fn() -> BoxFuture<'static, Answer>,
    ) -> (
        impl Service<ToolCall, Response = ToolOutput, Error = ToolFault, Future: Send> + use<>,
        mpsc::Receiver<String>,
    ) {
        let (heard, receiver) = mpsc::channel(10);
        let extensions = probes.iter().map(|(name, before)| {
            let probe = Probe { name, before: *before, heard: heard.clone() };
            Arc::new(probe) as Arc<dyn Extension>
        });
        let layer = ExtensionLayer::new(extensions);
        let service =
            ServiceBuilder::new().layer(layer).service(service_fn(move |_: ToolCall| answer()));
        (service, receiver)
    }

    fn call() -> ToolCall {
        ToolCall::new("call", "Any", json!({}))
    }

    /// Everything that is heard until nobody is there to say anything more.
    async fn all(mut heard: mpsc::Receiver<String>) -> Vec<String> {
        let mut words = Vec::new();
        while let Some(word) = heard.recv().await {
            words.push(word);
        }
        words
    }

    fn go() -> BeforeToolCall {
        BeforeToolCall::Go
    }

    /// SPEC E1, T9: a policy hook that fails denies, and everybody hears how the call ended.
    #[tokio::test]
    async fn a_hook_that_panics_before_a_call_blocks_it() {
        let tool = || -> BoxFuture<'static, Answer> { unreachable!("the call is blocked") };
        let fails = || -> BeforeToolCall { panic!("before its first await") };
        let (service, heard) = around(&[("first", go), ("second", fails), ("third", go)], tool);
        let output = service.oneshot(call()).await.unwrap();
        assert_eq!(output.error_kind, Some(ToolErrorKind::Denied));
        let blocked = "blocked: second failed before the call";
        assert_eq!(output.content_text(), blocked);
        let expected = ["third", "second", "first"].map(|name| format!("{name}: {blocked}"));
        assert_eq!(all(heard).await, expected);
    }

    /// SPEC E1: an observer that fails is reported and changes nothing.
    #[tokio::test]
    async fn a_hook_that_panics_after_a_call_changes_nothing() {
        let tool = || -> BoxFuture<'static, Answer> {
            Box::pin(std::future::ready(Ok(ToolOutput::text("done"))))
        };
        let (service, heard) = around(&[("first", go), ("panics", go)], tool);
        assert_eq!(service.oneshot(call()).await.unwrap(), ToolOutput::text("done"));
        assert_eq!(all(heard).await, ["panics: done", "first: done"]);
    }

    /// SPEC T9, T10: also when a layer outside gave the call up.
    #[tokio::test]
    async fn a_dropped_call_is_heard_of_once() {
        let tool = || -> BoxFuture<'static, Answer> { Box::pin(std::future::pending()) };
        let (service, heard) = around(&[("first", go), ("second", go)], tool);
        let answer = tokio::time::timeout(Duration::ZERO, service.oneshot(call())).await;
        assert!(answer.is_err());
        let fault = "fault: the call was dropped before its end";
        assert_eq!(all(heard).await, [format!("second: {fault}"), format!("first: {fault}")]);
    }
}
