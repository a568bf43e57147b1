//! What a person is told of a run that has come to rest.

use super::of_preflight::is_preflight;
use super::plan::{Event, Happening};
use super::waits::Waiting;
use super::{About, Cause, LeadsTo, NoticeKey, NoticeKind};
use crate::actions::{Action, Occurrence, OccurrenceState, ReasonCode};

/// The cause of a due time that was missed.
pub(super) const MISSED: &str = "missed";

/// The events of an occurrence at rest, in the order in which they are noted.
///
/// `action` is its action as it is now. `open` are the keys of this action whose rows are not over. `others_wait`: another run of the
/// action waits for an answer, so questions of the action are still open.
#[must_use]
pub fn of_run(action: &Action, occurrence: &Occurrence, open: &[NoticeKey], others_wait: bool) -> Vec<Event> {
    let leads_to = LeadsTo::Run { run_id: occurrence.run_id };
    let has_paused = action.was_paused_by(occurrence.run_id);
    let reason = match has_paused {
        true => format!("It is {}. Mend the cause, and resume it.", action.paused_words()),
        false => occurrence.reason.clone().unwrap_or_default(),
    };
    let about = About { has_paused, ..About::new(&action.title, &reason, leads_to) };
    let over = |key: &NoticeKey| match is_preflight(key) {
        true => About::new(&action.title, "Its run has not failed.", leads_to),
        false => about.clone(),
    };
    let mut events: Vec<Event> = open
        .iter()
        .filter(|key| key.action_id == Some(occurrence.action_id))
        .filter(|key| ends(key, occurrence, others_wait))
        .map(|key| Event::new(key.clone(), Happening::Over, over(key)))
        .collect();
    if let Some(kind) = kind_of(occurrence.state) {
        let code = match (occurrence.state, &occurrence.error_code, occurrence.reason_code) {
            (OccurrenceState::Failed, Some(code), _) => code.clone(),
            (OccurrenceState::Missed, ..) => MISSED.to_owned(),
            // Outputs of every run are one row, whatever was remarked about them.
            (OccurrenceState::Succeeded | OccurrenceState::NothingNew, ..) | (_, _, None) => {
                occurrence.state.as_str().to_owned()
            }
            // The run that finds that the action is no longer what was approved, and the due times after it, are one thing.
            (OccurrenceState::Held, _, Some(ReasonCode::Drifted)) => ReasonCode::NeedsApproval.code(),
            (_, _, Some(code)) => code.code(),
        };
        let key = NoticeKey { kind, action_id: Some(occurrence.action_id), cause: Cause::new(&code) };
        events.push(Event { is_pressing: has_paused, ..Event::new(key, Happening::Happened, about) });
    }
    events
}

/// Which kind of notice an occurrence in this state is. None: nobody is told.
const fn kind_of(state: OccurrenceState) -> Option<NoticeKind> {
    match state {
        OccurrenceState::Waiting => Some(NoticeKind::NeedsAnswer),
        // Nobody knows whether its effect happened, so a person must look.
        OccurrenceState::Failed | OccurrenceState::Missed | OccurrenceState::Unknown => {
            Some(NoticeKind::Failed)
        }
        OccurrenceState::Held => Some(NoticeKind::Held),
        OccurrenceState::Succeeded => Some(NoticeKind::Succeeded),
        OccurrenceState::NothingNew => Some(NoticeKind::NothingNew),
        OccurrenceState::Due
        | OccurrenceState::Claimed
        | OccurrenceState::Running
        | OccurrenceState::Unchanged
        | OccurrenceState::Skipped
        | OccurrenceState::Cancelled => None,
    }
}

