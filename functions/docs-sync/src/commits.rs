//! The routes of commits.

use axum::extract::State;
use domain::ids::ProjectId;
use shared::edge::extract::{Caller, Id, Json, Once};
use shared::flows::projects::living::commits::{self, CommitList, CommitsAdded, NewCommits};
use shared::{Cx, Result};

shared::routes!(list, add);

/// List the commits that wait
///
/// Those that the documents do not know yet, in the order in which they were reported.
#[utoipa::path(
    get, path = "/projects/{project_id}/docs/commits", tag = "docs", operation_id = "list_docs_commits",
    params(ProjectId),
    responses((status = 200, body = CommitList)),
)]
async fn list(
    State(cx): State<Cx>,
    caller: Caller,
    Id(project): Id<ProjectId>,
) -> Result<axum::Json<CommitList>> {
    commits::list(&cx, &caller.owner, project).await.map(axum::Json)
}

/// Report commits
///
/// They wait for a synchronisation. A commit waits once, also if it is reported again, and one that a synchronisation has taken does not
/// come back. A commit with the same author, time and message as a waiting one replaces it: a rebase has made it. At most 1,000 commits
/// wait.
#[utoipa::path(
    post, path = "/projects/{project_id}/docs/commits", tag = "docs", operation_id = "add_docs_commits",
    params(ProjectId),
    responses((status = 200, body = CommitsAdded)),
)]
async fn add(
    State(cx): State<Cx>,
    caller: Caller,
    Id(project): Id<ProjectId>,
    once: Once,
    Json(new): Json<NewCommits>,
) -> Result<axum::Json<CommitsAdded>> {
    commits::add(&cx, &caller.owner, &once, project, new).await.map(axum::Json)
}
