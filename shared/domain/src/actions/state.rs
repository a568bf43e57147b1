//! How an action changes: one pure, total function.
//!
//! ```text
//!  defined ──approve + schedule──▶ scheduled ⇄ paused
//!     ▲                              │  ▲
//!     │ edit, cancel           start │  │ end, and due again
//!     └──────────────────────────▶ in_progress ──▶ completed | failed
//!                                    │  ▲
//!                              wait  ▼  │ resume
//!                                needs_approval          dismissed: from any state in which nothing runs
//! ```
//!
//! Invariants of every action: `next_due` only with schedule, approval and anchor; `scheduled`, `paused` and
//! `needs_approval` only with an approval; `in_progress` only with a live run; a live run, queued runs and `next_due` only
//! in these four states; `paused` only in `needs_approval`.

use jiff::Timestamp;

use super::action::{Action, Approval};
use super::approval::{Briefing, approval_hash};
use super::failures;
use super::input::ValidPatch;
use super::marks::Preflight;
use super::occurrence::{Occurrence, OccurrenceState};
use super::plan::{Decision, DuePlan, ON_TIME};
use super::preflight::DueCheck;
use crate::ids::RunId;
use crate::schedule::Schedule;
use crate::work::ActionState;

/// A change of an action. `briefing` is its agent and its granted tools in their current state.
#[derive(Debug, Clone, Copy)]
pub enum Command<'a> {
    /// A person approves the content with this hash.
    Approve {
        hash: &'a str,
        briefing: &'a Briefing,
    },
    /// Sets the schedule. An approval that was given without any schedule also covers the new one. An approval of another schedule
    /// does not.
    Schedule {
        schedule: &'a Schedule,
        briefing: &'a Briefing,
    },
    /// Runs it now, once, as the run `run`.
    Run {
        run: RunId,
    },
    Pause,
    /// From `paused`, or after a person was asked.
    Resume,
    /// Cancels the live run. If nothing is due after it, or nothing runs, unschedules the action and withdraws the approval.
    /// The caller cancels the occurrence `live_run`.
    Cancel,
    Dismiss,
    /// A person marks it as done.
    Complete,
    Patch {
        patch: &'a ValidPatch,
    },
    /// Stores what [`plan_due`](super::plan_due) decided.
    Planned {
        plan: &'a DuePlan,
    },
    /// A check before a due time is done. It has no effect unless that is the next due time.
    Preflighted {
        check: DueCheck,
        found: Option<&'a Preflight>,
    },
    /// The action was planned by a clock that was ahead and was set back. Its next fire time is computed again by the current
    /// clock.
    ClockSetBack,
    /// An executor claims `run`, an occurrence with `approval_hash`. The executor itself checks whether the agent or the tools
    /// have changed since ([`Action::is_approved`]).
    OccurrenceStarted {
        run: RunId,
        approval_hash: &'a str,
    },
    /// Only this many queued runs are left, because others ended before they were live.
    Unqueued {
        left: u32,
    },
    /// The run ended or waits. It has no effect unless it is the live run, so repeated messages do no harm.
    OccurrenceEnded {
        run: RunId,
        outcome: ExecutionResult,
    },
}

impl Command<'_> {
    const fn name(&self) -> &'static str {
        match self {
            Self::Approve { .. } => "approve",
            Self::Schedule { .. } => "schedule",
            Self::Run { .. } => "run",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Cancel => "cancel",
            Self::Dismiss => "dismiss",
            Self::Complete => "complete",
            Self::Patch { .. } => "edit",
            Self::Planned { .. } => "plan",
            Self::Preflighted { .. } => "check",
            Self::ClockSetBack => "plan again",
            Self::OccurrenceStarted { .. } => "start",
            Self::Unqueued { .. } => "unqueue",
            Self::OccurrenceEnded { .. } => "end",
        }
    }
}

