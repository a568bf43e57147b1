//! The one switch: a person stops the account, and starts it again.
//!
//! A stop is a field of the account's record. It is stored first. From then on nothing begins in any process (see
//! [`crate::stopped`]), and each run that is under way ends at its next look, within a second. Then the stop ends all runs that it
//! finds itself, so that also the runs of dead processes end.
//!
//! A start first decides what becomes of the due times that came meanwhile, while still nothing can begin. Then it removes the
//! field. If the process dies in between, the account is still stopped, and a repeated start continues.

use std::collections::BTreeMap;

use domain::accounts::profile::Stop;
use domain::actions::{Action, Missed, MissedAnswer, Occurrence, OccurrenceState};
use domain::agents::AgentStatus;
use domain::ids::{ActionId, AgentId, Owner, ProjectId, RunId};
use domain::runs::RunState;
use futures::stream::{self, StreamExt, TryStreamExt};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::context::Cx;
use crate::error::{ACCOUNT_STOPPED, Error, Result};
use crate::flows::actions::{self, Loaded, records};
use crate::flows::background::due;
use crate::flows::projects::indexing;
use crate::flows::{existing, runs};
use crate::store::runs::CancelCause;
use crate::store::{DueItem, Store, Tries, Versioned};

/// How many records are read at once.
const PAGE: usize = 100;

/// How many of the newest turns a stop looks at. Each older one ends itself at its next look.
const MAX_TURNS: usize = 2_000;

/// How many runs are looked for, and ended, at once.
const AT_ONCE: usize = 32;

/// How many actions an answer lists.
const MAX_LISTED: usize = 100;

/// How often a start tries to decide about an action that others change.
const TRIES: usize = 5;

/// What a stop has done.
#[derive(Debug, Serialize, ToSchema)]
pub struct StoppedAccount {
    /// When the account was stopped. A second stop keeps the time of the first one.
    pub stopped_at: Timestamp,
    /// How many runs this stop has ended itself. Runs that see the stop before it finds them end by themselves and are not counted.
    pub runs_ended: usize,
}

/// How the account starts.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"missed": "run_newest"}))]
pub struct StartAccount {
    /// What to do with the due times that came while the account was stopped. Required if there are any.
    #[serde(default)]
    pub missed: Option<MissedAnswer>,
}

/// What a start has done.
#[derive(Debug, Serialize, ToSchema)]
pub struct StartedAccount {
    /// When the account was stopped. Absent if it was not stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<Timestamp>,
    /// What was missed.
    #[serde(flatten)]
    pub missed: MissedList,
}

/// The due times that came while the account was stopped.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct MissedList {
    /// The actions that have missed due times, newest action first. At most 100.
    pub data: Vec<MissedOfAction>,
    /// Whether further actions have missed due times.
    pub has_more: bool,
}

/// The due times of one action that came while the account was stopped.
#[derive(Debug, Serialize, ToSchema)]
pub struct MissedOfAction {
    pub action_id: ActionId,
    pub title: String,
    /// How many there are. 1000 means that many or more.
    pub due_times: u32,
    /// The first of them.
    pub first_due_at: Timestamp,
    /// The last of them.
    pub last_due_at: Timestamp,
}

/// Stops the account, and ends all runs that are under way. Runs that wait for a person stay as they are. Repeating it is safe, and
/// ends runs that were left.
///
/// # Errors
/// If the table does not answer. The account may be stopped nevertheless; the call can be repeated.
pub async fn stop(cx: &Cx, owner: &Owner) -> Result<StoppedAccount> {
    let stop = mark(cx, owner).await?;
    tracing::info!("the account is stopped");
    let runs_ended = end_all(cx, owner).await?;
    Ok(StoppedAccount { stopped_at: stop.at, runs_ended })
}

async fn mark(cx: &Cx, owner: &Owner) -> Result<Stop> {
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let Versioned { value, version } = cx.store.account(owner).await?;
        let account = value.stopped(cx.clock.now());
        let stored = cx.store.replace_account(owner, &account, version).await?.done();
        if let (Some(stop), true) = (account.stop, stored) {
            return Ok(stop);
        }
    }
}

