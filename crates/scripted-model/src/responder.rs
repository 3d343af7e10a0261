//! [`Responder`]: who decides what a request is answered with.
//!
//! A [`Script`] answers by count: each accepted request gets the next turn. A closure answers by what
//! the request holds, which is what long runs and many conversations at once need.

use std::sync::{Mutex, PoisonError};

use crate::record::RecordedRequest;
use crate::script::{Script, Turn};

/// Decides what a request is answered with.
///
/// It is asked once for each request that has passed its API's checks, from many tasks at once.
pub trait Responder: Send + Sync + 'static {
    /// The answer to a request.
    ///
    /// # Errors
    /// A text, when there is none: the request is then refused with it, with status 400. A panic is
    /// taken for such an error.
    fn respond(&self, request: &RecordedRequest) -> Result<Turn, String>;

    /// The model's name in `GET /v1/models`.
    fn name(&self) -> &str {
        "scripted"
    }
}

impl<F> Responder for F
where
    F: Fn(&RecordedRequest) -> Turn + Send + Sync + 'static,
{
    fn respond(&self, request: &RecordedRequest) -> Result<Turn, String> {
        let turn = self(request);
        compare(&turn, request)?;
        Ok(turn)
    }
}

/// Plays a script.
///
/// Each accepted request takes the next turn, whatever it holds: a client that tries again after a
/// fault gets the turn behind the fault. A refused request takes none.
pub(crate) struct Player {
    script: Script,
    next: Mutex<usize>,
}

impl Player {
    pub(crate) fn new(script: Script) -> Self {
        Self { script, next: Mutex::new(0) }
    }
}

impl Responder for Player {
    fn respond(&self, request: &RecordedRequest) -> Result<Turn, String> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let number = *next + 1;
        let turn = self
            .script
            .turns
            .get(*next)
            .ok_or_else(|| format!("the script has no turn {number}"))?;
        compare(turn, request).map_err(|error| format!("turn {number}: {error}"))?;
        *next += 1;
        Ok(turn.clone())
    }

    fn name(&self) -> &str {
        &self.script.name
    }
}

fn compare(turn: &Turn, request: &RecordedRequest) -> Result<(), String> {
    match &turn.expect {
        Some(expect) => expect.compare(&request.conversation()),
        None => Ok(()),
    }
}
