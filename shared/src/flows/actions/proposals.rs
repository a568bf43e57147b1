//! Proposals: created by a reply, shown with their content, removed when they are accepted.

use domain::actions::{
    AcceptedChange, ActionChange, ActionCommand, ActionPatch, DefineAction, Priority, TaskConfig, ValidPatch,
};
use domain::agent_loop::CallResult;
use domain::agents::Agent;
use domain::assets::{AssetType, NewAsset};
use domain::chats::proposal::{LIFETIME, MAX_INLINE_BYTES};
use domain::chats::signals::ActionDraft;
use domain::chats::{Proposal, ProposalBody};
use domain::ids::{ActionId, AgentId, ChatId, Owner, ProposalId, RunId};
use domain::runs::{EventKind, Run};
use domain::schedule::ScheduleInput;
use futures::FutureExt;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::agent_loop::Performed;
use crate::blobs::{BlobError, BlobKey};
use crate::context::{Cx, Data};
use crate::error::{Error, Result};
use crate::flows::page::{self, Page, PageQuery};
use crate::flows::{existing, schedules};
use crate::store::table::Write;
use crate::store::{Once, Store, Versioned, keys};

/// A proposal as clients see it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ProposalView {
    pub proposal_id: ProposalId,
    #[schema(value_type = String, example = "asset")]
    pub kind: &'static str,
    pub agent_id: AgentId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<ChatId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    pub created_at: Timestamp,
    /// It is deleted after this time.
    pub expires_at: Timestamp,
    pub title: String,
    pub description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asset_type: Option<AssetType>,
    /// The size of a proposed asset's content, in bytes of UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The complete content of a proposed asset. In a list, only contents of at most 64 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_config: Option<TaskConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub schedule: Option<serde_json::Value>,
    /// The proposed schedule as a sentence, with its time zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "At 09:00 on Monday (Europe/Berlin).")]
    pub schedule_text: Option<String>,
    /// The action that would be changed or commanded, if `kind` is `change` or `command`. `POST /proposals/{proposal_id}/accept`
    /// accepts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_id: Option<ActionId>,
    /// What would change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<ActionChange>,
    /// What would be done, if `kind` is `command`. `description` says what becomes of the action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<ActionCommand>,
    /// Of a change of an action that is approved: the hash of what an approval would bind after the change. With it, `accept` also
    /// approves this content. Only in `GET /proposals/{proposal_id}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_hash: Option<String>,
    /// The earlier drafts of the same thing, oldest first. They can be read until they expire.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replaces: Vec<ProposalId>,
    /// The newer draft of the same thing. This one can't be accepted any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<ProposalId>,
}

/// The origin of a proposal.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    pub agent_id: AgentId,
    pub chat_id: Option<ChatId>,
    pub run_id: Option<RunId>,
}

/// Proposes an asset from outside a conversation.
///
/// # Errors
/// 404 if the agent does not exist, 400 with every invalid field and its limit.
pub async fn propose_asset(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    agent: AgentId,
    asset: NewAsset,
) -> Result<ProposalView> {
    existing::agent(cx, owner, agent).await?;
    asset.validate()?;
    let proposal = of_asset(cx, owner, outside(agent), asset).await?;
    keep(cx, owner, once, proposal).await
}

/// Proposes an action from outside a conversation.
///
/// # Errors
/// 404 if the agent does not exist, 400 with every invalid field and its limit.
pub async fn propose_action(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    agent: AgentId,
    draft: ActionDraft,
) -> Result<ProposalView> {
    let owning = existing::agent(cx, owner, agent).await?.value;
    DefineAction::default()
        .complete(Some(draft.clone()), &owning, cx.config.budget.run_micros)?
        .validate()?;
    let proposal = of_action(cx, owner, &owning, outside(agent), ProposalBody::Action(draft)).await?;
    keep(cx, owner, once, proposal).await
}

fn outside(agent_id: AgentId) -> Origin {
    Origin { agent_id, chat_id: None, run_id: None }
}

