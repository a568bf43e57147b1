//! Actions: defined, approved, scheduled, run, and everything a person may ask of them.
//!
//! Every change goes one way: load the action and its live occurrence, let [`transition`](domain::actions::transition) decide, and write the action,
//! the occurrences that the decision touches and the place in the `due` index in one transaction, at the versions that
//! were read. Who loses a race decides anew.
//!
//! [`apply`] is that way for what a person asks. An executor has occurrences of its own to write: it takes [`load_live`]
//! and [`action_writes`], and adds to the transaction.

mod apply;
mod define;
mod delete;
mod messages;
pub mod runs;

use domain::actions::{Action, ActionState, Occurrence, Refused, approval_hash};
use domain::ids::{ActionId, AgentId, Owner};
use domain::tools::Tool;
use futures::FutureExt;
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::agents;
use crate::bus::Event;
use crate::context::Cx;
use crate::page::{self, Page, PageQuery};
use crate::problem::{Error, Result};
use crate::store::table::Write;
use crate::store::{DueItem, Store, Versioned};

pub use apply::{apply, approve, change, resume, schedule};
pub use define::define;
pub use delete::{delete, delete_if_there};
pub use messages::{messages, say};
pub use runs::{OccurrenceView, StartedRun, end_run, occurrence, occurrences, outputs, run_now, why};

/// An action as clients see it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ActionView {
    #[serde(flatten)]
    pub action: Action,
    /// Names the content as it is now: what `approve` takes.
    pub approval_hash: String,
    /// The schedule in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "At 09:00 on weekdays (Europe/Berlin).")]
    pub schedule_text: Option<String>,
}

impl From<Action> for ActionView {
    fn from(action: Action) -> Self {
        Self {
            approval_hash: current_hash(&action),
            schedule_text: action.schedule.as_ref().map(domain::schedule::Schedule::describe),
            action,
        }
    }
}

/// The hash of the action's content and of the tools that it is granted, as they are now. Where it is not the hash of
/// its approval, what would run is not what was approved.
#[must_use]
pub fn current_hash(action: &Action) -> String {
    approval_hash(action, &Tool::granted(&action.grants))
}

/// An action with the occurrence of its live run.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub action: Versioned<Action>,
    pub live: Option<Versioned<Occurrence>>,
}

/// # Errors
/// 404 where there is none.
pub async fn load(cx: &Cx, owner: &Owner, id: ActionId) -> Result<Versioned<Action>> {
    let found = cx.store.action(owner, id).await?.ok_or(Error::NotFound("action"))?;
    Ok(stored(found))
}

/// The record's own version is the stored one, whatever was counted before it was written.
pub(super) fn stored(mut found: Versioned<Action>) -> Versioned<Action> {
    found.value.version = found.version;
    found
}

/// # Errors
/// 404 where there is none.
pub async fn load_live(cx: &Cx, owner: &Owner, id: ActionId) -> Result<Loaded> {
    let action = load(cx, owner, id).await?;
    let live = match action.value.live_run {
        Some(run) => cx.store.occurrence(owner, id, run).await?,
        None => None,
    };
    Ok(Loaded { action, live })
}

/// The writes of `next` over what was `read`: the record with its place in the `due` index, and the agent's count where
/// the action has come to its end. `live` is the occurrence `next.live_run` as it will be.
///
/// # Errors
/// When the record has no form as an item; a bug.
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
        ActionState::Completed => Some("actions_completed"),
        ActionState::Failed => Some("actions_failed"),
        _ => None,
    };
    writes.extend(count.map(|number| Store::count(owner, next.agent_id, vec![(number, 1)])));
    Ok(writes)
}

/// When the action is to be looked at next. A run that is queued and whose turn has come is not left to the next due time.
pub(super) fn wake_at(action: &Action, live: Option<&Occurrence>, now: Timestamp) -> Option<Timestamp> {
    let turn_has_come = action.queued > 0
        && action.live_run.is_none()
        && !matches!(action.state, ActionState::Paused | ActionState::NeedsApproval);
    if turn_has_come { Some(now) } else { action.wake_at(live) }
}

/// Sends an executor at once. Where the bus does not take it, the next sweep does the same within a minute.
pub async fn dispatch(cx: &Cx, owner: &Owner, id: ActionId) {
    let event = Event::Due(DueItem::action(owner, id));
    if let Err(error) = cx.bus.publish(&[event]).await {
        tracing::warn!(cause = %error, "an action waits for the next sweep");
    }
}

/// 409 with the action as it is.
fn refusal(refused: &Refused, action: &Action) -> Error {
    Error::conflict_with(refused.code(), refused.to_string(), &ActionView::from(action.clone()))
}

/// # Errors
/// 404 where there is none.
pub async fn read(cx: &Cx, owner: &Owner, id: ActionId) -> Result<ActionView> {
    Ok(load(cx, owner, id).await?.value.into())
}

/// Newest first.
///
/// # Errors
/// 404 for an agent that is none, 400 for a limit or cursor that is none.
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
            agents::load(cx, owner, agent).await?;
            let read = |after: Option<String>, limit| {
                async move { cx.store.agent_actions(owner, agent, after.as_deref(), limit).await }.boxed()
            };
            page::filtered(owner, &format!("actions of {agent}"), query, read, keep).await?
        }
    };
    Ok(found.map(|action| stored(action).value.into()))
}
