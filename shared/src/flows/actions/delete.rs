//! Deletes an action with everything that belongs to it.

use domain::ids::{ActionId, Owner};

use super::{check_version, load};
use crate::blobs::BlobKey;
use crate::context::Cx;
use crate::error::Result;
use crate::request::caller::IfMatch;
use crate::store::keys;
use crate::store::table::Order;

/// # Errors
/// 404 if it does not exist, 409 if `If-Match` is not the current version.
pub async fn delete(cx: &Cx, owner: &Owner, id: ActionId, if_match: Option<IfMatch>) -> Result<()> {
    let action = load(cx, owner, id).await?;
    check_version(cx, owner, if_match, &action).await?;
    delete_if_there(cx, owner, id).await
}

/// Deletes an action, its occurrences, their runs and the messages about it. It is no error if the action is already
/// gone.
///
/// # Errors
/// If the table does not answer; the call can be repeated.
pub async fn delete_if_there(cx: &Cx, owner: &Owner, id: ActionId) -> Result<()> {
    let Some(action) = cx.store.action(owner, id).await? else { return Ok(()) };
    cx.blobs.delete_prefix(&BlobKey::messages(owner, id)).await?;
    delete_runs(cx, owner, id).await?;
    cx.store.delete_action(owner, &action.value, cx.clock.uuid(), cx.clock.now()).await?;
    // An executor or a turn may have written meanwhile. Without the record, they can't write any more.
    delete_runs(cx, owner, id).await?;
    Ok(cx.blobs.delete_prefix(&BlobKey::messages(owner, id)).await?)
}

async fn delete_runs(cx: &Cx, owner: &Owner, id: ActionId) -> Result<()> {
    let store = &cx.store;
    let mut after: Option<String> = None;
    loop {
        let found = store.occurrences(owner, id, after.as_deref(), 50, Order::Oldest).await?;
        for (_, occurrence) in found.items {
            // Only a run that has taken steps can have left one in S3. For other due times this costs no call.
            if occurrence.value.steps_done > 0 {
                cx.blobs.delete_prefix(&BlobKey::run_prefix(owner, occurrence.value.run_id)).await?;
            }
            store.delete_range(&keys::run_children(owner, occurrence.value.run_id)).await?;
        }
        after = found.last;
        if after.is_none() {
            break;
        }
    }
    Ok(store.delete_range(&keys::action_children(owner, id)).await?)
}
