//! Exports of accounts.

use domain::accounts::export::{EXPORT_KEPT, Export};
use domain::ids::{ExportId, Owner};
use jiff::Timestamp;

use super::keys;
use super::table::{Extras, Order, QueryPage, Store, StoreError, Versioned, Write, Written, item};

impl Store {
    /// The write of an export that was read at `version`, 0 if it is new. `continues_at`: when a sweep looks at it, if it has not
    /// ended.
    pub fn export_write(
        owner: &Owner,
        export: &Export,
        version: u64,
        continues_at: Timestamp,
    ) -> Result<Write, StoreError> {
        let due = (!export.has_ended()).then(|| (keys::shard(export.export_id.uuid()), continues_at));
        let extras = Extras { due, expires: Some(export.requested_at + EXPORT_KEPT) };
        let key = keys::export(owner, export.export_id);
        Ok(Write::over(key, version, item(export, &extras)?))
    }

    /// Saves an export, as [`Store::export_write`] describes it, for an executor.
    pub async fn save_export(
        &self,
        owner: &Owner,
        export: &Export,
        version: u64,
        continues_at: Timestamp,
    ) -> Result<Written, StoreError> {
        self.write_all(vec![Self::export_write(owner, export, version, continues_at)?]).await
    }

    pub async fn export(&self, owner: &Owner, id: ExportId) -> Result<Option<Versioned<Export>>, StoreError> {
        self.get(&keys::export(owner, id)).await
    }

    /// The exports, newest first.
    pub async fn exports(&self, owner: &Owner, limit: usize) -> Result<QueryPage<Export>, StoreError> {
        self.query(&keys::exports(owner), None, limit, Order::Newest).await
    }
}
