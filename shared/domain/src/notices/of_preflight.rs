//! What is told of a pre-flight: the next run of an action will fail, unless a person mends something.

use super::plan::{Event, Happening};
use super::{About, Cause, LeadsTo, NoticeKey, NoticeKind};
use crate::actions::{Action, Preflight};

const CAUSE: &str = "preflight";

/// The event of a check. `before` is the action as it was before the check. None if the check says nothing new.
///
/// A person may mend the cause in a way that forgets what was found. Then the next run that succeeds ends the row.
#[must_use]
pub fn of_preflight(before: &Action, found: &Preflight) -> Option<Event> {
    let key = NoticeKey { kind: NoticeKind::Watchdog, action_id: Some(before.id), cause: Cause::new(CAUSE) };
    let leads_to = LeadsTo::Action { action_id: before.id };
    let had_problems = before.preflight.as_ref().is_some_and(|preflight| !preflight.problems.is_empty());
    let happening = if !found.new_codes(before.preflight.as_ref()).is_empty() {
        Happening::Happened
    } else if had_problems && found.problems.is_empty() {
        Happening::Over
    } else {
        return None;
    };
    let about = match happening {
        Happening::Happened => {
            About::new(&format!("the next run will fail: {}", before.title), &found.words(), leads_to)
        }
        Happening::Over => About::new(
            &before.title,
            "Nothing is known any more that would make its next run fail.",
            leads_to,
        ),
    };
    Some(Event::new(key, happening, about))
}

/// Whether this key is that of a pre-flight.
#[must_use]
pub(super) fn is_preflight(key: &NoticeKey) -> bool {
    key.kind == NoticeKind::Watchdog && key.cause.as_str() == CAUSE
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use serde_json::json;

    use super::*;
    use crate::actions::{PreflightCode, PreflightProblem, samples};

    fn found(hours: i64, codes: &[PreflightCode]) -> Preflight {
        let due_at = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hours);
        let problem =
            |code: &PreflightCode| PreflightProblem { code: *code, text: format!("it is {}", code.as_str()) };
        Preflight { checked_at: due_at, due_at, problems: codes.iter().map(problem).collect() }
    }

    fn said(before: Option<Preflight>, found: &Preflight) -> String {
        let action = Action { preflight: before, ..samples::approved(&json!({"every": "1h"})) };
        of_preflight(&action, found).map_or_else(String::new, |event| {
            assert!(is_preflight(&event.key));
            let before = if event.happening == Happening::Over { "" } else { "the next run will fail: " };
            assert_eq!(event.about.title, format!("{before}{}", action.title));
            format!("{:?}: {}", event.happening, event.about.reason)
        })
    }

    #[test]
    fn each_problem_is_told_once_for_a_due_time_and_its_end_once() {
        use PreflightCode::{CeilingReached, ModelKeyRefused};
        let will_fail = |why: &str| format!("Happened: {why}");
        let over = "Over: Nothing is known any more that would make its next run fail.".to_owned();
        let refused = || Some(found(1, &[ModelKeyRefused]));
        for (before, now, expected) in [
            (None, found(1, &[]), String::new()),
            (None, found(1, &[ModelKeyRefused]), will_fail("it is model_key_refused")),
            (refused(), found(1, &[ModelKeyRefused]), String::new()),
            (refused(), found(2, &[ModelKeyRefused]), will_fail("it is model_key_refused")),
            (
                refused(),
                found(1, &[ModelKeyRefused, CeilingReached]),
                will_fail("it is model_key_refused; it is ceiling_reached"),
            ),
            (Some(found(1, &[ModelKeyRefused, CeilingReached])), found(1, &[CeilingReached]), String::new()),
            (refused(), found(1, &[]), over.clone()),
            (refused(), found(2, &[]), over.clone()),
            (Some(found(1, &[])), found(2, &[]), String::new()),
        ] {
            assert_eq!(said(before, &now), expected);
        }
    }
}
