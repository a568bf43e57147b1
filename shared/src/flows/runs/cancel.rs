//! Cancels runs of conversations and of actions.

use std::time::Duration;

use domain::ids::{Owner, RunId};
use domain::runs::{Run, RunKind, RunState};

use crate::agent_loop::recorder::end_without_executor;
use crate::context::Cx;
use crate::error::Result;
use crate::flows::actions;
use crate::flows::existing;
use crate::request::caller::Actor;
use crate::store::Tries;
use crate::store::runs::CancelCause;

/// How long a live executor has to end its run by itself. It checks for the request twice a second.
const PATIENCE: Duration = Duration::from_millis(1_200);

/// How often the run is checked meanwhile.
const LOOK: Duration = Duration::from_millis(100);

/// Cancels a run, within two seconds. The run has ended when this returns, even if its executor is dead. A run that has already
/// ended is not changed. `by`: who asked for it, if a request did.
///
/// # Errors
/// 404 if it does not exist.
pub async fn cancel(cx: &Cx, owner: &Owner, by: Option<Actor>, id: RunId) -> Result<Run> {
    cancel_because(cx, owner, by, id, CancelCause::Person).await
}

/// Like [`cancel`], with the cause that the run's error names.
///
/// # Errors
/// As [`cancel`].
pub async fn cancel_because(
    cx: &Cx,
    owner: &Owner,
    by: Option<Actor>,
    id: RunId,
    cause: CancelCause,
) -> Result<Run> {
    let found = existing::run(cx, owner, id).await?;
    match (found.value.kind, found.value.action_id) {
        _ if found.value.state.has_ended() => return Ok(found.value),
        (RunKind::Action, Some(action)) => actions::runs::cancel(cx, owner, by, action, id, cause).await?,
        _ => cancel_turn(cx, owner, id, cause).await?,
    }
    Ok(existing::run(cx, owner, id).await?.value)
}

async fn cancel_turn(cx: &Cx, owner: &Owner, id: RunId, cause: CancelCause) -> Result<()> {
    cx.store.request_cancel(owner, id, cx.clock.now(), cause).await?;
    let began = tokio::time::Instant::now();
    loop {
        let found = existing::run(cx, owner, id).await?;
        if found.value.state.has_ended() {
            return Ok(());
        }
        let left = found.value.lease().is_over(cx.clock.now());
        if left || began.elapsed() >= PATIENCE {
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    // Its executor is dead or too slow. From now on its writes are refused.
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let found = existing::run(cx, owner, id).await?;
        if found.value.state.has_ended()
            || end_without_executor(cx, owner, found, RunState::Cancelled, cause.error()).await?
        {
            return Ok(());
        }
    }
}
