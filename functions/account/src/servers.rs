//! The routes of an owner's model servers.

use axum::extract::State;
use axum::http::StatusCode;
use shared::edge::extract::{Caller, Id, Json};
use shared::flows::accounts::servers::{self, NewServer, ServerList, ServerView};
use shared::{Cx, Result};

shared::routes!(list, put, delete);

/// List your model servers
///
/// Their keys are never shown.
#[utoipa::path(
    get, path = "/account/servers", tag = "account", operation_id = "list_servers",
    responses((status = 200, body = ServerList)),
)]
async fn list(State(cx): State<Cx>, caller: Caller) -> Result<axum::Json<ServerList>> {
    servers::list(&cx, &caller.owner).await.map(axum::Json)
}

/// Add a model server of your own
///
/// Any server with OpenAI's Chat Completions format, such as OpenRouter or vLLM. Its models come before those of other providers, which
/// replace them if they fail. Its host must be public, unless the operator allows it. It replaces an earlier server of this name, with its
/// key. Running processes use the earlier one for up to 60 seconds more.
#[utoipa::path(
    put, path = "/account/servers/{name}", tag = "account", operation_id = "put_server",
    params(("name" = String, Path, description = "1 to 32 lower-case letters, digits and hyphens; no provider's name", example = "router")),
    responses((status = 200, body = ServerView)),
)]
async fn put(
    State(cx): State<Cx>,
    caller: Caller,
    Id(name): Id<String>,
    Json(input): Json<NewServer>,
) -> Result<axum::Json<ServerView>> {
    servers::put(&cx, &caller.owner, servers::name(&name)?, input).await.map(axum::Json)
}

/// Delete a model server of your own
///
/// Running processes use it for up to 60 seconds more.
#[utoipa::path(
    delete, path = "/account/servers/{name}", tag = "account", operation_id = "delete_server",
    params(("name" = String, Path, description = "Its name", example = "router")),
    responses((status = 204, description = "The server is deleted")),
)]
async fn delete(State(cx): State<Cx>, caller: Caller, Id(name): Id<String>) -> Result<StatusCode> {
    servers::delete(&cx, &caller.owner, servers::name(&name)?).await?;
    Ok(StatusCode::NO_CONTENT)
}
