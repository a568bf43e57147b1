//! Before a scheduled run: looks at the things that its action watches. If nothing has changed, the run does not begin.

use std::time::Duration;

use domain::actions::{Occurrence, OccurrenceCommand, OccurrenceKind, OccurrenceState};
use domain::ids::Owner;
use domain::watch::state::{Heard, News, WatchState};
use futures::future::{BoxFuture, try_join_all};

use super::{ClaimedRun, close};
use crate::context::{Cx, Data};
use crate::error::{Error, Result};
use crate::flows::actions::watches;
use crate::flows::actions::{self, runs};
use crate::flows::background::due;
use crate::stopped;
use crate::store::keys::Guard;
use crate::store::runs::CancelCause;
use crate::store::table::{Write, Written};
use crate::store::{DueItem, Store, Tries, Versioned, keys};

/// How often it is checked during a look whether the run still takes place.
const CHECK_EVERY: Duration = Duration::from_millis(500);

/// What a claimed run is told of changes, if it begins. If it does not begin, its end is stored, or it is tried again later.
///
/// The future is large, so it is built here, and not on the stack of the caller.
///
/// # Errors
/// If the table or the bucket does not answer.
pub(super) fn begins<'a>(
    cx: &'a Cx,
    owner: &'a Owner,
    claimed: &'a ClaimedRun,
) -> BoxFuture<'a, Result<Option<Vec<News>>>> {
    Box::pin(may_begin(cx, owner, claimed))
}

async fn may_begin(cx: &Cx, owner: &Owner, claimed: &ClaimedRun) -> Result<Option<Vec<News>>> {
    let ClaimedRun { agent, action, occurrence, unstored: _ } = claimed;
    let is_by_hand = occurrence.value.kind == OccurrenceKind::Manual;
    if action.value.watches.is_empty() || is_by_hand {
        return Ok(Some(Vec::new()));
    }
    let run = occurrence.value.run_id;
    // What is not approved is not requested. The run is held for that reason.
    if occurrence.value.started_at.is_some() || !action.value.is_approved_with(agent) {
        return Ok(Some(cx.store.watch_state(owner, action.value.id).await?.value.news_for(run)));
    }
    match stopped::check(cx, owner).await {
        Ok(()) => {}
        Err(error) if error.is_account_stopped() => {
            runs::cancel(cx, owner, None, action.value.id, run, CancelCause::AccountStopped).await?;
            return Ok(None);
        }
        Err(error) => return Err(error),
    }
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let state = cx.store.watch_state(owner, action.value.id).await?;
        let settled = settled(cx, owner, &occurrence.value, state.value).await?;
        let looks = action.value.watches.iter().map(async |watch| {
            let look = watches::look(cx, owner, watch, settled.seen_of(watch)).await?;
            Ok::<_, Error>(look.map(|look| (watch, look)))
        });
        let looks: std::result::Result<Vec<_>, _> = tokio::select! {
            looks = try_join_all(looks) => looks?.into_iter().collect(),
            // A server must get no request that begins after a stop, not even one of a redirect.
            () = ended(cx, owner, occurrence) => return Ok(None),
        };
        let now = cx.clock.now();
        let fence = occurrence.value.fence;
        let (next_state, command) = match looks {
            Ok(looks) => match settled.decide(looks, run, now) {
                (next, true) => (next, None),
                (next, false) => {
                    let reason = "nothing that it watches has changed".to_owned();
                    (next, Some(OccurrenceCommand::Unchanged { fence, reason }))
                }
            },
            Err(watches::NotSeen { text, retryable }) => {
                (settled, Some(OccurrenceCommand::Fail { fence, error: text, retryable }))
            }
        };
        let state = Store::watch_state_write(owner, action.value.id, &next_state, state.version)?;
        match command {
            None => {
                // Nothing may remain of an action that was deleted meanwhile.
                let exists = Write::Exists { key: keys::action(owner, action.value.id) };
                if cx.store.write_all(vec![exists, state]).await?.done() {
                    return Ok(Some(next_state.news_for(run)));
                }
                if !is_held(cx, owner, occurrence).await? {
                    return Ok(None);
                }
            }
            Some(command) => {
                let Ok(mut next) = occurrence.value.transition(command, now) else { return Ok(None) };
                if next.state == OccurrenceState::Failed {
                    next.error_code = Some("watch_failed".to_owned());
                }
                // The action may have changed meanwhile.
                let current = match actions::load(cx, owner, action.value.id).await {
                    Ok(current) => current,
                    Err(Error::NotFound(_)) => return Ok(None),
                    Err(error) => return Err(error),
                };
                let ended = next.state.is_final();
                let after = if ended { current.value.after(&next, now) } else { current.value.clone() };
                let mut writes =
                    actions::run_writes(owner, (&current, &after), (&next, occurrence.version), now)?;
                writes.push(state);
                match cx.store.write_all(writes).await? {
                    Written::Yes => {
                        tracing::info!(state = next.state.as_str(), "a run did not begin");
                        actions::tell_pause(cx, owner, &current.value, &after).await;
                        if ended {
                            close(cx, owner, run, &next).await?;
                        }
                        let item = DueItem::action(owner, action.value.id);
                        due::dispatch_at(cx, &item, actions::wake_after(&after, &next, now)).await;
                        return Ok(None);
                    }
                    Written::Refused(Guard::Occurrence) => return Ok(None),
                    Written::Refused(_) => {}
                }
            }
        }
    }
}

/// Whether the run is as this executor has claimed it. If not, it has ended, or another executor has it.
async fn is_held(data: &Data, owner: &Owner, claimed: &Versioned<Occurrence>) -> Result<bool> {
    let Occurrence { action_id, run_id, .. } = claimed.value;
    let found = data.store.occurrence(owner, action_id, run_id).await?;
    Ok(found.is_some_and(|found| found.version == claimed.version))
}

/// Waits until the run has ended without this executor: the account was stopped, a person has cancelled it, or the action was deleted.
async fn ended(data: &Data, owner: &Owner, claimed: &Versioned<Occurrence>) {
    loop {
        tokio::time::sleep(CHECK_EVERY).await;
        // If the table does not answer, the next check may succeed. The writes after the look have conditions.
        if let Ok(false) = is_held(data, owner, claimed).await {
            return;
        }
    }
}

/// The state after it is known what has become of the run that was told of the last change.
async fn settled(
    data: &Data,
    owner: &Owner,
    occurrence: &Occurrence,
    state: WatchState,
) -> Result<WatchState> {
    let Some(offered) = state.offered.as_ref().filter(|offered| offered.run_id != occurrence.run_id) else {
        return Ok(state);
    };
    let told =
        data.store.occurrence(owner, occurrence.action_id, offered.run_id).await?.map(|told| told.value);
    let heard = match told {
        // Its record has expired.
        None => Heard::Yes { cost_micros: None },
        Some(told) if !told.state.is_final() => Heard::Open,
        Some(told) => {
            let cost_micros = told.started_at.map(|_| told.cost_micros);
            match told.state {
                OccurrenceState::Succeeded | OccurrenceState::NothingNew => Heard::Yes { cost_micros },
                _ => Heard::No { cost_micros },
            }
        }
    };
    Ok(state.settled(heard))
}
