//! Everything that waits for a person.
//!
//! The record of an action says most of it. What it only names (its newest due time, its live run, its last approval) is read in batches.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use domain::actions::{
    Action, ActionState, Briefing, Occurrence, OccurrenceKind, OccurrenceState, PreflightCode,
    PreflightProblem, Reason, ReasonCode, approval_hash,
};
use domain::agent_loop::Card;
use domain::agent_loop::cards::{self, Asks};
use domain::agents::{Agent, AgentStatus};
use domain::assets::AssetType;
use domain::ceilings::CeilingReached;
use domain::chats::{Proposal, ProposalBody};
use domain::ids::{ActionId, AgentId, CallId, ChatId, Owner, ProposalId, RunId};
use domain::runs::{Run, RunState};
use domain::tools::questions;
use futures::stream::{self, StreamExt, TryStreamExt};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{AT_ONCE, PAGE, actions, agents_of, all, cut, live, open_turns, sentence};
use crate::agent_loop::journal;
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::store::table::Order;

/// The most items of an answer.
const MAX_ITEMS: usize = 500;

/// How many of the newest proposals are looked at.
const MAX_PROPOSALS: usize = 300;

/// How many runs are shown with the arguments of their calls.
const MAX_WITH_ARGUMENTS: usize = 100;

/// Arguments with more bytes of JSON are left out.
const MAX_ARGUMENTS: usize = 20_000;

/// What went wrong longer ago is not shown.
const SHOWN: SignedDuration = SignedDuration::from_hours(7 * 24);

/// How many of the newest runs may say that something is no longer the newest state.
const LATER_RUNS: usize = 10;

/// What waits for a person.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Inbox {
    /// First what holds up a run, then what went wrong, then approvals, then proposals; in each group the newest first. At most 500.
    pub data: Vec<InboxItem>,
    /// Whether this is everything. `false` if there are more than 500 items, or if a part of the owner's records was not looked at: of
    /// more than 2,000 actions, 300 proposals, 5,000 turns of the last 30 days, or 200 turns under way, only the newest are.
    pub complete: bool,
    /// How many items of each kind `data` has. A kind without items is left out.
    #[schema(value_type = BTreeMap<String, usize>, example = json!({"approval": 2, "call": 1}))]
    pub counts: BTreeMap<InboxKind, usize>,
    /// How many runs are under way. Runs that wait for a person are not counted.
    pub live: usize,
}

/// Why something waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum InboxKind {
    /// A call of a run waits for a yes, or for what became of it.
    Call,
    /// A run has reached a ceiling of costs.
    Ceiling,
    /// A run asked a question.
    Question,
    /// It is not known whether a call of the newest run happened. Further due times are held.
    Unknown,
    /// Due times are held until somebody resumes the action.
    Held,
    /// The newest scheduled run failed, or the platform has paused the action.
    Failed,
    /// The newest due time was missed.
    Missed,
    /// The next run will fail.
    Preflight,
    /// An action has no approval, or is no longer what was approved.
    Approval,
    /// A draft waits to be accepted or discarded.
    Proposal,
}

impl InboxKind {
    /// The group in the order of the answer.
    const fn group(self) -> u8 {
        match self {
            Self::Call | Self::Ceiling | Self::Question | Self::Unknown | Self::Held => 0,
            Self::Failed | Self::Missed | Self::Preflight => 1,
            Self::Approval => 2,
            Self::Proposal => 3,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Ceiling => "ceiling",
            Self::Question => "question",
            Self::Unknown => "unknown",
            Self::Held => "held",
            Self::Failed => "failed",
            Self::Missed => "missed",
            Self::Preflight => "preflight",
            Self::Approval => "approval",
            Self::Proposal => "proposal",
        }
    }
}

