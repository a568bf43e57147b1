//! What became of actions, and what waits for a person: runs, their outputs, explanations and proposals.

use domain::ids::{ActionId, AgentId, ProposalId, RunId};
use jiff::Timestamp;
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::Value;
use shared::flows::{actions, proposals};
use shared::page::PageQuery;

use super::{Failure, given};
use crate::server::Server;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainAction {
    #[schemars(with = "String")]
    action_id: ActionId,
    /// A due time (RFC 3339), to the minute. The newest one if not given.
    #[schemars(with = "Option<String>")]
    at: Option<Timestamp>,
}

pub async fn explain_action(server: Server, arguments: ExplainAction) -> Result<Value, Failure> {
    given(actions::why(&server.cx, &server.owner, arguments.action_id, arguments.at).await?)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListRuns {
    #[schemars(with = "String")]
    action_id: ActionId,
    /// How many, 1 to 200. Default 50.
    limit: Option<usize>,
    /// next_cursor of the page before.
    cursor: Option<String>,
}

pub async fn list_runs(server: Server, arguments: ListRuns) -> Result<Value, Failure> {
    let page = PageQuery { limit: arguments.limit, cursor: arguments.cursor };
    given(actions::occurrences(&server.cx, &server.owner, arguments.action_id, &page).await?)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OneRun {
    #[schemars(with = "String")]
    action_id: ActionId,
    /// A run of this action, as list_runs gives it.
    #[schemars(with = "String")]
    run_id: RunId,
}

pub async fn read_run(server: Server, OneRun { action_id, run_id }: OneRun) -> Result<Value, Failure> {
    given(actions::occurrence(&server.cx, &server.owner, action_id, run_id).await?)
}

pub async fn list_run_outputs(
    server: Server,
    OneRun { action_id, run_id }: OneRun,
) -> Result<Value, Failure> {
    given(actions::outputs(&server.cx, &server.owner, action_id, run_id).await?)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListProposals {
    /// Whose proposals.
    #[schemars(with = "String")]
    agent_id: AgentId,
    /// How many, 1 to 200. Default 50.
    limit: Option<usize>,
    /// next_cursor of the page before.
    cursor: Option<String>,
}

pub async fn list_proposals(server: Server, arguments: ListProposals) -> Result<Value, Failure> {
    let page = PageQuery { limit: arguments.limit, cursor: arguments.cursor };
    let found = proposals::list(&server.cx, &server.owner, arguments.agent_id, &page).await?;
    // A page of contents would be too long to read; read_proposal gives one.
    given(found.map(|proposal| proposals::ProposalView { content: None, ..proposal }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadProposal {
    #[schemars(with = "String")]
    proposal_id: ProposalId,
}

pub async fn read_proposal(server: Server, arguments: ReadProposal) -> Result<Value, Failure> {
    given(proposals::read(&server.cx, &server.owner, arguments.proposal_id).await?)
}
