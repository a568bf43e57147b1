//! All runs of an owner, newest first.
//!
//! Occurrences are stored by action, and turns and rehearsals in a list of their own. The ids of all of them begin with a time, so
//! they sort together: the answer merges one descending range for each action and the list. A page continues below the id of the last
//! run that was looked at. A range is read only when its next run may be needed, so a page of few actions costs few queries.

use std::collections::{BTreeSet, BinaryHeap, HashMap, VecDeque};

use domain::actions::{Action, Occurrence, OccurrenceKind, OccurrenceState, ReasonCode};
use domain::ids::{ActionId, AgentId, ChatId, Owner, RunId};
use domain::runs::{Run, RunError, RunKind, RunState};
use domain::validate::FieldErrors;
use futures::stream::{self, TryStreamExt};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::{AT_ONCE, MAX_ACTIONS, PAGE, agents_of, all, cut, shown};
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::page::{PageQuery, cursor};
use crate::flows::{actions, existing};
use crate::store::keys;
use crate::store::runs::ListedRun;
use crate::store::table::Order;

/// The name of the list in cursors.
const LIST: &str = "all runs";

/// How many runs a page looks at, at most. With a filter, a page may have fewer runs than asked for.
const LOOKED_AT: usize = 2_000;

/// How many entries of the list of turns and rehearsals a page reads, at most.
const MAX_ENTRIES: usize = 20_000;

/// How much earlier or later than an action's record says one of its runs may be: clocks differ, and a time that has just passed is due.
const SLACK: SignedDuration = SignedDuration::from_mins(10);

/// How many runs of each action are read first, if there are many actions.
const FEW: usize = 5;

/// How many actions are few enough to read a whole page of each.
const FEW_ACTIONS: usize = 8;

/// Which runs.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AskedRuns {
    /// Only runs that were due, or began, at this time or later.
    pub from: Option<Timestamp>,
    /// Only runs that were due, or began, before this time.
    pub to: Option<Timestamp>,
    /// Only runs of this agent.
    #[param(value_type = Option<String>)]
    pub agent_id: Option<AgentId>,
    /// Only runs of this action.
    #[param(value_type = Option<String>)]
    pub action_id: Option<ActionId>,
    /// Only runs in this state.
    pub state: Option<OccurrenceState>,
    /// Only runs of this kind. Default: all but `chat`, `setup` and `theme`.
    pub kind: Option<ListedKind>,
}

/// What began a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ListedKind {
    Scheduled,
    /// Started by hand.
    Manual,
    /// Found late, after an outage.
    CatchUp,
    Rehearsal,
    /// A turn with an agent, in a chat or about an action.
    Chat,
    /// A turn of a setup conversation.
    Setup,
    /// A turn of the theme agent.
    Theme,
    /// A part of such a turn that another model does.
    Helper,
}

impl From<OccurrenceKind> for ListedKind {
    fn from(kind: OccurrenceKind) -> Self {
        match kind {
            OccurrenceKind::Scheduled => Self::Scheduled,
            OccurrenceKind::Manual => Self::Manual,
            OccurrenceKind::CatchUp => Self::CatchUp,
        }
    }
}

impl ListedKind {
    const fn of(kind: RunKind) -> Self {
        match kind {
            RunKind::Setup => Self::Setup,
            RunKind::Theme => Self::Theme,
            RunKind::Helper => Self::Helper,
            RunKind::Chat => Self::Chat,
            RunKind::Action => Self::Manual,
            RunKind::Rehearsal => Self::Rehearsal,
        }
    }

    /// Whether such runs are in the list of the runs that no action lists.
    const fn is_listed(self) -> bool {
        matches!(self, Self::Rehearsal | Self::Chat | Self::Setup | Self::Theme | Self::Helper)
    }
}

/// A page of runs.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Runs {
    /// Newest first.
    pub data: Vec<ListedRunView>,
    /// Send it as `cursor` to get the next page. It is absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Whether there may be a next page.
    pub has_more: bool,
    /// Whether the pages have everything that was asked for. `false` if there are more than 2,000 actions: then they have the runs of
    /// the newest of these. `false`, too, if 20,000 turns lie between two runs of the page.
    pub complete: bool,
}

