//! Equal failures in a row. The third one pauses the action, so that it does not fail, and cost, again and again.
//!
//! Only due times count. A run by hand neither counts nor pauses, but its success ends the row: the cause is mended. Runs that were
//! cancelled, held or missed, and runs whose result is unknown, do not change the row.

use jiff::Timestamp;

use super::action::Action;
use super::marks::Failures;
use super::occurrence::{Occurrence, OccurrenceKind, OccurrenceState};
use super::reason::{Reason, ReasonCode};
use crate::schedule::Schedule;
use crate::work::ActionState;

/// How many equal failures in a row pause an action.
pub const PAUSES_AT: u32 = 3;

/// The longest cause that is kept, in characters.
const MAX_CAUSE: usize = 200;

/// Codes whose text is written by a model. Two texts are never alike, so only the code counts.
const TOLD_BY_MODELS: [&str; 4] = ["output_rejected", "check_unreadable", "unanswered", "empty_output"];

impl Failures {
    /// A failed run as the first of a row.
    fn first(failed: &Occurrence, now: Timestamp) -> Self {
        let code = match (&failed.error_code, failed.reason_code) {
            (Some(code), _) => code.clone(),
            (None, Some(ReasonCode::Unanswered)) => "unanswered".to_owned(),
            (None, Some(ReasonCode::Killed)) => "interrupted".to_owned(),
            (None, _) => "failed".to_owned(),
        };
        let cause = match TOLD_BY_MODELS.contains(&code.as_str()) {
            true => String::new(),
            false => normal_form(failed.reason.as_deref().unwrap_or_default()),
        };
        let at = failed.finished_at.unwrap_or(now);
        Self { times: 1, code, cause, run_id: failed.run_id, at }
    }

    /// The row with this failure at its end. A different failure begins a new row.
    fn and(earlier: Option<&Self>, failed: &Occurrence, now: Timestamp) -> Self {
        let mut newest = Self::first(failed, now);
        if let Some(earlier) = earlier.filter(|earlier| earlier.is_equal(&newest)) {
            newest.times = earlier.times.saturating_add(1);
        }
        newest
    }

    fn is_equal(&self, other: &Self) -> bool {
        (&self.code, &self.cause) == (&other.code, &other.cause)
    }
}

/// A text without what differs between two equal failures: amounts, times, ids.
fn normal_form(text: &str) -> String {
    let has_digit = |word: &str| word.chars().any(|letter| letter.is_ascii_digit());
    let words = text.split_whitespace().map(|word| match has_digit(word) {
        true => "#".to_owned(),
        false => word.to_lowercase(),
    });
    words.collect::<Vec<_>>().join(" ").chars().take(MAX_CAUSE).collect()
}

