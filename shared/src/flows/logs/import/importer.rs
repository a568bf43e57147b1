//! Makes logs from the pieces of an archive.
//!
//! Segments are stored first. Their names are computed from the import, the log and the line, so a retry stores the
//! same objects. A log is then created in one transaction with all its segments, or not at all.

use std::collections::{HashMap, HashSet};

use domain::ids::{ImportId, Owner, ProjectId};
use domain::log::import::{ImportReport, LogImport};
use domain::log::layout;

use super::files::{CompleteLog, Last, Name, Piece};
use crate::blobs::BlobKey;
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::logs::segments::{self, Log};
use crate::store::Tries;
use crate::store::logs::{Created, LogHead, LogSession, Segment, SegmentPlace};

/// How many paths of skipped logs are named.
const MAX_NAMED: usize = 100;

/// Why the import stops.
pub enum Stop {
    /// Another process has ended the import.
    Ended,
    /// The import is impossible, for this reason.
    Refused(String),
    /// The table or the bucket did not answer. The import must be retried.
    Ours(Error),
}

impl<E: Into<Error>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Ours(error.into())
    }
}

/// An import in progress.
pub struct LogImporter<'a> {
    cx: &'a Cx,
    owner: &'a Owner,
    id: ImportId,
    project: ProjectId,
    /// Whether an earlier try may have left something.
    again: bool,
    /// Logs with pieces that have arrived and pieces to come.
    open: HashMap<Name, StoredLog>,
    /// Logs that this try has completed. A second file of the same log is ignored.
    seen: HashSet<Name>,
    pub report: ImportReport,
}

/// What the table has of a log.
enum StoredLog {
    /// Nothing yet. These segments are stored.
    Nothing(Vec<Segment>),
    /// An earlier try of this import has made the log.
    Ours,
    /// The log existed before the import.
    Another,
}

impl<'a> LogImporter<'a> {
    pub fn new(cx: &'a Cx, owner: &'a Owner, import: &LogImport, again: bool) -> Self {
        let (id, project) = (import.import_id, import.project_id);
        let (open, seen, report) = (HashMap::new(), HashSet::new(), ImportReport::default());
        Self { cx, owner, id, project, again, open, seen, report }
    }

    pub async fn take(&mut self, piece: Piece) -> Result<(), Stop> {
        match piece {
            Piece::Corrupt(lines) => self.report.corrupt_lines += lines,
            Piece::Lines { log, lines, text } => {
                if !self.open.contains_key(&log) {
                    let found = self.look(&log).await?;
                    self.open.insert(log.clone(), found);
                }
                if let Some(StoredLog::Nothing(stored)) = self.open.get_mut(&log) {
                    let first = stored.last().map_or(1, |segment| segment.last + 1);
                    let place = SegmentPlace::Import(self.id);
                    let named = Log { owner: self.owner, session: &log.0, agent: &log.1 };
                    stored.push(segments::store(self.cx, named, place, first, lines, text).await?);
                }
            }
            Piece::Whole(whole) => {
                let made = match self.open.remove(&whole.log) {
                    Some(StoredLog::Nothing(stored)) => self.make(&whole, &stored).await?,
                    Some(StoredLog::Ours) => true,
                    Some(StoredLog::Another) | None => false,
                };
                if made {
                    self.report.logs += 1;
                    self.report.entries += whole.entries;
                } else {
                    self.skip(&whole.log);
                }
                self.seen.insert(whole.log);
            }
        }
        Ok(())
    }

    /// Deletes the segments of logs that were not made. Nobody will make them, because the import or the project is
    /// gone.
    pub async fn discard(&mut self) -> Result<()> {
        for (log, found) in std::mem::take(&mut self.open) {
            let is_stored = matches!(&found, StoredLog::Nothing(stored) if !stored.is_empty());
            if is_stored && !is_of(self.cx, self.owner, self.id, &log).await? {
                self.discard_log(&log).await?;
            }
        }
        Ok(())
    }

    async fn discard_log(&self, (session, agent): &Name) -> Result<()> {
        let prefix = BlobKey::imported_log(self.owner, self.id, session, agent);
        Ok(self.cx.blobs.delete_prefix(&prefix).await?)
    }

    fn skip(&mut self, (session, agent): &Name) {
        self.report.skipped_logs += 1;
        if self.report.skipped.len() < MAX_NAMED {
            self.report.skipped.push(layout::log_path(session, agent));
        }
    }

    async fn look(&self, log: &Name) -> Result<StoredLog> {
        if self.seen.contains(log) {
            return Ok(StoredLog::Another);
        }
        if self.cx.store.log_head(self.owner, &log.0, &log.1).await?.is_none() {
            return Ok(StoredLog::Nothing(Vec::new()));
        }
        if is_of(self.cx, self.owner, self.id, log).await? {
            return Ok(StoredLog::Ours);
        }
        if self.again {
            self.discard_log(log).await?;
        }
        Ok(StoredLog::Another)
    }

    /// Makes a log. Returns whether the log belongs to this import.
    async fn make(&self, whole: &CompleteLog, stored: &[Segment]) -> Result<bool, Stop> {
        let Self { cx, owner, id, project, .. } = *self;
        let CompleteLog { log, entries, bytes, began, last: Last { at, agent_type, asked } } = whole;
        let (session, agent) = log;
        let head = LogHead {
            session_id: session.clone(),
            agent_id: agent.clone(),
            project_id: project,
            agent_type: agent_type.clone(),
            entries: *entries,
            bytes: *bytes,
            sealed: *entries,
            hot_since: None,
            last_at: *at,
            began: Some(*began),
            asked: asked.clone(),
        };
        let mut tries = Tries::default();
        loop {
            tries.next().await.map_err(|error| Stop::Ours(error.into()))?;
            let is_new = cx.store.log_session(owner, session).await?.is_none();
            let record = is_new.then(|| LogSession {
                session_id: session.clone(),
                project_id: project,
                started_at: *began,
            });
            let latest = cx.store.latest_log(owner, None, agent).await?;
            let is_latest = latest.is_none_or(|latest| latest.at < *at);
            match cx.store.create_sealed_log(owner, id, &head, stored, record.as_ref(), is_latest).await? {
                Created::Yes => return Ok(true),
                // A hook has made it meanwhile, or the same event was delivered twice.
                Created::Taken if is_of(cx, owner, id, log).await? => return Ok(true),
                Created::Taken => {
                    self.discard_log(log).await?;
                    return Ok(false);
                }
                Created::NoImport => {
                    self.discard_log(log).await?;
                    return Err(Stop::Ended);
                }
                Created::NoProject => {
                    self.discard_log(log).await?;
                    return Err(Stop::Refused("the project is gone".to_owned()));
                }
                Created::Raced => {}
            }
        }
    }
}

/// Whether an existing log was made by this import.
pub async fn is_of(cx: &Cx, owner: &Owner, id: ImportId, (session, agent): &Name) -> Result<bool> {
    let first = cx.store.log_segment(owner, session, agent, 1).await?;
    Ok(first.is_some_and(|segment| segment.place == SegmentPlace::Import(id)))
}
