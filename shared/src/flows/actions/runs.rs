//! The runs of an action: started by hand, listed, read, explained, cancelled.

use domain::actions::{
    Action, ApprovalNow, AtAccount, Circumstances, Command, Occurrence, OccurrenceCommand, OccurrenceKind,
    OccurrenceState, Reason, ReasonCode, Why, transition, why_at_account as explain,
};
use domain::agents::{Agent, AgentStatus};
use domain::chats::Proposal;
use domain::history::{Change, ChangeCommand, Effect};
use domain::ids::{ActionId, Owner, RunId};
use domain::models::Usage;
use domain::notices::told::Told;
use domain::validate::FieldErrors;
use domain::watched::witness::Report;
use futures::FutureExt;
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::apply::{With, perform};
use super::records::end_run_because;
use super::{ActionView, Changed, action_writes, dispatch_at, load, wake_at};
use crate::context::{Cx, Data};
use crate::error::{Error, Result};
use crate::flows::notices::told;
use crate::flows::page::{self, Page, PageQuery};
use crate::flows::{existing, schedules};
use crate::money::quota::Quota;
use crate::request::caller::Actor;
use crate::stopped;
use crate::store::agents::history::Ledger;
use crate::store::runs::{CancelCause, RunOutput};
use crate::store::table::Order;
use crate::store::{Once, Store, Tries, Versioned, keys};

/// How many of the newest changes are looked at for the one that has withdrawn an approval.
const CHANGES_LOOKED_AT: usize = 50;

/// The result of one due time, or of one run that was started by hand.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct OccurrenceView {
    pub run_id: RunId,
    pub action_id: ActionId,
    pub kind: OccurrenceKind,
    pub due_at: Timestamp,
    pub state: OccurrenceState,
    /// A sentence, unless the run has simply succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason_code: Option<ReasonCode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// How long the start was delayed, in milliseconds: since its due time (with jitter), or since the approval if that
    /// came later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag_ms: Option<i64>,
    /// It is not tried before this time.
    pub not_before: Timestamp,
    pub attempts: u32,
    pub usage: Usage,
    pub cost_micros: i64,
    /// If this is the record of several due times that did not run: how many, from `due_at` on. Held ones are all counted. Of skipped
    /// ones, 1000 means that many or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_times: Option<u32>,
    /// The last of these due times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_due_at: Option<Timestamp>,
    /// How good the output is in the agent's own judgement, 0 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<u8>,
    /// Whether the run may have read what strangers have written. What it says may be false. `GET /runs/{run_id}` has the sources.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub tainted: bool,
    /// Of an action whose `call` expects a report: until when. Absent until the server has accepted the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report_by: Option<Timestamp>,
    /// What the server has reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<CallReport>,
    /// Whether and how the person was told of it. Left out in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told: Option<Told>,
}

/// What the server of a call has reported.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CallReport {
    #[serde(flatten)]
    pub report: Report,
    /// Whether it came after the run had ended. Then it has changed nothing.
    pub late: bool,
}

impl From<Occurrence> for OccurrenceView {
    fn from(occurrence: Occurrence) -> Self {
        let (lag_ms, late) = (occurrence.start_lag_ms(), occurrence.has_late_report());
        let Occurrence {
            run_id,
            action_id,
            kind,
            due_at,
            state,
            reason,
            reason_code,
            started_at,
            finished_at,
            not_before,
            attempts,
            usage,
            cost_micros,
            score,
            tainted,
            covers,
            report_by,
            report,
            ..
        } = occurrence;
        Self {
            run_id,
            action_id,
            kind,
            due_at,
            state,
            reason,
            reason_code,
            started_at,
            finished_at,
            lag_ms,
            not_before,
            attempts,
            usage,
            cost_micros,
            due_times: covers.map(|covers| covers.times),
            last_due_at: covers.map(|covers| covers.last),
            score,
            tainted,
            report_by,
            report: report.map(|report| CallReport { report, late }),
            told: None,
        }
    }
}

/// A run that was started by hand.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct StartedRun {
    /// Follow it at `/runs/{run_id}/events`.
    pub run_id: RunId,
    /// The current action.
    pub action: ActionView,
}