/// Whether this occurrence ends a row of its action.
fn ends(key: &NoticeKey, occurrence: &Occurrence, others_wait: bool) -> bool {
    let has_succeeded = matches!(occurrence.state, OccurrenceState::Succeeded | OccurrenceState::NothingNew);
    let has_run = occurrence.started_at.is_some();
    match key.kind {
        NoticeKind::Failed => has_succeeded,
        // What runs is no longer held.
        NoticeKind::Held => has_run && occurrence.state != OccurrenceState::Held,
        // An approval, a turn or a proposal. A run of the action does not answer these.
        NoticeKind::NeedsAnswer if Waiting::of(key).is_some() => false,
        // Its own question was answered, or nobody can answer it any more. If it asks a second one, that is a new question.
        NoticeKind::NeedsAnswer => occurrence.has_told_a_question() && !others_wait,
        // The run has not failed, although it was said that it will.
        NoticeKind::Watchdog => is_preflight(key) && has_succeeded,
        NoticeKind::Budget | NoticeKind::Succeeded | NoticeKind::NothingNew => false,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::actions::{Action, Reason, samples};
    use crate::ids::RunId;
    use crate::work::ActionState;

    const STATES: [OccurrenceState; 13] = OccurrenceState::ALL;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_795_251_600 + seconds).unwrap()
    }

    fn action() -> Action {
        samples::approved(&json!({"every": "1h"}))
    }

    fn occurrence(state: OccurrenceState) -> Occurrence {
        let run = RunId::from_uuid(Uuid::from_u128(9));
        let mut occurrence = Occurrence::manual(&action(), run, at(0));
        (occurrence.state, occurrence.fence, occurrence.started_at) = (state, 3, Some(at(1)));
        occurrence
    }

    fn key(kind: NoticeKind, cause: &str) -> NoticeKey {
        let action_id = Some(action().id);
        NoticeKey { kind, action_id, cause: Cause::new(cause) }
    }

    fn said(events: &[Event]) -> Vec<String> {
        events.iter().map(|event| format!("{:?} {}", event.happening, event.key)).collect()
    }

    #[test]
    fn each_state_is_told_once_and_those_in_between_are_not() {
        for state in STATES {
            let mut of = occurrence(state);
            let Some(tells) = of.untold() else {
                assert!(kind_of(state).is_none(), "{state:?}");
                continue;
            };
            assert!(kind_of(state).is_some(), "{state:?}");
            of.told = Some(tells);
            assert_eq!(of.untold(), None, "{state:?}");
        }
        // A second question of the same run is another one, and so is a cancellation of a question.
        let mut asked = occurrence(OccurrenceState::Waiting);
        asked.told = asked.untold();
        assert!(asked.has_told_a_question());
        asked.fence = 4;
        assert_eq!(asked.untold().as_deref(), Some("waiting@4"));
        asked.state = OccurrenceState::Cancelled;
        assert_eq!(asked.untold().as_deref(), Some("cancelled"));
        asked.state = OccurrenceState::Running;
        assert_eq!(asked.untold(), None);
    }

    #[test]
    fn a_success_ends_failures_and_any_run_ends_what_was_held() {
        let open = [key(NoticeKind::Failed, "overloaded"), key(NoticeKind::Held, "drifted")];
        let events = of_run(&action(), &occurrence(OccurrenceState::Succeeded), &open, false);
        let id = action().id;
        assert_eq!(
            said(&events),
            [
                format!("Over failed/{id}/overloaded"),
                format!("Over held/{id}/drifted"),
                format!("Happened succeeded/{id}/succeeded"),
            ]
        );
        let mut failed = occurrence(OccurrenceState::Failed);
        failed.error_code = Some("overloaded".to_owned());
        let events = of_run(&action(), &failed, &open, false);
        assert_eq!(
            said(&events),
            [format!("Over held/{id}/drifted"), format!("Happened failed/{id}/overloaded")]
        );
        // What was held again has not run.
        let mut held = occurrence(OccurrenceState::Held);
        (held.started_at, held.reason_code) = (None, Some(ReasonCode::Drifted));
        let again = said(&of_run(&action(), &held, &open, false));
        assert_eq!(again, [format!("Happened held/{id}/needs_approval")]);
        held.reason_code = Some(ReasonCode::NeedsApproval);
        assert_eq!(said(&of_run(&action(), &held, &open, false)), again);
        // Rows of other actions stay.
        let foreign = NoticeKey { action_id: None, ..key(NoticeKind::Failed, "overloaded") };
        let events = of_run(&action(), &occurrence(OccurrenceState::NothingNew), &[foreign], false);
        assert_eq!(said(&events), [format!("Happened nothing_new/{id}/nothing_new")]);
    }

    #[test]
    fn the_failure_that_pauses_its_action_says_so_at_once() {
        let mut failed = occurrence(OccurrenceState::Failed);
        failed.error_code = Some("model_key_refused".to_owned());
        let because = Reason::new(ReasonCode::EqualFailures, "after three equal failures: the key is wrong");
        let mut paused = Action { state: ActionState::Paused, paused_because: Some(because), ..action() };
        let failures = json!({"times": 3, "code": "model_key_refused", "cause": "", "run_id": failed.run_id, "at": at(0)});
        paused.failures = Some(serde_json::from_value(failures).unwrap());
        let open = [key(NoticeKind::Failed, "model_key_refused")];
        let events = of_run(&paused, &failed, &open, false);
        assert_eq!(said(&events), [format!("Happened failed/{}/model_key_refused", paused.id)]);
        assert!(events[0].is_pressing && events[0].about.has_paused);
        assert_eq!(
            events[0].about.reason,
            "It is paused after three equal failures: the key is wrong. Mend the cause, and resume it."
        );
        // Another run that fails meanwhile, by hand, has not paused it.
        let other = Occurrence { run_id: RunId::from_uuid(Uuid::from_u128(10)), ..failed.clone() };
        let resumed = action();
        for (action, failed) in [(&paused, &other), (&resumed, &failed)] {
            let events = of_run(action, failed, &open, false);
            assert!(
                !events[0].is_pressing && !events[0].about.has_paused && events[0].about.reason.is_empty(),
                "{events:?}"
            );
        }
    }

    #[test]
    fn a_question_is_over_when_no_run_of_its_action_waits() {
        let open = [key(NoticeKind::NeedsAnswer, "asked")];
        let id = action().id;
        let mut ended = occurrence(OccurrenceState::Cancelled);
        let of_others = [super::super::waits::approval(&action()).key];
        let told = Occurrence { told: Some("waiting@2".to_owned()), ..ended.clone() };
        assert_eq!(said(&of_run(&action(), &told, &of_others, false)), Vec::<String>::new());
        // Nobody was told of a question of this run.
        assert_eq!(said(&of_run(&action(), &ended, &open, false)), Vec::<String>::new());
        ended.told = Some("waiting@2".to_owned());
        assert_eq!(said(&of_run(&action(), &ended, &open, true)), Vec::<String>::new());
        assert_eq!(said(&of_run(&action(), &ended, &open, false)), [format!("Over needs_answer/{id}/asked")]);
        // A second question of the same run.
        let mut again = occurrence(OccurrenceState::Waiting);
        again.told = Some("waiting@2".to_owned());
        let reason = Reason::new(ReasonCode::Asked, "Which \u{202e}one?\nX");
        (again.reason_code, again.reason) = (Some(reason.code), Some(reason.text));
        let events = of_run(&action(), &again, &open, false);
        assert_eq!(
            said(&events),
            [format!("Over needs_answer/{id}/asked"), format!("Happened needs_answer/{id}/asked")]
        );
        assert_eq!(events[1].about.reason, "Which \u{202e}one? X");
        assert_eq!(events[1].about.leads_to, LeadsTo::Run { run_id: again.run_id });
    }
}
