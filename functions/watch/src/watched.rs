//! The routes of watched schedules.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use domain::ids::WatchedId;
use domain::watched::witness::{NewReport, NewWatched};
use domain::watched::{WatchedPatch, WatchedReport, WatchedView};
use shared::edge::extract::{Caller, Id, IfMatch, Json, Once, Query};
use shared::edge::respond::{Created, Tagged};
use shared::flows::page::{Page, PageQuery};
use shared::flows::watched::witness::{self, AskedLedger, WatchedLedger};
use shared::{Cx, Result};

shared::routes!(create, list, read, change, delete, report, list_reports, read_ledger);

/// Watch a schedule
///
/// Declares when something runs that this platform does not run: cron, a CI job, another agent. It reports after each run. 409
/// `too_many_watched` if the account has 200, with paused ones.
#[utoipa::path(
    post, path = "/watched", tag = "watched", operation_id = "create_watched",
    responses((status = 201, body = WatchedView)),
)]
async fn create(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Json(input): Json<NewWatched>,
) -> Result<Created<WatchedView>> {
    let watched = witness::create(&cx, &caller.owner, &once, input).await?;
    let location = format!("/watched/{}", watched.watched_id);
    Ok(Created { location, version: watched.version, body: watched })
}

/// List watched schedules, newest first
///
/// With their next due times, and what became of the newest due time whose outcome is known.
#[utoipa::path(
    get, path = "/watched", tag = "watched", operation_id = "list_watched",
    params(PageQuery),
    responses((status = 200, body = Page<WatchedView>)),
)]
async fn list(
    State(cx): State<Cx>,
    caller: Caller,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<Page<WatchedView>>> {
    witness::list(&cx, &caller.owner, &page).await.map(axum::Json)
}

/// Read a watched schedule
///
/// With its next due time, and what became of the newest due time whose outcome is known.
#[utoipa::path(
    get, path = "/watched/{watched_id}", tag = "watched", operation_id = "read_watched",
    params(WatchedId),
    responses((status = 200, body = WatchedView)),
)]
async fn read(State(cx): State<Cx>, caller: Caller, Id(id): Id<WatchedId>) -> Result<Tagged<WatchedView>> {
    let watched = witness::read(&cx, &caller.owner, id).await?;
    Ok(Tagged { version: watched.version, body: watched })
}

/// Change, pause or resume a watched schedule
///
/// Omitted fields keep their values. A new schedule counts from now on, and the due times of the past stay.
#[utoipa::path(
    patch, path = "/watched/{watched_id}", tag = "watched", operation_id = "change_watched",
    params(WatchedId, IfMatch),
    responses((status = 200, body = WatchedView)),
)]
async fn change(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<WatchedId>,
    if_match: Option<IfMatch>,
    Json(patch): Json<WatchedPatch>,
) -> Result<Tagged<WatchedView>> {
    let watched = witness::change(&cx, &caller.owner, id, if_match, patch).await?;
    Ok(Tagged { version: watched.version, body: watched })
}

/// Delete a watched schedule and all its reports
///
/// This can't be undone.
#[utoipa::path(
    delete, path = "/watched/{watched_id}", tag = "watched", operation_id = "delete_watched",
    params(WatchedId, IfMatch),
    responses((status = 204, description = "It was deleted")),
)]
async fn delete(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<WatchedId>,
    if_match: Option<IfMatch>,
) -> Result<StatusCode> {
    witness::delete(&cx, &caller.owner, id, if_match).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Report a run of a watched schedule
///
/// Send it after each run. An empty object says that it succeeded. Reports are also taken while the schedule is paused and while the
/// account is stopped.
#[utoipa::path(
    post, path = "/watched/{watched_id}/reports", tag = "watched", operation_id = "report_watched",
    params(WatchedId),
    responses((status = 201, body = WatchedReport)),
)]
async fn report(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Id(id): Id<WatchedId>,
    Json(input): Json<NewReport>,
) -> Result<Response> {
    let report = witness::report(&cx, &caller.owner, &once, id, input).await?;
    Ok((StatusCode::CREATED, axum::Json(report)).into_response())
}

/// List the reports of a watched schedule, newest first
///
/// They are kept for 400 days.
#[utoipa::path(
    get, path = "/watched/{watched_id}/reports", tag = "watched", operation_id = "list_watched_reports",
    params(WatchedId, PageQuery),
    responses((status = 200, body = Page<WatchedReport>)),
)]
async fn list_reports(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<WatchedId>,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<Page<WatchedReport>>> {
    witness::reports(&cx, &caller.owner, id, &page).await.map(axum::Json)
}

/// Read what became of the due times of a watched schedule
///
/// Each due time is `ran`, `late`, `silent`, `empty`, `failed`, or still `waiting` for its report, with the reason.
#[utoipa::path(
    get, path = "/watched/{watched_id}/ledger", tag = "watched", operation_id = "read_watched_ledger",
    params(WatchedId, AskedLedger),
    responses((status = 200, body = WatchedLedger)),
)]
async fn read_ledger(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<WatchedId>,
    Query(asked): Query<AskedLedger>,
) -> Result<axum::Json<WatchedLedger>> {
    witness::ledger_of(&cx, &caller.owner, id, &asked).await.map(axum::Json)
}
