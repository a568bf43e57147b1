//! Any run, of a chat or of an action: read, follow, cancel.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use domain::ids::RunId;
use domain::runs::RunEvent;
use domain::validate::FieldErrors;
use serde::Deserialize;
use shared::extract::{Caller, Id, Query, header_text};
use shared::flows::run_view::{self, RunView};
use shared::flows::runs;
use shared::function::Invocation;
use shared::respond::{Problems, Tagged};
use shared::stream::{self, Accept};
use shared::{Cx, Result};
use utoipa::IntoParams;

shared::routes!(read_run, follow_run, cancel_run);

/// Read a run
#[utoipa::path(
    get, path = "/runs/{run_id}", tag = "runs",
    params(("run_id" = RunId, Path)),
    responses((status = 200, body = RunView), Problems),
)]
async fn read_run(State(cx): State<Cx>, caller: Caller, Id(id): Id<RunId>) -> Result<Tagged<RunView>> {
    let run = stream::load(&cx, &caller.owner, id).await?;
    Ok(Tagged { version: run.version, body: run_view::view(&cx, &caller.owner, run.value).await? })
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct After {
    /// The id of the last event that is known; 0 for all. `Last-Event-ID` says the same.
    after: Option<u64>,
}

/// Follow a run
///
/// Its events after the one named, and then as they happen, until the one that ends it. With `Accept: application/json`
/// the result, once there is one.
#[utoipa::path(
    get, path = "/runs/{run_id}/events", tag = "runs",
    params(
        ("run_id" = RunId, Path), After,
        ("Last-Event-ID" = Option<u64>, Header, description = "As `after`, which wins"),
    ),
    responses(
        (status = 200, description = "The events", content(
            (RunEvent = "text/event-stream"), (RunView = "application/json"),
        )),
        Problems,
    ),
)]
async fn follow_run(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<RunId>,
    Query(query): Query<After>,
    headers: HeaderMap,
    invocation: Invocation,
) -> Result<Response> {
    let after = match (query.after, header_text(&headers, "last-event-id")) {
        (Some(after), _) => after,
        (None, None) => 0,
        (None, Some(text)) => {
            text.parse().map_err(|_| FieldErrors::one("Last-Event-ID", "must be the number of an event"))?
        }
    };
    let accept = Accept::from_headers(&headers);
    stream::respond(&cx, &caller.owner, id, after, accept, invocation.answers_until()).await
}

/// Cancel a run
///
/// It has ended when this answers, within two seconds, and makes no further call. A run that has ended stays as it is; one
/// that waits for a person is cancelled, too.
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
