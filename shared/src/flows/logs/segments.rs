//! Segments: lines that are stored together as one object in S3. A segment is read from its end, or whole.

use bytes::Bytes;
use domain::ids::Owner;
use domain::log::{InstanceId, SessionId};

use crate::blobs::BlobKey;
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::store::logs::{Segment, SegmentPlace};

/// The approximate size of a segment, in bytes. Reading a whole segment takes this much memory.
pub const SEGMENT_BYTES: usize = 4 * 1024 * 1024;

/// A log and its owner.
#[derive(Clone, Copy)]
pub struct Log<'a> {
    pub owner: &'a Owner,
    pub session: &'a SessionId,
    pub agent: &'a InstanceId,
}

impl Log<'_> {
    fn key(&self, segment: &Segment) -> BlobKey {
        segment.key(self.owner, self.session, self.agent)
    }
}

/// Stores lines, each with its newline, as the segment that begins with line `first`.
///
/// # Errors
/// If S3 does not accept it.
pub async fn store(
    cx: &Cx,
    log: Log<'_>,
    place: SegmentPlace,
    first: u64,
    lines: u64,
    text: Vec<u8>,
) -> Result<Segment> {
    let segment = Segment { first, last: first + lines - 1, bytes: text.len() as u64, place };
    cx.blobs.put(&log.key(&segment), text, "application/x-ndjson").await?;
    Ok(segment)
}

/// Deletes a segment that no log names.
///
/// # Errors
/// If S3 does not answer.
pub async fn discard(cx: &Cx, log: Log<'_>, segment: &Segment) -> Result<()> {
    Ok(cx.blobs.delete(&log.key(segment)).await?)
}

/// All lines of a segment, each with its newline.
///
/// # Errors
/// If S3 does not answer.
pub async fn whole(cx: &Cx, log: Log<'_>, segment: &Segment) -> Result<Bytes> {
    Ok(cx.blobs.get(&log.key(segment)).await?)
}

/// The last `count` lines of a segment. It reads only about as much as these lines, not the whole segment.
///
/// # Errors
/// If S3 does not answer.
pub async fn tail(cx: &Cx, log: Log<'_>, segment: &Segment, count: u64) -> Result<Vec<Bytes>> {
    let count = count.min(segment.lines());
    let mut length = segment.bytes / segment.lines() * count * 5 / 4 + 4_096;
    loop {
        let start = segment.bytes.saturating_sub(length);
        let part = cx.blobs.get_range(&log.key(segment), start..segment.bytes).await?;
        let lines = last_lines(&part, count as usize, start == 0);
        if lines.len() as u64 == count {
            return Ok(lines);
        }
        if start == 0 {
            return Err(Error::internal("a segment has fewer lines than it says"));
        }
        length *= 4;
    }
}

/// The last lines of a text, in their order. The first line of the text counts only if the text is `whole`.
fn last_lines(text: &Bytes, count: usize, whole: bool) -> Vec<Bytes> {
    let mut lines = Vec::with_capacity(count);
    let mut end = text.len();
    while lines.len() < count && end > 0 {
        let start = text[..end - 1].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        if start == 0 && !whole {
            break;
        }
        lines.push(text.slice(start..end - 1));
        end = start;
    }
    lines.reverse();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_from_the_end() {
        let check = |text: &'static str, count, whole, expected: &[&str]| {
            let lines = last_lines(&Bytes::from_static(text.as_bytes()), count, whole);
            assert_eq!(lines, expected, "{text:?}");
        };
        check("a\nbb\nccc\n", 2, true, &["bb", "ccc"]);
        check("a\nbb\nccc\n", 3, true, &["a", "bb", "ccc"]);
        check("a\nbb\nccc\n", 9, true, &["a", "bb", "ccc"]);
        // The first line may be the end of a longer one.
        check("a\nbb\nccc\n", 3, false, &["bb", "ccc"]);
        check("\nbb\n", 2, false, &["bb"]);
        check("bb\n", 1, false, &[]);
        check("", 1, true, &[]);
    }
}