/// Something that waits for a person. Which fields it has depends on its kind.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct InboxItem {
    pub kind: InboxKind,
    /// The same as long as the same thing waits.
    #[schema(example = "approval/act_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c")]
    pub id: String,
    /// Since when it waits, or when it happened. Of a question: when its run began, or last went on.
    pub at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_id: Option<ActionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<ChatId>,
    /// What it is about, in a few words.
    pub title: String,
    /// What waits, as a sentence. At most 2,000 characters.
    pub text: String,
    /// The next due time of the action. Of an action that is not approved: the first one if it were approved in this minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Timestamp>,
    /// How often the action was held since, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_text: Option<String>,
    /// `approval`: the hash to send to `POST /actions/{action_id}/approve`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_hash: Option<String>,
    /// `approval`: the schedule as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule_text: Option<String>,
    /// `approval`: whether the action, its agent or a tool has changed since somebody approved the action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_since_approval: Option<bool>,
    /// `proposal`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposal_id: Option<ProposalId>,
    /// `proposal`: `asset`, `action` or `change`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "asset")]
    pub proposal_kind: Option<&'static str>,
    /// `proposal` of an asset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asset_type: Option<AssetType>,
    /// `call`, `ceiling`: names the call in `POST /runs/{run_id}/calls/{call_id}/approve`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "3.0")]
    pub call_id: Option<CallId>,
    /// `call`, `ceiling`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asks: Option<Asks>,
    /// `call`, `ceiling`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// `call`: the arguments, unless they have more than 20,000 bytes, are no longer stored, or 100 other runs wait. `GET
    /// /runs/{run_id}` has them in any case, if they are stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub arguments: Option<Value>,
    /// `call`, `ceiling`: why a person must decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// `call`, `ceiling`: the hash of the card.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// `call`: the expected cost, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<i64>,
    /// `ceiling`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<CeilingReached>,
    /// When it stops waiting: the run ends, or the proposal is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// `question`: possible answers, if the run named some. The person may say something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choices: Option<Vec<String>>,
    /// `failed`, `missed`, `unknown`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `failed`, `missed`, `unknown`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason_code: Option<ReasonCode>,
    /// `failed`: the code of the run's error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// `failed`: how often in a row it failed in the same way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// `failed`: why the platform has paused the action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_because: Option<Reason>,
    /// `preflight`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problems: Option<Vec<PreflightProblem>>,
}

impl InboxItem {
    fn new(kind: InboxKind, of: impl std::fmt::Display, at: Timestamp, title: &str, text: String) -> Self {
        Self {
            kind,
            id: format!("{}/{of}", kind.name()),
            at,
            agent_id: None,
            agent_name: None,
            action_id: None,
            action_title: None,
            run_id: None,
            chat_id: None,
            title: title.to_owned(),
            text,
            next_at: None,
            held_text: None,
            approval_hash: None,
            schedule_text: None,
            changed_since_approval: None,
            proposal_id: None,
            proposal_kind: None,
            asset_type: None,
            call_id: None,
            asks: None,
            tool: None,
            arguments: None,
            why: None,
            hash: None,
            cost_micros: None,
            ceiling: None,
            expires_at: None,
            choices: None,
            reason: None,
            reason_code: None,
            error_code: None,
            times: None,
            paused_because: None,
            problems: None,
        }
    }

    fn by(mut self, agent: Option<&Agent>) -> Self {
        self.agent_id = agent.map(|agent| agent.agent_id);
        self.agent_name = agent.map(|agent| agent.name.clone());
        self
    }

    fn about(mut self, action: &Action) -> Self {
        self.action_id = Some(action.id);
        self.action_title = Some(action.title.clone());
        self.next_at = self.next_at.or(action.next_due);
        self
    }

    /// An item about a run that did not simply succeed.
    fn of_occurrence(kind: InboxKind, action: &Action, of: &Occurrence, at: Timestamp) -> Self {
        let reason = of.reason.as_deref().unwrap_or_default();
        let mut item = Self::new(kind, of.run_id, at, &action.title, sentence(reason)).about(action);
        item.run_id = Some(of.run_id);
        item.reason = of.reason.as_deref().map(cut);
        item.reason_code = of.reason_code;
        item.held_text = held_text(action);
        item
    }

