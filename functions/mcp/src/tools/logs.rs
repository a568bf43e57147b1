//! The context logs of agents.

use domain::log::{InstanceId, SessionId, view};
use domain::tools::logs::{AppendAgentLog, LogFormat, ReadAgentLog};
use serde_json::json;
use shared::flows::logs::read::{self, Tail};
use shared::flows::logs::{self, NewEntry};

use super::{Failure, ToolResult, to_json};
use crate::client::Client;

/// The default number of entries.
const DEFAULT_LINES: u64 = 50;
/// The maximum number of entries.
const MAX_LINES: u64 = 1_000;

pub async fn read_agent_log(client: Client, arguments: ReadAgentLog) -> ToolResult {
    let Client { cx, owner, .. } = &client;
    let agent = agent(&arguments.agent_id)?;
    let session = session("session", arguments.session.as_deref())?;
    let lines = arguments.lines.unwrap_or(DEFAULT_LINES);
    if !(1..=MAX_LINES).contains(&lines) {
        return Err(Failure(format!("lines: must be 1 to {MAX_LINES}, is {lines}")));
    }
    let found = read::tail(cx, owner, arguments.project, session, &agent, lines).await?;
    let Tail { metadata, entries } = found;
    let mut answer = match arguments.format.unwrap_or_default() {
        LogFormat::Json => json!({ "entries": entries }),
        LogFormat::Text => json!({ "text": view::text(&metadata, &entries, view::TEXT_CHARS) }),
    };
    if arguments.include_metadata {
        answer["metadata"] = to_json(metadata)?;
    }
    Ok(answer)
}

pub async fn append_agent_log(client: Client, arguments: AppendAgentLog) -> ToolResult {
    let agent = agent(&arguments.agent_id)?;
    let session_id = session("session", arguments.session.as_deref())?;
    // The project of the address is the default for a new session, but does not limit the search for an existing one.
    let project_id = arguments.project.or_else(|| session_id.as_ref().map(|_| client.place.project));
    let entry = NewEntry {
        session_id,
        event: arguments.event,
        agent_type: arguments.agent_type,
        description: arguments.description,
        instruction: arguments.instruction,
        output_summary: arguments.output_summary,
        project_id,
    };
    to_json(logs::append(&client.cx, &client.owner, &client.once, &agent, entry).await?)
}

fn agent(text: &str) -> Result<InstanceId, Failure> {
    text.parse().map_err(|error| Failure(format!("agent_id: {error}")))
}

fn session(field: &str, text: Option<&str>) -> Result<Option<SessionId>, Failure> {
    let parsed = text.map(str::parse).transpose();
    parsed.map_err(|error| Failure(format!("{field}: {error}")))
}
