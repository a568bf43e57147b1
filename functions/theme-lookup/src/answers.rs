//! The routes of queries about a theme.

use axum::extract::State;
use domain::ids::ProjectId;
use serde::Deserialize;
use shared::edge::extract::{Caller, Id, Json, OptionalJson, Query};
use shared::flows::page::{Page, PageQuery};
use shared::{Cx, Result};
use theme::answers::{CheckAnswer, Findings, LookupAnswer, Neighbours, RepoMapAnswer};
use themes::answers::{self, Ask, FileMapView, GateAnswer, RepoMapAsk, ScoutBrief};
use themes::check::{self as checks, CheckAsk};
use themes::fix::{self as fixes, FixAnswer, FixAsk};
use utoipa::IntoParams;

shared::routes!(lookup, check, fix, scout, gate, repo_map, map, graph, findings);

/// Find the files and lines that a request is about
///
/// The answer needs no model and comes at once. `source` says whether the stored map answered (`map`) or the files were
/// read (`scout`). The answer is the same.
#[utoipa::path(
    post, path = "/projects/{project_id}/lookup", tag = "themes", operation_id = "lookup_theme",
    params(ProjectId),
    responses((status = 200, body = LookupAnswer)),
)]
async fn lookup(
    State(cx): State<Cx>,
    caller: Caller,
    Id(project): Id<ProjectId>,
    Json(ask): Json<Ask>,
) -> Result<axum::Json<LookupAnswer>> {
    answers::lookup(&cx, &caller.owner, project, &ask).await.map(axum::Json)
}

/// Check a theme, or what a change would add
///
/// Without a body, everything that is wrong with the stored files. With `files` or `deleted`, only what this change would add:
/// a finding that was there before, on another line, is not new. Nothing is saved. `code` names the check.
#[utoipa::path(
    post, path = "/projects/{project_id}/check", tag = "themes", operation_id = "check_theme",
    params(ProjectId),
    request_body = CheckAsk,
    responses((status = 200, body = CheckAnswer)),
)]
async fn check(
    State(cx): State<Cx>,
    caller: Caller,
    Id(project): Id<ProjectId>,
    OptionalJson(ask): OptionalJson<CheckAsk>,
) -> Result<axum::Json<CheckAnswer>> {
    checks::check(&cx, &caller.owner, project, ask).await.map(axum::Json)
}

/// Mend what strict Liquid refuses
///
/// Each refused place is written in strict Liquid, so that the page shows what it shows today, or, with `as_meant`, what was meant where that is
/// clear. What has no safe rewriting is listed with the choices. All bytes outside of the places stay. With `write`, the mended files are stored,
/// all or none.
#[utoipa::path(
    post, path = "/projects/{project_id}/fix", tag = "themes", operation_id = "fix_theme",
    params(ProjectId),
    request_body = FixAsk,
    responses((status = 200, body = FixAnswer)),
)]
async fn fix(
    State(cx): State<Cx>,
    caller: Caller,
    Id(project): Id<ProjectId>,
    OptionalJson(ask): OptionalJson<FixAsk>,
) -> Result<axum::Json<FixAnswer>> {
    fixes::fix(&cx, &caller.owner, project, ask).await.map(axum::Json)
}

/// Brief an agent: key files, their contents, and their references
///
/// For an agent that is about to edit. It needs no model and comes at once.
#[utoipa::path(
    post, path = "/projects/{project_id}/scout", tag = "themes", operation_id = "scout_theme",
    params(ProjectId),
    responses((status = 200, body = ScoutBrief)),
)]
async fn scout(
    State(cx): State<Cx>,
    caller: Caller,
    Id(project): Id<ProjectId>,
    Json(ask): Json<Ask>,
) -> Result<axum::Json<ScoutBrief>> {
    answers::scout(&cx, &caller.owner, project, &ask).await.map(axum::Json)
}

/// Choose the files that an agent should see
///
/// The targets of the lookup, the open file, and the neighbours of the most certain targets. A file of more than 16,000
/// characters comes with an outline to show instead of its content.
#[utoipa::path(
    post, path = "/projects/{project_id}/gate", tag = "themes", operation_id = "choose_theme_files",
    params(ProjectId),
    responses((status = 200, body = GateAnswer)),
)]
async fn gate(
    State(cx): State<Cx>,
    caller: Caller,
    Id(project): Id<ProjectId>,
    Json(ask): Json<Ask>,
) -> Result<axum::Json<GateAnswer>> {
    answers::gate(&cx, &caller.owner, project, &ask).await.map(axum::Json)
}

/// Outline the theme within a token budget
///
/// The most important files come first. The request or the open file decides what is important.
#[utoipa::path(
    post, path = "/projects/{project_id}/repo-map", tag = "themes", operation_id = "outline_theme",
    params(ProjectId),
    request_body = RepoMapAsk,
    responses((status = 200, body = RepoMapAnswer)),
)]
async fn repo_map(
    State(cx): State<Cx>,
    caller: Caller,
    Id(project): Id<ProjectId>,
    OptionalJson(ask): OptionalJson<RepoMapAsk>,
) -> Result<axum::Json<RepoMapAnswer>> {
    answers::repo_map(&cx, &caller.owner, project, &ask).await.map(axum::Json)
}

/// Read the map, file by file
///
/// The purpose of each file, its contents with their lines, its dependencies, and its keywords.
#[utoipa::path(
    get, path = "/projects/{project_id}/map", tag = "themes", operation_id = "read_theme_map",
    params(ProjectId, PageQuery),
    responses((status = 200, body = Page<FileMapView>)),
)]
async fn map(
    State(cx): State<Cx>,
    caller: Caller,
    Id(project): Id<ProjectId>,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<Page<FileMapView>>> {
    answers::map(&cx, &caller.owner, project, &page).await.map(axum::Json)
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// The path of the file.
    #[param(example = "sections/header.liquid")]
    pub(crate) path: String,
}

/// List what a file depends on, and what depends on it
///
/// Direct neighbours of the file in the graph of the theme.
#[utoipa::path(
    get, path = "/projects/{project_id}/graph", tag = "themes", operation_id = "read_theme_graph",
    params(ProjectId, Which),
    responses((status = 200, body = Neighbours)),
)]
async fn graph(
    State(cx): State<Cx>,
    caller: Caller,
    Id(project): Id<ProjectId>,
    Query(which): Query<Which>,
) -> Result<axum::Json<Neighbours>> {
    answers::neighbours(&cx, &caller.owner, project, &which.path).await.map(axum::Json)
}

/// List files that are probably unused, and references to missing files
///
/// Each unused file has a reason. A file that a computed name, a text or a script may load is not listed.
#[utoipa::path(
    get, path = "/projects/{project_id}/graph/findings", tag = "themes", operation_id = "list_theme_findings",
    params(ProjectId),
    responses((status = 200, body = Findings)),
)]
async fn findings(
    State(cx): State<Cx>,
    caller: Caller,
    Id(project): Id<ProjectId>,
) -> Result<axum::Json<Findings>> {
    answers::findings(&cx, &caller.owner, project).await.map(axum::Json)
}
