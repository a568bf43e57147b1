//! The record of an account. Beside it, what an owner has as a whole: keys, models, limits, usage and costs, exports, imports and the
//! deletion.

pub mod alerts;
pub(super) mod api_keys;
pub mod deletions;
mod exports;
mod imports;
pub(super) mod models;
pub(super) mod provider_keys;
pub mod quota;
mod rates;
pub(super) mod secrets;
pub(super) mod servers;
pub mod spend;
pub mod usage;

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
