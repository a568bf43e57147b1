//! An owner's spending per day and month. Before a model call, its highest cost is reserved under each ceiling that applies.
//! After the call, the unused part is returned. So concurrent calls can never exceed a ceiling together.
//!
//! The costs of months are always counted, so that a ceiling holds from the moment at which it is set.

use domain::accounts::quota::{Charge, Month};
use domain::ceilings::{Ceiling, CeilingOf};
use domain::ids::{ActionId, AgentId, Owner};
use domain::runs::{Reservation, Run, RunKind};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::store::keys::{self, Key};
use crate::store::table::{Condition, Store, StoreError, Write};

/// How long the figures of a day or a month are stored.
const LIFETIME: SignedDuration = SignedDuration::from_hours(400 * 24);

/// The figures of a day or a month, in micro-dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Spend {
    /// Spent, plus the reservations of running calls.
    pub committed_micros: i64,
    /// Actually spent.
    pub spent_micros: i64,
    /// The part of `spent_micros` that was added because requests came after the last one that the plan includes.
    pub overage_micros: i64,
    /// By how much people have raised the ceiling.
    pub raised_micros: i64,
}

/// Whose costs they are.
#[derive(Clone, Copy, Debug)]
pub struct Spender<'a> {
    pub owner: &'a Owner,
    pub agent: Option<AgentId>,
    /// Only for runs of an action. A conversation about an action does not count for it.
    pub action: Option<ActionId>,
}

impl<'a> Spender<'a> {
    /// An owner, without an agent and an action.
    #[must_use]
    pub fn owner(owner: &'a Owner) -> Self {
        Self { owner, agent: None, action: None }
    }

    #[must_use]
    pub fn of(owner: &'a Owner, run: &Run) -> Self {
        let action = run.action_id.filter(|_| matches!(run.kind, RunKind::Action | RunKind::Rehearsal));
        Self { owner, agent: run.agent_id, action }
    }

    /// The item that counts the costs of this ceiling. `None` for a run, whose record has its costs, and if there is no such
    /// agent or action.
    fn key(&self, of: CeilingOf, at: Timestamp) -> Option<Key> {
        let month = |what: Option<String>| keys::month_spend(self.owner, Month::at(at), what.as_deref());
        match of {
            CeilingOf::Run => None,
            CeilingOf::Day => Some(keys::spend(self.owner, day_of(at))),
            CeilingOf::Month => Some(month(None)),
            CeilingOf::AgentMonth => self.agent.map(|agent| month(Some(agent.to_string()))),
            CeilingOf::ActionMonth => self.action.map(|action| month(Some(action.to_string()))),
        }
    }
}

fn day_of(now: Timestamp) -> Date {
    now.to_zoned_datetime(TimeZone::UTC).date()
}

impl Store {
    /// The writes that reserve `amount` under these ceilings. They are refused together if a ceiling leaves less.
    #[must_use]
    pub fn reserve_writes(
        spender: Spender<'_>,
        now: Timestamp,
        amount: i64,
        ceilings: &[Ceiling],
    ) -> Vec<Write> {
        let write = |ceiling: &Ceiling| {
            Some(Write::Add {
                key: spender.key(ceiling.of, now)?,
                numbers: vec![("committed_micros", amount)],
                only_if: Condition::Within { number: "committed_micros", ceiling: ceiling.micros },
                expires: Some(now + LIFETIME),
            })
        };
        ceilings.iter().filter_map(write).collect()
    }

    /// The writes that return a reservation, and count what the call has cost. Without a reservation, the cost counts at `now`.
    #[must_use]
    pub fn settle_writes(
        spender: Spender<'_>,
        reserved: Option<&Reservation>,
        now: Timestamp,
        cost: i64,
        charge: Charge,
    ) -> Vec<Write> {
        const COUNTED: [CeilingOf; 4] =
            [CeilingOf::Day, CeilingOf::Month, CeilingOf::AgentMonth, CeilingOf::ActionMonth];
        let at = reserved.map_or(now, |reserved| reserved.at);
        let spent = charge.counted(cost);
        let write = |of: CeilingOf| {
            let returned =
                reserved.filter(|reserved| reserved.of.contains(&of)).map_or(0, |reserved| reserved.micros);
            if (spent, returned) == (0, 0) {
                return None;
            }
            let mut numbers = vec![("committed_micros", spent - returned), ("spent_micros", spent)];
            if spent != cost {
                numbers.push(("overage_micros", spent - cost));
            }
            let only_if = Condition::Always;
            Some(Write::Add { key: spender.key(of, at)?, numbers, only_if, expires: Some(at + LIFETIME) })
        };
        COUNTED.into_iter().filter_map(write).collect()
    }

    /// The write that raises a ceiling for the day or the month of `at`. It is refused if all raises together would be more than
    /// `most`. `None` for a run, whose record has its ceiling.
    #[must_use]
    pub fn raise_write(
        spender: Spender<'_>,
        of: CeilingOf,
        at: Timestamp,
        by: i64,
        most: i64,
    ) -> Option<Write> {
        Some(Write::Add {
            key: spender.key(of, at)?,
            numbers: vec![("raised_micros", by)],
            only_if: Condition::Within { number: "raised_micros", ceiling: most },
            expires: Some(at + LIFETIME),
        })
    }

    /// The figures for a ceiling in the day or the month of `at`.
    ///
    /// # Errors
    /// If the table does not answer.
    pub async fn spend_of(
        &self,
        spender: Spender<'_>,
        of: CeilingOf,
        at: Timestamp,
    ) -> Result<Spend, StoreError> {
        let Some(key) = spender.key(of, at) else { return Ok(Spend::default()) };
        Ok(self.get(&key).await?.map_or_else(Spend::default, |found| found.value))
    }

    /// The figures of an owner's day.
    ///
    /// # Errors
    /// If the table does not answer.
    pub async fn spend(&self, owner: &Owner, now: Timestamp) -> Result<Spend, StoreError> {
        self.spend_of(Spender::owner(owner), CeilingOf::Day, now).await
    }
}
