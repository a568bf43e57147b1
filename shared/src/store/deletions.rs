//! Deletions of accounts, and their receipts.

use domain::accounts::deletion::{RECEIPT_KEPT, Receipt};
use domain::ids::{Owner, ReceiptId};
use jiff::Timestamp;

use super::keys;
use super::table::{Extras, Store, StoreError, Versioned, Write, Written, item};

impl Store {
    /// Begins a deletion that a sweep continues at `continues_at`. Refused if the account is already being deleted.
    pub async fn begin_deletion(
        &self,
        owner: &Owner,
        receipt: &Receipt,
        continues_at: Timestamp,
    ) -> Result<Written, StoreError> {
        self.save_deletion(owner, receipt, 0, continues_at).await
    }

    /// The deletion of the owner's account, if there is one.
    pub async fn deletion(&self, owner: &Owner) -> Result<Option<Versioned<Receipt>>, StoreError> {
        self.get(&keys::deletion(owner)).await
    }

    /// Saves how far a deletion has come. Refused if another executor has saved since `version`.
    pub async fn save_deletion(
        &self,
        owner: &Owner,
        receipt: &Receipt,
        version: u64,
        continues_at: Timestamp,
    ) -> Result<Written, StoreError> {
        let due = Some((keys::shard_of_owner(owner), continues_at));
        let state = item(receipt, &Extras { due, expires: None })?;
        let copy = item(receipt, &Extras::default())?;
        self.transact(vec![
            Write::over(keys::deletion(owner), version, state),
            Write::Put { key: keys::receipt(receipt.receipt_id), item: copy },
        ])
        .await
    }

    /// Ends a deletion: only its receipt stays, for a while. Refused if another executor has saved since `version`.
    pub async fn end_deletion(
        &self,
        owner: &Owner,
        receipt: &Receipt,
        version: u64,
        now: Timestamp,
    ) -> Result<Written, StoreError> {
        let copy = item(receipt, &Extras::expiring(now + RECEIPT_KEPT))?;
        self.transact(vec![
            Write::Remove { key: keys::deletion(owner), version },
            Write::Put { key: keys::receipt(receipt.receipt_id), item: copy },
        ])
        .await
    }

    pub async fn receipt(&self, id: ReceiptId) -> Result<Option<Receipt>, StoreError> {
        Ok(self.get(&keys::receipt(id)).await?.map(|found| found.value))
    }
}
