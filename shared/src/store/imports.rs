//! The import of an account.

use domain::accounts::import::AccountImport;
use domain::ids::Owner;
use jiff::Timestamp;

use super::keys;
use super::table::{Extras, Store, StoreError, Versioned, Write, Written, item};

impl Store {
    pub async fn account_import(
        &self,
        owner: &Owner,
    ) -> Result<Option<Versioned<AccountImport>>, StoreError> {
        self.get(&keys::account_import(owner)).await
    }

    /// The write of an import that was read at `version`, 0 if there was none. `continues_at`: when a sweep looks at it, if it
    /// has not ended.
    pub fn account_import_write(
        owner: &Owner,
        import: &AccountImport,
        version: u64,
        continues_at: Timestamp,
    ) -> Result<Write, StoreError> {
        let due = (!import.has_ended()).then(|| (keys::shard_of_owner(owner), continues_at));
        let item = item(import, &Extras { due, expires: None })?;
        Ok(Write::over(keys::account_import(owner), version, item))
    }

    /// Saves an import, as [`Store::account_import_write`] describes it, for an executor.
    pub async fn save_account_import(
        &self,
        owner: &Owner,
        import: &AccountImport,
        version: u64,
        continues_at: Timestamp,
    ) -> Result<Written, StoreError> {
        self.write_all(vec![Self::account_import_write(owner, import, version, continues_at)?]).await
    }
}
