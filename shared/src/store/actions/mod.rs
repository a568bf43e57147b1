//! Actions and their occurrences. Beside them, what the runs of an action hand on, and what it watches.
//!
//! Every write of an action computes its place in the `due` index from its next fire time, the check before it, and its live run. So the
//! index always matches the record. An action and its occurrences are written together in one transaction.

pub mod notebooks;
mod watches;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use domain::actions::{Action, ApprovalRecord, Occurrence};
use domain::ids::{ActionId, AgentId, Owner, RunId};
use domain::memory::Source;
use domain::memory::part::MemoryPart;
use jiff::{SignedDuration, Timestamp};
use serde::de::IgnoredAny;
use uuid::Uuid;

use super::agents::child;
use super::keys;
use super::table::{Extras, Order, QueryPage, Store, StoreError, Versioned, Write, item};

/// How long an occurrence is kept.
pub(super) const OCCURRENCE_LIFETIME: SignedDuration = SignedDuration::from_hours(400 * 24);

fn extras(action: &Action, wake_at: Option<Timestamp>) -> Extras {
    Extras { expires: None, due: wake_at.map(|at| (keys::shard(action.id.uuid()), at)) }
}

impl Store {
    /// The writes that create an action. They are refused if the action exists already or the agent does not exist any
    /// more.
    pub fn action_writes(owner: &Owner, action: &Action) -> Result<Vec<Write>, StoreError> {
        let mut writes = Self::first_action_writes(owner, action)?;
        writes.push(Write::Exists { key: keys::agent(owner, action.agent_id) });
        Ok(writes)
    }

    /// The writes that create an action together with its agent. They are refused if the action exists already.
    pub fn first_action_writes(owner: &Owner, action: &Action) -> Result<Vec<Write>, StoreError> {
        let extras = extras(action, action.look_at(None));
        Ok(vec![
            Write::Create { key: keys::action(owner, action.id), item: item(action, &extras)? },
            child(owner, action.agent_id, action.id, &Extras::default())?,
        ])
    }

    pub async fn action(&self, owner: &Owner, id: ActionId) -> Result<Option<Versioned<Action>>, StoreError> {
        self.get(&keys::action(owner, id)).await
    }

    /// The write of an action over the one that was read at `version`. The action is due next at `wake_at`.
    pub fn replace_action(
        owner: &Owner,
        action: &Action,
        version: u64,
        wake_at: Option<Timestamp>,
    ) -> Result<Write, StoreError> {
        Ok(Write::Replace {
            key: keys::action(owner, action.id),
            version,
            item: item(action, &extras(action, wake_at))?,
        })
    }

    /// Those of these actions that exist.
    pub async fn existing_actions(
        &self,
        owner: &Owner,
        ids: impl IntoIterator<Item = ActionId>,
    ) -> Result<BTreeSet<ActionId>, StoreError> {
        let of: HashMap<_, _> = ids.into_iter().map(|id| (keys::action(owner, id), id)).collect();
        let keys: Vec<_> = of.keys().cloned().collect();
        let found = self.get_many_keyed::<IgnoredAny>(&keys).await?;
        Ok(found.into_iter().filter_map(|(key, _)| of.get(&key).copied()).collect())
    }