/// A run in the list of all runs.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ListedRunView {
    pub run_id: RunId,
    pub kind: ListedKind,
    /// When it was due. Of a turn, a rehearsal and a run by hand: when it was asked for.
    pub at: Timestamp,
    /// As in `GET /actions/{action_id}/runs`, but `running` also stands for `claimed`. `succeeded` also stands for a turn or a rehearsal that is `completed`.
    pub state: OccurrenceState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_id: Option<ActionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<ChatId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// A sentence, unless the run has simply succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason_code: Option<ReasonCode>,
    /// Of a turn or a rehearsal that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    pub cost_micros: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<u8>,
    /// If this is the record of several due times that did not run: how many, from `at` on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_times: Option<u32>,
    /// The last of these due times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_due_at: Option<Timestamp>,
}

/// A run of one of the ranges.
enum Seen {
    Occurrence(Box<Occurrence>),
    Listed(ListedRun),
}

impl Seen {
    fn id(&self) -> RunId {
        match self {
            Self::Occurrence(occurrence) => occurrence.run_id,
            Self::Listed(run) => run.run_id,
        }
    }
}

/// A range of runs that is read from the newest to the oldest.
struct Source {
    /// The action of the occurrences. `None`: the list of the runs that no action lists.
    action: Option<ActionId>,
    read: VecDeque<Seen>,
    /// Where to continue. `None`: at the beginning, or nowhere.
    after: Option<String>,
    is_over: bool,
    batch: usize,
    /// How many further entries of the list may be read.
    left: usize,
}

impl Source {
    fn new(action: Option<ActionId>, below: RunId, owner: &Owner, batch: usize) -> Self {
        let key = match action {
            Some(action) => keys::occurrence(owner, action, below),
            None => keys::run_listed(owner, below),
        };
        let left = MAX_ENTRIES;
        Self { action, read: VecDeque::new(), after: Some(key.sk), is_over: false, batch, left }
    }

    /// Reads on, if all that was read is used up.
    async fn fill(&mut self, cx: &Cx, owner: &Owner, asked: &AskedRuns) -> Result<()> {
        while self.read.is_empty() && !self.is_over {
            let after = self.after.take();
            let last = match self.action {
                Some(action) => {
                    let store = &cx.store;
                    let found =
                        store.occurrences(owner, action, after.as_deref(), self.batch, Order::Newest).await?;
                    let found_runs = found.items.into_iter().map(|(_, found)| found.value);
                    self.read.extend(found_runs.map(|found| Seen::Occurrence(Box::new(found))));
                    found.last
                }
                None => {
                    let found = cx.store.listed_runs(owner, after.as_deref(), self.batch).await?;
                    self.left = self.left.saturating_sub(found.items.len());
                    let entries = found.items.into_iter().map(|(_, found)| Seen::Listed(found.value));
                    // Most entries are turns. Those that are not asked for are no part of the page.
                    self.read.extend(entries.filter(|entry| may_fit(entry, asked)));
                    found.last.filter(|_| self.left > 0)
                }
            };
            self.is_over = last.is_none();
            self.after = last;
            self.batch = (self.batch * 2).min(PAGE);
        }
        Ok(())
    }
}

