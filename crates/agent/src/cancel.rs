//! [`RunCancel`]: cancelling one run, once, for a reason.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

use crate::end_reason::AbortCause;

/// Cancels one run. Clones cancel the same run; the first cause wins and later ones do nothing.
#[derive(Clone, Debug, Default)]
pub struct RunCancel {
    token: CancellationToken,
    cause: Arc<OnceLock<AbortCause>>,
}

impl RunCancel {
    /// For a run that is still to begin.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the run to end. It closes its calls and messages first.
    pub fn cancel(&self, cause: AbortCause) {
        // Set before the token, so that whoever sees the token sees the cause.
        let _ = self.cause.set(cause);
        self.token.cancel();
    }

    /// Why the run was cancelled, if it was.
    pub fn cause(&self) -> Option<AbortCause> {
        self.cause.get().copied()
    }

    /// The token that is passed down to model and tools.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }
}
