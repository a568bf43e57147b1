//! Agents: created, read, changed, deleted with everything that belongs to them.

pub mod assets;
pub mod setup;

use domain::agents::{Agent, AgentMetrics, AgentPatch, AgentStatus, NewAgent};
use domain::ceilings::CeilingOf;
use domain::history::{Change, ChangeCommand, Effect, FieldChange};
use domain::ids::{AgentId, AssetId, ChatId, Owner, ProjectId};
use domain::notices::waits::agent_changed;
use domain::validate::FieldErrors;
use futures::FutureExt;
use futures::future::try_join_all;
use futures::stream::{self, TryStreamExt};
use serde::Serialize;
use utoipa::ToSchema;

use super::actions::history;
use super::edit;
use super::withdrawals::{Ended, StaleApproval, stale_after, withdraws};
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::existing;
use crate::flows::page::{self, Page, PageQuery};
use crate::money::ceilings;
use crate::request::caller::{Actor, IfMatch};
use crate::store::agents::history::Ledger;
use crate::store::table::Order;
use crate::store::{Once, Store, Tries, Versioned, keys};

/// An agent as clients see it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AgentView {
    #[serde(flatten)]
    pub agent: Agent,
    pub metrics: AgentMetrics,
    /// Send it in `If-Match`.
    pub version: u64,
}

/// An agent after a change.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ChangedAgent {
    #[serde(flatten)]
    pub agent: AgentView,
    /// The approvals of this agent's actions that this change has ended, at most 100. Nothing runs under them.
    /// `GET /agents/{agent_id}/approvals` lists all of them, and `POST` approves them again.
    pub withdrawn_approvals: Vec<StaleApproval>,
    /// What the change did besides setting fields, such as `approvals_withdrawn`.
    pub effects: Vec<Effect>,
}

async fn view(cx: &Cx, owner: &Owner, agent: Versioned<Agent>) -> Result<AgentView> {
    let metrics = cx.store.agent_metrics(owner, agent.value.agent_id).await?;
    Ok(AgentView { agent: agent.value, metrics, version: agent.version })
}

/// # Errors
/// 400 with every invalid field and its limit.
pub async fn create(cx: &Cx, owner: &Owner, once: &Once, by: Actor, input: NewAgent) -> Result<AgentView> {
    make(cx, owner, once, by, input, AgentStatus::Active).await
}

/// Creates a paused agent. A person must activate it.
///
/// # Errors
/// 400 with every invalid field and its limit.
pub async fn propose(cx: &Cx, owner: &Owner, once: &Once, by: Actor, input: NewAgent) -> Result<AgentView> {
    make(cx, owner, once, by, input, AgentStatus::Paused).await
}

async fn make(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    by: Actor,
    input: NewAgent,
    status: AgentStatus,
) -> Result<AgentView> {
    let agent = Agent { status, ..checked(cx, owner, input).await? };
    let change = Change::created(&agent, by.into());
    if !cx.store.create_agent(owner, once, &agent, &change).await?.done() {
        return Err(Error::internal("a new id was taken"));
    }
    Ok(AgentView { agent, metrics: AgentMetrics::default(), version: 1 })
}

/// A new agent, checked. Nothing is stored.
///
/// # Errors
/// 400 with every invalid field and its limit.
pub(crate) async fn checked(cx: &Cx, owner: &Owner, input: NewAgent) -> Result<Agent> {
    let agent = input.into_agent(AgentId::from_uuid(cx.clock.uuid()), cx.clock.now())?;
    ceilings::check_month(cx, CeilingOf::AgentMonth, agent.budget.per_month_micros)?;
    check_project(cx, owner, "docs_project_id", agent.docs_project_id).await?;
    check_project(cx, owner, "theme_project_id", agent.theme_project_id).await?;
    Ok(agent)
}

