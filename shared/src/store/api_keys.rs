//! API keys, stored by hash.

use domain::ids::{ApiKeyId, Owner};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::keys;
use super::table::{Extras, Order, QueryPage, Store, StoreError, Write, Written, item};

/// A stored API key. It never contains the key itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKey {
    pub key_id: ApiKeyId,
    pub name: String,
    /// SHA-256 of the secret, hexadecimal.
    pub hash: String,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

impl Store {
    pub async fn create_api_key(&self, owner: &Owner, key: &ApiKey) -> Result<Written, StoreError> {
        let extras = Extras { expires: key.expires_at, due: None };
        let write = Write::Create { key: keys::api_key(owner, key.key_id), item: item(key, &extras)? };
        self.commit(vec![write]).await
    }

    pub async fn api_key(&self, owner: &Owner, id: ApiKeyId) -> Result<Option<ApiKey>, StoreError> {
        Ok(self.get(&keys::api_key(owner, id)).await?.map(|found| found.value))
    }

    pub async fn api_keys(
        &self,
        owner: &Owner,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<ApiKey>, StoreError> {
        self.query(&keys::api_keys(owner), after, limit, Order::Newest).await
    }

    pub async fn delete_api_key(&self, owner: &Owner, id: ApiKeyId) -> Result<(), StoreError> {
        self.delete(&keys::api_key(owner, id)).await
    }
}
