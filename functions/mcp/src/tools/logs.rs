//! Agents' context logs: the end of one, and one entry more.

use domain::ids::ProjectId;
use domain::log::{InstanceId, LogEvent, SessionId, view};
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::flows::logs::read::{self, Tail};
use shared::flows::logs::{self, NewEntry};

use super::{Failure, given};
use crate::server::Server;

/// Entries that are read where nothing else is said.
const DEFAULT_LINES: u64 = 50;
/// Most entries of one answer.
const MAX_LINES: u64 = 1_000;

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    Json,
    Text,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadAgentLog {
    /// The agent's id; main is the assistant's own log.
    agent_id: String,
    /// Only this session. Without it, the latest that has the agent, and then those before it.
    session: Option<String>,
    /// How many entries, 1 to 1,000. Default 50.
    #[schemars(range(min = 1, max = 1000))]
    lines: Option<u64>,
    /// json (the default): the entries; text: headings with what was asked and answered, in at most 16,000 characters.
    #[serde(default)]
    #[schemars(with = "Option<String>", extend("enum" = ["json", "text", null]))]
    format: Option<Format>,
    /// Whether to tell about the log as a whole.
    #[serde(default)]
    include_metadata: bool,
    /// Without a session, the latest of this project.
    #[schemars(with = "Option<String>")]
    project: Option<ProjectId>,
}

pub async fn read_agent_log(server: Server, arguments: ReadAgentLog) -> Result<Value, Failure> {
    let Server { cx, owner, .. } = &server;
    let agent = agent(&arguments.agent_id)?;
    let session = session("session", arguments.session.as_deref())?;
    let lines = arguments.lines.unwrap_or(DEFAULT_LINES);
    if !(1..=MAX_LINES).contains(&lines) {
        return Err(Failure(format!("lines: must be 1 to {MAX_LINES}, is {lines}")));
    }
    let found = read::tail(cx, owner, arguments.project, session, &agent, lines).await?;
    let Tail { metadata, entries } = found;
    let mut answer = match arguments.format.unwrap_or_default() {
        Format::Json => json!({ "entries": entries }),
        Format::Text => json!({ "text": view::text(&metadata, &entries, view::TEXT_CHARS) }),
    };
    if arguments.include_metadata {
        answer["metadata"] = given(metadata)?;
    }
    Ok(answer)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AppendAgentLog {
    /// The agent's id; main is the assistant's own log.
    agent_id: String,
    /// The session. Without it, the latest that has the agent.
    session: Option<String>,
    /// agent_start: it was asked for something; agent_complete: it answered.
    #[schemars(with = "String", extend("enum" = ["agent_start", "agent_complete"]))]
    event: LogEvent,
    /// What kind of agent it is.
    #[serde(default)]
    #[schemars(length(max = 128))]
    agent_type: String,
    /// The task in a few words.
    #[serde(default)]
    #[schemars(length(max = 500))]
    description: String,
    /// All it was told; with agent_start only.
    instruction: Option<String>,
    /// What it answered; with agent_complete only.
    #[schemars(length(max = 1000))]
    output_summary: Option<String>,
    /// The project of a session that is new. Without it, the one of the server's address.
    #[schemars(with = "Option<String>")]
    project: Option<ProjectId>,
}

pub async fn append_agent_log(server: Server, arguments: AppendAgentLog) -> Result<Value, Failure> {
    let agent = agent(&arguments.agent_id)?;
    let session_id = session("session", arguments.session.as_deref())?;
    // The address says where a new session belongs, not where to look for one.
    let project_id = arguments.project.or_else(|| session_id.as_ref().map(|_| server.place.project));
    let entry = NewEntry {
        session_id,
        event: arguments.event,
        agent_type: arguments.agent_type,
        description: arguments.description,
        instruction: arguments.instruction,
        output_summary: arguments.output_summary,
        project_id,
    };
    given(logs::append(&server.cx, &server.owner, &agent, entry).await?)
}

fn agent(text: &str) -> Result<InstanceId, Failure> {
    text.parse().map_err(|error| Failure(format!("agent_id: {error}")))
}

fn session(field: &str, text: Option<&str>) -> Result<Option<SessionId>, Failure> {
    let parsed = text.map(str::parse).transpose();
    parsed.map_err(|error| Failure(format!("{field}: {error}")))
}
