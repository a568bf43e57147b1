//! The records that make the runs of an action visible to followers.

use domain::actions::Action;
use domain::ids::{Owner, RunId};
use domain::runs::{Run, RunKind, RunState};
use jiff::Timestamp;

use crate::agent_loop::recorder::{end_without_executor, lease_from};
use crate::context::Cx;
use crate::error::Result;
use crate::store::runs::CancelCause;
use crate::store::table::Write;
use crate::store::{Store, Tries, Versioned};

/// The record that makes a run of `action` visible to followers.
#[must_use]
pub fn record(action: &Action, run_id: RunId, now: Timestamp) -> Run {
    Run {
        agent_id: Some(action.agent_id),
        action_id: Some(action.id),
        ..Run::begun(run_id, RunKind::Action, now, lease_from(now))
    }
}

/// The write that marks a waiting run as running again, so that its followers get what comes next.
///
/// # Errors
/// If the table does not answer.
pub(super) async fn goes_on(
    cx: &Cx,
    owner: &Owner,
    action: &Action,
    run: RunId,
    now: Timestamp,
) -> Result<Option<Write>> {
    Ok(match cx.store.run(owner, run).await? {
        Some(Versioned { value, version }) if value.state == RunState::Waiting => {
            let mut run = value;
            run.go_on(run.waited, now);
            Some(Store::replace_run_write(owner, &run, version)?)
        }
        Some(_) => None,
        // The record expires after a month, but a question may wait longer.
        None => Some(Store::run_write(owner, &record(action, run, now))?),
    })
}

/// Ends the record of a run whose occurrence was cancelled, and tells its executor, if there is one, to stop. Followers
/// see the end at once.
///
/// # Errors
/// If the table does not answer.
pub async fn end_run(cx: &Cx, owner: &Owner, run: RunId) -> Result<()> {
    end_run_because(cx, owner, run, CancelCause::Person).await
}

/// Like [`end_run`], with the cause that the run's error names.
pub(super) async fn end_run_because(cx: &Cx, owner: &Owner, run: RunId, cause: CancelCause) -> Result<()> {
    let Some(_) = cx.store.run(owner, run).await? else { return Ok(()) };
    cx.store.request_cancel(owner, run, cx.clock.now(), cause).await?;
    let mut tries = Tries::default();
    while tries.next().await.is_ok() {
        let Some(found) = cx.store.run(owner, run).await? else { return Ok(()) };
        if !matches!(found.value.state, RunState::Running | RunState::Waiting) {
            return Ok(());
        }
        let error = cause.error().or_else(|| found.value.error.clone());
        if end_without_executor(cx, owner, found, RunState::Cancelled, error).await? {
            return Ok(());
        }
    }
    // The executor keeps writing faster than this call. So it is alive, and it checks for a stop request twice a
    // second.
    Ok(())
}
