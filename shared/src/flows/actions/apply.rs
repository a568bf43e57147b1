//! Applies the commands of people to actions, and updates the affected occurrences.

use domain::actions::{
    AcceptedChange, Action, ActionPatch, ApprovalContent, ApprovalRecord, Briefing, Command, Occurrence,
    OccurrenceCommand, OccurrenceState, Reason, ReasonCode, ValidPatch, transition,
};
use domain::ceilings::CeilingOf;
use domain::chats::conversation::MAX_MESSAGE;
use domain::chats::{ChatMessage, Proposal, ProposalBody};
use domain::history::{Change, ChangeCommand, ChangedBy, Effect};
use domain::ids::{ActionId, Owner, RunId};
use domain::models::{Block, Role};
use domain::notices::waits;
use domain::schedule::ScheduleInput;
use domain::validate::FieldErrors;
use futures::stream::{self, TryStreamExt};
use jiff::Timestamp;

use super::{
    ActionView, Loaded, action_writes, check_provider_tools, check_version, dispatch_at, end_run, load,
    load_live, records, refusal, view, wake_at,
};
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::actions::{calls, history, proposals, watches};
use crate::flows::{existing, messages, schedules};
use crate::money::ceilings;
use crate::request::caller::{Actor, IfMatch};
use crate::stopped;
use crate::store::agents::history::Ledger;
use crate::store::keys::Guard;
use crate::store::table::{Order, Write, Written};
use crate::store::{Once, Store, Tries, Versioned};

/// How many occurrences one transaction can change in addition to its other writes.
const AT_ONCE: usize = 90;

/// How many records of runs are ended at once.
const ENDED_AT_ONCE: usize = 8;

/// An action after a command.
#[derive(Clone, Debug)]
pub struct Changed {
    pub action: Action,
    pub effects: Vec<Effect>,
}

/// Applies a person's command to an action, and changes the affected occurrences with it. The same transaction notes it in the
/// ledger. Repeating a command changes nothing.
///
/// # Errors
/// 404 if the action does not exist, 409 with the refusal's code and the current action.
pub async fn apply(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    by: Actor,
    id: ActionId,
    command: Command<'_>,
) -> Result<Changed> {
    perform(cx, owner, once, id, command, With::by(by)).await
}

/// Like [`apply`], with the action as clients see it.
///
/// # Errors
/// As [`apply`].
pub async fn command(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    by: Actor,
    id: ActionId,
    command: Command<'_>,
) -> Result<ActionView> {
    let changed = apply(cx, owner, once, by, id, command).await?;
    Ok(view(cx, owner, changed.action).await?.after(changed.effects))
}

/// # Errors
/// As [`apply`].
pub async fn approve(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    by: Actor,
    id: ActionId,
    hash: &str,
) -> Result<ActionView> {
    // An edit between this read and the transaction either changes the hash or changes nothing that an approval binds.
    // If the agent is edited, the approval is for the old agent and is not valid.
    let action = load(cx, owner, id).await?.value;
    let agent = existing::agent(cx, owner, action.agent_id).await?.value;
    let briefing = Briefing::of(&action, &agent);
    let changed = apply(cx, owner, once, by, id, Command::Approve { hash, briefing: &briefing }).await?;
    Ok(ActionView::new(changed.action, &agent).after(changed.effects))
}

/// # Errors
/// As [`apply`]; 400 if the schedule is invalid.
pub async fn schedule(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    by: Actor,
    id: ActionId,
    input: ScheduleInput,
) -> Result<ActionView> {
    let action = load(cx, owner, id).await?.value;
    let agent = existing::agent(cx, owner, action.agent_id).await?.value;
    let input = schedules::in_zone_of(cx, owner, Some(&agent), input).await?;
    let mut errors = FieldErrors::default();
    let Some(schedule) = errors.nest("schedule", input.validate()) else { return Err(errors.into()) };
    let briefing = Briefing::of(&action, &agent);
    let command = Command::Schedule { schedule: &schedule, briefing: &briefing };
    let changed = apply(cx, owner, once, by, id, command).await?;
    Ok(ActionView::new(changed.action, &agent).after(changed.effects))
}

