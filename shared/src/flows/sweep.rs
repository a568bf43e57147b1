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

/// Dispatches everything that is due, page by page in each shard, until nothing is or the deadline is near. What the index
/// shows and is not so any more (it follows the table with a delay, and other sweeps lease too) is passed over.
///
/// # Errors
/// When the table does not answer for a shard; the others were served.
pub async fn sweep(cx: &Cx, deadline: Timestamp) -> Result<Swept> {
    let (mut swept, mut unread) = (Swept::default(), None);
    let due_by = cx.clock.now();
    let mut places: Vec<Place> = (0..SHARDS).map(|shard| Place { shard, after: None }).collect();
    while !places.is_empty() && cx.clock.now() + RESERVE < deadline {
        let pages = stream::iter(places.into_iter().map(|place| read(cx, due_by, place)));
        let pages: Vec<_> = pages.buffer_unordered(CALLS).collect().await;
        let (mut entries, mut further) = (Vec::new(), Vec::new());
        for page in pages {
            match page {
                Ok((found, next)) => {
                    entries.extend(found);
                    further.extend(next);
                }
                Err(error) => unread = unread.or(Some(error)),
            }
        }
        places = further;
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
        // What was given back is for the next sweep: the bus is not asked again at once.
        if failed > 0 {
            break;
        }
    }
    unread.map_or(Ok(swept), |error| Err(error.into()))
}

/// Where the sweep goes on in a shard.
struct Place {
    shard: u32,
    /// The last entry that was read.
    after: Option<DueEntry>,
}

/// The next page of a shard, and where to go on if there is more.
async fn read(
    cx: &Cx,
    due_by: Timestamp,
    Place { shard, after }: Place,
) -> std::result::Result<(Vec<DueEntry>, Option<Place>), StoreError> {
    let (entries, next) = cx.store.due_after(shard, due_by, PER_SHARD, after.as_ref()).await?;
    Ok((entries, next.map(|entry| Place { shard, after: Some(entry) })))
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
    Event::Due(DueItem { due_at: Some(leased.was_due), ..leased.item.clone() })
}