/// The projects that an agent names must exist.
async fn check_project(cx: &Cx, owner: &Owner, field: &str, project: Option<ProjectId>) -> Result<()> {
    let Some(project) = project else { return Ok(()) };
    match existing::project(cx, owner, project).await {
        Err(Error::NotFound(_)) => Err(FieldErrors::one(field, "there is no such project").into()),
        found => found.map(drop),
    }
}

/// # Errors
/// 404 if it does not exist.
pub async fn read(cx: &Cx, owner: &Owner, id: AgentId) -> Result<AgentView> {
    let agent = existing::agent(cx, owner, id).await?;
    view(cx, owner, agent).await
}

/// # Errors
/// 400 if `limit` or `cursor` is invalid.
pub async fn list(
    cx: &Cx,
    owner: &Owner,
    status: Option<AgentStatus>,
    query: &PageQuery,
) -> Result<Page<AgentView>> {
    let read = |after: Option<String>, limit| {
        async move { cx.store.agents(owner, after.as_deref(), limit).await }.boxed()
    };
    let keep = |agent: &Agent| status.is_none_or(|status| agent.status == status);
    let found = page::filtered(owner, "agents", query, read, keep).await?;
    let data = try_join_all(found.data.into_iter().map(|agent| view(cx, owner, agent))).await?;
    Ok(Page { data, next_cursor: found.next_cursor, has_more: found.has_more })
}

/// The agents that are not archived, newest first, at most `max`.
///
/// # Errors
/// If the table does not answer.
pub async fn all_active(cx: &Cx, owner: &Owner, max: usize) -> Result<Vec<Agent>> {
    let (mut agents, mut after) = (Vec::new(), None::<String>);
    while agents.len() < max {
        let found = cx.store.agents(owner, after.as_deref(), 100).await?;
        let active = found.items.into_iter().map(|(_, agent)| agent.value);
        agents.extend(active.filter(|agent| agent.status != AgentStatus::Archived));
        after = found.last;
        if after.is_none() {
            break;
        }
    }
    agents.truncate(max);
    Ok(agents)
}

/// Changes an agent. The answer names the approvals that the change ended.
///
/// # Errors
/// 404; 400 with every invalid field; 409 if `If-Match` is not the current version.
pub async fn change(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    by: Actor,
    id: AgentId,
    if_match: Option<IfMatch>,
    patch: AgentPatch,
) -> Result<ChangedAgent> {
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let current = existing::agent(cx, owner, id).await?;
        edit::check(if_match, current.version, &current.value)?;
        let now = cx.clock.now();
        let agent = current.value.clone().patched(patch.clone(), now)?;
        // Other fields can be changed if the deployment's maximum has become lower.
        if let Some(budget) = patch.budget {
            ceilings::check_month(cx, CeilingOf::AgentMonth, budget.per_month_micros)?;
        }
        if patch.docs_project_id.is_some() {
            check_project(cx, owner, "docs_project_id", agent.docs_project_id).await?;
        }
        if patch.theme_project_id.is_some() {
            check_project(cx, owner, "theme_project_id", agent.theme_project_id).await?;
        }
        let changes = FieldChange::of_agent(&current.value, &agent);
        let ended = match changes.is_empty() {
            true => Ended::default(),
            false => withdraws(cx, owner, &current.value, &agent).await?,
        };
        let effects = Effect::of_agent(&current.value, &agent, ended.ends);
        let waits = match ended.withdrawn.filter(|_| ended.ends) {
            Some(withdrawn) => {
                let fields = changes.iter().map(|change| change.field.as_str());
                Some(Store::waits_write(owner, agent_changed(&agent, fields, withdrawn), now)?)
            }
            None => None,
        };
        let change = (!changes.is_empty()).then(|| Change {
            version: current.version + 1,
            at: now,
            by: by.into(),
            command: ChangeCommand::Change,
            changes,
            effects: effects.clone(),
        });
        let version = current.version;
        if cx.store.replace_agent(owner, once, &agent, version, (change.as_ref(), waits)).await?.done() {
            // Also if the agent had these values already: a repeated call names the same approvals.
            let withdrawn_approvals = match patch.has_approved_fields() {
                true => stale_after(cx, owner, &agent).await?,
                false => Vec::new(),
            };
            let agent = Versioned { value: agent, version: current.version + 1 };
            return Ok(ChangedAgent { agent: view(cx, owner, agent).await?, withdrawn_approvals, effects });
        }
    }
}