    fn of_card(run: &Run, card: &Card, title: &str) -> Self {
        let kind = match card.asks {
            Asks::Ceiling => InboxKind::Ceiling,
            Asks::Permission | Asks::Outcome => InboxKind::Call,
        };
        let of = format!("{}/{}", run.run_id, card.call_id);
        let mut item = Self::new(kind, of, card.asked_at, title, sentence(&card.why));
        item.run_id = Some(run.run_id);
        item.chat_id = run.chat_id;
        item.call_id = Some(card.call_id);
        item.asks = Some(card.asks);
        item.tool = Some(card.tool.clone());
        item.why = Some(cut(&card.why));
        item.hash = Some(card.hash.clone());
        item.cost_micros = card.cost_micros;
        item.ceiling = card.ceiling;
        item.expires_at = Some(card.expires_at);
        item
    }
}

fn held_text(action: &Action) -> Option<String> {
    Some(action.held?.words(action.schedule.as_ref()?.time_zone()))
}

/// What the records of actions name, by the id of the run or the action.
struct Named {
    occurrences: HashMap<RunId, Occurrence>,
    runs: HashMap<RunId, Run>,
    approved: BTreeMap<ActionId, String>,
}

/// An action with its agent, and whether it may run as it is.
struct Of<'a> {
    action: &'a Action,
    agent: &'a Agent,
    hash: String,
}

impl Of<'_> {
    /// Whether nothing can run before somebody approves it.
    fn needs_approval(&self) -> bool {
        self.action.needs_approval(&self.hash)
    }

    /// Whether it asks a person with its live run.
    fn waits(&self) -> bool {
        self.action.state == ActionState::NeedsApproval && self.action.live_run.is_some()
    }

    /// Whether a person is asked although no run waits.
    fn is_held(&self) -> bool {
        self.action.state == ActionState::NeedsApproval && self.action.live_run.is_none()
    }
}

/// # Errors
/// If the table or the bucket does not answer.
pub async fn inbox(cx: &Cx, owner: &Owner) -> Result<Inbox> {
    let now = cx.clock.now();
    let proposals = all(MAX_PROPOSALS, |after| async move {
        cx.store.proposals(owner, after.as_deref(), PAGE.min(MAX_PROPOSALS)).await
    });
    let (actions, turns, proposals) = tokio::try_join!(actions(cx, owner), open_turns(cx, owner), proposals)?;
    let ids = actions.data.iter().map(|action| action.agent_id);
    let ids = ids.chain(proposals.data.iter().map(|proposal| proposal.agent_id));
    let agents = agents_of(cx, owner, ids.chain(turns.data.iter().filter_map(|run| run.agent_id))).await?;
    let of: Vec<Of<'_>> = actions
        .data
        .iter()
        .filter_map(|action| {
            // The actions of an agent that is being deleted are deleted with it.
            let agent = agents.get(&action.agent_id)?;
            let hash = approval_hash(action, &Briefing::of(action, agent));
            Some(Of { action, agent, hash })
        })
        .collect();
    let named = named(cx, owner, &of, now).await?;

    let mut data = Vec::new();
    for of in &of {
        data.extend(of_action(of, &named, now));
    }
    for stale in outdated(cx, owner, &data).await? {
        data.retain(|item| item.id != stale);
    }
    data.extend(of_turns(&turns.data, &of, &agents, now));
    data.extend(proposals.data.iter().filter_map(|proposal| of_proposal(proposal, &agents, now)));

    data.sort_by(|a, b| (a.kind.group(), b.at, &b.id).cmp(&(b.kind.group(), a.at, &a.id)));
    let fits = data.len() <= MAX_ITEMS;
    data.truncate(MAX_ITEMS);
    let waiting: HashMap<RunId, &Run> =
        named.runs.values().chain(&turns.data).map(|run| (run.run_id, run)).collect();
    add_arguments(cx, owner, &mut data, &waiting).await?;
    let mut counts = BTreeMap::new();
    for item in &data {
        *counts.entry(item.kind).or_default() += 1;
    }
    let complete = fits && actions.complete && turns.complete && proposals.complete;
    Ok(Inbox { data, complete, counts, live: live(&actions.data, &turns.data) })
}

