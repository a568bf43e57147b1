//! Actions: defined, approved, scheduled and run, and the commands of people.
//!
//! Every change works the same way. It loads the action and its live occurrence and lets
//! [`transition`](domain::actions::transition) decide. Then one transaction writes the action, the affected occurrences
//! and the place in the `due` index, at the versions that were read. A writer that loses a race decides again.
//!
//! [`apply`] does this for the commands of people. An executor has other occurrences to write, so it uses [`load_live`]
//! and [`action_writes`] and adds to the transaction.

mod accept;
mod apply;
mod approvals;
pub mod calls;
mod define;
mod delete;
pub(super) mod history;
pub mod notebook;
mod pauses;
pub mod proposals;
pub mod records;
mod rehearse;
pub mod runs;
pub mod watches;

use std::collections::{BTreeMap, BTreeSet};

use domain::actions::cost::LAST_RUNS;
use domain::actions::idle::Idle;
use domain::actions::{
    Action, ActionState, Briefing, ExpectedCost, NotNow, Occurrence, OccurrenceState, Refused, approval_hash,
};
use domain::agents::Agent;
use domain::history::{Change, Effect};
use domain::ids::{ActionId, AgentId, Owner, RunId};
use domain::models::routing::Ask;
use domain::validate::FieldErrors;
use domain::watch::state::Counts;
use futures::FutureExt;
use futures::future::try_join_all;
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::background::due;
use super::edit;
use crate::context::{Cx, Data};
use crate::error::{Error, Result};
use crate::flows::existing;
use crate::flows::page::{self, Page, PageQuery};
use crate::model_choice;
use crate::request::caller::IfMatch;
use crate::store::agents::history::Ledger;
use crate::store::table::{Order, Write};
use crate::store::{DueItem, Store, Versioned};

pub use super::withdrawals::StaleApproval;
pub use accept::{AcceptProposal, AcceptedProposal, accept};
pub use apply::{Changed, apply, approve, change, command, resume, revert, schedule};
pub(crate) use apply::{answer, queued};
pub(crate) use approvals::cannot;
pub use approvals::{ApprovalView, Approvals, ApproveMany, Approved, approval, approve_many, stale};
pub(crate) use define::checked;
pub use define::define;
pub(crate) use define::define_imported;
pub use delete::{delete, delete_if_there};
pub use pauses::tell as tell_pause;
pub use records::end_run;
pub use rehearse::{RehearseAction, StartedRehearsal, approve_rehearsed, rehearse};
pub use runs::{
    OccurrenceView, StartedRun, WhyView, not_run, occurrence, occurrences, outputs, run_now, why,
};

/// How many occurrences are looked at for the cost of the last runs.
const LOOKED_AT: usize = 50;

/// An action as clients see it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ActionView {
    #[serde(flatten)]
    pub action: Action,
    /// The hash of everything that an approval currently binds, including the agent. Send it to `approve`. If it
    /// differs from `approval.hash`, the approval is no longer valid, and nothing runs under it.
    pub approval_hash: String,
    /// The schedule as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "At 09:00 on weekdays (Europe/Berlin).")]
    pub schedule_text: Option<String>,
    /// How often it was held since it needs a person, as a sentence. Only while a person is asked and due times have come.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "held 1,440 times since 2026-11-02 09:00, the last time at 2026-11-03 08:59")]
    pub held_text: Option<String>,
    /// What its runs of the next 30 days will probably cost. Only in `GET /actions/{action_id}`, and only with a schedule. Absent if
    /// they cost nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_cost: Option<ExpectedCost>,
    /// What the checks of `watches` have come to. Only in `GET /actions/{action_id}`, and only with `watches`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watching: Option<Counts>,
    /// All reasons why nothing of it runs by itself now. While its agent or account is a reason, a run by hand is refused, too. Absent if
    /// nothing is in the way. Answers to changes do not say that the account is stopped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub will_not_run: Vec<Idle>,
    /// What the change did besides setting fields, such as `approval_withdrawn`. Only answers to changes have it. Empty if the
    /// change did nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effects: Option<Vec<Effect>>,
}

impl ActionView {
    #[must_use]
    pub fn new(action: Action, agent: &Agent) -> Self {
        Self::at(action, agent, None)
    }

