//! From the spool to the server, in order.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::project::ProjectId;
use crate::server::{Server, ServerError};
use crate::spool::{Lock, Spool};

/// How much one run may do.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    pub records: usize,
    /// Nothing is begun after this.
    pub until: Option<Instant>,
    /// How long to wait for another process that is sending.
    pub lock: Duration,
}

impl Limit {
    pub const NONE: Self = Self { records: usize::MAX, until: None, lock: Duration::ZERO };
}

/// What became of a run.
#[derive(Debug)]
pub struct Report {
    pub sent: usize,
    pub rejected: usize,
    pub end: End,
}

/// Why a run ended.
#[derive(Debug)]
pub enum End {
    /// Nothing waits any more.
    Empty,
    /// Another process is sending. It looks again after it gave the right to send back, so it sends what is there now.
    Busy,
    /// The limit was reached and something still waits.
    Limit,
    /// The server did not take a record. It stays, and so does what is behind it.
    Failed(ServerError),
}

/// Sends what waits.
///
/// # Errors
/// When the spool can't be read or changed.
pub fn drain(
    spool: &Spool,
    server: &Server,
    project: Option<&ProjectId>,
    limit: Limit,
) -> io::Result<Report> {
    let mut report = Report { sent: 0, rejected: 0, end: End::Empty };
    loop {
        let Some(lock) = spool.lock_within(limit.lock)? else {
            report.end = End::Busy;
            return Ok(report);
        };
        if let Some(end) = pass(spool, server, project, limit, &lock, &mut report)? {
            report.end = end;
            return Ok(report);
        }
        drop(lock);
        // One that was added just now may have found us busy.
        if spool.waiting()?.is_empty() {
            return Ok(report);
        }
    }
}

/// Sends what waits at this moment; gives why not all of it.
fn pass(
    spool: &Spool,
    server: &Server,
    project: Option<&ProjectId>,
    limit: Limit,
    lock: &Lock,
    report: &mut Report,
) -> io::Result<Option<End>> {
    for entry in spool.waiting()? {
        if report.sent + report.rejected >= limit.records
            || limit.until.is_some_and(|until| Instant::now() > until)
        {
            return Ok(Some(End::Limit));
        }
        let Some(record) = spool.read(&entry)? else {
            spool.reject(&entry, "the file is not what was written", lock)?;
            report.rejected += 1;
            continue;
        };
        match server.deliver(&record, project) {
            Ok(()) => {
                spool.remove(&entry, lock)?;
                report.sent += 1;
            }
            Err(error) if error.is_final() => {
                spool.reject(&entry, &error.to_string(), lock)?;
                report.rejected += 1;
            }
            Err(error) => return Ok(Some(End::Failed(error))),
        }
    }
    Ok(None)
}

/// Lets a process of its own send what waits, which outlives this one and says nothing.
///
/// # Errors
/// When it can't be started.
pub fn in_background() -> io::Result<()> {
    Command::new(std::env::current_exe()?)
        .args(["log", "--flush", "--background"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // What interrupts or ends the assistant does not end it.
        .process_group(0)
        .spawn()
        .map(drop)
}
