//! The routes of proposals.

use axum::extract::State;
use axum::http::StatusCode;
use domain::ids::{AgentId, ProposalId};
use shared::edge::extract::{Caller, Id, Once, OptionalJson, Query};
use shared::flows::actions::proposals::{self, ProposalView};
use shared::flows::actions::{self, AcceptProposal, AcceptedProposal};
use shared::flows::page::{Page, PageQuery};
use shared::{Cx, Result};

shared::routes!(list, read, delete, accept);

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
/// The whole proposal, including a long content. For a change of an approved action, it has the `approval_hash` with which `accept`
/// also approves the change.
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

/// Accept a proposal of a change or of a command
///
/// Does what was proposed for an existing action, once, and deletes the proposal. The body may be empty. A command does what the route of
/// the command does: `pause`, `resume`, `run`, `rehearse` or `dismiss`. A change is made as with `PATCH /actions/{action_id}`, which withdraws
/// the approval. With the `approval_hash` of the proposal, the changed action is approved in the same step, so it goes on with its new times.
///
/// 409 `approval_mismatch` or `not_approved` if the action, its agent or its approval has changed since the hash was read: read the
/// proposal again. 409 with the code of the command's route if the action does not allow the command now. Assets and new actions are
/// accepted with their own routes.
#[utoipa::path(
    post, path = "/proposals/{proposal_id}/accept", tag = "proposals", operation_id = "accept_proposal",
    params(ProposalId),
    request_body = Option<AcceptProposal>,
    responses((status = 200, body = AcceptedProposal)),
)]
async fn accept(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Id(id): Id<ProposalId>,
    OptionalJson(input): OptionalJson<AcceptProposal>,
) -> Result<axum::Json<AcceptedProposal>> {
    let accepted = actions::accept(&cx, &caller.owner, &once, caller.actor(), id, input).await?;
    Ok(axum::Json(accepted))
}
