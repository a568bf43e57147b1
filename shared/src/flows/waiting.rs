//! The runs of an owner that wait for a place on an executor.
//!
//! A run that finds no place goes on a list. Whoever gives a place back sends one message, and the executor that takes it fills
//! itself from the list ([`super::backlog`]). So a run is put off once, and moves on as soon as there is room, however many wait.
//!
//! If that chain breaks, because executors die or a message is lost, two things start it again: the mark that the owner has a
//! list is an item of the due index, at which a sweep looks every few minutes, and so is each run, a quarter of an hour later.

use domain::actions::{Occurrence, OccurrenceCommand, Reason, ReasonCode};
use domain::ids::Owner;
use domain::places::{self, Full};
use jiff::{SignedDuration, Timestamp};
use rand::Rng;

use super::due;
use crate::context::Cx;
use crate::problem::Result;
use crate::store::places::Waiting;
use crate::store::table::Write;
use crate::store::{DueItem, Store};

/// When a sweep looks at an owner's list for the first time.
const LOOK_AFTER: SignedDuration = SignedDuration::from_secs(60);

/// When a run that waits is looked at in any case, at the earliest and at the latest.
const LOOK_AGAIN_SECONDS: std::ops::Range<i64> = 900..1_200;

/// The occurrence after it was put off because no place is free. `None` if it is held by an executor that died: its lease has
/// ended, so it is looked at again soon.
#[must_use]
pub fn put_off(occurrence: &Occurrence, full: Full, now: Timestamp) -> Option<Occurrence> {
    let text = match full.executors {
        1 => "an executor already works on runs of yours, which is the limit".to_owned(),
        executors => format!("{executors} executors already work on runs of yours, which is the limit"),
    };
    let seconds = rand::rng().random_range(LOOK_AGAIN_SECONDS);
    let look_again_at = now.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX);
    let reason = Reason::new(ReasonCode::TooManyRuns, text);
    occurrence.transition(OccurrenceCommand::AwaitPlace { look_again_at, reason }, now).ok()
}

/// The write that puts a run on its owner's list.
///
/// # Errors
/// When the record has no form as an item; a bug.
pub fn wait_write(owner: &Owner, occurrence: &Occurrence, by_hand: bool, now: Timestamp) -> Result<Write> {
    let waiting = Waiting { action_id: occurrence.action_id, run_id: occurrence.run_id };
    Ok(Store::wait_write(owner, &waiting, by_hand, occurrence.due_at, now)?)
}

/// Makes sure that a sweep looks at the owner's list.
///
/// # Errors
/// When the table does not answer.
pub async fn mark(cx: &Cx, owner: &Owner) -> Result<()> {
    let now = cx.clock.now();
    // It may be there already.
    let _ = cx.store.mark_backlog(owner, now, now.saturating_add(LOOK_AFTER).unwrap_or(now)).await?;
    Ok(())
}

/// Sends an executor to the owner's list, if there is one.
///
/// # Errors
/// When the table does not answer.
pub async fn wake(cx: &Cx, owner: &Owner) -> Result<()> {
    if !cx.store.waiting_runs(owner, 1).await?.is_empty() {
        due::dispatch(cx, &DueItem::backlog(owner)).await;
    }
    Ok(())
}

/// The same, but only if a place is free.
///
/// # Errors
/// When the table does not answer.
pub async fn wake_if_free(cx: &Cx, owner: &Owner) -> Result<()> {
    if is_free(cx, owner).await? { wake(cx, owner).await } else { Ok(()) }
}

/// Whether the owner has a free place.
///
/// # Errors
/// When the table does not answer.
pub async fn is_free(cx: &Cx, owner: &Owner) -> Result<bool> {
    let taken: Vec<_> = cx.store.places(owner).await?.into_iter().map(|(place, _)| place).collect();
    Ok(places::choose(&taken, cx.config.executors.count, false, cx.clock.now(), 0).is_ok())
}