/// # Errors
/// 400 if a parameter is invalid; 404 if the agent or the action does not exist.
pub async fn runs(cx: &Cx, owner: &Owner, asked: &AskedRuns, page: &PageQuery) -> Result<Runs> {
    let limit = page.limit()?;
    let mut errors = FieldErrors::default();
    for (field, time) in [("from", asked.from), ("to", asked.to)] {
        time.iter().for_each(|time| errors.time(field, *time));
    }
    errors.into_result(())?;
    // The cursor is bound to the filters: below it, other filters would leave runs out.
    let list = format!("{LIST} {asked:?}");
    let after = page.after(owner, &list)?;
    let after: Option<RunId> = after.and_then(|id| id.parse().ok());
    let until = asked.to.map(lowest);
    // Everything that is looked at is below this id.
    let below = after.into_iter().chain(until).min();
    let floor = asked.from.map(lowest);

    let (of, complete) = actions_of(cx, owner, asked).await?;
    let mut sources = sources(&of, asked, below, limit, owner);
    let filled = stream::iter(sources.iter_mut().map(Ok::<_, Error>));
    filled.try_for_each_concurrent(AT_ONCE, async |source| source.fill(cx, owner, asked).await).await?;
    let next = |sources: &[Source], at: usize| Some((sources[at].read.front()?.id(), at));
    let mut order: BinaryHeap<(RunId, usize)> =
        (0..sources.len()).filter_map(|at| next(&sources, at)).collect();

    let (mut found, mut looked_at, mut last) = (Vec::new(), 0, None);
    let mut has_more = false;
    while let Some((id, at)) = order.pop() {
        if floor.is_some_and(|floor| id < floor) {
            break;
        }
        if found.len() == limit || looked_at == LOOKED_AT {
            has_more = true;
            break;
        }
        if let Some(seen) = sources[at].read.pop_front() {
            (looked_at, last) = (looked_at + 1, Some(id));
            found.extend(Some(seen).filter(|seen| may_fit(seen, asked)));
        }
        sources[at].fill(cx, owner, asked).await?;
        order.extend(next(&sources, at));
    }
    let complete = complete && sources.iter().all(|source| source.left > 0);
    let data = views(cx, owner, found, &of, asked).await?;
    let next_cursor = last.filter(|_| has_more).map(|last| cursor(owner, &list, &last.to_string()));
    Ok(Runs { data, has_more: next_cursor.is_some(), next_cursor, complete })
}

/// The lowest id of a run at this time.
fn lowest(at: Timestamp) -> RunId {
    let millis = u128::try_from(at.as_millisecond()).unwrap_or_default();
    RunId::from_uuid(Uuid::from_u128(millis << 80))
}

/// The actions whose runs are asked for, and whether these are all.
async fn actions_of(cx: &Cx, owner: &Owner, asked: &AskedRuns) -> Result<(Vec<Action>, bool)> {
    if let Some(agent) = asked.agent_id {
        existing::agent(cx, owner, agent).await?;
    }
    if let Some(id) = asked.action_id {
        let action = actions::load(cx, owner, id).await?.value;
        let is_of_agent = asked.agent_id.is_none_or(|agent| agent == action.agent_id);
        return Ok((is_of_agent.then_some(action).into_iter().collect(), true));
    }
    let found = match asked.agent_id {
        Some(agent) => {
            all(MAX_ACTIONS, |after| async move {
                cx.store.agent_actions(owner, agent, after.as_deref(), PAGE).await
            })
            .await?
        }
        None => super::actions(cx, owner).await?,
    };
    Ok((found.data, found.complete))
}

fn sources(
    of: &[Action],
    asked: &AskedRuns,
    below: Option<RunId>,
    limit: usize,
    owner: &Owner,
) -> Vec<Source> {
    let mut sources = Vec::new();
    let end = below.map(RunId::instant);
    let below = below.unwrap_or(RunId::from_uuid(Uuid::max()));
    if asked.kind.is_none_or(|kind| !kind.is_listed()) {
        let may_have = |action: &&Action| {
            // An action has changed since each of its runs, and existed before it.
            asked.from.is_none_or(|from| from.duration_since(action.updated_at) <= SLACK)
                && end.is_none_or(|end| action.created_at.duration_since(end) <= SLACK)
        };
        let of: Vec<ActionId> = of.iter().filter(may_have).map(|action| action.id).collect();
        let batch = if of.len() > FEW_ACTIONS { FEW.min(limit + 1) } else { limit + 1 };
        sources.extend(of.into_iter().map(|id| Source::new(Some(id), below, owner, batch)));
    }
    if asked.kind.is_none_or(ListedKind::is_listed) {
        sources.push(Source::new(None, below, owner, PAGE));
    }
    sources
}

/// Whether a run may be asked for. A listed run must be read to know it for certain.
fn may_fit(seen: &Seen, asked: &AskedRuns) -> bool {
    match seen {
        Seen::Occurrence(occurrence) => {
            asked.kind.is_none_or(|kind| kind == occurrence.kind.into())
                && asked.state.is_none_or(|state| state == shown(occurrence.state))
        }
        Seen::Listed(run) => {
            run.kind.is_none_or(|kind| is_kind(kind, asked))
                && !(run.ended == Some(true) && asked.state.is_some_and(|state| !state.is_final()))
        }
    }
}

