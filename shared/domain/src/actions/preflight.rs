//! The pre-flight: before a due time, the platform checks what would make its run fail. It calls no model.
//!
//! There are at most two checks of a due time: twelve hours before it, if the due time before it is more than twelve hours away, and
//! five minutes before it, if the due time before it is at least an hour away. For the first due time, the approval counts in place
//! of an earlier due time. A check that would begin less than four minutes before the due time is left out, so that it never delays
//! the run.

use jiff::{SignedDuration, Timestamp};

use super::action::Action;
use super::marks::{Preflight, PreflightCode};
use super::occurrence::Occurrence;
use crate::work::ActionState;

/// When the first check is made, and how far away the earlier due time must be.
pub const EARLY: SignedDuration = SignedDuration::from_hours(12);

/// When the second check is made.
pub const SHORTLY: SignedDuration = SignedDuration::from_mins(5);

/// How far away the earlier due time must be for the second check.
pub const SHORTLY_IF: SignedDuration = SignedDuration::from_hours(1);

/// A check does not begin later than this before the run. It is longer than the lease of a sweep: if the executor of a check dies, the
/// action is found again before its run.
pub const AT_LEAST: SignedDuration = SignedDuration::from_mins(4);

impl PreflightCode {
    /// As in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Drifted => "drifted",
            Self::KeyUnreadable => "key_unreadable",
            Self::ModelKeyRefused => "model_key_refused",
            Self::ModelNotConfigured => "model_not_configured",
            Self::ToolUnavailable => "tool_unavailable",
            Self::CallRefused => "call_refused",
            Self::SecretRefused => "secret_refused",
            Self::CeilingReached => "ceiling_reached",
            Self::QuotaExceeded => "quota_exceeded",
        }
    }
}

impl Preflight {
    /// The problems as one text.
    #[must_use]
    pub fn words(&self) -> String {
        self.problems.iter().map(|problem| problem.text.as_str()).collect::<Vec<_>>().join("; ")
    }

    /// The codes that an earlier check of the same due time has not found, in order.
    #[must_use]
    pub fn new_codes(&self, earlier: Option<&Self>) -> Vec<PreflightCode> {
        let known = |code| {
            earlier.is_some_and(|earlier| {
                earlier.due_at == self.due_at && earlier.problems.iter().any(|problem| problem.code == code)
            })
        };
        let mut codes: Vec<PreflightCode> = self.problems.iter().map(|problem| problem.code).collect();
        codes.sort_unstable();
        codes.dedup();
        codes.retain(|code| !known(*code));
        codes
    }
}

/// What becomes of a check whose moment has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueCheck {
    /// The due time that it is about.
    pub due_at: Timestamp,
    /// Its moment. Checks up to this moment are done afterwards.
    pub moment: Timestamp,
    /// Whether the check is left out, because the due time is too near.
    pub is_too_late: bool,
}

impl Action {
    /// The moments of the checks of the next due time, earliest first.
    fn preflight_moments(&self) -> [Option<Timestamp>; 2] {
        let earlier = self.anchor.max(self.last_due);
        let (Some(due_at), Some(earlier)) = (self.next_due, earlier) else { return [None, None] };
        let between = due_at.duration_since(earlier);
        let early = (between > EARLY).then(|| due_at - EARLY);
        let shortly = (between >= SHORTLY_IF).then(|| due_at - SHORTLY);
        [early, shortly]
    }

    /// When the next check is to be made. `None` if the action does not wait for a due time, or if all checks of it are done.
    #[must_use]
    pub fn preflight_at(&self) -> Option<Timestamp> {
        if !self.may_be_checked() {
            return None;
        }
        let is_open = |moment: &Timestamp| self.preflighted.is_none_or(|done| done < *moment);
        self.preflight_moments().into_iter().flatten().find(is_open)
    }