    /// With the time at which the account was stopped, if it is.
    fn at(action: Action, agent: &Agent, stopped_at: Option<Timestamp>) -> Self {
        let will_not_run = Idle::all(&action, agent, stopped_at);
        Self { will_not_run, ..Self::with(&Briefing::of(&action, agent), action) }
    }

    fn with(briefing: &Briefing, action: Action) -> Self {
        // Clients have no use for what sweeps note there.
        let action = Action { found_at: None, found_until: None, preflighted: None, ..action };
        Self {
            approval_hash: approval_hash(&action, briefing),
            schedule_text: action.schedule_text(),
            held_text: held_text(&action),
            expected_cost: None,
            watching: None,
            action,
            will_not_run: Vec::new(),
            effects: None,
        }
    }

    /// As the answer to a change with these effects.
    #[must_use]
    pub fn after(self, effects: Vec<Effect>) -> Self {
        Self { effects: Some(effects), ..self }
    }
}

fn held_text(action: &Action) -> Option<String> {
    let (held, schedule) = (action.held?, action.schedule.as_ref()?);
    Some(held.words(schedule.time_zone()))
}

/// An action for clients, with its current agent.
///
/// # Errors
/// If the table does not answer.
pub async fn view(cx: &Cx, owner: &Owner, action: Action) -> Result<ActionView> {
    Ok(match cx.store.agent(owner, action.agent_id).await? {
        Some(agent) => ActionView::new(action, &agent.value),
        // The agent is being deleted, and its actions with it.
        None => ActionView::with(&Briefing::default(), action),
    })
}

/// An action with the occurrence of its live run.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub action: Versioned<Action>,
    pub live: Option<Versioned<Occurrence>>,
}

/// Refuses a grant of a tool that the provider of the action's model does not run.
///
/// # Errors
/// 400 with the reason.
async fn check_provider_tools(cx: &Cx, owner: &Owner, action: &Action) -> Result<()> {
    let Some(tool) = action.max_uses.keys().next() else { return Ok(()) };
    let ask = Ask { tier: Some(action.model_tier), ..Ask::default() };
    let number = model_choice::number(RunId::from_uuid(cx.clock.uuid()));
    let refused = match model_choice::route(cx, owner, &ask, number).await? {
        Ok(mut route) => model_choice::with_provider_tools(&mut route).err(),
        Err(error) => Some(error.to_string()),
    };
    match refused {
        Some(why) => {
            Err(FieldErrors::one("grants", format!("{} can't be granted: {why}", tool.name())).into())
        }
        None => Ok(()),
    }
}

/// # Errors
/// 404 if the action does not exist.
pub async fn load(data: &Data, owner: &Owner, id: ActionId) -> Result<Versioned<Action>> {
    let found = data.store.action(owner, id).await?.ok_or(Error::NotFound("action"))?;
    Ok(stored(found))
}

/// Sets the version in the record to the stored version.
pub(super) fn stored(mut found: Versioned<Action>) -> Versioned<Action> {
    found.value.version = found.version;
    found
}

/// # Errors
/// 404 if the action does not exist.
pub async fn load_live(cx: &Cx, owner: &Owner, id: ActionId) -> Result<Loaded> {
    let action = load(cx, owner, id).await?;
    let live = match action.value.live_run {
        Some(run) => cx.store.occurrence(owner, id, run).await?,
        None => None,
    };
    Ok(Loaded { action, live })
}

/// The writes that replace `read` by `next`: the record with its place in the `due` index, and the agent's count if the
/// action has failed, and the entry of the ledger if the platform pauses it. What was completed is counted where a run succeeds, and where a person completes the action. `live` is the occurrence `next.live_run` after the change.
///
/// # Errors
/// If the record can't be encoded as an item, which is a bug.
pub fn action_writes(
    owner: &Owner,
    read: &Versioned<Action>,
    next: &Action,
    live: Option<&Occurrence>,
    now: Timestamp,
) -> Result<Vec<Write>> {
    let mut writes = vec![Store::replace_action(owner, next, read.version, wake_at(next, live, now))?];
    let count = match next.state {
        state if state == read.value.state => None,
        ActionState::Failed => Some("actions_failed"),
        _ => None,
    };
    writes.extend(pauses::noted(owner, read, next, now)?);
    writes.extend(count.map(|number| Store::count(owner, next.agent_id, vec![(number, 1)])));
    Ok(writes)
}

