//! Decides the fire times that have come. Each wake-up makes one decision for each of them.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::action::Action;
use super::marks::Held;
use super::occurrence::{LATE, Occurrence, OccurrenceKind, OccurrenceState};
use super::reason::{Reason, ReasonCode};
use crate::ids::{ActionId, RunId};
use crate::schedule::{CatchUp, Overlap, Schedule};
use crate::work::ActionState;

/// How many due times one transaction counts. The rest follows in the next one.
pub(super) const COUNTED_AT_ONCE: u32 = 10_000;

/// A fire time that is found with a smaller delay is on time, unless a newer fire time has also come.
pub const ON_TIME: SignedDuration = SignedDuration::from_mins(5);

/// How many runs of one action may be queued. Further due times are skipped.
pub const MAX_QUEUED: u32 = 200;

/// The decisions. One transaction writes the occurrences (if absent), and the action after
/// [`Command::Planned`](super::Command::Planned).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DuePlan {
    pub decided: Vec<Decided>,
    /// The first fire time without a decision.
    pub next_due: Option<Timestamp>,
    /// When to plan again: `next_due` with its jitter.
    pub wake_at: Option<Timestamp>,
    /// Whether the limit was reached although more fire times have come.
    pub more: bool,
    /// The series of held due times afterwards. If a due time is held, `decided` has one entry: the first one of the series, whose
    /// record counts all.
    pub held: Option<Held>,
}

impl DuePlan {
    /// Whether there is nothing to write: no decision was made and no fire time was skipped over.
    #[must_use]
    pub fn changes_nothing(&self, action: &Action) -> bool {
        self.decided.is_empty() && self.next_due == action.next_due
    }
}

/// The decision about one fire time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    pub due_at: Timestamp,
    pub decision: Decision,
}

impl Decided {
    /// The id of its occurrence.
    #[must_use]
    pub fn run_id(&self, action: ActionId) -> RunId {
        RunId::for_occurrence(action, self.due_at)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It runs. If `cancels` names a run, that run is cancelled first.
    Run {
        kind: OccurrenceKind,
        cancels: Option<RunId>,
    },
    Missed(Reason),
    Skipped(Reason),
    Held(Reason),
}

impl Action {
    /// When to process it next: the earliest of its next fire time (with jitter), the time that its live run waits for, and
    /// the time when the next queued run may begin. `live` is the occurrence `live_run`. `None` if nothing happens before a
    /// person acts.
    #[must_use]
    pub fn wake_at(&self, live: Option<&Occurrence>) -> Option<Timestamp> {
        let fire =
            self.schedule.as_ref().zip(self.next_due).map(|(schedule, due)| schedule.wake_at(self.id, due));
        let run = live.filter(|live| Some(live.run_id) == self.live_run).and_then(Occurrence::wake_at);
        let may_start = matches!(self.state, ActionState::Scheduled | ActionState::InProgress);
        let queue = (self.queued > 0 && self.live_run.is_none() && may_start).then_some(self.updated_at);
        fire.into_iter().chain(run).chain(queue).min()
    }
}

impl Occurrence {
    /// The record of a decision: either due, or final at once.
    #[must_use]
    pub fn decided(action: &Action, decided: &Decided, now: Timestamp) -> Self {
        let mut occurrence =
            Self::due(action, decided.run_id(action.id), OccurrenceKind::Scheduled, decided.due_at);
        let (state, reason) = match &decided.decision {
            Decision::Run { kind, .. } => {
                occurrence.kind = *kind;
                let wake_at = action.schedule.as_ref().map(|s| s.wake_at(action.id, decided.due_at));
                occurrence.starts_at = wake_at.max(action.anchor).filter(|at| *at > decided.due_at);
                occurrence.found_late = occurrence.lag_at(action.decided_as_of(now)) >= LATE;
                return occurrence;
            }
            Decision::Missed(reason) => (OccurrenceState::Missed, reason),
            Decision::Skipped(reason) => (OccurrenceState::Skipped, reason),
            Decision::Held(reason) => (OccurrenceState::Held, reason),
        };
        occurrence.finish(state, now);
        occurrence.because(reason.code, &reason.text);
        occurrence
    }
}

/// Decides the fire times of `action` from `next_due` on whose wake time (with jitter) has come. It decides at most `limit` of
/// them, and at least one. `live` is the occurrence `action.live_run`. Without it, that run counts as live. If that run has ended
/// and the action is not updated yet, write [`Command::OccurrenceEnded`](super::Command::OccurrenceEnded) together with the
/// plan.
///
/// Several steps, each stored before the next, give the same result as one step. Fire times that sweeps found in time are decided
/// one after the other, each as of its own time ([`Action::decided_as_of`]). Then `more` is set.
#[must_use]
pub fn plan_due(action: &Action, now: Timestamp, live: Option<&Occurrence>, limit: usize) -> DuePlan {
    plan_due_except(action, now, live, limit, &BTreeSet::new())
}

/// Like [`plan_due`], but skips the fire times in `recorded`, which already have a record. That happens if a clock was set back, so
/// that the same fire times come again.
#[must_use]
pub fn plan_due_except(
    action: &Action,
    now: Timestamp,
    live: Option<&Occurrence>,
    limit: usize,
    recorded: &BTreeSet<Timestamp>,
) -> DuePlan {
    let (Some(schedule), Some(anchor), Some(first)) = (&action.schedule, action.anchor, action.next_due)
    else {
        return DuePlan::default();
    };
    let really_now = now;
    let now = action.decided_as_of(now);
    if let Some(reason) = held_reason(action, live) {
        // What a person is asked does not depend on when a due time was found.
        return hold(action, reason, really_now, |due_at| recorded.contains(due_at));
    }
    let mut planner = Planner::new(action, schedule, now, live);
    let mut decided = Vec::new();
    let wake = |due_at| schedule.wake_at(action.id, due_at);
    let mut cursor = Some((first, wake(first)));
    while let Some((due_at, wake_at)) = cursor {
        let more = wake_at <= really_now;
        if wake_at > now || decided.len() >= limit.max(1) {
            return DuePlan { decided, next_due: Some(due_at), wake_at: Some(wake_at), more, held: None };
        }
        cursor = schedule.next_after(anchor, due_at).map(|next| (next, wake(next)));
        if recorded.contains(&due_at) {
            continue;
        }
        let newest = cursor.is_none_or(|(_, wake_at)| wake_at > now);
        decided.push(Decided { due_at, decision: planner.decide(due_at, wake_at, newest) });
    }
    DuePlan { decided, next_due: None, wake_at: None, more: false, held: None }
}

struct Planner<'a> {
    action: &'a Action,
    schedule: &'a Schedule,
    now: Timestamp,
    /// Whether a run is live or queued.
    busy: bool,
    live: Option<RunId>,
    /// How many runs are queued.
    queued: u32,
}

