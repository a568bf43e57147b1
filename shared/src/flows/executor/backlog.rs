//! An owner's backlog: the runs that wait for a place on an executor.
//!
//! A run that finds no place is put on the backlog. An executor that gives a place back sends one message. The executor that
//! receives this message takes as many runs from the backlog as it has room for ([`super::drain`]). So each run is put off once,
//! and starts as soon as there is room, even if many runs wait.
//!
//! This chain breaks if executors die or a message is lost. Two items of the due index restart it: the mark that the owner has
//! a backlog, which a sweep checks every few minutes, and each of its runs, after a quarter of an hour.

use domain::actions::{Occurrence, OccurrenceCommand, Reason, ReasonCode};
use domain::background::places::{self, Full, Purpose};
use domain::ids::Owner;
use jiff::{SignedDuration, Timestamp};
use rand::Rng;

use crate::context::Cx;
use crate::error::Result;
use crate::flows::background::due;
use crate::store::runs::places::BacklogRun;
use crate::store::table::Write;
use crate::store::{DueItem, Store};

/// How long after the first run is put on the backlog a sweep checks it.
const LOOK_AFTER: SignedDuration = SignedDuration::from_secs(60);

/// A run of the backlog is checked again after a random time in this range, even if no executor takes it.
const LOOK_AGAIN_SECONDS: std::ops::Range<i64> = 900..1_200;

/// The occurrence after it was put off because no place is free. `None` if an executor that died holds it: its lease has ended,
/// so the sweep finds it soon.
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

/// The write that puts a run on its owner's backlog.
///
/// # Errors
/// If the record cannot be written as an item, which is a bug.
pub fn write(owner: &Owner, occurrence: &Occurrence, by_hand: bool, now: Timestamp) -> Result<Write> {
    let run = BacklogRun { action_id: occurrence.action_id, run_id: occurrence.run_id };
    Ok(Store::backlog_write(owner, &run, by_hand, occurrence.due_at, now)?)
}

/// Makes sure that a sweep checks the owner's backlog.
///
/// # Errors
/// If the table does not answer.
pub async fn mark(cx: &Cx, owner: &Owner) -> Result<()> {
    let now = cx.clock.now();
    // The mark may already exist.
    let _ = cx.store.mark_backlog(owner, now, now.saturating_add(LOOK_AFTER).unwrap_or(now)).await?;
    Ok(())
}

/// Asks an executor to drain the owner's backlog, if it has runs.
///
/// # Errors
/// If the table does not answer.
pub async fn dispatch(cx: &Cx, owner: &Owner) -> Result<()> {
    if !cx.store.backlog(owner, 1).await?.is_empty() {
        due::dispatch(cx, &DueItem::backlog(owner)).await;
    }
    Ok(())
}

/// Like [`dispatch`], but only if a place is free.
///
/// # Errors
/// If the table does not answer.
pub async fn dispatch_if_free(cx: &Cx, owner: &Owner) -> Result<()> {
    if is_free(cx, owner).await? { dispatch(cx, owner).await } else { Ok(()) }
}

/// Whether the owner has a free place.
///
/// # Errors
/// If the table does not answer.
pub async fn is_free(cx: &Cx, owner: &Owner) -> Result<bool> {
    let taken: Vec<_> =
        cx.store.places(owner, Purpose::Runs).await?.into_iter().map(|(place, _)| place).collect();
    Ok(places::choose(&taken, cx.config.executors.count, false, cx.clock.now(), 0).is_ok())
}
