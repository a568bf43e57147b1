//! Context logs.
//!
//! A line is an item. Lines are numbered from 1 without gaps, and the log's head gives the numbers: an append is one
//! transaction that advances the head from the state that was read and creates the next line. If two writers append at
//! the same time, one of them is refused and tries again. So every line up to the head's number exists, totals need no
//! counting, and existing lines never change. Lines can be moved to S3 as a segment while others are appended.

use domain::ids::{ImportId, Owner, ProjectId};
use domain::log::{InstanceId, SessionId};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::keys::{self, Guard};
use super::table::{Extras, Found, Order, Store, StoreError, Versioned, Write, Written, item};

/// How long a hook is remembered, so that a repeated delivery is recognised.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(30 * 24);

/// How long a refused payload can be read.
const REFUSED_KEPT: SignedDuration = SignedDuration::from_hours(24);

/// A session that has logs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSession {
    pub session_id: SessionId,
    /// The project of its first hook.
    pub project_id: ProjectId,
    pub started_at: Timestamp,
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

/// A stored line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredLine {
    /// When it arrived.
    pub at: Timestamp,
    #[serde(flatten)]
    pub body: LineBody,
}

/// Where a line's text is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineBody {
    Line(String),
    /// In S3, because it is too large for an item.
    Blob(Uuid),
}

/// Lines `first` to `last`, stored as one S3 object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    pub first: u64,
    pub last: u64,
    pub bytes: u64,
    #[serde(flatten)]
    pub place: SegmentPlace,
}

/// Where a segment is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SegmentPlace {
    /// With its log, under its own name.
    Blob(Uuid),
    /// With the import that created it, under the log's name and the number of the first line.
    Import(ImportId),
}

impl Segment {
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.last + 1 - self.first
    }
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

/// How many hooks of one agent type a project's filter dropped on one day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedHooks {
    pub project_id: ProjectId,
    pub agent_type: String,
    pub count: u64,
}

/// An entry of the list of logs to seal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotLog {
    pub session_id: SessionId,
    pub agent_id: InstanceId,
    pub hot_since: Timestamp,
}

/// A logged question. Its answer goes to the same log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedOnce {
    pub agent_id: InstanceId,
}

/// An agent that runs in the background.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    pub agent_id: InstanceId,
    pub agent_type: String,
    pub description: String,
    /// The tool call that launched it.
    pub call: Option<String>,
}

/// An agent that stopped before its launch was reported. Until the launch is reported, it is listed among the refused
/// payloads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlyStop {
    pub answer: String,
    pub at: Timestamp,
    /// The refusal that lists it, and when it was written.
    pub refusal: Uuid,
    pub refused_at: Timestamp,
}

/// The name that was assigned to a prompt without a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenName {
    pub agent_id: InstanceId,
}

/// The names that were assigned for one hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenNames {
    pub first_seen: Timestamp,
    /// The number of the newest name.
    pub number: u32,
}

/// A payload that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedHook {
    pub refused_at: Timestamp,
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The size of the whole payload, in bytes.
    pub bytes: u64,
    /// The beginning of the payload.
    pub excerpt: String,
}

#[derive(Serialize, Deserialize)]
struct Count {
    count: u64,
}

/// The line to append, and the new head.
pub struct LogAppend<'a> {
    pub head: &'a LogHead,
    /// The version of the head that was read. `None` if it did not exist.
    pub read_at: Option<u64>,
    pub line: &'a StoredLine,
    /// The session, if it is new.
    pub session: Option<&'a LogSession>,
    /// Identifies the line within the session, so that it is logged only once.
    pub once: Option<&'a str>,
}

