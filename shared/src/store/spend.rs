//! What an owner has spent today. A reservation is taken from the ceiling before a model is called and given back,
//! less what was spent, after: concurrent calls can never pass the ceiling together.

use domain::ids::Owner;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::keys;
use super::table::{Store, StoreError, Write, Written};

/// How long a day's figures are kept.
const LIFETIME: SignedDuration = SignedDuration::from_hours(400 * 24);

/// One day's figures, in micro-dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Spend {
    /// Spent, and reserved by calls that are under way.
    pub committed_micros: i64,
    /// Spent for certain.
    pub spent_micros: i64,
}

fn day_of(now: Timestamp) -> Date {
    now.to_zoned(TimeZone::UTC).date()
}

impl Store {
    /// Takes `amount` from the day's ceiling.
    pub async fn reserve(
        &self,
        owner: &Owner,
        now: Timestamp,
        amount: i64,
        ceiling: i64,
    ) -> Result<Written, StoreError> {
        self.transact(vec![Write::Reserve {
            key: keys::spend(owner, day_of(now)),
            number: "committed_micros",
            amount,
            ceiling,
            expires: Some(now + LIFETIME),
        }])
        .await
    }

    /// Gives a reservation of `reserved_at` back and writes down what was spent.
    pub async fn settle(
        &self,
        owner: &Owner,
        reserved_at: Timestamp,
        reserved: i64,
        spent: i64,
    ) -> Result<(), StoreError> {
        self.transact(vec![Write::Add {
            key: keys::spend(owner, day_of(reserved_at)),
            numbers: vec![("committed_micros", spent - reserved), ("spent_micros", spent)],
            upsert: true,
            expires: Some(reserved_at + LIFETIME),
        }])
        .await
        .map(|_| ())
    }

    pub async fn spend(&self, owner: &Owner, now: Timestamp) -> Result<Spend, StoreError> {
        Ok(self.get(&keys::spend(owner, day_of(now))).await?.map_or_else(Spend::default, |found| found.value))
    }
}