fn is_kind(kind: RunKind, asked: &AskedRuns) -> bool {
    match asked.kind {
        Some(asked) => asked == ListedKind::of(kind),
        None => kind == RunKind::Rehearsal,
    }
}

async fn views(
    cx: &Cx,
    owner: &Owner,
    found: Vec<Seen>,
    of: &[Action],
    asked: &AskedRuns,
) -> Result<Vec<ListedRunView>> {
    let listed: Vec<RunId> =
        found.iter().filter(|seen| matches!(seen, Seen::Listed(_))).map(Seen::id).collect();
    let read = cx.store.runs(owner, &listed).await?;
    let read: HashMap<RunId, Run> = read.into_iter().map(|run| (run.run_id, run)).collect();
    let of: HashMap<ActionId, &Action> = of.iter().map(|action| (action.id, action)).collect();
    let view = |seen: Seen| match seen {
        Seen::Occurrence(occurrence) => {
            let action = of.get(&occurrence.action_id)?;
            Some(of_occurrence(*occurrence, action))
        }
        Seen::Listed(listed) => {
            let run = read.get(&listed.run_id)?;
            let of_agent = asked.agent_id.is_none_or(|agent| run.agent_id == Some(agent));
            let of_action = asked.action_id.is_none_or(|action| run.action_id == Some(action));
            let view = of_run(run, run.action_id.and_then(|id| of.get(&id).copied()));
            let fits = of_agent && of_action && is_kind(run.kind, asked);
            Some(view).filter(|view| fits && asked.state.is_none_or(|state| view.state == state))
        }
    };
    let mut views: Vec<ListedRunView> = found.into_iter().filter_map(view).collect();
    let agents: BTreeSet<AgentId> = views.iter().filter_map(|view| view.agent_id).collect();
    let agents = agents_of(cx, owner, agents).await?;
    for view in &mut views {
        let agent = view.agent_id.and_then(|id| agents.get(&id));
        view.agent_name = agent.map(|agent| agent.name.clone());
    }
    Ok(views)
}

fn of_occurrence(occurrence: Occurrence, action: &Action) -> ListedRunView {
    ListedRunView {
        run_id: occurrence.run_id,
        kind: occurrence.kind.into(),
        at: occurrence.due_at,
        state: shown(occurrence.state),
        agent_id: Some(action.agent_id),
        agent_name: None,
        action_id: Some(action.id),
        action_title: Some(action.title.clone()),
        chat_id: None,
        started_at: occurrence.started_at,
        finished_at: occurrence.finished_at,
        reason: occurrence.reason.as_deref().map(cut),
        reason_code: occurrence.reason_code,
        error: None,
        cost_micros: occurrence.cost_micros,
        score: occurrence.score,
        due_times: occurrence.covers.map(|covers| covers.times),
        last_due_at: occurrence.covers.map(|covers| covers.last),
    }
}

fn of_run(run: &Run, action: Option<&Action>) -> ListedRunView {
    ListedRunView {
        run_id: run.run_id,
        kind: ListedKind::of(run.kind),
        at: run.created_at,
        state: match run.state {
            RunState::Running => OccurrenceState::Running,
            RunState::Completed => OccurrenceState::Succeeded,
            RunState::Failed => OccurrenceState::Failed,
            RunState::Cancelled => OccurrenceState::Cancelled,
            RunState::Waiting => OccurrenceState::Waiting,
        },
        agent_id: run.agent_id,
        agent_name: None,
        action_id: run.action_id,
        action_title: action.map(|action| action.title.clone()),
        chat_id: run.chat_id,
        started_at: Some(run.created_at),
        finished_at: run.finished_at.filter(|_| run.state.has_ended()),
        reason: run.error.as_ref().map(|error| cut(&error.detail)),
        reason_code: None,
        error: run.error.clone(),
        cost_micros: run.cost_micros,
        score: run.rehearsal.as_ref().and_then(|of| of.shown.as_ref()?.score),
        due_times: None,
        last_due_at: None,
    }
}
