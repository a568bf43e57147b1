//! Claims the next occurrence of an action, and takes a place of its owner for it.

use domain::actions::{
    Action, ActionState, Command, Occurrence, OccurrenceCommand, OccurrenceKind, OccurrenceRefused,
    OccurrenceState, Reason, ReasonCode, Refused, transition,
};
use domain::agents::AgentStatus;
use domain::ids::Owner;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};

use super::decide::Decided;
use super::load;
use crate::context::Cx;
use crate::error::Result;
use crate::flows::actions::{self, Loaded, records};
use crate::flows::executor::backlog;
use crate::flows::executor::execute::{self, ClaimedRun};
use crate::flows::notices;
use crate::process::held_places::Entered;
use crate::process::metrics;
use crate::store::table::Order;
use crate::store::{Store, Tries, Versioned};

/// How long a lease lasts after its executor's deadline.
const LEASE_BEYOND: SignedDuration = SignedDuration::from_secs(60);

/// The name of the function that processes actions, which is the dimension of its metrics.
const EXECUTOR: &str = "scheduled-executor";

/// How long an occurrence that can't begin yet is put off.
const DEFER: SignedDuration = SignedDuration::from_secs(60);

/// What came of a claim.
pub(super) enum Claim {
    /// There is no such occurrence, its time has not come, no place is free, or another executor has it.
    Nothing,
    /// A decision that was not stored yet was refused: somebody has changed the action meanwhile, or the occurrence exists.
    Refused,
    Run(Box<ClaimedRun>),
}

/// Claims the next occurrence, and takes a place of its owner for it.
pub(super) fn claim<'a>(
    cx: &'a Cx,
    owner: &'a Owner,
    Decided { loaded, agent }: Decided,
    deadline: Timestamp,
    place: &'a mut Option<Entered>,
) -> BoxFuture<'a, Result<Claim>> {
    Box::pin(async move {
        let id = loaded.action.value.id;
        // The first try uses the state after the decisions. If it has changed since, the write is refused.
        let mut decided = Some(loaded);
        let mut tries = Tries::default();
        loop {
            tries.next().await?;
            let loaded = match decided.take() {
                Some(decided) => Some(decided),
                None => load(cx, owner, id).await?,
            };
            let Some(Loaded { action, live }) = loaded else { return Ok(Claim::Nothing) };
            let now = cx.clock.now();
            let Some(occurrence) = next_occurrence(cx, owner, &action.value, live).await? else {
                if count_is_right(cx, owner, &action, now).await? {
                    return Ok(Claim::Nothing);
                }
                continue;
            };
            let is_stored = occurrence.version > 0;
            let by_hand = occurrence.value.kind == OccurrenceKind::Manual;
            let may_begin = by_hand || agent.status == AgentStatus::Active;
            let lease_until = deadline + LEASE_BEYOND;
            let tried = attempt(&action.value, &occurrence.value, may_begin, now, lease_until);
            let Some((next, mut changed)) = tried else {
                return Ok(if is_stored { Claim::Nothing } else { Claim::Refused });
            };
            let mut writes = Vec::new();
            if changed.state == OccurrenceState::Claimed && place.is_none() {
                match cx.places.enter(cx, owner, by_hand).await? {
                    Ok(entered) => *place = Some(entered),
                    Err(full) => {
                        writes.push(backlog::write(owner, &occurrence.value, by_hand, now)?);
                        let Some(put_off) = backlog::put_off(&occurrence.value, full, now) else {
                            let _ = cx.store.write_all(writes).await?;
                            return Ok(if is_stored { Claim::Nothing } else { Claim::Refused });
                        };
                        changed = put_off;
                    }
                }
            }
            let claimed = changed.state == OccurrenceState::Claimed;
            let begun = |occurrence| {
                if place.as_ref().is_some_and(|place| !place.is_last) {
                    tell_lag(&changed, now);
                }
                let action = actions::stored(Versioned { value: next.clone(), version: action.version + 1 });
                ClaimedRun { agent: agent.clone(), action, occurrence, unstored: Vec::new() }
            };
            if claimed && !is_stored && execute::begins_at_once(&next) {
                let occurrence = Versioned { value: changed.clone(), version: 0 };
                let unstored = actions::action_writes(owner, &action, &next, Some(&changed), now)?;
                return Ok(Claim::Run(Box::new(ClaimedRun { unstored, ..begun(occurrence) })));
            }
            if !is_stored {
                let run = records::record(&next, occurrence.value.run_id, now);
                writes.push(Store::run_write(owner, &run)?);
            }
            let written = (&changed, occurrence.version);
            writes.extend(actions::run_writes(owner, (&action, &next), written, now)?);
            if !cx.store.write_all(writes).await?.done() {
                if is_stored {
                    continue;
                }
                return Ok(Claim::Refused);
            }
            let occurrence = Versioned { value: changed.clone(), version: occurrence.version + 1 };
            if claimed {
                return Ok(Claim::Run(Box::new(begun(occurrence))));
            }
            if !occurrence.value.state.is_final() {
                return Ok(Claim::Nothing);
            }
            actions::tell_pause(cx, owner, &action.value, &next).await;
            notices::tell(cx, owner, &occurrence.value).await;
            // It has expired or was cancelled, so the next queued occurrence may begin.
            execute::close(cx, owner, occurrence.value.run_id, &occurrence.value).await?;
            tries = Tries::default();
        }
    })
}