/// Runs an action once, now. The run continues without the caller after this returns.
///
/// # Errors
/// 402 if the plan includes no more requests; 404 if the action does not exist; 409 if the account is stopped, if its agent is not
/// active, if its current content is not approved, or if a run is live.
pub async fn run_now(cx: &Cx, owner: &Owner, once: &Once, by: Actor, id: ActionId) -> Result<StartedRun> {
    run_accepting(cx, owner, once, by, id, None).await
}

/// The same. The transaction also removes the proposal to do so, if it was proposed.
pub(super) async fn run_accepting(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    by: Actor,
    id: ActionId,
    proposal: Option<&Proposal>,
) -> Result<StartedRun> {
    let action = load(cx, owner, id).await?.value;
    stopped::check(cx, owner).await?;
    let agent = existing::agent(cx, owner, action.agent_id).await?.value;
    if agent.status != AgentStatus::Active {
        let message = match agent.status {
            AgentStatus::Archived => "the agent is archived: its actions do not run",
            _ => "the agent is paused: its actions do not run until it is active again",
        };
        return Err(Error::conflict_with("agent_not_active", message, &ActionView::new(action, &agent)));
    }
    if action.approval.is_some() && !action.is_approved_with(&agent) {
        let message = "the agent or a tool has changed since the action was approved: approve it again";
        return Err(Error::conflict_with("approval_mismatch", message, &ActionView::new(action, &agent)));
    }
    // Only a first look: the run itself is counted when it begins.
    Quota::of(cx, owner).await?.check(cx, owner).await?;
    let run_id = RunId::from_uuid(cx.clock.uuid());
    let (run, with) = (Command::Run { run: run_id }, With::accepting(by, proposal));
    let Changed { action, effects } = perform(cx, owner, once, id, run, with).await?;
    Ok(StartedRun { run_id, action: ActionView::new(action, &agent).after(effects) })
}

/// Cancels one run of an action in any state: queued, claimed, running or waiting, even if its executor is dead. If that ends the
/// approval of the action, the ledger names `by`.
///
/// # Errors
/// 404 if the action does not exist.
pub async fn cancel(
    cx: &Cx,
    owner: &Owner,
    by: Option<Actor>,
    id: ActionId,
    run: RunId,
    cause: CancelCause,
) -> Result<()> {
    // A live executor stops at its next check, and then finds that the run no longer belongs to it.
    cx.store.request_cancel(owner, run, cx.clock.now(), cause).await?;
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let (action, occurrence) =
            tokio::try_join!(load(cx, owner, id), async { Ok(cx.store.occurrence(owner, id, run).await?) })?;
        let now = cx.clock.now();
        let reason = match cause {
            CancelCause::Person => Reason::new(ReasonCode::Cancelled, "a person cancelled it"),
            CancelCause::AccountStopped => Reason::new(ReasonCode::Stopped, "the account was stopped"),
        };
        let Some(Versioned { value: occurrence, version }) =
            occurrence.filter(|occurrence| !occurrence.value.state.is_final())
        else {
            return end_run_because(cx, owner, run, cause).await;
        };
        let cancelled = occurrence.transition(OccurrenceCommand::Cancel { reason }, now);
        let cancelled = cancelled.map_err(|refused| Error::internal(refused.to_string()))?;
        let next = if action.value.live_run == Some(run) {
            action.value.after(&cancelled, now)
        } else {
            let left = action.value.queued.saturating_sub(1);
            transition(&action.value, Command::Unqueued { left }, now)
                .unwrap_or_else(|_| action.value.clone())
        };
        let live = match next.live_run {
            Some(live) => cx.store.occurrence(owner, id, live).await?,
            None => None,
        };
        let live = live.as_ref().map(|live| &live.value);
        let mut writes = vec![Store::replace_occurrence(owner, &cancelled, version)?];
        writes.extend(Store::untold_write(owner, &cancelled)?);
        writes.extend(action_writes(owner, &action, &next, live, now)?);
        if let (Some(by), None, Some(_)) = (by, &next.approval, &action.value.approval) {
            let (versions, command) = ((&action.value, &next), ChangeCommand::Cancel);
            let change = Change::of_action(versions, action.version + 1, now, by.into(), command);
            writes.push(Store::change_write(owner, Ledger::Action(id), &change)?);
        }
        if cx.store.write_all(writes).await?.done() {
            dispatch_at(cx, owner, id, wake_at(&next, live, now)).await;
            return end_run_because(cx, owner, run, cause).await;
        }
    }
}