    /// When an executor should look at it: when something may begin ([`Action::wake_at`]), or when a check is to be made.
    #[must_use]
    pub fn look_at(&self, live: Option<&Occurrence>) -> Option<Timestamp> {
        self.wake_at(live).into_iter().chain(self.preflight_at()).min()
    }

    fn may_be_checked(&self) -> bool {
        let waits = self.state == ActionState::Scheduled && self.live_run.is_none() && self.queued == 0;
        waits && self.approval.is_some() && self.schedule.is_some()
    }

    /// The check whose moment has come at `now`.
    #[must_use]
    pub fn preflight_due(&self, now: Timestamp) -> Option<DueCheck> {
        let (first, due_at, schedule) = (self.preflight_at()?, self.next_due?, self.schedule.as_ref()?);
        let moments = self.preflight_moments().into_iter().flatten();
        let moment = moments.filter(|moment| *moment <= now && first <= *moment).max()?;
        let left = schedule.wake_at(self.id, due_at).duration_since(now);
        Some(DueCheck { due_at, moment, is_too_late: left < AT_LEAST })
    }

    /// Notes that a check is done. `found`: its problems, if it was made and has found any.
    pub(super) fn checked(&mut self, check: DueCheck, found: Option<Preflight>) {
        self.preflighted = self.preflighted.max(Some(check.moment));
        self.preflight = found.filter(|found| !found.problems.is_empty());
        // The entry of the index was that of the check. Nothing has come yet.
        self.forget_found();
    }

