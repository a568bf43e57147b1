//! What waits for a person without a run that has come to rest: an approval, an answer in a conversation, proposals.
//!
//! Whoever made it wait is often still there and answers at once. So nobody is told before [`PATIENCE`] has passed, and whether it still
//! waits is read again before anything is said. So the ways to answer need not know of notices. An approval forgets its record all the
//! same, which saves a look.

use jiff::SignedDuration;

use super::plan::{Event, Happening};
use super::{About, Cause, LeadsTo, NoticeKey, NoticeKind};
use crate::actions::Action;
use crate::ids::{ActionId, RunId};

/// How long something waits before a person is told.
pub const PATIENCE: SignedDuration = SignedDuration::from_mins(10);

const APPROVAL: &str = "approval";
const TURN: &str = "turn:";
const PROPOSALS: &str = "proposals:";

/// What waits. Each has a key of its own, from which it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// An action runs only after somebody has approved it.
    Approval(ActionId),
    /// A turn of a conversation goes on after an answer.
    Turn(RunId),
    /// A turn has proposed something.
    Proposals(RunId),
}

impl Waiting {
    /// `None` if the key is about a run of an action, or about something that needs no answer.
    #[must_use]
    pub fn of(key: &NoticeKey) -> Option<Self> {
        if key.kind != NoticeKind::NeedsAnswer {
            return None;
        }
        let cause = key.cause.as_str();
        if cause == APPROVAL {
            return key.action_id.map(Self::Approval);
        }
        let run = |prefix| cause.strip_prefix(prefix)?.parse().ok();
        run(TURN).map(Self::Turn).or_else(|| run(PROPOSALS).map(Self::Proposals))
    }
}

/// An action waits for its first or another approval.
#[must_use]
pub fn approval(action: &Action) -> Event {
    let about = About::new(
        &action.title,
        "It runs only after you have approved it.",
        LeadsTo::Action { action_id: action.id },
    );
    event(Some(action.id), APPROVAL.to_owned(), about)
}

/// A turn waits for an answer. `who`: the agent; `action`: what the conversation is about.
#[must_use]
pub fn turn(run: RunId, action: Option<ActionId>, who: &str, why: &str) -> Event {
    event(action, format!("{TURN}{run}"), About::new(who, why, LeadsTo::Run { run_id: run }))
}

/// What a turn has proposed waits.
#[must_use]
pub fn proposals(run: RunId, action: Option<ActionId>, who: &str) -> Event {
    let about = About::new(who, "What it proposes waits for your yes.", LeadsTo::Run { run_id: run });
    event(action, format!("{PROPOSALS}{run}"), about)
}

fn event(action_id: Option<ActionId>, cause: String, about: About) -> Event {
    let key = NoticeKey { kind: NoticeKind::NeedsAnswer, action_id, cause: Cause::new(&cause) };
    Event::new(key, Happening::Happened, about)
}

/// What is noted when it is said that something waits. It began to wait after everything before it was answered, so it is a new question.
#[must_use]
pub fn again(event: &Event) -> [Event; 2] {
    [Event { happening: Happening::Over, ..event.clone() }, event.clone()]
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::actions::{ReasonCode, samples};

    #[test]
    fn what_waits_is_read_from_its_key() {
        let action = samples::approved(&json!({"every": "1h"}));
        let run = RunId::from_uuid(Uuid::from_u128(9));
        for (event, is) in [
            (approval(&action), Waiting::Approval(action.id)),
            (turn(run, None, "Watch", "May it send a mail?"), Waiting::Turn(run)),
            (turn(run, Some(action.id), "Watch", ""), Waiting::Turn(run)),
            (proposals(run, None, "Watch"), Waiting::Proposals(run)),
        ] {
            assert_eq!(Waiting::of(&event.key), Some(is), "{}", event.key);
            let failed = NoticeKey { kind: NoticeKind::Failed, ..event.key };
            assert_eq!(Waiting::of(&failed), None);
        }
        assert_eq!(approval(&action).key.to_string(), format!("needs_answer/{}/approval", action.id));
        let of_nobody = NoticeKey { action_id: None, ..approval(&action).key };
        assert_eq!(Waiting::of(&of_nobody), None);
    }

    #[test]
    fn questions_of_runs_of_actions_are_told_apart() {
        let action_id = Some(samples::approved(&json!({"every": "1h"})).id);
        for code in ReasonCode::ALL {
            let key = NoticeKey { kind: NoticeKind::NeedsAnswer, action_id, cause: Cause::new(&code.code()) };
            assert_eq!(Waiting::of(&key), None, "{key}");
        }
    }
}
