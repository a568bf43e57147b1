//! Uploads of archives that are too large for a request. The client uploads such an archive to a presigned address in
//! the bucket, which is valid for this archive only. The upload then starts the import.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use domain::validate::FieldErrors;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::blobs::{BlobError, BlobKey};
use crate::context::Cx;
use crate::error::Result;

/// How long an upload address is valid.
pub const WINDOW: SignedDuration = SignedDuration::from_mins(5);

/// The request for an upload address.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[schema(example = json!({ "bytes": 9_437_184 }))]
pub struct NewUpload {
    /// The size of the archive, 1 byte to 128 MB. The upload must have exactly this size.
    #[schema(minimum = 1, maximum = 134_217_728)]
    pub bytes: u64,
    /// SHA-256 of the archive, 64 hexadecimal digits. An upload with another hash is refused.
    #[serde(default)]
    #[schema(pattern = "^[0-9a-fA-F]{64}$")]
    pub sha256: Option<String>,
}

/// Where to upload an archive.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct UploadTarget {
    #[schema(example = "PUT")]
    pub method: &'static str,
    pub url: String,
    /// Headers that the upload must send unchanged.
    pub headers: BTreeMap<String, String>,
    pub expires_at: Timestamp,
}

impl NewUpload {
    /// The checksum, if the client has given one.
    ///
    /// # Errors
    /// Every invalid field with its limit. An archive may have at most `most` bytes.
    pub fn check(&self, most: u64) -> Result<Option<[u8; 32]>, FieldErrors> {
        let mut errors = FieldErrors::default();
        if !(1..=most).contains(&self.bytes) {
            errors.add("bytes", format!("must be 1 to {most}, is {}", self.bytes));
        }
        let sha256 = self.sha256.as_deref().map(parse_sha256);
        if sha256 == Some(None) {
            errors.add("sha256", "must be 64 hexadecimal digits");
        }
        errors.into_result(sha256.flatten())
    }
}

fn parse_sha256(digits: &str) -> Option<[u8; 32]> {
    if digits.len() != 64 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut hash = [0; 32];
    for (at, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(hash)
}

/// Signs the address for a zip under `key`, valid from `now`.
///
/// # Errors
/// If the request can't be signed.
pub async fn target(
    cx: &Cx,
    key: &BlobKey,
    bytes: u64,
    sha256: Option<[u8; 32]>,
    now: Timestamp,
) -> Result<UploadTarget> {
    let valid = Duration::try_from(WINDOW).unwrap_or_default();
    let signed = cx.blobs.presign_put(key, bytes, sha256, "application/zip", valid).await?;
    let headers = signed.headers.into_iter().collect();
    Ok(UploadTarget { method: "PUT", url: signed.url, headers, expires_at: now + WINDOW })
}

/// Reads an uploaded archive that was announced with `expected` bytes. The inner error says why it can't be imported.
///
/// # Errors
/// If the bucket does not answer.
pub async fn archive(cx: &Cx, key: &BlobKey, expected: u64) -> Result<Result<Bytes, String>> {
    let gone = || Err("the archive is gone".to_owned());
    // Checks the upload against what was announced, before it reads anything.
    match cx.blobs.size(key).await? {
        Some(bytes) if bytes == expected => match cx.blobs.get(key).await {
            Ok(archive) => Ok(Ok(archive)),
            Err(BlobError::Missing { .. }) => Ok(gone()),
            Err(error) => Err(error.into()),
        },
        Some(bytes) => Ok(Err(format!("the archive has {bytes} bytes, but {expected} were announced"))),
        None => Ok(gone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_and_a_checksum_have_limits() {
        let check = |bytes, sha256: Option<&str>| {
            let new = NewUpload { bytes, sha256: sha256.map(str::to_owned) };
            new.check(100).map_err(|errors| errors.to_string())
        };
        assert_eq!(check(1, None), Ok(None));
        let mut hash = [0; 32];
        (hash[0], hash[31]) = (0xA1, 0x0f);
        let digits = format!("a1{}0F", "0".repeat(60));
        assert_eq!(check(100, Some(&digits)), Ok(Some(hash)));
        assert_eq!(check(0, None), Err("bytes: must be 1 to 100, is 0".to_owned()));
        assert_eq!(check(101, None), Err("bytes: must be 1 to 100, is 101".to_owned()));
        for bad in ["", "00", &"0".repeat(63), &format!("{}é", "0".repeat(62)), &"g".repeat(64)] {
            assert_eq!(check(1, Some(bad)), Err("sha256: must be 64 hexadecimal digits".to_owned()), "{bad}");
        }
    }
}
