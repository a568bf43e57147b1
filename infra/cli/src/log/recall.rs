//! `log --recall`: prints the earlier work, for an assistant's hook at the start of a session or of a sub-agent.
//!
//! The assistant gives this output to its model. If nothing is known or something fails, this program prints nothing
//! and ends with 0, because an assistant without a memory still works.

use std::io::{self, Read};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::hook::HookError;
use crate::config::Places;
use crate::log::flush;
use crate::output;
use crate::project::ProjectId;
use crate::server::{Patience, Server};
use crate::spool::MAX_PAYLOAD;

/// For a server on another machine, which needs a handshake first.
const FAR: Patience = Patience { connect: Duration::from_secs(2), answer: Duration::from_secs(3) };
/// Longer than for recording hooks, because the agent gets its log now or never.
const NEAR: Patience = Patience { connect: Duration::from_millis(250), answer: Duration::from_secs(5) };

#[derive(Deserialize)]
struct Payload {
    hook_event_name: String,
    session_id: String,
    agent_type: Option<String>,
}

#[derive(Deserialize)]
struct Recalled {
    context: Option<String>,
}

/// Prints what the server has recorded.
///
/// # Errors
/// Why nothing is printed. Nobody reads this error.
pub fn run() -> Result<(), HookError> {
    let mut body = Vec::new();
    io::stdin().lock().take(MAX_PAYLOAD as u64).read_to_end(&mut body)?;
    let Ok(payload) = serde_json::from_slice::<Payload>(&body) else { return Ok(()) };
    let agent_type = match payload.hook_event_name.as_str() {
        "SessionStart" => None,
        "SubagentStart" => match payload.agent_type.filter(|agent_type| !agent_type.is_empty()) {
            Some(agent_type) => Some(agent_type),
            None => return Ok(()),
        },
        _ => return Ok(()),
    };
    let places = Places::look();
    let settings = places.read().map_err(|_| HookError::NotConfigured)?;
    let server = Server::new(&settings, if settings.url.is_near() { NEAR } else { FAR });
    // The start of the agent, with its id, may still be in the spool.
    flush::before_reading(&places, &settings, &server);
    let answer = server.get(
        "/context/recall",
        &[
            ("session_id", Some(payload.session_id.as_str())),
            ("agent_type", agent_type.as_deref()),
            ("project_id", settings.project.as_ref().map(ProjectId::as_str)),
        ],
    )?;
    let recalled: Option<Recalled> = serde_json::from_slice(&answer.body).ok();
    let Some(context) = recalled.and_then(|recalled| recalled.context) else { return Ok(()) };
    let told = json!({
        "hookSpecificOutput": { "hookEventName": payload.hook_event_name, "additionalContext": context },
    });
    Ok(output::print(format!("{told}\n"))?)
}
