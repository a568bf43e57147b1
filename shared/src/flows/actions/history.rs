//! The ledgers of actions and agents, as people read them.

use domain::history::Change;
use domain::ids::Owner;
use futures::FutureExt;

use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::page::{self, Page, PageQuery};
use crate::store::agents::history::Ledger;

/// The changes, newest first.
///
/// # Errors
/// 400 if `limit` or `cursor` is invalid.
pub(in crate::flows) async fn list(
    cx: &Cx,
    owner: &Owner,
    of: Ledger,
    query: &PageQuery,
) -> Result<Page<Change>> {
    let read = |after: Option<String>, limit| {
        async move { cx.store.changes(owner, of, after.as_deref(), limit).await }.boxed()
    };
    let name = match of {
        Ledger::Action(id) => format!("history of {id}"),
        Ledger::Agent(id) => format!("history of {id}"),
    };
    Ok(page::filtered(owner, &name, query, read, |_| true).await?.map(|change| change.value))
}

/// The change that led to this version.
///
/// # Errors
/// 404 if the ledger has no such change.
pub(in crate::flows) async fn load(cx: &Cx, owner: &Owner, of: Ledger, version: u64) -> Result<Change> {
    cx.store.change(owner, of, version).await?.ok_or(Error::NotFound("change"))
}

/// The refusal of a revert that would change nothing. `current` is the action or agent.
pub(in crate::flows) fn nothing_to_revert(change: &Change, current: &impl serde::Serialize) -> Error {
    let message = match (change.is_first(), change.changes.is_empty()) {
        (true, _) => "there was nothing before this change",
        (false, true) => "this change has set no field",
        (false, false) => "the fields already have the values that they had before this change",
    };
    Error::conflict_with("nothing_to_revert", message, current)
}
