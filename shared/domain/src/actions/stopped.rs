//! The due times that came while the account was stopped, and what becomes of them when it starts.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::action::Action;
use super::occurrence::{Covered, Occurrence, OccurrenceKind};
use super::plan::{Decided, Decision, DuePlan};
use super::reason::{Reason, ReasonCode};
use super::state::{Command, Refused, transition};
use super::why::{brief, last_before};
use crate::schedule::Schedule;
use crate::work::ActionState;

/// How many due times of one action are counted. If there are more, the count stays at this number.
pub const MAX_COUNTED: u32 = 1_000;

/// What a person wants to do with the due times that came while the account was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MissedAnswer {
    /// The newest due time of each action runs. The others are skipped.
    RunNewest,
    /// All are skipped.
    Skip,
    /// The `catch_up` of each schedule decides, as after an outage.
    EachSchedule,
}

/// The due times of an action that came while the account was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    /// How many there are, at least 1. [`MAX_COUNTED`] means that many or more.
    pub times: u32,
    pub first: Timestamp,
    pub last: Timestamp,
}

/// An action after a start, and the occurrences that must be stored with it.
#[derive(Debug, PartialEq, Eq)]
pub struct Settled {
    pub action: Action,
    /// The record of the due times that do not run.
    pub skipped: Option<Occurrence>,
    /// The newest due time, if it runs.
    pub run: Option<Occurrence>,
}

impl Missed {
    /// The undecided due times of an action that have come at `now`. `None` if there are none, or if none of them would run, because
    /// the action is paused or waits for a person.
    #[must_use]
    pub fn of(action: &Action, now: Timestamp) -> Option<Self> {
        if !matches!(action.state, ActionState::Scheduled | ActionState::InProgress) {
            return None;
        }
        let (schedule, anchor, first) = (action.schedule.as_ref()?, action.anchor?, action.next_due?);
        let has_come = |due: &Timestamp| schedule.wake_at(action.id, *due) <= now;
        let first = Some(first).filter(has_come)?;
        let (mut times, mut last) = (1, first);
        while let Some(next) = schedule.next_after(anchor, last).filter(has_come) {
            if times == MAX_COUNTED {
                last = newest(schedule, anchor, now, has_come).unwrap_or(next);
                break;
            }
            (times, last) = (times + 1, next);
        }
        Some(Self { times, first, last })
    }

    /// Decides these due times. `stopped_at`: when the account was stopped. With `run_newest`, the last one runs.
    ///
    /// # Errors
    /// If nothing is due for an action in this state.
    pub fn settle(
        self,
        action: &Action,
        run_newest: bool,
        stopped_at: Timestamp,
        now: Timestamp,
    ) -> Result<Settled, Refused> {
        let (Some(schedule), Some(anchor)) = (&action.schedule, action.anchor) else {
            return Err(Refused::NotApproved { state: action.state });
        };
        let skips = if run_newest { self.without_last(schedule, anchor) } else { Some(self) };
        let skip = skips.map(|skips| Decided {
            due_at: skips.first,
            decision: Decision::Skipped(skips.reason(schedule, stopped_at)),
        });
        let run = run_newest.then_some(Decided {
            due_at: self.last,
            decision: Decision::Run { kind: OccurrenceKind::CatchUp, cancels: None },
        });
        let plan = DuePlan {
            decided: skip.iter().chain(&run).cloned().collect(),
            next_due: schedule.next_after(anchor, self.last),
            wake_at: None,
            more: false,
            held: None,
        };
        let mut next = transition(action, Command::Planned { plan: &plan }, now)?;
        next.last_due = Some(self.last);
        let skipped = skip.zip(skips).map(|(decided, skips)| Occurrence {
            covers: (skips.times > 1).then_some(Covered { times: skips.times, last: skips.last }),
            ..Occurrence::decided(action, &decided, now)
        });
        let run = run.map(|decided| {
            let run = Occurrence::decided(action, &decided, now);
            if next.live_run == Some(run.run_id) { run } else { run.queued() }
        });
        Ok(Settled { action: next, skipped, run })
    }

