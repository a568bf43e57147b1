//! Watched schedules and their reports.
//!
//! A report is written on the condition that the record of its schedule is as it was read. So no report is added to a schedule that is
//! being deleted. A report does not change the record, so it never makes an edit fail.
//!
//! Beside them, the records of the watchdog.

pub mod watchdog;

use domain::ids::{Owner, ReportId, WatchedId};
use domain::watched::{WatchedRecord, WatchedReport, namesake};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::idempotency::Once;
use super::keys;
use super::table::{Extras, Order, QueryPage, Store, StoreError, Versioned, Write, Written, item};

/// How long a report is kept.
pub const REPORT_LIFETIME: SignedDuration = SignedDuration::from_hours(400 * 24);

/// Whether a watched schedule has its name now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    Yes,
    /// The owner has as many as the limit allows.
    TooMany,
    /// This other one has the name.
    Taken(WatchedId),
    /// Another call has changed something meanwhile.
    Raced,
}

/// The watched schedule that was created or renamed last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LastWatched {
    watched_id: WatchedId,
}

/// Which reports to read. The sort keys of reports begin with their times.
#[derive(Clone, Copy, Debug)]
pub struct ReportsBetween {
    pub from: Timestamp,
    /// Up to this time. They are read from the oldest one on.
    pub until: Timestamp,
}

impl Store {
    /// Creates a watched schedule, unless its owner has `limit` of them or one with this name. Every creation and every new name replaces
    /// one item of the owner, so of concurrent ones one succeeds, and the others look again: they get [`Named::Raced`].
    pub async fn create_watched(
        &self,
        owner: &Owner,
        once: &Once,
        record: &WatchedRecord,
        limit: usize,
    ) -> Result<Named, StoreError> {
        let (last, all) = self.last_named(owner, record).await?;
        if all.len() >= limit {
            return Ok(Named::TooMany);
        }
        let id = record.watched.watched_id;
        if let Some(other) = namesake(&all, id, &record.watched.name) {
            return Ok(Named::Taken(other));
        }
        let create = Write::Create { key: keys::watched(owner, id), item: item(record, &Extras::default())? };
        let written = self.commit(once, vec![last, create]).await?;
        Ok(if written.done() { Named::Yes } else { Named::Raced })
    }

    /// Replaces the record that was read at `version` by one with another name, unless another schedule has it.
    pub async fn rename_watched(
        &self,
        owner: &Owner,
        record: &WatchedRecord,
        version: u64,
    ) -> Result<Named, StoreError> {
        let (last, all) = self.last_named(owner, record).await?;
        let id = record.watched.watched_id;
        if let Some(other) = namesake(&all, id, &record.watched.name) {
            return Ok(Named::Taken(other));
        }
        let key = keys::watched(owner, id);
        let replace = Write::over(key, version, item(record, &Extras::default())?);
        let written = self.write_all(vec![last, replace]).await?;
        Ok(if written.done() { Named::Yes } else { Named::Raced })
    }

    /// The write that says that this record was named last, and all watched schedules. It is refused if another one was named meanwhile.
    async fn last_named(
        &self,
        owner: &Owner,
        record: &WatchedRecord,
    ) -> Result<(Write, Vec<WatchedRecord>), StoreError> {
        let key = keys::watched_creation(owner);
        // Read before the schedules.
        let version = self.get::<LastWatched>(&key).await?.map_or(0, |found| found.version);
        let all = self.all_watched(owner, usize::MAX).await?;
        let last = item(&LastWatched { watched_id: record.watched.watched_id }, &Extras::default())?;
        Ok((Write::over(key, version, last), all))
    }

    /// Also finds a schedule whose reports are being deleted.
    pub async fn watched(
        &self,
        owner: &Owner,
        id: WatchedId,
    ) -> Result<Option<Versioned<WatchedRecord>>, StoreError> {
        self.get(&keys::watched(owner, id)).await
    }

