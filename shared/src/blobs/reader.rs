//! An object that is read like a file.

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::runtime::Handle;

use super::{BlobError, BlobKey, Blobs};

/// How many bytes are read at once.
const WINDOW: u64 = 4 * 1024 * 1024;

/// Reads an object like a file, for a thread that may block. Clones share what was read last.
#[derive(Clone)]
pub struct BlobReader {
    blobs: Blobs,
    key: BlobKey,
    runtime: Handle,
    len: u64,
    at: u64,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    start: u64,
    window: Bytes,
    failure: Option<BlobError>,
}

impl BlobReader {
    /// Reads an object of `len` bytes.
    #[must_use]
    pub fn new(blobs: &Blobs, key: &BlobKey, len: u64, runtime: Handle) -> Self {
        let (blobs, key) = (blobs.clone(), key.clone());
        Self { blobs, key, runtime, len, at: 0, shared: Arc::default() }
    }

    /// Why the object could not be read, if that was the cause of an error.
    #[must_use]
    pub fn failure(&self) -> Option<BlobError> {
        self.shared().failure.take()
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Read for BlobReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.len || buffer.is_empty() {
            return Ok(0);
        }
        let mut shared = self.shared();
        let end = shared.start + shared.window.len() as u64;
        if !(shared.start..end).contains(&self.at) {
            let range = self.at..self.len.min(self.at + WINDOW);
            match self.runtime.block_on(self.blobs.get_range(&self.key, range)) {
                Ok(window) if window.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(window) => (shared.start, shared.window) = (self.at, window),
                Err(error) => {
                    let told = io::Error::other(error.to_string());
                    shared.failure = Some(error);
                    return Err(told);
                }
            }
        }
        let offset = usize::try_from(self.at - shared.start).unwrap_or(usize::MAX);
        let rest = &shared.window[offset..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        drop(shared);
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for BlobReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.len.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
