//! The deletion of an account. An executor does the work, in as many invocations as it needs.

use domain::accounts::deletion::{DeletionState, Kept, KeptCopy, KeptCount, Left, Receipt};
use domain::accounts::quota::Month;
use domain::background::dispatch::LEASE;
use domain::ceilings::CeilingOf;
use domain::ids::{Owner, ReceiptId};
use domain::validate::FieldErrors;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rand::Rng;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::blobs::BlobKey;
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::background::{due, lease};
use crate::money::ceilings;
use crate::store::accounts::deletions::CHANGED_AT_ONCE;
use crate::store::keys::{self, Key};
use crate::store::partitions::Partition;
use crate::store::table::{Condition, Write};
use crate::store::{DueItem, Store, Tries, Versioned, Walk};

/// A deletion that was accepted.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AcceptedDeletion {
    pub receipt_id: ReceiptId,
    /// The path of the receipt. It needs no credentials, because they are deleted, too.
    #[schema(example = "/receipts/rcp_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c")]
    pub receipt: String,
}

impl From<ReceiptId> for AcceptedDeletion {
    fn from(receipt_id: ReceiptId) -> Self {
        Self { receipt_id, receipt: format!("/receipts/{receipt_id}") }
    }
}

/// Accepts the deletion of an account. A repeated call names the same receipt.
///
/// # Errors
/// 400 if `confirm` is not the owner.
pub async fn request(cx: &Cx, owner: &Owner, confirm: &str) -> Result<AcceptedDeletion> {
    let mut errors = FieldErrors::default();
    if confirm != owner.as_str() {
        errors.add("confirm", "must be the `owner` of `GET /account`, because nothing can be restored");
    }
    errors.into_result(())?;
    let mut tries = Tries::default();
    let receipt_id = loop {
        tries.next().await?;
        if let Some(found) = cx.store.deletion(owner).await? {
            break found.value.receipt_id;
        }
        // The id protects the receipt, so all of it is random.
        let receipt_id = ReceiptId::from_uuid(Uuid::from_bytes(rand::rng().random()));
        let now = cx.clock.now();
        if cx.store.begin_deletion(owner, &Receipt::new(receipt_id, now), now + LEASE).await?.done() {
            break receipt_id;
        }
    };
    cx.deletions.learn(owner, Some(receipt_id), cx.clock.now());
    due::dispatch(cx, &DueItem::deletion(owner)).await;
    tracing::info!("the deletion of an account was accepted");
    Ok(receipt_id.into())
}

/// Reads a receipt.
///
/// # Errors
/// 404 if it does not exist, or was kept long enough.
pub async fn receipt(cx: &Cx, id: ReceiptId) -> Result<Receipt> {
    cx.store.receipt(id).await?.ok_or(Error::NotFound("receipt"))
}

/// Continues a deletion.
///
/// # Errors
/// If the table or the bucket does not answer. What was removed stays removed; a sweep continues.
pub(crate) async fn go_on(cx: &Cx, owner: &Owner, deadline: Timestamp) -> Result<()> {
    let Some(found) = cx.store.deletion(owner).await? else { return Ok(()) };
    let now = cx.clock.now();
    let confirms = found.value.confirms(now);
    if found.value.state == DeletionState::Waiting && !confirms {
        return Ok(());
    }
    // A repeated request or a message that came twice finds that an executor works.
    if found.value.is_leased(now) {
        return Ok(());
    }
    let mut work = Work { cx, owner, deletion: found, deadline };
    // The version says which executor works. One whose lease has ended stops at its next write.
    if !work.keep().await? {
        return Ok(());
    }
    // API keys stay until the end, so that their holders are told what has happened.
    let mut removal = work.remove_records(confirms).await?;
    if removal == Removal::Complete {
        removal = work.remove_objects().await?;
    }
    match removal {
        Removal::Complete => {}
        Removal::OutOfTime => return work.hand_on().await,
        Removal::TakenOver => return Ok(()),
    }
    if !confirms {
        let continues_at = work.deletion.value.wait();
        work.release(continues_at).await?;
        return Ok(());
    }
    let left = left(cx, owner).await?;
    let mut copies = Vec::new();
    if left.is_nothing() {
        // Erasing may take long, so it begins with a whole lease.
        if !work.keep().await? {
            return Ok(());
        }
        copies = erased(cx, owner).await;
    }
    let Some(again_at) = work.deletion.value.checked(left, copies) else {
        work.deletion.value.leased_until = None;
        let Versioned { value, version } = &work.deletion;
        if cx.store.end_deletion(owner, value, *version, cx.clock.now()).await?.done() {
            cx.deletions.learn(owner, None, cx.clock.now());
            tracing::info!("an account was deleted, and nothing is left but what its receipt names");
        }
        return Ok(());
    };
    tracing::warn!(
        records = left.records,
        objects = left.objects,
        copies = work.deletion.value.copies.len(),
        "a deletion is repeated, because something was left"
    );
    work.release(again_at).await?;
    Ok(())
}

