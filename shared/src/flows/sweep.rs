//! The sweep: what is due, of all owners, is sent to the executors.
//!
//! An entry of the `due` index is leased before its event is published: its due time moves on by three minutes, so that a
//! sweep that overlaps passes it over, and an event that is lost on its way costs three minutes and no run. An executor's
//! first write puts the true time back. Dispatching twice does no harm: what to do is decided from the stored state.

use domain::actions::plan::ON_TIME;
use futures::stream::{self, StreamExt};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::bus::Event;
use crate::context::Cx;
use crate::problem::{Error, Result};
use crate::store::keys::{self, SHARDS};
use crate::store::{DueEntry, DueItem, StoreError};

/// For how long a dispatched item is left alone. What was lost is found again, by the next sweep after that, while it is
/// still on time: otherwise a schedule that catches nothing up would miss it.
const LEASE: SignedDuration = SignedDuration::from_mins(3);
const _: () = assert!(LEASE.as_secs() + 60 < ON_TIME.as_secs());

/// No new round begins this long before the deadline.
const RESERVE: SignedDuration = SignedDuration::from_secs(10);

/// How many entries of one shard a round takes.
const PER_SHARD: usize = 100;

/// How many calls of the table are under way at once.
const CALLS: usize = 32;

/// EventBridge takes this many events in one call.
const EVENTS: usize = 10;

/// What a sweep has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Swept {
    pub leased: usize,
    pub published: usize,
    /// Not taken by the bus, and given back.
    pub failed: usize,
    /// How long the one that had waited longest had been due, in milliseconds.
    pub oldest_lag_ms: i64,
}

/// An entry that is ours for the length of the lease.
struct Leased {
    /// As it is now.
    entry: DueEntry,
    was_due: Timestamp,
    item: DueItem,
}

/// Dispatches everything that is due, round by round, until nothing is or the deadline is near.
///
/// # Errors
/// When the table does not answer for a shard; the others were served.
pub async fn sweep(cx: &Cx, deadline: Timestamp) -> Result<Swept> {
    let mut swept = Swept::default();
    while cx.clock.now() + RESERVE < deadline {
        let Due { entries, more, unread } = due(cx).await;
        let leased = lease(cx, entries).await;
        let now = cx.clock.now();
        swept.leased += leased.len();
        let lag = leased.iter().map(|leased| now.duration_since(leased.was_due).as_millis()).max();
        let lag = lag.map_or(0, |lag| i64::try_from(lag).unwrap_or(i64::MAX));
        swept.oldest_lag_ms = swept.oldest_lag_ms.max(lag);
        let round = leased.len();
        let failed = publish(cx, leased).await;
        swept.published += round - failed;
        swept.failed += failed;
        if let Some(error) = unread {
            return Err(error.into());
        }
        // What was given back is for the next sweep: the bus is not asked again at once. Where nothing was leased, another
        // sweep is at it.
        if !more || round == 0 || failed > 0 {
            break;
        }
    }
    Ok(swept)
}

/// What a look at all shards has found.
#[derive(Default)]
struct Due {
    entries: Vec<DueEntry>,
    /// Whether a shard may hold more than a round takes.
    more: bool,
    /// The first failure to read a shard.
    unread: Option<StoreError>,
}

async fn due(cx: &Cx) -> Due {
    let now = cx.clock.now();
    let mut shards =
        stream::iter((0..SHARDS).map(|shard| cx.store.due(shard, now, PER_SHARD))).buffer_unordered(CALLS);
    let mut due = Due::default();
    while let Some(read) = shards.next().await {
        match read {
            Ok(found) => {
                due.more |= found.len() == PER_SHARD;
                due.entries.extend(found);
            }
            Err(error) => due.unread = due.unread.or(Some(error)),
        }
    }
    due
}

async fn lease(cx: &Cx, due: Vec<DueEntry>) -> Vec<Leased> {
    let until = cx.clock.now() + LEASE;
    let leases = due.into_iter().map(async |entry| {
        let Some(item) = entry.item() else {
            tracing::error!(sort_key = entry.key.sk, "the due index holds an entry of an unknown kind");
            return None;
        };
        match cx.store.lease_due(&entry, until).await {
            Ok(written) if written.done() => {
                let was_due = entry.due_at.parse().unwrap_or(until);
                let entry = DueEntry { due_at: keys::sortable(until), ..entry };
                Some(Leased { entry, was_due, item })
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

/// Publishes the events, and gives back what the bus did not take. Answers how many that were.
async fn publish(cx: &Cx, mut leased: Vec<Leased>) -> usize {
    // The longest overdue first, should the time run out.
    leased.sort_by_key(|leased| leased.was_due);
    let calls: Vec<_> = leased.chunks(EVENTS).map(|chunk| publish_chunk(cx, chunk)).collect();
    let failed: Vec<usize> = stream::iter(calls).buffer_unordered(CALLS / 4).collect().await;
    failed.into_iter().sum()
}

async fn publish_chunk(cx: &Cx, chunk: &[Leased]) -> usize {
    let events: Vec<Event> = chunk.iter().map(event).collect();
    let Err(error) = cx.bus.publish(&events).await else { return 0 };
    tracing::warn!(cause = %error, events = chunk.len(), "the bus did not take all events");
    for leased in chunk {
        // Where this fails too, the entry comes back when its lease is over.
        if let Err(error) = cx.store.lease_due(&leased.entry, leased.was_due).await {
            let error = Error::from(error);
            tracing::warn!(cause = %error.causes(), "an entry could not be given back");
        }
    }
    chunk.len()
}

fn event(leased: &Leased) -> Event {
    Event::Due(leased.item.clone())
}
