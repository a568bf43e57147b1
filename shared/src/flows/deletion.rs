//! The deletion of an account. An executor does the work, in as many invocations as it needs.

use domain::accounts::deletion::{DeletionState, Left, Receipt};
use domain::dispatch::LEASE;
use domain::ids::{Owner, ReceiptId};
use domain::validate::FieldErrors;
use jiff::{SignedDuration, Timestamp};
use rand::Rng;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::due;
use crate::blobs::BlobKey;
use crate::context::Cx;
use crate::problem::{Error, Result};
use crate::store::partitions::Partition;
use crate::store::{DueItem, Versioned, Walk};

/// An executor saves how far it has come when this time has passed, so that its lease does not end.
const SAVED_EVERY: SignedDuration = SignedDuration::from_secs(30);

/// An executor stops this long before its deadline.
const RESERVE: SignedDuration = SignedDuration::from_secs(20);

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
    let mut tries = super::edit::Tries::default();
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
pub(super) async fn go_on(cx: &Cx, owner: &Owner, deadline: Timestamp) -> Result<()> {
    let Some(found) = cx.store.deletion(owner).await? else { return Ok(()) };
    let now = cx.clock.now();
    let confirms = found.value.confirms(now);
    if found.value.state == DeletionState::Waiting && !confirms {
        return Ok(());
    }
    let mut work = Work { cx, owner, deletion: found, saved_at: now, deadline };
    // The version says which executor works. One whose lease has ended stops at its next save.
    if !work.save(now + LEASE).await? {
        return Ok(());
    }
    // API keys stay until the end, so that their holders are told what has happened.
    let all = work.remove_records(confirms).await? && work.remove_objects().await?;
    if !all {
        return work.hand_on().await;
    }
    if !confirms {
        let continues_at = work.deletion.value.wait();
        work.save(continues_at).await?;
        return Ok(());
    }
    let left = left(cx, owner).await?;
    let Some(again_at) = work.deletion.value.checked(left) else {
        let Versioned { value, version } = &work.deletion;
        if cx.store.end_deletion(owner, value, *version, cx.clock.now()).await?.done() {
            cx.deletions.learn(owner, None, cx.clock.now());
            tracing::info!("an account was deleted, and nothing is left");
        }
        return Ok(());
    };
    tracing::warn!(
        records = left.records,
        objects = left.objects,
        "a deletion is repeated, because something was left"
    );
    work.save(again_at).await?;
    Ok(())
}

/// The work of one invocation.
struct Work<'a> {
    cx: &'a Cx,
    owner: &'a Owner,
    deletion: Versioned<Receipt>,
    saved_at: Timestamp,
    deadline: Timestamp,
}

impl Work<'_> {
    /// Removes the owner's records. `false` if the time is over, or if another executor does the work.
    async fn remove_records(&mut self, with_keys: bool) -> Result<bool> {
        let mut walk = Walk::new(self.owner, self.cx.clock.now());
        while let Some((partition, items)) = walk.next(&self.cx.store).await? {
            if partition == Partition::ApiKeys && !with_keys {
                continue;
            }
            self.cx.store.delete_items(&items).await?;
            self.deletion.value.count_records(partition.kind(), items.len() as u64);
            if !self.may_go_on().await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Removes all versions of the owner's objects. `false` as above.
    async fn remove_objects(&mut self) -> Result<bool> {
        let everything = BlobKey::everything(self.owner);
        loop {
            let removed = self.cx.blobs.delete_versions(&everything).await?;
            if removed == 0 {
                return Ok(true);
            }
            self.deletion.value.removed_objects += removed;
            if !self.may_go_on().await? {
                return Ok(false);
            }
        }
    }

    async fn may_go_on(&mut self) -> Result<bool> {
        let now = self.cx.clock.now();
        if now + RESERVE >= self.deadline || self.cx.stopping.is_set() {
            return Ok(false);
        }
        if now.duration_since(self.saved_at) < SAVED_EVERY {
            return Ok(true);
        }
        self.save(now + LEASE).await
    }

    /// `false` if another executor has saved meanwhile.
    async fn save(&mut self, continues_at: Timestamp) -> Result<bool> {
        let Versioned { value, version } = &self.deletion;
        let saved = self.cx.store.save_deletion(self.owner, value, *version, continues_at).await?.done();
        self.deletion.version += 1;
        self.saved_at = self.cx.clock.now();
        Ok(saved)
    }

    /// Lets another invocation continue at once.
    async fn hand_on(mut self) -> Result<()> {
        let now = self.cx.clock.now();
        if self.save(now + LEASE).await? {
            due::dispatch(self.cx, &DueItem::deletion(self.owner)).await;
        }
        Ok(())
    }
}

/// What the account still has.
async fn left(cx: &Cx, owner: &Owner) -> Result<Left> {
    let mut records = 0;
    let mut walk = Walk::new(owner, cx.clock.now());
    while let Some((_, items)) = walk.next(&cx.store).await? {
        records += items.len() as u64;
    }
    let objects = cx.blobs.count_versions(&BlobKey::everything(owner)).await?;
    Ok(Left { records, objects, checked_at: cx.clock.now() })
}