/// Changes an action. If the change was proposed, the same transaction removes the proposal.
///
/// # Errors
/// As [`apply`]; 400 for an exceeded limit, 404 if the proposal does not exist or is not for this action, 409 if
/// `If-Match` is not the current version.
pub async fn change(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    by: Actor,
    id: ActionId,
    if_match: Option<IfMatch>,
    mut patch: ActionPatch,
) -> Result<ActionView> {
    let proposal = match patch.proposal_id {
        Some(proposal) => {
            load(cx, owner, id).await?;
            Some(proposals::to_accept(cx, owner, proposal).await?)
        }
        None => None,
    };
    if let Some(proposal) = &proposal {
        patch = match &proposal.body {
            ProposalBody::Change { action_id, change, .. } if *action_id == id => {
                patch.over((**change).clone())
            }
            ProposalBody::Change { .. } => return Err(Error::NotFound("proposal")),
            ProposalBody::Action(_) | ProposalBody::Asset { .. } | ProposalBody::Command { .. } => {
                let message = "must be a proposal to change an action";
                return Err(FieldErrors::one("proposal_id", message).into());
            }
        };
    }
    if let Some(Some(schedule)) = &mut patch.schedule {
        let action = load(cx, owner, id).await?.value;
        let agent = cx.store.agent(owner, action.agent_id).await?.map(|agent| agent.value);
        *schedule = schedules::in_zone_of(cx, owner, agent.as_ref(), std::mem::take(schedule)).await?;
    }
    let budget = patch.budget;
    let patch: ValidPatch = patch.validate()?;
    // Other fields can be changed if the deployment's maximum has become lower.
    if let Some(budget) = budget {
        ceilings::check_month(cx, CeilingOf::ActionMonth, budget.per_month_micros)?;
    }
    let with = With { if_match, proposal: proposal.as_ref(), ..With::by(by) };
    let changed = perform(cx, owner, once, id, Command::Patch { patch: &patch }, with).await?;
    Ok(view(cx, owner, changed.action).await?.after(changed.effects))
}

/// Sets the fields back to what they were before a change. This is a change like any other.
///
/// # Errors
/// As [`change`]; 404 if the ledger has no change that led to `version`; 409 if no field would change.
pub async fn revert(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    by: Actor,
    (id, version): (ActionId, u64),
    if_match: Option<IfMatch>,
) -> Result<ActionView> {
    let action = load(cx, owner, id).await?;
    let reverted = history::load(cx, owner, Ledger::Action(id), version).await?;
    check_version(cx, owner, if_match, &action).await?;
    let undo = reverted.undo_of_action();
    let differs = match &undo {
        Some(undo) => undo.clone().validate()?.changes(&action.value),
        None => false,
    };
    match undo {
        Some(undo) if differs => change(cx, owner, once, by, id, if_match, undo).await,
        _ => Err(history::nothing_to_revert(&reverted, &view(cx, owner, action.value).await?)),
    }
}

/// Continues a paused action, or a run that has asked a person. `message` is the answer for the run.
///
/// # Errors
/// As [`apply`]; 400 if the message is too long.
pub async fn resume(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    by: Actor,
    id: ActionId,
    message: Option<String>,
) -> Result<ActionView> {
    let message = message.filter(|text| !text.trim().is_empty());
    let mut errors = FieldErrors::default();
    message.iter().for_each(|text| errors.length("message", text, 1, MAX_MESSAGE));
    let said = |text| messages::new(cx, Role::User, vec![Block::text(text)], None);
    let message = errors.into_result(message)?.map(said);
    let with = With { message, ..With::by(by) };
    let changed = perform(cx, owner, once, id, Command::Resume, with).await?;
    Ok(view(cx, owner, changed.action).await?.after(changed.effects))
}

/// Answers the run that waits, if the action still has this version.
///
/// # Errors
/// As [`apply`]; 409 if the action has another version now.
pub(crate) async fn answer(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    id: ActionId,
    version: u64,
    message: ChatMessage,
) -> Result<()> {
    let with = With { if_match: Some(IfMatch(version)), message: Some(message), ..With::default() };
    perform(cx, owner, once, id, Command::Resume, with).await.map(|_| ())
}

