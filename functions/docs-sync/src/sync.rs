//! The routes of synchronisations.

use axum::extract::State;
use axum::http::StatusCode;
use domain::ids::ProjectId;
use domain::living::sync::Sync;
use shared::edge::extract::{Caller, Id, Once};
use shared::flows::projects::living::sync;
use shared::{Cx, Result};

shared::routes!(start, newest);

/// Bring the living documents up to date
///
/// A model writes the new texts from the documents and the commits that wait, and a program checks them. If one is under way, it is the
/// answer. If no commit waits, it has succeeded at once. Read it to see how far it is.
#[utoipa::path(
    post, path = "/projects/{project_id}/docs/sync", tag = "docs", operation_id = "sync_docs",
    params(ProjectId),
    responses((status = 202, body = Sync)),
)]
async fn start(
    State(cx): State<Cx>,
    caller: Caller,
    Id(project): Id<ProjectId>,
    once: Once,
) -> Result<(StatusCode, axum::Json<Sync>)> {
    let sync = sync::request(&cx, &caller.owner, &once, project).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(sync)))
}

/// Read the newest synchronisation
///
/// If it has failed, the documents and the commits are as they were, and `error` and `problems` say why.
#[utoipa::path(
    get, path = "/projects/{project_id}/docs/sync", tag = "docs", operation_id = "read_docs_sync",
    params(ProjectId),
    responses((status = 200, body = Sync)),
)]
async fn newest(
    State(cx): State<Cx>,
    caller: Caller,
    Id(project): Id<ProjectId>,
) -> Result<axum::Json<Sync>> {
    sync::newest(&cx, &caller.owner, project).await.map(axum::Json)
}
