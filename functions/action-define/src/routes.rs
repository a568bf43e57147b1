//! The routes of actions themselves: define, list, read, change, delete.

use axum::extract::State;
use axum::http::StatusCode;
use domain::actions::{ActionPatch, ActionState, DefineAction};
use domain::ids::{ActionId, AgentId};
use serde::Deserialize;
use shared::edge::extract::{Caller, Id, IfMatch, Json, Once, Query};
use shared::edge::respond::{Created, Tagged};
use shared::flows::actions::{self, ActionView};
use shared::flows::page::{Page, PageQuery};
use shared::{Cx, Result};
use utoipa::IntoParams;

shared::routes!(define, list, read, change, delete);

/// Define an action
///
/// Send the fields, or a proposal's id and the fields that differ from it. `approval_hash` in the answer identifies the
/// content. Send it to `approve`.
#[utoipa::path(
    post, path = "/agents/{agent_id}/actions", tag = "actions", operation_id = "define_action",
    params(AgentId),
    responses((status = 201, body = ActionView)),
)]
async fn define(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Id(agent): Id<AgentId>,
    Json(input): Json<DefineAction>,
) -> Result<Created<ActionView>> {
    let action = actions::define(&cx, &caller.owner, &once, caller.actor(), agent, input).await?;
    let location = format!("/actions/{}", action.action.id);
    Ok(Created { location, version: action.action.version, body: action })
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Filter {
    /// Only actions in this state.
    state: Option<ActionState>,
    /// Only actions of this agent.
    agent_id: Option<AgentId>,
}

/// List actions, newest first
///
/// All actions, or those of one agent or in one state. With a filter, a page may be short although there are more.
#[utoipa::path(
    get, path = "/actions", tag = "actions", operation_id = "list_actions",
    params(PageQuery, Filter),
    responses((status = 200, body = Page<ActionView>)),
)]
async fn list(
    State(cx): State<Cx>,
    caller: Caller,
    Query(filter): Query<Filter>,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<Page<ActionView>>> {
    let Filter { state, agent_id } = filter;
    Ok(axum::Json(actions::list(&cx, &caller.owner, agent_id, state, &page).await?))
}

/// Read an action
///
/// `approval_hash` identifies what an approval would bind. `next_due` is the next due time.
#[utoipa::path(
    get, path = "/actions/{action_id}", tag = "actions", operation_id = "read_action",
    params(ActionId),
    responses((status = 200, body = ActionView)),
)]
async fn read(State(cx): State<Cx>, caller: Caller, Id(id): Id<ActionId>) -> Result<Tagged<ActionView>> {
    Ok(tagged(actions::read(&cx, &caller.owner, id).await?))
}

/// Change an action
///
/// Omitted fields keep their values. A change to anything that an approval binds (task, schedule, grants, model tier,
/// budget, conditions) withdraws the approval. `effects` says so. With `proposal_id`, the change is the one that was proposed in the conversation
/// about the action.
#[utoipa::path(
    patch, path = "/actions/{action_id}", tag = "actions", operation_id = "change_action",
    params(ActionId, IfMatch),
    responses((status = 200, body = ActionView)),
)]
async fn change(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<ActionId>,
    if_match: Option<IfMatch>,
    Json(patch): Json<ActionPatch>,
) -> Result<Tagged<ActionView>> {
    let (owner, by) = (&caller.owner, caller.actor());
    Ok(tagged(actions::change(&cx, owner, &Once::none(), by, id, if_match, patch).await?))
}

/// Delete an action, its runs and the records of their outputs
///
/// The assets that its runs have saved are kept.
#[utoipa::path(
    delete, path = "/actions/{action_id}", tag = "actions", operation_id = "delete_action",
    params(ActionId, IfMatch),
    responses((status = 204, description = "It was deleted")),
)]
async fn delete(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<ActionId>,
    if_match: Option<IfMatch>,
) -> Result<StatusCode> {
    actions::delete(&cx, &caller.owner, id, if_match).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) fn tagged(action: ActionView) -> Tagged<ActionView> {
    Tagged { version: action.action.version, body: action }
}