/// The writes of an executor: the occurrence over the version that it has claimed, and the action over the one that was read. A run that
/// ends is counted in the same transaction, so it is counted once, also if an executor dies or an answer is lost.
///
/// # Errors
/// If a record can't be encoded as an item, which is a bug.
pub fn run_writes(
    owner: &Owner,
    (read, next): (&Versioned<Action>, &Action),
    (occurrence, claimed): (&Occurrence, u64),
    now: Timestamp,
) -> Result<Vec<Write>> {
    let mut writes = vec![Store::replace_occurrence(owner, occurrence, claimed)?];
    writes.extend(Store::untold_write(owner, occurrence)?);
    writes.extend(action_writes(owner, read, next, live(next, occurrence), now)?);
    writes.extend(run_count(owner, occurrence, next));
    Ok(writes)
}

/// When the action is due next, after an executor has written `occurrence`.
pub(super) fn wake_after(action: &Action, occurrence: &Occurrence, now: Timestamp) -> Option<Timestamp> {
    wake_at(action, live(action, occurrence), now)
}

/// The occurrence, if it is the live one of the action.
fn live<'a>(action: &Action, occurrence: &'a Occurrence) -> Option<&'a Occurrence> {
    Some(occurrence).filter(|occurrence| action.live_run == Some(occurrence.run_id))
}

/// The write that counts a run that has just ended, for the agent. `occurrence` and `action` are what the same transaction stores,
/// so it is counted once.
#[must_use]
pub fn run_count(owner: &Owner, occurrence: &Occurrence, action: &Action) -> Option<Write> {
    let number = match occurrence.state {
        OccurrenceState::Succeeded => "actions_completed",
        OccurrenceState::NothingNew => "runs_nothing_new",
        // An action that fails with its run is counted by `action_writes`.
        OccurrenceState::Failed if action.state != ActionState::Failed => "actions_failed",
        _ => return None,
    };
    Some(Store::count(owner, action.agent_id, vec![(number, 1)]))
}

/// When an executor should look at the action next. A queued run that can start now does not wait for the next due time.
pub(super) fn wake_at(action: &Action, live: Option<&Occurrence>, now: Timestamp) -> Option<Timestamp> {
    let turn_has_come = action.queued > 0
        && action.live_run.is_none()
        && !matches!(action.state, ActionState::Paused | ActionState::NeedsApproval);
    if turn_has_come { Some(now) } else { action.look_at(live) }
}

/// Dispatches an executor for this time, if the time is now or soon.
pub(crate) async fn dispatch_at(cx: &Cx, owner: &Owner, id: ActionId, at: Option<Timestamp>) {
    due::dispatch_at(cx, &DueItem::action(owner, id), at).await;
}

/// A 409 with the current action.
async fn refusal(cx: &Cx, owner: &Owner, refused: &Refused, action: &Action) -> Error {
    match view(cx, owner, action.clone()).await {
        Ok(view) => Error::conflict_with(refused.code(), refused.to_string(), &view),
        Err(error) => error,
    }
}

/// A 409 with the current action, which does not allow a proposed command.
async fn not_now(cx: &Cx, owner: &Owner, NotNow { code, text }: &NotNow, action: Action) -> Error {
    match view(cx, owner, action).await {
        Ok(view) => Error::conflict_with(code, text.clone(), &view),
        Err(error) => error,
    }
}

/// Refuses an edit whose `If-Match` is not the current version.
async fn check_version(
    cx: &Cx,
    owner: &Owner,
    if_match: Option<IfMatch>,
    action: &Versioned<Action>,
) -> Result<()> {
    let shown = async { view(cx, owner, action.value.clone()).await };
    edit::check_read(if_match, action.version, shown).await
}

/// # Errors
/// 404 if the action does not exist.
pub async fn read(cx: &Cx, owner: &Owner, id: ActionId) -> Result<ActionView> {
    let action = load(cx, owner, id).await?.value;
    let expected_cost = expected_cost(cx, owner, &action).await?;
    let watching = match action.watches.is_empty() {
        true => None,
        false => Some(cx.store.watch_state(owner, id).await?.value.counts),
    };
    let view = views(cx, owner, vec![action]).await?.pop().ok_or(Error::NotFound("action"))?;
    Ok(ActionView { expected_cost, watching, ..view })
}

