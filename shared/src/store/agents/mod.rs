//! Agents and their metrics. Metrics are a separate item because they change with every run: an edit of the agent must
//! not lose a count, and a count must not make a person's edit fail.
//!
//! Beside them, what agents make, and the ledgers of agents and actions.

mod assets;
pub mod history;
mod proposals;

use domain::agents::{Agent, AgentMetrics};
use domain::history::Change;
use domain::ids::{AgentId, Owner};

use super::idempotency::Once;
use super::keys;
use super::table::{Condition, Extras, Order, QueryPage, Store, StoreError, Versioned, Write, Written, item};
use history::Ledger;

impl Store {
    pub async fn create_agent(
        &self,
        owner: &Owner,
        once: &Once,
        agent: &Agent,
        change: &Change,
    ) -> Result<Written, StoreError> {
        self.commit(once, Self::new_agent_writes(owner, agent, change)?).await
    }

    /// The writes that create an agent. They are refused if it exists.
    pub fn new_agent_writes(owner: &Owner, agent: &Agent, change: &Change) -> Result<Vec<Write>, StoreError> {
        let metrics = item(&AgentMetrics::default(), &Extras::default())?;
        Ok(vec![
            Write::Create { key: keys::agent(owner, agent.agent_id), item: item(agent, &Extras::default())? },
            Write::Put { key: keys::agent_metrics(owner, agent.agent_id), item: metrics },
            Self::change_write(owner, Ledger::Agent(agent.agent_id), change)?,
        ])
    }

    pub async fn agent(&self, owner: &Owner, id: AgentId) -> Result<Option<Versioned<Agent>>, StoreError> {
        self.get(&keys::agent(owner, id)).await
    }

    /// Agents by their ids. Those that do not exist are left out.
    pub async fn agents_of(&self, owner: &Owner, ids: &[AgentId]) -> Result<Vec<Agent>, StoreError> {
        let keys: Vec<_> = ids.iter().map(|id| keys::agent(owner, *id)).collect();
        self.get_many(&keys).await
    }

    /// Replaces the agent that was read at `version`. `change` is for the ledger, if people have changed something.
    pub async fn replace_agent(
        &self,
        owner: &Owner,
        once: &Once,
        agent: &Agent,
        version: u64,
        (change, waits): (Option<&Change>, Option<Write>),
    ) -> Result<Written, StoreError> {
        let key = keys::agent(owner, agent.agent_id);
        let mut writes = vec![Write::Replace { key, version, item: item(agent, &Extras::default())? }];
        if let Some(change) = change {
            writes.push(Self::change_write(owner, Ledger::Agent(agent.agent_id), change)?);
        }
        writes.extend(waits);
        self.commit(once, writes).await
    }

    pub async fn agents(
        &self,
        owner: &Owner,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<Agent>, StoreError> {
        self.query(&keys::agents(owner), after, limit, Order::Newest).await
    }

    pub async fn agent_metrics(&self, owner: &Owner, id: AgentId) -> Result<AgentMetrics, StoreError> {
        Ok(self
            .get(&keys::agent_metrics(owner, id))
            .await?
            .map_or_else(AgentMetrics::default, |found| found.value))
    }

    /// The write that updates the metrics, for the same transaction as the counted change. It fails if the agent does
    /// not exist any more.
    #[must_use]
    pub fn count(owner: &Owner, agent: AgentId, numbers: Vec<(&'static str, i64)>) -> Write {
        Write::Add {
            key: keys::agent_metrics(owner, agent),
            numbers,
            only_if: Condition::Exists,
            expires: None,
        }
    }

    /// The sort keys (ids, and `METRICS`) of the items that belong to an agent.
    pub async fn agent_children(
        &self,
        owner: &Owner,
        agent: AgentId,
        prefix: &'static str,
        after: Option<&str>,
        limit: usize,
        order: Order,
    ) -> Result<QueryPage<serde::de::IgnoredAny>, StoreError> {
        self.query(&keys::agent_children(owner, agent, prefix), after, limit, order).await
    }

    /// Deletes the agent's own record. Nothing can be added to the agent afterwards.
    pub async fn delete_agent(&self, owner: &Owner, id: AgentId) -> Result<(), StoreError> {
        self.write_all(vec![
            Write::Delete { key: keys::agent(owner, id), must_exist: false },
            Write::Delete { key: keys::agent_metrics(owner, id), must_exist: false },
        ])
        .await
        .map(|_| ())
    }
}

/// A mark that something belongs to an agent or a project: an item without a record.
#[derive(serde::Serialize)]
pub(super) struct Mark {}

/// The write of the mark that something belongs to an agent.
pub(super) fn child(
    owner: &Owner,
    agent: AgentId,
    id: impl ToString,
    extras: &Extras,
) -> Result<Write, StoreError> {
    Ok(Write::Put { key: keys::agent_child(owner, agent, id), item: item(&Mark {}, extras)? })
}
