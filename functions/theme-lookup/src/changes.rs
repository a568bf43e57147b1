//! The routes of change sets.

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::ids::{ChangeSetId, ProjectId};
use shared::edge::extract::{Caller, Id, Ids, Ids3, Json, Once, OptionalJson, Query};
use shared::edge::respond::Created;
use shared::flows::page::{Page, PageQuery};
use shared::{Cx, Result};
use themes::changes::{
    self, Apply, ChangeSet, ChangeSetDetail, Edited, Edits, MadeBy, NewChangeSet, Place, Resolve, Target,
};

use crate::files;

shared::routes!(create, list, read, diff, file, edit, apply, resolve, revert, delete);

fn place<'a>(cx: &'a Cx, caller: &'a Caller, project: ProjectId) -> Place<'a> {
    Place { cx, owner: &caller.owner, project }
}

fn made_by(caller: &Caller) -> MadeBy {
    caller.actor().into()
}

/// Begin a change set
///
/// It collects edits of the theme that nobody else sees until it is applied.
#[utoipa::path(
    post, path = "/projects/{project_id}/changes", tag = "themes", operation_id = "create_change_set",
    params(ProjectId),
    request_body = NewChangeSet,
    responses((status = 201, body = ChangeSet)),
)]
async fn create(
    State(cx): State<Cx>,
    caller: Caller,
    Id(project): Id<ProjectId>,
    once: Once,
    OptionalJson(input): OptionalJson<NewChangeSet>,
) -> Result<Created<ChangeSet>> {
    let set = changes::create(place(&cx, &caller, project), &once, input, made_by(&caller)).await?;
    let location = format!("/projects/{project}/changes/{}", set.change_set_id);
    Ok(Created { location, version: set.version, body: set })
}

/// List change sets, newest first
///
/// Open ones and applied ones. Each is deleted 30 days after it was changed last.
#[utoipa::path(
    get, path = "/projects/{project_id}/changes", tag = "themes", operation_id = "list_change_sets",
    params(ProjectId, PageQuery),
    responses((status = 200, body = Page<ChangeSet>)),
)]
async fn list(
    State(cx): State<Cx>,
    caller: Caller,
    Id(project): Id<ProjectId>,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<Page<ChangeSet>>> {
    changes::list(place(&cx, &caller, project), &page).await.map(axum::Json)
}

/// Read a change set
///
/// Its edits as a diff, what they would make wrong, and the files that somebody else has changed meanwhile, with all three sides.
#[utoipa::path(
    get, path = "/projects/{project_id}/changes/{change_set_id}", tag = "themes", operation_id = "read_change_set",
    params(ProjectId, ChangeSetId),
    responses((status = 200, body = ChangeSetDetail)),
)]
async fn read(
    State(cx): State<Cx>,
    caller: Caller,
    Ids(project, id): Ids<ProjectId, ChangeSetId>,
) -> Result<axum::Json<ChangeSetDetail>> {
    let by = made_by(&caller);
    changes::show(place(&cx, &caller, project), Target::Id(id), by).await.map(axum::Json)
}

/// Read the edits as a unified diff
///
/// `git apply` takes it, in a folder with the theme.
#[utoipa::path(
    get, path = "/projects/{project_id}/changes/{change_set_id}/diff", tag = "themes", operation_id = "read_change_set_diff",
    params(ProjectId, ChangeSetId),
    responses((status = 200, description = "The diff", content((String = "text/plain")))),
)]
async fn diff(
    State(cx): State<Cx>,
    caller: Caller,
    Ids(project, id): Ids<ProjectId, ChangeSetId>,
) -> Result<Response> {
    let diff = changes::diff(place(&cx, &caller, project), id).await?;
    // A browser that opens it must not run it as a page.
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox")),
        (header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache")),
    ];
    Ok((headers, diff).into_response())
}

/// Read a file as a change set has it
///
/// Unchanged bytes. The first 12 digits of `x-content-sha256` are the `version` that calls name. A file that the change set does not change is
/// the theme's.
#[utoipa::path(
    get, path = "/projects/{project_id}/changes/{change_set_id}/files/{*path}", tag = "themes", operation_id = "read_change_set_file",
    params(ProjectId, ChangeSetId, ("path" = String, Path)),
    responses(
        (status = 200, description = "The content, by its kind", content(
            (String = "text/plain"), (serde_json::Value = "application/json"), (Vec<u8> = "application/octet-stream"),
        ), headers(
            ("x-content-sha256" = String, description = "SHA-256 of the content, in hexadecimal"),
        )),
    ),
)]
async fn file(
    State(cx): State<Cx>,
    caller: Caller,
    Ids3(project, id, path): Ids3<ProjectId, ChangeSetId, String>,
) -> Result<Response> {
    let file = changes::file(place(&cx, &caller, project), id, &path).await?;
    Ok(files::content(&path, file.bytes, file.version.to_string(), None))
}

