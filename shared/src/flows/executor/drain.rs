//! Drains an owner's backlog (`backlog.rs`): an executor takes a place, takes runs from the backlog, and drives them.

use domain::ids::{ActionId, Owner};
use futures::FutureExt;
use futures::future::join_all;
use jiff::Timestamp;

use super::{backlog, wake};
use crate::context::Cx;
use crate::error::{Error, Result, caught};
use crate::flows::background::due;
use crate::store::DueItem;

/// Takes a place for the owner, takes as many runs of the backlog as this invocation has room for, and drives them.
///
/// # Errors
/// If the table does not answer. Then the message is delivered again.
pub async fn drain(cx: &Cx, owner: &Owner, deadline: Timestamp) -> Result<()> {
    let Ok(entered) = cx.places.enter(cx, owner, false).await? else { return Ok(()) };
    let driven = drive(cx, owner, deadline).await;
    entered.leave(cx).await;
    driven
}

async fn drive(cx: &Cx, owner: &Owner, deadline: Timestamp) -> Result<()> {
    // This message is not a run itself, so there is room for one run in its place.
    let room = 1 + cx.places.take_room(usize::MAX);
    let mut taken: Vec<ActionId> = Vec::with_capacity(room);
    let more = loop {
        let found = cx.store.backlog(owner, room - taken.len() + 1).await?;
        if found.is_empty() {
            break false;
        }
        if taken.len() == room {
            break true;
        }
        let missing = room - taken.len();
        for (sort_key, run) in found.into_iter().take(missing) {
            // If this fails, another executor has taken the run.
            if cx.store.take_from_backlog(owner, &sort_key).await?.done() {
                taken.push(run.action_id);
            }
        }
    };
    cx.places.give_room_back(room - taken.len().max(1));
    if !more {
        cx.store.unmark_backlog(owner).await?;
    } else if backlog::is_free(cx, owner).await? {
        // Each executor calls the next one, until no place is free or the backlog is empty.
        due::dispatch(cx, &DueItem::backlog(owner)).await;
    }
    join_all(taken.into_iter().map(|id| run(cx, owner, id, deadline).boxed())).await;
    Ok(())
}

/// Drives a run of the backlog. If that fails, the run gets a message of its own.
async fn run(cx: &Cx, owner: &Owner, id: ActionId, deadline: Timestamp) {
    if let Err(error) = caught(wake::wake(cx, owner, id, deadline).boxed()).await.flatten() {
        let error: Error = error;
        tracing::error!(code = error.code(), cause = %error.causes(), "a run of the backlog failed; it is dispatched again");
        due::dispatch(cx, &DueItem::action(owner, id)).await;
    }
}