/// Ends all runs that are under way, and returns how many there were.
async fn end_all(cx: &Cx, owner: &Owner) -> Result<usize> {
    let (turns, of_actions) = tokio::try_join!(live_turns(cx, owner), live_of_actions(cx, owner))?;
    let now = cx.clock.now();
    let all = turns.iter().chain(of_actions.iter().flat_map(|(_, runs)| runs)).copied();
    // All are asked before the first one is waited for, so that all stop at the same time.
    stream::iter(all.map(Ok::<RunId, Error>))
        .try_for_each_concurrent(AT_ONCE, async |run| {
            Ok(cx.store.request_cancel(owner, run, now, CancelCause::AccountStopped).await?)
        })
        .await?;
    let turns = turns.into_iter().map(|turn| vec![turn]);
    // Runs of one action change the same records, so they end one after the other.
    let groups = turns.chain(of_actions.into_iter().map(|(_, runs)| runs));
    let ended = stream::iter(groups).map(async |group| {
        let mut ended = 0;
        for run in group {
            let run = runs::cancel_because(cx, owner, None, run, CancelCause::AccountStopped).await;
            match run {
                Ok(run) => ended += usize::from(run.state == RunState::Cancelled),
                Err(Error::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(ended)
    });
    ended.buffer_unordered(AT_ONCE).try_fold(0, async |sum, ended| Ok(sum + ended)).await
}

/// The turns that are under way.
async fn live_turns(cx: &Cx, owner: &Owner) -> Result<Vec<RunId>> {
    let (mut live, mut seen, mut after) = (Vec::new(), 0, None::<String>);
    while seen < MAX_TURNS {
        let found = cx.store.turns(owner, after.as_deref(), PAGE).await?;
        let runs = found.items.into_iter().map(|(_, run)| run.value);
        live.extend(runs.filter(|run| run.state == RunState::Running).map(|run| run.run_id));
        seen += PAGE;
        after = found.last;
        if after.is_none() {
            break;
        }
    }
    Ok(live)
}

/// The runs of actions that are under way or have been decided to run, by action.
async fn live_of_actions(cx: &Cx, owner: &Owner) -> Result<Vec<(ActionId, Vec<RunId>)>> {
    let (mut live, mut after) = (Vec::new(), None::<String>);
    loop {
        let found = cx.store.actions(owner, after.as_deref(), PAGE).await?;
        let of_page = stream::iter(found.items).map(async |(_, Versioned { value: action, .. })| {
            Ok::<_, Error>((action.id, live_of_action(cx, owner, &action).await?))
        });
        let of_page: Vec<_> = of_page.buffered(AT_ONCE).try_collect().await?;
        live.extend(of_page.into_iter().filter(|(_, runs)| !runs.is_empty()));
        after = found.last;
        if after.is_none() {
            return Ok(live);
        }
    }
}

/// The queued runs first, so that none of them becomes live when the live one ends.
async fn live_of_action(cx: &Cx, owner: &Owner, action: &Action) -> Result<Vec<RunId>> {
    let mut runs = Vec::new();
    if action.queued > 0 {
        let queued = actions::queued(cx, owner, action.id, action.live_run, action.queued).await?;
        runs.extend(queued.into_iter().map(|queued| queued.value.run_id));
    }
    if let Some(run) = action.live_run {
        let live = cx.store.occurrence(owner, action.id, run).await?;
        let goes_on = |live: &Occurrence| !live.state.is_final() && live.state != OccurrenceState::Waiting;
        runs.extend(live.map(|live| live.value).filter(goes_on).map(|live| live.run_id));
    }
    Ok(runs)
}

/// Starts a stopped account. An account that is not stopped is not changed.
///
/// # Errors
/// 409 `missed_runs` with the list if due times came while the account was stopped, and `input` does not say what to do with them:
/// then nothing is changed. 409 `account_stopped` if somebody stops the account meanwhile.
pub async fn start(cx: &Cx, owner: &Owner, input: StartAccount) -> Result<StartedAccount> {
    let Some(stop) = cx.store.account(owner).await?.value.stop else {
        return Ok(StartedAccount { stopped_at: None, missed: MissedList::default() });
    };
    let now = cx.clock.now();
    let (ids, missed) = missed(cx, owner, now).await?;
    let answer = match input.missed {
        Some(answer) => answer,
        None if ids.is_empty() => MissedAnswer::EachSchedule,
        None => {
            let message = format!(
                "{} missed due times while the account was stopped: say in `missed` whether to `run_newest`, to `skip` them all, or \
                 to let `each_schedule` decide",
                if ids.len() == 1 { "1 action".to_owned() } else { format!("{} actions", ids.len()) }
            );
            return Err(Error::conflict_with("missed_runs", message, &missed));
        }
    };
    let settled = stream::iter(ids)
        .map(async |id| Ok::<_, Error>((id, settle(cx, owner, id, answer, stop, now).await?)));
    let settled: Vec<(ActionId, Option<Timestamp>)> = settled.buffer_unordered(AT_ONCE).try_collect().await?;
    unmark(cx, owner, stop).await?;
    tracing::info!(?answer, actions = settled.len(), "the account is started");
    stream::iter(settled)
        .for_each_concurrent(AT_ONCE, async |(id, wake_at)| {
            due::dispatch_at(cx, &DueItem::action(owner, id), wake_at).await;
        })
        .await;
    enrich_again(cx, owner).await?;
    Ok(StartedAccount { stopped_at: Some(stop.at), missed })
}

/// All actions that have missed due times, and what an answer lists of them.
async fn missed(cx: &Cx, owner: &Owner, now: Timestamp) -> Result<(Vec<ActionId>, MissedList)> {
    let (mut ids, mut list, mut after) = (Vec::new(), MissedList::default(), None::<String>);
    let mut active: BTreeMap<AgentId, bool> = BTreeMap::new();
    loop {
        let found = cx.store.actions(owner, after.as_deref(), PAGE).await?;
        for (_, Versioned { value: action, .. }) in found.items {
            let Some(Missed { times, first, last }) = Missed::of(&action, now) else { continue };
            let agent = action.agent_id;
            let is_active = match active.get(&agent) {
                Some(is_active) => *is_active,
                None => {
                    let found = cx.store.agent(owner, agent).await?;
                    let is_active = found.is_some_and(|agent| agent.value.status == AgentStatus::Active);
                    active.insert(agent, is_active);
                    is_active
                }
            };
            // Nothing of a paused agent would have run.
            if !is_active {
                continue;
            }
            ids.push(action.id);
            if list.data.len() == MAX_LISTED {
                list.has_more = true;
                continue;
            }
            list.data.push(MissedOfAction {
                action_id: action.id,
                title: action.title,
                due_times: times,
                first_due_at: first,
                last_due_at: last,
            });
        }
        after = found.last;
        if after.is_none() {
            return Ok((ids, list));
        }
    }
}

/// Decides about the missed due times of one action. Returns when the action is due next.
async fn settle(
    cx: &Cx,
    owner: &Owner,
    id: ActionId,
    answer: MissedAnswer,
    stop: Stop,
    now: Timestamp,
) -> Result<Option<Timestamp>> {
    for _ in 0..TRIES {
        let Loaded { action, live } = match actions::load_live(cx, owner, id).await {
            Ok(loaded) => loaded,
            Err(Error::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let live = live.map(|live| live.value);
        let settled = match (answer, Missed::of(&action.value, now)) {
            (_, None) => return Ok(actions::wake_at(&action.value, live.as_ref(), now)),
            (MissedAnswer::EachSchedule, Some(_)) => None,
            (MissedAnswer::RunNewest, Some(missed)) => missed.settle(&action.value, true, stop.at, now).ok(),
            (MissedAnswer::Skip, Some(missed)) => missed.settle(&action.value, false, stop.at, now).ok(),
        };
        let mut writes = Vec::new();
        let (next, live) = match settled {
            Some(settled) => {
                if let Some(skipped) = &settled.skipped {
                    writes.push(Store::create_occurrence(owner, skipped)?);
                }
                if let Some(run) = &settled.run {
                    writes.push(Store::create_occurrence(owner, run)?);
                    let record = records::record(&settled.action, run.run_id, now);
                    writes.push(Store::run_write(owner, &record)?);
                }
                let is_live = |run: &Occurrence| settled.action.live_run == Some(run.run_id);
                let live = settled.run.clone().filter(is_live).or(live);
                (settled.action, live)
            }
            None => {
                // A sweep may have found the due times in time. They count as found now, as after an outage.
                let mut next = action.value.clone();
                next.forget_found();
                (next, live)
            }
        };
        writes.extend(actions::action_writes(owner, &action, &next, live.as_ref(), now)?);
        if cx.store.write_all(writes).await?.done() {
            return Ok(actions::wake_at(&next, live.as_ref(), now));
        }
    }
    // Others change it again and again, or a clock that was ahead has decided these due times already. Its schedule decides.
    tracing::warn!(action_id = %id, "the missed due times of an action are left to its schedule");
    Ok(Some(now))
}

/// Removes the mark of this stop.
async fn unmark(cx: &Cx, owner: &Owner, stop: Stop) -> Result<()> {
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let Versioned { value: mut account, version } = cx.store.account(owner).await?;
        match account.stop {
            None => return Ok(()),
            Some(current) if current != stop => {
                let message = "somebody stopped the account again while it was started; it stays stopped";
                return Err(Error::conflict(ACCOUNT_STOPPED, message));
            }
            Some(_) => {}
        }
        account.stop = None;
        if cx.store.replace_account(owner, &account, version).await?.done() {
            return Ok(());
        }
    }
}

/// Lets models go on with the descriptions of themes.
async fn enrich_again(cx: &Cx, owner: &Owner) -> Result<()> {
    let mut projects = vec![existing::project(cx, owner, ProjectId::DEFAULT).await?.value];
    let mut after = None::<String>;
    loop {
        let found = cx.store.projects(owner, after.as_deref(), PAGE).await?;
        projects.extend(found.items.into_iter().map(|(_, project)| project.value));
        after = found.last;
        if after.is_none() {
            break;
        }
    }
    projects.dedup_by_key(|project| project.project_id);
    for project in projects.into_iter().filter(|project| project.enrichment) {
        indexing::enrichment_asked(cx, owner, project.project_id).await?;
    }
    Ok(())
}
