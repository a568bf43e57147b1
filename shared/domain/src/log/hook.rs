//! The payloads of a coding assistant's hooks: an agent was asked, it answered, or it continued in the background.
//!
//! Before and after a sub-agent works, the assistant fires `PreToolUse` and `PostToolUse` of its tool `Task` (`Agent`
//! in newer builds). An agent that was sent to the background answers later. Then `PostToolUse` reports only that it
//! was launched, and `SubagentStop` reports that it is done. All other hooks are not for the logs and are silently
//! ignored.
//!
//! Newer builds number their agents themselves (`a` and hexadecimal digits). In `SubagentStop` this number means the
//! agent that has stopped, and in `tool_response` the agent that was called. But next to `tool_name` it means the agent
//! that *calls*, and the log is not that agent's. The same is true for `agent_type` there. If a wrapper puts its own
//! names into these fields, they do name the log.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ids::{InstanceId, SessionId};
use super::view::cut;
use crate::text::wording::refusal;

/// The longest agent type, and the longest id of a call or of a background agent, in characters.
const MAX_WORD: usize = 128;

/// The longest description, in characters. A longer one is cut.
pub const MAX_DESCRIPTION: usize = 500;

/// The longest summary of an output, in characters. A longer one is cut.
pub const MAX_SUMMARY: usize = 1_000;

/// The meaning of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hook {
    /// An agent was asked for something.
    Asked(Task),
    /// The agent has answered.
    Answered(Task, AgentAnswer),
    /// The agent works in the background. The assistant knows it by this id.
    Launched(Task, String),
    /// An agent has answered. Only the assistant's id of the agent is known.
    Stopped(Stop),
    /// A hook of another tool or event.
    Foreign,
}

/// The answer of an agent to its call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentAnswer {
    /// Cut to the longest text of an entry.
    pub text: String,
    /// The assistant's own id of the agent. With this id it reports, or has already reported, that the agent has
    /// stopped.
    pub background: Option<String>,
}

/// The end of an agent's work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    pub session: SessionId,
    /// The assistant's own id of the agent.
    pub background: String,
    /// Empty if the assistant does not report it.
    pub agent_type: String,
    /// Cut to the longest text of an entry.
    pub answer: String,
}

/// One call of a sub-agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    pub session: SessionId,
    /// The assistant's own id of the call. It is the same if the hook is sent again.
    pub call: Option<String>,
    /// The instance, if the assistant names it. Otherwise the prompt may name it.
    pub instance: Option<InstanceId>,
    /// Empty if the assistant itself asks.
    pub agent_type: String,
    pub description: String,
    pub prompt: String,
}

/// Why a payload was not accepted. People can read it in the list of refused hooks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the payload is not JSON: {0}")]
    NotJson(String),
    #[error("{field}: {problem}")]
    Field { field: String, problem: String },
}

impl Refusal {
    pub fn field(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Field { field: field.into(), problem: problem.into() }
    }

    /// The invalid field.
    #[must_use]
    pub fn blames(&self) -> Option<&str> {
        match self {
            Self::NotJson(_) => None,
            Self::Field { field, .. } => Some(field),
        }
    }
}

#[derive(Deserialize)]
struct Payload {
    session_id: Option<String>,
    hook_event_name: Option<String>,
    tool_name: Option<String>,
    tool_use_id: Option<String>,
    agent_id: Option<String>,
    agent_type: Option<String>,
    tool_input: Option<Value>,
    tool_response: Option<Value>,
    tool_output: Option<Value>,
    output: Option<Value>,
    last_assistant_message: Option<Value>,
}

#[derive(Deserialize)]
struct TaskInput {
    subagent_type: Option<String>,
    description: Option<String>,
    prompt: Option<String>,
}

/// Reads a payload. `session` is the session that the hook's caller names. It takes precedence over the payload's.
///
/// # Errors
/// [`Refusal`] if it is not a payload of a hook, or contains an invalid name.
pub fn parse(body: &[u8], session: Option<&str>) -> Result<Hook, Refusal> {
    let payload: Value = serde_json::from_slice(body).map_err(|error| Refusal::NotJson(error.to_string()))?;
    let payload: Payload = typed("", payload)?;
    match payload.hook_event_name.as_deref() {
        Some("SubagentStop") => return stopped(&payload, session),
        Some("PreToolUse" | "PostToolUse") | None => {}
        Some(_) => return Ok(Hook::Foreign),
    }
    match payload.tool_name.as_deref() {
        Some("Task" | "Agent") => {}
        Some(_) => return Ok(Hook::Foreign),
        None => return Err(missing("tool_name")),
    }
    let input: TaskInput =
        typed("tool_input", payload.tool_input.clone().ok_or_else(|| missing("tool_input"))?)?;
    let instance = instance(payload.agent_id.as_deref().filter(|id| !is_assistants(id)))?;
    let task = Task {
        session: session_id(&payload, session)?,
        call: one_line("tool_use_id", payload.tool_use_id.clone())?,
        agent_type: kind(&payload, input.subagent_type, instance.is_some())?,
        instance,
        description: cut(&text("tool_input.description", input.description)?, MAX_DESCRIPTION),
        prompt: text("tool_input.prompt", input.prompt)?,
    };
    let answer = answer(&payload)?;
    // A wrapper that tells the two events apart by itself need not name them: only an answer has an output.
    let before = match payload.hook_event_name.as_deref() {
        Some(event) => event == "PreToolUse",
        None => answer.is_empty(),
    };
    if before {
        return Ok(Hook::Asked(task));
    }
    match launched(&payload)? {
        Some(background) => Ok(Hook::Launched(task, background)),
        None => {
            let background = background(&payload)?;
            Ok(Hook::Answered(task, AgentAnswer { text: cut(&answer, MAX_SUMMARY), background }))
        }
    }
}