/// Holds the due times from `next_due` on that have come at `now`. They continue the action's series, if it has one.
fn hold(
    action: &Action,
    reason: Reason,
    now: Timestamp,
    is_recorded: impl Fn(&Timestamp) -> bool,
) -> DuePlan {
    let (Some(schedule), Some(anchor), Some(first)) = (&action.schedule, action.anchor, action.next_due)
    else {
        return DuePlan::default();
    };
    let has_come = |due_at: &Timestamp| schedule.wake_at(action.id, *due_at) <= now;
    let (mut held, mut counted) = (action.held, 0);
    let mut cursor = Some(first);
    while let Some(due_at) = cursor.filter(has_come).filter(|_| counted < COUNTED_AT_ONCE) {
        // If the clock was set back, a due time up to the newest decided one may have a record of its own. It is decided on its own.
        let may_be_known = action.last_due.is_some_and(|last| due_at <= last);
        if is_recorded(&due_at) {
            if counted > 0 {
                break;
            }
            held = None;
        } else if may_be_known && counted > 0 {
            break;
        } else {
            counted += 1;
            held = match held {
                Some(held) if !may_be_known => Some(held.and(due_at)),
                _ => Some(Held::since(due_at)),
            };
            if may_be_known {
                cursor = schedule.next_after(anchor, due_at);
                break;
            }
        }
        cursor = schedule.next_after(anchor, due_at);
    }
    let decided = held
        .filter(|_| counted > 0)
        .map(|held| Decided { due_at: held.first_due_at, decision: Decision::Held(reason) });
    DuePlan {
        decided: decided.into_iter().collect(),
        next_due: cursor,
        wake_at: cursor.map(|due_at| schedule.wake_at(action.id, due_at)),
        more: cursor.is_some_and(|due_at| has_come(&due_at)),
        held,
    }
}

/// Why the due times of an action are held, if they are.
fn held_reason(action: &Action, live: Option<&Occurrence>) -> Option<Reason> {
    let waits = live.is_some_and(|occurrence| occurrence.state == OccurrenceState::Waiting);
    if action.state != ActionState::NeedsApproval && !waits {
        return None;
    }
    let text = match live_run(action, live) {
        Some(run) => format!("the run {run} waits for a person's answer"),
        None => "the action waits for a person's answer".to_owned(),
    };
    Some(Reason::new(ReasonCode::NeedsApproval, text))
}

