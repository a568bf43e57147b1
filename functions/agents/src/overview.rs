//! The routes of what a page shows first.

use axum::extract::State;
use shared::edge::conditional;
use shared::edge::extract::{Caller, Query};
use shared::edge::respond::Weak;
use shared::error::Error;
use shared::flows::overview::day::{self, AskedDay, Day};
use shared::flows::overview::inbox::{self, Inbox};
use shared::flows::overview::runs::{self, AskedRuns, Runs};
use shared::flows::overview::search::{self, AskedSearch, Hits};
use shared::flows::page::PageQuery;
use shared::{Cx, Result};

shared::routes!(read_inbox, read_day, list_runs, find);

/// Read what waits for a person
///
/// One list of everything that a person should answer or look at: calls, ceilings and questions of runs, unknown outcomes, failed and
/// missed due times, problems that were found before the next run, actions without an approval, and proposals. What went wrong is listed
/// for seven days, and only as long as it is the newest state.
#[utoipa::path(
    get, path = "/inbox", tag = "overview", operation_id = "read_inbox",
    responses((status = 200, body = Inbox)),
)]
async fn read_inbox(State(cx): State<Cx>, caller: Caller) -> Result<axum::Json<Inbox>> {
    inbox::inbox(&cx, &caller.owner).await.map(axum::Json)
}

/// Read a day
///
/// What became of the due times of all actions on a day, what was run by hand, and what is still due. The `ETag` does not depend on `now`.
#[utoipa::path(
    get, path = "/day", tag = "overview", operation_id = "read_day",
    params(AskedDay),
    responses((status = 200, body = Day)),
)]
async fn read_day(State(cx): State<Cx>, caller: Caller, Query(asked): Query<AskedDay>) -> Result<Weak<Day>> {
    let day = day::day(&cx, &caller.owner, &asked).await?;
    let content = serde_json::to_vec(&Day { now: day.from, ..day.clone() });
    let tag = conditional::tag_of(&content.map_err(|error| Error::internal(error.to_string()))?);
    Ok(Weak { tag, body: day })
}

/// List runs of all actions, newest first
///
/// Scheduled runs, runs by hand, rehearsals, and due times that did not run, by the time at which they were due. Turns of chats are listed
/// with `kind=chat`. With a filter, a page may be short although there are more.
#[utoipa::path(
    get, path = "/runs", tag = "overview", operation_id = "list_runs",
    params(PageQuery, AskedRuns),
    responses((status = 200, body = Runs)),
)]
async fn list_runs(
    State(cx): State<Cx>,
    caller: Caller,
    Query(asked): Query<AskedRuns>,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<Runs>> {
    runs::runs(&cx, &caller.owner, &asked, &page).await.map(axum::Json)
}

/// Search names and titles
///
/// Searches the names of agents, practices and projects, and the titles of actions, assets and chats.
#[utoipa::path(
    get, path = "/search", tag = "overview", operation_id = "search_names",
    params(AskedSearch),
    responses((status = 200, body = Hits)),
)]
async fn find(
    State(cx): State<Cx>,
    caller: Caller,
    Query(asked): Query<AskedSearch>,
) -> Result<axum::Json<Hits>> {
    search::search(&cx, &caller.owner, &asked).await.map(axum::Json)
}
