//! The permission layer: judge, ask, grant.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use agent::{
    Approval, Approver, Effect, EffectKind, Effects, OfferedTool, Question, ToolCall, ToolError,
    ToolFault, ToolOutput,
};
use ai::ToolErrorKind;
use futures::future::BoxFuture;
use serde_json::Value;
use tower::{Layer, Service, ServiceExt};

use crate::grant::{Access, Grant};
use crate::permission::judgement::{Judged, Judgement, Policy, Verdict};
use crate::workspace::Workspace;

/// What all calls of a session are judged by. Clones share the session's answers.
#[derive(Clone)]
pub struct Permission {
    workspace: Arc<Workspace>,
    policy: Arc<Policy>,
    approver: Arc<dyn Approver>,
    session: Arc<Session>,
}

#[derive(Default)]
struct Session {
    /// What the person allowed for the session.
    allowed: Mutex<HashSet<Allowed>>,
    unanswered: AtomicUsize,
}

/// A call that the person allowed: the tool with its effects, and with its arguments where the
/// effects are not known.
#[derive(PartialEq, Eq, Hash)]
struct Allowed {
    tool: Arc<str>,
    effects: Vec<Effect>,
    arguments: Option<String>,
}

impl Allowed {
    fn of(call: &ToolCall, effects: &[Effect]) -> Self {
        let unknown = effects.contains(&Effect::unknown());
        Self {
            tool: Arc::clone(&call.name),
            effects: effects.to_vec(),
            arguments: unknown.then(|| Value::Object(call.arguments.clone()).to_string()),
        }
    }
}

impl Permission {
    /// Judges by `policy` in `workspace` and asks `approver`.
    pub fn new(workspace: Arc<Workspace>, policy: Policy, approver: Arc<dyn Approver>) -> Self {
        Self { workspace, policy: Arc::new(policy), approver, session: Arc::default() }
    }

    /// How many calls were denied because nobody could be asked.
    pub fn unanswered(&self) -> usize {
        self.session.unanswered.load(Ordering::Relaxed)
    }

    /// The grant for a call, or why there is none.
    async fn decide(&self, tool: &OfferedTool, call: &ToolCall) -> Result<Grant, ToolError> {
        let (judgement, grant) = match tool.effects(&call.arguments) {
            Effects::Undeclared => {
                // A tool that does not say what it reaches is trusted code that reaches it by
                // itself; a grant of files would mean nothing to it.
                (self.policy.judge_undeclared(&call.name), Grant::builder().build())
            }
            Effects::Declared(effects) => self.judge(&effects).map_err(denied)?,
        };
        match judgement.verdict {
            Verdict::Allow => Ok(grant),
            Verdict::Deny => Err(denied(format!("denied: {}", judgement.because().join("; ")))),
            Verdict::Ask => self.ask(call, judgement).await.map(|()| grant),
        }
    }

    fn judge(&self, effects: &[Effect]) -> Result<(Judgement, Grant), String> {
        let mut grant = Grant::builder();
        let mut judged = Vec::with_capacity(effects.len());
        for effect in effects {
            let path = match &effect.path {
                None => None,
                Some(path) => {
                    let argument = path
                        .to_str()
                        .ok_or_else(|| format!("{} is not a path of text", path.display()))?;
                    let resolved =
                        self.workspace.resolve(argument).map_err(|error| error.to_string())?;
                    grant = match effect.kind {
                        EffectKind::Read => {
                            grant.allow_file(argument, resolved.clone(), Access::Read)
                        }
                        EffectKind::Write => {
                            grant.allow_file(argument, resolved.clone(), Access::Write)
                        }
                        _ => grant,
                    };
                    Some(resolved)
                }
            };
            if effect.kind == EffectKind::Execute {
                grant = grant.allow_command();
            }
            judged.push(Judged { effect: effect.clone(), path });
        }
        Ok((self.policy.judge(&judged), grant.build()))
    }

