//! A restart on one machine: the leases of the previous process end at once.
//!
//! The lock of the data folder proves that the previous process is dead, so nobody uses the leases in the table. On AWS there
//! is no such proof, and a lease ends only when its time is over.

use std::collections::HashSet;

use domain::accounts::deletion::DeletionState;
use domain::actions::OccurrenceState;
use domain::background::places::Purpose;
use jiff::SignedDuration;

use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::actions::{self, Loaded};
use crate::store::keys::SHARDS;
use crate::store::{DueEntry, DueItem, DueTarget, Store, Versioned};

/// No lease is longer than this.
const LONGEST_LEASE: SignedDuration = SignedDuration::from_mins(20);

/// How many items of one shard are processed. Further leases end when their time is over.
const PER_SHARD: usize = 1_000;

/// Ends the leases of all runs, so that they are taken over at once, and returns how many there were. Call it after taking
/// the lock of the folder and before starting any work.
///
/// # Errors
/// If the table does not answer.
pub async fn of_previous_process(cx: &Cx) -> Result<usize> {
    let (mut freed, mut owners) = (0, HashSet::new());
    for shard in 0..SHARDS {
        let until = cx.clock.now() + LONGEST_LEASE;
        for entry in cx.store.due(shard, until, PER_SHARD).await? {
            let Some(item) = entry.item() else { continue };
            freed += usize::from(free(cx, &entry, &item).await?);
            owners.insert(item.owner);
        }
    }
    for owner in owners {
        for purpose in [Purpose::Runs, Purpose::Messages] {
            for ((number, _), version) in cx.store.places(&owner, purpose).await? {
                let _ = cx.store.free_place(&owner, (purpose, number), version).await?;
            }
        }
    }
    Ok(freed)
}

async fn free(cx: &Cx, entry: &DueEntry, DueItem { owner, target, .. }: &DueItem) -> Result<bool> {
    let now = cx.clock.now();
    match *target {
        DueTarget::Run(id) => {
            let Some(Versioned { value: mut run, version }) = cx.store.run(owner, id).await? else {
                return Ok(false);
            };
            if run.state.is_final() {
                return Ok(false);
            }
            run.lease_until = now.min(run.lease_until);
            Ok(cx.store.replace_run(owner, &run, version).await?.done())
        }
        // All places are free now.
        DueTarget::Backlog => {
            let _ = cx.store.lease_due(entry, now, None).await?;
            Ok(false)
        }
        // The process that wrote it is dead.
        DueTarget::Export(_)
        | DueTarget::Import
        | DueTarget::Memory
        | DueTarget::Watchdog
        | DueTarget::Replies(_)
        | DueTarget::Docs(_) => {
            let _ = cx.store.lease_due(entry, now, None).await?;
            Ok(false)
        }
        // Their leases end within minutes, and nothing else waits for them.
        DueTarget::Occurrence { .. } | DueTarget::Notices | DueTarget::Delivery(_) => Ok(false),
        DueTarget::Deletion => {
            let deletion = cx.store.deletion(owner).await?;
            if deletion.is_some_and(|found| found.value.state == DeletionState::Removing) {
                let _ = cx.store.lease_due(entry, now, None).await?;
            }
            Ok(false)
        }
        DueTarget::Action(id) => {
            let Loaded { action, live } = match actions::load_live(cx, owner, id).await {
                Ok(loaded) => loaded,
                Err(Error::NotFound(_)) => return Ok(false),
                Err(error) => return Err(error),
            };
            let Some(Versioned { value: mut occurrence, version }) = live.clone().filter(|live| {
                let held = matches!(live.value.state, OccurrenceState::Claimed | OccurrenceState::Running);
                held && live.value.lease().is_some_and(|lease| !lease.is_over(now))
            }) else {
                // It may have been in the queue, which ended with the process: it is dispatched again at its own time.
                let due_at = actions::wake_at(&action.value, live.as_ref().map(|live| &live.value), now);
                if let Some(due_at) = due_at {
                    let _ = cx.store.release_due(entry, due_at).await?;
                }
                return Ok(false);
            };
            occurrence.lease_until = Some(now);
            let mut writes = vec![Store::replace_occurrence(owner, &occurrence, version)?];
            let mut next = action.value.clone();
            next.forget_found();
            writes.extend(actions::action_writes(owner, &action, &next, Some(&occurrence), now)?);
            Ok(cx.store.write_all(writes).await?.done())
        }
    }
}
