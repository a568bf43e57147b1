//! Reads logs: the end of a log, a whole log page by page, and the list of logs.

use bytes::Bytes;
use domain::ids::{Owner, ProjectId};
use domain::log::view::{Metadata, Shown};
use domain::log::{Entry, InstanceId, SessionId, entry};
use futures::FutureExt;
use futures::future::try_join_all;
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::segments::{self, Log};
use crate::blobs::{BlobError, BlobKey};
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::page::{self, Page, PageQuery};
use crate::store::Versioned;
use crate::store::logs::{LineBody, LogHead, LogSession, StoredLine};
use crate::store::table::Order;

/// How many lines one query of the table reads when a whole log is read.
const PAGE: usize = 200;

/// How many sessions are read at once.
const AT_ONCE: usize = 16;

/// The most bytes of lines that one answer reads, from all its sessions and agents together. A function has 512 MB of
/// memory.
const MAX_TAIL_BYTES: usize = 8 * 1024 * 1024;

/// How many long lines are fetched at once.
const LONG_AT_ONCE: usize = 4;

/// How many of an agent's sessions, newest first, are searched for sessions of a project.
const MAX_LISTED: usize = 100;

/// How many earlier sessions one answer reads.
const MAX_EARLIER: usize = 20;

/// The most agents of a session that the list of sessions names.
const MAX_AGENTS: usize = 200;

/// The bytes of lines that one answer may still read. The first line is always read.
#[derive(Debug)]
pub struct Room {
    bytes: usize,
    is_untouched: bool,
}

impl Room {
    /// The room of one answer, divided equally into this many parts.
    #[must_use]
    pub fn shared_by(parts: usize) -> Self {
        Self { bytes: MAX_TAIL_BYTES / parts.max(1), is_untouched: true }
    }

    /// Takes lines while they fit, and returns how many did. After a line that does not fit there is no room left,
    /// because older lines would leave a gap.
    fn take(&mut self, newest_first: &[Bytes]) -> usize {
        for (taken, line) in newest_first.iter().enumerate() {
            let fits = line.len() <= self.bytes || self.is_untouched;
            self.bytes = if fits { self.bytes.saturating_sub(line.len()) } else { 0 };
            self.is_untouched = false;
            if !fits {
                return taken;
            }
        }
        newest_first.len()
    }
}

/// The end of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Of the requested session, or of the latest one.
    pub metadata: Metadata,
    /// Oldest first. Entries of earlier sessions come first and are marked.
    pub entries: Vec<Shown>,
}

/// The latest session with a log of the agent, in one project or in any.
///
/// # Errors
/// If the table does not answer.
pub async fn latest_session(
    cx: &Cx,
    owner: &Owner,
    project: Option<ProjectId>,
    agent: &InstanceId,
) -> Result<Option<SessionId>> {
    if let Some(latest) = cx.store.latest_log(owner, project, agent).await? {
        return Ok(Some(latest.session_id));
    }
    // The latest session was deleted with its project. There may be others.
    let mut sessions = cx.store.agent_sessions(owner, agent, MAX_LISTED).await?.into_iter();
    let found = sessions.find(|found| project.is_none_or(|project| found.project_id == project));
    Ok(found.map(|found| found.session_id))
}

/// The last `lines` entries of an agent: of the given session, or, without one, of the latest session with the agent
/// and then of earlier ones. An agent's start is logged before the agent reads, so the latest session alone would
/// always be new. An unknown agent has an empty log.
///
/// # Errors
/// If the table or the bucket does not answer.
pub async fn tail(
    cx: &Cx,
    owner: &Owner,
    project: Option<ProjectId>,
    session: Option<SessionId>,
    agent: &InstanceId,
    lines: u64,
) -> Result<Tail> {
    let with_earlier = session.is_none();
    let session = match session {
        Some(session) => Some(session),
        None => latest_session(cx, owner, project, agent).await?,
    };
    let Some(session) = session else {
        return Ok(Tail { metadata: Metadata::empty(agent.clone(), None), entries: Vec::new() });
    };
    let mut room = Room::shared_by(1);
    let SessionTail { metadata, entries } = of_session(cx, owner, &session, agent, lines, &mut room).await?;
    let read = entries.len() as u64;
    let mut shown = if with_earlier && read < lines {
        earlier(cx, owner, project, agent, &session, lines - read, &mut room).await?
    } else {
        Vec::new()
    };
    shown.extend(entries.into_iter().map(|entry| Shown { entry, earlier_session: false }));
    Ok(Tail { metadata, entries: shown })
}

