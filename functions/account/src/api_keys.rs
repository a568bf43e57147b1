//! The routes of API keys.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use domain::ids::ApiKeyId;
use shared::edge::extract::{Caller, Id, Json, Once, Query};
use shared::edge::respond::secret_once;
use shared::flows::accounts::api_keys::{self, ApiKeyView, CreatedApiKey, NewApiKey};
use shared::flows::page::{Page, PageQuery};
use shared::{Cx, Result};

shared::routes!(create, list, revoke);

/// Create an API key
///
/// `api_key` is the key. Only this answer contains it. A repeated call with the same `Idempotency-Key` creates no
/// second key, and its answer has no `api_key`. If the only answer was lost, revoke the key and create another one.
#[utoipa::path(
    post, path = "/account/api-keys", tag = "account", operation_id = "create_api_key",
    responses((status = 201, body = CreatedApiKey)),
)]
async fn create(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Json(input): Json<NewApiKey>,
) -> Result<impl IntoResponse> {
    let created = api_keys::create(&cx, &caller, &once, input).await?;
    let location = format!("/account/api-keys/{}", created.key.key_id);
    secret_once(StatusCode::CREATED, Some(location), &created.key, &created)
}

/// List the active API keys, newest first
///
/// Revoked and expired keys are not listed. The keys themselves are never shown again.
#[utoipa::path(
    get, path = "/account/api-keys", tag = "account", operation_id = "list_api_keys",
    params(PageQuery),
    responses((status = 200, body = Page<ApiKeyView>)),
)]
async fn list(
    State(cx): State<Cx>,
    caller: Caller,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<Page<ApiKeyView>>> {
    api_keys::list(&cx, &caller.owner, &page).await.map(axum::Json)
}

/// Revoke an API key
///
/// The key is refused after a few seconds at the latest.
#[utoipa::path(
    delete, path = "/account/api-keys/{key_id}", tag = "account", operation_id = "revoke_api_key",
    params(ApiKeyId),
    responses((status = 204, description = "The key is no longer valid")),
)]
async fn revoke(State(cx): State<Cx>, caller: Caller, Id(id): Id<ApiKeyId>) -> Result<StatusCode> {
    api_keys::revoke(&cx, &caller.owner, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
