//! Deletions of accounts, and their receipts.

use domain::accounts::deletion::{RECEIPT_KEPT, Receipt};
use domain::ids::{Owner, ReceiptId};
use jiff::Timestamp;

use crate::store::keys::{self, Key};
use crate::store::table::{Attributes, Extras, Store, StoreError, Versioned, Write, Written, item};

/// How many items are changed with one save. A transaction has at most 100 writes, and a save itself needs two.
pub const CHANGED_AT_ONCE: usize = 98;

impl Store {
    /// Begins a deletion that a sweep continues at `continues_at`. Refused if the account is already being deleted.
    pub async fn begin_deletion(
        &self,
        owner: &Owner,
        receipt: &Receipt,
        continues_at: Timestamp,
    ) -> Result<Written, StoreError> {
        self.save_deletion(owner, receipt, 0, continues_at, Vec::new()).await
    }

    /// The deletion of the owner's account, if there is one.
    pub async fn deletion(&self, owner: &Owner) -> Result<Option<Versioned<Receipt>>, StoreError> {
        self.get(&keys::deletion(owner)).await
    }

    /// Saves how far a deletion has come with up to [`CHANGED_AT_ONCE`] changes, all or nothing. Refused if another executor has
    /// saved since `version`. The changes must have no conditions.
    pub async fn save_deletion(
        &self,
        owner: &Owner,
        receipt: &Receipt,
        version: u64,
        continues_at: Timestamp,
        changes: Vec<Write>,
    ) -> Result<Written, StoreError> {
        let due = Some((keys::shard_of_owner(owner), continues_at));
        let state = item(receipt, &Extras { due, expires: None })?;
        let shown = Receipt { leased_until: None, ..receipt.clone() };
        let copy = item(&shown, &Extras::default())?;
        let mut writes = vec![
            Write::over(keys::deletion(owner), version, state),
            Write::Put { key: keys::receipt(receipt.receipt_id), item: copy },
        ];
        writes.extend(changes);
        self.write_all(writes).await
    }

    /// The key of an item that a walk has found.
    pub fn key_in(attributes: &Attributes) -> Result<Key, StoreError> {
        let part = |name: &str| attributes.get(name).and_then(|value| value.as_s().ok()).cloned();
        match (part("pk"), part("sk")) {
            (Some(pk), Some(sk)) => Ok(Key::new(pk, sk)),
            _ => Err(StoreError::Invalid { cause: "an item has no key".to_owned() }),
        }
    }

    /// Ends a deletion: its receipt stays, for a while. Refused if another executor has saved since `version`.
    pub async fn end_deletion(
        &self,
        owner: &Owner,
        receipt: &Receipt,
        version: u64,
        now: Timestamp,
    ) -> Result<Written, StoreError> {
        let copy = item(receipt, &Extras::expiring(now + RECEIPT_KEPT))?;
        self.write_all(vec![
            Write::Remove { key: keys::deletion(owner), version },
            Write::Put { key: keys::receipt(receipt.receipt_id), item: copy },
        ])
        .await
    }

    pub async fn receipt(&self, id: ReceiptId) -> Result<Option<Receipt>, StoreError> {
        Ok(self.get(&keys::receipt(id)).await?.map(|found| found.value))
    }
}
