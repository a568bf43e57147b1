//! Why an action does not run at its due times, as a code and as a sentence.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::action::Action;
use super::approval::Briefing;
use super::why::show;
use crate::agents::{Agent, AgentStatus};
use crate::work::ActionState;

/// Why nothing runs, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = NotRunningCode)]
pub enum IdleCode {
    AccountStopped,
    AgentPaused,
    AgentArchived,
    Paused,
    /// A person was asked and has not answered.
    NeedsApproval,
    /// The agent or a tool has changed since the action was approved.
    Drifted,
    /// No person has approved it, or the approval was withdrawn by a change.
    NotApproved,
}

/// Why an action does not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = ReasonNotToRun)]
pub struct Idle {
    pub code: IdleCode,
    /// For people.
    #[schema(example = "The agent is paused.")]
    pub text: String,
}

impl Idle {
    fn new(code: IdleCode, text: &str) -> Self {
        Self { code, text: text.to_owned() }
    }

    /// The first reason why the due times of an action do not run now. That the account is stopped is the last one. None if they run, or if the
    /// action has no due times.
    #[must_use]
    pub fn of(action: &Action, agent: &Agent, stopped_at: Option<Timestamp>) -> Option<Self> {
        action.schedule.as_ref()?;
        match (action.state, agent.status) {
            (ActionState::Completed | ActionState::Failed | ActionState::Dismissed, _) => None,
            // Of what nobody has approved, nobody expects anything while its agent is archived.
            (ActionState::Defined, AgentStatus::Archived) => None,
            _ => Self::all(action, agent, stopped_at).into_iter().next(),
        }
    }

    /// All reasons why nothing of an action runs by itself now. Those of its agent and account also hold for runs by hand.
    #[must_use]
    pub fn all(action: &Action, agent: &Agent, stopped_at: Option<Timestamp>) -> Vec<Self> {
        if action.state == ActionState::Dismissed {
            return Vec::new();
        }
        let of_agent = match agent.status {
            AgentStatus::Active => None,
            AgentStatus::Paused => Some(Self::new(IdleCode::AgentPaused, "The agent is paused.")),
            AgentStatus::Archived => Some(Self::new(IdleCode::AgentArchived, "The agent is archived.")),
        };
        let of_account = stopped_at.map(|at| {
            let stopped = format!("Everything was stopped {}.", show(action.zone_or(&TimeZone::UTC), at));
            Self::new(IdleCode::AccountStopped, &stopped)
        });
        let own = Self::own(action, agent);
        let all = match own {
            // A person must approve it in any case.
            Some(Self { code: IdleCode::NotApproved, .. }) => [own, of_agent, of_account],
            _ => [of_agent, own, of_account],
        };
        all.into_iter().flatten().collect()
    }

    /// The reason in the action itself. Only of an action with a schedule.
    fn own(action: &Action, agent: &Agent) -> Option<Self> {
        let told = |code, text: &str| Some(Self::new(code, text));
        let schedule = action.schedule.as_ref()?;
        match action.state {
            ActionState::Completed | ActionState::Failed | ActionState::Dismissed => None,
            ActionState::Defined if action.anchor.is_none() => match action.last_due {
                None => told(IdleCode::NotApproved, "The action is not approved yet."),
                Some(_) => told(IdleCode::NotApproved, "The action has changed, and must be approved again."),
            },
            ActionState::Paused => {
                let since = action.paused_at.map(|at| show(schedule.time_zone(), at)).unwrap_or_default();
                let text = match (&action.paused_because, action.paused_at) {
                    (Some(because), Some(_)) => format!("The action was paused {since} {}.", because.text),
                    (Some(because), None) => format!("The action is paused {}.", because.text),
                    (None, Some(_)) => format!("You paused the action {since}."),
                    (None, None) => "The action is paused.".to_owned(),
                };
                Some(Self { code: IdleCode::Paused, text })
            }
            ActionState::NeedsApproval => {
                told(IdleCode::NeedsApproval, "The action waits for a person's answer.")
            }
            _ if action.approval.is_some() && !action.is_approved(&Briefing::of(action, agent)) => told(
                IdleCode::Drifted,
                "The agent or a tool has changed since the action was approved. A person must approve it again.",
            ),
            _ => None,
        }
    }
}

