//! Sealing: lines older than some days move from the table to S3, where they cost a tenth.
//!
//! Sealing happens when a log begins: the first append to a new log also seals a part of the owner's oldest logs. So no
//! timer has to be paid for, and nobody reads across owners. An owner who makes logs seals more than they make. An
//! owner who makes none has only the last lines left to seal. One call seals at most a few megabytes, so that the hook
//! that it is part of stays fast.
//!
//! A segment is stored first. Then one transaction records it together with the new head, and then its lines are
//! deleted. The log stays in the list of logs to seal until that is done. If a process dies at any point, the next one
//! continues. The only possible leftover is an object that no record names, and lines that exist twice are identical.

use domain::ids::Owner;
use jiff::{SignedDuration, Timestamp};

use super::read::{joined, text};
use super::segments::{self, Log, SEGMENT_BYTES};
use crate::blobs::BlobKey;
use crate::context::Cx;
use crate::error::Result;
use crate::store::Tries;
use crate::store::logs::{HotLog, LineBody, LogHead, Segment, SegmentPlace};
use crate::store::table::Order;

/// How many logs one call seals a part of.
const LOGS: usize = 2;

/// How many lines one query reads.
const PAGE: usize = 100;

/// The most lines of a segment.
const MAX_LINES: u64 = 5_000;

/// Seals a part of the owner's oldest logs. Failures are only logged, because the caller's line is already stored.
///
/// # Errors
/// Never. The caller returns this result.
pub(super) async fn some_old_log(cx: &Cx, owner: &Owner) -> Result<()> {
    if let Err(error) = old_logs(cx, owner).await {
        tracing::warn!(cause = %error.causes(), "old logs could not be sealed; the next new log tries again");
    }
    Ok(())
}

/// Seals a part of the owner's oldest logs, if they are old enough.
///
/// # Errors
/// If the table or the bucket does not answer; the call can be repeated.
pub async fn old_logs(cx: &Cx, owner: &Owner) -> Result<()> {
    let before = cx.clock.now() - SignedDuration::from_hours(24 * i64::from(cx.config.logs.hot_days));
    for hot in cx.store.hot_logs(owner, LOGS).await? {
        if hot.hot_since > before {
            break;
        }
        seal(cx, owner, &hot, before).await?;
    }
    Ok(())
}

/// Moves the lines of a log that arrived before `before` to S3, at most as many as fit into one segment.
async fn seal(cx: &Cx, owner: &Owner, hot: &HotLog, before: Timestamp) -> Result<()> {
    let log = Log { owner, session: &hot.session_id, agent: &hot.agent_id };
    let mut tries = Tries::default();
    while tries.next().await.is_ok() {
        let Some(was) = cx.store.log_head(owner, log.session, log.agent).await? else {
            return Ok(cx.store.forget_hot_log(owner, hot).await?);
        };
        delete_sealed(cx, log, was.value.sealed).await?;
        if was.value.hot_since != Some(hot.hot_since) {
            // This entry is out of date. If the log has later lines in the table, it has a newer entry.
            return Ok(cx.store.forget_hot_log(owner, hot).await?);
        }
        let (segment, hot_since) = old_lines(cx, log, &was.value, before).await?;
        let Some(segment) = segment else { return Ok(()) };
        let head = LogHead { sealed: segment.last, hot_since, ..was.value };
        if !cx.store.seal_log(owner, &head, was.version, &segment).await?.done() {
            segments::discard(cx, log, &segment).await?;
        }
    }
    Ok(())
}

/// Stores the oldest lines of the table as a segment. Also returns when the first line after them arrived.
async fn old_lines(
    cx: &Cx,
    log: Log<'_>,
    head: &LogHead,
    before: Timestamp,
) -> Result<(Option<Segment>, Option<Timestamp>)> {
    let Log { owner, session, agent } = log;
    let (mut lines, mut bytes, mut last) = (Vec::new(), 0, head.sealed);
    let hot_since = 'pages: loop {
        let (page, end) = cx.store.log_lines(owner, session, agent, Some(last), PAGE, Order::Oldest).await?;
        for (number, line) in page {
            let at = line.at;
            if at > before || bytes >= SEGMENT_BYTES || number > head.sealed + MAX_LINES {
                break 'pages Some(at);
            }
            let line = text(cx, log, line).await?;
            bytes += line.len() + 1;
            lines.push(line);
            last = number;
        }
        if end {
            break None;
        }
    };
    if lines.is_empty() {
        return Ok((None, hot_since));
    }
    let count = lines.len() as u64;
    let segment =
        segments::store(cx, log, SegmentPlace::Blob(cx.clock.uuid()), head.sealed + 1, count, joined(&lines))
            .await?;
    Ok((Some(segment), hot_since))
}

/// Deletes the table's lines that are in segments, oldest first, and then their contents in S3.
async fn delete_sealed(cx: &Cx, log: Log<'_>, sealed: u64) -> Result<()> {
    let Log { owner, session, agent } = log;
    loop {
        let (lines, _) = cx.store.log_lines(owner, session, agent, None, PAGE, Order::Oldest).await?;
        let old: Vec<_> = lines.into_iter().filter(|(number, _)| *number <= sealed).collect();
        if old.is_empty() {
            return Ok(());
        }
        let numbers: Vec<u64> = old.iter().map(|(number, _)| *number).collect();
        cx.store.delete_log_lines(owner, session, agent, &numbers).await?;
        for (_, line) in old {
            if let LineBody::Blob(blob) = line.body {
                cx.blobs.delete(&BlobKey::log_line(owner, session, agent, blob)).await?;
            }
        }
    }
}
