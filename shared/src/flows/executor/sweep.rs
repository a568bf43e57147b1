//! The sweep: leases the items of all owners that will be due before the next sweep, and sends them to the executors.

use domain::actions::plan::ON_TIME;
use domain::background::dispatch::{LEASE, LOOK_AHEAD};
use futures::stream::{self, StreamExt};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::context::Cx;
use crate::error::Result;
use crate::flows::background::due;
use crate::store::keys::SHARDS;
use crate::store::{DueEntry, StoreError};

// If a message is lost, the first sweep after the end of its lease sends the item again while it is still on time.
const _: () = assert!(LEASE.as_secs() + 60 < ON_TIME.as_secs());

/// The shortest time before the deadline at which a new round may begin.
const RESERVE: SignedDuration = SignedDuration::from_secs(10);

/// How many entries of one shard a round reads.
const PER_SHARD: usize = 100;

/// The result of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Swept {
    pub leased: usize,
    pub published: usize,
    /// How many items the queue refused. Their leases were ended.
    pub failed: usize,
    /// How long the oldest item had been due, in milliseconds.
    pub oldest_lag_ms: i64,
}

/// Dispatches everything that is due soon, page by page in each shard, until nothing is left or the deadline is near.
///
/// # Errors
/// If the table does not answer for a shard. The items of the other shards were dispatched.
pub async fn sweep(cx: &Cx, deadline: Timestamp) -> Result<Swept> {
    let (mut swept, mut unread) = (Swept::default(), None);
    let now = cx.clock.now();
    let due_by = now.checked_add(LOOK_AHEAD).unwrap_or(now);
    let mut places: Vec<Cursor> = (0..SHARDS).map(|shard| Cursor { shard, after: None }).collect();
    while !places.is_empty() && cx.clock.now() + RESERVE < deadline {
        let pages = stream::iter(places.into_iter().map(|place| read(cx, due_by, place)));
        let pages: Vec<_> = pages.buffer_unordered(SHARDS as usize).collect().await;
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
        let leased = due::lease(cx, entries).await;
        let now = cx.clock.now();
        swept.leased += leased.len();
        let lag = leased.iter().map(|leased| now.duration_since(leased.due_at).as_millis()).max();
        let lag = lag.map_or(0, |lag| i64::try_from(lag).unwrap_or(i64::MAX));
        swept.oldest_lag_ms = swept.oldest_lag_ms.max(lag);
        let round = leased.len();
        let failed = due::send(cx, leased).await;
        swept.published += round - failed;
        swept.failed += failed;
        // The next sweep sends the refused items. This one does not call the queue again.
        if failed > 0 {
            break;
        }
    }
    unread.map_or(Ok(swept), |error| Err(error.into()))
}

/// Where the sweep continues in a shard.
struct Cursor {
    shard: u32,
    /// The last entry that was read.
    after: Option<DueEntry>,
}

/// The next page of a shard, and where to continue if there are more entries.
async fn read(
    cx: &Cx,
    due_by: Timestamp,
    Cursor { shard, after }: Cursor,
) -> std::result::Result<(Vec<DueEntry>, Option<Cursor>), StoreError> {
    let (entries, next) = cx.store.due_after(shard, due_by, PER_SHARD, after.as_ref()).await?;
    Ok((entries, next.map(|entry| Cursor { shard, after: Some(entry) })))
}
