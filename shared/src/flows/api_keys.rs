//! API keys: created, listed, revoked. The key itself is shown once; only its hash is stored.

use domain::accounts::ApiKeyToken;
use domain::ids::{ApiKeyId, Owner};
use domain::validate::FieldErrors;
use futures::FutureExt;
use jiff::{SignedDuration, Timestamp};
use rand::Rng;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::context::Cx;
use crate::page::{self, Page, PageQuery};
use crate::problem::{Error, Result};
use crate::store::ApiKey;

/// The longest name, in characters.
const MAX_NAME: usize = 100;

/// The longest lifetime, in days.
const MAX_DAYS: i64 = 365;

/// The input that creates a key.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[schema(example = json!({"name": "laptop", "expires_in_days": 90}))]
pub struct NewApiKey {
    /// 1 to 100 characters, for people.
    #[serde(default)]
    #[schema(required = true, min_length = 1, max_length = 100)]
    pub name: String,
    /// 1 to 365. Without it, the key is valid until it is revoked.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 365)]
    pub expires_in_days: Option<i64>,
}

/// A key in a list.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ApiKeyView {
    pub key_id: ApiKeyId,
    pub name: String,
    pub created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// A key that was just created.
#[derive(Clone, Serialize, ToSchema)]
pub struct CreatedApiKey {
    #[serde(flatten)]
    pub key: ApiKeyView,
    /// The key. Only this answer contains it. A replay for the same `Idempotency-Key` does not.
    #[schema(required = false, example = "llk_bG9jYWw.01938f2a7c5e7d3a9b1f4c6d8e0a2b4c.…")]
    pub api_key: String,
}

impl From<ApiKey> for ApiKeyView {
    fn from(ApiKey { key_id, name, created_at, expires_at, .. }: ApiKey) -> Self {
        Self { key_id, name, created_at, expires_at }
    }
}

/// # Errors
/// 400 with every invalid field and its limit.
pub async fn create(cx: &Cx, owner: &Owner, input: NewApiKey) -> Result<CreatedApiKey> {
    let mut errors = FieldErrors::default();
    errors.length("name", &input.name, 1, MAX_NAME);
    if let Some(days) = input.expires_in_days
        && !(1..=MAX_DAYS).contains(&days)
    {
        errors.add("expires_in_days", format!("must be 1 to {MAX_DAYS}, is {days}"));
    }
    errors.into_result(())?;
    let now = cx.clock.now();
    let key_id = ApiKeyId::from_uuid(cx.clock.uuid());
    let token = ApiKeyToken::new(owner.clone(), key_id, rand::rng().random());
    let key = ApiKey {
        key_id,
        name: input.name.trim().to_owned(),
        hash: token.hash().to_string(),
        created_at: now,
        expires_at: input.expires_in_days.map(|days| now + SignedDuration::from_hours(24 * days)),
    };
    if !cx.store.create_api_key(owner, &key).await?.done() {
        return Err(Error::internal("a new id was taken"));
    }
    Ok(CreatedApiKey { key: key.into(), api_key: token.reveal() })
}

/// The active keys, newest first.
///
/// # Errors
/// 400 if `limit` or `cursor` is invalid.
pub async fn list(cx: &Cx, owner: &Owner, query: &PageQuery) -> Result<Page<ApiKeyView>> {
    let newest = |after: Option<String>, limit| {
        async move { cx.store.api_keys(owner, after.as_deref(), limit).await }.boxed()
    };
    let now = cx.clock.now();
    let holds = |key: &ApiKey| key.expires_at.is_none_or(|at| at > now);
    Ok(page::filtered(owner, "api-keys", query, newest, holds).await?.map(|key| key.value.into()))
}

/// Revokes a key.
///
/// # Errors
/// 404 if it does not exist.
pub async fn revoke(cx: &Cx, owner: &Owner, id: ApiKeyId) -> Result<()> {
    cx.store.api_key(owner, id).await?.ok_or(Error::NotFound("API key"))?;
    Ok(cx.store.delete_api_key(owner, id).await?)
}
