//! [`Alarm`]: one timer for all the waits of an answer.
//!
//! Thousands of pieces each have a moment by which they are due, and nearly all come in time. To set a
//! timer for each costs more than to read it, so this one is left as it is while the moment only moves
//! away, and looks again when it rings too early.

use std::future::Future;
use std::pin::{Pin, pin};

use tokio::time::{Instant, Sleep, sleep_until};

/// Rings when something did not come in time.
#[derive(Debug)]
pub(crate) struct Alarm(Pin<Box<Sleep>>);

impl Alarm {
    /// An alarm that is likely to ring at this moment, if at all.
    pub(crate) fn new(due: Instant) -> Self {
        Self(Box::pin(sleep_until(due)))
    }

    /// What `work` comes to; nothing when it has not come to anything by then.
    pub(crate) async fn wait_for<T>(
        &mut self,
        due: Instant,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let mut work = pin!(work);
        if self.0.deadline() > due {
            self.0.as_mut().reset(due);
        }
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Some(done),
                () = self.0.as_mut() => {
                    if Instant::now() >= due {
                        return None;
                    }
                    self.0.as_mut().reset(due);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_rings_at_the_moment_that_counts_now() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut alarm = Alarm::new(at(10));
        // Sooner than it was set to, later than it was set to, and with the work in time.
        assert_eq!(alarm.wait_for(at(5), std::future::pending::<()>()).await, None);
        assert_eq!(begin.elapsed().as_secs(), 5);
        assert_eq!(alarm.wait_for(at(30), sleep(Duration::from_secs(20))).await, Some(()));
        assert_eq!(begin.elapsed().as_secs(), 25);
        assert_eq!(alarm.wait_for(at(40), std::future::pending::<()>()).await, None);
        assert_eq!(begin.elapsed().as_secs(), 40);
    }
}
