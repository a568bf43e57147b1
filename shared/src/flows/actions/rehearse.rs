//! Begins a rehearsal of an action, and gives an action the grant that a rehearsal proposes.

use std::collections::BTreeMap;

use domain::accounts::quota::Charge;
use domain::actions::{Action, ActionPatch, Briefing, approval_hash};
use domain::agents::AgentStatus;
use domain::chats::Proposal;
use domain::ids::{ActionId, Owner, RunId};
use domain::models::ProviderTool;
use domain::runs::rehearsal::{Rehearsal, Rehearsed};
use domain::runs::{EventKind, Run, RunEvent, RunKind};
use domain::validate::FieldErrors;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::{ActionView, approve, change, check_provider_tools, load};
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::background::due;
use crate::flows::existing;
use crate::money::quota::Quota;
use crate::request::caller::Actor;
use crate::stopped;
use crate::store::keys::Guard;
use crate::store::table::{Write, Written};
use crate::store::{DueItem, Once, Store, Tries, keys};

/// How often a rehearsal may use a tool of the provider that the action is not granted.
const TRIED: u32 = 10;

/// What a rehearsal may do besides what the action is granted.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[schema(example = json!({"provider_tools": ["web_search"]}))]
pub struct RehearseAction {
    /// Tools of the model's provider that it may use up to 10 times each, besides those that the action is granted.
    pub provider_tools: Vec<ProviderTool>,
}

/// A rehearsal that has begun.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct StartedRehearsal {
    /// Follow it at `/runs/{run_id}/events`. `rehearsal` of `GET /runs/{run_id}` says what it has shown.
    pub run_id: RunId,
}

/// Begins a rehearsal of an action as it is now, approved or not.
///
/// # Errors
/// 402 if the plan includes no more requests; 404 if the action does not exist; 409 if the account is stopped or the agent is archived; 400
/// if no model of the action has a tool that is named.
pub async fn rehearse(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    id: ActionId,
    input: RehearseAction,
) -> Result<StartedRehearsal> {
    rehearse_accepting(cx, owner, once, id, input, None).await
}

/// The same. The transaction also removes the proposal to do so, if it was proposed.
pub(super) async fn rehearse_accepting(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    id: ActionId,
    input: RehearseAction,
    proposal: Option<&Proposal>,
) -> Result<StartedRehearsal> {
    stopped::check(cx, owner).await?;
    let action = load(cx, owner, id).await?.value;
    let agent = existing::agent(cx, owner, action.agent_id).await?.value;
    if agent.status == AgentStatus::Archived {
        let message = "the agent is archived: its actions do not run";
        return Err(Error::conflict_with("agent_not_active", message, &ActionView::new(action, &agent)));
    }
    if action.call.is_some() && !input.provider_tools.is_empty() {
        let told = "has no meaning for an action with `call`: no model is asked";
        return Err(FieldErrors::one("provider_tools", told).into());
    }
    let mut provider_tools: BTreeMap<ProviderTool, u32> = action.max_uses.clone();
    for tool in input.provider_tools {
        provider_tools.entry(tool).or_insert(TRIED);
    }
    check_provider_tools(cx, owner, &Action { max_uses: provider_tools.clone(), ..action.clone() }).await?;
    let hash = approval_hash(&action, &Briefing::of(&action, &agent));
    let rehearsal = Rehearsal { hash, provider_tools, shown: None };
    let quota = Quota::of(cx, owner).await?;
    let mut charge = Charge::Included;
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let (now, run_id) = (cx.clock.now(), RunId::from_uuid(cx.clock.uuid()));
        let run = Run {
            agent_id: Some(action.agent_id),
            action_id: Some(id),
            charge,
            rehearsal: Some(Box::new(rehearsal.clone())),
            // An executor takes it over at once.
            ..Run::begun(run_id, RunKind::Rehearsal, now, now)
        };
        let data = json!({
            "run_id": run_id, "kind": run.kind, "action_id": id, "agent_id": action.agent_id,
        });
        let mut writes = vec![
            Write::Exists { key: keys::action(owner, id) },
            Store::run_write(owner, &run)?,
            Store::run_listed_write(owner, &run)?,
            Store::event_write(owner, run_id, &RunEvent::new(1, EventKind::RunStarted, now, data))?,
        ];
        writes.extend(quota.write(owner, charge));
        writes.extend(proposal.into_iter().flat_map(|proposal| Store::take_proposal(owner, proposal)));
        match cx.store.commit_run(once, writes, run_id, now).await? {
            Written::Yes => {
                due::dispatch(cx, &DueItem::run(owner, run_id)).await;
                return Ok(StartedRehearsal { run_id });
            }
            Written::Refused(Guard::Quota) => charge = quota.beyond().map_err(Error::QuotaExceeded)?,
            Written::Refused(Guard::Proposal) => return Err(Error::NotFound("proposal")),
            Written::Refused(_) => return Err(Error::NotFound("action")),
        }
    }
}

/// Gives an action the grant that a rehearsal of it proposes, and approves it. If only the first is done, a repeated call goes on.
///
/// # Errors
/// 400 if the run is no rehearsal of this action that has shown something; and as [`approve`].
pub async fn approve_rehearsed(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    by: Actor,
    id: ActionId,
    (run, hash): (RunId, &str),
) -> Result<ActionView> {
    let refused = |message: &str| Error::from(FieldErrors::one("rehearsal", message));
    let found = cx.store.run(owner, run).await?.map(|found| found.value);
    let found = found.filter(|run| run.action_id == Some(id) && run.kind == RunKind::Rehearsal);
    let found = found.ok_or_else(|| refused("must be the run_id of a rehearsal of this action"))?;
    let shown = found.rehearsal.and_then(|of| of.shown);
    let Rehearsed { grants, max_uses, .. } = shown.ok_or_else(|| refused("has not ended"))?;
    let action = load(cx, owner, id).await?.value;
    if (&action.grants, &action.max_uses) != (&grants, &max_uses) {
        let patch = ActionPatch { grants: Some(grants), max_uses: Some(max_uses), ..ActionPatch::default() };
        change(cx, owner, &Once::none(), by, id, None, patch).await?;
    }
    approve(cx, owner, once, by, id, hash).await
}
