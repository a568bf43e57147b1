//! Actions and occurrences for tests.

use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    Action, ActionState, AgentBrief, Briefing, Command, ExecutionResult, NewAction, approval_hash, transition,
};
use crate::ids::{ActionId, AgentId, RunId};
use crate::schedule::Schedule;
use crate::tools::ToolSpecForHash;

pub(super) fn ts(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A Saturday.
pub(crate) fn noon() -> Timestamp {
    ts("2026-11-21T12:00:00Z")
}

pub(super) fn run(number: u128) -> RunId {
    RunId::from_uuid(Uuid::from_u128(number))
}

pub(super) fn schedule(value: Value) -> Schedule {
    serde_json::from_value(value).unwrap()
}

pub(super) fn briefing() -> Briefing {
    let agent = AgentBrief { name: "Watch".into(), goal: "Watches prices".into(), ..AgentBrief::default() };
    let tool = ToolSpecForHash { name: "save_output".into(), schema: json!({"type": "object"}) };
    Briefing { agent, tools: vec![tool], timezone: None }
}

/// Defined at noon, with this schedule.
pub(crate) fn defined(schedule: &Value) -> Action {
    let new = json!({
        "title": "Report", "task_config": {"instructions": "Write the report", "expected_output": "One page"},
        "grants": ["save_output"], "schedule": schedule,
        "budget": {"per_run_micros": 1_000_000},
    });
    let (action, agent) = (Uuid::from_u128(0xac7), Uuid::from_u128(0xa6e));
    serde_json::from_value::<NewAction>(new).unwrap().validate().unwrap().define(
        ActionId::from_uuid(action),
        AgentId::from_uuid(agent),
        noon(),
    )
}

/// Approved at noon.
pub(crate) fn approved(schedule: &Value) -> Action {
    let action = defined(schedule);
    let hash = approval_hash(&action, &briefing());
    transition(&action, Command::Approve { hash: &hash, briefing: &briefing() }, noon()).unwrap()
}

/// An action that commands have brought into `state`. If it can be due in that state, it is due every day at nine.
pub(super) fn in_state(state: ActionState) -> Action {
    let daily = || approved(&json!({"cron": "0 9 * * *"}));
    let once = || approved(&Value::Null);
    let then = |action: Action, command| transition(&action, command, noon()).unwrap();
    let ended = |action: Action, outcome| then(action, Command::OccurrenceEnded { run: run(1), outcome });
    match state {
        ActionState::Defined => defined(&json!({"cron": "0 9 * * *"})),
        ActionState::Scheduled => daily(),
        ActionState::Paused => then(daily(), Command::Pause),
        ActionState::InProgress => then(daily(), Command::Run { run: run(1) }),
        ActionState::Completed => {
            ended(then(once(), Command::Run { run: run(1) }), ExecutionResult::Succeeded)
        }
        ActionState::Failed => ended(then(once(), Command::Run { run: run(1) }), ExecutionResult::Failed),
        ActionState::NeedsApproval => {
            ended(then(daily(), Command::Run { run: run(1) }), ExecutionResult::Waiting)
        }
        ActionState::Dismissed => then(daily(), Command::Dismiss),
    }
}
