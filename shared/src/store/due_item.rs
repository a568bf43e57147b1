//! What is due: the item that a message to the executors names.

use domain::ids::{ActionId, ChannelId, DeliveryId, ExportId, Owner, ProjectId, RunId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Something that must be processed at a certain time. It does not say what to do. The stored state decides that, so an item
/// that is dispatched twice or late does no harm.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DueItem {
    pub owner: Owner,
    #[serde(flatten)]
    pub target: DueTarget,
    /// When it was due, if a sweep has found it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    /// Further owners with an item of this kind. The watchdog sends one message for many owners, which costs less.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Owner>,
}

/// The kind and the id of a due item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", content = "id", rename_all = "snake_case")]
pub enum DueTarget {
    /// A due time has come, a run must be retried, or the lease of its executor has ended.
    Action(ActionId),
    /// The lease of a chat turn has ended.
    Run(RunId),
    /// Runs of the owner wait for a place on an executor.
    Backlog,
    /// The owner's account is being deleted.
    Deletion,
    /// An archive with everything of the owner is written.
    Export(ExportId),
    /// An archive becomes the contents of the owner's account.
    Import,
    /// The owner's memory is synchronised or tidied.
    Memory,
    /// A run has come to rest, and a person is to be told.
    Occurrence { action: ActionId, run: RunId },
    /// Something of the owner's notices is due: what happened, what waits to be said, or a digest.
    Notices,
    /// A message is to be delivered.
    Delivery(DeliveryId),
    /// Replies in a chat with a bot are fetched.
    Replies(ChannelId),
    /// A synchronisation of the living documents of a project.
    Docs(ProjectId),
    /// The watchdog looks at what the owner has. `due_at` of the item is the time of the look.
    Watchdog,
}

impl DueTarget {
    /// Whether it is dispatched only when its time has come, and not ahead. Usually its time never comes: a live executor renews
    /// its lease in time, and other executors wake waiting runs. The last step of a deletion has no need to begin on the second.
    #[must_use]
    pub const fn is_backstop(self) -> bool {
        matches!(
            self,
            Self::Run(_)
                | Self::Backlog
                | Self::Deletion
                | Self::Export(_)
                | Self::Import
                | Self::Memory
                | Self::Occurrence { .. }
                | Self::Notices
                | Self::Delivery(_)
                | Self::Watchdog
                | Self::Docs(_)
        )
    }
}

impl DueItem {
    fn of(owner: &Owner, target: DueTarget) -> Self {
        Self { owner: owner.clone(), target, due_at: None, also: Vec::new() }
    }

    #[must_use]
    pub fn action(owner: &Owner, id: ActionId) -> Self {
        Self::of(owner, DueTarget::Action(id))
    }

    #[must_use]
    pub fn run(owner: &Owner, id: RunId) -> Self {
        Self::of(owner, DueTarget::Run(id))
    }

    #[must_use]
    pub fn backlog(owner: &Owner) -> Self {
        Self::of(owner, DueTarget::Backlog)
    }

    #[must_use]
    pub fn deletion(owner: &Owner) -> Self {
        Self::of(owner, DueTarget::Deletion)
    }

    #[must_use]
    pub fn export(owner: &Owner, id: ExportId) -> Self {
        Self::of(owner, DueTarget::Export(id))
    }

    #[must_use]
    pub fn memory(owner: &Owner) -> Self {
        Self::of(owner, DueTarget::Memory)
    }

    #[must_use]
    pub fn occurrence(owner: &Owner, action: ActionId, run: RunId) -> Self {
        Self::of(owner, DueTarget::Occurrence { action, run })
    }

    #[must_use]
    pub fn notices(owner: &Owner) -> Self {
        Self::of(owner, DueTarget::Notices)
    }

    #[must_use]
    pub fn delivery(owner: &Owner, id: DeliveryId) -> Self {
        Self::of(owner, DueTarget::Delivery(id))
    }

    #[must_use]
    pub fn replies(owner: &Owner, id: ChannelId) -> Self {
        Self::of(owner, DueTarget::Replies(id))
    }

    #[must_use]
    pub fn docs(owner: &Owner, project: ProjectId) -> Self {
        Self::of(owner, DueTarget::Docs(project))
    }

    #[must_use]
    pub fn watchdog(owner: &Owner) -> Self {
        Self::of(owner, DueTarget::Watchdog)
    }

    /// The look at several owners. `None` if there are none.
    #[must_use]
    pub fn look(owners: &[Owner], look: Timestamp) -> Option<Self> {
        let (first, also) = owners.split_first()?;
        Some(Self { due_at: Some(look), also: also.to_vec(), ..Self::watchdog(first) })
    }

    #[must_use]
    pub fn import(owner: &Owner) -> Self {
        Self::of(owner, DueTarget::Import)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn an_item_is_its_owner_kind_and_id() {
        let owner = Owner::new("auth0|me").unwrap();
        let action = ActionId::from_uuid(Uuid::from_u128(7));
        let run = RunId::from_uuid(Uuid::from_u128(8));
        for (item, kind, id) in [
            (DueItem::action(&owner, action), "action", action.to_string()),
            (DueItem::run(&owner, run), "run", run.to_string()),
        ] {
            let expected = json!({"owner": "auth0|me", "kind": kind, "id": id});
            assert_eq!(serde_json::to_value(&item).unwrap(), expected);
            assert_eq!(serde_json::from_value::<DueItem>(expected).unwrap(), item);
        }
        let of_run = DueItem::occurrence(&owner, action, run);
        let expected = json!({
            "owner": "auth0|me", "kind": "occurrence", "id": {"action": action.to_string(), "run": run.to_string()},
        });
        assert_eq!(serde_json::to_value(&of_run).unwrap(), expected);
        assert_eq!(serde_json::from_value::<DueItem>(expected).unwrap(), of_run);
        for (item, kind) in [(DueItem::backlog(&owner), "backlog"), (DueItem::deletion(&owner), "deletion")] {
            let expected = json!({"owner": "auth0|me", "kind": kind});
            assert_eq!(serde_json::to_value(&item).unwrap(), expected);
            assert_eq!(serde_json::from_value::<DueItem>(expected).unwrap(), item);
        }
    }
}
