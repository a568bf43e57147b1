//! The routes of provider keys.

use axum::extract::State;
use axum::http::StatusCode;
use domain::accounts::KeyProvider;
use shared::edge::extract::{Caller, Id, Json};
use shared::flows::accounts::provider_keys::{self, NewProviderKey, ProviderKeyList, ProviderKeyView};
use shared::{Cx, Result};

shared::routes!(list, put, delete);

/// List the stored provider keys
///
/// The keys themselves are never shown.
#[utoipa::path(
    get, path = "/account/provider-keys", tag = "account", operation_id = "list_provider_keys",
    responses((status = 200, body = ProviderKeyList)),
)]
async fn list(State(cx): State<Cx>, caller: Caller) -> Result<axum::Json<ProviderKeyList>> {
    provider_keys::list(&cx, &caller.owner).await.map(axum::Json)
}

/// Store your own key of a model provider
///
/// It replaces an earlier key of this provider. It is stored encrypted, and no answer contains it. Processes that already use
/// the earlier key use it for up to 60 seconds more.
#[utoipa::path(
    put, path = "/account/provider-keys/{provider}", tag = "account", operation_id = "put_provider_key",
    params(("provider" = KeyProvider, Path, description = "The provider of the key")),
    responses((status = 200, body = ProviderKeyView)),
)]
async fn put(
    State(cx): State<Cx>,
    caller: Caller,
    Id(provider): Id<String>,
    Json(input): Json<NewProviderKey>,
) -> Result<axum::Json<ProviderKeyView>> {
    let provider = provider_keys::provider(&provider)?;
    provider_keys::put(&cx, &caller.owner, provider, input).await.map(axum::Json)
}

/// Delete your own key of a model provider
///
/// Running processes use it for up to 60 seconds more. To end its use at once, revoke it at the provider.
#[utoipa::path(
    delete, path = "/account/provider-keys/{provider}", tag = "account", operation_id = "delete_provider_key",
    params(("provider" = KeyProvider, Path, description = "The provider of the key")),
    responses((status = 204, description = "The key is deleted")),
)]
async fn delete(State(cx): State<Cx>, caller: Caller, Id(provider): Id<String>) -> Result<StatusCode> {
    let provider = provider_keys::provider(&provider)?;
    provider_keys::delete(&cx, &caller.owner, provider).await?;
    Ok(StatusCode::NO_CONTENT)
}
