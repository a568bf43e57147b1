//! Handles a clock that was ahead and was set back. AWS clocks do not jump, but the clock of a person's machine may.
//!
//! The table stores how far the clock has come, in steps of ten minutes. If the clock shows an earlier time, everything
//! that was planned by the wrong clock is planned again. New ids continue after the newest ones, so that new messages
//! still sort last.

use domain::actions::{Action, Command, Held, OccurrenceCommand, transition};
use domain::ids::{ActionId, Owner};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::wake;
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::actions::{self, Loaded};
use crate::store::keys::{self, SHARDS};
use crate::store::table::{Extras, Write, item};
use crate::store::{DueEntry, DueTarget, Store, Tries, Versioned};

/// How far the clock moves before the table is updated.
const STEP: SignedDuration = SignedDuration::from_mins(10);

/// Clock corrections up to this size are normal.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(60);

/// How many entries of the index are read at once.
const PAGE: usize = 100;

/// The stored record.
#[derive(Debug, Serialize, Deserialize)]
struct ClockRecord {
    at: Timestamp,
}

/// The result of a check of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockState {
    Fine,
    /// The clock was set back, and this many actions were planned again.
    SetBack {
        actions: usize,
    },
}

/// Checks whether the clock was set back since the last call, and repairs the consequences.
///
/// # Errors
/// If the table does not answer; the next call continues.
pub async fn check(cx: &Cx) -> Result<ClockState> {
    let now = cx.clock.now();
    let seen: Option<Versioned<ClockRecord>> = cx.store.get(&keys::clock()).await?;
    let Some(seen) = seen.map(|seen| seen.value.at) else {
        return write(cx, now).await.map(|()| ClockState::Fine);
    };
    if now + TOLERANCE >= seen {
        if now.duration_since(seen) >= STEP {
            write(cx, now).await?;
        }
        return Ok(ClockState::Fine);
    }
    tracing::warn!(%seen, %now, "the clock was set back; actions that were planned by the wrong clock are planned again");
    // The stored time may be one step older than the last id.
    cx.clock.ids_after(seen + STEP);
    let actions = plan_again(cx, now).await?;
    write(cx, now).await?;
    Ok(ClockState::SetBack { actions })
}

async fn write(cx: &Cx, at: Timestamp) -> Result<()> {
    Ok(cx.store.put(&keys::clock(), item(&ClockRecord { at }, &Extras::default())?).await?)
}

/// Plans every action again that is not due before `now`.
async fn plan_again(cx: &Cx, now: Timestamp) -> Result<usize> {
    // All entries are read before any is written, because a write moves the entry within the index.
    let mut found = Vec::new();
    for shard in 0..SHARDS {
        let mut after = None;
        loop {
            let (entries, next) = cx.store.due_after(shard, Timestamp::MAX, PAGE, after.as_ref()).await?;
            found.extend(entries.iter().filter_map(DueEntry::item));
            after = next;
            if after.is_none() {
                break;
            }
        }
    }
    let mut looked_at = 0;
    for item in found {
        if let DueTarget::Action(id) = item.target {
            plan_action_again(cx, &item.owner, id, now).await?;
            looked_at += 1;
        }
    }
    Ok(looked_at)
}

async fn plan_action_again(cx: &Cx, owner: &Owner, id: ActionId, now: Timestamp) -> Result<()> {
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let Loaded { action, live } = match actions::load_live(cx, owner, id).await {
            Ok(loaded) => loaded,
            Err(Error::NotFound(_)) => return Ok(()),
            Err(error) => return Err(error),
        };
        let Ok(next) = transition(&action.value, Command::ClockSetBack, now) else { return Ok(()) };
        let mut writes = Vec::new();
        let mut live_after = live.as_ref().map(|live| live.value.clone());
        if let Some(live) = &live {
            let command = OccurrenceCommand::ClockSetBack { longest_lease: wake::LONGEST_LEASE };
            if let Ok(corrected) = live.value.transition(command, now)
                && corrected != live.value
            {
                writes.push(Store::replace_occurrence(owner, &corrected, live.version)?);
                live_after = Some(corrected);
            }
        }
        if writes.is_empty() && next == action.value {
            return Ok(());
        }
        if next.held != action.value.held {
            writes.extend(counted_again(cx, owner, &action.value, next.held).await?);
        }
        writes.extend(actions::action_writes(owner, &action, &next, live_after.as_ref(), now)?);
        if cx.store.write_all(writes).await?.done() {
            return Ok(());
        }
    }
}

/// The write that corrects the record of held due times. `held` are those that are not to come again.
async fn counted_again(cx: &Cx, owner: &Owner, action: &Action, held: Option<Held>) -> Result<Option<Write>> {
    let Some(series) = action.held else { return Ok(None) };
    let Some(record) = cx.store.occurrence(owner, action.id, series.run_id(action.id)).await? else {
        return Ok(None);
    };
    let corrected = held.unwrap_or(Held::since(series.first_due_at)).corrects(action, &record.value);
    Ok(Some(Store::replace_occurrence(owner, &corrected, record.version)?))
}
