//! The import of an account.

use domain::accounts::import::AccountImport;
use domain::ids::Owner;
use jiff::Timestamp;

use crate::store::keys;
use crate::store::runs::jobs::Job;
use crate::store::table::{Extras, Store, StoreError, Versioned, Write, item};

impl Job for AccountImport {
    fn begin(&mut self, now: Timestamp) -> bool {
        Self::begin(self, now)
    }

    fn write(&self, owner: &Owner, version: u64, continues_at: Timestamp) -> Result<Write, StoreError> {
        let due = (!self.has_ended()).then(|| (keys::shard_of_owner(owner), continues_at));
        let item = item(self, &Extras { due, expires: None })?;
        Ok(Write::over(keys::account_import(owner), version, item))
    }
}

impl Store {
    pub async fn account_import(
        &self,
        owner: &Owner,
    ) -> Result<Option<Versioned<AccountImport>>, StoreError> {
        self.get(&keys::account_import(owner)).await
    }
}
