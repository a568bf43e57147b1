//! A person's answer about a call of a run.
//!
//! The answer, its event and the state of the run are stored in one transaction. When the last question is answered, the run is
//! due, and any process can continue it.

use domain::accounts::scopes::Scope;
use domain::actions::{Command, OccurrenceCommand, transition};
use domain::agent_loop::CallId;
use domain::agent_loop::cards::{self, Answer, AnswerRefused, Card, CardState, MAX_REASON};
use domain::ceilings::CeilingOf;
use domain::ids::{ActionId, Owner, RunId};
use domain::runs::{EventKind, Run, RunEvent, RunKind};
use domain::validate::FieldErrors;
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::actions::{self, Loaded};
use crate::flows::background::due;
use crate::flows::existing;
use crate::flows::runs;
use crate::money::ceilings;
use crate::request::caller::Caller;
use crate::stopped;
use crate::store::accounts::spend::Spender;
use crate::store::keys::Guard;
use crate::store::table::{Write, Written};
use crate::store::{DueItem, Once, Store, Tries, Versioned};

/// A person approves a call, or raises a ceiling.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({}))]
pub struct ApproveCall {
    /// The `hash` of the card that the person has seen. If the card has another hash now, the call is not approved.
    #[serde(default)]
    pub hash: Option<String>,
    /// If the card is about a ceiling: by how many micro-dollars it is raised. Default: the `raise_by_micros` of the card.
    /// It must pay for the next call.
    #[serde(default)]
    #[schema(minimum = 1)]
    pub raise_by_micros: Option<i64>,
}

/// A person rejects a call.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"reason": "Not before Monday"}))]
pub struct RejectCall {
    /// The reason that the model is told. At most 1,000 characters.
    #[serde(default)]
    #[schema(max_length = 1_000)]
    pub reason: Option<String>,
}

/// What a person found out about a call whose result was lost.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResolveCall {
    /// Whether the call happened.
    pub outcome: ResolvedAs,
}

/// Whether a call happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResolvedAs {
    /// The call is not made again. The model is told that it happened and that its result is lost.
    Happened,
    /// The call is made again.
    NotHappened,
}

impl From<ApproveCall> for Answer {
    fn from(ApproveCall { hash, raise_by_micros }: ApproveCall) -> Self {
        Self::Approve { hash, raise_by_micros }
    }
}

impl TryFrom<RejectCall> for Answer {
    type Error = FieldErrors;

    /// # Errors
    /// If the reason is too long.
    fn try_from(RejectCall { reason }: RejectCall) -> Result<Self, FieldErrors> {
        let reason = reason.map(|reason| reason.trim().to_owned()).filter(|reason| !reason.is_empty());
        let mut errors = FieldErrors::default();
        reason.iter().for_each(|reason| errors.length("reason", reason, 1, MAX_REASON));
        errors.into_result(Self::Reject { reason })
    }
}

impl From<ResolveCall> for Answer {
    fn from(ResolveCall { outcome }: ResolveCall) -> Self {
        Self::Resolve { happened: outcome == ResolvedAs::Happened }
    }
}

