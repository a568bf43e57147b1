//! An action.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::occurrence::Occurrence;
use crate::ids::{ActionId, AgentId, RunId};
use crate::models::ModelTier;
use crate::schedule::Schedule;

/// Work that an agent does later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Action {
    #[serde(rename = "action_id")]
    pub id: ActionId,
    pub agent_id: AgentId,
    pub title: String,
    pub description: String,
    pub priority: Priority,
    pub task_config: TaskConfig,
    pub schedule: Option<Schedule>,
    /// The tools that it may call unattended, by name, sorted.
    pub grants: Vec<String>,
    pub model_tier: ModelTier,
    pub budget: Budget,
    pub state: ActionState,
    pub approval: Option<Approval>,
    /// When it became due, in whole seconds: what `every` counts from. Nothing before it is a fire time.
    pub anchor: Option<Timestamp>,
    /// The first fire time about which nothing has been decided.
    pub next_due: Option<Timestamp>,
    /// The newest fire time about which something has been decided. A time of a schedule with `at` is decided once: to run
    /// it again, give it a new time.
    #[serde(default)]
    pub last_due: Option<Timestamp>,
    /// The run that is pending, running or waiting for a person.
    pub live_run: Option<RunId>,
    /// How many further runs have been decided on, and wait for the live one to end.
    #[serde(default)]
    pub queued: u32,
    /// Counts changes.
    pub version: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Action {
    /// When to look at it next: the first of its next fire time (with jitter), of what its live run waits for, and of when the next queued
    /// run may begin. `live` is
    /// the occurrence `live_run`. `None` while there is nothing to do before somebody does something.
    #[must_use]
    pub fn wake_at(&self, live: Option<&Occurrence>) -> Option<Timestamp> {
        let fire =
            self.schedule.as_ref().zip(self.next_due).map(|(schedule, due)| schedule.wake_at(self.id, due));
        let run = live.filter(|live| Some(live.run_id) == self.live_run).and_then(Occurrence::wake_at);
        let may_start = matches!(self.state, ActionState::Scheduled | ActionState::InProgress);
        let queue = (self.queued > 0 && self.live_run.is_none() && may_start).then_some(self.updated_at);
        fire.into_iter().chain(run).chain(queue).min()
    }
}

/// Where an action is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActionState {
    /// Not due: it wants an approval or a schedule, or its approval was withdrawn.
    Defined,
    /// Approved, and due in the future.
    Scheduled,
    /// Approved, but nothing starts by itself.
    Paused,
    InProgress,
    Completed,
    Failed,
    /// A person is asked; until the answer every fire time is held.
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
    /// The steps, in 1 to 20,000 characters.
    #[schema(max_length = 20_000)]
    pub instructions: String,
    /// What the output should hold, in 1 to 5,000 characters.
    #[schema(max_length = 5_000)]
    pub expected_output: String,
}

/// A ceiling on what is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Budget {
    /// Micro-dollars a run may cost, 1 to 100,000,000.
    #[schema(minimum = 1, maximum = 100_000_000, example = 1_000_000)]
    pub per_run_micros: i64,
}

impl Budget {
    /// The most that a run may be allowed: $100.
    pub const MAX_PER_RUN_MICROS: i64 = 100_000_000;
}

/// One dollar a run.
impl Default for Budget {
    fn default() -> Self {
        Self { per_run_micros: 1_000_000 }
    }
}

/// A person's yes to the content that hashes to `hash`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Approval {
    pub hash: String,
    pub approved_at: Timestamp,
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
