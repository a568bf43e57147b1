//! Runs of actions, schedules and proposals.

use domain::tools::proposals::{ListProposals, ReadProposal};
use domain::tools::runs::{ExplainAction, ListRuns, OneRun};
use domain::tools::schedules::PreviewSchedule;
use shared::flows::actions::{self, proposals};
use shared::flows::page::PageQuery;
use shared::flows::schedules::{self, Preview};

use super::{ToolResult, to_json};
use crate::client::Client;

pub async fn explain_action(client: Client, arguments: ExplainAction) -> ToolResult {
    to_json(actions::why(&client.cx, &client.owner, arguments.action_id, arguments.at).await?)
}

pub async fn list_runs(client: Client, arguments: ListRuns) -> ToolResult {
    let page = PageQuery { limit: arguments.limit, cursor: arguments.cursor };
    to_json(actions::occurrences(&client.cx, &client.owner, arguments.action_id, &page).await?)
}

pub async fn read_run(client: Client, OneRun { action_id, run_id }: OneRun) -> ToolResult {
    to_json(actions::occurrence(&client.cx, &client.owner, action_id, run_id).await?)
}

pub async fn list_run_outputs(client: Client, OneRun { action_id, run_id }: OneRun) -> ToolResult {
    to_json(actions::outputs(&client.cx, &client.owner, action_id, run_id).await?)
}

pub async fn list_proposals(client: Client, arguments: ListProposals) -> ToolResult {
    let page = PageQuery { limit: arguments.limit, cursor: arguments.cursor };
    let found = proposals::list(&client.cx, &client.owner, arguments.agent_id, &page).await?;
    // A page with contents would be too long. read_proposal returns the content of one.
    to_json(found.map(|proposal| proposals::ProposalView { content: None, ..proposal }))
}

pub async fn read_proposal(client: Client, arguments: ReadProposal) -> ToolResult {
    to_json(proposals::read(&client.cx, &client.owner, arguments.proposal_id).await?)
}

pub async fn preview_schedule(client: Client, arguments: PreviewSchedule) -> ToolResult {
    let PreviewSchedule { schedule, from, count } = arguments;
    to_json(
        schedules::preview(&client.cx, &client.owner, Preview { schedule, from, count: count.unwrap_or(5) })
            .await?,
    )
}
