//! Tools about agents.

use serde::Deserialize;
use serde_json::json;

use super::Effect::{Propose, Read};
use super::Surface::{Mcp, Setup};
use super::ToolDef;
use super::output::{self, page};
use super::schema::{choice, listing, named, object, optional, string, text, up_to};
use crate::agents::{AgentStatus, Need};
use crate::ids::AgentId;

pub static READY_TO_CREATE: ToolDef = ToolDef::new(
    "ready_to_create",
    "Ends the setup conversation and proposes the agent. Call it once, when you know everything you need.",
    Propose,
    &[Setup],
    || {
        let properties = json!({
            "title": text("The agent's name.", 200),
            "goal": text("\"A [type] agent that [does what]\".", 2_000),
            "success_criteria": text("How the person will know that it works.", 2_000),
            "timeline": text("A date, a range of dates, or \"Ongoing\".", 2_000),
            "instructions": text("How it should work, as far as that was said. No times.", 20_000),
            "first_action": super::actions::first(),
            "needs": {
                "type": "array", "items": {"type": "string", "enum": Need::ALL.map(Need::as_str)},
                "description": "What the work needs outside of the conversation. The person is told that it is not connected.",
            },
        });
        object(&properties, &["title", "goal", "success_criteria", "timeline"])
    },
);

const AGENT: &[(&str, &str)] =
    &[("agent_id", "string"), ("name", "string"), ("goal", "string"), ("status", "string")];

pub static LIST_AGENTS: ToolDef = ToolDef {
    title: Some("List agents"),
    output: Some(|| page(AGENT)),
    ..ToolDef::new(
        "list_agents",
        "Lists the user's agents, newest first. Assets and actions belong to an agent.",
        Read,
        &[Mcp],
        || {
            let status = choice(&["active", "paused", "archived"], "Only agents with this status.");
            listing(json!({"status": optional(status)}), &[])
        },
    )
};

/// The arguments of [`LIST_AGENTS`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListAgents {
    pub status: Option<AgentStatus>,
    pub limit: Option<usize>,
    pub cursor: Option<String>,
}

pub static READ_AGENT: ToolDef = ToolDef {
    title: Some("Read agent"),
    ..ToolDef::new("read_agent", "Returns an agent and what it has done.", Read, &[Mcp], || {
        object(&json!({"agent_id": named()}), &["agent_id"])
    })
};

/// The arguments of [`READ_AGENT`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadAgent {
    pub agent_id: AgentId,
}

pub static PROPOSE_AGENT: ToolDef = ToolDef {
    title: Some("Propose agent"),
    output: Some(|| output::object(&[("agent_id", "string"), ("status", "string")])),
    ..ToolDef::new(
        "propose_agent",
        "Creates a paused agent. It does nothing until a person activates it.",
        Propose,
        &[Mcp],
        || {
            let properties = json!({
                "name": text("Its name.", 200),
                "goal": text("\"A [type] agent that [does what]\".", 2_000),
                "success_criteria": string("How the user will know that it works."),
                "timeline": string("A date, a range of dates, or \"Ongoing\"."),
                "instructions": up_to("How it should work.", 20_000),
            });
            object(&properties, &["name", "goal"])
        },
    )
};

/// The arguments of [`PROPOSE_AGENT`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProposeAgent {
    pub name: String,
    pub goal: String,
    #[serde(default)]
    pub success_criteria: String,
    #[serde(default)]
    pub timeline: String,
    #[serde(default)]
    pub instructions: String,
}
