//! [`Flood`]: when an answer comes so fast that reading each piece by itself is the main cost.
//!
//! A server that writes thousands of small pieces a second wakes its reader for each, and waking
//! costs more than reading. So once that has gone on for a while, bytes are left to gather in the
//! socket for a moment between two reads. Decides only; measures and waits nothing itself.
//!
//! **Invariant:** an answer at the pace of any model, or a short one, is never held up.

use std::time::Duration;

/// A piece that was waited for less than this was there already: it only changed hands between tasks.
const AT_HAND: Duration = Duration::from_micros(5);

/// Models that answer in pieces further apart than this do not flood anybody.
const QUICK: Duration = Duration::from_millis(1);

/// So many pieces in a row, each waited for and each quick, are a flood. A model's answer begins with a
/// few pieces at once and goes on slower.
const MANY: u32 = 64;

/// How long bytes gather: too short for anybody to see, and a hundred times what a flood's piece takes.
const GATHERING: Duration = Duration::from_millis(1);

/// The pace of one answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flood {
    /// Pieces in a row that were waited for, but not for long.
    quick: u32,
}

impl Flood {
    /// Takes note of a piece that came after this wait. Answers how long the socket is to be left alone
    /// before the next read.
    pub(crate) fn piece(&mut self, waited: Duration) -> Option<Duration> {
        if waited < AT_HAND {
            return None;
        }
        self.quick = if waited < QUICK { self.quick.saturating_add(1) } else { 0 };
        (self.quick > MANY).then_some(GATHERING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(waits: impl IntoIterator<Item = Duration>) -> usize {
        let mut flood = Flood::default();
        waits.into_iter().filter(|waited| flood.piece(*waited).is_some()).count()
    }

    /// SPEC M3
    #[test]
    fn only_a_flood_is_left_to_gather() {
        let micros = Duration::from_micros;
        let times = |count, waited| std::iter::repeat_n(waited, count);
        // A short answer in one go, and a model's pace.
        assert_eq!(pauses(times(64, micros(20))), 0);
        assert_eq!(pauses(times(10_000, micros(2_000))), 0);
        assert_eq!(pauses((0..10_000).map(|n| micros(if n % 50 == 0 { 5_000 } else { 100 }))), 0);
        // What is at hand is read on, and does not count.
        assert_eq!(pauses(times(10_000, micros(1))), 0);
        let flood = times(64, micros(20)).chain(times(1, micros(1))).chain(times(10, micros(20)));
        assert_eq!(pauses(flood), 10);
        // It ends with the first piece that takes its time.
        assert_eq!(
            pauses(
                times(65, micros(20)).chain(times(1, micros(2_000))).chain(times(9, micros(20)))
            ),
            1
        );
    }
}
