//! Context logs: written by hooks and by hand, read from the end, sealed when they are old, exported and imported as
//! files.

pub mod delete;
pub mod export;
pub mod hooks;
pub mod import;
pub mod read;
pub mod recall;
pub mod seal;
pub mod segments;

use domain::ids::{Owner, ProjectId};
use domain::log::{Entry, InstanceId, LogEvent, SessionId};
use domain::validate::FieldErrors;
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::blobs::BlobKey;
use crate::context::Cx;
use crate::error::Result;
use crate::flows::existing;
use crate::store::logs::{Appended, LineBody, LogAppend, LogHead, LogSession, StoredLine};
use crate::store::{Once, Tries};

/// The longest line that is kept within an item, in bytes. Longer lines are in S3.
const MAX_INLINE_BYTES: usize = 64 * 1024;

/// How often an append is tried if other processes append first. Appends of one process wait for each other.
const TRIES: u32 = 40;

/// The longest agent type, in characters.
const MAX_AGENT_TYPE: usize = 128;

/// The longest description, in characters.
const MAX_DESCRIPTION: usize = 500;

/// The longest summary of an output, in characters.
const MAX_SUMMARY: usize = 1_000;

/// The longest instruction, in bytes of UTF-8. It must fit into one request together with the other fields.
const MAX_INSTRUCTION_BYTES: usize = 4 * 1024 * 1024;

/// An entry that is written by hand.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[schema(example = json!({
    "session_id": "dev-20250812-143022",
    "event": "agent_complete",
    "agent_type": "the-architect",
    "description": "Design auth",
    "output_summary": "Sessions in DynamoDB, one item each."
}))]
pub struct NewEntry {
    /// Default: the latest session with a log of the agent.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    pub event: LogEvent,
    /// Up to 128 characters.
    #[serde(default)]
    pub agent_type: String,
    /// Up to 500 characters.
    #[serde(default)]
    pub description: String,
    /// What the agent is told, up to 4 MiB. Only with `agent_start`.
    #[serde(default)]
    pub instruction: Option<String>,
    /// What the agent answered, up to 1,000 characters. Only with `agent_complete`.
    #[serde(default)]
    pub output_summary: Option<String>,
    /// The project of a new session. Default: `default`.
    #[serde(default)]
    pub project_id: Option<ProjectId>,
}

impl NewEntry {
    fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        errors.length("agent_type", &self.agent_type, 0, MAX_AGENT_TYPE);
        errors.length("description", &self.description, 0, MAX_DESCRIPTION);
        if let Some(instruction) = &self.instruction {
            if self.event != LogEvent::AgentStart {
                errors.add("instruction", "is only allowed with the event agent_start");
            }
            if instruction.len() > MAX_INSTRUCTION_BYTES {
                let length = instruction.len();
                errors.add(
                    "instruction",
                    format!("must be at most {MAX_INSTRUCTION_BYTES} bytes, is {length}"),
                );
            }
        }
        if let Some(summary) = &self.output_summary {
            if self.event != LogEvent::AgentComplete {
                errors.add("output_summary", "is only allowed with the event agent_complete");
            }
            errors.length("output_summary", summary, 0, MAX_SUMMARY);
        }
        errors.into_result(())
    }
}

/// Appends an entry to the log of an agent.
///
/// # Errors
/// 400 with every invalid field and its limit, or if `session_id` is missing and no session has a log of the agent; 404
/// if the project does not exist.
pub async fn append(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    agent: &InstanceId,
    input: NewEntry,
) -> Result<Entry> {
    input.check()?;
    if agent.is_reserved() && *agent != InstanceId::main() {
        let message = format!("must not be the reserved word {agent}");
        return Err(FieldErrors::one("agent_id", message).into());
    }
    let project = input.project_id.unwrap_or(ProjectId::DEFAULT);
    existing::project(cx, owner, project).await?;
    let session_id = match input.session_id {
        Some(session) => session,
        None => read::latest_session(cx, owner, input.project_id, agent)
            .await?
            .ok_or_else(|| FieldErrors::one("session_id", "is needed: no session has a log of this agent"))?,
    };
    let entry = Entry {
        event: input.event,
        agent_type: input.agent_type,
        agent_id: agent.clone(),
        description: input.description,
        instruction: input.instruction,
        output_summary: input.output_summary,
        session_id,
        timestamp: cx.clock.now(),
    };
    write(cx, owner, once, project, &entry, None).await?;
    Ok(entry)
}

