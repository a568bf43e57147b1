//! Hooks that were refused, and hooks that a project's filter dropped.

use domain::ids::{Owner, ProjectId};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::store::keys;
use crate::store::table::{Condition, Extras, Order, QueryPage, Store, StoreError, Versioned, Write, item};

/// How long a refused payload can be read.
const REFUSED_KEPT: SignedDuration = SignedDuration::from_hours(24);

/// A payload that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedHook {
    pub refused_at: Timestamp,
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The size of the whole payload, in bytes.
    pub bytes: u64,
    /// The beginning of the payload.
    pub excerpt: String,
}

/// How many hooks of one agent type a project's filter dropped on one day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedHooks {
    pub project_id: ProjectId,
    pub agent_type: String,
    pub count: u64,
}

#[derive(Serialize, Deserialize)]
struct Count {
    count: u64,
}

impl Store {
    /// Stores a refused payload for a day, and counts it.
    pub async fn refuse_hook(&self, owner: &Owner, id: Uuid, hook: &RefusedHook) -> Result<(), StoreError> {
        self.write_all(Self::refusal_writes(owner, id, hook)?.into()).await.map(|_| ())
    }

    pub(super) fn refusal_writes(
        owner: &Owner,
        id: Uuid,
        hook: &RefusedHook,
    ) -> Result<[Write; 2], StoreError> {
        let expires = hook.refused_at + REFUSED_KEPT;
        let record = item(hook, &Extras::expiring(expires))?;
        Ok([
            Write::Put { key: keys::refused_hook(owner, id), item: record },
            Self::refusals(owner, hook.refused_at, 1),
        ])
    }

    /// Adds `by` to the number of payloads that were refused on the day of `at`.
    pub(super) fn refusals(owner: &Owner, at: Timestamp, by: i64) -> Write {
        Write::Add {
            key: keys::refused_hooks_of(owner, at),
            numbers: vec![("count", by)],
            only_if: Condition::Always,
            expires: Some(at + REFUSED_KEPT + REFUSED_KEPT),
        }
    }

    /// Refused payloads, newest first. The list may contain payloads that are older than a day.
    pub async fn refused_hooks(
        &self,
        owner: &Owner,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<RefusedHook>, StoreError> {
        self.query(&keys::refused_hooks(owner), after, limit, Order::Newest).await
    }

    /// How many payloads were refused on the UTC day of `day`.
    pub async fn refused_hooks_on(&self, owner: &Owner, day: Timestamp) -> Result<u64, StoreError> {
        let found: Option<Versioned<Count>> = self.get(&keys::refused_hooks_of(owner, day)).await?;
        Ok(found.map_or(0, |found| found.value.count))
    }

    /// Counts a hook that the filter of a project dropped.
    pub async fn drop_hook(
        &self,
        owner: &Owner,
        at: Timestamp,
        project: ProjectId,
        agent_type: &str,
    ) -> Result<(), StoreError> {
        let count = Write::Add {
            key: keys::dropped_hook(owner, at, project, agent_type),
            numbers: vec![("count", 1)],
            only_if: Condition::Always,
            expires: Some(at + REFUSED_KEPT + REFUSED_KEPT),
        };
        self.write_all(vec![count]).await.map(|_| ())
    }

    /// The hooks that filters dropped on the UTC days of these instants, up to `limit` agent types.
    pub async fn dropped_hooks(
        &self,
        owner: &Owner,
        days: &[Timestamp],
        limit: usize,
    ) -> Result<Vec<DroppedHooks>, StoreError> {
        let days: Vec<String> = days.iter().map(|day| day.strftime("%Y-%m-%d").to_string()).collect();
        let found: QueryPage<Count> =
            self.query(&keys::dropped_hooks(owner), None, limit, Order::Newest).await?;
        let dropped = found.items.into_iter().filter_map(|(key, count)| {
            let (day, project_id, agent_type) = keys::dropped_parts(&key)?;
            let count = count.value.count;
            let is_recent = days.iter().any(|recent| recent == day);
            is_recent.then(|| DroppedHooks { project_id, agent_type: agent_type.to_owned(), count })
        });
        Ok(dropped.collect())
    }

    /// Whether a refused payload should still be shown. DynamoDB deletes expired items late.
    #[must_use]
    pub fn is_kept(hook: &RefusedHook, now: Timestamp) -> bool {
        hook.refused_at + REFUSED_KEPT > now
    }
}
