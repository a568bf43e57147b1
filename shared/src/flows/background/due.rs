//! The dispatcher: it leases due items and sends them to the executors. [`crate::flows::executor::route`] processes them there.
//!
//! An entry of the `due` index is leased before its item is sent: its due time moves to three minutes after the true one. So no
//! other dispatcher sends it, and if the message is lost, the entry is found again three minutes later. The first write of an
//! executor restores the true time. Dispatching twice does no harm, because the stored state decides what to do: an item that
//! was paused, edited or cancelled after its lease has nothing to do.

use domain::background::dispatch::{LOOK_AHEAD, delay_seconds, is_without_break, leased_until};
use futures::stream::{self, StreamExt};
use jiff::Timestamp;

use crate::context::Cx;
use crate::error::Error;
use crate::process::due_queue::{Dispatch, MESSAGES};
use crate::store::due::Sighting;
use crate::store::{DueEntry, DueItem, keys};

/// How many calls are made concurrently.
const CALLS: usize = 32;

/// Sends an item to the executors at once. If the queue refuses it, the next sweep sends it within a minute.
pub async fn dispatch(cx: &Cx, item: &DueItem) {
    let now = Dispatch { item: item.clone(), delay_seconds: 0 };
    if !cx.due_queue.send(&[now]).await.is_empty() {
        tracing::warn!("a due item was not sent; the next sweep will send it");
    }
}

/// Dispatches an item that was just written with this due time, if that time comes before a sweep is sure to see the item.
/// Otherwise, or if this fails, a sweep sends it.
pub async fn dispatch_at(cx: &Cx, item: &DueItem, due_at: Option<Timestamp>) {
    let now = cx.clock.now();
    let Some(due_at) = due_at.filter(|at| *at <= now.checked_add(LOOK_AHEAD).unwrap_or(now)) else { return };
    if due_at <= now {
        return dispatch(cx, item).await;
    }
    let entry = DueEntry { key: keys::due_key(item), due_at: keys::sortable(due_at) };
    let leased = lease(cx, vec![entry]).await;
    send(cx, leased).await;
}

/// An entry that this dispatcher has leased.
pub struct Leased {
    /// The entry after the lease.
    entry: DueEntry,
    pub due_at: Timestamp,
    item: DueItem,
}

/// Leases entries. Entries that have changed since the index was read are left out: the index follows the table with a delay, and
/// other dispatchers lease concurrently.
pub async fn lease(cx: &Cx, entries: Vec<DueEntry>) -> Vec<Leased> {
    let now = cx.clock.now();
    let leases = entries.into_iter().map(async |entry| {
        let (Some(item), Ok(due_at)) = (entry.item(), entry.due_at.parse::<Timestamp>()) else {
            tracing::error!(sort_key = entry.key.sk, "the due index holds an entry that can't be read");
            return None;
        };
        if item.target.is_backstop() && due_at > now {
            return None;
        }
        let until = leased_until(due_at, now);
        let found = (!item.target.is_backstop()).then(|| Sighting {
            at: now,
            until: now.checked_add(LOOK_AHEAD).unwrap_or(now),
            without_break: is_without_break(due_at, now),
        });
        match cx.store.lease_due(&entry, until, found).await {
            Ok(written) if written.done() => {
                let entry = DueEntry { due_at: keys::sortable(until), ..entry };
                Some(Leased { entry, due_at, item })
            }
            // Another sweep has leased it, or it has changed since the index was read.
            Ok(_) => None,
            Err(error) => {
                tracing::warn!(cause = %error, "an entry could not be leased; the next sweep will find it");
                None
            }
        }
    });
    let leased: Vec<Option<Leased>> = stream::iter(leases).buffer_unordered(CALLS).collect().await;
    leased.into_iter().flatten().collect()
}

/// Sends leased items with the delay that remains. Ends the leases of the items that the queue refused, and returns their number.
pub async fn send(cx: &Cx, mut leased: Vec<Leased>) -> usize {
    // The longest overdue come first, in case the time runs out.
    leased.sort_by_key(|leased| leased.due_at);
    let calls: Vec<_> = leased.chunks(MESSAGES).map(|chunk| send_chunk(cx, chunk)).collect();
    let failed: Vec<usize> = stream::iter(calls).buffer_unordered(CALLS / 4).collect().await;
    failed.into_iter().sum()
}

async fn send_chunk(cx: &Cx, chunk: &[Leased]) -> usize {
    // Each call reads the time itself. With the time of the sweep, the delays of the last calls would be too long.
    let now = cx.clock.now();
    let dispatch = |leased: &Leased| Dispatch {
        item: DueItem { due_at: Some(leased.due_at), ..leased.item.clone() },
        delay_seconds: delay_seconds(leased.due_at, now),
    };
    let failed = cx.due_queue.send(&chunk.iter().map(dispatch).collect::<Vec<_>>()).await;
    for leased in failed.iter().filter_map(|at| chunk.get(*at)) {
        // If this fails too, the entry is due again when its lease ends.
        if let Err(error) = cx.store.lease_due(&leased.entry, leased.due_at, None).await {
            let error = Error::from(error);
            tracing::warn!(cause = %error.causes(), "an entry could not be given back");
        }
    }
    failed.len()
}
