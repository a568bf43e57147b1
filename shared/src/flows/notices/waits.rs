//! Whether something still waits for a person.

use domain::actions::{Briefing, approval_hash};
use domain::agent_loop::cards;
use domain::agents::AgentStatus;
use domain::ids::{ActionId, Owner, RunId};
use domain::notices::plan::{Event, NoticeState};
use domain::notices::waits::Waiting;
use domain::runs::RunState;

use crate::context::Cx;
use crate::error::Result;
use crate::flows::withdrawals;

/// What is said of what waits, as it is now. `None` if it does not wait any more. `noted`: what was noted when it began to wait.
///
/// # Errors
/// If the table does not answer.
pub(super) async fn now(cx: &Cx, owner: &Owner, waiting: Waiting, noted: &Event) -> Result<Option<Event>> {
    match waiting {
        // It may have been changed again meanwhile.
        Waiting::Agent(agent) => withdrawals::agent_changed(cx, owner, agent).await,
        _ => Ok(still(cx, owner, waiting).await?.then(|| noted.clone())),
    }
}

/// # Errors
/// If the table does not answer.
async fn still(cx: &Cx, owner: &Owner, waiting: Waiting) -> Result<bool> {
    match waiting {
        Waiting::Approval(action) => needs_approval(cx, owner, action).await,
        Waiting::Agent(agent) => Ok(withdrawals::agent_changed(cx, owner, agent).await?.is_some()),
        Waiting::Turn(run) => waits_for_answer(cx, owner, run).await,
        Waiting::Proposals(run) => has_proposals(cx, owner, run).await,
    }
}

/// Whether there is still something to say, and the person has answered it.
///
/// # Errors
/// If the table does not answer.
pub(super) async fn is_answered(cx: &Cx, owner: &Owner, state: &NoticeState) -> Result<bool> {
    match Waiting::of(&state.key).filter(|_| state.is_unsaid()) {
        Some(waiting) => Ok(!still(cx, owner, waiting).await?),
        None => Ok(false),
    }
}

async fn needs_approval(cx: &Cx, owner: &Owner, action: ActionId) -> Result<bool> {
    let Some(action) = cx.store.action(owner, action).await? else { return Ok(false) };
    let Some(agent) = cx.store.agent(owner, action.value.agent_id).await? else { return Ok(false) };
    // Nothing runs for an archived agent, whatever a person answers.
    if agent.value.status == AgentStatus::Archived {
        return Ok(false);
    }
    let current = approval_hash(&action.value, &Briefing::of(&action.value, &agent.value));
    Ok(action.value.needs_approval(&current))
}

async fn waits_for_answer(cx: &Cx, owner: &Owner, run: RunId) -> Result<bool> {
    let now = cx.clock.now();
    let run = cx.store.run(owner, run).await?.filter(|run| run.value.state == RunState::Waiting);
    Ok(run.is_some_and(|run| cards::open(&run.value.cards).any(|card| card.expires_at > now)))
}

async fn has_proposals(cx: &Cx, owner: &Owner, run: RunId) -> Result<bool> {
    let Some(run) = cx.store.run(owner, run).await? else { return Ok(false) };
    for proposal in run.value.proposals {
        let now = cx.clock.now();
        if cx.store.proposal(owner, proposal, now).await?.is_some_and(|found| found.waits(now)) {
            return Ok(true);
        }
    }
    Ok(false)
}