/// How a run left its executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutionResult {
    Succeeded,
    Failed,
    Cancelled,
    /// It waits for a person.
    Waiting,
    /// It is unknown whether an effect outside the platform happened. A person is asked.
    Unknown,
    /// The action, its agent or its tools are no longer what was approved. A person is asked.
    Drifted,
}

/// Why a command was refused, with the state of the action. Phrased to follow "failed to …: ".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("cannot {command} an action that is {}", state.as_str())]
    WrongState { command: &'static str, state: ActionState },
    #[error("the action has no approval")]
    NotApproved { state: ActionState },
    #[error("the action has changed: the approval is for {}, and it is now {}", short(given), short(current))]
    ApprovalMismatch { state: ActionState, given: String, current: String },
    #[error("the action has the live run {run}")]
    RunLive { state: ActionState, run: RunId },
    #[error("the schedule has no fire time in the future")]
    NeverDue { state: ActionState },
    #[error(
        "`schedule.at` is {at}, which has passed or was already decided: set a new time, or remove the schedule \
         (`schedule: null`), approve the action and run it now"
    )]
    InThePast { state: ActionState, at: Timestamp },
}

/// The first digits of a hash, for a sentence.
fn short(hash: &str) -> String {
    match hash.char_indices().nth(12) {
        Some((at, _)) => format!("{}…", &hash[..at]),
        None => hash.to_owned(),
    }
}

impl Refused {
    /// The state that the action is in.
    #[must_use]
    pub const fn state(&self) -> ActionState {
        match self {
            Self::WrongState { state, .. }
            | Self::NotApproved { state }
            | Self::ApprovalMismatch { state, .. }
            | Self::RunLive { state, .. }
            | Self::NeverDue { state }
            | Self::InThePast { state, .. } => *state,
        }
    }

    /// A stable code for clients.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::WrongState { .. } => "wrong_state",
            Self::NotApproved { .. } => "not_approved",
            Self::ApprovalMismatch { .. } => "approval_mismatch",
            Self::RunLive { .. } => "run_live",
            Self::NeverDue { .. } => "never_due",
            Self::InThePast { .. } => "schedule_in_the_past",
        }
    }
}

impl Action {
    /// The action after its occurrence has reached this state.
    #[must_use]
    pub fn after(&self, occurrence: &Occurrence, now: Timestamp) -> Self {
        let outcome = match occurrence.state {
            OccurrenceState::Succeeded | OccurrenceState::NothingNew | OccurrenceState::Unchanged => {
                ExecutionResult::Succeeded
            }
            OccurrenceState::Failed => ExecutionResult::Failed,
            OccurrenceState::Waiting => ExecutionResult::Waiting,
            OccurrenceState::Unknown => ExecutionResult::Unknown,
            OccurrenceState::Held => ExecutionResult::Drifted,
            _ => ExecutionResult::Cancelled,
        };
        let run = occurrence.run_id;
        let after = transition(self, Command::OccurrenceEnded { run, outcome }, now);
        failures::counted(self, after.unwrap_or_else(|_| self.clone()), occurrence, now)
    }
}

