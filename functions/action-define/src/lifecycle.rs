//! The routes that change the state of an action.
//!
//! Each one answers with the action after the change, and with its `effects`. If the current state does not allow it, the answer is a 409 with
//! the reason in `code` and the action in `current`. Repeating a call that has already succeeded is no error.

use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use domain::actions::Command;
use domain::ids::{ActionId, RunId};
use domain::schedule::ScheduleInput;
use serde::Deserialize;
use shared::edge::extract::{Caller, Id, Json, Once, OptionalJson};
use shared::edge::respond::Tagged;
use shared::flows::actions::{self, ActionView, StartedRun};
use shared::{Cx, Result};
use utoipa::ToSchema;

use crate::routes::tagged;

shared::routes!(approve, schedule, run, pause, resume, cancel, dismiss, complete);

/// A person's approval.
#[derive(Deserialize, ToSchema)]
struct ApproveAction {
    /// The `approval_hash` of the action that the person has seen.
    approval_hash: String,
    /// The `run_id` of a rehearsal. The action gets the grant that the rehearsal proposes, and this is approved. `approval_hash` is then
    /// that of the rehearsal.
    #[serde(default)]
    rehearsal: Option<RunId>,
}

/// Approve an action
///
/// An approval binds everything that a run is told: title, description, instructions and expected output of the action,
/// and name, goal, success criteria, timeline and instructions of the agent. It also binds the schedule, the granted
/// tools with their schemas, the model tier and the budget. If the action has a schedule, it becomes due by it.
///
/// 409 `approval_mismatch` if any of this has changed since the hash was read. 409 `schedule_in_the_past` if
/// `schedule.at` passed more than five minutes ago, or if that time was already decided: nothing would ever run. Set a
/// new time, or remove the schedule, approve that, and run the action now. 409 `never_due` if a recurring schedule has
/// ended.
#[utoipa::path(
    post, path = "/actions/{action_id}/approve", tag = "actions", operation_id = "approve_action",
    params(ActionId),
    responses((status = 200, body = ActionView)),
)]
async fn approve(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Id(id): Id<ActionId>,
    Json(ApproveAction { approval_hash, rehearsal }): Json<ApproveAction>,
) -> Result<Tagged<ActionView>> {
    let (owner, by) = (&caller.owner, caller.actor());
    Ok(tagged(match rehearsal {
        None => actions::approve(&cx, owner, &once, by, id, &approval_hash).await?,
        Some(run) => actions::approve_rehearsed(&cx, owner, &once, by, id, (run, &approval_hash)).await?,
    }))
}

/// The new schedule of an action.
#[derive(Deserialize, ToSchema)]
struct NewSchedule {
    /// The schedule. It replaces the current one.
    schedule: ScheduleInput,
}

/// Set an action's schedule
///
/// An approval that was given before the action had a schedule also covers its first schedule. Another schedule needs
/// another approval. 409
/// `schedule_in_the_past` if `at` passed more than five minutes ago or was already decided, 409 `never_due` if a
/// recurring schedule has ended.
#[utoipa::path(
    post, path = "/actions/{action_id}/schedule", tag = "actions", operation_id = "schedule_action",
    params(ActionId),
    responses((status = 200, body = ActionView)),
)]
async fn schedule(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Id(id): Id<ActionId>,
    Json(input): Json<NewSchedule>,
) -> Result<Tagged<ActionView>> {
    Ok(tagged(actions::schedule(&cx, &caller.owner, &once, caller.actor(), id, input.schedule).await?))
}

/// Run an action now, once
///
/// The current content of the action must be approved, as for a due time. Follow the run at `Location`.
#[utoipa::path(
    post, path = "/actions/{action_id}/run", tag = "actions", operation_id = "run_action",
    params(ActionId),
    responses((status = 202, body = StartedRun)),
)]
async fn run(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Id(id): Id<ActionId>,
) -> Result<(StatusCode, [(HeaderName, String); 1], axum::Json<StartedRun>)> {
    let started = actions::run_now(&cx, &caller.owner, &once, caller.actor(), id).await?;
    let location = format!("/runs/{}", started.run_id);
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, location)], axum::Json(started)))
}

/// Pause an action
///
/// A live run continues. Due times are skipped until the action is resumed.
#[utoipa::path(
    post, path = "/actions/{action_id}/pause", tag = "actions", operation_id = "pause_action",
    params(ActionId),
    responses((status = 200, body = ActionView)),
)]
async fn pause(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Id(id): Id<ActionId>,
) -> Result<Tagged<ActionView>> {
    command(&cx, &caller, &once, id, Command::Pause).await
}

/// A person's answer to a waiting run.
#[derive(Default, Deserialize, ToSchema)]
struct ResumeAction {
    /// The answer for the waiting run. Up to 32,000 characters.
    #[serde(default)]
    message: Option<String>,
}

/// Continue after a pause, or after a question to a person
///
/// A waiting run continues at once.
#[utoipa::path(
    post, path = "/actions/{action_id}/resume", tag = "actions", operation_id = "resume_action",
    params(ActionId),
    request_body = Option<ResumeAction>,
    responses((status = 200, body = ActionView)),
)]
async fn resume(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Id(id): Id<ActionId>,
    OptionalJson(answer): OptionalJson<ResumeAction>,
) -> Result<Tagged<ActionView>> {
    Ok(tagged(actions::resume(&cx, &caller.owner, &once, caller.actor(), id, answer.message).await?))
}

/// Cancel the live run, or unschedule the action
///
/// If no run is live, or if nothing is due after the cancelled run, the approval is withdrawn.
#[utoipa::path(
    post, path = "/actions/{action_id}/cancel", tag = "actions", operation_id = "cancel_action",
    params(ActionId),
    responses((status = 200, body = ActionView)),
)]
async fn cancel(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Id(id): Id<ActionId>,
) -> Result<Tagged<ActionView>> {
    command(&cx, &caller, &once, id, Command::Cancel).await
}

/// Dismiss an action permanently
///
/// The action does not run any more. Its runs and their outputs stay readable.
#[utoipa::path(
    post, path = "/actions/{action_id}/dismiss", tag = "actions", operation_id = "dismiss_action",
    params(ActionId),
    responses((status = 200, body = ActionView)),
)]
async fn dismiss(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Id(id): Id<ActionId>,
) -> Result<Tagged<ActionView>> {
    command(&cx, &caller, &once, id, Command::Dismiss).await
}

/// Mark an action as done
///
/// Repeating this changes nothing.
#[utoipa::path(
    post, path = "/actions/{action_id}/complete", tag = "actions", operation_id = "complete_action",
    params(ActionId),
    responses((status = 200, body = ActionView)),
)]
async fn complete(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Id(id): Id<ActionId>,
) -> Result<Tagged<ActionView>> {
    command(&cx, &caller, &once, id, Command::Complete).await
}

async fn command(
    cx: &Cx,
    caller: &Caller,
    once: &Once,
    id: ActionId,
    command: Command<'_>,
) -> Result<Tagged<ActionView>> {
    Ok(tagged(actions::command(cx, &caller.owner, once, caller.actor(), id, command).await?))
}
