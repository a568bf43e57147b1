//! The routes of context documents.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use domain::context::Workflow;
use domain::ids::ProjectId;
use domain::validate::FieldErrors;
use serde::Deserialize;
use shared::edge::extract::{Caller, Id, Ids, IfMatch, Once, Query};
use shared::edge::respond::{Created, Tagged};
use shared::flows::page::{Page, PageQuery};
use shared::flows::projects::documents::{self, DocumentName, DocumentView};
use shared::store::projects::documents::DocumentVersion;
use shared::{Cx, Result};
use utoipa::IntoParams;

shared::routes!(read, read_markdown, replace, list_workflows, list_versions, read_version, restore);

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Which {
    /// The workflow of the project. Default: `default`.
    #[serde(default)]
    #[param(value_type = Option<Workflow>)]
    workflow: Workflow,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct When {
    /// An older version. Default: the newest.
    version: Option<u64>,
}

fn place(project: ProjectId, which: Which) -> DocumentName {
    DocumentName { project, workflow: which.workflow }
}

fn tagged(view: DocumentView) -> Tagged<DocumentView> {
    Tagged { version: view.version, body: view }
}

/// Read a context document
///
/// The newest version, or an older one.
#[utoipa::path(
    get, path = "/projects/{project_id}/context", tag = "context", operation_id = "read_context",
    params(ProjectId, Which, When),
    responses((status = 200, body = DocumentView)),
)]
async fn read(
    State(cx): State<Cx>,
    caller: Caller,
    Id(project): Id<ProjectId>,
    Query(which): Query<Which>,
    Query(when): Query<When>,
) -> Result<Tagged<DocumentView>> {
    documents::read(&cx, &caller.owner, &place(project, which), when.version).await.map(tagged)
}

/// Read a context document as Markdown
///
/// The newest version, or an older one. `PUT` takes the same form.
#[utoipa::path(
    get, path = "/projects/{project_id}/context.md", tag = "context", operation_id = "read_context_markdown",
    params(ProjectId, Which, When),
    responses((status = 200, body = String, content_type = "text/markdown", headers(("ETag" = String, description = "The version, for `If-Match`")))),
)]
async fn read_markdown(
    State(cx): State<Cx>,
    caller: Caller,
    Id(project): Id<ProjectId>,
    Query(which): Query<Which>,
    Query(when): Query<When>,
) -> Result<Response> {
    let view = documents::read(&cx, &caller.owner, &place(project, which), when.version).await?;
    let mut response = view.markdown().into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/markdown; charset=utf-8"));
    if let Ok(tag) = HeaderValue::try_from(format!("\"{}\"", view.version)) {
        headers.insert(header::ETAG, tag);
    }
    Ok(response)
}

/// Replace a context document with Markdown
///
/// Send the form that reading returns. The older form with `# Context: title` and `## PLAN (HH:MM)` is also accepted. A
/// line that does not fit into a document is refused with its number.
#[utoipa::path(
    put, path = "/projects/{project_id}/context.md", tag = "context", operation_id = "replace_context",
    params(ProjectId, Which, IfMatch),
    request_body(content = String, content_type = "text/markdown"),
    responses(
        (status = 200, body = DocumentView),
        (status = 201, description = "It is the first document of this workflow", body = DocumentView),
    ),
)]
async fn replace(
    State(cx): State<Cx>,
    caller: Caller,
    Id(project): Id<ProjectId>,
    Query(which): Query<Which>,
    if_match: Option<IfMatch>,
    body: Bytes,
) -> Result<Response> {
    let text =
        std::str::from_utf8(&body).map_err(|_| FieldErrors::one("context.md", "must be text in UTF-8"))?;
    let place = place(project, which);
    let view = documents::replace(&cx, &caller.owner, &place, if_match, text).await?;
    if view.version > 1 {
        return Ok(tagged(view).into_response());
    }
    let location = format!("/projects/{project}/context.md?workflow={}", place.workflow);
    Ok(Created { location, version: view.version, body: view }.into_response())
}

/// List a project's context documents, one for each workflow
///
/// Ordered by the names of the workflows.
#[utoipa::path(
    get, path = "/projects/{project_id}/context/workflows", tag = "context", operation_id = "list_context_workflows",
    params(ProjectId, PageQuery),
    responses((status = 200, body = Page<DocumentView>)),
)]
async fn list_workflows(
    State(cx): State<Cx>,
    caller: Caller,
    Id(project): Id<ProjectId>,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<Page<DocumentView>>> {
    documents::list(&cx, &caller.owner, project, &page).await.map(axum::Json)
}

/// List the versions of a context document, newest first
///
/// Each is kept for 90 days.
#[utoipa::path(
    get, path = "/projects/{project_id}/context/versions", tag = "context",
    operation_id = "list_context_versions",
    params(ProjectId, Which, PageQuery),
    responses((status = 200, body = Page<DocumentVersion>)),
)]
async fn list_versions(
    State(cx): State<Cx>,
    caller: Caller,
    Id(project): Id<ProjectId>,
    Query(which): Query<Which>,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<Page<DocumentVersion>>> {
    documents::versions(&cx, &caller.owner, &place(project, which), &page).await.map(axum::Json)
}

/// Read a version of a context document
///
/// Each version is kept for 90 days.
#[utoipa::path(
    get, path = "/projects/{project_id}/context/versions/{version}", tag = "context",
    operation_id = "read_context_version",
    params(ProjectId, ("version" = u64, Path), Which),
    responses((status = 200, body = DocumentView)),
)]
async fn read_version(
    State(cx): State<Cx>,
    caller: Caller,
    Ids(project, version): Ids<ProjectId, u64>,
    Query(which): Query<Which>,
) -> Result<Tagged<DocumentView>> {
    documents::read(&cx, &caller.owner, &place(project, which), Some(version)).await.map(tagged)
}

/// Restore an older version of a context document
///
/// It becomes a new version. Nothing is lost.
#[utoipa::path(
    post, path = "/projects/{project_id}/context/versions/{version}/restore", tag = "context",
    operation_id = "restore_context_version",
    params(ProjectId, ("version" = u64, Path), Which, IfMatch),
    responses((status = 200, body = DocumentView)),
)]
async fn restore(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Ids(project, version): Ids<ProjectId, u64>,
    Query(which): Query<Which>,
    if_match: Option<IfMatch>,
) -> Result<Tagged<DocumentView>> {
    let place = place(project, which);
    documents::restore(&cx, &caller.owner, &once, &place, version, if_match).await.map(tagged)
}