/// Newest first.
///
/// # Errors
/// 404 if the action does not exist, 400 if `limit` or `cursor` is invalid.
pub async fn occurrences(
    cx: &Cx,
    owner: &Owner,
    id: ActionId,
    query: &PageQuery,
) -> Result<Page<OccurrenceView>> {
    load(cx, owner, id).await?;
    let read = |after: Option<String>, limit| {
        async move { cx.store.occurrences(owner, id, after.as_deref(), limit, Order::Newest).await }.boxed()
    };
    let found = page::filtered(owner, &format!("runs of {id}"), query, read, |_| true).await?;
    Ok(found.map(|occurrence| occurrence.value.into()))
}

/// # Errors
/// 404 if the action has no such run.
pub async fn occurrence(cx: &Cx, owner: &Owner, id: ActionId, run: RunId) -> Result<OccurrenceView> {
    let found = cx.store.occurrence(owner, id, run).await?.ok_or(Error::NotFound("run"))?;
    let told = told::of_run(cx, owner, &found.value).await?;
    Ok(OccurrenceView { told, ..found.value.into() })
}

/// # Errors
/// 404 if the action has no such run.
pub async fn outputs(cx: &Cx, owner: &Owner, id: ActionId, run: RunId) -> Result<Page<RunOutput>> {
    occurrence(cx, owner, id, run).await?;
    let data = cx.store.run_outputs(owner, run).await?;
    Ok(Page { data, next_cursor: None, has_more: false })
}

/// What happened at a due time, and whether the person was told.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct WhyView {
    #[serde(flatten)]
    pub why: Why,
    /// Whether and how the person was told of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told: Option<Told>,
}

/// What happened at the due time in the minute of `at`. Without `at`, at the newest due time.
///
/// # Errors
/// 404 if the action does not exist.
pub async fn why(data: &Data, owner: &Owner, id: ActionId, at: Option<Timestamp>) -> Result<WhyView> {
    let mut errors = FieldErrors::default();
    at.iter().for_each(|at| errors.time("at", *at));
    errors.into_result(())?;
    let (action, account) =
        tokio::try_join!(load(data, owner, id), async { Ok(data.store.account(owner).await?) })?;
    let (action, now) = (action.value, data.clock.now());
    let stopped_at = account.value.stop.map(|stop| stop.at);
    // While the account is stopped, the newest due time has no record.
    let undecided = stopped_at.and(action.next_due).filter(|due| *due <= now);
    let at = at.or(undecided);
    let (at, occurrence) = match at {
        Some(at) => (at, occurrence_at(data, owner, id, at).await?),
        None => {
            let found = data.store.occurrences(owner, id, None, 1, Order::Newest).await?;
            let newest = found.items.into_iter().next().map(|(_, occurrence)| occurrence.value);
            let at = newest.as_ref().map(|newest| newest.due_at).or(action.next_due);
            (at.unwrap_or(now), newest)
        }
    };
    let agent = data.store.agent(owner, action.agent_id).await?.map(|agent| agent.value);
    let zone = schedules::zone_of(data, owner, agent.as_ref()).await?;
    let before = match occurrence {
        Some(_) => None,
        None => covering(data, owner, id, at).await?,
    };
    let approval = approval_now(data, owner, &action, agent.as_ref()).await?;
    let was_approved = match approval {
        ApprovalNow::Withdrawn if occurrence.is_none() && at <= now => was_approved(data, owner, id).await?,
        _ => None,
    };
    let circumstances = Circumstances {
        zone: &zone,
        agent: agent.as_ref().map_or(AgentStatus::Archived, |agent| agent.status),
        approval,
        now,
    };
    let account = AtAccount { stopped_at, before: before.as_ref(), was_approved };
    let told = match &occurrence {
        Some(occurrence) => told::of_run(data, owner, occurrence).await?,
        None => None,
    };
    Ok(WhyView { why: explain(&action, circumstances, occurrence.as_ref(), at, account), told })
}

/// When the last approval of an action was given and withdrawn. `None` if the newest changes do not say it.
async fn was_approved(data: &Data, owner: &Owner, id: ActionId) -> Result<Option<(Timestamp, Timestamp)>> {
    let (approved, changes) = tokio::try_join!(
        data.store.approval(owner, id),
        data.store.changes(owner, Ledger::Action(id), None, CHANGES_LOOKED_AT)
    )?;
    let mut changes = changes.items.into_iter().map(|(_, change)| change.value);
    let withdrawn = changes.find(|change| change.effects.contains(&Effect::ApprovalWithdrawn));
    Ok(approved.zip(withdrawn).map(|(approved, withdrawn)| (approved.approved_at, withdrawn.at)))
}

