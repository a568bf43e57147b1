//! The parts of an action that people, models and tools name: its state, its priority, its task, a draft and a change. The
//! modules of actions, chats and tools use them, so they are below all three.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::schedule::ScheduleInput;

/// The state of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActionState {
    /// Nothing is due: it has no approval or no schedule, or its approval was withdrawn.
    Defined,
    /// Approved, and due in the future.
    Scheduled,
    /// Approved, but nothing starts by itself.
    Paused,
    InProgress,
    Completed,
    Failed,
    /// A person was asked. Until the answer, all fire times are held.
    NeedsApproval,
    Dismissed,
}

impl ActionState {
    pub const ALL: [Self; 8] = [
        Self::Defined,
        Self::Scheduled,
        Self::Paused,
        Self::InProgress,
        Self::Completed,
        Self::Failed,
        Self::NeedsApproval,
        Self::Dismissed,
    ];

    /// As in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Defined => "defined",
            Self::Scheduled => "scheduled",
            Self::Paused => "paused",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::NeedsApproval => "needs_approval",
            Self::Dismissed => "dismissed",
        }
    }
}

/// How urgent an action is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    High,
    #[default]
    Medium,
    Low,
}

/// What the agent is told to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TaskConfig {
    /// What to do, 1 to 20,000 characters.
    #[schema(max_length = 20_000)]
    pub instructions: String,
    /// What the output should contain, 1 to 5,000 characters.
    #[schema(max_length = 5_000)]
    pub expected_output: String,
}

/// The parts of the task that change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TaskConfigPatch {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 20_000)]
    pub instructions: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 5_000)]
    pub expected_output: Option<String>,
}

/// An action that a person may approve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ActionDraft {
    pub title: String,
    pub description: String,
    pub priority: Priority,
    pub task_config: TaskConfig,
    /// As the model wrote it. The rules of schedules check it later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub schedule: Option<Value>,
}

/// The fields that would change. A model may not change what a run is allowed to do or to spend: grants, model tier and budget
/// are decided by people.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ActionChange {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_config: Option<TaskConfigPatch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleInput>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_round_trip() {
        for state in ActionState::ALL {
            let json = serde_json::to_value(state).unwrap();
            assert_eq!(json, state.as_str());
            assert_eq!(serde_json::from_value::<ActionState>(json).unwrap(), state);
        }
    }
}
