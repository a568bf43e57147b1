//! The routes of all runs, of chats and of actions: read, follow, cancel.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use domain::ids::RunId;
use domain::runs::RunEvent;
use domain::validate::FieldErrors;
use serde::Deserialize;
use shared::accept::Accept;
use shared::extract::{Caller, Id, Query};
use shared::flows::run_view::{self, RunView};
use shared::flows::runs;
use shared::function::Invocation;
use shared::respond::{Problems, Tagged};
use shared::stream;
use shared::{Cx, Result};
use utoipa::IntoParams;

shared::routes!(read_run, follow_run, cancel_run);

/// Read a run
///
/// Its state. After its end also its result: the reply, the proposals, the cost.
#[utoipa::path(
    get, path = "/runs/{run_id}", tag = "runs",
    params(("run_id" = RunId, Path)),
    responses((status = 200, body = RunView, headers(("ETag" = String, description = "The version, for `If-Match`"))), Problems),
)]
async fn read_run(State(cx): State<Cx>, caller: Caller, Id(id): Id<RunId>) -> Result<Tagged<RunView>> {
    let run = runs::load(&cx, &caller.owner, id).await?;
    Ok(Tagged { version: run.version, body: run_view::view(&cx, &caller.owner, run.value).await? })
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct After {
    /// The id of the last known event; 0 for all events. If `Last-Event-ID` is greater, it is used instead.
    after: Option<u64>,
}

/// Follow a run
///
/// The events after the given one, and then new events as they happen, until the run ends. If the run has ended and its
/// last event is already known, the answer is 204. With `Accept: application/json` the answer is the result, as soon as
/// there is one.
#[utoipa::path(
    get, path = "/runs/{run_id}/events", tag = "runs",
    params(
        ("run_id" = RunId, Path), After,
        ("Last-Event-ID" = Option<u64>, Header, description = "Like `after`; the greater one is used"),
    ),
    responses(
        (status = 200, description = "The events", content(
            (RunEvent = "text/event-stream"), (RunView = "application/json"),
        )),
        (status = 204, description = "The run has ended, and there are no more events"),
        Problems,
    ),
)]
async fn follow_run(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<RunId>,
    Query(query): Query<After>,
    headers: HeaderMap,
    accept: Accept,
    invocation: Invocation,
) -> Result<Response> {
    // An `EventSource` reconnects to its first address, with the old `after`. The header is newer.
    let after = query.after.unwrap_or(0).max(last_event_id(&headers)?);
    stream::respond(&cx, &caller.owner, id, after, accept, invocation.answers_until()).await
}

fn last_event_id(headers: &HeaderMap) -> Result<u64, FieldErrors> {
    let Some(value) = headers.get("last-event-id") else { return Ok(0) };
    let text = value.to_str().unwrap_or_default().trim();
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    let id = digits.then(|| text.parse().ok()).flatten();
    id.ok_or_else(|| FieldErrors::one("Last-Event-ID", "must be the number of an event"))
}

/// Cancel a run
///
/// The run ends within two seconds, before this answers, and makes no further call. A run that has already ended is not
/// changed. A run that waits for a person is cancelled, too.
#[utoipa::path(
    post, path = "/runs/{run_id}/cancel", tag = "runs",
    params(("run_id" = RunId, Path)),
    responses((status = 202, description = "The run as it is now", body = RunView), Problems),
)]
async fn cancel_run(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<RunId>,
) -> Result<(StatusCode, axum::Json<RunView>)> {
    let run = runs::cancel(&cx, &caller.owner, id).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(run_view::view(&cx, &caller.owner, run).await?)))
}