fn stopped(payload: &Payload, session: Option<&str>) -> Result<Hook, Refusal> {
    let session = session_id(payload, session)?;
    let background = one_line("agent_id", payload.agent_id.clone())?.ok_or_else(|| missing("agent_id"))?;
    let agent_type = one_line("agent_type", payload.agent_type.clone())?.unwrap_or_default();
    let answer = cut(&answer(payload)?, MAX_SUMMARY);
    Ok(Hook::Stopped(Stop { session, background, agent_type, answer }))
}

fn typed<T: DeserializeOwned>(field: &str, value: Value) -> Result<T, Refusal> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let path = match (field, path.as_str()) {
            ("", path) => path.to_owned(),
            (field, ".") => field.to_owned(),
            (field, path) => format!("{field}.{path}"),
        };
        let refused = refusal("payload", &path, &error.inner().to_string()).0.swap_remove(0);
        Refusal::field(refused.field, refused.message)
    })
}

fn missing(field: &str) -> Refusal {
    Refusal::field(field, "is missing")
}

fn session_id(payload: &Payload, named: Option<&str>) -> Result<SessionId, Refusal> {
    let session = named.or(payload.session_id.as_deref()).ok_or_else(|| missing("session_id"))?;
    session.parse().map_err(|error| Refusal::field("session_id", format!("{error}")))
}

fn instance(agent_id: Option<&str>) -> Result<Option<InstanceId>, Refusal> {
    let Some(text) = agent_id.filter(|text| !text.is_empty()) else { return Ok(None) };
    let id: InstanceId = text.parse().map_err(|error| Refusal::field("agent_id", format!("{error}")))?;
    if id.is_reserved() {
        return Err(Refusal::field("agent_id", format!("must not be the reserved word {id}")));
    }
    Ok(Some(id))
}

/// Whether the assistant has generated this id. Otherwise somebody has chosen it.
fn is_assistants(id: &str) -> bool {
    let digits = id.strip_prefix('a').unwrap_or_default();
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    digits.len() >= 6 && digits.bytes().all(is_hex) && digits.bytes().any(|byte| byte.is_ascii_digit())
}

/// The type of the called agent. It is the payload's own `agent_type` if the payload's `agent_id` names the log.
fn kind(payload: &Payload, subagent_type: Option<String>, is_named: bool) -> Result<String, Refusal> {
    let outer = ("agent_type", payload.agent_type.clone());
    let input = ("tool_input.subagent_type", subagent_type);
    let places = if is_named { [outer, input] } else { [input, outer] };
    for (field, kind) in places {
        if let Some(kind) = one_line(field, kind)? {
            return Ok(kind);
        }
    }
    Ok(String::new())
}

/// A short text in one line. `None` if it is empty.
fn one_line(field: &str, text: Option<String>) -> Result<Option<String>, Refusal> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    let length = text.chars().count();
    if length > MAX_WORD {
        return Err(Refusal::field(field, format!("must be at most {MAX_WORD} characters, is {length}")));
    }
    if text.chars().any(char::is_control) {
        return Err(Refusal::field(field, "must not have control characters"));
    }
    Ok(Some(text))
}

fn text(field: &str, text: Option<String>) -> Result<String, Refusal> {
    let text = text.unwrap_or_default();
    if text.contains('\0') {
        return Err(Refusal::field(field, "must not have NUL bytes"));
    }
    Ok(text)
}

/// The first output among the possible places.
fn answer(payload: &Payload) -> Result<String, Refusal> {
    let places = [
        ("tool_response", &payload.tool_response),
        ("tool_output", &payload.tool_output),
        ("output", &payload.output),
        ("last_assistant_message", &payload.last_assistant_message),
    ];
    let found = places.into_iter().filter_map(|(field, value)| Some((field, joined(value.as_ref()?))));
    match found.into_iter().find(|(_, output)| !output.trim().is_empty()) {
        Some((field, output)) => text(field, Some(output)),
        None => Ok(String::new()),
    }
}

/// A text, or the texts of a list of content blocks.
fn joined(output: &Value) -> String {
    match output {
        Value::String(text) => text.clone(),
        Value::Object(object) => object.get("content").map(joined).unwrap_or_default(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block.get("text")?.as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

/// The id of an agent that went to the background instead of answering.
fn launched(payload: &Payload) -> Result<Option<String>, Refusal> {
    let Some(response) = &payload.tool_response else { return Ok(None) };
    let is_launch = response["status"] == "async_launched" || response["isAsync"] == true;
    if is_launch { background(payload) } else { Ok(None) }
}

/// The assistant's own id of the agent that was called.
fn background(payload: &Payload) -> Result<Option<String>, Refusal> {
    let Some(response) = &payload.tool_response else { return Ok(None) };
    let id = response["agentId"].as_str().or_else(|| response["agent_id"].as_str());
    one_line("tool_response.agentId", id.map(str::to_owned))
}

#[cfg(test)]
#[path = "hook_tests.rs"]
mod tests;