impl Action {
    /// The first due time from `from` on that is not decided. Of an action that is not approved, it is the one that it would have if it were
    /// approved `now`.
    #[must_use]
    pub fn undecided(&self, from: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let instant = jiff::SignedDuration::from_nanos(1);
        let before = from.checked_sub(instant).unwrap_or(Timestamp::MIN);
        let schedule = self.schedule.as_ref()?;
        match (self.next_due, self.anchor) {
            (Some(next), _) if next >= from => Some(next),
            (Some(_), Some(anchor)) => schedule.next_after(anchor, before),
            (None, None) if self.state == ActionState::Defined => schedule.next_after(now, before.max(now)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::super::approval::approval_hash;
    use super::super::reason::{Reason, ReasonCode};
    use super::super::samples::{defined, noon};
    use super::super::state::{Command, transition};
    use super::*;
    use crate::agents::NewAgent;
    use crate::ids::AgentId;

    fn told(action: &Action, agent: &Agent, is_stopped: bool) -> String {
        Idle::of(action, agent, is_stopped.then(noon)).map_or("-".to_owned(), |idle| idle.text)
    }

    #[test]
    fn each_reason_is_told_and_what_runs_has_none() {
        let agent = NewAgent { name: "Watch".into(), goal: "Watches prices".into(), ..NewAgent::default() };
        let agent = agent.into_agent(AgentId::from_uuid(Uuid::from_u128(1)), noon()).unwrap();
        let draft = defined(&json!({"cron": "0 9 * * *", "timezone": "Europe/Berlin"}));
        let briefing = Briefing::of(&draft, &agent);
        let hash = approval_hash(&draft, &briefing);
        let daily =
            transition(&draft, Command::Approve { hash: &hash, briefing: &briefing }, noon()).unwrap();
        assert_eq!(told(&daily, &agent, false), "-");
        assert_eq!(told(&daily, &agent, true), "Everything was stopped at 2026-11-21 13:00 (Europe/Berlin).");
        for (status, text) in
            [(AgentStatus::Paused, "The agent is paused."), (AgentStatus::Archived, "The agent is archived.")]
        {
            assert_eq!(told(&daily, &Agent { status, ..agent.clone() }, false), text);
        }
        let paused = transition(&daily, Command::Pause, noon()).unwrap();
        assert_eq!(
            told(&paused, &agent, false),
            "You paused the action at 2026-11-21 13:00 (Europe/Berlin)."
        );
        // A second pause changes nothing, and a resume forgets the time.
        let later = noon() + jiff::SignedDuration::from_hours(1);
        assert_eq!(transition(&paused, Command::Pause, later).unwrap(), paused);
        let resumed = transition(&paused, Command::Resume, later).unwrap();
        assert_eq!((resumed.paused_at, told(&resumed, &agent, false)), (None, "-".to_owned()));
        let earlier = Action { paused_at: None, ..paused.clone() };
        assert_eq!(told(&earlier, &agent, false), "The action is paused.");
        let because =
            Reason::new(ReasonCode::EqualFailures, "after three failures with the same cause: no key");
        let failed = Action { paused_because: Some(because), ..paused.clone() };
        assert_eq!(
            told(&failed, &agent, false),
            "The action was paused at 2026-11-21 13:00 (Europe/Berlin) after three failures with the same cause: no key."
        );
        let asked = Action { state: ActionState::NeedsApproval, ..daily.clone() };
        assert_eq!(told(&asked, &agent, false), "The action waits for a person's answer.");
        let other = Agent { goal: "Another goal".to_owned(), ..agent.clone() };
        assert!(told(&daily, &other, false).contains("has changed since the action was approved"));

        assert_eq!(told(&draft, &agent, true), "The action is not approved yet.");
        let withdrawn = Action { last_due: Some(noon()), ..draft.clone() };
        assert_eq!(told(&withdrawn, &agent, false), "The action has changed, and must be approved again.");
        let archived = Agent { status: AgentStatus::Archived, ..agent.clone() };
        for silent in [
            (Action { schedule: None, ..draft.clone() }, &agent),
            (draft.clone(), &archived),
            (Action { state: ActionState::Dismissed, ..draft.clone() }, &agent),
            (Action { state: ActionState::Completed, ..daily.clone() }, &agent),
        ] {
            assert_eq!(told(&silent.0, silent.1, false), "-");
        }
        // Each reason is told, that of the account last. Without a schedule, and after its end, those of the agent and the account are left: they also
        // hold for runs by hand.
        let codes = |action: &Action, agent: &Agent| -> Vec<IdleCode> {
            Idle::all(action, agent, Some(noon())).into_iter().map(|idle| idle.code).collect()
        };
        let resting = Agent { status: AgentStatus::Paused, ..agent.clone() };
        let (stopped, off) = (IdleCode::AccountStopped, IdleCode::AgentPaused);
        assert_eq!(codes(&paused, &resting), [off, IdleCode::Paused, stopped]);
        assert_eq!(codes(&draft, &agent), [IdleCode::NotApproved, stopped]);
        assert_eq!(codes(&daily, &other), [IdleCode::Drifted, stopped]);
        assert_eq!(codes(&Action { schedule: None, ..daily.clone() }, &resting), [off, stopped]);
        assert_eq!(
            codes(&Action { state: ActionState::Completed, ..daily.clone() }, &resting),
            [off, stopped]
        );
        assert_eq!(codes(&Action { state: ActionState::Dismissed, ..daily.clone() }, &resting), []);
        assert!(Idle::all(&daily, &agent, None).is_empty());
        for one in [&paused, &draft] {
            assert_eq!(told(one, &agent, true), told(one, &agent, false));
        }
        // It would be due tomorrow, if it were approved now.
        assert_eq!(draft.undecided(noon(), noon()), Some("2026-11-22T08:00:00Z".parse().unwrap()));
        assert_eq!(paused.undecided(noon(), noon()), paused.next_due);
        assert_eq!(Action { schedule: None, ..draft }.undecided(noon(), noon()), None);
    }
}
