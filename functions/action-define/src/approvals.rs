//! The routes of approvals that are no longer valid.

use axum::extract::State;
use domain::ids::{ActionId, AgentId};
use shared::edge::extract::{Caller, Id, Json, Query};
use shared::flows::actions::{self, ApprovalView, Approvals, ApproveMany, StaleApproval};
use shared::flows::page::{Page, PageQuery};
use shared::{Cx, Result};

shared::routes!(read, list_stale, approve_many);

/// Compare an action with what was approved
///
/// `approved` is what was last approved. `current` is everything that an approval binds now (the action, its agent, the
/// granted tools). `changes` is the difference, field by field.
#[utoipa::path(
    get, path = "/actions/{action_id}/approval", tag = "actions", operation_id = "read_action_approval",
    params(("action_id" = ActionId, Path, description = "The action")),
    responses((status = 200, description = "What was approved, what is current, and the difference", body = ApprovalView)),
)]
async fn read(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<ActionId>,
) -> Result<axum::Json<ApprovalView>> {
    actions::approval(&cx, &caller.owner, id).await.map(axum::Json)
}

/// List the approvals that an edit of an agent withdrew
///
/// An approval binds the text of the agent and the tools of the action. The listed approvals were given for other texts
/// or tools. Nothing runs under them, and their due times are held. Each one comes with the changes.
#[utoipa::path(
    get, path = "/agents/{agent_id}/approvals", tag = "actions", operation_id = "list_stale_approvals",
    params(("agent_id" = AgentId, Path, description = "The agent"), PageQuery),
    responses((status = 200, description = "Approvals that are no longer valid, newest action first", body = Page<StaleApproval>)),
)]
async fn list_stale(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<AgentId>,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<Page<StaleApproval>>> {
    actions::stale(&cx, &caller.owner, id, &page).await.map(axum::Json)
}

/// Approve many actions of an agent
///
/// Send each action's `approval_hash` as the person has seen it, for example from the list of withdrawn approvals. Each
/// approval succeeds or fails independently, and the answer gives the result of each. Schedules continue where they
/// were. Repeating the call changes nothing.
#[utoipa::path(
    post, path = "/agents/{agent_id}/approvals", tag = "actions", operation_id = "approve_actions",
    params(("agent_id" = AgentId, Path, description = "The agent")),
    responses((status = 200, description = "The results, in the order of the request", body = Approvals)),
)]
async fn approve_many(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<AgentId>,
    Json(input): Json<ApproveMany>,
) -> Result<axum::Json<Approvals>> {
    actions::approve_many(&cx, &caller.owner, caller.actor(), id, input).await.map(axum::Json)
}
