//! Tools about the context logs of agents.

use serde::Deserialize;
use serde_json::json;

use super::Effect::{Read, Write};
use super::Surface::Mcp;
use super::ToolDef;
use super::schema::{choice, integer, object, optional, string, up_to};
use crate::ids::ProjectId;
use crate::log::LogEvent;

pub static READ_AGENT_LOG: ToolDef = ToolDef {
    title: Some("Read agent log"),
    ..ToolDef::new(
        "read_agent_log",
        "Returns the last entries of a sub-agent's log, oldest first: what it was asked and what it answered. The log of an \
         unknown agent is empty.",
        Read,
        &[Mcp],
        || {
            let format = "json (default): entries. text: at most 16,000 characters to read.";
            let properties = json!({
                "agent_id": string("main is the assistant's own log."),
                "session": optional(string(
                    "Only this session. Default: the agent's latest, after marked entries of earlier ones.",
                )),
                "lines": optional(integer("Default 50.", 1, Some(1_000))),
                "format": optional(choice(&["json", "text"], format)),
                "include_metadata": {
                    "type": "boolean", "description": "Also the log's session, path and size.",
                },
                "project": optional(string("Without a session: only sessions of this project.")),
            });
            object(&properties, &["agent_id"])
        },
    )
};

/// The form of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    #[default]
    Json,
    Text,
}

/// The arguments of [`READ_AGENT_LOG`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadAgentLog {
    pub agent_id: String,
    pub session: Option<String>,
    pub lines: Option<u64>,
    pub format: Option<LogFormat>,
    #[serde(default)]
    pub include_metadata: bool,
    pub project: Option<ProjectId>,
}

pub static APPEND_AGENT_LOG: ToolDef = ToolDef {
    title: Some("Append to agent log"),
    ..ToolDef::new(
        "append_agent_log",
        "Adds one entry to a sub-agent's log. Concurrent calls are all kept.",
        Write,
        &[Mcp],
        || {
            let event = "agent_start: it was asked. agent_complete: it answered.";
            let properties = json!({
                "agent_id": string("main is the assistant's own log."),
                "session": optional(string("Default: the agent's latest.")),
                "event": choice(&LogEvent::ALL.map(LogEvent::as_str), event),
                "agent_type": up_to("Its kind.", 128),
                "description": up_to("The task in a few words.", 500),
                "instruction": optional(string("All of it; only with agent_start.")),
                "output_summary": optional(up_to("What it answered; only with agent_complete.", 1_000)),
                "project": optional(string(
                    "Of a new session. Default: as the address.",
                )),
            });
            object(&properties, &["agent_id", "event"])
        },
    )
};

/// The arguments of [`APPEND_AGENT_LOG`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppendAgentLog {
    pub agent_id: String,
    pub session: Option<String>,
    pub event: LogEvent,
    #[serde(default)]
    pub agent_type: String,
    #[serde(default)]
    pub description: String,
    pub instruction: Option<String>,
    pub output_summary: Option<String>,
    pub project: Option<ProjectId>,
}
