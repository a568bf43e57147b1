//! Sealing: lines that are older than some days leave the table for S3, where keeping them costs a tenth.
//!
//! It is done when a log begins: its first append also seals a part of the owner's oldest logs. So there is no clock to pay
//! for and nobody reads across owners; whoever makes logs seals more than he makes, and whoever makes none has none to
//! seal but the last. A call seals at most a few megabytes, so that the hook that it is part of stays quick.
//!
//! A segment is stored, then named in one transaction with the head that says so, then its lines are deleted; the log stays
//! in the list of those to be sealed until that is done. Wherever a process dies, the next one goes on: an object that no
//! record names is all that can be left, and lines that are there twice are the same.

use domain::ids::Owner;
use jiff::{SignedDuration, Timestamp};

use super::read::{joined, text};
use super::segments::{self, Log, SEGMENT_BYTES};
use crate::blobs::BlobKey;
use crate::context::Cx;
use crate::flows::edit;
use crate::problem::Result;
use crate::store::logs::{HotLog, LineBody, LogHead, Segment, SegmentPlace};
use crate::store::table::Order;

/// How many logs one call seals a part of.
const LOGS: usize = 2;

/// How many lines one query reads.
const PAGE: usize = 100;

/// Most lines of a segment.
const MAX_LINES: u64 = 5_000;

/// Seals a part of the owner's oldest logs. What keeps it from that is for the log file only: the caller's line is stored.
///
/// # Errors
/// None; the caller ends with it.
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

/// Moves the lines of a log that arrived until `before` to S3, or as many as a segment takes.
async fn seal(cx: &Cx, owner: &Owner, hot: &HotLog, before: Timestamp) -> Result<()> {
    let log = Log { owner, session: &hot.session_id, agent: &hot.agent_id };
    let mut tries = edit::Tries::default();
    while tries.next().await.is_ok() {
        let Some(was) = cx.store.log_head(owner, log.session, log.agent).await? else {
            return Ok(cx.store.forget_hot_log(owner, hot).await?);
        };
        delete_sealed(cx, log, was.value.sealed).await?;
        if was.value.hot_since != Some(hot.hot_since) {
            // It is in the list for its later lines, or not at all.
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

/// Stores the oldest lines of the table as a segment; also tells when the first line after them arrived.
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

/// Deletes the lines of the table that lie in segments, oldest first, and then what they had in S3.
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
