//! Converts between the types of s3s and of the store.

use std::io::{self, SeekFrom};
use std::ops::Range;
use std::time::SystemTime;

use bytes::Bytes;
use futures::{Stream, stream};
use s3s::dto::{ETag, ETagCondition, Timestamp};
use s3s::{S3Error, S3ErrorCode, S3Result, s3_error};
use tokio::io::{AsyncReadExt, AsyncSeekExt};

use super::super::storage;
use super::object::Metadata;
use super::store::Condition;

const READ_SIZE: usize = 256 * 1024;

pub(super) fn condition(
    if_match: Option<ETagCondition>,
    if_none_match: Option<ETagCondition>,
) -> S3Result<Condition> {
    match (if_match, if_none_match) {
        (None, None) => Ok(Condition::Always),
        (None, Some(ETagCondition::Any)) => Ok(Condition::Absent),
        (Some(ETagCondition::Any), None) => Ok(Condition::Present),
        (Some(ETagCondition::ETag(etag)), None) => Ok(Condition::Matches(etag.into_value())),
        _ => Err(s3_error!(NotImplemented, "A write takes If-Match, or If-None-Match with an asterisk.")),
    }
}

/// `aws-chunked` is only the encoding of the transport, not of the object.
pub(super) fn stored_encoding(header: &str) -> Option<String> {
    let kept: Vec<&str> =
        header.split(',').map(str::trim).filter(|name| !name.is_empty() && *name != "aws-chunked").collect();
    (!kept.is_empty()).then(|| kept.join(","))
}

pub(super) fn etag(metadata: &Metadata) -> ETag {
    ETag::Strong(metadata.etag.clone())
}

pub(super) fn modified(at: jiff::Timestamp) -> Timestamp {
    // Every system has the instants of the years in which files are written.
    Timestamp::from(SystemTime::try_from(at).unwrap_or(SystemTime::UNIX_EPOCH))
}

pub(super) fn length(bytes: u64) -> i64 {
    i64::try_from(bytes).expect("no file is that long")
}

pub(super) fn percent_encoded(text: &str) -> String {
    use std::fmt::Write;
    text.bytes().fold(String::new(), |mut encoded, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                encoded.push(char::from(byte));
            }
            _ => write!(encoded, "%{byte:02X}").expect("a string takes whatever is written to it"),
        }
        encoded
    })
}

/// Reads a range of the file, piece by piece.
pub(super) fn read(
    file: std::fs::File,
    range: Range<u64>,
) -> impl Stream<Item = io::Result<Bytes>> + Send + Sync + 'static {
    let start = range.start;
    let left = range.end - range.start;
    let begin = (tokio::fs::File::from_std(file), Some(start), left);
    stream::try_unfold(begin, |(mut file, seek, left)| async move {
        if left == 0 {
            return Ok(None);
        }
        if let Some(start) = seek {
            file.seek(SeekFrom::Start(start)).await?;
        }
        let size = usize::try_from(left).map_or(READ_SIZE, |left| left.min(READ_SIZE));
        let mut piece = vec![0; size];
        file.read_exact(&mut piece).await?;
        Ok(Some((Bytes::from(piece), (file, None, left - size as u64))))
    })
}

/// The answer to a file error. For a permanent error it has a status after which the SDK does not retry.
pub(super) fn of_io(error: std::io::Error) -> S3Error {
    match storage::of_io(&error) {
        Some(failure) => {
            let code = S3ErrorCode::Custom(failure.aws_code().into());
            let mut refusal = S3Error::with_message(code, failure.to_string());
            refusal.set_status_code(storage::status(failure));
            refusal.set_source(error.into());
            refusal
        }
        None => S3Error::internal_error(error),
    }
}