/// The action after `command`. If anything changed, `version` is one higher and `updated_at` is `now`. If nothing changed (the
/// command came twice), the result equals the input and need not be written.
///
/// If a command other than `OccurrenceEnded` removes `live_run`, the caller cancels that occurrence. Queued occurrences that the
/// action no longer counts are refused when they are about to start, and are cancelled then.
///
/// # Errors
/// [`Refused`], which is a conflict with the current state.
pub fn transition(action: &Action, command: Command<'_>, now: Timestamp) -> Result<Action, Refused> {
    use ActionState::{Completed, Defined, Dismissed, Failed, InProgress, NeedsApproval, Paused, Scheduled};
    let mut next = action.clone();
    let state = action.state;
    let wrong_state = Refused::WrongState { command: command.name(), state };
    match command {
        Command::Approve { .. }
        | Command::Schedule { .. }
        | Command::Patch { .. }
        | Command::Run { .. }
        | Command::Complete
            if state == Dismissed =>
        {
            return Err(wrong_state);
        }
        Command::Approve { hash, briefing } => approve(&mut next, hash, briefing, now)?,
        Command::Schedule { schedule, briefing } => set_schedule(&mut next, schedule, briefing, now)?,
        Command::Patch { patch } => {
            if patch.apply(&mut next) {
                withdraw(&mut next);
            }
        }
        Command::Run { run } => {
            match (action.live_run, &action.approval) {
                (Some(run), _) => return Err(Refused::RunLive { state, run }),
                (None, _) if state == NeedsApproval => return Err(wrong_state),
                (None, None) => return Err(Refused::NotApproved { state }),
                (None, Some(_)) => {}
            }
            next.live_run = Some(run);
            next.state = if state == Paused { Paused } else { InProgress };
        }
        Command::Pause => match state {
            Scheduled | Paused => next.state = Paused,
            InProgress if is_due(action) => next.state = Paused,
            _ => return Err(wrong_state),
        },
        Command::Resume => {
            if state == Paused {
                (next.failures, next.same_outputs) = (None, 0);
            }
            match (state, action.live_run) {
                (Scheduled, _) => {}
                // A person answers the live run. Later runs stay paused.
                (NeedsApproval, Some(_)) if action.paused => next.state = Paused,
                (Paused | NeedsApproval, Some(_)) => next.state = InProgress,
                (Paused | NeedsApproval, None) if is_due(action) => next.state = Scheduled,
                _ => return Err(wrong_state),
            }
        }
        Command::Cancel => match (state, action.live_run) {
            (Scheduled, _) | (Paused, None) => {
                next.live_run = None;
                withdraw(&mut next);
            }
            (InProgress | NeedsApproval, _) | (Paused, Some(_)) => {
                settle(&mut next, ExecutionResult::Cancelled);
            }
            _ => return Err(wrong_state),
        },
        Command::Dismiss | Command::Complete => {
            if let (InProgress | Paused, Some(run)) = (state, action.live_run) {
                return Err(Refused::RunLive { state, run });
            }
            next.state = if matches!(command, Command::Dismiss) { Dismissed } else { Completed };
            next.next_due = None;
            next.forget_found();
            next.live_run = None;
            next.queued = 0;
        }
        Command::Planned { plan } => match state {
            Scheduled | Paused | InProgress | NeedsApproval if action.next_due.is_some() => {
                planned(&mut next, plan);
                if !plan.more {
                    next.forget_found();
                }
            }
            _ => return Err(wrong_state),
        },
        Command::Preflighted { check, found } => {
            if action.next_due == Some(check.due_at) {
                next.checked(check, found.cloned());
            }
        }
        Command::ClockSetBack => {
            if let (Some(schedule), Some(anchor), Some(due)) =
                (&action.schedule, action.anchor, action.next_due)
            {
                let anchor = anchor.min(Timestamp::from_second(now.as_second()).unwrap_or(now));
                if let Some(first) = schedule.next_after(anchor, now).filter(|first| *first < due) {
                    held_until(&mut next, first);
                    next.anchor = Some(anchor);
                    next.next_due = Some(first);
                    next.preflighted = None;
                }
            }
            next.forget_found();
        }
        Command::OccurrenceStarted { run, approval_hash } => {
            let Some(approval) = &action.approval else { return Err(Refused::NotApproved { state }) };
            if approval.hash != approval_hash {
                return Err(Refused::ApprovalMismatch {
                    state,
                    given: approval_hash.to_owned(),
                    current: approval.hash.clone(),
                });
            }
            match (state, action.live_run) {
                (Defined | Completed | Failed | Dismissed | NeedsApproval, _) => return Err(wrong_state),
                (_, Some(live)) if live == run => {}
                (_, Some(live)) => return Err(Refused::RunLive { state, run: live }),
                (Scheduled, None) if action.queued > 0 => next.queued -= 1,
                (_, None) => return Err(wrong_state),
            }
            next.live_run = Some(run);
            next.state = if state == Paused { Paused } else { InProgress };
        }
        Command::Unqueued { left } if left < action.queued => {
            next.queued = left;
            end_if_over(&mut next);
        }
        Command::Unqueued { .. } => {}
        Command::OccurrenceEnded { run, outcome } => {
            if action.live_run == Some(run) {
                settle(&mut next, outcome);
            }
        }
    }
    next.paused &= next.state == NeedsApproval;
    next.forget_preflight(action);
    next.paused_at = match next.state == Paused || next.paused {
        true if state == Paused || action.paused => next.paused_at,
        true => Some(now),
        false => None,
    };
    if next.state != Paused && !next.paused {
        next.paused_because = None;
    }
    next.held = next.held.filter(|_| next.state == NeedsApproval);
    if next != *action {
        next.version = next.version.saturating_add(1);
        next.updated_at = now;
    }
    Ok(next)
}

