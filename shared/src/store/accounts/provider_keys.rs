//! Keys of model providers, encrypted.

use domain::accounts::KeyProvider;
use domain::ids::Owner;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::store::keys;
use crate::store::table::{Extras, Order, Store, StoreError, Write, Written, item};

/// A stored provider key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderKey {
    pub provider: KeyProvider,
    /// The end of the key, by which its owner recognises it.
    pub last_characters: String,
    pub created_at: Timestamp,
    /// The encrypted key.
    pub sealed: String,
    /// The number of the master key that encrypted it.
    pub master: u32,
}

impl Store {
    pub async fn put_provider_key(&self, owner: &Owner, key: &ProviderKey) -> Result<(), StoreError> {
        self.put(&keys::provider_key(owner, key.provider), item(key, &Extras::default())?).await
    }

    pub async fn provider_key(
        &self,
        owner: &Owner,
        provider: KeyProvider,
    ) -> Result<Option<ProviderKey>, StoreError> {
        Ok(self.get(&keys::provider_key(owner, provider)).await?.map(|found| found.value))
    }

    /// All provider keys of an owner, by the provider's name.
    pub async fn provider_keys(&self, owner: &Owner) -> Result<Vec<ProviderKey>, StoreError> {
        let limit = KeyProvider::ALL.len();
        let page = self.query(&keys::provider_keys(owner), None, limit, Order::Oldest).await?;
        Ok(page.items.into_iter().map(|(_, key)| key.value).collect())
    }

    /// Deletes a key. It is refused if there is none.
    pub async fn delete_provider_key(
        &self,
        owner: &Owner,
        provider: KeyProvider,
    ) -> Result<Written, StoreError> {
        let key = keys::provider_key(owner, provider);
        self.write_all(vec![Write::Delete { key, must_exist: true }]).await
    }
}