/// What a command brings along.
#[derive(Default)]
pub(super) struct With<'a> {
    if_match: Option<IfMatch>,
    /// Stored in the conversation, under the run that is live then.
    message: Option<ChatMessage>,
    /// Accepted with the command.
    proposal: Option<&'a Proposal>,
    /// The proposed change, if the person also approves what it makes of the action.
    approves: Option<AcceptedChange<'a>>,
    /// Who is noted in the ledger. `None`: the command only answers a run, which changes nothing of the action itself.
    by: Option<Actor>,
}

impl<'a> With<'a> {
    fn by(actor: Actor) -> Self {
        Self { by: Some(actor), ..Self::default() }
    }

    /// A person accepts this proposal with the command.
    pub(super) fn accepting(by: Actor, proposal: Option<&'a Proposal>) -> Self {
        Self { proposal, ..Self::by(by) }
    }

    /// The same, and the person approves the action after the change.
    pub(super) fn approving(by: Actor, proposal: &'a Proposal, change: AcceptedChange<'a>) -> Self {
        Self { approves: Some(change), ..Self::accepting(by, Some(proposal)) }
    }
}

/// What the ledger calls a command. `None` if it has no entry: runs have their own records.
const fn noted_as(command: Command<'_>) -> Option<ChangeCommand> {
    match command {
        Command::Approve { .. } => Some(ChangeCommand::Approve),
        Command::Schedule { .. } => Some(ChangeCommand::Schedule),
        Command::Pause => Some(ChangeCommand::Pause),
        Command::Resume => Some(ChangeCommand::Resume),
        Command::Cancel => Some(ChangeCommand::Cancel),
        Command::Dismiss => Some(ChangeCommand::Dismiss),
        Command::Complete => Some(ChangeCommand::Complete),
        Command::Patch { .. } => Some(ChangeCommand::Change),
        Command::Run { .. }
        | Command::Planned { .. }
        | Command::Preflighted { .. }
        | Command::ClockSetBack
        | Command::OccurrenceStarted { .. }
        | Command::Unqueued { .. }
        | Command::OccurrenceEnded { .. } => None,
    }
}

