//! Reads the files of an archive as the lines of logs, some megabytes at a time.

use std::collections::{BTreeMap, BTreeSet};

use domain::log::import::MAX_INFLATED_BYTES;
use domain::log::layout::{self, LogFile};
use domain::log::{Entry, InstanceId, LogEvent, SessionId};
use jiff::Timestamp;
use serde::Deserialize;
use tokio::sync::mpsc;

use super::super::segments::SEGMENT_BYTES;
use crate::flows::archive::{self, ArchiveError, ArchiveLimits};

/// The limits of an archive. A file is read into memory whole.
const LIMITS: ArchiveLimits = ArchiveLimits {
    entries: 20_000,
    entry_bytes: 128 << 20,
    total_bytes: MAX_INFLATED_BYTES,
    path_bytes: 1_024,
    ratio: None,
};

/// The name of a log.
pub type Name = (SessionId, InstanceId);

/// A part of what was read. The pieces of one log come in the order of time.
pub enum Piece {
    /// The next lines of a log, each with its newline. Every piece except the last fills a segment.
    Lines { log: Name, lines: u64, text: Vec<u8> },
    /// The end of a log in its file.
    Whole(CompleteLog),
    /// This many lines of a file are not entries.
    Corrupt(u64),
}

/// A complete log of a file.
pub struct CompleteLog {
    pub log: Name,
    pub entries: u64,
    pub bytes: u64,
    /// The time of the first line.
    pub began: Timestamp,
    pub last: Last,
}

/// What the last line contains.
pub struct Last {
    pub at: Timestamp,
    pub agent_type: String,
    pub asked: Option<String>,
}

/// The receiver of the pieces was dropped.
struct Disconnected;

type Out = mpsc::Sender<Piece>;

/// Reads the logs of an archive, and returns how many files it ignored. It ends early if the receiver was dropped.
///
/// # Errors
/// What is wrong with the archive. The pieces before the error are valid.
pub fn read(archive: &[u8], out: &Out) -> Result<u64, ArchiveError> {
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
        |path| layout::parse_path(path).is_some_and(|file| !out.is_closed() && is_read(&file, &files)),
        |entry| {
            taken += 1;
            let given = match layout::parse_path(&entry.path) {
                Some(LogFile::Log(session, agent)) => one((session, agent), &entry.bytes, out),
                Some(LogFile::SessionInstructions(session)) => several(Some(&session), &entry.bytes, out),
                Some(LogFile::AllInstructions) => several(None, &entry.bytes, out),
                None => Ok(()),
            };
            // The receiver knows why it was dropped.
            drop(given);
        },
    )?;
    Ok(paths.len() as u64 - taken)
}

/// Whether a file is read. A file with all agents of a session repeats the logs of single agents, so it is read only if
/// those are missing.
fn is_read(file: &LogFile, files: &BTreeSet<LogFile>) -> bool {
    match file {
        LogFile::Log(..) => true,
        LogFile::SessionInstructions(session) => {
            !files.iter().any(|file| matches!(file, LogFile::Log(of, _) if of == session))
        }
        LogFile::AllInstructions => files.len() == 1,
    }
}

/// Lines of a log with their times.
type Timed<'a> = Vec<(Timestamp, &'a [u8])>;

/// Reads a file that is one log.
fn one(log: Name, text: &[u8], out: &Out) -> Result<(), Disconnected> {
    let (mut read, mut corrupt) = (Timed::new(), 0);
    for line in lines(text) {
        match Entry::from_file(line, &log.0, &log.1) {
            Ok(entry) => read.push((entry.timestamp, line)),
            Err(_) => corrupt += 1,
        }
    }
    give_log(log, read, out)?;
    give(out, Piece::Corrupt(corrupt))
}

/// Reads a file with the lines of several logs. Each line names its log.
fn several(session: Option<&SessionId>, text: &[u8], out: &Out) -> Result<(), Disconnected> {
    #[derive(Deserialize)]
    struct Names {
        session_id: Option<SessionId>,
        agent_id: InstanceId,
    }
    let (mut logs, mut corrupt) = (BTreeMap::<Name, Timed<'_>>::new(), 0);
    for line in lines(text) {
        let names: Option<Names> = serde_json::from_slice(line).ok();
        let log = names.and_then(|names| Some((session.cloned().or(names.session_id)?, names.agent_id)));
        let read = log.and_then(|log| Some((Entry::from_file(line, &log.0, &log.1).ok()?.timestamp, log)));
        match read {
            Some((at, log)) => logs.entry(log).or_default().push((at, line)),
            None => corrupt += 1,
        }
    }
    for (log, read) in logs {
        give_log(log, read, out)?;
    }
    give(out, Piece::Corrupt(corrupt))
}

/// Gives the lines of a log by their times. Lines with the same time stay in the order of the file.
fn give_log(log: Name, mut read: Timed<'_>, out: &Out) -> Result<(), Disconnected> {
    read.sort_by_key(|(at, _)| *at);
    let mut reader = LogReader::new(log);
    for (_, line) in read {
        reader.add(line, out)?;
    }
    reader.end(out)
}

/// The lines of a text, without blank ones.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty())
}

fn give(out: &Out, piece: Piece) -> Result<(), Disconnected> {
    out.blocking_send(piece).map_err(|_| Disconnected)
}

/// A log whose lines are being read.
struct LogReader {
    log: Name,
    /// The lines that are not in a piece yet.
    lines: u64,
    text: Vec<u8>,
    entries: u64,
    bytes: u64,
    began: Timestamp,
    last: Option<Last>,
}

impl LogReader {
    fn new(log: Name) -> Self {
        let (text, began) = (Vec::new(), Timestamp::UNIX_EPOCH);
        Self { log, lines: 0, text, entries: 0, bytes: 0, began, last: None }
    }

    /// Adds a line that is an entry.
    fn add(&mut self, line: &[u8], out: &Out) -> Result<(), Disconnected> {
        let (session, agent) = &self.log;
        let Ok(entry) = Entry::from_file(line, session, agent) else { return Ok(()) };
        if self.text.len() + line.len() >= SEGMENT_BYTES {
            self.give(out)?;
        }
        self.lines += 1;
        self.text.extend_from_slice(line);
        self.text.push(b'\n');
        if self.entries == 0 {
            self.began = entry.timestamp;
        }
        self.entries += 1;
        self.bytes += line.len() as u64 + 1;
        let asked = (entry.event == LogEvent::AgentStart).then_some(entry.description);
        self.last = Some(Last { at: entry.timestamp, agent_type: entry.agent_type, asked });
        Ok(())
    }

    fn give(&mut self, out: &Out) -> Result<(), Disconnected> {
        if self.lines == 0 {
            return Ok(());
        }
        let (lines, text) = (std::mem::take(&mut self.lines), std::mem::take(&mut self.text));
        give(out, Piece::Lines { log: self.log.clone(), lines, text })
    }

    fn end(mut self, out: &Out) -> Result<(), Disconnected> {
        self.give(out)?;
        let Self { log, entries, bytes, began, last, .. } = self;
        let Some(last) = last else { return Ok(()) };
        give(out, Piece::Whole(CompleteLog { log, entries, bytes, began, last }))
    }
}
