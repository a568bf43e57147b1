//! The descriptions and schemas of tools, as models see them. A changed schema withdraws the approvals of all actions that
//! were granted the tool.

use serde_json::{Value, json};

use super::{MAX_LIMIT, Tool};
use crate::actions::ActionState;

pub(super) const fn description(tool: Tool) -> &'static str {
    match tool {
        Tool::QueryActions => {
            "Lists this agent's actions, newest first: id, title, state, schedule and next due time of each. \
             Call it before you propose an action, so that nothing is proposed twice."
        }
        Tool::QueryAssets => {
            "Lists this agent's saved assets, newest first, without their contents: id, title, description and type \
             of each. Call read_asset to read a content."
        }
        Tool::ReadAsset => {
            "Reads the newest content of one of this agent's assets. A long content comes in parts: next_byte says where \
             the next part begins."
        }
        Tool::GenerateAsset => {
            "Proposes a finished asset to the person, with its complete content. Call it when the person asks for content; \
             put the content here and not into the reply."
        }
        Tool::GenerateActions => {
            "Proposes work that runs later, with or without a schedule. Nothing runs before a person approves it. \
             Write the instructions so that they can be followed without this conversation."
        }
        Tool::ReadyToCreate => {
            "Ends the setup conversation and proposes the agent. Call it once, when you know everything you need."
        }
        Tool::SaveOutput => {
            "Saves a finished output of this run, with its complete content. A run that saves nothing fails."
        }
        Tool::AskPerson => {
            "Asks a person something that you must know to do the work. The run stops and waits for the answer, which may \
             take days. So decide by yourself whatever you can decide."
        }
        Tool::ChangeAction => {
            "Proposes a change to the action that this conversation is about. Name only the fields that change, each with its \
             complete new text. Nothing changes before the person accepts it, and a changed action runs only after the \
             person has approved it again."
        }
    }
}

pub(super) fn schema(tool: Tool) -> Value {
    let (properties, required): (Value, &[&str]) = match tool {
        Tool::QueryActions => {
            let states = ActionState::ALL.map(ActionState::as_str);
            (json!({"state": choice(&states, "Only actions in this state."), "limit": limit()}), &[])
        }
        Tool::QueryAssets => (
            json!({
                "asset_type": asset_type("Only assets of this type."),
                "query": text("Only assets whose title or description contains this, in any case.", 200),
                "limit": limit(),
            }),
            &[],
        ),
        Tool::ReadAsset => (
            json!({
                "asset_id": {
                    "type": "string", "pattern": "^ast_[0-9a-f]{32}$", "description": "As query_assets gave it.",
                },
                "from_byte": {
                    "type": "integer", "minimum": 0, "description": "Where to begin; 0 if not given.",
                },
            }),
            &["asset_id"],
        ),
        Tool::GenerateAsset => (
            json!({
                "title": text("What the asset is called.", 200),
                "description": text("What it is for, in a sentence.", 2_000),
                "asset_type": asset_type("What kind of content it is."),
                "content": {"type": "string", "minLength": 1, "description": "The whole content."},
            }),
            &["title", "description", "asset_type", "content"],
        ),
        Tool::GenerateActions => {
            let actions = json!({"actions": {"type": "array", "minItems": 1, "items": action()}});
            (actions, &["actions"])
        }
        Tool::ReadyToCreate => (
            json!({
                "title": text("The agent's name.", 200),
                "goal": text("\"A [type] agent that [does what]\".", 2_000),
                "success_criteria": text("How the person will know that it works.", 2_000),
                "timeline": text("A date, a range of dates, or \"Ongoing\".", 2_000),
                "instructions": text("How it should work, as far as that was said.", 20_000),
            }),
            &["title", "goal", "success_criteria", "timeline"],
        ),
        Tool::SaveOutput => (
            json!({
                "title": text("What the output is called.", 200),
                "content": {"type": "string", "minLength": 1, "description": "The whole content."},
                "asset_type": asset_type("What kind of content it is; document if not given."),
            }),
            &["title", "content"],
        ),
        Tool::AskPerson => (
            json!({"question": text("One question, with what the person needs to know to answer it.", 2_000)}),
            &["question"],
        ),
        Tool::ChangeAction => (plan(&[]), &[]),
    };
    object(&properties, required)
}

fn action() -> Value {
    object(&plan(&["instructions", "expected_output"]), &["title", "description", "task_config"])
}

/// What an action is, with these parts of its task needed where a task is given.
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

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn text(description: &str, max: usize) -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": max, "description": description})
}

fn choice(choices: &[&str], description: &str) -> Value {
    json!({"type": "string", "enum": choices, "description": description})
}

fn asset_type(description: &str) -> Value {
    choice(&["document", "code", "prompt", "email"], description)
}

fn limit() -> Value {
    json!({"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "description": "How many; 20 if not given."})
}
