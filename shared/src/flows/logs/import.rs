//! A folder of log files, as a zip, into logs.
//!
//! Its lines are history and are sealed at once: a log comes into being with all its segments in one transaction, or not
//! at all. A log that is there already is left as it is, so that an import that was cut off, or is made twice, is safe.

use bytes::Bytes;
use domain::ids::{Owner, ProjectId};
use domain::log::layout::{self, LogFile};
use domain::log::{Entry, InstanceId, LogEvent, SessionId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::mpsc;
use utoipa::ToSchema;

use super::segments::{self, Log, SEGMENT_BYTES};
use crate::archive::{self, ArchiveError, Limits};
use crate::context::Cx;
use crate::flows::{edit, projects};
use crate::problem::{Error, Result};
use crate::store::logs::{LogHead, LogSession, Segment};
use crate::store::table::Written;

/// What an archive may have. A file is taken into memory whole.
const LIMITS: Limits =
    Limits { entries: 20_000, entry_bytes: 128 << 20, total_bytes: 512 << 20, path_bytes: 1_024 };

/// How many paths of skipped logs are named.
const MAX_NAMED: usize = 100;

/// What an import has done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImportReport {
    /// Logs that were made.
    pub logs: u64,
    /// Their lines.
    pub entries: u64,
    /// Lines that are no entries, and were skipped.
    pub corrupt_lines: u64,
    /// Logs that were there already, and were left as they are.
    pub skipped_logs: u64,
    /// Their paths, up to 100.
    pub skipped: Vec<String>,
    /// Files that do not belong to the layout, or hold what other files hold too.
    pub ignored_files: u64,
}

/// A log as a file has it.
struct Found {
    session: SessionId,
    agent: InstanceId,
    /// Number of lines and text of each segment.
    segments: Vec<(u64, Vec<u8>)>,
    entries: u64,
    bytes: u64,
    corrupt: u64,
    /// Of the first line.
    began: Timestamp,
    /// Of the last line.
    last: Option<Last>,
}

struct Last {
    at: Timestamp,
    agent_type: String,
    asked: Option<String>,
}

/// Takes over a zip of logs.
///
/// # Errors
/// 400 for what is no archive or breaks a limit; the logs before it in the archive have been taken then. 404 where there
/// is no such project.
pub async fn archive(cx: &Cx, owner: &Owner, project: ProjectId, archive: Bytes) -> Result<ImportReport> {
    projects::load(cx, owner, project).await?;
    let (sender, mut receiver) = mpsc::channel(1);
    // Inflating and parsing would keep other requests of this process waiting.
    let reader = tokio::task::spawn_blocking(move || read(&archive, &sender));
    let mut report = ImportReport::default();
    while let Some(found) = receiver.recv().await {
        take(cx, owner, project, found, &mut report).await?;
    }
    let ignored = reader.await.map_err(|error| Error::internal(error.to_string()))?;
    report.ignored_files = ignored.map_err(|error| error.of_field("archive"))?;
    Ok(report)
}

/// Reads the logs of an archive, and tells how many files it left aside. Where the receiver is gone, it ends early.
fn read(archive: &[u8], logs: &mpsc::Sender<Found>) -> Result<u64, ArchiveError> {
    let mut paths = Vec::new();
    let note = |path: &str| {
        paths.push(path.to_owned());
        false
    };
    archive::walk(archive, &LIMITS, note, |_| {})?;
    let files: BTreeSet<LogFile> = paths.iter().filter_map(|path| layout::parse_path(path)).collect();
    let mut taken = 0;
    archive::walk(
        archive,
        &LIMITS,
        |path| layout::parse_path(path).is_some_and(|file| !logs.is_closed() && is_read(&file, &files)),
        |entry| {
            taken += 1;
            let found = match layout::parse_path(&entry.path) {
                Some(LogFile::Log(session, agent)) => vec![one(session, agent, &entry.bytes)],
                Some(LogFile::SessionInstructions(session)) => several(Some(&session), &entry.bytes),
                Some(LogFile::AllInstructions) => several(None, &entry.bytes),
                None => Vec::new(),
            };
            drop(entry);
            // Nobody takes them any more where the import has failed.
            found.into_iter().all(|log| logs.blocking_send(log).is_ok());
        },
    )?;
    Ok(paths.len() as u64 - taken)
}

/// The files with all agents together hold what the logs hold, and are read only where these are missing.
fn is_read(file: &LogFile, files: &BTreeSet<LogFile>) -> bool {
    match file {
        LogFile::Log(..) => true,
        LogFile::SessionInstructions(session) => {
            !files.iter().any(|file| matches!(file, LogFile::Log(of, _) if of == session))
        }
        LogFile::AllInstructions => files.len() == 1,
    }
}

