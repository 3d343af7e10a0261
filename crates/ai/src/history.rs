//! A conversation's messages, shared instead of copied.
//!
//! [`History`] is what a request carries and what a run grows. Cloning costs one reference count,
//! whatever its length. Pushing costs O(1) while nobody else holds a clone; the first push while
//! somebody does copies the list of pointers once, never a message. So a run's history is isolated
//! from its caller's for the price of a pointer.

use std::ops::Deref;
use std::sync::Arc;

use crate::message::Message;

/// Messages, oldest first. See the module's documentation for what its operations cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History(Arc<Vec<Arc<Message>>>);

impl History {
    /// An empty history.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a message. Clones made before do not see it.
    pub fn push(&mut self, message: Arc<Message>) {
        Arc::make_mut(&mut self.0).push(message);
    }

    /// Whether both are the same list in memory, so that neither has changed since it was cloned.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Deref for History {
    type Target = [Arc<Message>];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl FromIterator<Arc<Message>> for History {
    fn from_iter<I: IntoIterator<Item = Arc<Message>>>(messages: I) -> Self {
        Self(Arc::new(messages.into_iter().collect()))
    }
}

impl FromIterator<Message> for History {
    fn from_iter<I: IntoIterator<Item = Message>>(messages: I) -> Self {
        messages.into_iter().map(Arc::new).collect()
    }
}

impl From<Vec<Arc<Message>>> for History {
    fn from(messages: Vec<Arc<Message>>) -> Self {
        Self(Arc::new(messages))
    }
}

impl<'a> IntoIterator for &'a History {
    type Item = &'a Arc<Message>;
    type IntoIter = std::slice::Iter<'a, Arc<Message>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
