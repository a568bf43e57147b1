//! The routes of runs, explanations and previews of schedules.

use axum::extract::State;
use domain::ids::{ActionId, RunId};
use jiff::Timestamp;
use serde::Deserialize;
use shared::edge::extract::{Caller, Id, Ids, Json, Query};
use shared::flows::actions::{self, OccurrenceView, WhyView};
use shared::flows::page::{Page, PageQuery};
use shared::flows::schedules::{self, FireTimes, Preview};
use shared::store::runs::RunOutput;
use shared::{Cx, Result};
use utoipa::IntoParams;

shared::routes!(list, read, outputs, why, preview);

/// List an action's runs, newest first
///
/// One entry for every due time that has come, with any result, and one for every run that was started by hand.
#[utoipa::path(
    get, path = "/actions/{action_id}/runs", tag = "actions", operation_id = "list_action_runs",
    params(ActionId, PageQuery),
    responses((status = 200, body = Page<OccurrenceView>)),
)]
async fn list(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<ActionId>,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<Page<OccurrenceView>>> {
    Ok(axum::Json(actions::occurrences(&cx, &caller.owner, id, &page).await?))
}

/// Read one of an action's runs
///
/// When it was due, when it ran, the result with its reason, its score and its cost.
#[utoipa::path(
    get, path = "/actions/{action_id}/runs/{run_id}", tag = "actions", operation_id = "read_action_run",
    params(ActionId, RunId),
    responses((status = 200, body = OccurrenceView)),
)]
async fn read(
    State(cx): State<Cx>,
    caller: Caller,
    Ids(id, run): Ids<ActionId, RunId>,
) -> Result<axum::Json<OccurrenceView>> {
    Ok(axum::Json(actions::occurrence(&cx, &caller.owner, id, run).await?))
}

/// List what a run has saved
///
/// The assets that the run has saved, in the order in which it saved them.
#[utoipa::path(
    get, path = "/actions/{action_id}/runs/{run_id}/outputs", tag = "actions",
    operation_id = "list_action_run_outputs",
    params(ActionId, RunId),
    responses((status = 200, body = Page<RunOutput>)),
)]
async fn outputs(
    State(cx): State<Cx>,
    caller: Caller,
    Ids(id, run): Ids<ActionId, RunId>,
) -> Result<axum::Json<Page<RunOutput>>> {
    Ok(axum::Json(actions::outputs(&cx, &caller.owner, id, run).await?))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct At {
    /// A due time, to the minute. Default: the newest one.
    at: Option<Timestamp>,
}

/// Explain what happened at a due time
///
/// The result as one sentence for people and as data: whether it ran, was skipped, missed or held, and the reason.
#[utoipa::path(
    get, path = "/actions/{action_id}/why", tag = "actions", operation_id = "explain_action",
    params(ActionId, At),
    responses((status = 200, body = WhyView)),
)]
async fn why(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<ActionId>,
    Query(At { at }): Query<At>,
) -> Result<axum::Json<WhyView>> {
    Ok(axum::Json(actions::why(&cx, &caller.owner, id, at).await?))
}

/// List the times at which a schedule would fire
///
/// The next fire times, in order. Nothing is stored.
#[utoipa::path(
    post, path = "/schedules/preview", tag = "actions", operation_id = "preview_schedule",
    responses((status = 200, body = FireTimes)),
)]
async fn preview(
    State(cx): State<Cx>,
    caller: Caller,
    Json(input): Json<Preview>,
) -> Result<axum::Json<FireTimes>> {
    schedules::preview(&cx, &caller.owner, input).await.map(axum::Json)
}
