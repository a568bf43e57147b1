//! The routes of an owner's secrets for the calls of actions.

use axum::extract::State;
use axum::http::StatusCode;
use shared::edge::extract::{Caller, Id, Json};
use shared::flows::accounts::secrets::{self, NewSecret, SecretList, SecretView};
use shared::{Cx, Result};

shared::routes!(list, put, delete);

/// List your secrets
///
/// Their values are never shown.
#[utoipa::path(
    get, path = "/account/secrets", tag = "account", operation_id = "list_secrets",
    responses((status = 200, body = SecretList)),
)]
async fn list(State(cx): State<Cx>, caller: Caller) -> Result<axum::Json<SecretList>> {
    secrets::list(&cx, &caller.owner).await.map(axum::Json)
}

/// Store a secret for the calls of actions
///
/// A call names it in `secret_headers` or `sign_with`, and it is sent only to its hosts. It is stored encrypted, and no answer contains its
/// value. It replaces an earlier secret of this name at once; approvals stay valid.
#[utoipa::path(
    put, path = "/account/secrets/{name}", tag = "account", operation_id = "put_secret",
    params(("name" = String, Path, description = "1 to 64 lower-case letters, digits, hyphens and underscores", example = "github")),
    responses((status = 200, body = SecretView)),
)]
async fn put(
    State(cx): State<Cx>,
    caller: Caller,
    Id(name): Id<String>,
    Json(input): Json<NewSecret>,
) -> Result<axum::Json<SecretView>> {
    secrets::put(&cx, &caller.owner, secrets::name(&name)?, input).await.map(axum::Json)
}

/// Delete a secret
///
/// The next run whose call uses it fails with `secret_missing`, and sends nothing.
#[utoipa::path(
    delete, path = "/account/secrets/{name}", tag = "account", operation_id = "delete_secret",
    params(("name" = String, Path, description = "Its name", example = "github")),
    responses((status = 204, description = "The secret is deleted")),
)]
async fn delete(State(cx): State<Cx>, caller: Caller, Id(name): Id<String>) -> Result<StatusCode> {
    secrets::delete(&cx, &caller.owner, &secrets::name(&name)?).await?;
    Ok(StatusCode::NO_CONTENT)
}
