//! The conversation about one action. It is in this function because a model answers.

use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::Response;
use domain::ids::ActionId;
use domain::runs::RunEvent;
use serde::Deserialize;
use shared::edge::accept::Accept;
use shared::edge::extract::{Caller, Id, Json, Once, OptionalJson, Query};
use shared::edge::stream;
use shared::flows::actions::{self, RehearseAction, StartedRehearsal};
use shared::flows::page::PageQuery;
use shared::flows::runs::RunView;
use shared::flows::turn::IfBusy;
use shared::flows::turn::about_action::{self, ActionMessages};
use shared::runtime::function::Invocation;
use shared::{Cx, Result};
use utoipa::ToSchema;

shared::routes!(messages, talk, rehearse);

/// Read the conversation about an action, oldest first
///
/// The messages of people and of the action's agent. `next_cursor` leads to later messages.
#[utoipa::path(
    get, path = "/actions/{action_id}/messages", tag = "actions", operation_id = "list_action_messages",
    params(ActionId, PageQuery),
    responses((status = 200, body = ActionMessages)),
)]
async fn messages(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<ActionId>,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<ActionMessages>> {
    Ok(axum::Json(about_action::messages(&cx, &caller.owner, id, &page).await?))
}

/// Rehearse an action
///
/// Runs the action as it is now, approved or not. It reads what a run would read, and costs what a run would cost. What it would save, propose
/// or do outside is recorded and not done. Follow it at `Location`. When it has ended, `rehearsal` of the run says what it used and what
/// it would have saved, and proposes the smallest grant. `POST /actions/{action_id}/approve` with the rehearsal's id approves that.
#[utoipa::path(
    post, path = "/actions/{action_id}/rehearse", tag = "actions", operation_id = "rehearse_action",
    params(ActionId),
    responses((status = 202, body = StartedRehearsal)),
)]
async fn rehearse(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Id(id): Id<ActionId>,
    OptionalJson(input): OptionalJson<RehearseAction>,
) -> Result<(StatusCode, [(HeaderName, String); 1], axum::Json<StartedRehearsal>)> {
    let started = actions::rehearse(&cx, &caller.owner, &once, id, input).await?;
    let location = format!("/runs/{}", started.run_id);
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, location)], axum::Json(started)))
}

/// A person's message about an action.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({"content": "Make the report shorter, and tell me why the last run failed"}))]
struct NewActionMessage {
    /// 1 to 32,000 characters.
    #[schema(min_length = 1, max_length = 32_000)]
    content: String,
    /// What to do if a turn of this conversation is in progress.
    #[serde(default)]
    if_busy: IfBusy,
}

/// One turn about an action
///
/// The agent of the action answers, as in a chat. It sees the action, its last runs and their outputs. It can propose a
/// change of the action, or a command for it such as a pause. `POST /proposals/{proposal_id}/accept` accepts either.
///
/// If a run of the action waits for an answer, the message is the answer, and no other reply follows. The run continues
/// in the background. The answer is the stream of that run's further events. With `Accept: application/json` it returns
/// at once (202).
#[utoipa::path(
    post, path = "/actions/{action_id}/messages", tag = "actions", operation_id = "post_action_message",
    params(ActionId),
    responses(
        (status = 200, description = "The run", content(
            (RunEvent = "text/event-stream"), (RunView = "application/json"),
        )),
        (status = 202, description = "The run that waited and now continues", body = RunView),
    ),
)]
async fn talk(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Id(id): Id<ActionId>,
    accept: Accept,
    invocation: Invocation,
    Json(input): Json<NewActionMessage>,
) -> Result<Response> {
    let NewActionMessage { content, if_busy } = input;
    let begun =
        about_action::send_message(&cx, &caller.owner, &once, id, content, if_busy, invocation).await?;
    stream::respond_begun(&cx, &caller.owner, begun, accept, invocation).await
}