async fn keep(cx: &Cx, owner: &Owner, once: &Once, proposal: Proposal) -> Result<ProposalView> {
    let mut writes = Store::proposal_writes(owner, &proposal)?;
    writes.push(Write::Exists { key: keys::agent(owner, proposal.agent_id) });
    if cx.store.commit(once, writes).await?.done() {
        return Ok(summary(proposal));
    }
    cx.blobs.delete_prefix(&BlobKey::proposal(owner, proposal.proposal_id)).await?;
    Err(Error::NotFound("agent"))
}

/// A new proposal of an asset, whose content is stored.
///
/// # Errors
/// If a large content can't be stored.
pub async fn of_asset(data: &Data, owner: &Owner, origin: Origin, asset: NewAsset) -> Result<Proposal> {
    let proposal_id = ProposalId::from_uuid(data.clock.uuid());
    let bytes = asset.content.len() as u64;
    let content = if asset.content.len() > MAX_INLINE_BYTES {
        // Nobody deletes the content if the proposal is not accepted, or if this process ends before the record is
        // stored.
        let key = BlobKey::proposal(owner, proposal_id);
        data.blobs.put_expiring(&key, asset.content, "text/plain; charset=utf-8").await?;
        None
    } else {
        Some(asset.content)
    };
    let (title, description, asset_type) = (asset.title, asset.description, asset.asset_type);
    Ok(new(data, origin, proposal_id, ProposalBody::Asset { title, description, asset_type, bytes, content }))
}

/// A new proposal of an action, or of a change of one. A schedule without a time zone gets that of the agent or the account, so that
/// the person sees what would be approved.
///
/// # Errors
/// If the table does not answer.
pub async fn of_action(
    data: &Data,
    owner: &Owner,
    agent: &Agent,
    origin: Origin,
    mut body: ProposalBody,
) -> Result<Proposal> {
    let in_zone = async |schedule| schedules::in_zone_of(data, owner, Some(agent), schedule).await;
    match &mut body {
        ProposalBody::Action(ActionDraft { schedule: Some(written), .. }) => {
            // What can't be read is refused when the person accepts it.
            if let Ok(schedule) = ScheduleInput::deserialize(&*written) {
                *written = json!(in_zone(schedule).await?);
            }
        }
        ProposalBody::Change { change, .. } => {
            if let Some(schedule) = change.schedule.take() {
                change.schedule = Some(in_zone(schedule).await?);
            }
        }
        ProposalBody::Action(_) | ProposalBody::Asset { .. } | ProposalBody::Command { .. } => {}
    }
    Ok(new(data, origin, ProposalId::from_uuid(data.clock.uuid()), body))
}

fn new(data: &Data, origin: Origin, proposal_id: ProposalId, body: ProposalBody) -> Proposal {
    let now = data.clock.now();
    Proposal {
        proposal_id,
        agent_id: origin.agent_id,
        chat_id: origin.chat_id,
        run_id: origin.run_id,
        created_at: now,
        expires_at: now + LIFETIME,
        replaces: Vec::new(),
        superseded_by: None,
        body,
    }
}

/// The earlier drafts of the same thing that still wait, newest first. The new draft names them as its history.
///
/// # Errors
/// If the table does not answer.
pub(crate) async fn refined(
    data: &Data,
    owner: &Owner,
    newer: &mut Proposal,
) -> Result<Vec<Versioned<Proposal>>> {
    let now = data.clock.now();
    let found = data.store.agent_proposals(owner, newer.agent_id, None, MAX_LOOKED_AT).await?;
    let found = found.items.into_iter().map(|(_, found)| found);
    let older: Vec<Versioned<Proposal>> = found
        .filter(|found| found.value.waits(now) && found.value.is_refined_by(newer))
        .take(MAX_REFINED)
        .collect();
    older.iter().rev().for_each(|older| newer.refines(&older.value));
    Ok(older)
}

/// # Errors
/// 404 if it does not exist, or it has expired.
pub async fn load(cx: &Cx, owner: &Owner, id: ProposalId) -> Result<Proposal> {
    cx.store.proposal(owner, id, cx.clock.now()).await?.ok_or(Error::NotFound("proposal"))
}

