//! Processes an action: decides the due times that have come, then runs the next occurrence if it may run.
//!
//! The message names only the action. Everything else is read here and decided by the domain. So a message that comes twice, late
//! or never does no harm: the sweep sends another one.

mod claim;
mod decide;

use domain::ids::{ActionId, Owner};
use jiff::{SignedDuration, Timestamp};

use self::claim::Claim;
use self::decide::Storing;
use super::{execute, preflight};
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::actions::{self, Loaded};
use crate::store::Tries;

/// The longest lease that any executor takes.
pub(super) const LONGEST_LEASE: SignedDuration = SignedDuration::from_mins(17);

/// Processes an action.
///
/// # Errors
/// As [`wake_with`].
pub async fn wake(cx: &Cx, owner: &Owner, id: ActionId, deadline: Timestamp) -> Result<()> {
    wake_with(cx, &cx.remembering(), owner, id, deadline).await
}

/// Processes an action. `beginning` remembers what was read before, and what is read until a run begins.
///
/// # Errors
/// If the table does not answer, or if other writers change the action again and again. Then the message is delivered again.
pub async fn wake_with(
    cx: &Cx,
    beginning: &Cx,
    owner: &Owner,
    id: ActionId,
    deadline: Timestamp,
) -> Result<()> {
    // The futures of a run are large. In a debug build, each future that a function builds has a place on the function's stack, also if it is
    // boxed there. So `decide`, `claim`, `run` and what they call build their futures themselves, and return before these are polled.
    let mut storing = Storing::WithTheClaim;
    let mut tries = Tries::default();
    while !wake_once((cx, beginning), owner, id, storing, deadline).await? {
        tries.next().await?;
        storing = Storing::AtOnce;
    }
    Ok(())
}

/// `false` if a decision that was not stored yet was refused, so that it must be decided again.
async fn wake_once(
    (cx, beginning): (&Cx, &Cx),
    owner: &Owner,
    id: ActionId,
    storing: Storing,
    deadline: Timestamp,
) -> Result<bool> {
    let Some(decided) = decide::decide(beginning, owner, id, storing, deadline).await? else {
        return Ok(true);
    };
    if decided.loaded.action.value.preflight_due(cx.clock.now()).is_some() {
        // Then no run is due.
        Box::pin(preflight::check(cx, owner, decided.loaded.action, &decided.agent)).await?;
        return Ok(true);
    }
    let mut place = None;
    let ran = async {
        match claim::claim(beginning, owner, decided, deadline, &mut place).await? {
            Claim::Nothing => Ok(true),
            Claim::Refused => Ok(false),
            Claim::Run(claimed) => execute::run(cx, beginning, owner, *claimed, deadline).await,
        }
    };
    let ran = ran.await;
    if let Some(place) = place {
        place.leave(cx).await;
    }
    ran
}

async fn load(cx: &Cx, owner: &Owner, id: ActionId) -> Result<Option<Loaded>> {
    match actions::load_live(cx, owner, id).await {
        Ok(loaded) => Ok(Some(loaded)),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
