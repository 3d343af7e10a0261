//! [`Identity`]: where ids and times come from.
//!
//! Nothing in this crate asks the clock or makes up an id by itself, so that a run can be made to
//! give the same bytes twice.

use std::sync::Mutex;
use std::sync::PoisonError;

use ai::{MessageId, Timestamp};

/// A source of ids and times.
pub trait Identity: Send + Sync {
    /// An id that no other message of this session has.
    fn message_id(&self) -> MessageId;

    /// The time.
    fn now(&self) -> Timestamp;
}

/// Ids that are unique in the world, and the machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemIdentity;

impl Identity for SystemIdentity {
    fn message_id(&self) -> MessageId {
        MessageId::random()
    }

    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Counts: ids are `PREFIX-1`, `PREFIX-2`, …, and each question for the time is a millisecond later
/// than the one before.
#[derive(Debug)]
pub struct CountingIdentity {
    prefix: String,
    counts: Mutex<(u64, u64)>,
}

impl CountingIdentity {
    /// A source whose ids begin with `prefix` and whose first time is one.
    pub fn new(prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into(), counts: Mutex::new((0, 0)) }
    }
}

impl Identity for CountingIdentity {
    fn message_id(&self) -> MessageId {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.0 += 1;
        MessageId::from(format!("{}-{}", self.prefix, counts.0))
    }

    fn now(&self) -> Timestamp {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.1 += 1;
        Timestamp(counts.1)
    }
}
