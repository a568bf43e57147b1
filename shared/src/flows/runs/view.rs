//! A run as clients see it.

use domain::actions::http_call::Sent;
use domain::agent_loop::Card;
use domain::agents::AgentDraft;
use domain::ids::{ActionId, AgentId, ChatId, Owner, RunId};
use domain::memory::recall::Recalled;
use domain::models::{Usage, WebSource};
use domain::notices::told::Told;
use domain::projects::turn::{ThemeChanges, ThemeTurn};
use domain::runs::rehearsal::Rehearsed;
use domain::runs::{Run, RunError, RunFallback, RunKind, RunModel, RunState, Taint};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::agent_loop::journal;
use crate::context::Cx;
use crate::error::Result;
use crate::flows::actions::proposals::{self, ProposalView};
use crate::flows::memory::known;
use crate::flows::notices::told;

/// A run and its result.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RunView {
    pub run_id: RunId,
    pub kind: RunKind,
    pub state: RunState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<ChatId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_id: Option<ActionId>,
    pub created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// The reply without its proposals.
    pub message: String,
    /// The proposals of the reply, in their order, that nobody has accepted yet.
    pub proposals: Vec<ProposalView>,
    /// In a setup conversation: the agent, once it is complete. Send it to `POST /agents`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_draft: Option<AgentDraft>,
    pub usage: Usage,
    pub cost_micros: i64,
    /// What its helpers have cost, besides. 0 if it had none.
    pub helpers_micros: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    /// Whether the reply ends because it reached a limit of its length.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub cut_off: bool,
    /// Hash of the stable part of the first request. If it differs between turns of one agent, the provider's cache was missed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix_hash: Option<String>,
    /// The model of the run's newest call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<RunModel>,
    /// Models that were replaced, oldest first. At most 20.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub fallbacks: Vec<RunFallback>,
    /// Calls that wait for a person, and those that have waited, oldest first.
    pub cards: Vec<CardView>,
    /// Pages that its searches of the web have found, at most 100. Strangers have written them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub sources: Vec<WebSource>,
    /// Since when the run may have read what strangers have written. What it says may be false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tainted: Option<Taint>,
    /// What it was told of memory when it began, in the order in which it was told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub recalled: Vec<Recalled>,
    /// What a rehearsal has shown. Absent until it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rehearsal: Option<Rehearsed>,
    /// Of an action with `call`: what the run has sent, and what came back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<Sent>,
    /// Of a turn of the theme agent: how it was planned, and what it has become.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theme: Option<ThemeTurn>,
    /// What a run of an action has changed in the theme of its agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<ThemeChanges>,
    /// Of a run of an action that has come to rest: whether and how the person was told of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told: Option<Told>,
}

/// A call that waits for a person, or has waited for one.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CardView {
    #[serde(flatten)]
    pub card: Card,
    /// The arguments of the call. Left out if the run's steps have expired.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub arguments: Option<Value>,
}

/// # Errors
/// If the proposals can't be read.
pub async fn view(cx: &Cx, owner: &Owner, run: Run) -> Result<RunView> {
    let mut proposals = Vec::with_capacity(run.proposals.len());
    for id in &run.proposals {
        let now = cx.clock.now();
        if let Some(proposal) = cx.store.proposal(owner, *id, now).await?.filter(|found| found.waits(now)) {
            proposals.push(proposals::view(cx, owner, proposal).await?);
        }
    }
    let told = match run.action_id.filter(|_| run.kind == RunKind::Action) {
        Some(action) => match cx.store.occurrence(owner, action, run.run_id).await? {
            Some(occurrence) => told::of_run(cx, owner, &occurrence.value).await?,
            None => None,
        },
        None => None,
    };
    let recalled = known::still_known(cx, owner, run.recalled).await?;
    let mut arguments = journal::arguments(cx, owner, run.run_id, &run.cards).await?;
    let cards =
        run.cards.into_iter().map(|card| CardView { arguments: arguments.remove(&card.call_id), card });
    Ok(RunView {
        cards: cards.collect(),
        run_id: run.run_id,
        theme: run.theme.map(|turn| *turn),
        changed: run.changed.map(|changed| *changed),
        kind: run.kind,
        state: run.state,
        agent_id: run.agent_id,
        chat_id: run.chat_id,
        action_id: run.action_id,
        created_at: run.created_at,
        // Earlier versions stored it when a run began to wait.
        finished_at: run.finished_at.filter(|_| run.state.has_ended()),
        prefix_hash: run.prefix_hash,
        message: run.message,
        proposals,
        agent_draft: run.agent_draft,
        usage: run.usage,
        cost_micros: run.cost_micros,
        helpers_micros: run.helpers_micros,
        error: run.error,
        cut_off: run.cut_off,
        sources: run.sources,
        tainted: run.tainted,
        recalled,
        rehearsal: run.rehearsal.and_then(|of| of.shown),
        call: run.call.map(|sent| *sent),
        model: run.model,
        fallbacks: run.fallbacks,
        told,
    })
}