/// A file that is one log.
fn one(session: SessionId, agent: InstanceId, text: &[u8]) -> Found {
    let mut found = Found::new(session, agent);
    for line in lines(text) {
        found.add(line);
    }
    found
}

/// A file with the lines of several logs, which name theirs.
fn several(session: Option<&SessionId>, text: &[u8]) -> Vec<Found> {
    #[derive(Deserialize)]
    struct Names {
        session_id: Option<SessionId>,
        agent_id: InstanceId,
    }
    let mut logs: BTreeMap<(SessionId, InstanceId), Found> = BTreeMap::new();
    let mut corrupt = 0;
    for line in lines(text) {
        let names: Option<Names> = serde_json::from_slice(line).ok();
        let names = names.and_then(|names| Some((session.cloned().or(names.session_id)?, names.agent_id)));
        match names {
            Some((session, agent)) => logs
                .entry((session.clone(), agent.clone()))
                .or_insert_with(|| Found::new(session, agent))
                .add(line),
            None => corrupt += 1,
        }
    }
    let mut logs: Vec<Found> = logs.into_values().collect();
    match logs.first_mut() {
        Some(log) => log.corrupt += corrupt,
        None if corrupt > 0 => {
            let nowhere = "unknown".parse::<SessionId>().expect("a word");
            logs.push(Found { corrupt, ..Found::new(nowhere, InstanceId::main()) });
        }
        None => {}
    }
    logs
}

/// The lines of a text that are not blank.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty())
}

impl Found {
    fn new(session: SessionId, agent: InstanceId) -> Self {
        let began = Timestamp::UNIX_EPOCH;
        Self { session, agent, segments: Vec::new(), entries: 0, bytes: 0, corrupt: 0, began, last: None }
    }

    fn add(&mut self, line: &[u8]) {
        let Ok(entry) = Entry::from_line(line, &self.session, &self.agent) else {
            self.corrupt += 1;
            return;
        };
        let full = |(_, text): &(u64, Vec<u8>)| text.len() + line.len() >= SEGMENT_BYTES;
        if self.segments.last().is_none_or(full) {
            self.segments.push((0, Vec::new()));
        }
        if let Some((count, text)) = self.segments.last_mut() {
            *count += 1;
            text.extend_from_slice(line);
            text.push(b'\n');
        }
        if self.entries == 0 {
            self.began = entry.timestamp;
        }
        self.entries += 1;
        self.bytes += line.len() as u64 + 1;
        let asked = (entry.event == LogEvent::AgentStart).then_some(entry.description);
        self.last = Some(Last { at: entry.timestamp, agent_type: entry.agent_type, asked });
    }
}

/// Makes a log of what a file has, where there is none yet.
async fn take(
    cx: &Cx,
    owner: &Owner,
    project_id: ProjectId,
    found: Found,
    report: &mut ImportReport,
) -> Result<()> {
    let Found { session, agent, segments: texts, entries, bytes, corrupt, began, last } = found;
    report.corrupt_lines += corrupt;
    let Some(Last { at, agent_type, asked }) = last else { return Ok(()) };
    let mut skip = || {
        report.skipped_logs += 1;
        if report.skipped.len() < MAX_NAMED {
            report.skipped.push(layout::log_path(&session, &agent));
        }
        Ok(())
    };
    if cx.store.log_head(owner, &session, &agent).await?.is_some() {
        return skip();
    }
    let log = Log { owner, session: &session, agent: &agent };
    let mut stored: Vec<Segment> = Vec::with_capacity(texts.len());
    for (count, text) in texts {
        let first = stored.last().map_or(1, |segment| segment.last + 1);
        stored.push(segments::store(cx, log, first, count, text).await?);
    }
    let head = LogHead {
        session_id: session.clone(),
        agent_id: agent.clone(),
        project_id,
        agent_type,
        entries,
        bytes,
        sealed: entries,
        hot_since: None,
        last_at: at,
        asked,
    };
    for _ in 0..edit::TRIES {
        let is_new = cx.store.log_session(owner, &session).await?.is_none();
        let record =
            is_new.then(|| LogSession { session_id: session.clone(), project_id, started_at: began });
        let latest = cx.store.latest_log(owner, None, &agent).await?;
        let is_latest = latest.is_none_or(|latest| latest.at < at);
        match cx.store.create_sealed_log(owner, &head, &stored, record.as_ref(), is_latest).await? {
            Written::Yes => {
                report.logs += 1;
                report.entries += entries;
                return Ok(());
            }
            // A hook has begun it meanwhile.
            Written::Refused { first: 0 } => {
                for segment in &stored {
                    segments::discard(cx, log, segment).await?;
                }
                return skip();
            }
            Written::Refused { .. } => {}
        }
    }
    Err(edit::contended())
}
