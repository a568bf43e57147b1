//! Processes an action: decides the due times that have come, then runs the next occurrence if it may run.
//!
//! The message names only the action. Everything else is read here and decided by the domain. So a message that comes twice, late
//! or never does no harm: the sweep sends another one.

use std::collections::{BTreeMap, BTreeSet};

use domain::actions::{
    Action, ActionState, Command, Decision, DuePlan, Occurrence, OccurrenceCommand, OccurrenceKind,
    OccurrenceRefused, OccurrenceState, Reason, ReasonCode, Refused, plan_due_except, transition,
};
use domain::agents::{Agent, AgentStatus};
use domain::ids::{ActionId, Owner};
use futures::future::try_join_all;
use jiff::{SignedDuration, Timestamp};

use super::execute::{self, ClaimedRun};
use super::waiting;
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::actions::{self, Loaded, records};
use crate::process::metrics;
use crate::process::places::Entered;
use crate::store::table::Order;
use crate::store::{Store, Tries, Versioned};

/// How many due times one transaction decides. Each of them may write an occurrence and a run.
const AT_ONCE: usize = 40;

/// How long a lease lasts after its executor's deadline.
const LEASE_BEYOND: SignedDuration = SignedDuration::from_secs(60);

/// The name of the function that processes actions, which is the dimension of its metrics.
const EXECUTOR: &str = "scheduled-executor";

/// The longest lease that any executor takes.
pub(super) const LONGEST_LEASE: SignedDuration = SignedDuration::from_mins(17);

/// How long an occurrence that can't begin yet is put off.
const DEFER: SignedDuration = SignedDuration::from_secs(60);

/// Processes an action.
///
/// # Errors
/// If the table does not answer, or if other writers change the action again and again. Then the message is delivered again.
pub async fn wake(cx: &Cx, owner: &Owner, id: ActionId, deadline: Timestamp) -> Result<()> {
    // Boxed, here and below: the futures of a run are large, and a debug build keeps each of them on the stack more than once.
    let Some(planned) = Box::pin(plan(cx, owner, id, deadline)).await? else { return Ok(()) };
    let mut place = None;
    let ran = async {
        let claimed = Box::pin(claim(cx, owner, planned, deadline, &mut place)).await?;
        let Some(claimed) = claimed else { return Ok(()) };
        Box::pin(execute::run(cx, owner, claimed, deadline)).await
    };
    let ran = ran.await;
    if let Some(place) = place {
        place.leave(cx).await;
    }
    ran
}

/// An action without undecided due times, in the state that was last read or written.
struct Planned {
    loaded: Loaded,
    agent: Agent,
}

