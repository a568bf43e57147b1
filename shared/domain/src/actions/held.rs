//! The due times that came while an action waited for a person. They are counted in one record, from the first one on.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::action::Action;
use super::marks::Held;
use super::occurrence::{Covered, Occurrence};
use super::plan::{Decided, Decision, DuePlan};
use super::why::moment;
use crate::ids::{ActionId, RunId};
use crate::schedule::Schedule;

/// In the reason of a record, between the cause and the count.
const COUNTS: &str = "; ";

impl Held {
    /// A first due time.
    #[must_use]
    pub const fn since(due_at: Timestamp) -> Self {
        Self { times: 1, first_due_at: due_at, last_due_at: due_at }
    }

    /// With one more due time.
    pub(super) const fn and(self, due_at: Timestamp) -> Self {
        Self { times: self.times.saturating_add(1), last_due_at: due_at, ..self }
    }

    /// The id of the record.
    #[must_use]
    pub fn run_id(&self, action: ActionId) -> RunId {
        RunId::for_occurrence(action, self.first_due_at)
    }

    /// Without the due times from `next` on, which are still to come because the clock was ahead. `None` if none is left.
    #[must_use]
    pub fn before(self, schedule: &Schedule, anchor: Timestamp, next: Timestamp) -> Option<Self> {
        if self.last_due_at < next {
            return Some(self);
        }
        if self.first_due_at >= next {
            return None;
        }
        let just_before = next.checked_sub(jiff::SignedDuration::from_nanos(1)).ok()?;
        let mut come_again = 0;
        let mut fire = schedule.next_after(anchor, just_before);
        while let Some(due_at) = fire.filter(|due_at| *due_at <= self.last_due_at) {
            come_again += 1;
            fire = schedule.next_after(anchor, due_at);
        }
        let last_due_at = super::why::last_before(schedule, anchor, next)?.max(self.first_due_at);
        Some(Self { times: self.times.saturating_sub(come_again).max(1), last_due_at, ..self })
    }

    /// What the record says of its due times. `None` if it is about one.
    #[must_use]
    pub fn covered(&self) -> Option<Covered> {
        (self.times > 1).then_some(Covered { times: self.times, last: self.last_due_at })
    }

    /// "held 1,440 times since 2026-11-02 09:00, the last time at 2026-11-03 08:59"
    #[must_use]
    pub fn words(&self, zone: &TimeZone) -> String {
        let (first, last) = (moment(zone, self.first_due_at), moment(zone, self.last_due_at));
        match self.times {
            1 => format!("held once, at {first}"),
            times => format!("held {} times since {first}, the last time at {last}", with_commas(times)),
        }
    }

    /// The record of these due times.
    fn record(self, action: &Action, decided: &Decided, now: Timestamp) -> Occurrence {
        self.corrects(action, &Occurrence::decided(action, decided, now))
    }

    /// The record, if it counts these due times.
    #[must_use]
    pub fn corrects(&self, action: &Action, record: &Occurrence) -> Occurrence {
        let mut record = record.clone();
        record.covers = self.covered();
        let because = record.reason.as_deref().unwrap_or_default().split(COUNTS).next().unwrap_or_default();
        record.reason = Some(match (&record.covers, &action.schedule) {
            (Some(_), Some(schedule)) => format!("{because}{COUNTS}{}", self.words(schedule.time_zone())),
            _ => because.to_owned(),
        });
        record
    }
}

impl DuePlan {
    /// The record of a decision.
    #[must_use]
    pub fn record(&self, action: &Action, decided: &Decided, now: Timestamp) -> Occurrence {
        match (&decided.decision, self.held) {
            (Decision::Held(_), Some(held)) => held.record(action, decided, now),
            _ => Occurrence::decided(action, decided, now),
        }
    }

    /// Names the cause of the due times that it holds.
    pub fn held_because(&mut self, text: &str) {
        for decided in &mut self.decided {
            if let Decision::Held(reason) = &mut decided.decision {
                text.clone_into(&mut reason.text);
            }
        }
    }
}

