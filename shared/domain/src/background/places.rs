//! How many executors may work on one owner's runs at once, so that one owner with many due runs does not delay the others.
//!
//! An executor drives up to ten runs and is busy until the last of them ends, so executors are the scarce resource. Each owner
//! has a number of *places*. An executor takes a place before it drives runs of the owner, and gives it back after the last of
//! them. A place is a record of its own with a [`Lease`]. There is no counter that a crash could leave too high: if an executor
//! dies, its place is free when its lease ends.

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use crate::background::lease::Lease;

/// How long an executor holds a place without renewing it.
pub const LEASE: SignedDuration = SignedDuration::from_secs(60);

/// How often an executor renews its lease of a place.
pub const RENEW_EVERY: SignedDuration = SignedDuration::from_secs(20);

/// The largest accepted difference between the clocks of two executors. A lease that ends more than this after a lease that
/// begins now is void: a clock that was ahead and was set back has written it.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(60);

/// What a place is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// To drive the owner's runs.
    Runs,
    /// To send the owner's messages. A receiver that hangs keeps an executor busy, so messages have places of their own.
    Messages,
}

/// A place: its number from 0, and the lease of its holder.
pub type Place = (u32, Lease<Uuid>);

/// How many executors may work on one owner's runs. Three of ten executors, and at least one, are left for the other owners.
/// One or two would not be enough: an executor is busy with the first message that it receives, even if that is a single run.
#[must_use]
pub const fn of_owner(executors: u32) -> u32 {
    let share = executors.saturating_mul(3) / 10;
    let others = if share > 1 { share } else { 1 };
    if executors > others { executors - others } else { 1 }
}

/// How many executors may send one owner's messages: a fifth of them, and at least one.
#[must_use]
pub const fn of_messages(executors: u32) -> u32 {
    if executors >= 10 { executors / 5 } else { 1 }
}

/// A place that may be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Free {
    pub number: u32,
    /// Whether it is the owner's last free place.
    pub is_last: bool,
}

/// The limit is reached: this many executors already work on the owner's runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    pub executors: u32,
}

/// Chooses a free place for runs. `taken` are the stored records. `random` is any number, so that executors that choose at the same time
/// choose different places. Runs that a person started by hand have one additional place, which is chosen when all others are
/// taken.
///
/// # Errors
/// [`Full`] if no place is free.
pub fn choose(
    taken: &[Place],
    executors: u32,
    by_hand: bool,
    now: Timestamp,
    random: u32,
) -> Result<Free, Full> {
    let limit = of_owner(executors);
    match chosen(taken, limit, now, random) {
        None if by_hand && !is_taken(taken, limit, now) => Ok(Free { number: limit, is_last: true }),
        None => Err(Full { executors: limit }),
        Some(free) => Ok(free),
    }
}

/// Chooses a free place for messages, as [`choose`] does for runs.
///
/// # Errors
/// [`Full`] if no place is free.
pub fn choose_for_messages(
    taken: &[Place],
    executors: u32,
    now: Timestamp,
    random: u32,
) -> Result<Free, Full> {
    let limit = of_messages(executors);
    chosen(taken, limit, now, random).ok_or(Full { executors: limit })
}

fn chosen(taken: &[Place], limit: u32, now: Timestamp, random: u32) -> Option<Free> {
    let free: Vec<u32> = (0..limit).filter(|number| !is_taken(taken, *number, now)).collect();
    let at = (random as usize).checked_rem(free.len())?;
    Some(Free { number: *free.get(at)?, is_last: free.len() == 1 })
}

fn is_taken(taken: &[Place], number: u32, now: Timestamp) -> bool {
    taken.iter().any(|(n, lease)| *n == number && is_valid(lease, now))
}

fn is_valid(lease: &Lease<Uuid>, now: Timestamp) -> bool {
    !lease.is_over(now) && lease.until.duration_since(now) <= LEASE + TOLERANCE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_second(1_795_251_600).unwrap()
    }

    /// The places with these numbers. The second number of each pair says in how many seconds its lease ends.
    fn taken(numbers: &[(u32, i64)]) -> Vec<Place> {
        let place = |(number, seconds): &(u32, i64)| {
            let lease =
                Lease { holder: Uuid::from_u128(7), until: now() + SignedDuration::from_secs(*seconds) };
            (*number, lease)
        };
        numbers.iter().map(place).collect()
    }

    #[test]
    fn executors_are_left_for_other_owners() {
        for (executors, expected) in [
            (0, 1),
            (1, 1),
            (2, 1),
            (3, 2),
            (4, 3),
            (5, 4),
            (9, 7),
            (10, 7),
            (14, 10),
            (15, 11),
            (1_000, 700),
        ] {
            assert_eq!(of_owner(executors), expected, "{executors}");
        }
    }

    #[test]
    fn messages_take_few_executors() {
        for (executors, expected) in [(0, 1), (1, 1), (9, 1), (10, 2), (16, 3), (1_000, 200)] {
            assert_eq!(of_messages(executors), expected, "{executors}");
        }
        let chosen = |numbers: &[(u32, i64)], random| choose_for_messages(&taken(numbers), 10, now(), random);
        assert_eq!(chosen(&[], 3), Ok(Free { number: 1, is_last: false }));
        assert_eq!(chosen(&[(1, 60)], 3), Ok(Free { number: 0, is_last: true }));
        assert_eq!(chosen(&[(1, 60), (0, 1)], 3), Err(Full { executors: 2 }));
        assert_eq!(chosen(&[(1, 60), (0, 0)], 3), Ok(Free { number: 0, is_last: true }));
    }

    #[test]
    fn a_free_place_is_chosen() {
        // Four executors: three places, and one more for runs by hand.
        let (first, full) = (|number, is_last| Ok(Free { number, is_last }), Err(Full { executors: 3 }));
        for (numbers, by_hand, random, expected) in [
            (&[][..], false, 0, first(0, false)),
            (&[], false, 5, first(2, false)),
            (&[], true, 0, first(0, false)),
            (&[(0, 60)], false, 0, first(1, false)),
            (&[(0, 60), (2, 60)], false, 7, first(1, true)),
            (&[(0, 60), (1, 60), (2, 60)], false, 0, full),
            (&[(0, 60), (1, 60), (2, 60)], true, 0, first(3, true)),
            (&[(0, 60), (1, 60), (2, 60), (3, 60)], true, 0, full),
            // Other runs never get the place for runs by hand.
            (&[(0, 60), (1, 60), (3, 60)], false, 0, first(2, true)),
            // Leases that have ended, and a lease written by a clock that was set back.
            (&[(0, 60), (1, 0), (2, 60)], false, 0, first(1, true)),
            (&[(0, 1), (1, 60), (2, -900)], false, 0, first(2, true)),
            (&[(0, 60), (1, 120), (2, 60)], false, 0, full),
            (&[(0, 60), (1, 121), (2, 60)], false, 0, first(1, true)),
            // There were more executors before, so there are more places than now.
            (&[(0, 60), (7, 60), (8, 60), (9, 60)], false, 1, first(2, false)),
        ] {
            let chosen = choose(&taken(numbers), 4, by_hand, now(), random);
            assert_eq!(chosen, expected, "{numbers:?}, by hand: {by_hand}");
        }
    }
}
