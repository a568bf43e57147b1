//! The dispatcher: what is due is leased, sent to the executors, and looked at there.
//!
//! An entry of the `due` index is leased before its item is sent: its due time moves on to three minutes after the true one,
//! so that another dispatcher passes it over, and an item that is lost on its way costs three minutes and no run. An
//! executor's first write puts the true time back. Dispatching twice does no harm: what to do is decided from the stored
//! state, so an item that was paused, edited or cancelled after its lease finds nothing to do.

use std::time::Duration;

use domain::dispatch::{LOOK_AHEAD, delay_seconds, is_without_break, leased_until};
use futures::FutureExt;
use futures::stream::{self, StreamExt};
use jiff::{SignedDuration, Timestamp};

use super::{backlog, turn, wake};
use crate::context::Cx;
use crate::due_queue::{Dispatch, MESSAGES};
use crate::problem::{Error, Result};
use crate::store::due::Sighting;
use crate::store::{DueEntry, DueItem, DueTarget, keys};

/// How many calls are under way at once.
const CALLS: usize = 32;

/// An executor waits itself for no longer than this. The queue keeps an item for longer waits, which only clocks that differ
/// bring about: its delay is rounded down to seconds.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// How often a waiting executor looks whether its process is about to end.
const LOOK: Duration = Duration::from_millis(250);

/// Looks at an item that is due, not before its time. The item may have come twice or late: what to do is decided from the
/// stored state.
///
/// # Errors
/// When the table does not answer; the message comes again.
pub async fn look_at(cx: &Cx, item: &DueItem, deadline: Timestamp) -> Result<()> {
    if let Some(due_at) = item.due_at
        && !wait_until(cx, due_at).await
        && !cx.stopping.is_set()
    {
        let again = Dispatch { item: item.clone(), delay_seconds: delay_seconds(due_at, cx.clock.now()) };
        let taken = cx.due_queue.send(&[again]).await.is_empty();
        return if taken { Ok(()) } else { Err(Error::internal("an item that came early was not put back")) };
    }
    if cx.stopping.is_set() {
        // Another process will find it: it stays due.
        return Ok(());
    }
    // Boxed: these futures are large, and ten of them are polled in one task.
    match item.target {
        DueTarget::Action(id) => wake::wake(cx, &item.owner, id, deadline).boxed().await,
        DueTarget::Run(id) => turn::take_over(cx, &item.owner, id, deadline).boxed().await,
        DueTarget::Backlog => backlog::go_on(cx, &item.owner, deadline).boxed().await,
    }
}

/// Waits until the clock shows this time. `false`: it will not for a while, or the process is about to end.
async fn wait_until(cx: &Cx, at: Timestamp) -> bool {
    let waits_until = tokio::time::Instant::now() + LONGEST_WAIT;
    loop {
        let left = at.duration_since(cx.clock.now());
        if left <= SignedDuration::ZERO {
            return true;
        }
        let left = left.unsigned_abs();
        if left > LONGEST_WAIT || tokio::time::Instant::now() >= waits_until || cx.stopping.is_set() {
            return false;
        }
        cx.clock.sleep(left.min(LOOK)).await;
    }
}

/// Sends an executor at once. If the queue does not take the item, the next sweep sends it within a minute.
pub async fn dispatch(cx: &Cx, item: &DueItem) {
    let now = Dispatch { item: item.clone(), delay_seconds: 0 };
    if !cx.due_queue.send(&[now]).await.is_empty() {
        tracing::warn!("a due item waits for the next sweep");
    }
}

/// Sends an executor for an item that was just written with this due time, if that comes before a sweep is sure to see it.
/// Otherwise, and if anything fails, a sweep sends it.
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

/// An entry that is ours for the length of the lease.
pub struct Leased {
    /// As it is now.
    entry: DueEntry,
    pub due_at: Timestamp,
    item: DueItem,
}

/// Leases entries. What the index shows and is not so any more (it follows the table with a delay, and other dispatchers
/// lease too) is passed over.
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
            // Another sweep has it, or it has changed since the index was read.
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

/// Sends leased items with the delay that remains, and gives back what the queue did not take. Gives how many that were.
pub async fn send(cx: &Cx, mut leased: Vec<Leased>) -> usize {
    // The longest overdue first, should the time run out.
    leased.sort_by_key(|leased| leased.due_at);
    let calls: Vec<_> = leased.chunks(MESSAGES).map(|chunk| send_chunk(cx, chunk)).collect();
    let failed: Vec<usize> = stream::iter(calls).buffer_unordered(CALLS / 4).collect().await;
    failed.into_iter().sum()
}

async fn send_chunk(cx: &Cx, chunk: &[Leased]) -> usize {
    // The time of each call, not that of the sweep: the delays of the last of many are not too long.
    let now = cx.clock.now();
    let dispatch = |leased: &Leased| Dispatch {
        item: DueItem { due_at: Some(leased.due_at), ..leased.item.clone() },
        delay_seconds: delay_seconds(leased.due_at, now),
    };
    let failed = cx.due_queue.send(&chunk.iter().map(dispatch).collect::<Vec<_>>()).await;
    for leased in failed.iter().filter_map(|at| chunk.get(*at)) {
        // If this fails too, the entry comes back when its lease is over.
        if let Err(error) = cx.store.lease_due(&leased.entry, leased.due_at, None).await {
            let error = Error::from(error);
            tracing::warn!(cause = %error.causes(), "an entry could not be given back");
        }
    }
    failed.len()
}