/// Appends an entry. An entry with a name is appended only once per session.
///
/// # Errors
/// If the table or the bucket does not answer. The entry may or may not be stored then; with a name, a retry is safe.
async fn write(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    project: ProjectId,
    entry: &Entry,
    name: Option<&str>,
) -> Result<()> {
    let (session, agent) = (&entry.session_id, &entry.agent_id);
    let text = entry.to_line();
    let bytes = text.len() as u64 + 1;
    let line = StoredLine { at: cx.clock.now(), body: body(cx, owner, entry, text).await? };
    // Concurrent writers of this process wait for each other, in order of arrival, so that they do not make each other
    // retry.
    let _lock = cx.locks.lock((owner, session, agent)).await;
    let mut tries = Tries::at_most(TRIES);
    loop {
        tries.next().await?;
        let found = cx.store.log_head(owner, session, agent).await?;
        let read_at = found.as_ref().map(|found| found.version);
        let new_session = match &found {
            Some(_) => None,
            None => new_session(cx, owner, session, project, line.at).await?,
        };
        let head = match found {
            Some(found) => with_line(found.value, entry, bytes, line.at),
            None => new_head(project, entry, bytes, line.at),
        };
        let (head_is_new, session) = (read_at.is_none(), new_session.as_ref());
        let append = LogAppend { head: &head, read_at, line: &line, session, name };
        match cx.store.append_log(owner, once, &append).await? {
            Appended::Yes if head_is_new => return seal::some_old_log(cx, owner).await,
            Appended::Yes => return Ok(()),
            Appended::Before => return discard(cx, owner, entry, &line).await,
            Appended::Raced => {}
        }
    }
}

async fn body(cx: &Cx, owner: &Owner, entry: &Entry, text: String) -> Result<LineBody> {
    if text.len() <= MAX_INLINE_BYTES {
        return Ok(LineBody::Line(text));
    }
    let blob = cx.clock.uuid();
    let key = BlobKey::log_line(owner, &entry.session_id, &entry.agent_id, blob);
    cx.blobs.put(&key, text, "application/json").await?;
    Ok(LineBody::Blob(blob))
}

/// Deletes what was stored for a line that was not appended.
async fn discard(cx: &Cx, owner: &Owner, entry: &Entry, line: &StoredLine) -> Result<()> {
    if let LineBody::Blob(blob) = line.body {
        let key = BlobKey::log_line(owner, &entry.session_id, &entry.agent_id, blob);
        cx.blobs.delete(&key).await?;
    }
    Ok(())
}

async fn new_session(
    cx: &Cx,
    owner: &Owner,
    session: &SessionId,
    project_id: ProjectId,
    started_at: Timestamp,
) -> Result<Option<LogSession>> {
    let is_there = cx.store.log_session(owner, session).await?.is_some();
    Ok((!is_there).then(|| LogSession { session_id: session.clone(), project_id, started_at }))
}

fn new_head(project_id: ProjectId, entry: &Entry, bytes: u64, at: Timestamp) -> LogHead {
    let head = LogHead {
        session_id: entry.session_id.clone(),
        agent_id: entry.agent_id.clone(),
        project_id,
        agent_type: String::new(),
        entries: 0,
        bytes: 0,
        sealed: 0,
        hot_since: None,
        last_at: at,
        began: Some(at),
        asked: None,
    };
    with_line(head, entry, bytes, at)
}

/// The head of a log after one more line.
fn with_line(mut head: LogHead, entry: &Entry, bytes: u64, at: Timestamp) -> LogHead {
    head.entries = head.entries.saturating_add(1);
    head.bytes = head.bytes.saturating_add(bytes);
    head.last_at = at;
    head.hot_since = head.hot_since.or(Some(at));
    if !entry.agent_type.is_empty() {
        head.agent_type.clone_from(&entry.agent_type);
    }
    head.asked = (entry.event == LogEvent::AgentStart).then(|| entry.description.clone());
    head
}
