//! The places of an owner's runs on the executors, and the backlog: the runs that wait for one. [`domain::background::places`] has the rules.

use domain::background::lease::Lease;
use domain::background::places::{Place, Purpose};
use domain::ids::{ActionId, Owner, RunId};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::store::keys::{self, Key};
use crate::store::table::{Extras, Order, Store, StoreError, Versioned, Write, Written, item};

/// Records that no executor removed are deleted after this time.
const KEPT: SignedDuration = SignedDuration::from_hours(48);

/// How many places are read at once. An installation has at most a thousand executors.
const PLACES: usize = 1_001;

/// A run of the backlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BacklogRun {
    pub action_id: ActionId,
    pub run_id: RunId,
}

/// The mark that an owner has a backlog. It is a due item, so a sweep finds it if no executor drains the backlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct BacklogMark {
    since: Timestamp,
}

fn key(owner: &Owner, of: Purpose, number: u32) -> Key {
    match of {
        Purpose::Runs => keys::place(owner, number),
        Purpose::Messages => keys::message_place(owner, number),
    }
}

impl Store {
    /// All recorded places for this purpose, with the versions of their records. The leases of some may have ended.
    pub async fn places(&self, owner: &Owner, of: Purpose) -> Result<Vec<(Place, u64)>, StoreError> {
        let range = match of {
            Purpose::Runs => keys::places(owner),
            Purpose::Messages => keys::message_places(owner),
        };
        let found = self.query::<Lease<Uuid>>(&range, None, PLACES, Order::Oldest).await?;
        let place = |(sk, lease): (String, Versioned<Lease<Uuid>>)| {
            Some(((keys::place_number(&sk)?, lease.value), lease.version))
        };
        Ok(found.items.into_iter().filter_map(place).collect())
    }

    /// Takes or renews a place. `version` is the version of its record as it was read, 0 if there was none.
    pub async fn take_place(
        &self,
        owner: &Owner,
        (of, number): (Purpose, u32),
        version: u64,
        lease: &Lease<Uuid>,
    ) -> Result<Written, StoreError> {
        let item = item(lease, &Extras::expiring(lease.until + KEPT))?;
        self.write_all(vec![Write::over(key(owner, of, number), version, item)]).await
    }

    /// Gives a place back, unless another executor has taken it since `version`.
    pub async fn free_place(
        &self,
        owner: &Owner,
        (of, number): (Purpose, u32),
        version: u64,
    ) -> Result<Written, StoreError> {
        self.write_all(vec![Write::Remove { key: key(owner, of, number), version }]).await
    }

    /// The write that puts a run on the backlog. Runs by hand come first. The others are in the order of their due
    /// times.
    pub fn backlog_write(
        owner: &Owner,
        run: &BacklogRun,
        by_hand: bool,
        due_at: Timestamp,
        now: Timestamp,
    ) -> Result<Write, StoreError> {
        let key = keys::backlog_run(owner, by_hand, due_at, run.run_id);
        Ok(Write::Put { key, item: item(run, &Extras::expiring(now + KEPT))? })
    }

    /// The first runs of the backlog, each with its sort key.
    pub async fn backlog(
        &self,
        owner: &Owner,
        limit: usize,
    ) -> Result<Vec<(String, BacklogRun)>, StoreError> {
        let found = self.query(&keys::backlog_runs(owner), None, limit, Order::Oldest).await?;
        Ok(found.items.into_iter().map(|(sk, run)| (sk, run.value)).collect())
    }

    /// Removes a run from the backlog. If two executors try, one succeeds.
    pub async fn take_from_backlog(&self, owner: &Owner, sort_key: &str) -> Result<Written, StoreError> {
        let key = keys::Key::new(keys::backlog_runs(owner).pk, sort_key);
        self.write_all(vec![Write::Delete { key, must_exist: true }]).await
    }

    /// Marks that this owner has a backlog, so that a sweep checks them at `look_at`. An existing mark stays.
    pub async fn mark_backlog(
        &self,
        owner: &Owner,
        now: Timestamp,
        look_at: Timestamp,
    ) -> Result<Written, StoreError> {
        let due = Some((keys::shard_of_owner(owner), look_at));
        let item = item(&BacklogMark { since: now }, &Extras { due, expires: None })?;
        self.write_all(vec![Write::Create { key: keys::backlog(owner), item }]).await
    }

    /// Removes the mark.
    pub async fn unmark_backlog(&self, owner: &Owner) -> Result<(), StoreError> {
        self.delete(&keys::backlog(owner)).await
    }
}
