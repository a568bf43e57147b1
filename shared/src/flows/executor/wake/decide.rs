//! Decides the due times of an action that have come.

use std::collections::{BTreeMap, BTreeSet};

use domain::actions::{
    Action, ActionState, Command, Decision, DuePlan, Occurrence, OccurrenceCommand, Reason, ReasonCode,
    plan_due_except, transition,
};
use domain::agents::{Agent, AgentStatus};
use domain::ids::{ActionId, Owner, RunId};
use futures::future::{BoxFuture, try_join_all};
use jiff::Timestamp;

use super::load;
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::actions::{self, Loaded, records};
use crate::flows::notices;
use crate::store::table::Write;
use crate::store::{Store, Tries, Versioned};

/// How many due times one transaction decides. Each of them may write an occurrence and a run.
const AT_ONCE: usize = 40;

/// A person is told at once of at most so many due times that never run. After an outage there may be more, and sweeps tell of those.
const TOLD_AT_ONCE: usize = 3;

/// An action without undecided due times, in the state that was last read or written. If the live occurrence has version 0, the decision
/// is not stored: whoever writes the occurrence and the action stores it with them.
pub(super) struct Decided {
    pub loaded: Loaded,
    pub agent: Agent,
}

/// When a decision is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storing {
    /// Always before the run begins.
    AtOnce,
    /// If the decision is only that one run begins now: together with what follows, which saves a transaction.
    WithTheClaim,
}

/// Decides every due time that has come, and stores the decisions. `None` if the action was deleted, or if the time is up. Then the
/// next sweep continues.
pub(super) fn decide<'a>(
    cx: &'a Cx,
    owner: &'a Owner,
    id: ActionId,
    storing: Storing,
    deadline: Timestamp,
) -> BoxFuture<'a, Result<Option<Decided>>> {
    Box::pin(async move {
        let mut tries = Tries::default();
        let mut on_record = OnRecord::default();
        loop {
            tries.next().await?;
            let Some(loaded) = load(cx, owner, id).await? else { return Ok(None) };
            let Some(agent) = cx.store.agent(owner, loaded.action.value.agent_id).await? else {
                return Ok(None);
            };
            let agent = agent.value;
            let now = cx.clock.now();
            if now >= deadline {
                return Ok(None);
            }
            let Loaded { action, live } = &loaded;
            let series = series(cx, owner, &action.value).await?;
            // Without its record, a series begins anew.
            let to_plan =
                Action { held: action.value.held.filter(|_| series.is_some()), ..action.value.clone() };
            let plan = plan(&to_plan, &agent, now, live.as_ref(), &on_record.decided);
            if plan.changes_nothing(&action.value) {
                return Ok(Some(Decided { loaded, agent }));
            }
            // If this is refused, nothing is due for an action in this state: the entry of the index was out of date.
            let Ok(next) = transition(&action.value, Command::Planned { plan: &plan }, now) else {
                return Ok(Some(Decided { loaded, agent }));
            };
            if storing == Storing::WithTheClaim
                && let Some(occurrence) = only_a_run(&loaded, &next, &plan, now)
            {
                let action = Versioned { value: next, version: action.version };
                let live = Some(Versioned { value: occurrence, version: 0 });
                return Ok(Some(Decided { loaded: Loaded { action, live }, agent }));
            }
            let Decisions { writes, live, replaced, at_rest } =
                decisions(owner, &loaded, &next, &plan, (&on_record, series), now)?;
            if !cx.store.write_all(writes).await?.done() {
                on_record.look_after_refusal(cx, owner, action, &plan).await?;
                continue;
            }
            tries = Tries::default();
            for occurrence in at_rest.iter().take(TOLD_AT_ONCE) {
                notices::tell(cx, owner, occurrence).await;
            }
            if let Some(run) = replaced {
                records::end_run(cx, owner, run).await?;
            }
            if !plan.more {
                let action = actions::stored(Versioned { value: next, version: action.version + 1 });
                return Ok(Some(Decided { loaded: Loaded { action, live }, agent }));
            }
        }
    })
}

/// The occurrence of the run that begins, if a plan decides nothing else: no other due time, nothing to tell, no change of the action's
/// state.
fn only_a_run(
    Loaded { action, live }: &Loaded,
    next: &Action,
    plan: &DuePlan,
    now: Timestamp,
) -> Option<Occurrence> {
    let [decided] = plan.decided.as_slice() else { return None };
    let begins = matches!(decided.decision, Decision::Run { cancels: None, .. });
    if !begins || plan.more || live.is_some() || next.state != action.value.state {
        return None;
    }
    let occurrence = plan.record(&action.value, decided, now);
    (next.live_run == Some(occurrence.run_id) && occurrence.untold().is_none()).then_some(occurrence)
}

