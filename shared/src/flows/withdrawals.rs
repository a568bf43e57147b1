//! Approvals that an edit of an agent ends.

use domain::actions::{Action, ApprovalContent, Difference};
use domain::agents::{Agent, AgentStatus};
use domain::ids::{ActionId, AgentId, Owner};
use domain::notices::plan::Event;
use domain::notices::waits::{self, Withdrawn};
use futures::future::try_join_all;
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::context::Cx;
use crate::error::Result;
use crate::store::Versioned;

/// How many approvals one call can give, and how many an edit of an agent names.
pub const MAX_APPROVALS: usize = 100;

/// An approval that is no longer valid, because the agent or a tool has changed since.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct StaleApproval {
    pub action_id: ActionId,
    pub title: String,
    pub approved_at: Timestamp,
    /// The hash of what was approved.
    pub approved_hash: String,
    /// The hash of the current content. Approving it lets the action run again.
    pub approval_hash: String,
    /// The differences.
    pub changes: Vec<Difference>,
}

/// The approvals that are no longer valid after an edit of `agent`: at most 100, newest action first.
///
/// # Errors
/// If the table does not answer.
pub async fn stale_after(cx: &Cx, owner: &Owner, agent: &Agent) -> Result<Vec<StaleApproval>> {
    let (mut found, mut after) = (Vec::new(), None::<String>);
    while found.len() < MAX_APPROVALS {
        let page = cx.store.agent_actions(owner, agent.agent_id, after.as_deref(), 100).await?;
        let actions = page.items.into_iter().map(|(_, action)| action.value);
        found.extend(actions.filter(|action| is_stale(action, agent)));
        after = page.last;
        if after.is_none() {
            break;
        }
    }
    found.truncate(MAX_APPROVALS);
    try_join_all(found.into_iter().map(|action| describe(cx, owner, action, agent))).await
}

/// What an edit of an agent does to the approvals of its actions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ended {
    /// Whether it ends an approval.
    pub ends: bool,
    /// The approved actions that must be approved again after it, also because of earlier edits. `None` if there are none.
    pub withdrawn: Option<Withdrawn>,
}

/// What an edit does to the approvals of the agent's actions. All of them are read.
///
/// # Errors
/// If the table does not answer.
pub async fn withdraws(cx: &Cx, owner: &Owner, before: &Agent, after: &Agent) -> Result<Ended> {
    let mut ended = Ended::default();
    let mut next = None::<String>;
    loop {
        let page = cx.store.agent_actions(owner, after.agent_id, next.as_deref(), 100).await?;
        for (_, Versioned { value: action, .. }) in &page.items {
            ended.ends |= is_stale(action, after) && !is_stale(action, before);
            if waits_again(action, after) {
                let actions = ended.withdrawn.map_or(1, |known| known.actions + 1);
                ended.withdrawn = Some(Withdrawn { actions, one: action.id });
            }
        }
        next = page.last;
        if next.is_none() {
            return Ok(ended);
        }
    }
}

/// What is told of an agent after whose changes approved actions must be approved again, as it is now. `None` if there are no such actions,
/// or if nothing runs for the agent whatever a person answers.
///
/// # Errors
/// If the table does not answer.
pub async fn agent_changed(cx: &Cx, owner: &Owner, id: AgentId) -> Result<Option<Event>> {
    let agent = cx.store.agent(owner, id).await?.map(|agent| agent.value);
    let Some(agent) = agent.filter(|agent| agent.status != AgentStatus::Archived) else { return Ok(None) };
    let Some(withdrawn) = withdraws(cx, owner, &agent, &agent).await?.withdrawn else { return Ok(None) };
    let stale = stale_after(cx, owner, &agent).await?;
    let fields = stale.iter().flat_map(|one| &one.changes).map(|change| change.field.as_str());
    Ok(Some(waits::agent_changed(&agent, fields, withdrawn)))
}

/// Whether an action had an approval, and needs another one because its agent has changed.
fn waits_again(action: &Action, agent: &Agent) -> bool {
    action.approval.is_some() && action.needs_approval(&ApprovalContent::now(action, agent).hash())
}

pub(crate) fn is_stale(action: &Action, agent: &Agent) -> bool {
    action.approval.is_some() && !action.is_approved_with(agent)
}

pub(crate) async fn describe(cx: &Cx, owner: &Owner, action: Action, agent: &Agent) -> Result<StaleApproval> {
    let current = ApprovalContent::now(&action, agent);
    let record = cx.store.approval(owner, action.id).await?;
    let changes = record.map(|was| current.differences(&was.content)).unwrap_or_default();
    let (approved_hash, approved_at) =
        action.approval.map(|approval| (approval.hash, approval.approved_at)).unwrap_or_default();
    let approval_hash = current.hash();
    Ok(StaleApproval {
        action_id: action.id,
        title: action.title,
        approved_at,
        approved_hash,
        approval_hash,
        changes,
    })
}
