//! Tools about actions: work for later.

use serde::Deserialize;
use serde_json::{Value, json};

use super::Effect::{Propose, Read};
use super::Surface::{AboutAction, Chat, Mcp, Run};
use super::ToolDef;
use super::arguments::{Arguments, checked_limit, parse};
use super::output::{self, page};
use super::proposals::PROPOSAL;
use super::schema::{choice, limit, listing, named, object, optional, string, text, up_to};
use crate::ids::{ActionId, AgentId};
use crate::validate::FieldErrors;
use crate::work::{ActionChange, ActionCommand, ActionState, Priority};

pub static QUERY_ACTIONS: ToolDef = ToolDef::new(
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
);

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

pub static GENERATE_ACTIONS: ToolDef = ToolDef::new(
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
);

pub static CHANGE_ACTION: ToolDef = ToolDef::new(
    "change_action",
    "Proposes a change to an existing action. Name only the fields that change, each with its complete new text. A new time goes into \
         `schedule`, never into the instructions. Nothing changes before the person accepts it.",
    Propose,
    &[Chat, AboutAction],
    || {
        let mut properties = plan(&[]);
        properties["conditions"] = conditions();
        properties["action_id"] = which();
        object(&properties, &[])
    },
);

/// Which action a tool is about.
fn which() -> Value {
    string("Of query_actions. Needed in a chat. Default in the conversation about an action: that action.")
}

/// The arguments of [`CHANGE_ACTION`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeAction {
    /// `None`: the action that the conversation is about.
    pub action_id: Option<ActionId>,
    /// Checked later, against the action.
    pub change: ActionChange,
}

impl Arguments for ActionChange {}

/// The action that a call is about.
#[derive(Debug, Deserialize)]
struct Which {
    #[serde(default)]
    action_id: Option<ActionId>,
}

impl Arguments for Which {}

impl ChangeAction {
    /// Reads the arguments. A change takes no other fields than its own, so the id is read by itself.
    pub(super) fn parse(input: &Value) -> Result<Self, String> {
        let Which { action_id } = parse(input)?;
        let mut change = input.clone();
        if let Some(fields) = change.as_object_mut() {
            fields.remove("action_id");
        }
        Ok(Self { action_id, change: parse(&change)? })
    }
}

pub static COMMAND_ACTION: ToolDef = ToolDef::new(
    "command_action",
    "Proposes a command for an existing action: `pause`, `resume`, `run_now` (once, now), `rehearse` (try it; nothing is done) or `dismiss` \
         (it never runs again). Nothing happens before the person accepts it.",
    Propose,
    &[Chat, AboutAction],
    || {
        let commands = ActionCommand::ALL.map(ActionCommand::as_str);
        let properties = json!({"action_id": which(), "command": choice(&commands, "What to propose.")});
        object(&properties, &["command"])
    },
);

/// The arguments of [`COMMAND_ACTION`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CommandAction {
    /// `None`: the action that the conversation is about.
    #[serde(default)]
    pub action_id: Option<ActionId>,
    pub command: ActionCommand,
}

/// Whether the action allows it is checked later.
impl Arguments for CommandAction {}

/// What a program checks of the outputs of an action. [`GENERATE_ACTIONS`] takes them, too, but its schema does not name them: a
/// change of the schema would end the approval of every action that was granted the tool.
fn conditions() -> Value {
    let list = |description: &str, max: usize| json!({"type": "array", "minItems": 1, "maxItems": 20, "items": text(description, max)});
    let properties = json!({
        "kind": choice(&["min_words", "names_today", "headings", "json", "links_only_to"], "What is checked."),
        "words": {"type": "integer", "minimum": 1, "maximum": 50_000, "description": "Of min_words: the least number of words."},
        "headings": list("Of headings: a Markdown heading that an output must have.", 200),
        "schema": {"type": "object", "description": "Of json: the JSON Schema that an output must match."},
        "hosts": list("Of links_only_to: a host such as example.com, to which links may lead.", 253),
    });
    json!({
        "type": "array", "maxItems": 10, "items": object(&properties, &["kind"]),
        "description": "What a program checks of the outputs, without a model. The complete new list.",
    })
}

/// The first action of a new agent.
pub(super) fn first() -> Value {
    let mut action = object(&plan(&["instructions", "expected_output"]), &["title", "task_config"]);
    action["description"] = json!(
        "The work that the person wants at a time, or again and again. Left out if the person named no time. The title says what is \
         done, in a few words. The time is in `schedule` alone."
    );
    action
}

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
        "timezone": text("IANA name, such as Europe/Berlin. Default: the person's.", 64),
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

const ACTION: &[(&str, &str)] = &[
    ("action_id", "string"),
    ("agent_id", "string"),
    ("title", "string"),
    ("state", "string"),
    ("schedule_text", "string?"),
];

/// For MCP clients. Unlike [`QUERY_ACTIONS`], it covers all of the owner's agents and is read in pages.
pub static LIST_ACTIONS: ToolDef = ToolDef {
    title: Some("List actions"),
    output: Some(|| page(ACTION)),
    ..ToolDef::new(
        "list_actions",
        "Lists actions (work that agents do later), newest first.",
        Read,
        &[Mcp],
        || {
            let states = ActionState::ALL.map(ActionState::as_str);
            let properties = json!({
                "agent_id": optional(named()),
                "state": optional(choice(&states, "Only actions in this state.")),
            });
            listing(properties, &[])
        },
    )
};

/// The arguments of [`LIST_ACTIONS`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListActions {
    pub agent_id: Option<AgentId>,
    pub state: Option<ActionState>,
    pub limit: Option<usize>,
    pub cursor: Option<String>,
}

pub static READ_ACTION: ToolDef = ToolDef {
    title: Some("Read action"),
    ..ToolDef::new(
        "read_action",
        "Returns an action with its state and its schedule in words.",
        Read,
        &[Mcp],
        || object(&json!({"action_id": named()}), &["action_id"]),
    )
};

/// The arguments of [`READ_ACTION`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadAction {
    pub action_id: ActionId,
}

pub static PROPOSE_ACTION: ToolDef = ToolDef {
    title: Some("Propose action"),
    output: Some(|| output::object(PROPOSAL)),
    ..ToolDef::new(
        "propose_action",
        "Proposes work for later. The user defines and approves it, or discards it within 30 days.",
        Propose,
        &[Mcp],
        || {
            // preview_schedule describes it. A client that may propose may also preview.
            let schedule = json!({
                "type": ["object", "null"],
                "description": "Like that of preview_schedule. Without one, the user decides when.",
                "examples": [{"cron": "0 9 * * MON-FRI", "timezone": "Europe/Berlin"}],
            });
            let properties = json!({
                "agent_id": named(),
                "title": text("Its title.", 200),
                "description": up_to("What it is for, in a sentence.", 2_000),
                "priority": optional(choice(&["high", "medium", "low"], "Default medium.")),
                "instructions": text("What to do, with everything that the agent must know.", 20_000),
                "expected_output": text("What the output must contain.", 5_000),
                "schedule": schedule,
            });
            object(&properties, &["agent_id", "title", "instructions", "expected_output"])
        },
    )
};

/// The arguments of [`PROPOSE_ACTION`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProposeAction {
    pub agent_id: AgentId,
    pub title: String,
    #[serde(default)]
    pub description: String,
    pub priority: Option<Priority>,
    pub instructions: String,
    pub expected_output: String,
    pub schedule: Option<serde_json::Map<String, Value>>,
}