    /// Newest first.
    pub async fn actions(
        &self,
        owner: &Owner,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<Action>, StoreError> {
        self.query(&keys::actions(owner), after, limit, Order::Newest).await
    }

    /// An agent's actions, newest first.
    pub async fn agent_actions(
        &self,
        owner: &Owner,
        agent: AgentId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<Action>, StoreError> {
        let marks = self.agent_children(owner, agent, ActionId::PREFIX, after, limit, Order::Newest).await?;
        self.resolve(marks, |id: ActionId| keys::action(owner, id)).await
    }

    /// The write that stores what was approved, and replaces the previous approval.
    pub fn approval_write(owner: &Owner, id: ActionId, record: &ApprovalRecord) -> Result<Write, StoreError> {
        Ok(Write::Put { key: keys::approval(owner, id), item: item(record, &Extras::default())? })
    }

    /// What was last approved, whether or not that approval is still valid.
    pub async fn approval(&self, owner: &Owner, id: ActionId) -> Result<Option<ApprovalRecord>, StoreError> {
        let found: Option<Versioned<ApprovalRecord>> = self.get(&keys::approval(owner, id)).await?;
        Ok(found.map(|found| found.value))
    }

    /// The hash of what was last approved of each of these actions. Those that were never approved are left out.
    pub async fn last_approvals(
        &self,
        owner: &Owner,
        ids: &[ActionId],
    ) -> Result<BTreeMap<ActionId, String>, StoreError> {
        let of: HashMap<_, _> = ids.iter().map(|id| (keys::approval(owner, *id), *id)).collect();
        let keys: Vec<_> = of.keys().cloned().collect();
        let found = self.get_many_keyed::<ApprovalRecord>(&keys).await?;
        Ok(found.into_iter().filter_map(|(key, record)| Some((*of.get(&key)?, record.value.hash))).collect())
    }

    /// Occurrences by their actions and ids. Those that do not exist are left out.
    pub async fn occurrences_of(
        &self,
        owner: &Owner,
        ids: &[(ActionId, RunId)],
    ) -> Result<Vec<Occurrence>, StoreError> {
        let keys: Vec<_> = ids.iter().map(|(action, run)| keys::occurrence(owner, *action, *run)).collect();
        self.get_many(&keys).await
    }

    pub async fn occurrence(
        &self,
        owner: &Owner,
        action: ActionId,
        run: RunId,
    ) -> Result<Option<Versioned<Occurrence>>, StoreError> {
        self.get(&keys::occurrence(owner, action, run)).await
    }

    /// The write that creates an occurrence. It is refused if the occurrence exists already.
    pub fn create_occurrence(owner: &Owner, occurrence: &Occurrence) -> Result<Write, StoreError> {
        let key = keys::occurrence(owner, occurrence.action_id, occurrence.run_id);
        Ok(Write::Create { key, item: occurrence_item(occurrence)? })
    }

    /// The write of an occurrence over the one that was read at `version`. 0: it does not exist yet.
    pub fn replace_occurrence(
        owner: &Owner,
        occurrence: &Occurrence,
        version: u64,
    ) -> Result<Write, StoreError> {
        let key = keys::occurrence(owner, occurrence.action_id, occurrence.run_id);
        Ok(Write::over(key, version, occurrence_item(occurrence)?))
    }

    /// Sorted by due time.
    pub async fn occurrences(
        &self,
        owner: &Owner,
        action: ActionId,
        after: Option<&str>,
        limit: usize,
        order: Order,
    ) -> Result<QueryPage<Occurrence>, StoreError> {
        self.query(&keys::occurrences(owner, action), after, limit, order).await
    }

    /// Deletes the action's record. The action is no longer due afterwards.
    pub async fn delete_action(
        &self,
        owner: &Owner,
        action: &Action,
        stamp: Uuid,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut writes = vec![
            Write::Delete { key: keys::action(owner, action.id), must_exist: false },
            Write::Delete { key: keys::agent_child(owner, action.agent_id, action.id), must_exist: false },
        ];
        writes.extend(Self::memory_marks(owner, [MemoryPart::gone(Source::Action(action.id))], stamp, now)?);
        self.write_all(writes).await.map(|_| ())
    }
}

fn occurrence_item(
    occurrence: &Occurrence,
) -> Result<std::collections::HashMap<String, aws_sdk_dynamodb::types::AttributeValue>, StoreError> {
    // The record of several due times is kept as long as the newest of them would be.
    let newest = occurrence.covers.map_or(occurrence.due_at, |covers| covers.last);
    item(occurrence, &Extras::expiring(newest + OCCURRENCE_LIFETIME))
}