fn approve(action: &mut Action, hash: &str, briefing: &Briefing, now: Timestamp) -> Result<(), Refused> {
    let current = approval_hash(action, briefing);
    if current != hash {
        return Err(Refused::ApprovalMismatch { state: action.state, given: hash.to_owned(), current });
    }
    let again = action.approval.as_ref().is_some_and(|approval| approval.hash == current);
    if !again {
        action.approval = Some(Approval { hash: current, approved_at: now });
        (action.failures, action.same_outputs) = (None, 0);
    }
    if action.state == ActionState::NeedsApproval && action.live_run.is_none() {
        // The question is answered. A single appointment that has passed meanwhile can still be run manually.
        action.state = match is_due(action) {
            true if action.paused => ActionState::Paused,
            true => ActionState::Scheduled,
            false => ActionState::Defined,
        };
        return Ok(());
    }
    match action.state {
        // A live run with the same approval continues, even if nothing is due after it.
        ActionState::InProgress if again && !is_due(action) => activate(action, now).or(Ok(())),
        ActionState::Defined | ActionState::InProgress | ActionState::Completed | ActionState::Failed
            if !is_due(action) =>
        {
            activate(action, now)
        }
        _ => Ok(()),
    }
}

fn set_schedule(
    action: &mut Action,
    schedule: &Schedule,
    briefing: &Briefing,
    now: Timestamp,
) -> Result<(), Refused> {
    let _ = first_due(action, schedule, now, now)?;
    if action.schedule.as_ref() == Some(schedule) {
        return if is_due(action) { Ok(()) } else { activate(action, now) };
    }
    let approved_without = action.schedule.is_none() && action.is_approved(briefing);
    action.schedule = Some(schedule.clone());
    if !approved_without {
        withdraw(action);
        return Ok(());
    }
    let hash = approval_hash(action, briefing);
    if let Some(approval) = &mut action.approval {
        approval.hash = hash;
    }
    activate(action, now)
}

/// Schedules an approved action from `now` on.
fn activate(action: &mut Action, now: Timestamp) -> Result<(), Refused> {
    let (Some(schedule), Some(_)) = (&action.schedule, &action.approval) else { return Ok(()) };
    let anchor = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let due = first_due(action, schedule, anchor, now)?;
    action.anchor = Some(anchor);
    action.next_due = Some(due);
    action.forget_found();
    // An open question to a person stays open.
    if action.live_run.is_none() && action.state != ActionState::NeedsApproval {
        action.state = ActionState::Scheduled;
    }
    Ok(())
}

/// The first fire time from `now` on. A time of `at` that passed less than five minutes ago is on time, unless it already has a
/// decision: each time has one run.
fn first_due(
    action: &Action,
    schedule: &Schedule,
    anchor: Timestamp,
    now: Timestamp,
) -> Result<Timestamp, Refused> {
    let state = action.state;
    if schedule.is_recurring() {
        return schedule.next_after(anchor, now).ok_or(Refused::NeverDue { state });
    }
    let at = schedule.next_after(anchor, Timestamp::MIN).ok_or(Refused::NeverDue { state })?;
    let passed = now.duration_since(at) >= ON_TIME || action.last_due == Some(at);
    if passed { Err(Refused::InThePast { state, at }) } else { Ok(at) }
}