/// The result of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    Yes,
    /// The line had been logged before.
    Before,
    /// Another writer was faster. Read again and retry.
    Raced,
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
    ) -> Result<Found<LogSession>, StoreError> {
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
    ) -> Result<Found<LogHead>, StoreError> {
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

    /// The sessions that have a log of an agent, those in which it began last first.
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
            Write::Put { key: keys::log_session_listed(owner, session), item: record },
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

    /// Adds a log to the list of logs to seal.
    fn hot_write(owner: &Owner, head: &LogHead, hot_since: Timestamp) -> Result<Write, StoreError> {
        let (session_id, agent_id) = (head.session_id.clone(), head.agent_id.clone());
        let hot = HotLog { session_id, agent_id, hot_since };
        Ok(Write::Put { key: keys::hot_log(owner, &hot), item: item(&hot, &Extras::default())? })
    }

    /// Appends the newest line of the head.
    pub async fn append_log(&self, owner: &Owner, append: &LogAppend<'_>) -> Result<Appended, StoreError> {
        let LogAppend { head, read_at, line, session, once } = append;
        let mut writes = Vec::with_capacity(9);
        if let Some(name) = once {
            let once = LoggedOnce { agent_id: head.agent_id.clone() };
            let item = item(&once, &Extras::expiring(line.at + REMEMBERED))?;
            writes.push(Write::Create { key: keys::logged_once(owner, &head.session_id, name), item });
        }
        writes.push(Self::head_write(owner, head, *read_at)?);
        let key = keys::log_line(owner, &head.session_id, &head.agent_id, head.entries);
        writes.push(Write::Create { key, item: item(line, &Extras::default())? });
        writes.extend(Self::latest_writes(owner, head)?);
        if head.sealed + 1 == head.entries {
            writes.push(Self::hot_write(owner, head, line.at)?);
        }
        if read_at.is_none() {
            writes.extend(Self::agent_session_write(owner, head)?);
        }
        if let Some(session) = session {
            writes.extend(Self::session_writes(owner, session)?);
        }
        Ok(match self.commit(writes).await? {
            Written::Yes => Appended::Yes,
            Written::Refused(Guard::LoggedOnce) => Appended::Before,
            Written::Refused(_) => Appended::Raced,
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
        Ok(match self.transact(writes).await? {
            Written::Yes => Created::Yes,
            Written::Refused(Guard::LogHead) => Created::Taken,
            Written::Refused(Guard::LogImport) => Created::NoImport,
            Written::Refused(Guard::Project) => Created::NoProject,
            Written::Refused(_) => Created::Raced,
        })
    }

    fn segment_write(owner: &Owner, head: &LogHead, segment: &Segment) -> Result<Write, StoreError> {
        let key = keys::log_segment(owner, &head.session_id, &head.agent_id, segment.first);
        Ok(Write::Create { key, item: item(segment, &Extras::default())? })
    }

    /// Records that the first lines are in a segment now. `head` is the new head; the old one was read at this version.
    pub async fn seal_log(
        &self,
        owner: &Owner,
        head: &LogHead,
        read_at: u64,
        segment: &Segment,
    ) -> Result<Written, StoreError> {
        let mut writes =
            vec![Self::head_write(owner, head, Some(read_at))?, Self::segment_write(owner, head, segment)?];
        if let Some(hot_since) = head.hot_since {
            writes.push(Self::hot_write(owner, head, hot_since)?);
        }
        self.transact(writes).await
    }

    /// The logs with lines outside segments, those with the oldest lines first.
    pub async fn hot_logs(&self, owner: &Owner, limit: usize) -> Result<Vec<HotLog>, StoreError> {
        let found = self.query(&keys::hot_logs(owner), None, limit, Order::Oldest).await?;
        Ok(found.items.into_iter().map(|(_, hot): (_, Versioned<HotLog>)| hot.value).collect())
    }

    pub async fn forget_hot_log(&self, owner: &Owner, hot: &HotLog) -> Result<(), StoreError> {
        self.delete(&keys::hot_log(owner, hot)).await
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
            gone.push(keys::hot_log(owner, &HotLog { session_id, agent_id, hot_since }));
        }
        let delete = |key| Write::Delete { key, must_exist: false };
        self.transact(gone.into_iter().map(delete).collect()).await.map(|_| ())
    }

    /// Deletes a session without logs: its assigned names, its remembered hooks, and its entry in the list.
    pub async fn delete_log_session(&self, owner: &Owner, session: &LogSession) -> Result<(), StoreError> {
        self.delete_range(&keys::log_session_all(owner, &session.session_id)).await?;
        self.delete(&keys::log_session_listed(owner, session)).await
    }

    /// Lines in the table, with their numbers: after line `after` in ascending order, or before it in descending order.
    pub async fn log_lines(
        &self,
        owner: &Owner,
        session: &SessionId,
        agent: &InstanceId,
        after: Option<u64>,
        limit: usize,
        order: Order,
    ) -> Result<(Vec<(u64, StoredLine)>, bool), StoreError> {
        let after = after.map(|number| keys::log_line(owner, session, agent, number).sk);
        let range = keys::log_lines(owner, session, agent);
        let found: Found<StoredLine> = self.query(&range, after.as_deref(), limit, order).await?;
        let lines =
            found.items.into_iter().filter_map(|(sk, line)| Some((keys::log_number(&sk)?, line.value)));
        Ok((lines.collect(), found.last.is_none()))
    }

    /// The segment that begins with this line.
    pub async fn log_segment(
        &self,
        owner: &Owner,
        session: &SessionId,
        agent: &InstanceId,
        first: u64,
    ) -> Result<Option<Segment>, StoreError> {
        Ok(self.get(&keys::log_segment(owner, session, agent, first)).await?.map(|found| found.value))
    }

    /// The segments before the one that begins with line `before`, newest first.
    pub async fn log_segments(
        &self,
        owner: &Owner,
        session: &SessionId,
        agent: &InstanceId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Segment>, StoreError> {
        let before = before.map(|first| keys::log_segment(owner, session, agent, first).sk);
        let range = keys::log_segments(owner, session, agent);
        let found = self.query(&range, before.as_deref(), limit, Order::Newest).await?;
        Ok(found.items.into_iter().map(|(_, segment): (_, Versioned<Segment>)| segment.value).collect())
    }

    /// Deletes lines that are stored in a segment, at most 100.
    pub async fn delete_log_lines(
        &self,
        owner: &Owner,
        session: &SessionId,
        agent: &InstanceId,
        numbers: &[u64],
    ) -> Result<(), StoreError> {
        let delete = |number: &u64| Write::Delete {
            key: keys::log_line(owner, session, agent, *number),
            must_exist: false,
        };
        self.transact(numbers.iter().map(delete).collect()).await.map(|_| ())
    }

    pub async fn logged_once(
        &self,
        owner: &Owner,
        session: &SessionId,
        name: &str,
    ) -> Result<Option<LoggedOnce>, StoreError> {
        Ok(self.get(&keys::logged_once(owner, session, name)).await?.map(|found| found.value))
    }

    /// Remembers an agent that was launched in the background under this id.
    pub async fn put_launch(
        &self,
        owner: &Owner,
        session: &SessionId,
        background: &str,
        launch: &Launch,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let record = item(launch, &Extras::expiring(now + REMEMBERED))?;
        self.put(&keys::launch(owner, session, background), record).await
    }

    pub async fn launch(
        &self,
        owner: &Owner,
        session: &SessionId,
        background: &str,
    ) -> Result<Option<Launch>, StoreError> {
        Ok(self.get(&keys::launch(owner, session, background)).await?.map(|found| found.value))
    }

    /// Stores the answer of an agent whose launch was not reported, and lists it as refused. This write is refused if
    /// an answer is stored already.
    pub async fn keep_early_stop(
        &self,
        owner: &Owner,
        (session, background): (&SessionId, &str),
        stop: &EarlyStop,
        refusal: &RefusedHook,
    ) -> Result<Written, StoreError> {
        let record = item(stop, &Extras::expiring(stop.refused_at + REMEMBERED))?;
        let mut writes =
            vec![Write::Create { key: keys::early_stop(owner, session, background), item: record }];
        writes.extend(Self::refusal_writes(owner, stop.refusal, refusal)?);
        self.transact(writes).await
    }

    pub async fn early_stop(
        &self,
        owner: &Owner,
        session: &SessionId,
        background: &str,
    ) -> Result<Option<EarlyStop>, StoreError> {
        Ok(self.get(&keys::early_stop(owner, session, background)).await?.map(|found| found.value))
    }

    /// Deletes such an answer. It is no longer listed as refused.
    pub async fn forget_early_stop(
        &self,
        owner: &Owner,
        session: &SessionId,
        background: &str,
        stop: &EarlyStop,
    ) -> Result<(), StoreError> {
        let writes = vec![
            Write::Delete { key: keys::early_stop(owner, session, background), must_exist: true },
            Write::Delete { key: keys::refused_hook(owner, stop.refusal), must_exist: false },
            Self::refusals(owner, stop.refused_at, -1),
        ];
        // Refused if another request has done it already.
        self.transact(writes).await.map(|_| ())
    }

    /// The name that was assigned to a prompt, by the prompt's hash.
    pub async fn given_name(
        &self,
        owner: &Owner,
        session: &SessionId,
        prompt: &str,
    ) -> Result<Option<GivenName>, StoreError> {
        Ok(self.get(&keys::given_name(owner, session, prompt)).await?.map(|found| found.value))
    }

    pub async fn given_names(
        &self,
        owner: &Owner,
        session: &SessionId,
        hash: &str,
    ) -> Result<Option<Versioned<GivenNames>>, StoreError> {
        self.get(&keys::given_names(owner, session, hash)).await
    }

    /// Assigns a name to a prompt. Refused if the prompt has a name (`first` 0), if another prompt with the hash was
    /// faster (1), or if an agent has chosen this name itself (2).
    pub async fn give_name(
        &self,
        owner: &Owner,
        session: &SessionId,
        (prompt, name): (&str, &InstanceId),
        (hash, names, read_at): (&str, &GivenNames, Option<u64>),
    ) -> Result<Written, StoreError> {
        let (plain, key) = (Extras::default(), keys::given_names(owner, session, hash));
        let names = item(names, &plain)?;
        self.transact(vec![
            Write::Create {
                key: keys::given_name(owner, session, prompt),
                item: item(&GivenName { agent_id: name.clone() }, &plain)?,
            },
            match read_at {
                Some(version) => Write::Replace { key, version, item: names },
                None => Write::Create { key, item: names },
            },
            Write::Absent { key: keys::log_head(owner, session, name) },
        ])
        .await
    }

    /// Stores a refused payload for a day, and counts it.
    pub async fn refuse_hook(&self, owner: &Owner, id: Uuid, hook: &RefusedHook) -> Result<(), StoreError> {
        self.transact(Self::refusal_writes(owner, id, hook)?.into()).await.map(|_| ())
    }

    fn refusal_writes(owner: &Owner, id: Uuid, hook: &RefusedHook) -> Result<[Write; 2], StoreError> {
        let expires = hook.refused_at + REFUSED_KEPT;
        let record = item(hook, &Extras::expiring(expires))?;
        Ok([
            Write::Put { key: keys::refused_hook(owner, id), item: record },
            Self::refusals(owner, hook.refused_at, 1),
        ])
    }

    /// Adds `by` to the number of payloads that were refused on the day of `at`.
    fn refusals(owner: &Owner, at: Timestamp, by: i64) -> Write {
        Write::Add {
            key: keys::refused_hooks_of(owner, at),
            numbers: vec![("count", by)],
            upsert: true,
            expires: Some(at + REFUSED_KEPT + REFUSED_KEPT),
        }
    }

    /// Refused payloads, newest first. The list may contain payloads that are older than a day.
    pub async fn refused_hooks(
        &self,
        owner: &Owner,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Found<RefusedHook>, StoreError> {
        self.query(&keys::refused_hooks(owner), after, limit, Order::Newest).await
    }

    /// How many payloads were refused on the UTC day of `day`.
    pub async fn refused_hooks_on(&self, owner: &Owner, day: Timestamp) -> Result<u64, StoreError> {
        let found: Option<Versioned<Count>> = self.get(&keys::refused_hooks_of(owner, day)).await?;
        Ok(found.map_or(0, |found| found.value.count))
    }

    /// Counts a hook that the filter of a project dropped.
    pub async fn drop_hook(
        &self,
        owner: &Owner,
        at: Timestamp,
        project: ProjectId,
        agent_type: &str,
    ) -> Result<(), StoreError> {
        let count = Write::Add {
            key: keys::dropped_hook(owner, at, project, agent_type),
            numbers: vec![("count", 1)],
            upsert: true,
            expires: Some(at + REFUSED_KEPT + REFUSED_KEPT),
        };
        self.transact(vec![count]).await.map(|_| ())
    }

    /// The hooks that filters dropped on the UTC days of these instants, up to `limit` agent types.
    pub async fn dropped_hooks(
        &self,
        owner: &Owner,
        days: &[Timestamp],
        limit: usize,
    ) -> Result<Vec<DroppedHooks>, StoreError> {
        let days: Vec<String> = days.iter().map(|day| day.strftime("%Y-%m-%d").to_string()).collect();
        let found: Found<Count> = self.query(&keys::dropped_hooks(owner), None, limit, Order::Newest).await?;
        let dropped = found.items.into_iter().filter_map(|(key, count)| {
            let (day, project_id, agent_type) = keys::dropped_parts(&key)?;
            let count = count.value.count;
            let is_recent = days.iter().any(|recent| recent == day);
            is_recent.then(|| DroppedHooks { project_id, agent_type: agent_type.to_owned(), count })
        });
        Ok(dropped.collect())
    }

    /// Whether a refused payload should still be shown. DynamoDB deletes expired items late.
    #[must_use]
    pub fn is_kept(hook: &RefusedHook, now: Timestamp) -> bool {
        hook.refused_at + REFUSED_KEPT > now
    }
}