/// The last `lines` entries of an agent in the sessions before a given one, oldest first, as far as there is room.
///
/// # Errors
/// If the table or the bucket does not answer.
pub async fn earlier(
    cx: &Cx,
    owner: &Owner,
    project: Option<ProjectId>,
    agent: &InstanceId,
    session: &SessionId,
    lines: u64,
    room: &mut Room,
) -> Result<Vec<Shown>> {
    let mut sessions = cx.store.agent_sessions(owner, agent, MAX_LISTED).await?;
    sessions.retain(|found| {
        found.session_id != *session && project.is_none_or(|project| found.project_id == project)
    });
    let mut newest_first = Vec::<Shown>::new();
    for found in sessions.into_iter().take(MAX_EARLIER) {
        let missing = lines - newest_first.len() as u64;
        if missing == 0 || room.bytes == 0 {
            break;
        }
        let entries = of_session(cx, owner, &found.session_id, agent, missing, room).await?.entries;
        let shown = entries.into_iter().rev().map(|entry| Shown { entry, earlier_session: true });
        newest_first.extend(shown);
    }
    newest_first.reverse();
    Ok(newest_first)
}

/// The end of a log.
struct SessionTail {
    metadata: Metadata,
    entries: Vec<Entry>,
}

async fn of_session(
    cx: &Cx,
    owner: &Owner,
    session: &SessionId,
    agent: &InstanceId,
    lines: u64,
    room: &mut Room,
) -> Result<SessionTail> {
    let Some(Versioned { value: head, .. }) = cx.store.log_head(owner, session, agent).await? else {
        let metadata = Metadata::empty(agent.clone(), Some(session.clone()));
        return Ok(SessionTail { metadata, entries: Vec::new() });
    };
    let log = Log { owner, session, agent };
    let any_hot = head.sealed < head.entries;
    let mut newest = match last_lines(cx, log, any_hot, lines, room.bytes).await {
        // A long line was moved into a segment after its record was read.
        Err(Error::Blob(BlobError::Missing { .. })) => {
            last_lines(cx, log, any_hot, lines, room.bytes).await?
        }
        newest => newest?,
    };
    // If reading stopped because the room was full, the room is empty now.
    newest.truncate(room.take(&newest));
    let entries = newest.iter().rev().map(|line| parse(log, line)).collect::<Result<_>>()?;
    let LogHead { entries: total, bytes, last_at, .. } = head;
    let metadata = Metadata::of(agent.clone(), session.clone(), total, bytes, last_at);
    Ok(SessionTail { metadata, entries })
}

/// Reads a stored line.
///
/// # Errors
/// If it is not an entry, which is a bug.
pub fn parse(log: Log<'_>, line: &[u8]) -> Result<Entry> {
    Entry::from_line(line, log.session, log.agent).map_err(|error| Error::internal(error.to_string()))
}

/// The last lines of a log, newest first: those in the table, and the missing ones from the newest segments. A line
/// leaves the table only after its segment is recorded, so lines that are sealed between the two reads are found by the
/// second read. If all lines were sealed when the head was read, the table is not queried. Reading stops soon after
/// `room` bytes, so the result may have fewer lines than `count`, and a few more bytes than `room`.
async fn last_lines(cx: &Cx, log: Log<'_>, any_hot: bool, count: u64, room: usize) -> Result<Vec<Bytes>> {
    let Log { owner, session, agent } = log;
    let (mut newest, mut before): (Vec<Bytes>, _) = (Vec::new(), None);
    let is_full = |newest: &[Bytes]| newest.iter().map(Bytes::len).sum::<usize>() >= room;
    while any_hot && (newest.len() as u64) < count && !is_full(&newest) {
        let limit = count as usize - newest.len();
        let (lines, end) = cx.store.log_lines(owner, session, agent, before, limit, Order::Newest).await?;
        before = lines.last().map_or(before, |(number, _)| Some(*number));
        let mut whole = lines.into_iter().map(|(_, line)| text(cx, log, line));
        while whole.len() > 0 && !is_full(&newest) {
            newest.extend(try_join_all(whole.by_ref().take(LONG_AT_ONCE)).await?);
        }
        if end {
            break;
        }
    }
    let mut at = None;
    while (newest.len() as u64) < count && before != Some(1) && !is_full(&newest) {
        let found = cx.store.log_segments(owner, session, agent, at, 1).await?;
        let Some(segment) = found.into_iter().next() else { break };
        at = Some(segment.first);
        // The table also had these lines: the sealing has not deleted them yet.
        let known = before.map_or(0, |before| segment.last.saturating_add(1).saturating_sub(before));
        if known < segment.lines() {
            let missing = count - newest.len() as u64;
            let mut lines = segments::tail(cx, log, &segment, known + missing).await?;
            lines.truncate(lines.len() - known as usize);
            newest.extend(lines.into_iter().rev());
            before = Some(segment.first);
        }
    }
    Ok(newest)
}

/// The text of a line, from the table or from S3.
///
/// # Errors
/// If S3 does not answer.
pub async fn text(cx: &Cx, log: Log<'_>, line: StoredLine) -> Result<Bytes> {
    match line.body {
        LineBody::Line(text) => Ok(text.into()),
        LineBody::Blob(blob) => {
            let key = BlobKey::log_line(log.owner, log.session, log.agent, blob);
            Ok(cx.blobs.get(&key).await?)
        }
    }
}

