//! API keys, stored by hash.

use std::time::Duration;

use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use domain::accounts::scopes::Scope;
use domain::ids::{ApiKeyId, Owner};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::store::idempotency::Once;
use crate::store::keys;
use crate::store::table::{
    Extras, Order, QueryPage, Store, StoreError, Write, Written, item, key_of, text, unavailable,
};

/// How long a request waits until the use of its key is noted.
const PATIENCE: Duration = Duration::from_secs(1);

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
    /// The highest scope. Keys that were made before there were scopes have all of them.
    #[serde(default = "all_scopes")]
    pub scope: Scope,
    /// The hour of the last use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used: Option<Timestamp>,
}

const fn all_scopes() -> Scope {
    Scope::Admin
}

impl Store {
    pub async fn create_api_key(
        &self,
        owner: &Owner,
        once: &Once,
        key: &ApiKey,
    ) -> Result<Written, StoreError> {
        let extras = Extras { expires: key.expires_at, due: None };
        let write = Write::Create { key: keys::api_key(owner, key.key_id), item: item(key, &extras)? };
        self.commit(once, vec![write]).await
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

    /// Notes that a key was used in the hour that begins at `hour`. It writes only the attribute `last_used`, which is
    /// all that the authorizer may change. It does not bring a revoked key back, and never sets an earlier hour.
    pub async fn note_api_key_use(
        &self,
        owner: &Owner,
        id: ApiKeyId,
        hour: Timestamp,
    ) -> Result<(), StoreError> {
        let once = aws_sdk_dynamodb::Config::builder()
            .retry_config(RetryConfig::disabled())
            .timeout_config(TimeoutConfig::builder().operation_timeout(PATIENCE).build());
        let noted = self
            .client
            .update_item()
            .table_name(&*self.table)
            .set_key(Some(key_of(&keys::api_key(owner, id))))
            .update_expression("SET last_used = :hour")
            .condition_expression(
                "attribute_exists(pk) AND (attribute_not_exists(last_used) OR last_used < :hour)",
            )
            .expression_attribute_values(":hour", text(&hour.to_string()))
            .customize()
            .config_override(once)
            .send()
            .await;
        match noted {
            Ok(_) => Ok(()),
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(_)) => Ok(()),
                _ => Err(unavailable(&error)),
            },
        }
    }
}