/// The run that is live. `live` is its occurrence, if it was read.
fn live_run(action: &Action, live: Option<&Occurrence>) -> Option<RunId> {
    match live {
        Some(occurrence) => (!occurrence.state.is_final()).then_some(occurrence.run_id),
        None => action.live_run,
    }
}

impl<'a> Planner<'a> {
    fn new(action: &'a Action, schedule: &'a Schedule, now: Timestamp, live: Option<&Occurrence>) -> Self {
        let live_run = live_run(action, live);
        let queued = action.queued;
        Self { action, schedule, now, busy: live_run.is_some() || queued > 0, live: live_run, queued }
    }

    /// `newest` means that no later fire time has come.
    fn decide(&mut self, due_at: Timestamp, wake_at: Timestamp, newest: bool) -> Decision {
        if self.action.state == ActionState::Paused {
            return Decision::Skipped(Reason::new(
                ReasonCode::Paused,
                format!("the action was {}", self.action.paused_words()),
            ));
        }
        let late = self.is_late(wake_at, newest);
        if let Some(reason) = self.not_caught_up(wake_at, late, newest) {
            return Decision::Missed(reason);
        }
        let waits_its_turn =
            self.schedule.overlap() == Overlap::Queue || late && self.schedule.catch_up() == CatchUp::All;
        let cancels = if waits_its_turn {
            if self.busy && self.queued >= MAX_QUEUED {
                let text = format!("{MAX_QUEUED} runs were queued already, which is the limit");
                return Decision::Skipped(Reason::new(ReasonCode::QueueFull, text));
            }
            None
        } else {
            match self.schedule.overlap() {
                Overlap::Replace if !newest => {
                    let text = "a later due time had already come and replaced it";
                    return Decision::Skipped(Reason::new(ReasonCode::Replaced, text));
                }
                Overlap::Replace => self.live,
                Overlap::Skip | Overlap::Queue if self.busy => {
                    let text = match self.live {
                        Some(run) => format!("the earlier run {run} had not ended"),
                        None => "earlier runs were queued".to_owned(),
                    };
                    return Decision::Skipped(Reason::new(ReasonCode::Overlap, text));
                }
                Overlap::Skip | Overlap::Queue => None,
            }
        };
        if cancels.is_some() || !self.busy {
            self.live = Some(RunId::for_occurrence(self.action.id, due_at));
        } else {
            self.queued = self.queued.saturating_add(1);
        }
        self.busy = true;
        let kind = if late { OccurrenceKind::CatchUp } else { OccurrenceKind::Scheduled };
        Decision::Run { kind, cancels }
    }

    /// Whether `catch_up` decides about a fire time. It decides about fire times later than [`ON_TIME`], and about fire times
    /// that a newer one has overtaken, unless `overlap` already decides: `queue` runs them, `replace` replaces them with the
    /// newer one.
    fn is_late(&self, wake_at: Timestamp, newest: bool) -> bool {
        let overtaken = !newest
            && match self.schedule.overlap() {
                Overlap::Skip => true,
                Overlap::Replace => self.schedule.catch_up() == CatchUp::All,
                Overlap::Queue => false,
            };
        overtaken || self.now.duration_since(wake_at) >= ON_TIME
    }

    /// Why a fire time that has come does not run, if so. Its delay counts from the end of its jitter.
    fn not_caught_up(&self, wake_at: Timestamp, late: bool, newest: bool) -> Option<Reason> {
        let age = self.now.duration_since(wake_at);
        let found = format!("it was found {} late", approximately(age));
        match self.schedule.catch_up() {
            CatchUp::None if late => Some(Reason::new(
                ReasonCode::CatchUpOff,
                format!("{found}, and the schedule catches nothing up"),
            )),
            CatchUp::Latest if late && !newest => Some(Reason::new(
                ReasonCode::Superseded,
                format!("{found}, and only the newest due time is caught up"),
            )),
            CatchUp::None | CatchUp::Latest | CatchUp::All => {
                let max_age = self.schedule.max_age().filter(|max_age| age > max_age.duration())?;
                let text = format!("{found}, and nothing older than {max_age} is caught up");
                Some(Reason::new(ReasonCode::TooOld, text))
            }
        }
    }
}

/// A duration for sentences, with at most two units: "3 h 20 min".
pub(crate) fn approximately(length: SignedDuration) -> String {
    let minutes = length.as_mins();
    match (minutes / 1_440, minutes / 60 % 24, minutes % 60) {
        (0, 0, 0) => format!("{} s", length.as_secs()),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}
