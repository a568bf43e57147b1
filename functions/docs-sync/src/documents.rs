//! The routes of documents and their versions.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use domain::ids::ProjectId;
use domain::living::DocName;
use serde::Deserialize;
use shared::edge::extract::{Caller, Id, Ids, Ids3, IfMatch, Json, Once, Query};
use shared::edge::respond::{Created, Tagged};
use shared::flows::page::{Page, PageQuery};
use shared::flows::projects::living::{self, Content, DocsView, DocumentRow, DocumentView, NewDocument};
use shared::{Cx, Result};
use utoipa::IntoParams;

shared::routes!(overview, create, read, replace, delete, versions, restore);

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct When {
    /// A version, as it was written. Default: the newest, with the frontmatter as it is now.
    version: Option<u64>,
}

fn tagged(view: DocumentView) -> Tagged<DocumentView> {
    Tagged { version: view.document.version, body: view }
}

fn created(project: ProjectId, view: DocumentView) -> Created<DocumentView> {
    let location = format!("/projects/{project}/docs/{}", view.document.name);
    Created { location, version: view.document.version, body: view }
}

/// List the living documents of a project
///
/// With how far they are behind its commits, and the newest synchronisation.
#[utoipa::path(
    get, path = "/projects/{project_id}/docs", tag = "docs", operation_id = "list_docs",
    params(ProjectId),
    responses((status = 200, body = DocsView)),
)]
async fn overview(
    State(cx): State<Cx>,
    caller: Caller,
    Id(project): Id<ProjectId>,
) -> Result<axum::Json<DocsView>> {
    living::overview(&cx, &caller.owner, project).await.map(axum::Json)
}

/// Create a living document
///
/// A project has at most 20.
#[utoipa::path(
    post, path = "/projects/{project_id}/docs", tag = "docs", operation_id = "create_doc",
    params(ProjectId),
    responses((status = 201, body = DocumentView)),
)]
async fn create(
    State(cx): State<Cx>,
    caller: Caller,
    Id(project): Id<ProjectId>,
    once: Once,
    Json(new): Json<NewDocument>,
) -> Result<Created<DocumentView>> {
    living::create(&cx, &caller.owner, &once, project, new).await.map(|view| created(project, view))
}

/// Read a living document
///
/// The newest version, or an earlier one.
#[utoipa::path(
    get, path = "/projects/{project_id}/docs/{document}", tag = "docs", operation_id = "read_doc",
    params(ProjectId, ("document" = String, Path, description = "The name of the document", max_length = 100), When),
    responses((status = 200, body = DocumentView)),
)]
async fn read(
    State(cx): State<Cx>,
    caller: Caller,
    Ids(project, name): Ids<ProjectId, DocName>,
    Query(when): Query<When>,
) -> Result<Tagged<DocumentView>> {
    living::document(&cx, &caller.owner, project, &name, when.version).await.map(tagged)
}

/// Replace a living document, or create it
///
/// The same text again changes nothing.
#[utoipa::path(
    put, path = "/projects/{project_id}/docs/{document}", tag = "docs", operation_id = "replace_doc",
    params(ProjectId, ("document" = String, Path, description = "The name of the document", max_length = 100), IfMatch),
    responses(
        (status = 200, body = DocumentView),
        (status = 201, description = "It is a new document", body = DocumentView),
    ),
)]
async fn replace(
    State(cx): State<Cx>,
    caller: Caller,
    Ids(project, name): Ids<ProjectId, String>,
    if_match: Option<IfMatch>,
    Json(Content { content }): Json<Content>,
) -> Result<Response> {
    let name = living::name(&name)?;
    let (view, is_new) = living::replace(&cx, &caller.owner, project, name, if_match, &content).await?;
    Ok(if is_new { created(project, view).into_response() } else { tagged(view).into_response() })
}

/// Delete a living document
///
/// With all its versions. The commits that wait stay.
#[utoipa::path(
    delete, path = "/projects/{project_id}/docs/{document}", tag = "docs", operation_id = "delete_doc",
    params(ProjectId, ("document" = String, Path, description = "The name of the document", max_length = 100)),
    responses((status = 204, description = "The document is deleted")),
)]
async fn delete(
    State(cx): State<Cx>,
    caller: Caller,
    Ids(project, name): Ids<ProjectId, DocName>,
) -> Result<StatusCode> {
    living::delete(&cx, &caller.owner, project, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// List the versions of a living document, newest first
///
/// The newest 60 are kept.
#[utoipa::path(
    get, path = "/projects/{project_id}/docs/{document}/versions", tag = "docs", operation_id = "list_doc_versions",
    params(ProjectId, ("document" = String, Path, description = "The name of the document", max_length = 100), PageQuery),
    responses((status = 200, body = Page<DocumentRow>)),
)]
async fn versions(
    State(cx): State<Cx>,
    caller: Caller,
    Ids(project, name): Ids<ProjectId, DocName>,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<Page<DocumentRow>>> {
    living::versions(&cx, &caller.owner, project, &name, &page).await.map(axum::Json)
}

/// Restore an earlier version of a living document
///
/// It becomes a new version. Nothing is lost.
#[utoipa::path(
    post, path = "/projects/{project_id}/docs/{document}/versions/{version}/restore", tag = "docs",
    operation_id = "restore_doc_version",
    params(ProjectId, ("document" = String, Path, description = "The name of the document", max_length = 100), ("version" = u64, Path), IfMatch),
    responses((status = 200, body = DocumentView)),
)]
async fn restore(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Ids3(project, name, version): Ids3<ProjectId, DocName, u64>,
    if_match: Option<IfMatch>,
) -> Result<Tagged<DocumentView>> {
    living::restore(&cx, &caller.owner, &once, project, name, version, if_match).await.map(tagged)
}