fn is_due(action: &Action) -> bool {
    action.next_due.is_some() || action.queued > 0
}

/// Withdraws the approval, so nothing is due. A live run continues until its executor checks again.
fn withdraw(action: &mut Action) {
    action.approval = None;
    action.anchor = None;
    action.next_due = None;
    action.forget_found();
    action.queued = 0;
    (action.failures, action.same_outputs) = (None, 0);
    action.state = match (action.state, action.live_run) {
        (ActionState::InProgress | ActionState::Paused, Some(_)) => ActionState::InProgress,
        _ => {
            action.live_run = None;
            ActionState::Defined
        }
    };
}

fn planned(action: &mut Action, plan: &DuePlan) {
    action.next_due = plan.next_due;
    let newest = plan.decided.last().map(|decided| decided.due_at);
    action.last_due = action.last_due.max(newest);
    if newest.is_some() {
        action.held = plan.held;
        action.last_due = action.last_due.max(plan.held.map(|held| held.last_due_at));
    }
    for decided in &plan.decided {
        match &decided.decision {
            Decision::Run { cancels: Some(_), .. } => action.live_run = Some(decided.run_id(action.id)),
            Decision::Run { cancels: None, .. } if action.live_run.is_none() && action.queued == 0 => {
                action.live_run = Some(decided.run_id(action.id));
            }
            Decision::Run { cancels: None, .. } => action.queued = action.queued.saturating_add(1),
            Decision::Missed(_) | Decision::Skipped(_) | Decision::Held(_) => {}
        }
    }
    end_if_over(action);
}

/// The clock was ahead: the due times from `next` on come again. Those of them that were counted in a record are not counted any more.
fn held_until(action: &mut Action, next: Timestamp) {
    let (Some(schedule), Some(anchor), Some(held)) = (&action.schedule, action.anchor, action.held) else {
        return;
    };
    if held.last_due_at < next {
        return;
    }
    action.held = held.before(schedule, anchor, next);
    // None of those has a record of its own, except the first one of the series.
    let newest = action.held.map_or(held.first_due_at, |held| held.last_due_at);
    if action.last_due == Some(held.last_due_at) {
        action.last_due = Some(newest);
    }
}

/// If the last due time has passed and no run is left, the action ends.
fn end_if_over(action: &mut Action) {
    let over = !is_due(action) && action.live_run.is_none();
    if over && matches!(action.state, ActionState::Scheduled | ActionState::Paused) {
        // The last due time passed without a run. A series is complete; a single appointment has failed.
        let recurring = action.schedule.as_ref().is_some_and(Schedule::is_recurring);
        action.state = if recurring { ActionState::Completed } else { ActionState::Failed };
    }
}

/// The live run ended or waits. A pause stays in effect, also while a person is asked.
fn settle(action: &mut Action, outcome: ExecutionResult) {
    if action.approval.is_none() {
        action.live_run = None;
        action.state = ActionState::Defined;
        return;
    }
    action.paused |= action.state == ActionState::Paused;
    if outcome == ExecutionResult::Waiting {
        action.state = ActionState::NeedsApproval;
        return;
    }
    action.live_run = None;
    action.state = match outcome {
        ExecutionResult::Unknown | ExecutionResult::Drifted => ActionState::NeedsApproval,
        _ if is_due(action) && action.paused => ActionState::Paused,
        _ if is_due(action) => ActionState::Scheduled,
        ExecutionResult::Succeeded => ActionState::Completed,
        ExecutionResult::Failed => ActionState::Failed,
        ExecutionResult::Cancelled | ExecutionResult::Waiting => return withdraw(action),
    };
}
