//! Tools about actions: work for later.

use serde::Deserialize;
use serde_json::{Value, json};

use super::Effect::{Propose, Read};
use super::Surface::{AboutAction, Chat, Run};
use super::arguments::{Arguments, checked_limit, deliverable, parse};
use super::schema::{choice, limit, object, text};
use super::{ToolCall, ToolDef};
use crate::actions::{ActionChange, ActionState};
use crate::validate::FieldErrors;

pub static QUERY_ACTIONS: ToolDef = ToolDef {
    to_call: Some(|input| parse(input).map(ToolCall::QueryActions)),
    ..ToolDef::new(
        "query_actions",
        "Lists this agent's actions, newest first: id, title, state, schedule and next due time of each. \
         Call it before you propose an action, so that nothing is proposed twice.",
        Read,
        &[Chat, AboutAction, Run],
        || {
            let states = ActionState::ALL.map(ActionState::as_str);
            let state = choice(&states, "Only actions in this state.");
            object(&json!({"state": state, "limit": limit()}), &[])
        },
    )
};

/// The arguments of [`QUERY_ACTIONS`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct QueryActions {
    #[serde(default)]
    pub state: Option<ActionState>,
    /// 1 to [`super::MAX_LIMIT`].
    #[serde(default)]
    pub limit: Option<usize>,
}

impl Arguments for QueryActions {
    fn check(&mut self, errors: &mut FieldErrors) {
        checked_limit(errors, self.limit);
    }
}

pub static GENERATE_ACTIONS: ToolDef = ToolDef {
    to_call: Some(|input| deliverable("generate_actions", input)),
    ..ToolDef::new(
        "generate_actions",
        "Proposes work that runs later, with or without a schedule. Nothing runs before a person approves it. \
         Write the instructions so that they can be followed without this conversation.",
        Propose,
        &[Chat, AboutAction, Run],
        || {
            let action =
                object(&plan(&["instructions", "expected_output"]), &["title", "description", "task_config"]);
            object(&json!({"actions": {"type": "array", "minItems": 1, "items": action}}), &["actions"])
        },
    )
};

pub static CHANGE_ACTION: ToolDef = ToolDef {
    to_call: Some(|input| parse(input).map(ToolCall::ChangeAction)),
    ..ToolDef::new(
        "change_action",
        "Proposes a change to the action that this conversation is about. Name only the fields that change, each with its \
         complete new text. Nothing changes before the person accepts it, and a changed action runs only after the \
         person has approved it again.",
        Propose,
        &[AboutAction],
        || object(&plan(&[]), &[]),
    )
};

/// Checked later, against the action.
impl Arguments for ActionChange {}

/// The properties of an action. `needed`: the required properties of a task.
fn plan(needed: &[&str]) -> Value {
    let task_config = json!({
        "instructions": text("The steps, complete in themselves.", 20_000),
        "expected_output": text("What the output should hold, so that it can be checked.", 5_000),
    });
    let schedule = json!({
        "at": text("Once: an RFC 3339 instant, or a date and time in `timezone`, such as 2026-12-01T09:00.", 64),
        "every": text("Again and again after a length of time, such as 90m or 1h 30m.", 64),
        "cron": text("Five fields in `timezone`, such as 0 9 * * MON-FRI.", 200),
        "timezone": text("IANA name, such as Europe/Berlin.", 64),
    });
    let schedule = json!({
        "type": "object", "properties": schedule, "additionalProperties": false,
        "description": "When it is due: exactly one of at, every and cron. Left out where it is run by hand.",
    });
    json!({
        "title": text("What the action is called.", 200),
        "description": text("What it is for, in a sentence.", 2_000),
        "priority": choice(&["high", "medium", "low"], "medium if not given."),
        "task_config": object(&task_config, needed),
        "schedule": schedule,
    })
}