    /// Forgets what is no longer so after a change from `before`.
    pub(super) fn forget_preflight(&mut self, before: &Self) {
        let waits = matches!(self.state, ActionState::Scheduled | ActionState::InProgress);
        if self.next_due != before.next_due || !waits {
            self.preflight = None;
        }
        if self.next_due.is_none() {
            self.preflighted = None;
        }
        let is_approved_again = self.approval != before.approval;
        if let (true, Some(preflight)) = (is_approved_again, &mut self.preflight) {
            preflight.problems.retain(|problem| problem.code != PreflightCode::Drifted);
            if preflight.problems.is_empty() {
                self.preflight = None;
            }
            // The other checks are made again at once.
            self.preflighted = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::PreflightProblem;
    use super::super::samples::{approved, noon, ts};
    use super::super::{Command, plan_due, transition};
    use super::*;

    fn checked(action: &Action, now: Timestamp, found: Option<Preflight>) -> Action {
        let check = action.preflight_due(now).unwrap();
        transition(action, Command::Preflighted { check, found: found.as_ref() }, now).unwrap()
    }

    fn refused(action: &Action, now: Timestamp) -> Preflight {
        let problem =
            PreflightProblem { code: PreflightCode::ModelKeyRefused, text: "the key is refused".to_owned() };
        Preflight { checked_at: now, due_at: action.next_due.unwrap(), problems: vec![problem] }
    }

    /// The moments of all checks until `end`, and the due times.
    fn moments(schedule: serde_json::Value, end: Timestamp) -> (Vec<Timestamp>, Vec<Timestamp>) {
        let mut action = approved(&schedule);
        let (mut checks, mut fires) = (Vec::new(), Vec::new());
        while let Some(wake) = action.look_at(None).filter(|wake| *wake <= end) {
            if action.preflight_due(wake).is_some() {
                checks.push(wake);
                action = checked(&action, wake, None);
                continue;
            }
            let plan = plan_due(&action, wake, None, 1);
            fires.push(plan.decided[0].due_at);
            assert!(fires.last().unwrap() <= &wake, "nothing starts before its due time");
            action = transition(&action, Command::Planned { plan: &plan }, wake).unwrap();
            let run = action.live_run.unwrap();
            let outcome = super::super::ExecutionResult::Succeeded;
            action = transition(&action, Command::OccurrenceEnded { run, outcome }, wake).unwrap();
        }
        (checks, fires)
    }

    #[test]
    fn a_daily_action_is_checked_twice_before_each_due_time() {
        let (checks, fires) = moments(json!({"cron": "0 9 * * *"}), ts("2026-11-24T12:00:00Z"));
        let expected =
            ["2026-11-21T21:00:00Z", "2026-11-22T08:55:00Z", "2026-11-22T21:00:00Z", "2026-11-23T08:55:00Z"];
        assert_eq!(checks[..4], expected.map(ts));
        assert_eq!(fires, ["2026-11-22T09:00:00Z", "2026-11-23T09:00:00Z", "2026-11-24T09:00:00Z"].map(ts));
    }

    #[test]
    fn dense_schedules_have_fewer_checks() {
        let day = noon() + SignedDuration::from_hours(24);
        for (every, checks) in [("12h", 2), ("1h", 24), ("59m", 0), ("1m", 0)] {
            assert_eq!(moments(json!({"every": every}), day).0.len(), checks, "{every}");
        }
        let month = noon() + SignedDuration::from_hours(24 * 30);
        // The first check of the due time after the month is made, too.
        assert_eq!(moments(json!({"every": "13h"}), month).0.len(), 30 * 24 / 13 * 2 + 1);
    }

    #[test]
    fn a_year_of_days_has_two_checks_for_each() {
        let (checks, fires) = moments(
            json!({"cron": "30 2 * * *", "timezone": "Europe/Berlin"}),
            noon() + SignedDuration::from_hours(24 * 365),
        );
        assert_eq!((fires.len(), checks.len()), (365, 730));
    }

    #[test]
    fn a_check_that_comes_late_covers_the_earlier_one_or_is_left_out() {
        let action = approved(&json!({"cron": "0 9 * * *"}));
        assert_eq!(action.preflight_due(ts("2026-11-21T20:59:59Z")), None);
        let check = action.preflight_due(ts("2026-11-22T08:56:00Z")).unwrap();
        let due_at = ts("2026-11-22T09:00:00Z");
        assert_eq!(check, DueCheck { due_at, moment: ts("2026-11-22T08:55:00Z"), is_too_late: false });
        assert!(action.preflight_due(ts("2026-11-22T08:56:01Z")).unwrap().is_too_late);
        let done = checked(&action, ts("2026-11-22T08:56:01Z"), None);
        assert_eq!((done.preflight_at(), done.look_at(None)), (None, Some(due_at)));
    }

    #[test]
    fn what_was_found_is_kept_until_it_is_mended_or_the_due_time_comes() {
        let action = approved(&json!({"cron": "0 9 * * *"}));
        let evening = ts("2026-11-21T21:00:00Z");
        let found = refused(&action, evening);
        assert_eq!(found.new_codes(None), [PreflightCode::ModelKeyRefused]);
        let action = checked(&action, evening, Some(found.clone()));
        assert_eq!(action.preflight, Some(found.clone()));
        assert_eq!(found.new_codes(action.preflight.as_ref()), []);
        let morning = ts("2026-11-22T08:55:00Z");
        assert_eq!(action.preflight_at(), Some(morning));
        assert_eq!(checked(&action, morning, None).preflight, None);
        let again = checked(&action, morning, Some(refused(&action, morning)));
        let nine = ts("2026-11-22T09:00:00Z");
        let plan = plan_due(&again, nine, None, 40);
        let due = transition(&again, Command::Planned { plan: &plan }, nine).unwrap();
        assert_eq!((due.preflight, due.preflighted), (None, Some(morning)));
        let paused = transition(&action, Command::Pause, morning).unwrap();
        assert_eq!((paused.preflight.as_ref(), paused.preflight_at()), (None, None));
        // A check of another due time than the next one changes nothing.
        let stale = DueCheck { due_at: morning, moment: morning, is_too_late: false };
        let command = Command::Preflighted { check: stale, found: Some(&found) };
        assert_eq!(transition(&paused, command, morning).unwrap(), paused);
    }
}
