//! The route of background jobs.

use axum::extract::State;
use domain::background::jobs::JobRun;
use shared::edge::extract::{Caller, Query};
use shared::flows::background::jobs::{self, AskedJobs};
use shared::flows::page::{Page, PageQuery};
use shared::{Cx, Result};

shared::routes!(list);

/// List background jobs, newest first
///
/// What the platform has done for the account without a request that waits for it: memory, exports and imports, maps of themes. A record
/// says how much work a job has found, how much it has written, and what its models have cost. It is kept for 35 days. With a filter, a page
/// may be short although there are more.
#[utoipa::path(
    get, path = "/jobs", tag = "jobs", operation_id = "list_jobs",
    params(PageQuery, AskedJobs),
    responses((status = 200, body = Page<JobRun>)),
)]
async fn list(
    State(cx): State<Cx>,
    caller: Caller,
    Query(asked): Query<AskedJobs>,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<Page<JobRun>>> {
    jobs::list(&cx, &caller.owner, asked, &page).await.map(axum::Json)
}
