//! Sends payloads from the spool to the server, in order.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::project::ProjectId;
use crate::server::{Server, ServerError};
use crate::spool::{Lock, Spool};

/// The limits of one delivery.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    pub records: usize,
    /// No payload is started after this.
    pub until: Option<Instant>,
    /// How long to wait for another process that is sending.
    pub lock: Duration,
}

impl Limit {
    pub const NONE: Self = Self { records: usize::MAX, until: None, lock: Duration::ZERO };
}

/// The result of a delivery.
#[derive(Debug)]
pub struct Report {
    pub sent: usize,
    pub rejected: usize,
    pub end: End,
}

/// Why a delivery ended.
#[derive(Debug)]
pub enum End {
    /// The spool is empty.
    Empty,
    /// Another process is sending. It checks the spool again after it has released the lock, so it also sends the current payloads.
    Busy,
    /// The limit was reached, and payloads remain.
    Limit,
    /// The server did not accept a payload. This payload and all after it remain.
    Failed(ServerError),
}

/// Sends the payloads in the spool.
///
/// # Errors
/// If the spool can't be read or changed.
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
        // A payload that was added just now may have found the lock taken.
        if spool.waiting()?.is_empty() {
            return Ok(report);
        }
    }
}

/// Sends the current payloads. Returns why it stopped early, if it did.
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
            spool.reject(&entry, "the file is damaged", lock)?;
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

/// Starts a separate process that sends the payloads, outlives this one and prints nothing.
///
/// # Errors
/// If it can't be started.
pub fn in_background() -> io::Result<()> {
    Command::new(std::env::current_exe()?)
        .args(["log", "--flush", "--background"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Signals to the assistant do not reach it.
        .process_group(0)
        .spawn()
        .map(drop)
}
