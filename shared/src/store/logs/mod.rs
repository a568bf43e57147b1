//! Context logs.
//!
//! A line is an item. Lines are numbered from 1 without gaps, and the log's head gives the numbers: an append is one
//! transaction that advances the head from the state that was read and creates the next line. If two writers append at
//! the same time, one of them is refused and tries again. So every line up to the head's number exists, totals need no
//! counting, and existing lines never change. Lines can be moved to S3 as a segment while others are appended.

mod launches;
mod lines;
pub mod log_imports;
mod names;
mod refused;

use domain::ids::{ImportId, Owner, ProjectId};
use domain::log::{InstanceId, SessionId};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::keys::{self, Guard, Key};
use super::table::{Extras, Order, QueryPage, Store, StoreError, Versioned, Write, Written, item};

pub use launches::{EarlyStop, Launch};
pub use lines::{Appended, HotLog, LineBody, LogAppend, LoggedOnce, Segment, SegmentPlace, StoredLine};
pub use names::{GivenName, GivenNames};
pub use refused::{DroppedHooks, RefusedHook};

/// How long a hook is remembered, so that a repeated delivery is recognised.
pub(super) const REMEMBERED: SignedDuration = SignedDuration::from_hours(30 * 24);

/// A session that has logs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSession {
    pub session_id: SessionId,
    /// The project of its first hook.
    pub project_id: ProjectId,
    pub started_at: Timestamp,
}

impl LogSession {
    /// Its key in the list of all sessions.
    #[must_use]
    pub fn key_in_list(&self, owner: &Owner) -> Key {
        keys::log_session_listed(owner, &self.session_id, self.started_at)
    }
}

/// A log without its lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogHead {
    pub session_id: SessionId,
    pub agent_id: InstanceId,
    pub project_id: ProjectId,
    pub agent_type: String,
    /// The number of the newest line, which is also the number of lines.
    pub entries: u64,
    /// The size of all lines as a file, including newlines.
    pub bytes: u64,
    /// The lines up to this number are in segments.
    pub sealed: u64,
    /// When the oldest line outside a segment arrived. While this is set, the log is in the list of logs to seal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hot_since: Option<Timestamp>,
    pub last_at: Timestamp,
    /// When the log began: its place among the agent's sessions. Logs of older versions have none and no such place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<Timestamp>,
    /// The description of the request that the agent has not answered yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
}

/// The session in which an agent was last seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatestLog {
    pub session_id: SessionId,
    pub at: Timestamp,
}

/// A session that has a log of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSession {
    pub session_id: SessionId,
    pub project_id: ProjectId,
}

/// The result of creating a whole log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    Yes,
    /// The log exists already.
    Taken,
    /// The import has ended.
    NoImport,
    /// The project does not exist any more.
    NoProject,
    /// Another writer created the session. Read again and retry.
    Raced,
}

impl Store {
    pub async fn log_session(
        &self,
        owner: &Owner,
        session: &SessionId,
    ) -> Result<Option<LogSession>, StoreError> {
        Ok(self.get(&keys::log_session(owner, session)).await?.map(|found| found.value))
    }

    /// Sessions, sorted by their start.
    pub async fn log_sessions(
        &self,
        owner: &Owner,
        after: Option<&str>,
        limit: usize,
        order: Order,
    ) -> Result<QueryPage<LogSession>, StoreError> {
        self.query(&keys::log_sessions(owner), after, limit, order).await
    }

    pub async fn log_head(
        &self,
        owner: &Owner,
        session: &SessionId,
        agent: &InstanceId,
    ) -> Result<Option<Versioned<LogHead>>, StoreError> {
        self.get(&keys::log_head(owner, session, agent)).await
    }

