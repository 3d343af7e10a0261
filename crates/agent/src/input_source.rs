//! [`InputSource`]: where a run finds steering and follow-ups.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use ai::UserMessage;

/// A queue that a run takes input from. A run asks [`InputSource::is_waiting`] before it decides to
/// take anything, so that a run that may not go on leaves the input where it is.
pub trait InputSource: Send + Sync {
    /// Whether there is input.
    fn is_waiting(&self) -> bool;

    /// Takes the input that this source delivers at once: all of it or only the first, as the
    /// source is configured.
    fn claim(&self) -> Vec<UserMessage>;
}

/// How much of a queue one claim takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimSize {
    /// Everything that waits.
    All,
    /// The first.
    One,
}

/// A queue in memory. Clones are the same queue, so that one end can fill it while a run empties it.
#[derive(Clone, Debug)]
pub struct InputQueue {
    size: ClaimSize,
    messages: Arc<Mutex<VecDeque<UserMessage>>>,
}

impl InputQueue {
    /// An empty queue.
    pub fn new(size: ClaimSize) -> Self {
        Self { size, messages: Arc::default() }
    }

    /// Appends a message.
    pub fn push(&self, message: UserMessage) {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).push_back(message);
    }
}

impl InputSource for InputQueue {
    fn is_waiting(&self) -> bool {
        !self.messages.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn claim(&self) -> Vec<UserMessage> {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        match self.size {
            ClaimSize::All => messages.drain(..).collect(),
            ClaimSize::One => messages.pop_front().into_iter().collect(),
        }
    }
}