    async fn ask(&self, call: &ToolCall, judgement: Judgement) -> Result<(), ToolError> {
        let reasons = judgement.because();
        let key = Allowed::of(call, &judgement.effects);
        let allowed = &self.session.allowed;
        if allowed.lock().unwrap_or_else(PoisonError::into_inner).contains(&key) {
            return Ok(());
        }
        let question = Question::new(
            Arc::clone(&call.id),
            Arc::clone(&call.name),
            call.arguments.clone(),
            judgement.effects,
            reasons.clone(),
        );
        let answer = tokio::select! {
            biased;
            () = call.cancel.cancelled() => {
                let message = "cancelled before permission was given or refused";
                return Err(ToolError::new(ToolErrorKind::Aborted, message));
            }
            answer = call.slot.paused(self.approver.ask(&question)) => answer,
        };
        match answer {
            Some(Approval::Once) => Ok(()),
            Some(Approval::Session) => {
                allowed.lock().unwrap_or_else(PoisonError::into_inner).insert(key);
                Ok(())
            }
            Some(Approval::Deny { message }) => Err(denied(match message {
                Some(message) => format!("denied by the user: {message}"),
                None => "denied by the user".to_owned(),
            })),
            Some(_) => Err(denied("denied: the answer was not understood".to_owned())),
            None => {
                self.session.unanswered.fetch_add(1, Ordering::Relaxed);
                Err(denied(format!(
                    "denied: this needs the user's permission and nobody can be asked here ({}). Go \
                     on without it, or say what you would have done",
                    reasons.join("; ")
                )))
            }
        }
    }
}

fn denied(message: String) -> ToolError {
    ToolError::new(ToolErrorKind::Denied, message)
}

/// Makes [`PermissionService`]s for one tool.
#[derive(Clone)]
pub struct PermissionLayer {
    permission: Permission,
    tool: OfferedTool,
}

impl PermissionLayer {
    /// Judges the calls of `tool`, which declares its effects.
    pub fn new(permission: Permission, tool: OfferedTool) -> Self {
        Self { permission, tool }
    }
}

impl<S> Layer<S> for PermissionLayer {
    type Service = PermissionService<S>;

    fn layer(&self, inner: S) -> PermissionService<S> {
        PermissionService { inner, layer: self.clone() }
    }
}

/// See the module's documentation.
#[derive(Clone)]
pub struct PermissionService<S> {
    inner: S,
    layer: PermissionLayer,
}

impl<S> Service<ToolCall> for PermissionService<S>
where
    S: Service<ToolCall, Response = ToolOutput, Error = ToolFault> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = ToolOutput;
    type Error = ToolFault;
    type Future = BoxFuture<'static, Result<ToolOutput, ToolFault>>;

    /// Always ready: readiness of what is inside is awaited after the answer, which may take long.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ToolFault>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut call: ToolCall) -> Self::Future {
        let inner = self.inner.clone();
        let layer = self.layer.clone();
        Box::pin(async move {
            match layer.permission.decide(&layer.tool, &call).await {
                Ok(grant) => {
                    call.extensions.insert(grant);
                    inner.oneshot(call).await
                }
                Err(refused) => Ok(refused.into()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::sync::Notify;
    use tower::service_fn;

    use super::*;
    use crate::permission::{Credentials, PermissionMode};
    use crate::tools::Write;

    /// Never answers, and tells that it was asked.
    #[derive(Default)]
    struct Silent(Notify);

    impl Approver for Silent {
        fn ask<'a>(&'a self, _: &'a Question) -> BoxFuture<'a, Option<Approval>> {
            self.0.notify_one();
            Box::pin(std::future::pending())
        }
    }

    /// SPEC T4, P6: a question that nobody will answer any more is no refusal.
    #[tokio::test]
    async fn a_call_that_is_cancelled_while_a_person_is_asked_is_aborted() {
        let directory = tempfile::tempdir().unwrap();
        let workspace = Arc::new(Workspace::new(directory.path(), &[]).unwrap());
        let policy = Policy { mode: PermissionMode::Ask, credentials: Credentials::default() };
        let approver = Arc::new(Silent::default());
        let permission = Permission::new(workspace, policy, Arc::clone(&approver) as _);
        let layer = PermissionLayer::new(permission.clone(), OfferedTool::new(Write).unwrap());
        let service = layer.layer(service_fn(|_: ToolCall| async {
            Err::<ToolOutput, _>(ToolFault::host("the call is not permitted"))
        }));
        let call = ToolCall::new("call", "Write", json!({"path": "a", "content": ""}));
        let cancel = call.cancel.clone();
        let (output, ()) = tokio::join!(service.oneshot(call), async {
            approver.0.notified().await;
            cancel.cancel();
        });
        let output = output.unwrap();
        assert_eq!(output.error_kind, Some(ToolErrorKind::Aborted));
        assert_eq!(output.content_text(), "cancelled before permission was given or refused");
        assert_eq!(permission.unanswered(), 0);
    }
}