/// A proposal that a person accepts.
///
/// # Errors
/// As [`load`]; 409 `proposal_superseded` if there is a newer draft of the same thing.
pub async fn to_accept(cx: &Cx, owner: &Owner, id: ProposalId) -> Result<Proposal> {
    let proposal = load(cx, owner, id).await?;
    match proposal.superseded_by {
        None => Ok(proposal),
        Some(newer) => {
            let message = format!("a newer draft has replaced this one: {newer}");
            Err(Error::conflict_with("proposal_superseded", message, &summary(proposal)))
        }
    }
}

/// The content of a proposed asset.
///
/// # Errors
/// 404 if the proposal was accepted meanwhile.
pub async fn content(cx: &Cx, owner: &Owner, id: ProposalId, inline: Option<String>) -> Result<String> {
    match inline {
        Some(content) => Ok(content),
        None => match cx.blobs.get_text(&BlobKey::proposal(owner, id)).await {
            // The content is deleted after the record, so the proposal was accepted after the record was read.
            Err(BlobError::Missing { .. }) => Err(Error::NotFound("proposal")),
            content => Ok(content?),
        },
    }
}

/// # Errors
/// If the content can't be read.
pub async fn view(cx: &Cx, owner: &Owner, proposal: Proposal) -> Result<ProposalView> {
    let view = summary(proposal);
    if view.bytes.is_none() {
        return Ok(view);
    }
    let content = content(cx, owner, view.proposal_id, view.content).await?;
    Ok(ProposalView { content: Some(content), ..view })
}

/// The proposed schedule as a sentence. `None` if there is none, or if it is invalid.
#[must_use]
pub fn in_words(body: &ProposalBody) -> Option<String> {
    let schedule = match body {
        ProposalBody::Action(draft) => ScheduleInput::deserialize(draft.schedule.as_ref()?).ok()?,
        ProposalBody::Change { change, .. } => change.schedule.clone()?,
        ProposalBody::Asset { .. } | ProposalBody::Command { .. } => return None,
    };
    Some(schedule.validate().ok()?.describe())
}

/// The view, without a content that is in S3.
fn summary(proposal: Proposal) -> ProposalView {
    let base = ProposalView {
        proposal_id: proposal.proposal_id,
        kind: "asset",
        agent_id: proposal.agent_id,
        chat_id: proposal.chat_id,
        run_id: proposal.run_id,
        created_at: proposal.created_at,
        expires_at: proposal.expires_at,
        title: proposal.body.title().to_owned(),
        description: String::new(),
        asset_type: None,
        bytes: None,
        content: None,
        priority: None,
        task_config: None,
        schedule: None,
        schedule_text: in_words(&proposal.body),
        action_id: None,
        change: None,
        command: None,
        approval_hash: None,
        replaces: proposal.replaces,
        superseded_by: proposal.superseded_by,
    };
    match proposal.body {
        ProposalBody::Asset { description, asset_type, bytes, content, .. } => {
            ProposalView { description, asset_type: Some(asset_type), bytes: Some(bytes), content, ..base }
        }
        ProposalBody::Action(draft) => ProposalView {
            kind: "action",
            description: draft.description,
            priority: Some(draft.priority),
            task_config: Some(draft.task_config),
            schedule: draft.schedule,
            ..base
        },
        ProposalBody::Change { action_id, change, .. } => ProposalView {
            kind: "change",
            description: change.description.clone().unwrap_or_default(),
            action_id: Some(action_id),
            change: Some(*change),
            ..base
        },
        ProposalBody::Command { action_id, command, .. } => ProposalView {
            kind: "command",
            description: command.consequence().to_owned(),
            action_id: Some(action_id),
            command: Some(command),
            ..base
        },
    }
}

/// # Errors
/// 404 if it does not exist, or it has expired.
pub async fn read(cx: &Cx, owner: &Owner, id: ProposalId) -> Result<ProposalView> {
    let proposal = load(cx, owner, id).await?;
    let approval_hash = approval_hash(cx, owner, &proposal).await?;
    Ok(ProposalView { approval_hash, ..view(cx, owner, proposal).await? })
}

