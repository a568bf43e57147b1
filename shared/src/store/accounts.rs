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

    /// The write of an account over the one that was read at `version`.
    pub fn account_write(owner: &Owner, account: &Account, version: u64) -> Result<Write, StoreError> {
        Ok(Write::over(keys::account(owner), version, item(account, &Extras::default())?))
    }

    pub async fn replace_account(
        &self,
        owner: &Owner,
        account: &Account,
        version: u64,
    ) -> Result<Written, StoreError> {
        self.write_all(vec![Self::account_write(owner, account, version)?]).await
    }
}