/// Reads a log from its beginning, some lines at a time. Lines may be sealed meanwhile.
pub struct Pages<'a> {
    log: Log<'a>,
    next: u64,
}

impl<'a> Pages<'a> {
    #[must_use]
    pub fn new(log: Log<'a>) -> Self {
        Self { log, next: 1 }
    }

    /// The next lines, each with its newline. `None` at the end.
    ///
    /// # Errors
    /// If the table or the bucket does not answer.
    pub async fn next(&mut self, cx: &Cx) -> Result<Option<Bytes>> {
        let Log { owner, session, agent } = self.log;
        loop {
            if let Some(segment) = cx.store.log_segment(owner, session, agent, self.next).await? {
                self.next = segment.last.max(self.next).saturating_add(1);
                return segments::whole(cx, self.log, &segment).await.map(Some);
            }
            let after = Some(self.next - 1);
            let (lines, _) = cx.store.log_lines(owner, session, agent, after, PAGE, Order::Oldest).await?;
            match lines.first() {
                None => return Ok(None),
                // The lines were sealed between the two reads, or they are missing: an imported log may have a gap.
                Some((number, _)) if *number != self.next => {
                    if !self.was_sealed(cx).await? {
                        self.next = *number;
                    }
                }
                Some(_) => {
                    let read = lines.len() as u64;
                    let lines = lines.into_iter().map(|(_, line)| text(cx, self.log, line));
                    let lines = match try_join_all(lines).await {
                        Err(Error::Blob(BlobError::Missing { .. })) if self.was_sealed(cx).await? => continue,
                        lines => lines?,
                    };
                    self.next += read;
                    return Ok(Some(joined(&lines).into()));
                }
            }
        }
    }

    /// Whether the next line is in a segment now.
    async fn was_sealed(&self, cx: &Cx) -> Result<bool> {
        let Log { owner, session, agent } = self.log;
        Ok(cx.store.log_segment(owner, session, agent, self.next).await?.is_some())
    }
}

/// Joins lines to a text, each with its newline.
#[must_use]
pub fn joined(lines: &[Bytes]) -> Vec<u8> {
    let mut text = Vec::with_capacity(lines.iter().map(|line| line.len() + 1).sum());
    for line in lines {
        text.extend_from_slice(line);
        text.push(b'\n');
    }
    text
}

/// A log in the list of a session.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LogView {
    pub agent_id: InstanceId,
    pub agent_type: String,
    pub total_entries: u64,
    pub file_size_bytes: u64,
    #[serde(serialize_with = "entry::to_millis")]
    pub last_modified: Timestamp,
}

/// A session with its logs.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SessionView {
    pub session_id: SessionId,
    pub project_id: ProjectId,
    #[serde(serialize_with = "entry::to_millis")]
    pub started_at: Timestamp,
    /// Ordered by name, up to 200.
    pub agents: Vec<LogView>,
    /// Whether the session has more agents than the list names.
    pub more_agents: bool,
}

impl From<LogHead> for LogView {
    fn from(LogHead { agent_id, agent_type, entries, bytes, last_at, .. }: LogHead) -> Self {
        Self { agent_id, agent_type, total_entries: entries, file_size_bytes: bytes, last_modified: last_at }
    }
}

/// The sessions of one project or of all projects, the newest first.
///
/// # Errors
/// 400 if `limit` or `cursor` is invalid.
pub async fn sessions(
    cx: &Cx,
    owner: &Owner,
    project: Option<ProjectId>,
    query: &PageQuery,
) -> Result<Page<SessionView>> {
    let newest = |after: Option<String>, limit| {
        async move { cx.store.log_sessions(owner, after.as_deref(), limit, Order::Newest).await }.boxed()
    };
    let keep = |session: &LogSession| project.is_none_or(|project| session.project_id == project);
    let page = page::filtered(owner, "sessions with logs", query, newest, keep).await?;
    let mut data = Vec::with_capacity(page.data.len());
    for some in page.data.chunks(AT_ONCE) {
        data.extend(try_join_all(some.iter().map(|found| session(cx, owner, &found.value))).await?);
    }
    Ok(Page { data, next_cursor: page.next_cursor, has_more: page.has_more })
}

async fn session(cx: &Cx, owner: &Owner, session: &LogSession) -> Result<SessionView> {
    let found = cx.store.log_heads(owner, &session.session_id, None, MAX_AGENTS).await?;
    let more_agents = found.last.is_some();
    Ok(SessionView {
        session_id: session.session_id.clone(),
        project_id: session.project_id,
        started_at: session.started_at,
        agents: found.items.into_iter().map(|(_, head)| head.value.into()).collect(),
        more_agents,
    })
}
