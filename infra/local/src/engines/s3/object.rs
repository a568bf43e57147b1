//! An object's file: the body, then its metadata as JSON, then the position of that JSON.
//!
//! One file holds one object, so a rename replaces body and metadata together. A reader gets either the complete old
//! object or the complete new one. The metadata comes last because most of it (length, ETag, checksums) is known only
//! after the body.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use http::HeaderMap;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The last bytes of the file. Another layout gets another number.
const MAGIC: &[u8; 8] = b"lampobj1";
/// The length of the metadata (little-endian), and the magic bytes.
const FOOTER: u64 = 4 + MAGIC.len() as u64;

/// The metadata of an object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Metadata {
    pub key: String,
    /// The size of the body, in bytes.
    pub size: u64,
    /// Without quotes: MD5 in hexadecimal, or `MD5-of-MD5s-N` for N parts.
    pub etag: String,
    pub modified: Timestamp,
    /// Increases with every commit to the bucket.
    pub sequencer: u64,
    pub headers: Headers,
    pub checksums: Checksums,
}

/// The metadata that the uploader sent and gets back when it reads the object.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Headers {
    pub content_type: Option<String>,
    pub cache_control: Option<String>,
    pub content_disposition: Option<String>,
    pub content_encoding: Option<String>,
    pub content_language: Option<String>,
    /// `x-amz-meta-*`, without this prefix.
    pub user: BTreeMap<String, String>,
    /// `x-amz-tagging`, unchanged.
    pub tagging: Option<String>,
}

/// The requested digests, in base64.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Checksums {
    pub crc32: Option<String>,
    pub crc32c: Option<String>,
    pub crc64nvme: Option<String>,
    pub sha1: Option<String>,
    pub sha256: Option<String>,
}

impl Checksums {
    /// Each checksum with the name of the header or trailer that carries it.
    pub(super) fn by_header(&self) -> [(&'static str, Option<&str>); 5] {
        [
            ("x-amz-checksum-crc32", self.crc32.as_deref()),
            ("x-amz-checksum-crc32c", self.crc32c.as_deref()),
            ("x-amz-checksum-crc64nvme", self.crc64nvme.as_deref()),
            ("x-amz-checksum-sha1", self.sha1.as_deref()),
            ("x-amz-checksum-sha256", self.sha256.as_deref()),
        ]
    }

    /// The checksums in these headers.
    pub(super) fn from_headers(headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Self {
            crc32: text("x-amz-checksum-crc32"),
            crc32c: text("x-amz-checksum-crc32c"),
            crc64nvme: text("x-amz-checksum-crc64nvme"),
            sha1: text("x-amz-checksum-sha1"),
            sha256: text("x-amz-checksum-sha256"),
        }
    }

    /// The first of these claimed checksums that differs from the computed ones.
    pub(super) fn refuted_by(&self, computed: &Self) -> Option<&'static str> {
        let pairs = self.by_header().into_iter().zip(computed.by_header());
        { pairs }
            .find(|((_, claimed), (_, found))| claimed.is_some() && claimed != found)
            .map(|((name, _), _)| name)
    }
}

impl Metadata {
    /// Completes a file that contains only the body.
    pub(super) fn append_to(&self, file: &mut File) -> io::Result<()> {
        let mut tail = serde_json::to_vec(self)?;
        let length = u32::try_from(tail.len()).map_err(io::Error::other)?;
        tail.extend_from_slice(&length.to_le_bytes());
        tail.extend_from_slice(MAGIC);
        file.seek(SeekFrom::Start(self.size))?;
        file.write_all(&tail)
    }

    /// Opens an object's file, with the metadata of exactly this body.
    pub(super) fn open(path: &Path) -> io::Result<(File, Self)> {
        let damaged =
            |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {what}", path.display()));
        let mut file = File::open(path)?;
        let end = file.metadata()?.len();
        let footer_at = end.checked_sub(FOOTER).ok_or_else(|| damaged("too short for an object"))?;
        file.seek(SeekFrom::Start(footer_at))?;
        let mut footer = [0; FOOTER as usize];
        file.read_exact(&mut footer)?;
        let (length, magic) = footer.split_at(4);
        if magic != MAGIC {
            return Err(damaged("not an object"));
        }
        let length = u32::from_le_bytes(length.try_into().expect("four bytes were split off"));
        let size = footer_at
            .checked_sub(u64::from(length))
            .ok_or_else(|| damaged("its metadata begins before the file"))?;
        file.seek(SeekFrom::Start(size))?;
        let mut json = vec![0; length as usize];
        file.read_exact(&mut json)?;
        let metadata: Self = serde_json::from_slice(&json)?;
        if metadata.size != size {
            return Err(damaged("its body is not as long as its metadata says"));
        }
        Ok((file, metadata))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn metadata(size: u64) -> Metadata {
        Metadata {
            key: "a/../b\n☃".into(),
            size,
            etag: "5d41402abc4b2a76b9719d911017c592".into(),
            modified: "2026-11-21T10:00:00.5Z".parse().unwrap(),
            sequencer: u64::MAX,
            headers: Headers {
                content_type: Some("text/plain".into()),
                user: BTreeMap::from([("by".into(), "me".into())]),
                ..Headers::default()
            },
            checksums: Checksums { crc32: Some("NhCmhg==".into()), ..Checksums::default() },
        }
    }

    #[test]
    fn complete_objects_are_read_and_incomplete_ones_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("object");
        fs::write(&path, "hello").unwrap();
        let mut file = File::options().write(true).open(&path).unwrap();
        metadata(5).append_to(&mut file).unwrap();

        let (mut file, read) = Metadata::open(&path).unwrap();
        assert_eq!(read, metadata(5));
        let mut body = [0; 5];
        file.rewind().unwrap();
        file.read_exact(&mut body).unwrap();
        assert_eq!(&body, b"hello");

        let whole = fs::read(&path).unwrap();
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            assert!(Metadata::open(&path).is_err(), "the first {length} bytes passed for an object");
        }
        // The body is longer than the metadata says.
        fs::write(&path, [b"x", &whole[..]].concat()).unwrap();
        assert_eq!(Metadata::open(&path).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