/// The action `after` an occurrence has ended, with its failures counted. `before`: the action before.
pub(super) fn counted(before: &Action, mut after: Action, ended: &Occurrence, now: Timestamp) -> Action {
    // A repeated message counts nothing.
    let was_live = before.live_run == Some(ended.run_id) && after.live_run != before.live_run;
    if !was_live || after.approval.is_none() {
        return after;
    }
    match ended.state {
        OccurrenceState::Succeeded => {
            after.failures = None;
            after.same_outputs = match ended.reason_code {
                // Whoever runs it again by hand expects the same.
                Some(ReasonCode::SameAsLast) if ended.kind == OccurrenceKind::Manual => after.same_outputs,
                Some(ReasonCode::SameAsLast) => after.same_outputs.saturating_add(1),
                _ => 0,
            };
        }
        // After a due time without a change, what the action watches can be looked at.
        OccurrenceState::NothingNew | OccurrenceState::Unchanged => after.failures = None,
        OccurrenceState::Failed if ended.kind != OccurrenceKind::Manual => {
            let failures = Failures::and(after.failures.as_ref(), ended, now);
            let recurs = after.schedule.as_ref().is_some_and(Schedule::is_recurring);
            if failures.times >= PAUSES_AT && recurs && after.state == ActionState::Scheduled {
                let last = ended.reason.as_deref().unwrap_or("no reason was noted");
                let text =
                    format!("after three failures with the same cause: {}", last.trim_end_matches('.'));
                after.state = ActionState::Paused;
                after.paused_because = Some(Reason::new(ReasonCode::EqualFailures, text));
                after.paused_at = Some(now);
            }
            after.failures = Some(failures);
        }
        _ => {}
    }
    after
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use serde_json::json;

    use super::super::samples::{approved, noon, run};
    use super::super::{Command, OccurrenceCommand, plan_due, transition};
    use super::*;
    use crate::ids::RunId;

    const DAY: SignedDuration = SignedDuration::from_hours(24);

    /// An action that runs every day, and what happens to it.
    struct Days {
        action: Action,
        now: Timestamp,
    }

    impl Days {
        fn new() -> Self {
            Self { action: approved(&json!({"cron": "0 9 * * *"})), now: noon() }
        }

        /// The run of the next day ends.
        fn ends(&mut self, end: impl FnOnce(u64) -> OccurrenceCommand, code: Option<&str>) {
            self.now += DAY;
            let plan = plan_due(&self.action, self.now, None, 40);
            let due = Occurrence::decided(&self.action, plan.decided.last().unwrap(), self.now);
            self.action = transition(&self.action, Command::Planned { plan: &plan }, self.now).unwrap();
            self.run_ends(due, end, code);
        }

        fn by_hand(&mut self, end: impl FnOnce(u64) -> OccurrenceCommand, code: Option<&str>) {
            self.now += SignedDuration::from_secs(1);
            let run = RunId::for_occurrence(self.action.id, self.now);
            let manual = Occurrence::manual(&self.action, run, self.now);
            self.action = transition(&self.action, Command::Run { run }, self.now).unwrap();
            self.run_ends(manual, end, code);
        }

        fn run_ends(
            &mut self,
            run: Occurrence,
            end: impl FnOnce(u64) -> OccurrenceCommand,
            code: Option<&str>,
        ) {
            let lease_until = self.now + SignedDuration::from_mins(16);
            let mut ended = run.transition(OccurrenceCommand::Claim { lease_until }, self.now).unwrap();
            ended = ended.transition(OccurrenceCommand::Start { fence: 1 }, self.now).unwrap();
            ended = ended.transition(end(1), self.now).unwrap();
            ended.error_code = code.map(str::to_owned);
            self.action = self.action.after(&ended, self.now);
            // The queue delivers twice.
            self.action = self.action.after(&ended, self.now);
        }

        fn fails(&mut self, code: &str, text: &str) {
            self.ends(fail(text), Some(code));
        }

        fn times(&self) -> u32 {
            self.action.failures.as_ref().map_or(0, |failures| failures.times)
        }
    }

    fn fail(text: &str) -> impl FnOnce(u64) -> OccurrenceCommand + use<> {
        let error = text.to_owned();
        move |fence| OccurrenceCommand::Fail { fence, error, retryable: false }
    }

    fn succeed(fence: u64) -> OccurrenceCommand {
        OccurrenceCommand::Succeed { fence, score: None, note: None }
    }

    #[test]
    fn the_third_equal_failure_pauses_and_a_resume_begins_anew() {
        let mut days = Days::new();
        days.fails("model_key_refused", "the provider does not accept the API key");
        days.fails("model_key_refused", "the provider does not accept the API key");
        assert_eq!((days.action.state, days.times()), (ActionState::Scheduled, 2));
        days.fails("model_key_refused", "the provider does not accept the API key");
        assert_eq!((days.action.state, days.times()), (ActionState::Paused, 3));
        let because = days.action.paused_because.clone().unwrap();
        assert_eq!(because.code, ReasonCode::EqualFailures);
        assert_eq!(
            because.text,
            "after three failures with the same cause: the provider does not accept the API key"
        );
        // A run by hand that fails, too, leaves it as it is.
        days.by_hand(fail("the provider does not accept the API key"), Some("model_key_refused"));
        assert_eq!((days.action.state, days.times()), (ActionState::Paused, 3));
        assert_eq!(days.action.paused_because, Some(because));

        let resumed = transition(&days.action, Command::Resume, days.now).unwrap();
        assert_eq!((resumed.state, resumed.failures.as_ref()), (ActionState::Scheduled, None));
        assert_eq!(resumed.paused_because, None);
        days.action = resumed;
        days.fails("model_key_refused", "the provider does not accept the API key");
        assert_eq!((days.action.state, days.times()), (ActionState::Scheduled, 1));
    }

    #[test]
    fn failures_that_alternate_never_pause() {
        let mut days = Days::new();
        for _ in 0..50 {
            days.fails("model_failed", "the provider has an internal error (HTTP status 500)");
            days.fails("model_unknown", "the provider does not know the model");
            assert_eq!((days.action.state, days.times()), (ActionState::Scheduled, 1));
        }
        // The same code with another cause is another failure.
        for _ in 0..50 {
            days.fails("condition_not_met", "the heading Prices is missing");
            days.fails("condition_not_met", "the heading Sources is missing");
            assert_eq!(days.times(), 1);
        }
    }

    #[test]
    fn equal_outputs_are_counted_in_a_row() {
        let counted = |same_outputs, state, kind, code| {
            let mut before = approved(&json!({"cron": "0 9 * * *"}));
            (before.live_run, before.same_outputs) = (Some(run(9)), same_outputs);
            let after = Action { live_run: None, ..before.clone() };
            let mut ended = Occurrence::due(&before, run(9), kind, noon());
            (ended.state, ended.reason_code) = (state, code);
            super::counted(&before, after, &ended, noon()).same_outputs
        };
        let same = Some(ReasonCode::SameAsLast);
        use OccurrenceKind::{Manual, Scheduled};
        use OccurrenceState::{Failed, NothingNew, Succeeded};
        for (before, state, kind, code, expected) in [
            (0, Succeeded, Scheduled, same, 1),
            (2, Succeeded, Scheduled, same, 3),
            (2, Succeeded, Manual, same, 2),
            (2, Succeeded, Scheduled, None, 0),
            (2, Succeeded, Manual, None, 0),
            (2, NothingNew, Scheduled, None, 2),
            (2, Failed, Scheduled, None, 2),
        ] {
            assert_eq!(counted(before, state, kind, code), expected, "{before} {state:?} {kind:?} {code:?}");
        }
    }

    #[test]
    fn amounts_times_and_ids_do_not_make_failures_different() {
        let mut days = Days::new();
        days.fails("budget_exceeded", "The call may cost $0.12, and $0.10 is left");
        days.fails("budget_exceeded", "the call may cost $0.31,  and $0.02 is left");
        assert_eq!(days.times(), 2);
        days.fails("budget_exceeded", "the call may cost $9, and $0.02 is left");
        assert_eq!(days.action.state, ActionState::Paused);
        // What a model has written is not compared.
        let mut days = Days::new();
        for text in ["It names no price", "It is too short", "No sources"] {
            days.fails("output_rejected", text);
        }
        assert_eq!(days.action.state, ActionState::Paused);
        assert_eq!(normal_form(&"ä ".repeat(500)).chars().count(), MAX_CAUSE);
    }

    #[test]
    fn a_success_ends_the_row_and_a_cancelled_run_does_not() {
        let same = "the provider does not accept the API key";
        let nothing = |fence| OccurrenceCommand::NothingNew { fence, reason: "nothing".to_owned() };
        let mut days = Days::new();
        for _ in 0..3 {
            days.fails("model_key_refused", same);
            days.fails("model_key_refused", same);
            days.ends(succeed, None);
            assert_eq!(days.times(), 0);
            days.fails("model_key_refused", same);
            days.fails("model_key_refused", same);
            days.ends(nothing, None);
            assert_eq!(days.times(), 0);
            days.fails("model_key_refused", same);
            days.fails("model_key_refused", same);
            // Failures by hand do not count, a success by hand ends the row.
            days.by_hand(fail(same), Some("model_key_refused"));
            assert_eq!(days.times(), 2);
            days.by_hand(succeed, None);
            assert_eq!((days.action.state, days.times()), (ActionState::Scheduled, 0));
        }
        days.fails("model_key_refused", same);
        days.fails("model_key_refused", same);
        let reason = || Reason::new(ReasonCode::Cancelled, "a person cancelled it");
        days.ends(|_| OccurrenceCommand::Cancel { reason: reason() }, None);
        assert_eq!((days.action.state, days.times()), (ActionState::Scheduled, 2));
        days.fails("model_key_refused", same);
        assert_eq!(days.action.state, ActionState::Paused);
    }

    #[test]
    fn what_is_over_is_not_paused() {
        let mut days = Days::new();
        days.action = approved(&json!({"at": "2026-11-22T09:00:00Z"}));
        days.action.failures = Some(Failures {
            times: 2,
            code: "model_key_refused".to_owned(),
            cause: "refused".to_owned(),
            run_id: RunId::for_occurrence(days.action.id, noon()),
            at: noon(),
        });
        days.fails("model_key_refused", "refused");
        assert_eq!((days.action.state, &days.action.paused_because), (ActionState::Failed, &None));
    }
}
