//! The routes of the webhook.

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use domain::ids::ProjectId;
use shared::edge::extract::{Caller, Id, Json, Once};
use shared::edge::respond::{json_or_none, secret_once};
use shared::flows::projects::living::hook::{self, HookView, HookWithSecret, NewHook, Pushed};
use shared::{Cx, Result};

shared::routes!(create, read, delete, take);

/// Create a webhook for GitHub
///
/// GitHub reports each push there. Enter the scheme and the host of the platform with `path` appended in the settings of the repository,
/// with the content type `application/json` and the secret. If there is a webhook, it gets a new secret, and the old one no longer works.
/// `secret` is in this answer only.
#[utoipa::path(
    post, path = "/projects/{project_id}/docs/hook", tag = "docs", operation_id = "create_docs_hook",
    params(ProjectId),
    responses((status = 201, body = HookWithSecret)),
)]
async fn create(
    State(cx): State<Cx>,
    caller: Caller,
    Id(project): Id<ProjectId>,
    once: Once,
    Json(new): Json<NewHook>,
) -> Result<impl IntoResponse> {
    let created = hook::create(&cx, &caller.owner, &once, project, new).await?;
    let location = format!("/projects/{project}/docs/hook");
    secret_once(StatusCode::CREATED, Some(location), &created.hook, &created)
}

/// Read the webhook for GitHub
///
/// Without its secret.
#[utoipa::path(
    get, path = "/projects/{project_id}/docs/hook", tag = "docs", operation_id = "read_docs_hook",
    params(ProjectId),
    responses(
        (status = 200, body = HookView),
        (status = 204, description = "The project has no webhook"),
    ),
)]
async fn read(State(cx): State<Cx>, caller: Caller, Id(project): Id<ProjectId>) -> Result<Response> {
    hook::read(&cx, &caller.owner, project).await.map(json_or_none)
}

/// Delete the webhook for GitHub
///
/// Its path no longer works.
#[utoipa::path(
    delete, path = "/projects/{project_id}/docs/hook", tag = "docs", operation_id = "delete_docs_hook",
    params(ProjectId),
    responses((status = 204, description = "The webhook is deleted")),
)]
async fn delete(State(cx): State<Cx>, caller: Caller, Id(project): Id<ProjectId>) -> Result<StatusCode> {
    hook::delete(&cx, &caller.owner, project).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Take a push from GitHub
///
/// GitHub calls this address. The signature in `X-Hub-Signature-256` is checked over the bytes of the body. The commits of the branch of
/// the webhook wait for a synchronisation. Other events, other branches and tags change nothing.
#[utoipa::path(
    post, path = "/hooks/github/{token}", tag = "docs", operation_id = "take_github_push", security(()),
    params(
        ("token" = String, Path, description = "The end of the path of the webhook", max_length = 1_000),
        ("X-Hub-Signature-256" = String, Header, description = "`sha256=` and the HMAC-SHA-256 of the body with the secret", max_length = 100),
        ("X-GitHub-Event" = String, Header, description = "The kind of the event", max_length = 100),
    ),
    request_body(content = serde_json::Value, description = "The payload of the event, as GitHub documents it"),
    responses((status = 200, body = Pushed)),
)]
async fn take(
    State(cx): State<Cx>,
    Path(token): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<axum::Json<Pushed>> {
    hook::take(&cx, &token, &headers, &body).await.map(axum::Json)
}