    /// All but the last one.
    fn without_last(self, schedule: &Schedule, anchor: Timestamp) -> Option<Self> {
        let last = last_before(schedule, anchor, self.last).filter(|last| *last >= self.first)?;
        let times = if self.times == MAX_COUNTED { self.times } else { self.times - 1 };
        Some(Self { times, last, ..self })
    }

    fn reason(self, schedule: &Schedule, stopped_at: Timestamp) -> Reason {
        let zone = schedule.time_zone();
        let mut text = format!("the account was stopped {}", brief(zone, stopped_at));
        if self.times > 1 {
            let more = if self.times == MAX_COUNTED { " or more" } else { "" };
            let last = brief(zone, self.last);
            text.push_str(&format!(
                "; this record is for {}{more} due times, the last one {last}",
                self.times
            ));
        }
        Reason::new(ReasonCode::Stopped, text)
    }
}

/// The newest fire time that has come.
fn newest(
    schedule: &Schedule,
    anchor: Timestamp,
    now: Timestamp,
    has_come: impl Fn(&Timestamp) -> bool,
) -> Option<Timestamp> {
    // The jitter of a newer fire time may not be over.
    let mut before = now + SignedDuration::from_nanos(1);
    loop {
        let fire = last_before(schedule, anchor, before)?;
        if has_come(&fire) {
            return Some(fire);
        }
        before = fire;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::OccurrenceState;
    use super::super::samples::{approved, noon};
    use super::*;

    fn after(minutes: i64) -> Timestamp {
        noon() + SignedDuration::from_mins(minutes)
    }

    #[test]
    fn what_was_missed_is_counted_up_to_a_limit() {
        let action = approved(&json!({"cron": "* * * * *"}));
        assert_eq!(Missed::of(&action, noon()), None);
        assert_eq!(Missed::of(&action, after(3)), Some(Missed { times: 3, first: after(1), last: after(3) }));
        let year = 365 * 24 * 60;
        assert_eq!(
            Missed::of(&action, after(year)),
            Some(Missed { times: MAX_COUNTED, first: after(1), last: after(year) })
        );
        let paused = transition(&action, Command::Pause, noon()).unwrap();
        assert_eq!(Missed::of(&paused, after(3)), None);
    }

    #[test]
    fn many_due_times_have_one_record() {
        let action = approved(&json!({"cron": "0 * * * *"}));
        let now = after(5 * 60 + 30);
        let missed = Missed::of(&action, now).unwrap();
        let Settled { action: next, skipped, run } = missed.settle(&action, false, noon(), now).unwrap();
        let skipped = skipped.unwrap();
        assert_eq!((skipped.state, skipped.due_at), (OccurrenceState::Skipped, after(60)));
        assert_eq!(skipped.covers, Some(Covered { times: 5, last: after(300) }));
        assert_eq!(skipped.reason_code, Some(ReasonCode::Stopped));
        assert_eq!((run, next.next_due, next.last_due), (None, Some(after(360)), Some(after(300))));

        let Settled { action: next, skipped, run } = missed.settle(&action, true, noon(), now).unwrap();
        assert_eq!(skipped.unwrap().covers, Some(Covered { times: 4, last: after(240) }));
        let run = run.unwrap();
        assert_eq!((run.state, run.due_at), (OccurrenceState::Due, after(300)));
        assert_eq!((next.live_run, next.next_due), (Some(run.run_id), Some(after(360))));

        // A single due time needs no record beside its run.
        let now = after(61);
        let missed = Missed::of(&action, now).unwrap();
        let settled = missed.settle(&action, true, noon(), now).unwrap();
        assert!(settled.skipped.is_none() && settled.run.is_some());
        assert_eq!(missed.settle(&action, false, noon(), now).unwrap().skipped.unwrap().covers, None);
    }
}
