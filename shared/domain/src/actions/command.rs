//! Whether a command that a model proposes is possible now.

use jiff::Timestamp;
use uuid::Uuid;

use super::action::Action;
use super::state::{Command, Refused, transition};
use crate::agents::{Agent, AgentStatus};
use crate::ids::RunId;
use crate::work::{ActionCommand, ActionState};

/// Why a command is not possible now, as a code for clients and as a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct NotNow {
    pub code: &'static str,
    pub text: String,
}

impl NotNow {
    fn new(code: &'static str, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}

impl ActionCommand {
    /// Whether the action allows the command now.
    ///
    /// # Errors
    /// The reason why it does not.
    pub fn check(self, action: &Action, agent: &Agent, now: Timestamp) -> Result<(), NotNow> {
        self.check_state(action, now)?;
        let is_off = match (self, agent.status) {
            (Self::RunNow, AgentStatus::Paused) => {
                Some("paused: its actions do not run until it is active again")
            }
            (Self::RunNow | Self::Rehearse, AgentStatus::Archived) => {
                Some("archived: its actions do not run")
            }
            _ => None,
        };
        if let Some(off) = is_off {
            return Err(NotNow::new("agent_not_active", format!("the agent is {off}")));
        }
        if self == Self::RunNow && !action.is_approved_with(agent) {
            let text = "the agent or a tool has changed since the action was approved: the person must approve it again first";
            return Err(NotNow::new("approval_mismatch", text));
        }
        Ok(())
    }

    /// Whether the state of the action allows the command now.
    ///
    /// # Errors
    /// The reason why it does not.
    pub fn check_state(self, action: &Action, now: Timestamp) -> Result<(), NotNow> {
        let wrong = |text: &str| Err(NotNow::new("wrong_state", text));
        let command = match (self, action.state) {
            (_, ActionState::Dismissed) => return wrong("the action was dismissed, so it never runs again"),
            (Self::Rehearse, _) => return Ok(()),
            (Self::Pause, ActionState::Paused) => return wrong("the action is paused already"),
            (Self::Pause | Self::Resume | Self::RunNow, ActionState::NeedsApproval) => {
                return wrong("the action waits for an answer of the person, who must answer first");
            }
            (Self::Pause, ActionState::Defined) if action.approval.is_none() => {
                return wrong("the action is not approved, so it does not run and can't be paused");
            }
            (Self::Pause, ActionState::Defined | ActionState::Completed | ActionState::Failed) => {
                return wrong("the action has no further due time, so it can't be paused");
            }
            (Self::Resume, state) if state != ActionState::Paused => {
                return wrong("the action is not paused");
            }
            (Self::Pause, _) => Command::Pause,
            (Self::Resume, _) => Command::Resume,
            (Self::RunNow, _) => Command::Run { run: RunId::from_uuid(Uuid::nil()) },
            (Self::Dismiss, _) => Command::Dismiss,
        };
        match transition(action, command, now) {
            Ok(_) => Ok(()),
            Err(refused @ Refused::RunLive { .. }) => Err(NotNow::new(
                refused.code(),
                "a run of the action goes on, so wait until it has ended or cancel it",
            )),
            Err(refused @ Refused::NotApproved { .. }) => Err(NotNow::new(
                refused.code(),
                "the action is not approved: the person must approve it first",
            )),
            Err(refused) => Err(NotNow::new(refused.code(), refused.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{in_state, noon};
    use super::*;
    use crate::work::ActionState::{
        Completed, Defined, Dismissed, Failed, InProgress, NeedsApproval, Paused, Scheduled,
    };

    /// For each command, the states in which it is possible. It is never possible if the transition of the platform refuses it.
    #[test]
    fn a_command_is_possible_only_in_some_states() {
        for (command, possible) in [
            (ActionCommand::Pause, &[Scheduled, InProgress][..]),
            (ActionCommand::Resume, &[Paused]),
            (ActionCommand::RunNow, &[Scheduled, Paused, Completed, Failed]),
            (
                ActionCommand::Rehearse,
                &[Defined, Scheduled, Paused, InProgress, Completed, Failed, NeedsApproval],
            ),
            (ActionCommand::Dismiss, &[Defined, Scheduled, Paused, Completed, Failed, NeedsApproval]),
        ] {
            for state in ActionState::ALL {
                let action = in_state(state);
                let checked = command.check_state(&action, noon());
                assert_eq!(checked.is_ok(), possible.contains(&state), "{command:?} {state:?}: {checked:?}");
                if let Err(NotNow { code, text }) = checked {
                    assert!(["wrong_state", "not_approved", "run_live"].contains(&code), "{code}");
                    assert!(
                        text.starts_with("the action ") || text.starts_with("a run of the action "),
                        "{text}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_sentence_says_what_is_in_the_way() {
        let told =
            |command: ActionCommand, state| command.check_state(&in_state(state), noon()).unwrap_err().text;
        assert_eq!(told(ActionCommand::Pause, Paused), "the action is paused already");
        assert_eq!(told(ActionCommand::Resume, Scheduled), "the action is not paused");
        assert_eq!(
            told(ActionCommand::RunNow, Defined),
            "the action is not approved: the person must approve it first"
        );
        assert_eq!(
            told(ActionCommand::Dismiss, Dismissed),
            "the action was dismissed, so it never runs again"
        );
        assert!(told(ActionCommand::RunNow, InProgress).starts_with("a run of the action goes on"));
    }
}