/// Stores an answer. Storing the same answer again changes nothing.
///
/// # Errors
/// 404 if the run does not exist, or it has no such call that waits or has waited for an answer; 409 if the call already has
/// another answer, the time for an answer is over, the run has ended, or the account is stopped; 403 if the answer raises a ceiling
/// that the caller may not set; 400 if it raises a ceiling by less than the next call needs, or by more than is allowed.
pub async fn answer(
    cx: &Cx,
    caller: &Caller,
    once: &Once,
    id: RunId,
    call: CallId,
    said: &Answer,
) -> Result<Run> {
    let owner = &caller.owner;
    // The question stays, and can be answered after the start.
    stopped::check(cx, owner).await?;
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let Versioned { value: found, version } = existing::run(cx, owner, id).await?;
        let now = cx.clock.now();
        let mut run = found.clone();
        let card = run.cards.iter_mut().find(|card| card.call_id == call);
        if let (Answer::Approve { .. }, Some(ceiling)) = (said, card.and_then(|card| card.ceiling.as_mut())) {
            let (needed, held) = (Scope::to_raise(ceiling.of), caller.scope);
            if !held.includes(needed) {
                return Err(Error::ScopeMissing { needed, held });
            }
            ceiling.limit_raise(ceilings::most(cx, ceiling.of));
        }
        match cards::answer(&mut run.cards, call, said, now) {
            Ok(false) => return Ok(found),
            Ok(true) => {}
            Err(AnswerRefused::NoCard) => return Err(Error::NotFound("call")),
            Err(refused @ AnswerRefused::Raise { .. }) => {
                return Err(FieldErrors::one("raise_by_micros", refused.to_string()).into());
            }
            Err(refused) => {
                let view = runs::view(cx, owner, found).await?;
                return Err(Error::conflict_with(refused.code(), refused.to_string(), &view));
            }
        }
        let raised = raise(owner, &mut run, call);
        let event =
            RunEvent::new(cx.store.last_event_id(owner, id).await? + 1, kind(said), now, data(&run, call));
        let goes_on = cards::open(&run.cards).next().is_none();
        if goes_on {
            run.go_on(event.id, now);
        } else {
            run.waited = event.id;
        }
        let mut writes =
            vec![Store::replace_run_write(owner, &run, version)?, Store::event_write(owner, id, &event)?];
        let mut item = goes_on.then(|| DueItem::run(owner, id));
        if let (true, RunKind::Action, Some(action)) = (goes_on, run.kind, run.action_id) {
            let Some(resume) = resume(cx, owner, action, id).await? else { continue };
            writes.extend(resume);
            item = Some(DueItem::action(owner, action));
        }
        writes.extend(raised);
        match cx.store.commit(once, writes).await? {
            Written::Yes => {
                tracing::info!(run_id = %id, call_id = %call, goes_on, "a person answered about a call");
                if let Some(item) = item {
                    due::dispatch(cx, &item).await;
                }
                return Ok(run);
            }
            Written::Refused(Guard::Spend) => {
                let message = "the ceiling was raised for other runs meanwhile, and can't be raised that far";
                let view = runs::view(cx, owner, found).await?;
                return Err(Error::conflict_with("ceiling_at_maximum", message.to_owned(), &view));
            }
            Written::Refused(_) => {}
        }
    }
}

/// Raises the ceiling that a person has just approved: that of the run in its record, another one with the returned write.
fn raise(owner: &Owner, run: &mut Run, call: CallId) -> Option<Write> {
    let approved = |card: &&Card| card.call_id == call && card.state == CardState::Approved;
    let card = run.cards.iter().find(approved)?;
    let (reached, at) = (card.ceiling?, card.asked_at);
    if reached.of == CeilingOf::Run {
        run.raised_micros = run.raised_micros.saturating_add(reached.raise_by_micros);
        return None;
    }
    // Cards of other runs may have raised it since.
    let most = reached.raised_micros.saturating_add(reached.max_raise_micros);
    Store::raise_write(Spender::of(owner, run), reached.of, at, reached.raise_by_micros, most)
}

/// The writes that let a run of an action continue. `None` if its occurrence does not wait, because somebody else has just changed
/// it.
async fn resume(cx: &Cx, owner: &Owner, id: ActionId, run: RunId) -> Result<Option<Vec<Write>>> {
    let Loaded { action, live } = actions::load_live(cx, owner, id).await?;
    let now = cx.clock.now();
    let Some(waiting) = live.filter(|live| live.value.run_id == run) else { return Ok(None) };
    let Ok(answered) = waiting.value.transition(OccurrenceCommand::Answer, now) else { return Ok(None) };
    let Ok(next) = transition(&action.value, Command::Resume, now) else { return Ok(None) };
    let mut writes = vec![Store::replace_occurrence(owner, &answered, waiting.version)?];
    writes.extend(actions::action_writes(owner, &action, &next, Some(&answered), now)?);
    Ok(Some(writes))
}

const fn kind(said: &Answer) -> EventKind {
    match said {
        Answer::Approve { .. } => EventKind::CallApproved,
        Answer::Reject { .. } => EventKind::CallRejected,
        Answer::Resolve { .. } => EventKind::CallResolved,
    }
}

fn data(run: &Run, call: CallId) -> serde_json::Value {
    let card = run.cards.iter().find(|card| card.call_id == call);
    let mut data = json!({"step": call.step, "call_id": call});
    if let Some(card) = card {
        data["tool"] = json!(card.tool);
        data["hash"] = json!(card.hash);
        if let Some(reason) = &card.reason {
            data["reason"] = json!(reason);
        }
        if matches!(card.state, CardState::Happened | CardState::NotHappened) {
            data["outcome"] = json!(card.state);
        }
    }
    data
}
