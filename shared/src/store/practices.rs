//! Practices and their check-ins.
//!
//! A practice's record has a mark of each check-in, so reading its streaks costs one item. A check-in and its mark are written in one
//! transaction, on the condition that the practice has not changed.

use domain::ids::{Owner, PracticeId};
use domain::practices::{CheckIn, Practice};
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::accounts::quota::Created;
use super::idempotency::Once;
use super::keys;
use super::table::{Extras, Order, QueryPage, Store, StoreError, Versioned, Write, Written, item};

/// The practice that was created last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LastPractice {
    practice_id: PracticeId,
}

impl Store {
    /// Creates a practice, unless its owner has `limit` of them. Every such creation replaces one item of the owner, so of concurrent
    /// ones one succeeds, and the others count again: they get [`Created::Raced`].
    pub async fn create_practice(
        &self,
        owner: &Owner,
        once: &Once,
        practice: &Practice,
        limit: usize,
    ) -> Result<Created, StoreError> {
        let key = keys::practice_creation(owner);
        // Read before the practices are counted.
        let version = self.get::<LastPractice>(&key).await?.map_or(0, |found| found.version);
        if self.all_practices(owner, limit).await?.len() >= limit {
            return Ok(Created::TooMany);
        }
        let last = item(&LastPractice { practice_id: practice.practice_id }, &Extras::default())?;
        let create = Write::Create {
            key: keys::practice(owner, practice.practice_id),
            item: item(practice, &Extras::default())?,
        };
        let written = self.commit(once, vec![Write::over(key, version, last), create]).await?;
        Ok(if written.done() { Created::Yes } else { Created::Raced })
    }

    /// Also finds a practice whose check-ins are being deleted.
    pub async fn practice(
        &self,
        owner: &Owner,
        id: PracticeId,
    ) -> Result<Option<Versioned<Practice>>, StoreError> {
        self.get(&keys::practice(owner, id)).await
    }

    /// Newest first.
    pub async fn practices(
        &self,
        owner: &Owner,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<Practice>, StoreError> {
        self.query(&keys::practices(owner), after, limit, Order::Newest).await
    }

    /// The newest practices without those that are being deleted, at most `max`.
    pub async fn all_practices(&self, owner: &Owner, max: usize) -> Result<Vec<Practice>, StoreError> {
        /// More pages than all that an owner can make. An import may bring more.
        const PAGES: usize = 20;
        let (mut practices, mut after) = (Vec::new(), None::<String>);
        for _ in 0..PAGES {
            let found = self.practices(owner, after.as_deref(), 100).await?;
            let of_page = found.items.into_iter().map(|(_, practice)| practice.value);
            practices.extend(of_page.filter(|practice| !practice.is_deleted));
            after = found.last;
            if after.is_none() || practices.len() >= max {
                break;
            }
        }
        practices.truncate(max);
        Ok(practices)
    }

    /// Replaces the practice that was read at `version`.
    pub async fn replace_practice(
        &self,
        owner: &Owner,
        practice: &Practice,
        version: u64,
    ) -> Result<Written, StoreError> {
        let key = keys::practice(owner, practice.practice_id);
        self.replace(&key, version, item(practice, &Extras::default())?).await
    }

    /// Stores a check-in over an earlier one of the same day, with the practice that was read at `version` and has its mark.
    pub async fn check_in(
        &self,
        owner: &Owner,
        once: &Once,
        (practice, version): (&Practice, u64),
        check_in: &CheckIn,
    ) -> Result<Written, StoreError> {
        let id = practice.practice_id;
        let plain = Extras::default();
        let writes = vec![
            Write::Replace { key: keys::practice(owner, id), version, item: item(practice, &plain)? },
            Write::Put { key: keys::check_in(owner, id, check_in.date), item: item(check_in, &plain)? },
        ];
        self.commit(once, writes).await
    }

    /// Deletes the check-in of a day, with the practice that was read at `version` and no longer has its mark.
    pub async fn delete_check_in(
        &self,
        owner: &Owner,
        (practice, version): (&Practice, u64),
        day: Date,
    ) -> Result<Written, StoreError> {
        let id = practice.practice_id;
        let item = item(practice, &Extras::default())?;
        self.write_all(vec![
            Write::Replace { key: keys::practice(owner, id), version, item },
            Write::Delete { key: keys::check_in(owner, id, day), must_exist: false },
        ])
        .await
    }

    pub async fn check_in_of(
        &self,
        owner: &Owner,
        id: PracticeId,
        day: Date,
    ) -> Result<Option<CheckIn>, StoreError> {
        Ok(self.get(&keys::check_in(owner, id, day)).await?.map(|found| found.value))
    }

    /// Newest first, before the sort key `before`.
    pub async fn check_ins(
        &self,
        owner: &Owner,
        id: PracticeId,
        before: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<CheckIn>, StoreError> {
        self.query(&keys::check_ins(owner, id), before, limit, Order::Newest).await
    }

    /// Deletes the check-ins of a practice, and then its record. The record must say that it is deleted, so that no check-in is added.
    pub async fn delete_practice(&self, owner: &Owner, id: PracticeId) -> Result<(), StoreError> {
        self.delete_range(&keys::check_ins(owner, id)).await?;
        self.delete(&keys::practice(owner, id)).await
    }
}
