//! API keys: created, listed, revoked. The key itself is shown once; only its hash is stored.

use domain::accounts::scopes::Scope;
use domain::accounts::{ApiKeyToken, hour_of_use};
use domain::ids::{ApiKeyId, Owner};
use domain::text::names;
use domain::validate::FieldErrors;
use futures::FutureExt;
use jiff::{SignedDuration, Timestamp};
use rand::Rng;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::page::{self, Page, PageQuery};
use crate::request::caller::Caller;
use crate::store::{ApiKey, Once};

/// The longest name, in characters.
const MAX_NAME: usize = 100;

/// The most entries of `scopes`.
const MAX_SCOPES: usize = Scope::ALL.len();

/// The longest lifetime, in days.
const MAX_DAYS: i64 = 365;

/// The input that creates a key.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[schema(example = json!({"name": "laptop", "expires_in_days": 90, "scopes": ["read"]}))]
pub struct NewApiKey {
    /// 1 to 100 characters, for people.
    #[serde(default)]
    #[schema(required = true, min_length = 1, max_length = 100)]
    pub name: String,
    /// 1 to 365. Without it, the key is valid until it is revoked.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 365)]
    pub expires_in_days: Option<i64>,
    /// What the key may do. `admin` includes `write`, and `write` includes `read`. Without it, the key has all scopes.
    #[serde(default)]
    #[schema(min_items = 1, max_items = 3)]
    pub scopes: Option<Vec<Scope>>,
}

/// A key in a list.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ApiKeyView {
    pub key_id: ApiKeyId,
    pub name: String,
    pub created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// All scopes of the key, with the included ones.
    pub scopes: Vec<Scope>,
    /// The hour in which the key was last used. Absent if it was never used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used: Option<Timestamp>,
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
    fn from(ApiKey { key_id, name, created_at, expires_at, scope, last_used, .. }: ApiKey) -> Self {
        Self { key_id, name, created_at, expires_at, scopes: scope.with_included(), last_used }
    }
}

/// Creates a key of the caller's owner.
///
/// # Errors
/// 400 with every invalid field and its limit; 403 if the key would have a scope that the caller does not have.
pub async fn create(cx: &Cx, caller: &Caller, once: &Once, input: NewApiKey) -> Result<CreatedApiKey> {
    let mut errors = FieldErrors::default();
    names::check(&mut errors, &input.name, MAX_NAME);
    if let Some(days) = input.expires_in_days
        && !(1..=MAX_DAYS).contains(&days)
    {
        errors.add("expires_in_days", format!("must be 1 to {MAX_DAYS}, is {days}"));
    }
    let scopes = input.scopes.as_deref().unwrap_or(&[Scope::Admin]);
    let highest = scopes.iter().copied().max().filter(|_| scopes.len() <= MAX_SCOPES);
    if highest.is_none() {
        errors.add("scopes", format!("must have 1 to {MAX_SCOPES} entries, has {}", scopes.len()));
    }
    errors.into_result(())?;
    let scope = highest.unwrap_or(Scope::Read);
    if !caller.scope.includes(scope) {
        return Err(Error::ScopeMissing { needed: scope, held: caller.scope });
    }
    let owner = &caller.owner;
    let now = cx.clock.now();
    let key_id = ApiKeyId::from_uuid(cx.clock.uuid());
    let token = ApiKeyToken::new(owner.clone(), key_id, rand::rng().random());
    let key = ApiKey {
        key_id,
        name: names::canonical(&input.name),
        hash: token.hash().to_string(),
        created_at: now,
        expires_at: input.expires_in_days.map(|days| now + SignedDuration::from_hours(24 * days)),
        scope,
        last_used: None,
    };
    if !cx.store.create_api_key(owner, once, &key).await?.done() {
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

/// Notes that a key was used, at most once in each hour. If the table does not take it, the call passes without it.
///
/// The authorizer calls this. API Gateway caches its answer, so a use can be noted only when the authorizer is asked,
/// which is once a minute for a key in use.
pub async fn note_use(cx: &Cx, owner: &Owner, key: &ApiKey, now: Timestamp) {
    let Some(hour) = hour_of_use(key.last_used, now) else { return };
    if let Err(error) = cx.store.note_api_key_use(owner, key.key_id, hour).await {
        tracing::warn!(cause = %Error::from(error).causes(), "the use of an API key was not noted");
    }
}
