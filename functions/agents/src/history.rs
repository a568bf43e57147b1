//! The routes of an agent's history.

use axum::extract::State;
use domain::history::Change;
use domain::ids::AgentId;
use shared::edge::extract::{Caller, Id, Ids, IfMatch, Once, Query};
use shared::edge::respond::Tagged;
use shared::flows::agents::{self, ChangedAgent};
use shared::flows::page::{Page, PageQuery};
use shared::{Cx, Result};

shared::routes!(list, revert);

/// List the changes of an agent, newest first
///
/// Who has changed what, and whether the change ended approvals of the agent's actions. Changes are kept for 400 days.
#[utoipa::path(
    get, path = "/agents/{agent_id}/history", tag = "agents", operation_id = "list_agent_changes",
    params(AgentId, PageQuery),
    responses((status = 200, body = Page<Change>)),
)]
async fn list(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<AgentId>,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<Page<Change>>> {
    agents::changes(&cx, &caller.owner, id, &page).await.map(axum::Json)
}

/// Set the fields of an agent back to what they were before a change
///
/// `version` names the change by the version of the agent after it. The revert is a change like any other: it can end
/// approvals, and it is in the history itself. 409 `nothing_to_revert` if no field would change.
#[utoipa::path(
    post, path = "/agents/{agent_id}/history/{version}/revert", tag = "agents",
    operation_id = "revert_agent_change",
    params(AgentId, ("version" = u64, Path), IfMatch),
    responses((status = 200, body = ChangedAgent)),
)]
async fn revert(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Ids(id, version): Ids<AgentId, u64>,
    if_match: Option<IfMatch>,
) -> Result<Tagged<ChangedAgent>> {
    let (owner, by) = (&caller.owner, caller.actor());
    let changed = agents::revert(&cx, owner, &once, by, (id, version), if_match).await?;
    Ok(Tagged { version: changed.agent.version, body: changed })
}