/// Makes sure that an action without a next occurrence counts no queued runs, and corrects the count if it does. Otherwise the
/// action would be processed again and again. `false` if somebody has changed the action meanwhile.
async fn count_is_right(cx: &Cx, owner: &Owner, action: &Versioned<Action>, now: Timestamp) -> Result<bool> {
    if action.value.live_run.is_some() || action.value.queued == 0 {
        return Ok(true);
    }
    let next = unqueued(&action.value, 0, now);
    let writes = actions::action_writes(owner, action, &next, None, now)?;
    Ok(cx.store.write_all(writes).await?.done())
}

/// The next occurrence to run: the live one, or else the oldest queued one.
async fn next_occurrence(
    cx: &Cx,
    owner: &Owner,
    action: &Action,
    live: Option<Versioned<Occurrence>>,
) -> Result<Option<Versioned<Occurrence>>> {
    if live.is_some() || action.queued == 0 {
        return Ok(live);
    }
    let (mut oldest, mut seen, mut after) = (None, 0, None::<String>);
    loop {
        let found = cx.store.occurrences(owner, action.id, after.as_deref(), 100, Order::Newest).await?;
        for (_, occurrence) in found.items {
            if occurrence.value.state == OccurrenceState::Due {
                seen += 1;
                oldest = Some(occurrence);
            }
        }
        after = found.last;
        if after.is_none() || seen >= action.queued {
            return Ok(oldest);
        }
    }
}

/// The action and the occurrence after an executor tries to begin. Without `may_begin`, an occurrence that has not begun is put off.
/// `None` if nothing must be written.
fn attempt(
    action: &Action,
    occurrence: &Occurrence,
    may_begin: bool,
    now: Timestamp,
    lease_until: Timestamp,
) -> Option<(Action, Occurrence)> {
    let run = occurrence.run_id;
    if occurrence.state == OccurrenceState::Waiting {
        // A waiting occurrence is due only when the time for an answer is over.
        let given_up = occurrence.transition(OccurrenceCommand::Unanswered, now).ok()?;
        return Some((action.after(&given_up, now), given_up));
    }
    if occurrence.awaits_report() || occurrence.report.is_some() {
        let settled = occurrence.transition(OccurrenceCommand::SettleReport, now).ok()?;
        return Some((action.after(&settled, now), settled));
    }
    let defer = |because| {
        let until = now + DEFER;
        let put_off = occurrence.transition(OccurrenceCommand::Defer { until, because }, now).ok()?;
        Some((action.clone(), put_off))
    };
    if !may_begin && occurrence.state == OccurrenceState::Due {
        return defer(ReasonCode::Paused);
    }
    let hash = occurrence.approval_hash.as_deref().unwrap_or_default();
    match transition(action, Command::OccurrenceStarted { run, approval_hash: hash }, now) {
        Ok(next) => match occurrence.transition(OccurrenceCommand::Claim { lease_until }, now) {
            Ok(claimed) => Some((next, claimed)),
            Err(OccurrenceRefused::AttemptsUsed { .. }) => {
                let expired = occurrence.transition(OccurrenceCommand::Expire, now).ok()?;
                Some((action.after(&expired, now), expired))
            }
            Err(_) => None,
        },
        Err(Refused::RunLive { .. }) => defer(ReasonCode::Overlap),
        Err(Refused::WrongState { state: ActionState::Paused, .. }) => defer(ReasonCode::Paused),
        Err(Refused::WrongState { state: ActionState::NeedsApproval, .. }) => {
            defer(ReasonCode::NeedsApproval)
        }
        Err(refused) => {
            let reason = Reason::new(ReasonCode::Cancelled, refused.to_string());
            let cancelled = occurrence.transition(OccurrenceCommand::Cancel { reason }, now).ok()?;
            // A queued occurrence is not the live run of the action.
            let next = if action.live_run == Some(run) {
                action.after(&cancelled, now)
            } else {
                unqueued(action, action.queued.saturating_sub(1), now)
            };
            Some((next, cancelled))
        }
    }
}

fn unqueued(action: &Action, left: u32, now: Timestamp) -> Action {
    transition(action, Command::Unqueued { left }, now).unwrap_or_else(|_| action.clone())
}

/// Writes the metric of how long after its due time a run begins. Runs that were put off do not count, because they waited for
/// other runs or for a person. The caller leaves out runs that took their owner's last place, because they may have waited for
/// each other.
fn tell_lag(claimed: &Occurrence, now: Timestamp) {
    if claimed.fence == 1 && claimed.kind != OccurrenceKind::Manual && claimed.put_off.is_none() {
        let lag = i64::try_from(claimed.lag_at(now).as_millis()).unwrap_or(i64::MAX);
        metrics::emit(EXECUTOR, now, &[("FireLagMs", "Milliseconds", lag)]);
    }
}
