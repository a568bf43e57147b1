//! What the watchdog knows of owners and of the platform.
//!
//! The state of an owner is in partitions of the index `due` that no sweep reads. So the watchdog finds everybody without a scan, and a
//! deletion of the account ends it.

use domain::ids::Owner;
use domain::watchdog::{Check, Say, WatchdogRecord};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::store::due_item::DueItem;
use crate::store::keys::{self, SHARDS};
use crate::store::table::{Extras, Order, QueryPage, Store, StoreError, Versioned, Write, Written, item};
use crate::store::{DueEntry, DueTarget};

/// How long an alert is kept.
const ALERT_KEPT: SignedDuration = SignedDuration::from_hours(24 * domain::background::jobs::KEPT_DAYS);

/// How many entries of the index a query reads.
const PAGE: usize = 1_000;

/// What the watchdog has said at a look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchdogAlert {
    /// When the look was.
    pub at: Timestamp,
    #[serde(flatten)]
    pub say: Say,
}

/// A sign of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    pub at: Timestamp,
}

/// What the watchdog knows of the platform.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlatformWatchdog {
    /// The newest look whose messages were all sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looked_at: Option<Timestamp>,
    /// When this look was made. A late call makes the look of an earlier time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_at: Option<Timestamp>,
    #[serde(flatten)]
    pub record: WatchdogRecord,
}

impl Store {
    pub async fn watchdog(&self, owner: &Owner) -> Result<Option<Versioned<WatchdogRecord>>, StoreError> {
        self.get(&keys::watchdog_state(owner)).await
    }

    /// The write of an owner's state over the one that was read at `version`, 0 if there was none. `now`: for the index, if it is new.
    pub fn watchdog_write(
        owner: &Owner,
        record: &WatchdogRecord,
        version: u64,
        now: Timestamp,
    ) -> Result<Write, StoreError> {
        let shard = keys::watched_shard(keys::shard_number_of_owner(owner));
        let extras = Extras { due: Some((shard, now)), expires: None };
        Ok(Write::over(keys::watchdog_state(owner), version, item(record, &extras)?))
    }

    /// Lets the watchdog look at an owner from now on.
    pub async fn follow(&self, owner: &Owner, now: Timestamp) -> Result<(), StoreError> {
        if self.watchdog(owner).await?.is_none() {
            let new = Self::watchdog_write(owner, &WatchdogRecord::default(), 0, now)?;
            // Another process may have written it meanwhile.
            let _ = self.write_all(vec![new]).await?;
        }
        Ok(())
    }

    /// The write that keeps what was said.
    pub fn watchdog_alert_write(owner: &Owner, alert: &WatchdogAlert) -> Result<Write, StoreError> {
        let (check, of) = of(&alert.say);
        let expires = alert.at.checked_add(ALERT_KEPT).unwrap_or(Timestamp::MAX);
        let key = keys::watchdog_alert(owner, alert.at, check, of);
        Ok(Write::Put { key, item: item(alert, &Extras::expiring(expires))? })
    }

    /// What was said, newest first.
    pub async fn watchdog_alerts(
        &self,
        owner: &Owner,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<WatchdogAlert>, StoreError> {
        self.query(&keys::watchdog_alerts(owner), after, limit, Order::Newest).await
    }

    /// A page of the owners in one of the partitions of the index, and where to continue.
    pub async fn followed(
        &self,
        shard: u32,
        after: Option<&DueEntry>,
    ) -> Result<(Vec<Owner>, Option<DueEntry>), StoreError> {
        let shard = keys::watched_shard(shard);
        let (found, next) = self.index_page(&shard, Timestamp::MAX, PAGE, after).await?;
        let owner = |entry: &DueEntry| match entry.item() {
            Some(DueItem { owner, target: DueTarget::Watchdog, .. }) => Some(owner),
            _ => None,
        };
        Ok((found.iter().filter_map(owner).collect(), next))
    }

    /// When the oldest item that no sweep has found was due. `None` if nothing waits.
    pub async fn oldest_due(&self, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        let first = (0..SHARDS).map(|shard| self.due(shard, now, 1));
        let found = futures::future::try_join_all(first).await?;
        Ok(found.into_iter().flatten().filter_map(|entry| entry.due_at.parse().ok()).min())
    }

    /// Notes that the sweep runs.
    pub async fn beat_of_sweep(&self, at: Timestamp) -> Result<(), StoreError> {
        self.put(&keys::heartbeat_of_sweep(), item(&Heartbeat { at }, &Extras::default())?).await
    }

    /// When the sweep last noted that it runs.
    pub async fn heartbeat_of_sweep(&self) -> Result<Option<Timestamp>, StoreError> {
        let found: Option<Versioned<Heartbeat>> = self.get(&keys::heartbeat_of_sweep()).await?;
        Ok(found.map(|found| found.value.at))
    }

    pub async fn platform_watchdog(&self) -> Result<Versioned<PlatformWatchdog>, StoreError> {
        let found = self.get(&keys::watchdog_of_platform()).await?;
        Ok(found.unwrap_or(Versioned { value: PlatformWatchdog::default(), version: 0 }))
    }

    pub async fn save_platform_watchdog(
        &self,
        state: &PlatformWatchdog,
        version: u64,
    ) -> Result<Written, StoreError> {
        let key = keys::watchdog_of_platform();
        self.write_all(vec![Write::over(key, version, item(state, &Extras::default())?)]).await
    }
}

fn of(say: &Say) -> (Check, &str) {
    match say {
        Say::Alert { check, item, .. } | Say::Recovery { check, item, .. } => (*check, item),
    }
}
