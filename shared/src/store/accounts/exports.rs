//! Exports of accounts.

use domain::accounts::export::{EXPORT_KEPT, Export};
use domain::ids::{ExportId, Owner};
use jiff::Timestamp;

use crate::store::keys;
use crate::store::runs::jobs::Job;
use crate::store::table::{Extras, Order, QueryPage, Store, StoreError, Versioned, Write, item};

impl Job for Export {
    fn begin(&mut self, now: Timestamp) -> bool {
        Self::begin(self, now)
    }

    fn write(&self, owner: &Owner, version: u64, continues_at: Timestamp) -> Result<Write, StoreError> {
        let due = (!self.has_ended()).then(|| (keys::shard(self.export_id.uuid()), continues_at));
        let extras = Extras { due, expires: Some(self.requested_at + EXPORT_KEPT) };
        Ok(Write::over(keys::export(owner, self.export_id), version, item(self, &extras)?))
    }
}

impl Store {
    pub async fn export(&self, owner: &Owner, id: ExportId) -> Result<Option<Versioned<Export>>, StoreError> {
        self.get(&keys::export(owner, id)).await
    }

    /// The exports, newest first.
    pub async fn exports(&self, owner: &Owner, limit: usize) -> Result<QueryPage<Export>, StoreError> {
        self.query(&keys::exports(owner), None, limit, Order::Newest).await
    }
}
