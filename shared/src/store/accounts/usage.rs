//! What an owner's models have used, per day, agent, action and model. Each call adds to one item, in the transaction that settles
//! its cost.

use domain::ids::{ActionId, AgentId, Owner};
use domain::models::{Usage, UsedModel};
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::spend::Spender;
use crate::store::keys;
use crate::store::table::{Condition, Order, Store, StoreError, Write};

/// How long the figures are stored.
pub(in crate::store) const LIFETIME: SignedDuration = SignedDuration::from_hours(400 * 24);

/// How many items are read at once.
const PAGE: usize = 1_000;

/// The sums of some calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Used {
    /// The number of calls.
    pub calls: u64,
    /// Input tokens that were neither read from nor written to a cache.
    pub input_tokens: u64,
    /// Input tokens that were read from a cache.
    pub cache_read_tokens: u64,
    /// Input tokens that were written to a cache.
    pub cache_write_tokens: u64,
    /// Output tokens, including reasoning.
    pub output_tokens: u64,
    /// The cost of the calls, in micro-dollars, without what is added after the last request that the plan includes.
    pub cost_micros: i64,
}

/// The sums of a day, an agent, an action and a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageEntry {
    /// The day in the time zone that the account had at the time of the call.
    pub date: Date,
    /// `None` for calls that no agent made.
    pub agent: Option<AgentId>,
    /// `None` for calls that no run of an action made, and for calls that an earlier version counted.
    pub action: Option<ActionId>,
    pub model: UsedModel,
    pub used: Used,
}

impl std::ops::AddAssign for Used {
    fn add_assign(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.cache_read_tokens = self.cache_read_tokens.saturating_add(other.cache_read_tokens);
        self.cache_write_tokens = self.cache_write_tokens.saturating_add(other.cache_write_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cost_micros = self.cost_micros.saturating_add(other.cost_micros);
    }
}

impl Store {
    /// The write that counts a call at `at`, on this day of the owner. `None` if the call used nothing.
    #[must_use]
    pub fn usage_write(
        Spender { owner, agent, action }: Spender<'_>,
        (at, date): (Timestamp, Date),
        model: &UsedModel,
        used: &Usage,
        cost_micros: i64,
    ) -> Option<Write> {
        if *used == Usage::default() && cost_micros == 0 {
            return None;
        }
        let number = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        let written = used.cache_write_5m_tokens.saturating_add(used.cache_write_1h_tokens);
        Some(Write::Add {
            key: keys::usage(owner, agent, action, date, model),
            numbers: vec![
                ("calls", 1),
                ("input_tokens", number(used.input_tokens)),
                ("cache_read_tokens", number(used.cache_read_tokens)),
                ("cache_write_tokens", number(written)),
                ("output_tokens", number(used.output_tokens)),
                ("cost_micros", cost_micros),
            ],
            only_if: Condition::Always,
            expires: Some(at + LIFETIME),
        })
    }

    /// All entries of the month of this day, oldest first.
    pub async fn usage_of_month(&self, owner: &Owner, month: Date) -> Result<Vec<UsageEntry>, StoreError> {
        let range = keys::usage_of_month(owner, month);
        let (mut entries, mut after) = (Vec::new(), None);
        loop {
            let page = self.query::<Used>(&range, after.as_deref(), PAGE, Order::Oldest).await?;
            entries.extend(page.items.into_iter().filter_map(|(sort_key, used)| {
                let (date, agent, action, model) = keys::usage_parts(&sort_key)?;
                Some(UsageEntry { date, agent, action, model, used: used.value })
            }));
            match page.last {
                Some(last) => after = Some(last),
                None => return Ok(entries),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_do_not_overflow() {
        let most = Used { calls: u64::MAX, cost_micros: i64::MAX, output_tokens: 7, ..Used::default() };
        let mut sum = most;
        sum += most;
        assert_eq!(sum, Used { output_tokens: 14, ..most });
    }
}