/// The changes of an agent, newest first.
///
/// # Errors
/// 404 if the agent does not exist, 400 if `limit` or `cursor` is invalid.
pub async fn changes(cx: &Cx, owner: &Owner, id: AgentId, query: &PageQuery) -> Result<Page<Change>> {
    existing::agent(cx, owner, id).await?;
    history::list(cx, owner, Ledger::Agent(id), query).await
}

/// Sets the fields back to what they were before a change. This is a change like any other.
///
/// # Errors
/// As [`change`]; 404 if the ledger has no change that led to `version`; 409 if no field would change.
pub async fn revert(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    by: Actor,
    (id, version): (AgentId, u64),
    if_match: Option<IfMatch>,
) -> Result<ChangedAgent> {
    let current = existing::agent(cx, owner, id).await?;
    let reverted = history::load(cx, owner, Ledger::Agent(id), version).await?;
    edit::check(if_match, current.version, &current.value)?;
    let undo = reverted.undo_of_agent();
    let differs = match &undo {
        Some(undo) => {
            let undone = current.value.clone().patched(undo.clone(), cx.clock.now())?;
            !FieldChange::of_agent(&current.value, &undone).is_empty()
        }
        None => false,
    };
    match undo {
        Some(undo) if differs => change(cx, owner, once, by, id, if_match, undo).await,
        _ => Err(history::nothing_to_revert(&reverted, &view(cx, owner, current).await?)),
    }
}

/// Deletes an agent and everything that belongs to it. The agent's own record is deleted last, so an interrupted call can be
/// repeated. Whatever is added meanwhile is deleted afterwards, or refused.
///
/// # Errors
/// 404 if it does not exist.
pub async fn delete(cx: &Cx, owner: &Owner, id: AgentId) -> Result<()> {
    existing::agent(cx, owner, id).await?;
    delete_children(cx, owner, id).await?;
    cx.store.delete_agent(owner, id).await?;
    delete_children(cx, owner, id).await
}

async fn delete_children(cx: &Cx, owner: &Owner, agent: AgentId) -> Result<()> {
    /// How many records are deleted at once.
    const AT_ONCE: usize = 8;
    let mut after: Option<String> = None;
    loop {
        let found = cx.store.agent_children(owner, agent, "", after.as_deref(), 100, Order::Oldest).await?;
        stream::iter(found.items.into_iter().map(|(id, _)| Ok::<_, Error>(id)))
            .try_for_each_concurrent(AT_ONCE, async |id| delete_child(cx, owner, agent, &id).await)
            .await?;
        after = found.last;
        if after.is_none() {
            return Ok(cx.store.delete_range(&keys::agent_changes(owner, agent)).await?);
        }
    }
}

async fn delete_child(cx: &Cx, owner: &Owner, agent: AgentId, id: &str) -> Result<()> {
    if let Ok(asset) = id.parse::<AssetId>() {
        let _ = assets::delete_if_there(cx, owner, asset).await?;
        return Ok(cx.store.delete(&keys::agent_child(owner, agent, asset)).await?);
    }
    if let Ok(action) = id.parse() {
        return super::actions::delete_if_there(cx, owner, action).await;
    }
    if let Ok(chat) = id.parse::<ChatId>() {
        if let Some(chat) = cx.store.chat(owner, chat).await? {
            super::chats::erase(cx, owner, &chat.value).await?;
        }
        return Ok(());
    }
    if let Ok(proposal) = id.parse() {
        return super::actions::proposals::delete_if_there(cx, owner, proposal).await;
    }
    Ok(())
}
