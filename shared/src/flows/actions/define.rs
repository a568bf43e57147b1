//! Defines an action, directly or from a proposal.

use domain::actions::{Action, DefineAction};
use domain::agents::Agent;
use domain::ceilings::CeilingOf;
use domain::chats::signals::ActionDraft;
use domain::chats::{Proposal, ProposalBody};
use domain::history::{Change, ChangedBy};
use domain::ids::{ActionId, AgentId, Owner, ProposalId};
use domain::notices::waits;
use domain::validate::FieldErrors;

use super::{ActionView, check_provider_tools};
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::actions::{calls, proposals, watches};
use crate::flows::existing;
use crate::flows::schedules;
use crate::money::ceilings;
use crate::request::caller::Actor;
use crate::store::agents::history::Ledger;
use crate::store::keys::Guard;
use crate::store::table::Written;
use crate::store::{Once, Store};

/// Defines an action of an agent. If it was proposed, the same transaction removes the proposal.
///
/// # Errors
/// 404 if the agent or the proposal does not exist, 400 with every invalid field and its limit.
pub async fn define(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    by: Actor,
    agent: AgentId,
    input: DefineAction,
) -> Result<ActionView> {
    let agent = existing::agent(cx, owner, agent).await?.value;
    let proposal = match input.proposal_id {
        Some(id) => Some(load_proposal(cx, owner, agent.agent_id, id).await?),
        None => None,
    };
    let draft = match proposal.as_ref().map(|proposal| &proposal.body) {
        None => None,
        Some(ProposalBody::Action(draft)) => Some(draft.clone()),
        Some(ProposalBody::Asset { .. }) => {
            return Err(refused("must be a proposal of an action, is a proposal of an asset"));
        }
        Some(ProposalBody::Change { .. }) => {
            return Err(refused("must be a proposal of an action, is a proposal to change an action"));
        }
        Some(ProposalBody::Command { .. }) => {
            return Err(refused("must be a proposal of an action, is a proposal of a command"));
        }
    };
    let action = checked(cx, owner, &agent, draft, input).await?;
    let id = action.id;
    let mut writes = Store::action_writes(owner, &action)?;
    let by = ChangedBy::from(by);
    let by = proposal.as_ref().map_or(by, |proposal| by.accepting(proposal.proposal_id));
    writes.push(Store::change_write(owner, Ledger::Action(id), &Change::defined(&action, by))?);
    writes.push(Store::waits_write(owner, waits::approval(&action), cx.clock.now())?);
    if let Some(proposal) = &proposal {
        writes.extend(Store::take_proposal(owner, proposal));
        if let Some(chat) = proposal.chat_id {
            writes.push(Store::generated_write(owner, chat, id)?);
        }
    }
    match cx.store.commit(once, writes).await? {
        Written::Yes => Ok(ActionView::new(action, &agent)),
        Written::Refused(Guard::Proposal) => Err(Error::NotFound("proposal")),
        Written::Refused(_) => Err(Error::NotFound("agent")),
    }
}

/// A new action, completed and checked. Nothing is stored.
///
/// # Errors
/// 400 with every invalid field and its limit.
pub(crate) async fn checked(
    cx: &Cx,
    owner: &Owner,
    agent: &Agent,
    draft: Option<ActionDraft>,
    input: DefineAction,
) -> Result<Action> {
    let mut new = input.complete(draft, agent, cx.config.budget.run_micros)?;
    if let Some(schedule) = new.schedule.take() {
        new.schedule = Some(schedules::in_zone_of(cx, owner, Some(agent), schedule).await?);
    }
    let id = ActionId::from_uuid(cx.clock.uuid());
    let action = new.validate()?.define(id, agent.agent_id, cx.clock.now());
    ceilings::check_month(cx, CeilingOf::ActionMonth, action.budget.per_month_micros)?;
    check_provider_tools(cx, owner, &action).await?;
    watches::check(cx, owner, &action).await?;
    calls::check(cx, owner, &action).await?;
    Ok(action)
}

/// Defines an action of an agent under this id, as an import does. Nobody is told that it waits for an approval: whoever imports has the list. `false` if the id is taken, or if the agent is gone.
///
/// # Errors
/// 400 with every invalid field and its limit.
pub(crate) async fn define_imported(
    cx: &Cx,
    owner: &Owner,
    id: ActionId,
    agent: &Agent,
    input: DefineAction,
) -> Result<bool> {
    let mut new = input.complete(None, agent, cx.config.budget.run_micros)?;
    if let Some(schedule) = new.schedule.take() {
        new.schedule = Some(schedules::in_zone_of(cx, owner, Some(agent), schedule).await?);
    }
    let action = new.validate()?.define(id, agent.agent_id, cx.clock.now());
    let mut writes = Store::action_writes(owner, &action)?;
    let change = Change::defined(&action, ChangedBy::Import);
    writes.push(Store::change_write(owner, Ledger::Action(id), &change)?);
    Ok(cx.store.commit(&Once::none(), writes).await?.done())
}

fn refused(message: &str) -> Error {
    FieldErrors::one("proposal_id", message).into()
}

async fn load_proposal(cx: &Cx, owner: &Owner, agent: AgentId, id: ProposalId) -> Result<Proposal> {
    let proposal = proposals::to_accept(cx, owner, id).await?;
    if proposal.agent_id == agent { Ok(proposal) } else { Err(Error::NotFound("proposal")) }
}