pub(super) async fn perform(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    id: ActionId,
    command: Command<'_>,
    with: With<'_>,
) -> Result<Changed> {
    let With { if_match, mut message, proposal, approves, by } = with;
    let is_approval = matches!(command, Command::Approve { .. }) || approves.is_some();
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let Loaded { action: read, live } = load_live(cx, owner, id).await?;
        check_version(cx, owner, if_match, &read).await?;
        if let Command::Patch { patch } = command {
            patch.fits(&read.value)?;
        }
        let now = cx.clock.now();
        if let Some(ProposalBody::Command { command, .. }) = proposal.map(|proposal| &proposal.body)
            && let Err(not_now) = command.check_state(&read.value, now)
        {
            return Err(super::not_now(cx, owner, &not_now, read.value).await);
        }
        let next = match approves {
            Some(change) => change.apply(&read.value, now),
            None => transition(&read.value, command, now),
        };
        let next = match next {
            Ok(next) => next,
            Err(refused) => return Err(refusal(cx, owner, &refused, &read.value).await),
        };
        if next == read.value && message.is_none() && proposal.is_none() {
            return Ok(Changed { action: read.value, effects: Vec::new() });
        }
        let is_about_tools =
            (&next.max_uses, next.model_tier) != (&read.value.max_uses, read.value.model_tier);
        if is_about_tools || is_approval {
            check_provider_tools(cx, owner, &next).await?;
        }
        if next.watches != read.value.watches || is_approval {
            watches::check(cx, owner, &next).await?;
        }
        if next.call != read.value.call || is_approval {
            calls::check(cx, owner, &next).await?;
        }
        let mut writes = proposal.map_or_else(Vec::new, |proposal| Store::take_proposal(owner, proposal));
        let live_after = match (command, &live) {
            (Command::Run { run }, _) => {
                // If the clock was set back, the run's id is ahead of the clock.
                let occurrence = Occurrence::manual(&next, run, run.instant().min(now));
                writes.push(Store::create_occurrence(owner, &occurrence)?);
                writes.push(Store::run_write(owner, &records::record(&next, run, now))?);
                Some(occurrence)
            }
            (Command::Resume, Some(waiting)) if waiting.value.state == OccurrenceState::Waiting => {
                stopped::check(cx, owner).await?;
                let answered = changed(&waiting.value, OccurrenceCommand::Answer, now)?;
                writes.push(Store::replace_occurrence(owner, &answered, waiting.version)?);
                writes.extend(records::goes_on(cx, owner, &next, waiting.value.run_id, now).await?);
                Some(answered)
            }
            _ => live.as_ref().map(|live| live.value.clone()).filter(|l| next.live_run == Some(l.run_id)),
        };
        if let Some(message) = &mut message {
            message.run_id = next.live_run;
            writes.extend(messages::small_writes(cx, owner, id, message)?);
        }
        let briefing = match (command, approves) {
            (Command::Approve { briefing, .. } | Command::Schedule { briefing, .. }, _) => {
                Some(briefing.clone())
            }
            (_, Some(change)) => Some(Briefing::of(&next, change.agent)),
            (_, None) => None,
        };
        writes.extend(approved(owner, &read.value, &next, briefing.as_ref())?);
        writes.extend(waits_for_approval(owner, &read.value, &next, command, now)?);
        let dropped = dropped(cx, owner, &read.value, &next, live).await?;
        // A queue that is too long for one transaction is cancelled from its end, before the action gives it up. So an
        // interrupted call leaves a shorter queue, and never a run that the action does not know.
        let (before, with_it) = dropped.split_at(dropped.len().saturating_sub(AT_ONCE));
        if !cancel_first(cx, owner, before, command, now).await? {
            continue;
        }
        writes.extend(cancel_writes(owner, with_it, command, now)?);
        writes.extend(action_writes(owner, &read, &next, live_after.as_ref(), now)?);
        if let (Some(by), Some(command)) = (by, noted_as(command)) {
            let by = ChangedBy::from(by);
            let by = proposal.map_or(by, |proposal| by.accepting(proposal.proposal_id));
            let change = Change::of_action((&read.value, &next), read.version + 1, now, by, command);
            writes.push(Store::change_write(owner, Ledger::Action(id), &change)?);
        }
        if matches!(command, Command::Complete) && next.state != read.value.state {
            writes.push(Store::count(owner, next.agent_id, vec![("actions_completed", 1)]));
        }
        match cx.store.commit(once, writes).await? {
            Written::Yes => {}
            Written::Refused(Guard::Proposal) => return Err(Error::NotFound("proposal")),
            Written::Refused(_) => continue,
        }
        end_runs(cx, owner, with_it).await?;
        dispatch_at(cx, owner, id, wake_at(&next, live_after.as_ref(), now)).await;
        let effects = Effect::of_action(&read.value, &next);
        return Ok(Changed { action: Action { version: read.version + 1, ..next }, effects });
    }
}

/// The write that stores what was approved, if the command approved something. People can later see what has changed
/// since.
fn approved(
    owner: &Owner,
    read: &Action,
    next: &Action,
    briefing: Option<&Briefing>,
) -> Result<Option<Write>> {
    let Some(briefing) = briefing else { return Ok(None) };
    let Some(approval) = next.approval.as_ref().filter(|_| next.approval != read.approval) else {
        return Ok(None);
    };
    let record = ApprovalRecord {
        hash: approval.hash.clone(),
        approved_at: approval.approved_at,
        content: ApprovalContent::of(next, briefing),
    };
    Ok(Some(Store::approval_write(owner, next.id, &record)?))
}