/// 1440 as "1,440".
fn with_commas(number: u32) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use serde_json::json;

    use super::super::samples::{approved, noon};
    use super::super::{
        ActionState, Command, ExecutionResult, OccurrenceState, plan_due, plan_due_except, transition,
    };
    use super::*;

    fn after(minutes: i64) -> Timestamp {
        noon() + SignedDuration::from_mins(minutes)
    }

    /// An action whose run has drifted.
    fn asks(schedule: &serde_json::Value) -> Action {
        Action { state: ActionState::NeedsApproval, ..approved(schedule) }
    }

    fn planned(action: &Action, plan: &DuePlan, now: Timestamp) -> Action {
        transition(action, Command::Planned { plan }, now).unwrap()
    }

    #[test]
    fn a_week_of_minutes_is_one_record() {
        let mut action = asks(&json!({"cron": "* * * * *"}));
        let week = 7 * 24 * 60;
        let mut records = std::collections::BTreeMap::new();
        for minute in 1..=week {
            let now = after(minute);
            let plan = plan_due(&action, now, None, 40);
            assert_eq!(plan.decided.len(), 1);
            let record = plan.record(&action, &plan.decided[0], now);
            records.insert(record.run_id, record);
            action = planned(&action, &plan, now);
        }
        let [record] = &records.into_values().collect::<Vec<_>>()[..] else { panic!("one record") };
        assert_eq!((record.state, record.due_at), (OccurrenceState::Held, after(1)));
        assert_eq!(record.covers, Some(Covered { times: 10_080, last: after(week) }));
        let reason = record.reason.as_deref().unwrap();
        assert!(reason.contains("; held 10,080 times since "), "{reason}");
        assert_eq!((action.next_due, action.last_due), (Some(after(week + 1)), Some(after(week))));
        let held = Held { times: 10_080, first_due_at: after(1), last_due_at: after(week) };
        assert_eq!(action.held, Some(held));
    }

    #[test]
    fn a_year_of_minutes_needs_few_transactions() {
        let mut action = asks(&json!({"cron": "* * * * *"}));
        let (now, mut transactions) = (after(365 * 24 * 60), 0);
        loop {
            let plan = plan_due(&action, now, None, 40);
            action = planned(&action, &plan, now);
            transactions += 1;
            if !plan.more {
                break;
            }
        }
        assert_eq!(transactions, 53);
        let held = action.held.unwrap();
        assert_eq!((held.times, held.last_due_at), (365 * 24 * 60, now));
    }

    #[test]
    fn an_answer_ends_the_series() {
        let action = asks(&json!({"cron": "* * * * *"}));
        let action = planned(&action, &plan_due(&action, after(3), None, 40), after(3));
        assert_eq!(action.held.map(|held| held.times), Some(3));
        let resumed = transition(&action, Command::Resume, after(3)).unwrap();
        assert_eq!((resumed.state, resumed.held), (ActionState::Scheduled, None));
        // What comes next runs, and nothing that was held is caught up.
        let plan = plan_due(&resumed, after(4), None, 40);
        assert_eq!(plan.decided.iter().map(|decided| decided.due_at).collect::<Vec<_>>(), [after(4)]);
        assert!(matches!(plan.decided[0].decision, Decision::Run { .. }));

        let again = planned(&resumed, &plan, after(4));
        let run = again.live_run.unwrap();
        let drifted = Command::OccurrenceEnded { run, outcome: ExecutionResult::Drifted };
        let again = transition(&again, drifted, after(4)).unwrap();
        let plan = plan_due(&again, after(6), None, 40);
        assert_eq!(plan.held, Some(Held { times: 2, first_due_at: after(5), last_due_at: after(6) }));
    }

    #[test]
    fn a_clock_that_goes_back_counts_nothing_twice() {
        let action = asks(&json!({"cron": "* * * * *"}));
        let mut action = planned(&action, &plan_due(&action, after(10), None, 40), after(10));
        action = planned(&action, &plan_due(&action, after(1_450), None, 40), after(1_450));
        assert_eq!(action.held.unwrap().times, 1_450);
        // The clock was a day ahead.
        let now = after(10) + SignedDuration::from_secs(30);
        let back = transition(&action, Command::ClockSetBack, now).unwrap();
        assert_eq!(back.held, Some(Held { times: 10, first_due_at: after(1), last_due_at: after(10) }));
        assert_eq!((back.next_due, back.last_due), (Some(after(11)), Some(after(10))));
        let plan = plan_due(&back, after(12), None, 40);
        assert_eq!(plan.held.unwrap().times, 12);
        assert_eq!(plan.decided.len(), 1);

        // The whole series was ahead: only its first due time has a record, which is decided again.
        let now = after(0);
        let back = transition(&action, Command::ClockSetBack, now).unwrap();
        assert_eq!((back.held, back.next_due, back.last_due), (None, Some(after(1)), Some(after(1))));
        let plan = plan_due(&back, after(3), None, 40);
        assert_eq!((plan.held, plan.more), (Some(Held::since(after(1))), true));
        let known = [after(1)].into();
        let plan = plan_due_except(&back, after(3), None, 40, &known);
        assert_eq!(plan.held, Some(Held { times: 2, first_due_at: after(2), last_due_at: after(3) }));
    }

    #[test]
    fn due_times_with_records_of_their_own_are_not_counted() {
        // The clock was ahead while the action ran, and was set back.
        let mut action = asks(&json!({"cron": "* * * * *"}));
        action.last_due = Some(after(3));
        let known = [after(1), after(2), after(3)].into();
        let plan = plan_due_except(&action, after(5), None, 40, &known);
        assert_eq!(plan.held, Some(Held { times: 2, first_due_at: after(4), last_due_at: after(5) }));
        let plan = plan_due(&action, after(5), None, 40);
        assert_eq!(
            (plan.held, plan.next_due, plan.more),
            (Some(Held::since(after(1))), Some(after(2)), true)
        );
    }

    #[test]
    fn numbers_have_commas() {
        for (number, text) in
            [(1, "1"), (999, "999"), (1_440, "1,440"), (525_600, "525,600"), (1_234_567, "1,234,567")]
        {
            assert_eq!(with_commas(number), text);
        }
    }
}
