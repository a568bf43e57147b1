//! The lines of logs: appended one by one, and moved to S3 in segments.

use domain::ids::{ImportId, Owner};
use domain::log::{InstanceId, SessionId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{LogHead, LogSession, REMEMBERED};
use crate::blobs::BlobKey;
use crate::store::Once;
use crate::store::keys::{self, Guard, Key};
use crate::store::table::{Extras, Order, QueryPage, Store, StoreError, Versioned, Write, Written, item};

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
    /// The key of its object.
    #[must_use]
    pub fn key(&self, owner: &Owner, session: &SessionId, agent: &InstanceId) -> BlobKey {
        match self.place {
            SegmentPlace::Blob(blob) => BlobKey::log_segment(owner, session, agent, blob),
            SegmentPlace::Import(import) => {
                BlobKey::imported_segment(owner, import, session, agent, self.first)
            }
        }
    }

    #[must_use]
    pub fn lines(&self) -> u64 {
        self.last.saturating_sub(self.first).saturating_add(1)
    }
}

/// A logged question. Its answer goes to the same log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedOnce {
    pub agent_id: InstanceId,
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
    pub name: Option<&'a str>,
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

/// An entry of the list of logs to seal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotLog {
    pub session_id: SessionId,
    pub agent_id: InstanceId,
    pub hot_since: Timestamp,
}

impl HotLog {
    #[must_use]
    pub fn key(&self, owner: &Owner) -> Key {
        keys::hot_log(owner, self.hot_since, &self.session_id, &self.agent_id)
    }
}

impl Store {
    /// Adds a log to the list of logs to seal.
    fn hot_write(owner: &Owner, head: &LogHead, hot_since: Timestamp) -> Result<Write, StoreError> {
        let (session_id, agent_id) = (head.session_id.clone(), head.agent_id.clone());
        let hot = HotLog { session_id, agent_id, hot_since };
        Ok(Write::Put { key: hot.key(owner), item: item(&hot, &Extras::default())? })
    }

    /// Appends the newest line of the head.
    pub async fn append_log(
        &self,
        owner: &Owner,
        once: &Once,
        append: &LogAppend<'_>,
    ) -> Result<Appended, StoreError> {
        let LogAppend { head, read_at, line, session, name } = append;
        let mut writes = Vec::with_capacity(9);
        if let Some(name) = name {
            let logged = LoggedOnce { agent_id: head.agent_id.clone() };
            let item = item(&logged, &Extras::expiring(line.at + REMEMBERED))?;
            writes.push(Write::Create { key: keys::logged_once(owner, &head.session_id, name), item });
        }
        writes.push(Self::head_write(owner, head, *read_at)?);
        let key = keys::log_line(owner, &head.session_id, &head.agent_id, head.entries);
        writes.push(Write::Create { key, item: item(line, &Extras::default())? });
        writes.extend(Self::latest_writes(owner, head)?);
        if head.sealed.saturating_add(1) == head.entries {
            writes.push(Self::hot_write(owner, head, line.at)?);
        }
        if read_at.is_none() {
            writes.extend(Self::agent_session_write(owner, head)?);
        }
        if let Some(session) = session {
            writes.extend(Self::session_writes(owner, session)?);
        }
        Ok(match self.commit(once, writes).await? {
            Written::Yes => Appended::Yes,
            Written::Refused(Guard::LoggedOnce) => Appended::Before,
            Written::Refused(_) => Appended::Raced,
        })
    }

    pub(super) fn segment_write(
        owner: &Owner,
        head: &LogHead,
        segment: &Segment,
    ) -> Result<Write, StoreError> {
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
        self.write_all(writes).await
    }

    /// The logs with lines outside segments, those with the oldest lines first.
    pub async fn hot_logs(&self, owner: &Owner, limit: usize) -> Result<Vec<HotLog>, StoreError> {
        let found = self.query(&keys::hot_logs(owner), None, limit, Order::Oldest).await?;
        Ok(found.items.into_iter().map(|(_, hot): (_, Versioned<HotLog>)| hot.value).collect())
    }

    pub async fn forget_hot_log(&self, owner: &Owner, hot: &HotLog) -> Result<(), StoreError> {
        self.delete(&hot.key(owner)).await
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
        let found: QueryPage<StoredLine> = self.query(&range, after.as_deref(), limit, order).await?;
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
        self.write_all(numbers.iter().map(delete).collect()).await.map(|_| ())
    }

    pub async fn logged_once(
        &self,
        owner: &Owner,
        session: &SessionId,
        name: &str,
    ) -> Result<Option<LoggedOnce>, StoreError> {
        Ok(self.get(&keys::logged_once(owner, session, name)).await?.map(|found| found.value))
    }
}
