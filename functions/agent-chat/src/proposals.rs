//! The routes of proposals.

use axum::extract::State;
use axum::http::StatusCode;
use domain::ids::{AgentId, ProposalId};
use shared::edge::extract::{Caller, Id, Query};
use shared::flows::page::{Page, PageQuery};
use shared::flows::proposals::{self, ProposalView};
use shared::{Cx, Result};

shared::routes!(list, read, delete);

/// List an agent's proposals that wait, newest first
///
/// Contents of more than 64 KiB are not included. Read the proposal to get them.
#[utoipa::path(
    get, path = "/agents/{agent_id}/proposals", tag = "proposals", operation_id = "list_agent_proposals",
    params(AgentId, PageQuery),
    responses((status = 200, body = Page<ProposalView>)),
)]
async fn list(
    State(cx): State<Cx>,
    caller: Caller,
    Id(agent): Id<AgentId>,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<Page<ProposalView>>> {
    proposals::list(&cx, &caller.owner, agent, &page).await.map(axum::Json)
}

/// Read a proposal
///
/// The whole proposal, including a long content.
#[utoipa::path(
    get, path = "/proposals/{proposal_id}", tag = "proposals", operation_id = "read_proposal",
    params(ProposalId),
    responses((status = 200, body = ProposalView)),
)]
async fn read(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<ProposalId>,
) -> Result<axum::Json<ProposalView>> {
    proposals::read(&cx, &caller.owner, id).await.map(axum::Json)
}

/// Discard a proposal
///
/// It can't be saved or defined afterwards.
#[utoipa::path(
    delete, path = "/proposals/{proposal_id}", tag = "proposals", operation_id = "delete_proposal",
    params(ProposalId),
    responses((status = 204, description = "It was deleted")),
)]
async fn delete(State(cx): State<Cx>, caller: Caller, Id(id): Id<ProposalId>) -> Result<StatusCode> {
    proposals::delete(&cx, &caller.owner, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
