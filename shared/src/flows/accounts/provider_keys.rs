//! The provider keys of an owner: stored, listed, deleted. A key is never shown again.

use domain::accounts::{KeyProvider, UnknownProvider, checked_provider_key};
use domain::ids::Owner;
use domain::validate::FieldErrors;
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::context::Cx;
use crate::error::{Error, Result};
use crate::store::ProviderKey;

/// The input that stores a key.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(example = json!({"key": "sk-ant-api03-0123456789"}))]
pub struct NewProviderKey {
    /// The provider's key: 16 to 512 visible ASCII characters. Whitespace around it is removed.
    #[serde(default)]
    #[schema(value_type = String, required = true, min_length = 16, max_length = 512, write_only)]
    pub key: SecretString,
}

/// A stored key, without the key itself.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ProviderKeyView {
    /// The provider of the key.
    pub provider: KeyProvider,
    /// The last four characters of the key.
    #[schema(example = "x9Qw")]
    pub last_characters: String,
    /// When the key was stored.
    pub created_at: Timestamp,
}

/// All stored keys.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ProviderKeyList {
    /// One key per provider at most, by the provider's name.
    pub data: Vec<ProviderKeyView>,
}

impl From<ProviderKey> for ProviderKeyView {
    fn from(ProviderKey { provider, last_characters, created_at, .. }: ProviderKey) -> Self {
        Self { provider, last_characters, created_at }
    }
}

/// The provider of a path.
///
/// # Errors
/// 400 if it is unknown.
pub fn provider(text: &str) -> Result<KeyProvider> {
    let known = text.parse();
    Ok(known.map_err(|error: UnknownProvider| FieldErrors::one("provider", error.to_string()))?)
}

/// Stores a key in place of an earlier one.
///
/// # Errors
/// 400 if the key is invalid.
pub async fn put(
    cx: &Cx,
    owner: &Owner,
    provider: KeyProvider,
    input: NewProviderKey,
) -> Result<ProviderKeyView> {
    let key = SecretString::from(checked_provider_key(input.key.expose_secret())?);
    Ok(cx.provider_keys.put(owner, provider, &key).await?.into())
}

pub async fn list(cx: &Cx, owner: &Owner) -> Result<ProviderKeyList> {
    let keys = cx.store.provider_keys(owner).await?;
    Ok(ProviderKeyList { data: keys.into_iter().map(Into::into).collect() })
}

/// Deletes a key.
///
/// # Errors
/// 404 if there is none.
pub async fn delete(cx: &Cx, owner: &Owner, provider: KeyProvider) -> Result<()> {
    if cx.provider_keys.delete(owner, provider).await? {
        return Ok(());
    }
    Err(Error::NotFound("provider key"))
}
