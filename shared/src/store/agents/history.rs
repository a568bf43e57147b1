//! The ledgers of actions and agents: each change is an item, and its sort key is the version after the change.

use domain::history::Change;
use domain::ids::{ActionId, AgentId, Owner};
use jiff::SignedDuration;

use crate::store::keys;
use crate::store::table::key::{Key, Range};
use crate::store::table::{Attributes, Extras, Order, QueryPage, Store, StoreError, Versioned, Write, item};

/// How long a change is kept.
pub(in crate::store) const CHANGE_LIFETIME: SignedDuration = SignedDuration::from_hours(400 * 24);

/// What has a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ledger {
    Action(ActionId),
    Agent(AgentId),
}

impl Ledger {
    fn key(self, owner: &Owner, version: u64) -> Key {
        match self {
            Self::Action(id) => keys::action_change(owner, id, version),
            Self::Agent(id) => keys::agent_change(owner, id, version),
        }
    }

    fn range(self, owner: &Owner) -> Range {
        match self {
            Self::Action(id) => keys::action_changes(owner, id),
            Self::Agent(id) => keys::agent_changes(owner, id),
        }
    }
}

/// A change with its key.
pub(in crate::store) fn change_item(
    owner: &Owner,
    of: Ledger,
    change: &Change,
) -> Result<(Key, Attributes), StoreError> {
    let extras = Extras::expiring(change.at + CHANGE_LIFETIME);
    Ok((of.key(owner, change.version), item(change, &extras)?))
}

impl Store {
    /// The write of a change, for the transaction that makes the change.
    pub fn change_write(owner: &Owner, of: Ledger, change: &Change) -> Result<Write, StoreError> {
        let (key, item) = change_item(owner, of, change)?;
        Ok(Write::Put { key, item })
    }

    /// Newest first.
    pub async fn changes(
        &self,
        owner: &Owner,
        of: Ledger,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<Change>, StoreError> {
        self.query(&of.range(owner), after, limit, Order::Newest).await
    }

    /// The change that led to this version.
    pub async fn change(
        &self,
        owner: &Owner,
        of: Ledger,
        version: u64,
    ) -> Result<Option<Change>, StoreError> {
        let found: Option<Versioned<Change>> = self.get(&of.key(owner, version)).await?;
        Ok(found.map(|found| found.value))
    }
}