/// Whether a run costs nothing, so that no ceiling stops it.
pub(super) async fn is_free(cx: &Cx, owner: &Owner, action: &Action) -> Result<bool> {
    if action.call.is_some() {
        return Ok(true);
    }
    let ask = Ask { tier: Some(action.model_tier), ..Ask::default() };
    let number = model_choice::number(RunId::from_uuid(cx.clock.uuid()));
    let route = model_choice::route(cx, owner, &ask, number).await?;
    Ok(action.max_uses.is_empty() && route.is_ok_and(|route| route.candidates[0].price.is_free()))
}

/// What the action will probably cost, from its last runs. `None` if its runs cost nothing: a ceiling says nothing about them.
pub(crate) async fn expected_cost(cx: &Cx, owner: &Owner, action: &Action) -> Result<Option<ExpectedCost>> {
    if action.schedule.is_none() {
        return Ok(None);
    }
    let found = cx.store.occurrences(owner, action.id, None, LOOKED_AT, Order::Newest).await?;
    let has_run = |occurrence: &Occurrence| occurrence.state.is_final() && occurrence.started_at.is_some();
    let runs = found.items.into_iter().map(|(_, occurrence)| occurrence.value).filter(has_run);
    let costs: Vec<i64> = runs.map(|occurrence| occurrence.cost_micros).take(LAST_RUNS).collect();
    if costs.iter().all(|micros| *micros == 0) && is_free(cx, owner, action).await? {
        return Ok(None);
    }
    Ok(ExpectedCost::of(action, &costs, cx.clock.now()))
}

/// Newest first.
///
/// # Errors
/// 404 if the agent does not exist, 400 if `limit` or `cursor` is invalid.
pub async fn list(
    cx: &Cx,
    owner: &Owner,
    agent: Option<AgentId>,
    state: Option<ActionState>,
    query: &PageQuery,
) -> Result<Page<ActionView>> {
    let keep = |action: &Action| state.is_none_or(|state| action.state == state);
    let found = match agent {
        None => {
            let read = |after: Option<String>, limit| {
                async move { cx.store.actions(owner, after.as_deref(), limit).await }.boxed()
            };
            page::filtered(owner, "actions", query, read, keep).await?
        }
        Some(agent) => {
            existing::agent(cx, owner, agent).await?;
            let read = |after: Option<String>, limit| {
                async move { cx.store.agent_actions(owner, agent, after.as_deref(), limit).await }.boxed()
            };
            page::filtered(owner, &format!("actions of {agent}"), query, read, keep).await?
        }
    };
    let Page { data, next_cursor, has_more } = found.map(|action| stored(action).value);
    Ok(Page { data: views(cx, owner, data).await?, next_cursor, has_more })
}

/// The changes of an action, newest first.
///
/// # Errors
/// 404 if the action does not exist, 400 if `limit` or `cursor` is invalid.
pub async fn changes(cx: &Cx, owner: &Owner, id: ActionId, query: &PageQuery) -> Result<Page<Change>> {
    load(cx, owner, id).await?;
    history::list(cx, owner, Ledger::Action(id), query).await
}

/// Actions as they are read, with the reasons why they will not run. Each agent is read once.
async fn views(cx: &Cx, owner: &Owner, actions: Vec<Action>) -> Result<Vec<ActionView>> {
    let ids: BTreeSet<AgentId> = actions.iter().map(|action| action.agent_id).collect();
    let reads = ids.into_iter().map(async |id| Ok::<_, Error>((id, cx.store.agent(owner, id).await?)));
    let (agents, account) =
        tokio::try_join!(try_join_all(reads), async { Ok(cx.store.account(owner).await?) })?;
    let agents: BTreeMap<AgentId, _> = agents.into_iter().collect();
    let stopped_at = account.value.stop.map(|stop| stop.at);
    let view = |action: Action| match agents.get(&action.agent_id).and_then(Option::as_ref) {
        Some(agent) => ActionView::at(action, &agent.value, stopped_at),
        None => ActionView::with(&Briefing::default(), action),
    };
    Ok(actions.into_iter().map(view).collect())
}