    /// The logs of a session, sorted by agent name.
    pub async fn log_heads(
        &self,
        owner: &Owner,
        session: &SessionId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<LogHead>, StoreError> {
        self.query(&keys::log_heads(owner, session), after, limit, Order::Oldest).await
    }

    /// The session in which an agent was last seen, of one project or of all projects.
    pub async fn latest_log(
        &self,
        owner: &Owner,
        project: Option<ProjectId>,
        agent: &InstanceId,
    ) -> Result<Option<LatestLog>, StoreError> {
        Ok(self.get(&keys::latest_log(owner, project, agent)).await?.map(|found| found.value))
    }

    fn latest_writes(owner: &Owner, head: &LogHead) -> Result<[Write; 2], StoreError> {
        let latest = LatestLog { session_id: head.session_id.clone(), at: head.last_at };
        let latest = item(&latest, &Extras::default())?;
        let key = |project| keys::latest_log(owner, project, &head.agent_id);
        Ok([
            Write::Put { key: key(None), item: latest.clone() },
            Write::Put { key: key(Some(head.project_id)), item: latest },
        ])
    }

    /// The sessions that have a log of an agent. The session in which the log began last comes first.
    pub async fn agent_sessions(
        &self,
        owner: &Owner,
        agent: &InstanceId,
        limit: usize,
    ) -> Result<Vec<AgentSession>, StoreError> {
        let found = self.query(&keys::agent_sessions(owner, agent), None, limit, Order::Newest).await?;
        Ok(found.items.into_iter().map(|(_, session): (_, Versioned<AgentSession>)| session.value).collect())
    }

    /// Lists the session of a new log among those of its agent.
    fn agent_session_write(owner: &Owner, head: &LogHead) -> Result<Option<Write>, StoreError> {
        let Some(began) = head.began else { return Ok(None) };
        let session = AgentSession { session_id: head.session_id.clone(), project_id: head.project_id };
        Ok(Some(Write::Put {
            key: keys::agent_session(owner, &head.agent_id, began, &head.session_id),
            item: item(&session, &Extras::default())?,
        }))
    }

    fn session_writes(owner: &Owner, session: &LogSession) -> Result<[Write; 2], StoreError> {
        let record = item(session, &Extras::default())?;
        Ok([
            Write::Create { key: keys::log_session(owner, &session.session_id), item: record.clone() },
            Write::Put { key: session.key_in_list(owner), item: record },
        ])
    }

    fn head_write(owner: &Owner, head: &LogHead, read_at: Option<u64>) -> Result<Write, StoreError> {
        let key = keys::log_head(owner, &head.session_id, &head.agent_id);
        let item = item(head, &Extras::default())?;
        Ok(match read_at {
            Some(version) => Write::Replace { key, version, item },
            None => Write::Create { key, item },
        })
    }

    /// Creates a log for an unfinished import, with all its lines in segments. Refused if the log, or a new `session`,
    /// exists already.
    pub async fn create_sealed_log(
        &self,
        owner: &Owner,
        import: ImportId,
        head: &LogHead,
        segments: &[Segment],
        session: Option<&LogSession>,
        is_latest: bool,
    ) -> Result<Created, StoreError> {
        let mut writes = vec![
            Self::head_write(owner, head, None)?,
            Write::Exists { key: keys::open_log_import(owner, import) },
        ];
        writes.extend(Self::project_exists(owner, head.project_id));
        for segment in segments {
            writes.push(Self::segment_write(owner, head, segment)?);
        }
        if is_latest {
            writes.extend(Self::latest_writes(owner, head)?);
        }
        writes.extend(Self::agent_session_write(owner, head)?);
        if let Some(session) = session {
            writes.extend(Self::session_writes(owner, session)?);
        }
        Ok(match self.write_all(writes).await? {
            Written::Yes => Created::Yes,
            Written::Refused(Guard::LogHead) => Created::Taken,
            Written::Refused(Guard::LogImport) => Created::NoImport,
            Written::Refused(Guard::Project) => Created::NoProject,
            Written::Refused(_) => Created::Raced,
        })
    }

    /// Deletes a log. The head is deleted last, so that an interrupted call can be repeated.
    pub async fn delete_log(&self, owner: &Owner, head: &LogHead) -> Result<(), StoreError> {
        let (session, agent) = (&head.session_id, &head.agent_id);
        self.delete_range(&keys::log_lines(owner, session, agent)).await?;
        self.delete_range(&keys::log_segments(owner, session, agent)).await?;
        let mut gone = vec![keys::log_head(owner, session, agent)];
        for project in [None, Some(head.project_id)] {
            let latest = self.latest_log(owner, project, agent).await?;
            if latest.is_some_and(|latest| latest.session_id == *session) {
                gone.push(keys::latest_log(owner, project, agent));
            }
        }
        if let Some(began) = head.began {
            gone.push(keys::agent_session(owner, agent, began, session));
        }
        if let Some(hot_since) = head.hot_since {
            let (session_id, agent_id) = (session.clone(), agent.clone());
            gone.push(HotLog { session_id, agent_id, hot_since }.key(owner));
        }
        let delete = |key| Write::Delete { key, must_exist: false };
        self.write_all(gone.into_iter().map(delete).collect()).await.map(|_| ())
    }

    /// Deletes a session without logs: its assigned names, its remembered hooks, and its entry in the list.
    pub async fn delete_log_session(&self, owner: &Owner, session: &LogSession) -> Result<(), StoreError> {
        self.delete_range(&keys::log_session_all(owner, &session.session_id)).await?;
        self.delete(&session.key_in_list(owner)).await
    }
}