    /// Newest first.
    pub async fn watched_schedules(
        &self,
        owner: &Owner,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<WatchedRecord>, StoreError> {
        self.query(&keys::watched_schedules(owner), after, limit, Order::Newest).await
    }

    /// The newest watched schedules without those that are being deleted, at most `max`.
    pub async fn all_watched(&self, owner: &Owner, max: usize) -> Result<Vec<WatchedRecord>, StoreError> {
        /// More pages than all that an owner can make. An import may bring more.
        const PAGES: usize = 20;
        let (mut all, mut after) = (Vec::new(), None::<String>);
        for _ in 0..PAGES {
            let found = self.watched_schedules(owner, after.as_deref(), 100).await?;
            let of_page = found.items.into_iter().map(|(_, record)| record.value);
            all.extend(of_page.filter(|record| !record.is_deleted));
            after = found.last;
            if after.is_none() || all.len() >= max {
                break;
            }
        }
        all.truncate(max);
        Ok(all)
    }

    /// Replaces the record that was read at `version`.
    pub async fn replace_watched(
        &self,
        owner: &Owner,
        record: &WatchedRecord,
        version: u64,
    ) -> Result<Written, StoreError> {
        let key = keys::watched(owner, record.watched.watched_id);
        self.replace(&key, version, item(record, &Extras::default())?).await
    }

    /// Stores a report about the schedule that was read at `version`, together with `also`: what the report changes elsewhere.
    pub async fn report_watched(
        &self,
        owner: &Owner,
        once: &Once,
        (id, version): (WatchedId, u64),
        report: &WatchedReport,
        also: Vec<Write>,
    ) -> Result<Written, StoreError> {
        let expires = report.report.at.checked_add(REPORT_LIFETIME).unwrap_or(Timestamp::MAX);
        let mut writes = vec![
            Write::Unchanged { key: keys::watched(owner, id), version },
            Write::Create {
                key: keys::watched_report(owner, id, report.report_id),
                item: item(report, &Extras::expiring(expires))?,
            },
        ];
        writes.extend(also);
        self.commit(once, writes).await
    }

    /// Newest first, before the sort key `before`.
    pub async fn watched_reports(
        &self,
        owner: &Owner,
        id: WatchedId,
        before: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<WatchedReport>, StoreError> {
        self.query(&keys::watched_reports(owner, id), before, limit, Order::Newest).await
    }

    /// Oldest first, at most `max`, and whether these are all.
    pub async fn watched_reports_between(
        &self,
        owner: &Owner,
        id: WatchedId,
        between: ReportsBetween,
        max: usize,
    ) -> Result<(Vec<WatchedReport>, bool), StoreError> {
        let sort_key = |at| keys::watched_report(owner, id, first_at(at)).sk;
        let range = keys::watched_reports(owner, id);
        // The next millisecond, because ids have whole milliseconds.
        let end = between.until.checked_add(SignedDuration::from_millis(1)).unwrap_or(Timestamp::MAX);
        let (end, mut after) = (sort_key(end), sort_key(between.from));
        let mut reports = Vec::new();
        loop {
            let limit = (max + 1 - reports.len()).min(500);
            let found = self.query::<WatchedReport>(&range, Some(&after), limit, Order::Oldest).await?;
            for (sort_key, report) in found.items {
                if sort_key > end {
                    return Ok((reports, true));
                }
                if reports.len() == max {
                    return Ok((reports, false));
                }
                reports.push(report.value);
            }
            let Some(last) = found.last else { return Ok((reports, true)) };
            after = last;
        }
    }

    /// Deletes the reports of a watched schedule, and then its record. The record must say that it is deleted, so that no report is
    /// added.
    pub async fn delete_watched(&self, owner: &Owner, id: WatchedId) -> Result<(), StoreError> {
        self.delete_range(&keys::watched_reports(owner, id)).await?;
        self.delete(&keys::watched(owner, id)).await
    }
}

/// An id that sorts before those of all reports of this time or later, and after those of earlier ones.
fn first_at(at: Timestamp) -> ReportId {
    let millis = u128::try_from(at.as_millisecond()).unwrap_or_default();
    ReportId::from_uuid(Uuid::from_u128(millis << 80))
}