/// The write after which a person is told that the action waits for another approval, if a change has withdrawn the one it had. If it
/// waited and is approved or ended, the write that forgets it. Whoever cancels an action wants it not to run.
fn waits_for_approval(
    owner: &Owner,
    read: &Action,
    next: &Action,
    command: Command<'_>,
    now: Timestamp,
) -> Result<Option<Write>> {
    let is_change = matches!(command, Command::Patch { .. } | Command::Schedule { .. });
    let is_end = matches!(command, Command::Cancel | Command::Dismiss | Command::Complete);
    Ok(match (&read.approval, &next.approval) {
        (Some(_), None) if is_change => Some(Store::waits_write(owner, waits::approval(next), now)?),
        (None, Some(_)) => Some(Store::answered_write(owner, &waits::approval(next))),
        (None, None) if is_end => Some(Store::answered_write(owner, &waits::approval(next))),
        _ => None,
    })
}

/// Cancels queued occurrences, and ends the records of their runs. Returns `false` if an executor has taken one of them
/// meanwhile.
async fn cancel_first(
    cx: &Cx,
    owner: &Owner,
    queued: &[Versioned<Occurrence>],
    command: Command<'_>,
    now: Timestamp,
) -> Result<bool> {
    for chunk in queued.chunks(AT_ONCE) {
        if !cx.store.write_all(cancel_writes(owner, chunk, command, now)?).await?.done() {
            return Ok(false);
        }
        end_runs(cx, owner, chunk).await?;
    }
    Ok(true)
}

async fn end_runs(cx: &Cx, owner: &Owner, occurrences: &[Versioned<Occurrence>]) -> Result<()> {
    stream::iter(occurrences.iter().map(Ok))
        .try_for_each_concurrent(ENDED_AT_ONCE, async |occurrence| {
            end_run(cx, owner, occurrence.value.run_id).await
        })
        .await
}

/// The occurrences that the action gives up: the queued ones, newest first, then the live one.
async fn dropped(
    cx: &Cx,
    owner: &Owner,
    read: &Action,
    next: &Action,
    live: Option<Versioned<Occurrence>>,
) -> Result<Vec<Versioned<Occurrence>>> {
    let mut dropped = Vec::new();
    if next.queued < read.queued {
        dropped = queued(cx, owner, read.id, read.live_run, read.queued).await?;
    }
    dropped
        .extend(live.filter(|live| next.live_run != Some(live.value.run_id) && !live.value.state.is_final()));
    Ok(dropped)
}

/// The queued occurrences, newest first.
pub(crate) async fn queued(
    cx: &Cx,
    owner: &Owner,
    id: ActionId,
    live: Option<RunId>,
    count: u32,
) -> Result<Vec<Versioned<Occurrence>>> {
    let (mut queued, mut after) = (Vec::new(), None::<String>);
    loop {
        let found = cx.store.occurrences(owner, id, after.as_deref(), 100, Order::Newest).await?;
        let waits = |occurrence: &Versioned<Occurrence>| {
            occurrence.value.state == OccurrenceState::Due && Some(occurrence.value.run_id) != live
        };
        queued.extend(found.items.into_iter().map(|(_, occurrence)| occurrence).filter(waits));
        after = found.last;
        if after.is_none() || queued.len() >= count as usize {
            return Ok(queued);
        }
    }
}

fn cancel_writes(
    owner: &Owner,
    occurrences: &[Versioned<Occurrence>],
    command: Command<'_>,
    now: Timestamp,
) -> Result<Vec<Write>> {
    let why = match command {
        Command::Cancel => "a person cancelled it",
        Command::Dismiss => "the action was dismissed",
        Command::Complete => "a person completed the action",
        _ => "the action was changed, which withdrew its approval",
    };
    let mut writes = Vec::new();
    for occurrence in occurrences {
        let cancelled = changed(
            &occurrence.value,
            OccurrenceCommand::Cancel { reason: Reason::new(ReasonCode::Cancelled, why) },
            now,
        )?;
        writes.push(Store::replace_occurrence(owner, &cancelled, occurrence.version)?);
        writes.extend(Store::untold_write(owner, &cancelled)?);
    }
    Ok(writes)
}

/// Applies a command that the occurrence's state, which was just read, allows.
fn changed(occurrence: &Occurrence, command: OccurrenceCommand, now: Timestamp) -> Result<Occurrence> {
    occurrence.transition(command, now).map_err(|refused| Error::internal(refused.to_string()))
}
