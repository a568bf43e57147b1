//! What a process knows about the deletions of accounts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use domain::ids::{Owner, ReceiptId};
use jiff::{SignedDuration, Timestamp};

use crate::store::{Store, StoreError};

/// How long a process trusts what it has read. [`domain::accounts::deletion::SETTLED_AFTER`] includes it.
const TRUSTED: SignedDuration = SignedDuration::from_secs(30);

/// How many owners a process remembers.
const REMEMBERED: usize = 10_000;

/// What a process knows about the deletions of accounts. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Deletions(Arc<Mutex<HashMap<Owner, Known>>>);

#[derive(Clone, Copy, Debug)]
struct Known {
    receipt: Option<ReceiptId>,
    read_at: Timestamp,
}

impl Deletions {
    /// The receipt of the owner's deletion. `None` if the account is not being deleted.
    ///
    /// # Errors
    /// If the table does not answer.
    pub async fn of(
        &self,
        store: &Store,
        owner: &Owner,
        now: Timestamp,
    ) -> Result<Option<ReceiptId>, StoreError> {
        if let Some(known) = self.known().get(owner)
            && now.duration_since(known.read_at).abs() < TRUSTED
        {
            return Ok(known.receipt);
        }
        let receipt = store.deletion(owner).await?.map(|found| found.value.receipt_id);
        self.learn(owner, receipt, now);
        Ok(receipt)
    }

    /// Notes what was read or written.
    pub fn learn(&self, owner: &Owner, receipt: Option<ReceiptId>, now: Timestamp) {
        let mut known = self.known();
        if known.len() >= REMEMBERED {
            known.retain(|_, known| now.duration_since(known.read_at).abs() < TRUSTED);
        }
        if known.len() < REMEMBERED {
            known.insert(owner.clone(), Known { receipt, read_at: now });
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<Owner, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_is_bounded_and_forgets_what_is_old() {
        let deletions = Deletions::default();
        let owner = |n: usize| Owner::new(format!("o{n}")).unwrap();
        let at = |second| Timestamp::from_second(second).unwrap();
        for n in 0..REMEMBERED + 5 {
            deletions.learn(&owner(n), None, at(0));
        }
        assert_eq!(deletions.known().len(), REMEMBERED);
        deletions.learn(&owner(REMEMBERED + 9), None, at(31));
        assert_eq!(deletions.known().len(), 1);
    }
}
