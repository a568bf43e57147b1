//! The routes of projects.

use axum::extract::State;
use axum::http::StatusCode;
use domain::ids::ProjectId;
use domain::projects::{NewProject, ProjectPatch};
use shared::edge::extract::{Caller, Id, IfMatch, Json, Once, Query};
use shared::edge::respond::{Created, Tagged};
use shared::flows::existing;
use shared::flows::page::{Page, PageQuery};
use shared::{Cx, Result};
use themes::projects::{self, ProjectView};

shared::routes!(create, list, read, change, delete);

/// Create a project
///
/// It has no files yet. Import a theme, or write single files.
#[utoipa::path(
    post, path = "/projects", tag = "projects", operation_id = "create_project",
    responses((status = 201, body = ProjectView)),
)]
async fn create(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Json(input): Json<NewProject>,
) -> Result<Created<ProjectView>> {
    let project = projects::create(&cx, &caller.owner, &once, input).await?;
    let location = format!("/projects/{}", project.project.project_id);
    Ok(Created { location, version: project.version, body: project })
}

/// List projects, newest first
///
/// The last one is the default project, which every owner has.
#[utoipa::path(
    get, path = "/projects", tag = "projects", operation_id = "list_projects",
    params(PageQuery),
    responses((status = 200, body = Page<ProjectView>)),
)]
async fn list(
    State(cx): State<Cx>,
    caller: Caller,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<Page<ProjectView>>> {
    projects::list(&cx, &caller.owner, &page).await.map(axum::Json)
}

/// Read a project
///
/// Its settings. `/projects/{project_id}/map/status` reports the state of its map.
#[utoipa::path(
    get, path = "/projects/{project_id}", tag = "projects", operation_id = "read_project",
    params(ProjectId),
    responses((status = 200, body = ProjectView)),
)]
async fn read(State(cx): State<Cx>, caller: Caller, Id(id): Id<ProjectId>) -> Result<Tagged<ProjectView>> {
    let project = ProjectView::from(existing::project(&cx, &caller.owner, id).await?);
    Ok(Tagged { version: project.version, body: project })
}

/// Change a project
///
/// Omitted fields keep their values.
#[utoipa::path(
    patch, path = "/projects/{project_id}", tag = "projects", operation_id = "change_project",
    params(ProjectId, IfMatch),
    responses((status = 200, body = ProjectView)),
)]
async fn change(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<ProjectId>,
    if_match: Option<IfMatch>,
    Json(patch): Json<ProjectPatch>,
) -> Result<Tagged<ProjectView>> {
    let project = projects::change(&cx, &caller.owner, id, if_match, patch).await?;
    Ok(Tagged { version: project.version, body: project })
}

/// Delete a project and everything that belongs to it
///
/// The default project is emptied and exists again as new.
#[utoipa::path(
    delete, path = "/projects/{project_id}", tag = "projects", operation_id = "delete_project",
    params(ProjectId),
    responses((status = 204, description = "It was deleted")),
)]
async fn delete(State(cx): State<Cx>, caller: Caller, Id(id): Id<ProjectId>) -> Result<StatusCode> {
    projects::delete(&cx, &caller.owner, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
