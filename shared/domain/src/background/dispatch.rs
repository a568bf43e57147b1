//! When due items are sent to the executors.
//!
//! A sweep looks once a minute, and [`LOOK_AHEAD`] ahead: it leases what will be due and puts it into the queue with the
//! delay that remains. A queue delays by whole seconds, so the delay is rounded down, and the executor waits for the rest.

use jiff::{SignedDuration, Timestamp};

/// The time between two sweeps.
pub const SWEEP_EVERY: SignedDuration = SignedDuration::from_secs(60);

/// How far ahead a sweep looks. It is longer than the time between sweeps, because a timer may be late.
pub const LOOK_AHEAD: SignedDuration = SignedDuration::from_secs(90);

/// How long after its due time a dispatched item is not dispatched again. If its message was lost, the first sweep after that
/// sends another one.
pub const LEASE: SignedDuration = SignedDuration::from_mins(3);

/// The longest delay that SQS supports.
pub const LONGEST_DELAY: SignedDuration = SignedDuration::from_secs(900);

/// The delay that remains until `due_at`, in whole seconds, rounded down: the item arrives less than a second before its
/// time, never after it.
#[must_use]
pub fn delay_seconds(due_at: Timestamp, now: Timestamp) -> u16 {
    let left = due_at.duration_since(now).clamp(SignedDuration::ZERO, LONGEST_DELAY);
    u16::try_from(left.as_secs()).unwrap_or_default()
}

/// Until when an item that is dispatched now is not dispatched again.
#[must_use]
pub fn leased_until(due_at: Timestamp, now: Timestamp) -> Timestamp {
    due_at.max(now).checked_add(LEASE).unwrap_or(Timestamp::MAX)
}

/// Whether sweeps have read the index without a break since the entry became due. Without a break, a sweep finds an entry at most
/// a minute after the first sweep that could see it.
#[must_use]
pub fn is_without_break(entry_due_at: Timestamp, now: Timestamp) -> bool {
    now.duration_since(entry_due_at) < SWEEP_EVERY * 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(1_795_251_600_000 + millis).unwrap()
    }

    #[test]
    fn delays_are_rounded_down_and_bounded() {
        for (left, expected) in [
            (0, 0),
            (1, 0),
            (999, 0),
            (1_000, 1),
            (1_001, 1),
            (59_999, 59),
            (60_000, 60),
            (90_000, 90),
            (899_999, 899),
            (900_000, 900),
            (900_001, 900),
            (i64::from(u32::MAX), 900),
            (-1, 0),
            (-60_000, 0),
        ] {
            assert_eq!(delay_seconds(at(left), at(0)), expected, "{left} ms");
        }
    }

    #[test]
    fn an_item_that_was_sent_ahead_is_not_sent_again_after_its_due_time() {
        assert_eq!(leased_until(at(60_000), at(0)), at(60_000) + LEASE);
        assert_eq!(leased_until(at(-60_000), at(0)), at(0) + LEASE);
        assert_eq!(leased_until(Timestamp::MAX, at(0)), Timestamp::MAX);
    }

    #[test]
    fn a_sweep_that_was_left_out_is_noticed() {
        for (late, expected) in [(-90_000, true), (0, true), (119_999, true), (120_000, false)] {
            assert_eq!(is_without_break(at(0), at(late)), expected, "{late}");
        }
    }

    /// Two sweeps in a row see every due time, also if the second is half a minute late.
    #[test]
    fn nothing_falls_between_two_sweeps() {
        assert!(LOOK_AHEAD >= SWEEP_EVERY + SignedDuration::from_secs(30));
        assert!(LOOK_AHEAD <= LONGEST_DELAY);
    }
}
