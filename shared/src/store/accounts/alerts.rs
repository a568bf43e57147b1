//! What an owner has spent in a month, and the alerts that this has reached.

use domain::accounts::quota::Month;
use domain::ids::{NoticeId, Owner};
use domain::notices::of_costs::of_costs;
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::spend::Spend;
use crate::store::keys;
use crate::store::table::{Extras, Order, QueryPage, Store, StoreError, Write, Written, item};

/// How long a reached alert is kept after its month.
const KEPT: SignedDuration = SignedDuration::from_hours(400 * 24);

/// How many items are read at once.
const PAGE: usize = 100;

/// A threshold that the costs of a month have reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReachedAlert {
    pub month_micros: i64,
    /// The month's costs when it was noticed.
    pub spent_micros: i64,
    pub reached_at: Timestamp,
}

impl Store {
    /// What an owner has spent in a month, in micro-dollars.
    pub async fn month_spend(&self, owner: &Owner, month: Month) -> Result<i64, StoreError> {
        let (mut spent, mut after) = (0i64, Some(format!("{month}-00")));
        loop {
            let found =
                self.query::<Spend>(&keys::spends(owner), after.as_deref(), PAGE, Order::Oldest).await?;
            let mut is_over = false;
            for (day, spend) in found.items {
                is_over |= !day.starts_with(&month.to_string());
                if day.parse::<Date>().is_ok_and(|day| month.has(day)) {
                    spent = spent.saturating_add(spend.value.spent_micros);
                }
            }
            after = found.last;
            if is_over || after.is_none() {
                return Ok(spent);
            }
        }
    }

    /// Notes that a threshold was reached, and that the person is to be told. Of several calls for one threshold and month, one
    /// succeeds.
    pub async fn reach_alert(
        &self,
        owner: &Owner,
        month: Month,
        alert: &ReachedAlert,
    ) -> Result<Written, StoreError> {
        let key = keys::alert(owner, month, alert.month_micros);
        let create = Write::Create { key, item: item(alert, &Extras::expiring(month.end() + KEPT))? };
        let event = of_costs(month, alert.month_micros, alert.spent_micros);
        let id = NoticeId::of(&event.key.to_string(), alert.reached_at);
        self.write_all(vec![create, Self::happened_write(owner, id, event, alert.reached_at)?]).await
    }

    /// The alerts that a month has reached, lowest first.
    pub async fn reached_alerts(&self, owner: &Owner, month: Month) -> Result<Vec<ReachedAlert>, StoreError> {
        let (mut reached, mut after) = (Vec::new(), Some(keys::alert(owner, month, 0).sk));
        let of_month = keys::alerts_of(month);
        loop {
            let found: QueryPage<ReachedAlert> =
                self.query(&keys::alerts(owner), after.as_deref(), PAGE, Order::Oldest).await?;
            let before = reached.len();
            let read = found.items.len();
            reached.extend(
                found
                    .items
                    .into_iter()
                    .filter(|(sk, _)| sk.starts_with(&of_month))
                    .map(|(_, alert)| alert.value),
            );
            after = found.last;
            if after.is_none() || reached.len() - before < read {
                return Ok(reached);
            }
        }
    }
}