async fn load(cx: &Cx, owner: &Owner, id: ActionId) -> Result<Option<Loaded>> {
    match actions::load_live(cx, owner, id).await {
        Ok(loaded) => Ok(Some(loaded)),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Stores a decision for every due time that has come. `None` if the action was deleted, or if the time is up. Then the next sweep
/// continues.
async fn plan(cx: &Cx, owner: &Owner, id: ActionId, deadline: Timestamp) -> Result<Option<Planned>> {
    let mut tries = Tries::default();
    // The due times that already have a record; the due times whose record was written by a clock that was ahead; and the
    // version of the action when the records were read.
    let (mut recorded, mut premature, mut refused_at) = (BTreeSet::new(), BTreeMap::new(), None);
    loop {
        tries.next().await?;
        let Some(loaded) = load(cx, owner, id).await? else { return Ok(None) };
        let Loaded { action, live } = &loaded;
        let Some(agent) = cx.store.agent(owner, action.value.agent_id).await? else { return Ok(None) };
        let agent = agent.value;
        let now = cx.clock.now();
        if now >= deadline {
            return Ok(None);
        }
        let plan =
            planned(&action.value, agent.status, now, live.as_ref().map(|live| &live.value), &recorded);
        if plan.changes_nothing(&action.value) {
            return Ok(Some(Planned { loaded, agent }));
        }
        let next = match transition(&action.value, Command::Planned { plan: &plan }, now) {
            Ok(next) => next,
            // Nothing is due for an action in this state. The entry of the index was out of date.
            Err(_) => return Ok(Some(Planned { loaded, agent })),
        };
        let mut writes = Vec::new();
        let mut live_after = live.clone();
        let mut cancelled = None;
        for decided in &plan.decided {
            let mut occurrence = Occurrence::decided(&action.value, decided, now);
            if next.live_run != Some(occurrence.run_id) {
                occurrence = occurrence.queued();
            }
            writes.push(match premature.get(&decided.due_at) {
                Some(version) => Store::replace_occurrence(owner, &occurrence, *version)?,
                None => Store::create_occurrence(owner, &occurrence)?,
            });
            if let Decision::Run { cancels, .. } = &decided.decision {
                writes.push(Store::run_write(owner, &records::record(&next, occurrence.run_id, now))?);
                if let Some(run) = cancels {
                    cancelled = Some(*run);
                }
                if next.live_run == Some(occurrence.run_id) {
                    let version = premature.get(&decided.due_at).map_or(1, |version| version + 1);
                    live_after = Some(Versioned { value: occurrence, version });
                }
            }
        }
        if let (Some(run), Some(live)) =
            (cancelled, live.as_ref().filter(|live| Some(live.value.run_id) == cancelled))
        {
            let reason = Reason::new(ReasonCode::Replaced, "a later due time replaced it");
            if let Ok(replaced) = live.value.transition(OccurrenceCommand::Cancel { reason }, now) {
                writes.push(Store::replace_occurrence(owner, &replaced, live.version)?);
            }
            tracing::info!(%run, "a run is replaced by a later one");
        }
        let live = live_after.filter(|live| next.live_run == Some(live.value.run_id));
        writes.extend(actions::action_writes(owner, action, &next, live.as_ref().map(|l| &l.value), now)?);
        if !cx.store.write_all(writes).await?.done() {
            // Refused twice, although nobody has changed the action. So a due time already has a record.
            if refused_at == Some(action.version) {
                for (due_at, record) in on_record(cx, owner, id, &plan).await? {
                    if record.value.is_premature(now) {
                        premature.insert(due_at, record.version);
                    } else {
                        recorded.insert(due_at);
                    }
                }
            }
            refused_at = Some(action.version);
            continue;
        }
        tries = Tries::default();
        if let Some(run) = cancelled {
            records::end_run(cx, owner, run).await?;
        }
        if !plan.more {
            let action = actions::stored(Versioned { value: next, version: action.version + 1 });
            return Ok(Some(Planned { loaded: Loaded { action, live }, agent }));
        }
    }
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

/// The existing records of the decided due times. There are such records if the clock was set back, so that the same due times
/// come again.
async fn on_record(
    cx: &Cx,
    owner: &Owner,
    id: ActionId,
    plan: &DuePlan,
) -> Result<Vec<(Timestamp, Versioned<Occurrence>)>> {
    let reads = plan.decided.iter().map(async |decided| {
        let found = cx.store.occurrence(owner, id, decided.run_id(id)).await?;
        Ok::<_, Error>(found.map(|record| (decided.due_at, record)))
    });
    Ok(try_join_all(reads).await?.into_iter().flatten().collect())
}

/// The plan. If the agent is not active, its actions are planned as if they were paused.
fn planned(
    action: &Action,
    status: AgentStatus,
    now: Timestamp,
    live: Option<&Occurrence>,
    recorded: &BTreeSet<Timestamp>,
) -> DuePlan {
    if status == AgentStatus::Active {
        return plan_due_except(action, now, live, AT_ONCE, recorded);
    }
    let paused = Action { state: ActionState::Paused, ..action.clone() };
    let mut plan = plan_due_except(&paused, now, live, AT_ONCE, recorded);
    for decided in &mut plan.decided {
        if let Decision::Skipped(reason) = &mut decided.decision
            && reason.code == ReasonCode::Paused
        {
            reason.text = match status {
                AgentStatus::Archived => "the agent was archived".to_owned(),
                _ => "the agent was paused".to_owned(),
            };
        }
    }
    plan
}

/// Claims the next occurrence, and takes a place of its owner for it. `None` if there is no such occurrence, if its time has not
/// come, if no place is free, or if another executor has it.
async fn claim(
    cx: &Cx,
    owner: &Owner,
    Planned { loaded, agent }: Planned,
    deadline: Timestamp,
    place: &mut Option<Entered>,
) -> Result<Option<ClaimedRun>> {
    let id = loaded.action.value.id;
    // The first try uses the state that the plan was made from. If it has changed since, the write is refused.
    let mut planned = Some(loaded);
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let loaded = match planned.take() {
            Some(planned) => Some(planned),
            None => load(cx, owner, id).await?,
        };
        let Some(Loaded { action, live }) = loaded else { return Ok(None) };
        let now = cx.clock.now();
        let Some(occurrence) = next_occurrence(cx, owner, &action.value, live).await? else {
            if action.value.live_run.is_none() && action.value.queued > 0 {
                // The count says that runs are queued, but there are none. Without a correction, the action would be processed
                // again and again.
                let next = unqueued(&action.value, 0, now);
                let writes = actions::action_writes(owner, &action, &next, None, now)?;
                if !cx.store.write_all(writes).await?.done() {
                    continue;
                }
            }
            return Ok(None);
        };
        let manual = occurrence.value.kind == OccurrenceKind::Manual;
        let (next, mut changed) =
            match start(&action.value, &occurrence.value, agent.status, manual, now, deadline + LEASE_BEYOND)
            {
                Some(started) => started,
                None => return Ok(None),
            };
        let mut writes = Vec::new();
        if changed.state == OccurrenceState::Claimed && place.is_none() {
            match cx.places.enter(cx, owner, manual).await? {
                Ok(entered) => *place = Some(entered),
                Err(full) => {
                    writes.push(waiting::wait_write(owner, &occurrence.value, manual, now)?);
                    let Some(put_off) = waiting::put_off(&occurrence.value, full, now) else {
                        let _ = cx.store.write_all(writes).await?;
                        return Ok(None);
                    };
                    changed = put_off;
                }
            }
        }
        let claimed = changed.state == OccurrenceState::Claimed;
        writes.push(Store::replace_occurrence(owner, &changed, occurrence.version)?);
        writes.extend(actions::action_writes(
            owner,
            &action,
            &next,
            Some(&changed).filter(|c| next.live_run == Some(c.run_id)),
            now,
        )?);
        writes.extend(actions::run_count(owner, &changed, &next));
        if !cx.store.write_all(writes).await?.done() {
            continue;
        }
        let run = changed.run_id;
        let occurrence = Versioned { value: changed, version: occurrence.version + 1 };
        if claimed {
            if place.as_ref().is_some_and(|place| !place.is_last) {
                tell_lag(&occurrence.value, now);
            }
            let action = actions::stored(Versioned { value: next, version: action.version + 1 });
            return Ok(Some(ClaimedRun { agent, action, occurrence }));
        }
        if occurrence.value.state.is_final() {
            // It has expired or was cancelled, so the next queued occurrence may begin.
            execute::close(cx, owner, run, &occurrence.value).await?;
            tries = Tries::default();
            continue;
        }
        return Ok(None);
    }
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

/// The action and the occurrence after an executor tries to begin. `None` if nothing must be written.
fn start(
    action: &Action,
    occurrence: &Occurrence,
    status: AgentStatus,
    manual: bool,
    now: Timestamp,
    lease_until: Timestamp,
) -> Option<(Action, Occurrence)> {
    let run = occurrence.run_id;
    if occurrence.state == OccurrenceState::Waiting {
        // A waiting occurrence is due only when the time for an answer is over.
        let given_up = occurrence.transition(OccurrenceCommand::Unanswered, now).ok()?;
        return Some((action.after(&given_up, now), given_up));
    }
    let defer = |because| {
        let until = now + DEFER;
        let put_off = occurrence.transition(OccurrenceCommand::Defer { until, because }, now).ok()?;
        Some((action.clone(), put_off))
    };
    if status != AgentStatus::Active && !manual && occurrence.state == OccurrenceState::Due {
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
