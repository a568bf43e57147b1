//! The record of an account.

use domain::accounts::profile::Account;
use domain::ids::Owner;

use super::keys;
use super::table::{Extras, Store, StoreError, Versioned, Write, Written, item};

impl Store {
    /// The record. An owner who has changed nothing has version 0.
    pub async fn account(&self, owner: &Owner) -> Result<Versioned<Account>, StoreError> {
        let found = self.get(&keys::account(owner)).await?;
        Ok(found.unwrap_or_else(|| Versioned { value: Account::default(), version: 0 }))
    }

    pub async fn replace_account(
        &self,
        owner: &Owner,
        account: &Account,
        version: u64,
    ) -> Result<Written, StoreError> {
        let item = item(account, &Extras::default())?;
        self.write_all(vec![Write::over(keys::account(owner), version, item)]).await
    }
}