async fn approval_now(
    data: &Data,
    owner: &Owner,
    action: &Action,
    agent: Option<&Agent>,
) -> Result<ApprovalNow> {
    Ok(match (&action.approval, agent) {
        (Some(_), Some(agent)) if action.is_approved_with(agent) => ApprovalNow::Holds,
        (Some(_), _) => ApprovalNow::Drifted,
        (None, _) if data.store.approval(owner, action.id).await?.is_some() => ApprovalNow::Withdrawn,
        (None, _) => ApprovalNow::Never,
    })
}

/// A due time that did not simply succeed.
#[derive(Debug)]
pub struct NotRun {
    pub due_at: Timestamp,
    pub sentence: String,
}

/// Of the newest due times of an action, those that did not succeed, newest first.
///
/// # Errors
/// If the table does not answer.
pub async fn not_run(
    data: &Data,
    owner: &Owner,
    (action, agent): (&Action, &Agent),
    most: usize,
) -> Result<Vec<NotRun>> {
    let found = data.store.occurrences(owner, action.id, None, most, Order::Newest).await?;
    let occurrences: Vec<Occurrence> = found.items.into_iter().map(|(_, found)| found.value).collect();
    let has_run = |state| {
        matches!(
            state,
            OccurrenceState::Succeeded
                | OccurrenceState::NothingNew
                | OccurrenceState::Claimed
                | OccurrenceState::Running
        )
    };
    if occurrences.iter().all(|occurrence| has_run(occurrence.state)) {
        return Ok(Vec::new());
    }
    let zone = schedules::zone_of(data, owner, Some(agent)).await?;
    let approval = approval_now(data, owner, action, Some(agent)).await?;
    let circumstances = Circumstances { zone: &zone, agent: agent.status, approval, now: data.clock.now() };
    let told = occurrences.iter().filter(|occurrence| !has_run(occurrence.state)).map(|occurrence| {
        let due_at = occurrence.due_at;
        let why = explain(action, circumstances, Some(occurrence), due_at, AtAccount::default());
        NotRun { due_at, sentence: why.sentence }
    });
    Ok(told.collect())
}

/// The newest record of several due times before `at`.
async fn covering(data: &Data, owner: &Owner, id: ActionId, at: Timestamp) -> Result<Option<Occurrence>> {
    let before = first_of_minute(owner, id, at);
    let found = data.store.occurrences(owner, id, Some(&before), 5, Order::Newest).await?;
    let occurrences = found.items.into_iter().map(|(_, occurrence)| occurrence.value);
    Ok(occurrences.into_iter().find(|occurrence| occurrence.covers.is_some()))
}

/// The key before all occurrences of the minute of `at`.
fn first_of_minute(owner: &Owner, id: ActionId, at: Timestamp) -> String {
    let minute = at.as_second().div_euclid(60) * 60;
    // Ids begin with their time in milliseconds. This id sorts before all ids of the minute.
    let millis = u128::try_from(minute).unwrap_or(0) * 1_000;
    keys::occurrence(owner, id, RunId::from_uuid(Uuid::from_u128(millis << 80))).sk
}

/// The occurrence in the minute of `at`. In this order: the one at exactly `at`, one of the schedule, any other.
async fn occurrence_at(
    data: &Data,
    owner: &Owner,
    id: ActionId,
    at: Timestamp,
) -> Result<Option<Occurrence>> {
    let minute = at.as_second().div_euclid(60) * 60;
    let before = first_of_minute(owner, id, at);
    let found = data.store.occurrences(owner, id, Some(&before), 20, Order::Oldest).await?;
    let in_minute = |occurrence: &Occurrence| (minute..minute + 60).contains(&occurrence.due_at.as_second());
    let rank = |occurrence: &Occurrence| (occurrence.due_at != at, occurrence.kind == OccurrenceKind::Manual);
    let occurrences = found.items.into_iter().map(|(_, occurrence)| occurrence.value);
    Ok(occurrences.filter(in_minute).min_by_key(rank))
}
