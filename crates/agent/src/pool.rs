//! The pool of parallel calls: how many tools work at once.
//!
//! A call holds a [`PoolSlot`] while it works. One that waits for a person lets go of it, so that
//! an unanswered question holds up nobody else, and takes one again before it goes on.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A bounded number of slots.
#[derive(Clone, Debug)]
pub struct Pool(Arc<Semaphore>);

impl Pool {
    /// A pool of this many slots; at least one.
    pub fn new(slots: usize) -> Self {
        Self(Arc::new(Semaphore::new(slots.max(1))))
    }

    /// Waits for a free slot.
    pub async fn slot(&self) -> PoolSlot {
        let permit = Arc::clone(&self.0).acquire_owned().await.ok();
        PoolSlot(Some(Arc::new(Held { pool: Arc::clone(&self.0), permit: Mutex::new(permit) })))
    }
}

/// A place in the pool, given back when its last clone is gone.
#[derive(Clone)]
pub struct PoolSlot(Option<Arc<Held>>);

struct Held {
    pool: Arc<Semaphore>,
    permit: Mutex<Option<OwnedSemaphorePermit>>,
}

impl PoolSlot {
    /// No pool: a call outside any batch.
    pub fn none() -> Self {
        Self(None)
    }

    /// Awaits `wait` without holding a place in the pool, and takes one again after it.
    pub async fn paused<F: Future>(&self, wait: F) -> F::Output {
        self.release();
        let output = wait.await;
        if let Some(held) = &self.0 {
            let permit = Arc::clone(&held.pool).acquire_owned().await.ok();
            *held.permit.lock().unwrap_or_else(PoisonError::into_inner) = permit;
        }
        output
    }

    /// Gives the place back now, whoever still holds a clone.
    pub(crate) fn release(&self) {
        if let Some(held) = &self.0 {
            held.permit.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
    }
}

impl fmt::Debug for PoolSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PoolSlot").field(&self.0.is_some()).finish()
    }
}