/// Reads what the actions name.
async fn named(cx: &Cx, owner: &Owner, of: &[Of<'_>], now: Timestamp) -> Result<Named> {
    let (mut occurrences, mut runs, mut unapproved) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for of in of {
        let action = of.action;
        if of.needs_approval() && action.approval.is_none() {
            unapproved.push(action.id);
        }
        if let Some(run) = action.live_run.filter(|_| of.waits()) {
            occurrences.insert((action.id, run));
            runs.insert(run);
        }
        if let Some(failures) = &action.failures {
            occurrences.insert((action.id, failures.run_id));
        }
        if let Some(last) = action.last_due.filter(|last| is_shown(*last, now)) {
            occurrences.insert((action.id, RunId::for_occurrence(action.id, last)));
        }
    }
    let (occurrences, runs): (Vec<_>, Vec<_>) =
        (occurrences.into_iter().collect(), runs.into_iter().collect());
    let (occurrences, runs, approved, newest) = tokio::try_join!(
        async { Ok::<_, Error>(cx.store.occurrences_of(owner, &occurrences).await?) },
        async { Ok::<_, Error>(cx.store.runs(owner, &runs).await?) },
        async { Ok::<_, Error>(cx.store.last_approvals(owner, &unapproved).await?) },
        newest_of_held(cx, owner, of),
    )?;
    let occurrences = occurrences.into_iter().chain(newest);
    Ok(Named {
        occurrences: occurrences.map(|occurrence| (occurrence.run_id, occurrence)).collect(),
        runs: runs.into_iter().map(|run| (run.run_id, run)).collect(),
        approved,
    })
}

/// The newest occurrences of the actions that ask a person although no run waits. One of them may have an unknown outcome.
async fn newest_of_held(cx: &Cx, owner: &Owner, of: &[Of<'_>]) -> Result<Vec<Occurrence>> {
    let held: Vec<ActionId> = of.iter().filter(|of| of.is_held()).map(|of| of.action.id).collect();
    let found = stream::iter(held).map(async |id| {
        let found = cx.store.occurrences(owner, id, None, LATER_RUNS, Order::Newest).await?;
        Ok::<_, Error>(found.items.into_iter().map(|(_, found)| found.value).collect::<Vec<_>>())
    });
    let found: Vec<Vec<Occurrence>> = found.buffer_unordered(AT_ONCE).try_collect().await?;
    Ok(found.into_iter().flatten().collect())
}

fn is_shown(at: Timestamp, now: Timestamp) -> bool {
    now.duration_since(at) <= SHOWN
}

/// What waits because of an action. The run that waits, or what it is held for, comes first and excludes what it explains.
fn of_action(of: &Of<'_>, named: &Named, now: Timestamp) -> Vec<InboxItem> {
    let (action, mut items) = (of.action, Vec::new());
    let is_archived = of.agent.status == AgentStatus::Archived;
    if of.waits() {
        items.extend(of_waiting(of, named, now));
    } else if let Some(unknown) = unknown(of, named) {
        items.push(unknown);
    }
    // Nothing runs for an archived agent, whatever a person answers.
    if !is_archived {
        let is_new = items.is_empty();
        if of.needs_approval() && !of.waits() {
            items.push(approval(of, named, now));
        } else if is_new && of.is_held() {
            let text = "Due times are held until somebody resumes the action.".to_owned();
            let at = action.held.map_or(action.updated_at, |held| held.first_due_at);
            let mut item = InboxItem::new(InboxKind::Held, action.id, at, &action.title, text).about(action);
            item.run_id = action.held.map(|held| held.run_id(action.id));
            item.held_text = held_text(action);
            items.push(item);
        }
        if !of.needs_approval() && !of.waits() {
            items.extend(went_wrong(action, named, now));
        }
        items.extend(preflight(of));
    }
    items.into_iter().map(|item| item.by(Some(of.agent))).collect()
}

/// The question or the cards of the run that waits.
fn of_waiting(of: &Of<'_>, named: &Named, now: Timestamp) -> Vec<InboxItem> {
    let action = of.action;
    let Some(live) = action.live_run.and_then(|run| named.occurrences.get(&run)) else { return Vec::new() };
    if live.state != OccurrenceState::Waiting {
        return Vec::new();
    }
    let run = named.runs.get(&live.run_id);
    let open = run.into_iter().flat_map(|run| {
        let cards = cards::open(&run.cards).filter(move |card| card.expires_at > now);
        cards.map(move |card| {
            let mut item = InboxItem::of_card(run, card, &action.title).about(action);
            item.held_text = held_text(action);
            item
        })
    });
    let cards: Vec<InboxItem> = open.collect();
    if !cards.is_empty() && live.reason_code != Some(ReasonCode::Asked) {
        return cards;
    }
    // A question, or a run whose record has expired: it is answered in the conversation about the action.
    let began = live.started_at.unwrap_or(live.due_at);
    let at = run.and_then(|run| run.resumed_at).map_or(began, |resumed| resumed.max(began));
    let mut item = InboxItem::of_occurrence(InboxKind::Question, action, live, at);
    item.expires_at = live.answer_by;
    let (question, choices) =
        questions::parts(live.reason.as_deref().unwrap_or("The run waits for an answer."));
    item.text = cut(question);
    item.choices = Some(choices.into_iter().map(str::to_owned).collect());
    (item.reason, item.reason_code) = (None, live.reason_code);
    vec![item]
}

/// The newest run of an action that is held, if its outcome is unknown.
fn unknown(of: &Of<'_>, named: &Named) -> Option<InboxItem> {
    if !of.is_held() {
        return None;
    }
    let of_this = named.occurrences.values().filter(|occurrence| occurrence.action_id == of.action.id);
    let began = of_this.filter(|occurrence| occurrence.state.is_final() && occurrence.started_at.is_some());
    let newest = began.max_by_key(|occurrence| (occurrence.finished_at, occurrence.run_id))?;
    (newest.state == OccurrenceState::Unknown).then(|| {
        let at = newest.finished_at.unwrap_or(newest.due_at);
        InboxItem::of_occurrence(InboxKind::Unknown, of.action, newest, at)
    })
}

fn approval(of: &Of<'_>, named: &Named, now: Timestamp) -> InboxItem {
    let action = of.action;
    let was =
        action.approval.as_ref().map(|approval| &approval.hash).or_else(|| named.approved.get(&action.id));
    let is_changed = was.is_some_and(|was| *was != of.hash);
    let text = match (&action.approval, was) {
        (Some(_), _) => {
            "The agent or a tool has changed since the action was approved. Nothing runs until it is approved again."
        }
        (None, Some(_)) if is_changed => {
            "The action has changed since it was approved. Nothing runs until it is approved again."
        }
        (None, Some(_)) => "The approval was withdrawn. Nothing runs until the action is approved again.",
        (None, None) => "Nothing runs until the action is approved.",
    };
    let mut item =
        InboxItem::new(InboxKind::Approval, action.id, action.updated_at, &action.title, text.to_owned());
    // `every` would count from the approval. Whole minutes, so that the answer does not change every second.
    let anchor = Timestamp::from_second(now.as_second() / 60 * 60).unwrap_or(now);
    item.next_at = action.next_due.or_else(|| action.schedule.as_ref()?.next_after(anchor, now));
    item.schedule_text = action.schedule_text();
    item.approval_hash = Some(of.hash.clone());
    item.changed_since_approval = Some(is_changed);
    item.held_text = held_text(action);
    item.about(action)
}

/// What went wrong at the newest due time.
fn went_wrong(action: &Action, named: &Named, now: Timestamp) -> Option<InboxItem> {
    if matches!(action.state, ActionState::Completed | ActionState::Dismissed | ActionState::NeedsApproval) {
        return None;
    }
    let newest = action.last_due.map(|last| RunId::for_occurrence(action.id, last));
    let newest = newest.and_then(|run| named.occurrences.get(&run));
    let missed = newest.filter(|newest| newest.state == OccurrenceState::Missed);
    if let (Some(missed), None) = (missed, &action.paused_because) {
        return Some(InboxItem::of_occurrence(InboxKind::Missed, action, missed, missed.due_at));
    }
    let failures = action.failures.as_ref()?;
    // A pause by the platform waits as long as it lasts.
    if action.paused_because.is_none() && !is_shown(failures.at, now) {
        return None;
    }
    let failed = named.occurrences.get(&failures.run_id);
    let reason =
        action.paused_because.as_ref().map(|because| format!("the action was paused {}", because.text));
    let reason = reason.or_else(|| failed.and_then(|failed| failed.reason.clone()));
    let text = sentence(reason.as_deref().unwrap_or(&failures.cause));
    let id = failures.run_id;
    let mut item = InboxItem::new(InboxKind::Failed, id, failures.at, &action.title, text).about(action);
    item.run_id = Some(id);
    item.reason = failed.and_then(|failed| failed.reason.as_deref()).map(cut);
    item.reason_code = failed.and_then(|failed| failed.reason_code);
    item.error_code = Some(failures.code.clone());
    item.times = Some(failures.times);
    item.paused_because.clone_from(&action.paused_because);
    Some(item)
}

/// What will make the next run fail. That the approval no longer holds is an item of its own.
fn preflight(of: &Of<'_>) -> Option<InboxItem> {
    let found = of.action.preflight.as_ref()?;
    let is_told = |problem: &&PreflightProblem| problem.code == PreflightCode::Drifted && of.needs_approval();
    let problems: Vec<PreflightProblem> =
        found.problems.iter().filter(|problem| !is_told(problem)).cloned().collect();
    let texts: Vec<&str> = problems.iter().map(|problem| problem.text.as_str()).collect();
    let text = match texts.as_slice() {
        [] => return None,
        texts => format!("The next run will fail: {}.", texts.join("; ")),
    };
    let (id, at) = (of.action.id, found.checked_at);
    let mut item = InboxItem::new(InboxKind::Preflight, id, at, &of.action.title, cut(&text));
    item.next_at = Some(found.due_at);
    item.problems = Some(problems);
    Some(item.about(of.action))
}

/// The items about a missed due time after which somebody has run the action by hand.
async fn outdated(cx: &Cx, owner: &Owner, items: &[InboxItem]) -> Result<Vec<String>> {
    let missed = items.iter().filter(|item| item.kind == InboxKind::Missed);
    let missed: Vec<(ActionId, Timestamp, String)> =
        missed.filter_map(|item| Some((item.action_id?, item.at, item.id.clone()))).collect();
    let looks = stream::iter(missed).map(async |(action, at, id)| {
        let found = cx.store.occurrences(owner, action, None, LATER_RUNS, Order::Newest).await?;
        let ran = |run: &Occurrence| {
            let by_hand = run.kind == OccurrenceKind::Manual && run.due_at > at;
            by_hand && !matches!(run.state, OccurrenceState::Failed | OccurrenceState::Cancelled)
        };
        Ok::<_, Error>(found.items.iter().any(|(_, found)| ran(&found.value)).then_some(id))
    });
    let found: Vec<Option<String>> = looks.buffer_unordered(AT_ONCE).try_collect().await?;
    Ok(found.into_iter().flatten().collect())
}

/// The cards of turns that wait: in chats, and in conversations about actions.
fn of_turns(
    turns: &[Run],
    of: &[Of<'_>],
    agents: &BTreeMap<AgentId, Agent>,
    now: Timestamp,
) -> Vec<InboxItem> {
    let by_id: HashMap<ActionId, &Action> = of.iter().map(|of| (of.action.id, of.action)).collect();
    let mut items = Vec::new();
    for run in turns.iter().filter(|run| run.state == RunState::Waiting) {
        let agent = run.agent_id.and_then(|id| agents.get(&id));
        let action = run.action_id.and_then(|id| by_id.get(&id));
        let title = action.map(|action| &action.title).or(agent.map(|agent| &agent.name));
        for card in cards::open(&run.cards).filter(|card| card.expires_at > now) {
            let item = InboxItem::of_card(run, card, title.map_or("", String::as_str)).by(agent);
            items.push(match action {
                Some(action) => item.about(action),
                None => item,
            });
        }
    }
    items
}

fn of_proposal(proposal: &Proposal, agents: &BTreeMap<AgentId, Agent>, now: Timestamp) -> Option<InboxItem> {
    // The table may take two days to delete an expired one.
    if !proposal.waits(now) {
        return None;
    }
    let agent = agents.get(&proposal.agent_id)?;
    fn told<'a>(description: &'a str, otherwise: &'a str) -> &'a str {
        if description.trim().is_empty() { otherwise } else { description }
    }
    let (kind, text, action) = match &proposal.body {
        ProposalBody::Asset { description, .. } => {
            ("asset", told(description, "An asset is proposed."), None)
        }
        ProposalBody::Action(draft) => ("action", told(&draft.description, "An action is proposed."), None),
        ProposalBody::Change { action_id, .. } => {
            ("change", "A change of an action is proposed.", Some(*action_id))
        }
        ProposalBody::Command { action_id, command, .. } => ("command", command.proposed(), Some(*action_id)),
    };
    let (id, at) = (proposal.proposal_id, proposal.created_at);
    let mut item =
        InboxItem::new(InboxKind::Proposal, id, at, proposal.body.title(), cut(text)).by(Some(agent));
    item.proposal_id = Some(id);
    item.proposal_kind = Some(kind);
    item.action_id = action;
    item.run_id = proposal.run_id;
    item.chat_id = proposal.chat_id;
    item.expires_at = Some(proposal.expires_at);
    if let ProposalBody::Asset { asset_type, .. } = &proposal.body {
        item.asset_type = Some(*asset_type);
    }
    Some(item)
}

/// Adds the arguments of the calls that wait.
async fn add_arguments(
    cx: &Cx,
    owner: &Owner,
    items: &mut [InboxItem],
    runs: &HashMap<RunId, &Run>,
) -> Result<()> {
    let calls = items.iter().filter(|item| item.kind == InboxKind::Call);
    let ids: BTreeSet<RunId> = calls.filter_map(|item| item.run_id).collect();
    let newest = ids.into_iter().rev().take(MAX_WITH_ARGUMENTS).filter_map(|id| runs.get(&id));
    let open: Vec<(RunId, Vec<Card>)> =
        newest.map(|run| (run.run_id, cards::open(&run.cards).cloned().collect())).collect();
    let reads = stream::iter(open)
        .map(async |(id, cards)| Ok::<_, Error>((id, journal::arguments(cx, owner, id, &cards).await?)));
    let mut found: HashMap<RunId, BTreeMap<CallId, Value>> =
        reads.buffer_unordered(AT_ONCE / 4).try_collect().await?;
    for item in items.iter_mut().filter(|item| item.kind == InboxKind::Call) {
        let (Some(run), Some(call)) = (item.run_id, item.call_id) else { continue };
        let arguments = found.get_mut(&run).and_then(|calls| calls.remove(&call));
        item.arguments = arguments.filter(|arguments| arguments.to_string().len() <= MAX_ARGUMENTS);
    }
    Ok(())
}