/// How a removal ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Removal {
    /// There was nothing more to remove.
    Complete,
    /// The time of the invocation is over.
    OutOfTime,
    /// Another executor does the work. This one must not write any more.
    TakenOver,
}

/// The work of one invocation.
struct Work<'a> {
    cx: &'a Cx,
    owner: &'a Owner,
    deletion: Versioned<Receipt>,
    deadline: Timestamp,
}

impl Work<'_> {
    /// Removes the owner's records. A page is removed in the transactions that count it. So the counts are exact, wherever an
    /// executor is cut off, and an executor that was replaced removes nothing.
    async fn remove_records(&mut self, with_keys: bool) -> Result<Removal> {
        let now = self.cx.clock.now();
        let counts = Count::all(self.owner, now);
        let mut kept = Vec::new();
        let mut walk = Walk::new(self.owner, now);
        while let Some((partition, items)) = walk.next(&self.cx.store).await? {
            if partition == Partition::ApiKeys && !with_keys {
                continue;
            }
            let mut removed = Vec::new();
            for item in &items {
                let key = Store::key_in(item)?;
                match counts.iter().find(|count| count.key == key) {
                    Some(count) => kept.push(count),
                    None => removed.push(Write::Delete { key, must_exist: false }),
                }
            }
            // An invocation that removes nothing must not stop here: the next one would not come further.
            if removed.is_empty() {
                continue;
            }
            for part in removed.chunks(CHANGED_AT_ONCE) {
                self.deletion.value.count_records(partition.kind(), part.len() as u64);
                if !self.save(part.to_vec()).await? {
                    return Ok(Removal::TakenOver);
                }
            }
            if self.is_out_of_time() {
                return Ok(Removal::OutOfTime);
            }
        }
        self.deletion.value.kept = kept.iter().map(|count| count.kept).collect();
        let expire = kept.into_iter().map(Count::expire).collect();
        Ok(if self.save(expire).await? { Removal::Complete } else { Removal::TakenOver })
    }

    /// Removes all versions of the owner's objects. An executor that is cut off between a removal and the write after it does not
    /// count that removal: at most one page of objects.
    async fn remove_objects(&mut self) -> Result<Removal> {
        let everything = BlobKey::everything(self.owner);
        loop {
            let removed = self.cx.blobs.delete_versions(&everything).await?;
            if removed == 0 {
                return Ok(Removal::Complete);
            }
            self.deletion.value.removed_objects += removed;
            if !self.keep().await? {
                return Ok(Removal::TakenOver);
            }
            if self.is_out_of_time() {
                return Ok(Removal::OutOfTime);
            }
        }
    }

    fn is_out_of_time(&self) -> bool {
        lease::is_time_up(self.cx, self.deadline) || self.cx.stopping.is_set()
    }

    /// Saves, and keeps the work. `false` if another executor has it.
    async fn keep(&mut self) -> Result<bool> {
        self.save(Vec::new()).await
    }

    /// Makes these changes and saves, both or nothing, and keeps the work. `false` if another executor has it.
    async fn save(&mut self, changes: Vec<Write>) -> Result<bool> {
        let until = self.cx.clock.now() + LEASE;
        self.deletion.value.leased_until = Some(until);
        self.write(until, changes).await
    }

    /// Saves, and lets any executor continue at this time. `false` if another executor has the work already.
    async fn release(&mut self, continues_at: Timestamp) -> Result<bool> {
        self.deletion.value.leased_until = None;
        self.write(continues_at, Vec::new()).await
    }

    async fn write(&mut self, continues_at: Timestamp, changes: Vec<Write>) -> Result<bool> {
        let Versioned { value, version } = &mut self.deletion;
        let saved =
            self.cx.store.save_deletion(self.owner, value, *version, continues_at, changes).await?.done();
        // After a refusal, the version must stay: the next one is the other executor's.
        if saved {
            *version += 1;
        }
        Ok(saved)
    }

    /// Lets another invocation continue at once.
    async fn hand_on(mut self) -> Result<()> {
        let now = self.cx.clock.now();
        if self.release(now + LEASE).await? {
            due::dispatch(self.cx, &DueItem::deletion(self.owner)).await;
        }
        Ok(())
    }
}