/// The plan. If the agent is not active, its actions are planned as if they were paused.
fn plan(
    action: &Action,
    agent: &Agent,
    now: Timestamp,
    live: Option<&Versioned<Occurrence>>,
    decided: &BTreeSet<Timestamp>,
) -> DuePlan {
    let live = live.map(|live| &live.value);
    if agent.status == AgentStatus::Active {
        let mut plan = plan_due_except(action, now, live, AT_ONCE, decided);
        if action.live_run.is_none() && !action.is_approved_with(agent) {
            plan.held_because("the approval was withdrawn, because the agent or a tool has changed since");
        }
        return plan;
    }
    let paused = Action { state: ActionState::Paused, ..action.clone() };
    let mut plan = plan_due_except(&paused, now, live, AT_ONCE, decided);
    for due in &mut plan.decided {
        if let Decision::Skipped(reason) = &mut due.decision
            && reason.code == ReasonCode::Paused
        {
            reason.text = match agent.status {
                AgentStatus::Archived => "the agent was archived".to_owned(),
                _ => "the agent was paused".to_owned(),
            };
        }
    }
    plan
}

/// The record of the due times that were held so far, if the action counts any.
async fn series(cx: &Cx, owner: &Owner, action: &Action) -> Result<Option<Versioned<Occurrence>>> {
    match action.held {
        Some(held) => Ok(cx.store.occurrence(owner, action.id, held.run_id(action.id)).await?),
        None => Ok(None),
    }
}

/// One transaction of decisions.
struct Decisions {
    writes: Vec<Write>,
    /// The live occurrence afterwards.
    live: Option<Versioned<Occurrence>>,
    /// The run that a later due time replaces.
    replaced: Option<RunId>,
    /// The due times of which a person is to be told.
    at_rest: Vec<Occurrence>,
}

/// The writes that store a plan. `next` is the action afterwards. `series` is the record of the due times that were held so far.
fn decisions(
    owner: &Owner,
    Loaded { action, live }: &Loaded,
    next: &Action,
    plan: &DuePlan,
    (on_record, series): (&OnRecord, Option<Versioned<Occurrence>>),
    now: Timestamp,
) -> Result<Decisions> {
    let (mut writes, mut live_after, mut replaced) = (Vec::new(), live.clone(), None);
    let mut at_rest = Vec::new();
    for decided in &plan.decided {
        let mut occurrence = plan.record(&action.value, decided, now);
        let is_live = next.live_run == Some(occurrence.run_id);
        if !is_live {
            occurrence = occurrence.queued();
        }
        let continued = series.as_ref().filter(|series| series.value.run_id == occurrence.run_id);
        // The record of a series is told of once, and not again when it grows.
        occurrence.told = continued.and_then(|series| series.value.told.clone());
        at_rest.extend(occurrence.untold().is_some().then(|| occurrence.clone()));
        writes.extend(Store::untold_write(owner, &occurrence)?);
        let premature = on_record.premature.get(&decided.due_at).copied();
        let premature = continued.map(|series| series.version).or(premature);
        writes.push(match premature {
            Some(version) => Store::replace_occurrence(owner, &occurrence, version)?,
            None => Store::create_occurrence(owner, &occurrence)?,
        });
        if let Decision::Run { cancels, .. } = &decided.decision {
            writes.push(Store::run_write(owner, &records::record(next, occurrence.run_id, now))?);
            replaced = cancels.or(replaced);
            if is_live {
                let version = premature.map_or(1, |version| version + 1);
                live_after = Some(Versioned { value: occurrence, version });
            }
        }
    }
    if let Some(live) = live.as_ref().filter(|live| replaced == Some(live.value.run_id)) {
        let reason = Reason::new(ReasonCode::Replaced, "a later due time replaced it");
        if let Ok(ended) = live.value.transition(OccurrenceCommand::Cancel { reason }, now) {
            writes.push(Store::replace_occurrence(owner, &ended, live.version)?);
            writes.extend(Store::untold_write(owner, &ended)?);
        }
        tracing::info!(run = %live.value.run_id, "a run is replaced by a later one");
    }
    let live = live_after.filter(|live| next.live_run == Some(live.value.run_id));
    writes.extend(actions::action_writes(owner, action, next, live.as_ref().map(|live| &live.value), now)?);
    Ok(Decisions { writes, live, replaced, at_rest })
}

/// The due times that have a record although the action does not know it: the clock was set back, so that they come again.
#[derive(Default)]
struct OnRecord {
    decided: BTreeSet<Timestamp>,
    /// Those whose record was written by a clock that was ahead, with its version. They are decided again.
    premature: BTreeMap<Timestamp, u64>,
    /// The version of the action at the last refusal.
    refused_at: Option<u64>,
}

impl OnRecord {
    /// After a plan was refused: reads the records of its due times, if nobody has changed the action since the last refusal.
    async fn look_after_refusal(
        &mut self,
        cx: &Cx,
        owner: &Owner,
        action: &Versioned<Action>,
        plan: &DuePlan,
    ) -> Result<()> {
        if self.refused_at.replace(action.version) != Some(action.version) {
            return Ok(());
        }
        let id = action.value.id;
        let reads = plan.decided.iter().map(async |decided| {
            let found = cx.store.occurrence(owner, id, decided.run_id(id)).await?;
            Ok::<_, Error>(found.map(|record| (decided.due_at, record)))
        });
        let now = cx.clock.now();
        for (due_at, record) in try_join_all(reads).await?.into_iter().flatten() {
            if record.value.is_premature(now) {
                self.premature.insert(due_at, record.version);
            } else {
                self.decided.insert(due_at);
            }
        }
        Ok(())
    }
}
