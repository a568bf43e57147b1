//! The routes of an action's notebook.

use axum::extract::State;
use axum::http::StatusCode;
use domain::actions::{Notebook, NotebookText};
use domain::ids::ActionId;
use shared::edge::extract::{Caller, Id, IfMatch, Json, Query};
use shared::edge::respond::Tagged;
use shared::flows::actions::notebook;
use shared::flows::page::{Page, PageQuery};
use shared::{Cx, Result};

shared::routes!(read, replace, erase, versions);

/// Read an action's notebook
///
/// What the runs of the action hand on to the next run. Version 0 if nothing was ever written.
#[utoipa::path(
    get, path = "/actions/{action_id}/notebook", tag = "actions", operation_id = "read_notebook",
    params(ActionId),
    responses((status = 200, body = Notebook)),
)]
async fn read(State(cx): State<Cx>, caller: Caller, Id(id): Id<ActionId>) -> Result<Tagged<Notebook>> {
    Ok(tagged(notebook::read(&cx, &caller.owner, id).await?))
}

/// Replace the text of an action's notebook
///
/// A run that is under way is told of the change when it next writes to the notebook. The next run is shown the new text.
#[utoipa::path(
    put, path = "/actions/{action_id}/notebook", tag = "actions", operation_id = "replace_notebook",
    params(ActionId, IfMatch),
    responses((status = 200, body = Notebook)),
)]
async fn replace(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<ActionId>,
    if_match: Option<IfMatch>,
    Json(NotebookText { text }): Json<NotebookText>,
) -> Result<Tagged<Notebook>> {
    Ok(tagged(notebook::replace(&cx, &caller.owner, id, if_match, text).await?))
}

/// Erase an action's notebook with all its versions
///
/// An empty version remains.
#[utoipa::path(
    delete, path = "/actions/{action_id}/notebook", tag = "actions", operation_id = "erase_notebook",
    params(ActionId, IfMatch),
    responses((status = 204, description = "It was erased")),
)]
async fn erase(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<ActionId>,
    if_match: Option<IfMatch>,
) -> Result<StatusCode> {
    notebook::erase(&cx, &caller.owner, id, if_match).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// List the versions of an action's notebook, newest first
///
/// The newest 50 versions are kept.
#[utoipa::path(
    get, path = "/actions/{action_id}/notebook/versions", tag = "actions", operation_id = "list_notebook_versions",
    params(ActionId, PageQuery),
    responses((status = 200, body = Page<Notebook>)),
)]
async fn versions(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<ActionId>,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<Page<Notebook>>> {
    Ok(axum::Json(notebook::versions(&cx, &caller.owner, id, &page).await?))
}

fn tagged(notebook: Notebook) -> Tagged<Notebook> {
    Tagged { version: notebook.version, body: notebook }
}
