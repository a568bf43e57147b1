//! On how many executors one owner's runs may be at once, so that one owner with many due runs does not delay the others.
//!
//! An executor drives up to ten runs, and is busy until the last of them ends: executors are what is scarce. So an owner has a
//! number of *places*. An executor takes one of them before it drives runs of the owner, and gives it back when it has ended
//! the last of them. A place is a record of its own with a [`Lease`]. Nothing counts up and down, so nothing can be lost: the
//! place of an executor that died is free when its lease is over.

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use crate::lease::Lease;

/// How long an executor holds a place without renewing it.
pub const LEASE: SignedDuration = SignedDuration::from_secs(60);

/// How often an executor renews its lease of a place.
pub const RENEW_EVERY: SignedDuration = SignedDuration::from_secs(20);

/// By how much the clocks of executors may differ. A lease that ends later than one that begins now by more than this was
/// written by a clock that has been set back since, and is void.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(60);

/// A place: its number from 0, and who has it.
pub type Place = (u32, Lease<Uuid>);

/// How many executors may work on one owner's runs: three of ten, and at least one, are left for the other owners. An executor is
/// busy with what it received first, even if that is a single run, so one or two of many would soon be taken.
#[must_use]
pub const fn of_owner(executors: u32) -> u32 {
    let share = executors.saturating_mul(3) / 10;
    let others = if share > 1 { share } else { 1 };
    if executors > others { executors - others } else { 1 }
}

/// A place that may be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Free {
    pub number: u32,
    /// Whether the owner has all of its places with this one.
    pub is_last: bool,
}

/// As many executors as may work on the owner's runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    pub executors: u32,
}

/// Chooses one of the free places. `taken` are the records that are there, and `random` is any number: executors that choose
/// at the same time should choose different places. Runs that a person started by hand have one place more, which is chosen
/// when all others are taken.
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
    let is_taken = |number: u32| taken.iter().any(|(n, lease)| *n == number && is_valid(lease, now));
    let free: Vec<u32> = (0..limit).filter(|number| !is_taken(*number)).collect();
    match free.len() {
        0 if by_hand && !is_taken(limit) => Ok(Free { number: limit, is_last: true }),
        0 => Err(Full { executors: limit }),
        several => Ok(Free { number: free[random as usize % several], is_last: several == 1 }),
    }
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

    /// The places with these numbers, each for so many more seconds.
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
            // The place of runs by hand is nobody else's.
            (&[(0, 60), (1, 60), (3, 60)], false, 0, first(2, true)),
            // Leases that are over, and one of a clock that was set back.
            (&[(0, 60), (1, 0), (2, 60)], false, 0, first(1, true)),
            (&[(0, 1), (1, 60), (2, -900)], false, 0, first(2, true)),
            (&[(0, 60), (1, 120), (2, 60)], false, 0, full),
            (&[(0, 60), (1, 121), (2, 60)], false, 0, first(1, true)),
            // More executors than now had places.
            (&[(0, 60), (7, 60), (8, 60), (9, 60)], false, 1, first(2, false)),
        ] {
            let chosen = choose(&taken(numbers), 4, by_hand, now(), random);
            assert_eq!(chosen, expected, "{numbers:?}, by hand: {by_hand}");
        }
    }
}
