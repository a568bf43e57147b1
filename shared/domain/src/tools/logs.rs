//! Tools about the context logs of agents.

use serde::Deserialize;
use serde_json::json;

use super::Effect::{Read, Write};
use super::Surface::Mcp;
use super::ToolDef;
use super::output::{self, with};
use super::schema::{choice, integer, object, optional, string, up_to};
use crate::ids::ProjectId;
use crate::log::LogEvent;

const ENTRY: &[(&str, &str)] = &[
    ("event", "string"),
    ("agent_type", "string"),
    ("agent_id", "string"),
    ("description", "string"),
    ("instruction", "string?"),
    ("output_summary", "string?"),
    ("session_id", "string"),
    ("timestamp", "string"),
    ("earlier_session", "boolean?"),
];

pub static READ_AGENT_LOG: ToolDef = ToolDef {
    title: Some("Read agent log"),
    output: Some(|| {
        let entries = json!({"type": "array", "items": output::object(ENTRY)});
        let answer = output::object(&[("text", "string?"), ("metadata", "object?")]);
        with(answer, "entries", entries, false)
    }),
    ..ToolDef::new(
        "read_agent_log",
        "Returns the last entries of a sub-agent's context log, oldest first: what it was asked and what it answered. Without a \
         session, entries of earlier sessions come first and are marked. The log of an unknown agent is empty.",
        Read,
        &[Mcp],
        || {
            let format = "json (the default) returns the entries. text returns headings with the questions and answers, in at \
                          most 16,000 characters.";
            let properties = json!({
                "agent_id": string("The agent's id. main is the assistant's own log."),
                "session": optional(string(
                    "Only this session. Default: the latest session of the agent, and then the sessions before it.",
                )),
                "lines": optional(integer("How many entries, 1 to 1,000. Default 50.", 1, Some(1_000))),
                "format": optional(choice(&["json", "text"], format)),
                "include_metadata": {
                    "type": "boolean", "description": "Whether to add data about the log as a whole. Default false.",
                },
                "project": optional(string("Without a session, the latest session of this project.")),
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
    output: Some(|| output::object(ENTRY)),
    ..ToolDef::new(
        "append_agent_log",
        "Adds one entry to a sub-agent's context log. Concurrent writers do not lose entries.",
        Write,
        &[Mcp],
        || {
            let event = "agent_start: the agent was asked something. agent_complete: the agent answered.";
            let properties = json!({
                "agent_id": string("The agent's id. main is the assistant's own log."),
                "session": optional(string("The session. Default: the latest session of the agent.")),
                "event": choice(&LogEvent::ALL.map(LogEvent::as_str), event),
                "agent_type": up_to("What kind of agent it is.", 128),
                "description": up_to("The task in a few words.", 500),
                "instruction": optional(string("The complete instruction; only with agent_start.")),
                "output_summary": optional(up_to("What it answered; only with agent_complete.", 1_000)),
                "project": optional(string(
                    "The project of a new session. If it is missing, the project of the server's address.",
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
