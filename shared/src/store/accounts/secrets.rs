//! Secrets for the calls of actions. Their values are encrypted.

use domain::ids::Owner;
use domain::secrets::{MAX_SECRETS, SecretName, SecretTerms};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::store::keys;
use crate::store::table::{Extras, Order, Store, StoreError, Versioned, Write, Written, item};

/// A stored secret. The version of its item is the version that people see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnSecret {
    pub name: SecretName,
    pub terms: SecretTerms,
    pub stored_at: Timestamp,
    /// The encrypted value.
    pub sealed: String,
    /// The number of the master key that encrypted it.
    pub master: u32,
}

impl Store {
    /// Stores a secret over the one that was read at `version`. `0`: there was none.
    pub async fn put_secret(
        &self,
        owner: &Owner,
        secret: &OwnSecret,
        version: u64,
    ) -> Result<Written, StoreError> {
        let key = keys::secret(owner, &secret.name);
        let write = Write::over(key, version, item(secret, &Extras::default())?);
        self.write_all(vec![write]).await
    }

    pub async fn secret(
        &self,
        owner: &Owner,
        name: &SecretName,
    ) -> Result<Option<Versioned<OwnSecret>>, StoreError> {
        self.get(&keys::secret(owner, name)).await
    }

    /// All secrets of an owner, by name. Requests at the same time may have stored a few more than the limit.
    pub async fn secrets(&self, owner: &Owner) -> Result<Vec<Versioned<OwnSecret>>, StoreError> {
        let page = self.query(&keys::secrets(owner), None, 2 * MAX_SECRETS, Order::Oldest).await?;
        Ok(page.items.into_iter().map(|(_, secret)| secret).collect())
    }

    /// Deletes a secret. It is refused if there is none.
    pub async fn delete_secret(&self, owner: &Owner, name: &SecretName) -> Result<Written, StoreError> {
        self.write_all(vec![Write::Delete { key: keys::secret(owner, name), must_exist: true }]).await
    }
}
