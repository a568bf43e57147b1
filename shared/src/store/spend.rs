//! An owner's spending per day. Before a model call, a reservation is taken from the daily ceiling. After the call, the
//! unused part is returned. So concurrent calls can never exceed the ceiling together.

use domain::accounts::quota::Charge;
use domain::ids::Owner;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::keys;
use super::table::{Condition, Store, StoreError, Write, Written};

/// How long a day's figures are stored.
const LIFETIME: SignedDuration = SignedDuration::from_hours(400 * 24);

/// One day's figures, in micro-dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Spend {
    /// Spent, plus the reservations of running calls.
    pub committed_micros: i64,
    /// Actually spent.
    pub spent_micros: i64,
    /// The part of `spent_micros` that was added because requests came after the last one that the plan includes.
    pub overage_micros: i64,
}

fn day_of(now: Timestamp) -> Date {
    now.to_zoned(TimeZone::UTC).date()
}

impl Store {
    /// The write that takes `amount` from the day's ceiling. It is refused if the rest of the ceiling is too small.
    #[must_use]
    pub fn reserve_write(owner: &Owner, now: Timestamp, amount: i64, ceiling: i64) -> Write {
        Write::Add {
            key: keys::spend(owner, day_of(now)),
            numbers: vec![("committed_micros", amount)],
            only_if: Condition::Within { number: "committed_micros", ceiling },
            expires: Some(now + LIFETIME),
        }
    }

    /// The write that returns a reservation of `reserved_at` and records what the call cost.
    #[must_use]
    pub fn settle_write(
        owner: &Owner,
        reserved_at: Timestamp,
        reserved: i64,
        cost: i64,
        charge: Charge,
    ) -> Write {
        let spent = charge.counted(cost);
        let mut numbers = vec![("committed_micros", spent - reserved), ("spent_micros", spent)];
        if spent != cost {
            numbers.push(("overage_micros", spent - cost));
        }
        Write::Add {
            key: keys::spend(owner, day_of(reserved_at)),
            numbers,
            only_if: Condition::Always,
            expires: Some(reserved_at + LIFETIME),
        }
    }

    /// Reserves `amount` of the day's ceiling.
    pub async fn reserve(
        &self,
        owner: &Owner,
        now: Timestamp,
        amount: i64,
        ceiling: i64,
    ) -> Result<Written, StoreError> {
        self.transact(vec![Self::reserve_write(owner, now, amount, ceiling)]).await
    }

    /// Returns the reservation that was made at `reserved_at` and records what was spent.
    pub async fn settle(
        &self,
        owner: &Owner,
        reserved_at: Timestamp,
        reserved: i64,
        spent: i64,
    ) -> Result<(), StoreError> {
        let write = Self::settle_write(owner, reserved_at, reserved, spent, Charge::Included);
        self.transact(vec![write]).await.map(|_| ())
    }

    pub async fn spend(&self, owner: &Owner, now: Timestamp) -> Result<Spend, StoreError> {
        Ok(self.get(&keys::spend(owner, day_of(now))).await?.map_or_else(Spend::default, |found| found.value))
    }
}
