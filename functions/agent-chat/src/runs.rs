//! The routes of all runs, of chats and of actions: read, follow, cancel, report, answer about a run's calls.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use domain::agent_loop::CallId;
use domain::agent_loop::cards::Answer;
use domain::ids::RunId;
use domain::runs::RunEvent;
use domain::validate::FieldErrors;
use domain::watched::witness::NewReport;
use serde::Deserialize;
use shared::edge::accept::Accept;
use shared::edge::extract::{Caller, Id, Ids, Json, Once, OptionalJson, Query};
use shared::edge::respond::Tagged;
use shared::edge::stream;
use shared::flows::actions::OccurrenceView;
use shared::flows::existing;
use shared::flows::reports;
use shared::flows::runs;
use shared::flows::runs::RunView;
use shared::flows::runs::answers::{self, ApproveCall, RejectCall, ResolveCall};
use shared::runtime::function::Invocation;
use shared::{Cx, Result};
use utoipa::IntoParams;

shared::routes!(read_run, follow_run, cancel_run, report_call, approve_call, reject_call, resolve_call);

/// Read a run
///
/// Its state. After its end also its result: the reply, the proposals, the cost.
#[utoipa::path(
    get, path = "/runs/{run_id}", tag = "runs",
    params(RunId),
    responses((status = 200, body = RunView, headers(("ETag" = String, description = "The version, for `If-Match`")))),
)]
async fn read_run(State(cx): State<Cx>, caller: Caller, Id(id): Id<RunId>) -> Result<Tagged<RunView>> {
    let run = existing::run(&cx, &caller.owner, id).await?;
    Ok(Tagged { version: run.version, body: runs::view(&cx, &caller.owner, run.value).await? })
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
        RunId,
        After,
        ("Last-Event-ID" = Option<u64>, Header, description = "Like `after`; the greater one is used"),
    ),
    responses(
        (status = 200, description = "The events", content(
            (RunEvent = "text/event-stream"), (RunView = "application/json"),
        )),
        (status = 204, description = "The run has ended, and there are no more events"),
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
/// The run ends within two seconds and makes no further call. The answer comes when it has ended. A run that has already ended is
/// not changed. A run that waits for a person is cancelled, too.
#[utoipa::path(
    post, path = "/runs/{run_id}/cancel", tag = "runs",
    params(RunId),
    responses((status = 202, description = "The run as it is now", body = RunView)),
)]
async fn cancel_run(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<RunId>,
) -> Result<(StatusCode, axum::Json<RunView>)> {
    let run = runs::cancel(&cx, &caller.owner, Some(caller.actor()), id).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(runs::view(&cx, &caller.owner, run).await?)))
}

/// Report what became of a call without a model
///
/// For a run of an action whose `call` expects a report. The server sends it when its work is done; an empty object says that it succeeded.
/// The run then ends as the report says. The first report counts, and a further one changes nothing. A report after the end of the
/// run is stored with `late`, and the run stays as it ended. Reports are also taken while the account is stopped. 409
/// `no_report_expected` if no report is expected of this run.
#[utoipa::path(
    post, path = "/runs/{run_id}/report", tag = "runs",
    params(RunId),
    responses((status = 200, description = "The run of the action as it is now", body = OccurrenceView)),
)]
async fn report_call(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<RunId>,
    Json(input): Json<NewReport>,
) -> Result<axum::Json<OccurrenceView>> {
    reports::report(&cx, &caller.owner, id, input).await.map(axum::Json)
}

/// The id of a call, from a card of the run.
#[derive(IntoParams)]
#[into_params(parameter_in = Path, names("run_id", "call_id"))]
#[allow(dead_code, reason = "it describes the path")]
struct CallPath(
    RunId,
    /// The `call_id` of a card: the step, and the position of the call in it.
    #[param(pattern = "^[1-9][0-9]*\\.(0|[1-9][0-9]*)$", example = "3.0")]
    String,
);

/// Approve a call that waits
///
/// The call is made once. The run continues when all waiting calls are answered. Repeating the same answer changes nothing. 409 if
/// the call was rejected (`already_answered`), if the time for an answer is over (`card_expired`), if the run has ended or has
/// continued without an answer (`card_void`), or if `hash` is not the hash of the card (`card_mismatch`).
///
/// An approval that raises a ceiling needs the scope that sets it: `admin` for the account's day and month, `write` for the others.
#[utoipa::path(
    post, path = "/runs/{run_id}/calls/{call_id}/approve", tag = "runs",
    params(CallPath),
    request_body = Option<ApproveCall>,
    responses((status = 200, description = "The run as it is now", body = RunView)),
)]
async fn approve_call(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Ids(run, call): Ids<RunId, CallId>,
    OptionalJson(input): OptionalJson<ApproveCall>,
) -> Result<axum::Json<RunView>> {
    answered(&cx, &caller, &once, run, call, input.into()).await
}

/// Reject a call that waits
///
/// The call is not made, and the model is told so with the reason. The run continues when all waiting calls are answered. Repeating
/// the same answer changes nothing. 409 as for an approval.
#[utoipa::path(
    post, path = "/runs/{run_id}/calls/{call_id}/reject", tag = "runs",
    params(CallPath),
    request_body = Option<RejectCall>,
    responses((status = 200, description = "The run as it is now", body = RunView)),
)]
async fn reject_call(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Ids(run, call): Ids<RunId, CallId>,
    OptionalJson(input): OptionalJson<RejectCall>,
) -> Result<axum::Json<RunView>> {
    answered(&cx, &caller, &once, run, call, input.try_into()?).await
}

/// Say whether a call happened whose result was lost
///
/// For a card that asks for the `outcome`: the process that made the call died, or the call got no answer. With `happened`, the
/// call is not made again. With `not_happened`, it is made again. 409 as for an approval.
#[utoipa::path(
    post, path = "/runs/{run_id}/calls/{call_id}/resolve", tag = "runs",
    params(CallPath),
    responses((status = 200, description = "The run as it is now", body = RunView)),
)]
async fn resolve_call(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Ids(run, call): Ids<RunId, CallId>,
    Json(input): Json<ResolveCall>,
) -> Result<axum::Json<RunView>> {
    answered(&cx, &caller, &once, run, call, input.into()).await
}

async fn answered(
    cx: &Cx,
    caller: &Caller,
    once: &Once,
    run: RunId,
    call: CallId,
    said: Answer,
) -> Result<axum::Json<RunView>> {
    let run = answers::answer(cx, caller, once, run, call, &said).await?;
    Ok(axum::Json(runs::view(cx, &caller.owner, run).await?))
}