/// Edit within a change set
///
/// All calls are made, or none. An edit of a file names the version that was read; it is refused if the file has changed since, if its place is
/// not certain, or if it would leave marks of a tool in the file. The answer says what the edit has made wrong.
#[utoipa::path(
    post, path = "/projects/{project_id}/changes/{change_set_id}/edits", tag = "themes", operation_id = "edit_change_set",
    params(ProjectId, ChangeSetId),
    responses((status = 200, body = Edited)),
)]
async fn edit(
    State(cx): State<Cx>,
    caller: Caller,
    Ids(project, id): Ids<ProjectId, ChangeSetId>,
    once: Once,
    Json(edits): Json<Edits>,
) -> Result<axum::Json<Edited>> {
    let (place, by) = (place(&cx, &caller, project), made_by(&caller));
    changes::edit(place, &once, Target::Id(id), by, &edits.calls).await.map(axum::Json)
}

/// Apply a change set
///
/// Puts all edits into the theme, or none. `hash` must be the one that the change set had when its diff was read. Refused if somebody else has
/// changed the same files.
#[utoipa::path(
    post, path = "/projects/{project_id}/changes/{change_set_id}/apply", tag = "themes", operation_id = "apply_change_set",
    params(ProjectId, ChangeSetId),
    responses((status = 200, body = ChangeSet)),
)]
async fn apply(
    State(cx): State<Cx>,
    caller: Caller,
    Ids(project, id): Ids<ProjectId, ChangeSetId>,
    once: Once,
    Json(input): Json<Apply>,
) -> Result<axum::Json<ChangeSet>> {
    let (place, by) = (place(&cx, &caller, project), made_by(&caller));
    changes::apply(place, &once, Target::Id(id), by, &input.hash).await.map(axum::Json)
}

/// Decide the files that somebody else has changed, too
///
/// The change set then lies over the theme as it is. With `merge`, changes of one file that do not touch each other are joined.
#[utoipa::path(
    post, path = "/projects/{project_id}/changes/{change_set_id}/resolve", tag = "themes", operation_id = "resolve_change_set",
    params(ProjectId, ChangeSetId),
    request_body = Resolve,
    responses((status = 200, body = ChangeSet)),
)]
async fn resolve(
    State(cx): State<Cx>,
    caller: Caller,
    Ids(project, id): Ids<ProjectId, ChangeSetId>,
    once: Once,
    OptionalJson(input): OptionalJson<Resolve>,
) -> Result<axum::Json<ChangeSet>> {
    changes::resolve(place(&cx, &caller, project), &once, id, input).await.map(axum::Json)
}

/// Take back an applied change set
///
/// This begins a change set with the opposite edits. What others have changed since, in other lines, stays. Apply it as any other one.
#[utoipa::path(
    post, path = "/projects/{project_id}/changes/{change_set_id}/revert", tag = "themes", operation_id = "revert_change_set",
    params(ProjectId, ChangeSetId),
    responses((status = 201, body = ChangeSet)),
)]
async fn revert(
    State(cx): State<Cx>,
    caller: Caller,
    Ids(project, id): Ids<ProjectId, ChangeSetId>,
    once: Once,
) -> Result<Created<ChangeSet>> {
    let set = changes::revert(place(&cx, &caller, project), &once, id, made_by(&caller)).await?;
    let location = format!("/projects/{project}/changes/{}", set.change_set_id);
    Ok(Created { location, version: set.version, body: set })
}

/// Delete a change set
///
/// The theme stays as it is, also if the change set was applied.
#[utoipa::path(
    delete, path = "/projects/{project_id}/changes/{change_set_id}", tag = "themes", operation_id = "delete_change_set",
    params(ProjectId, ChangeSetId),
    responses((status = 204, description = "It was deleted")),
)]
async fn delete(
    State(cx): State<Cx>,
    caller: Caller,
    Ids(project, id): Ids<ProjectId, ChangeSetId>,
) -> Result<StatusCode> {
    changes::delete(place(&cx, &caller, project), id).await?;
    Ok(StatusCode::NO_CONTENT)
}