/// A record that counts for a limit of the current day or month. It stays when an account is deleted. Otherwise, somebody who
/// deletes an account and opens it again would have the whole day's ceiling and the whole month's quota again.
struct Count {
    key: Key,
    /// A number of the record.
    number: &'static str,
    kept: Kept,
}

impl Count {
    fn all(owner: &Owner, now: Timestamp) -> Vec<Self> {
        let month = Month::at(now);
        let tonight = ceilings::ends(CeilingOf::Day, now).unwrap_or_else(|| month.end());
        let count = |key, number, what, until| Self { key, number, kept: Kept { what, until } };
        let today = TimeZone::UTC.to_datetime(now).date();
        vec![
            count(keys::spend(owner, today), "committed_micros", KeptCount::DaySpending, tonight),
            count(
                keys::month_spend(owner, month, None),
                "committed_micros",
                KeptCount::MonthSpending,
                month.end(),
            ),
            count(keys::month_requests(owner, month), "used", KeptCount::MonthRequests, month.end()),
        ]
    }

    /// The write that lets the record expire. It adds nothing, so it keeps what a call that ends late adds at the same time. Such
    /// a call sets a later time, which the last removal replaces.
    fn expire(&self) -> Write {
        Write::Add {
            key: self.key.clone(),
            numbers: vec![(self.number, 0)],
            only_if: Condition::Always,
            expires: Some(self.kept.until),
        }
    }
}

/// Erases what was removed, and returns the places that may still have copies of it.
async fn erased(cx: &Cx, owner: &Owner) -> Vec<KeptCopy> {
    let Some(eraser) = &cx.config.aws.eraser else { return KeptCopy::on_aws(cx.clock.now()) };
    match eraser.erase(owner).await {
        Ok(()) => Vec::new(),
        Err(problem) => {
            tracing::warn!(problem, "the data of a deleted account is not erased from the files yet");
            vec![KeptCopy::in_the_table_file()]
        }
    }
}

/// What the account still has, besides the records that the receipt names.
async fn left(cx: &Cx, owner: &Owner) -> Result<Left> {
    let now = cx.clock.now();
    let counts = Count::all(owner, now);
    let mut records = 0;
    let mut walk = Walk::new(owner, now);
    while let Some((_, items)) = walk.next(&cx.store).await? {
        for item in &items {
            let key = Store::key_in(item)?;
            records += u64::from(counts.iter().all(|count| count.key != key));
        }
    }
    let objects = cx.blobs.count_versions(&BlobKey::everything(owner)).await?;
    Ok(Left { records, objects, checked_at: cx.clock.now() })
}