/// What an approval of the action would bind after a proposed change, if the action is approved as it is.
async fn approval_hash(cx: &Cx, owner: &Owner, proposal: &Proposal) -> Result<Option<String>> {
    let ProposalBody::Change { action_id, change, .. } = &proposal.body else { return Ok(None) };
    let (action, agent) =
        tokio::try_join!(async { Ok::<_, Error>(cx.store.action(owner, *action_id).await?) }, async {
            Ok(cx.store.agent(owner, proposal.agent_id).await?)
        },)?;
    let (Some(action), Some(agent)) = (action, agent) else { return Ok(None) };
    let agent = agent.value;
    match valid(cx, owner, &agent, ActionPatch::default().over((**change).clone())).await {
        Ok(change) => Ok(AcceptedChange::hash(&action.value, &change, &agent, cx.clock.now())),
        // Whoever accepts it is told why it is refused.
        Err(Error::Invalid(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A change of an action of this agent, whose schedule has a zone.
///
/// # Errors
/// 400 for an exceeded limit.
pub(crate) async fn valid(
    data: &Data,
    owner: &Owner,
    agent: &Agent,
    mut change: ActionPatch,
) -> Result<ValidPatch> {
    if let Some(Some(schedule)) = &mut change.schedule {
        *schedule = schedules::in_zone_of(data, owner, Some(agent), std::mem::take(schedule)).await?;
    }
    Ok(change.validate()?)
}

/// An agent's proposals that wait, newest first.
///
/// # Errors
/// 404 if the agent does not exist, 400 if `limit` or `cursor` is invalid.
pub async fn list(cx: &Cx, owner: &Owner, agent: AgentId, query: &PageQuery) -> Result<Page<ProposalView>> {
    existing::agent(cx, owner, agent).await?;
    let list = format!("proposals of {agent}");
    let newest = |after: Option<String>, limit| {
        async move { cx.store.agent_proposals(owner, agent, after.as_deref(), limit).await }.boxed()
    };
    let now = cx.clock.now();
    let waits = |proposal: &Proposal| proposal.waits(now);
    Ok(page::filtered(owner, &list, query, newest, waits).await?.map(|proposal| summary(proposal.value)))
}

/// # Errors
/// 404 if it does not exist, or it has expired.
pub async fn delete(cx: &Cx, owner: &Owner, id: ProposalId) -> Result<()> {
    load(cx, owner, id).await?;
    delete_if_there(cx, owner, id).await
}

/// Discards a proposal. It is no error if it does not exist.
///
/// # Errors
/// If the table or the bucket does not answer; the call can be repeated.
pub async fn delete_if_there(cx: &Cx, owner: &Owner, id: ProposalId) -> Result<()> {
    // The record is deleted first, so that no record names a missing content.
    if let Some(proposal) = cx.store.proposal(owner, id, Timestamp::MIN).await? {
        let _ = cx.store.delete_proposal(owner, &proposal).await?;
    }
    Ok(cx.blobs.delete_prefix(&BlobKey::proposal(owner, id)).await?)
}

/// How many of an agent's newest proposals are looked at for earlier drafts, and how many of them a draft replaces.
const MAX_LOOKED_AT: usize = 100;
const MAX_REFINED: usize = 1;

/// How many things a turn may propose.
pub const MAX_PROPOSALS: usize = 20;

/// How many more things the turn may propose.
pub(crate) fn room(run: &Run) -> usize {
    MAX_PROPOSALS.saturating_sub(run.proposals.len())
}

pub(crate) fn too_many<C>(kind: &str, taken: usize, asked: usize) -> Performed<C> {
    let reason = format!(
        "a turn may propose at most {MAX_PROPOSALS} things: {} of these were not proposed. Propose nothing more in this turn",
        asked - taken
    );
    let mut performed = Performed::from(CallResult::refused(format!("{reason}.")));
    performed.events.push((EventKind::DeliverableInvalid, json!({"kind": kind, "reason": reason})));
    performed
}
