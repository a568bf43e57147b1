//! Model servers of owners. Their keys are encrypted.

use domain::accounts::servers::{MAX_SERVERS, ServerSettings};
use domain::ids::Owner;
use domain::models::ServerName;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::store::keys;
use crate::store::table::{Extras, Order, Store, StoreError, Write, Written, item};

/// A stored server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnServer {
    pub name: ServerName,
    pub settings: ServerSettings,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<SealedKey>,
}

/// The key of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedKey {
    /// The end of the key, by which its owner recognises it.
    pub last_characters: String,
    /// The encrypted key.
    pub sealed: String,
    /// The number of the master key that encrypted it.
    pub master: u32,
}

impl Store {
    pub async fn put_server(&self, owner: &Owner, server: &OwnServer) -> Result<(), StoreError> {
        self.put(&keys::server(owner, server.name), item(server, &Extras::default())?).await
    }

    /// All servers of an owner, by name. Requests at the same time may have stored a few more than the limit.
    pub async fn servers(&self, owner: &Owner) -> Result<Vec<OwnServer>, StoreError> {
        let page = self.query(&keys::servers(owner), None, 2 * MAX_SERVERS, Order::Oldest).await?;
        Ok(page.items.into_iter().map(|(_, server)| server.value).collect())
    }

    /// Deletes a server. It is refused if there is none.
    pub async fn delete_server(&self, owner: &Owner, name: ServerName) -> Result<Written, StoreError> {
        let key = keys::server(owner, name);
        self.write_all(vec![Write::Delete { key, must_exist: true }]).await
    }
}
