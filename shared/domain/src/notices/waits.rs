//! What waits for a person without a run that has come to rest: an approval, an answer in a conversation, proposals.
//!
//! Whoever made it wait is often still there and answers at once. So nobody is told before [`PATIENCE`] has passed, and whether it still
//! waits is read again before anything is said. So the ways to answer need not know of notices. An approval forgets its record all the
//! same, which saves a look.

use jiff::SignedDuration;

use super::plan::{Event, Happening};
use super::{About, Cause, LeadsTo, NoticeKey, NoticeKind};
use crate::actions::Action;
use crate::agents::Agent;
use crate::ids::{ActionId, AgentId, RunId};

/// How long something waits before a person is told.
pub const PATIENCE: SignedDuration = SignedDuration::from_mins(10);

const APPROVAL: &str = "approval";
const AGENT: &str = "agent:";
const TURN: &str = "turn:";
const PROPOSALS: &str = "proposals:";

/// What waits. Each has a key of its own, from which it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// An action runs only after somebody has approved it.
    Approval(ActionId),
    /// Actions run only after somebody has approved them again, because their agent was changed.
    Agent(AgentId),
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
        if let Some(agent) = cause.strip_prefix(AGENT) {
            return agent.parse().ok().map(Self::Agent);
        }
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

/// Actions that were approved, and that are no longer what was approved after a change of their agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Withdrawn {
    /// How many there are, at least 1.
    pub actions: usize,
    /// One of them.
    pub one: ActionId,
}

/// Changes of an agent have withdrawn approvals of its actions. One notice is for all of them. `fields`: what was changed.
#[must_use]
pub fn agent_changed<'a>(
    agent: &Agent,
    fields: impl IntoIterator<Item = &'a str>,
    withdrawn: Withdrawn,
) -> Event {
    let mut fields: Vec<&str> = fields.into_iter().filter_map(in_words).collect();
    fields.sort_unstable();
    fields.dedup();
    let what = match fields.as_slice() {
        [] => "The agent was changed".to_owned(),
        [one] => format!("The agent has another {one}"),
        [first @ .., last] => {
            format!("The agent has another {} and another {last}", first.join(", another "))
        }
    };
    let (who, leads_to) = match withdrawn {
        Withdrawn { actions: 1, one } => (
            "One of its actions runs only after you have approved it".to_owned(),
            LeadsTo::Action { action_id: one },
        ),
        Withdrawn { actions, .. } => (
            format!("{actions} of its actions run only after you have approved them"),
            LeadsTo::Agent { agent_id: agent.agent_id },
        ),
    };
    let about = About::new(&agent.name, &format!("{what}. {who} again."), leads_to);
    event(None, format!("{AGENT}{}", agent.agent_id), about)
}

/// A field of an agent that approvals bind. Differences of an approval write it with `agent.` before it.
fn in_words(field: &str) -> Option<&'static str> {
    Some(match field.strip_prefix("agent.").unwrap_or(field) {
        "name" => "name",
        "goal" => "goal",
        "success_criteria" => "definition of success",
        "timeline" => "timeline",
        "instructions" => "text of instructions",
        "timezone" => "time zone",
        "docs_project_id" => "project of documents",
        "theme_project_id" => "project of a theme",
        _ => return None,
    })
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
    use crate::actions::{AgentBrief, ReasonCode, samples};
    use crate::agents::NewAgent;

    fn agent() -> Agent {
        let new = NewAgent { name: "Watch".into(), goal: "Watches prices".into(), ..NewAgent::default() };
        new.into_agent(AgentId::from_uuid(Uuid::from_u128(4)), samples::noon()).unwrap()
    }

    fn changed(fields: &[&str], actions: usize) -> Event {
        let one = ActionId::from_uuid(Uuid::from_u128(5));
        agent_changed(&agent(), fields.iter().copied(), Withdrawn { actions, one })
    }

    #[test]
    fn one_notice_of_a_changed_agent_says_what_was_changed_and_where_to_approve() {
        let one = changed(&["goal", "budget"], 1).about;
        assert_eq!(
            (one.title.as_str(), one.reason.as_str()),
            (
                "Watch",
                "The agent has another goal. One of its actions runs only after you have approved it again."
            )
        );
        assert_eq!(one.leads_to, LeadsTo::Action { action_id: ActionId::from_uuid(Uuid::from_u128(5)) });
        let many = changed(&["agent.name", "agent.goal", "name", "tools", "docs_project_id"], 12).about;
        assert_eq!(
            many.reason,
            "The agent has another goal, another name and another project of documents. 12 of its actions run only after you have \
             approved them again."
        );
        assert_eq!(many.leads_to, LeadsTo::Agent { agent_id: agent().agent_id });
        // Each field that approvals bind has words.
        let all = json!(AgentBrief::from(&agent()));
        for field in
            all.as_object().unwrap().keys().map(String::as_str).chain(["timezone", "docs_project_id"])
        {
            assert!(in_words(field).is_some(), "{field}");
        }
    }

    #[test]
    fn what_waits_is_read_from_its_key() {
        let action = samples::approved(&json!({"every": "1h"}));
        let run = RunId::from_uuid(Uuid::from_u128(9));
        for (event, is) in [
            (approval(&action), Waiting::Approval(action.id)),
            (turn(run, None, "Watch", "May it send a mail?"), Waiting::Turn(run)),
            (turn(run, Some(action.id), "Watch", ""), Waiting::Turn(run)),
            (proposals(run, None, "Watch"), Waiting::Proposals(run)),
            (changed(&["goal"], 1), Waiting::Agent(agent().agent_id)),
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
