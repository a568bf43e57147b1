//! One bucket in a folder: staged uploads become objects by a rename, under one lock, after an fsync.
//!
//! ```text
//! objects/SHA256-OF-KEY     an object (see `object`); keys of any shape fit, and `x` does not block `x/y`
//! staging/                  bodies being received; emptied at start
//! uploads/UPLOAD-ID/        the parts of a multipart upload (see `multipart`)
//! acknowledged              the sequencer up to which upload events have been handled (see `uploads`)
//! ```
//!
//! The keys in order are kept in memory, read from the files at start.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use domain::hex;
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::object::{Checksums, Headers, Metadata};
use super::watch::{Watch, acknowledged};

/// The bucket's only lifecycle rule, as in the deployed bucket: objects with this tag are deleted when they are older
/// than that.
const EXPIRES: &str = "keep=a-month";
const KEPT: SignedDuration = SignedDuration::from_hours(31 * 24);

/// Larger bodies are flushed to the disk before the bucket is locked for the commit, so that the lock is short.
const FLUSH_BEFORE_COMMIT: u64 = 1 << 20;

#[derive(Debug)]
pub(super) struct Store {
    pub(super) bucket: String,
    pub(super) folder: PathBuf,
    /// `false` in tests that need not survive a power cut.
    durable: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) objects: BTreeMap<String, Summary>,
    pub(super) last_sequencer: u64,
    pub(super) watch: Option<Watch>,
}

/// The data of an object in listings.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Summary {
    pub size: u64,
    pub etag: String,
    pub modified: Timestamp,
    pub sequencer: u64,
    /// Whether the object has the tag for automatic deletion.
    pub expires: bool,
}

/// The condition that must hold at the moment of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Condition {
    Always,
    /// `If-None-Match: *`
    Absent,
    /// `If-Match`, an ETag without quotes.
    Matches(String),
    /// `If-Match: *`
    Present,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum StoreError {
    #[error("write the object: a precondition does not hold")]
    Precondition,
    #[error("find the object")]
    NoSuchKey,
    #[error("find the multipart upload")]
    NoSuchUpload,
    #[error("reach the bucket's files: {0}")]
    Io(#[from] io::Error),
}

/// A body that was received completely but is not an object yet. Dropping it deletes its file.
#[derive(Debug)]
pub(super) struct Staged {
    pub path: PathBuf,
    pub file: File,
    pub size: u64,
    pub etag: String,
    pub checksums: Checksums,
}

impl Drop for Staged {
    fn drop(&mut self) {
        // After a commit there is no file with this name. Leftovers are removed at the next start.
        let _ = fs::remove_file(&self.path);
    }
}

impl Store {
    /// Opens the folder, creates it if it does not exist, and removes the leftovers of a crash.
    pub(super) fn open(folder: &Path, bucket: &str, durable: bool) -> io::Result<Self> {
        let staging = folder.join("staging");
        if staging.exists() {
            fs::remove_dir_all(&staging)?;
        }
        for name in ["staging", "objects", "uploads"] {
            fs::create_dir_all(folder.join(name))?;
        }
        let store = Self {
            bucket: bucket.to_owned(),
            folder: folder.to_owned(),
            durable,
            state: Mutex::new(State {
                objects: BTreeMap::new(),
                last_sequencer: acknowledged(folder)?,
                watch: None,
            }),
        };
        store.sync_folder(folder)?;
        store.read_objects()?;
        Ok(store)
    }

    fn read_objects(&self) -> io::Result<()> {
        let mut state = self.state();
        for entry in fs::read_dir(self.folder.join("objects"))? {
            match Metadata::open(&entry?.path()) {
                Ok((_, metadata)) => {
                    state.last_sequencer = state.last_sequencer.max(metadata.sequencer);
                    let summary = Summary::from(&metadata);
                    state.objects.insert(metadata.key, summary);
                }
                // Only a damaged disk causes this. The other objects are still served.
                Err(error) => tracing::error!(%error, "an object can't be read and is left out"),
            }
        }
        Ok(())
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds the bucket")
    }

    /// A new name for receiving a body.
    pub(super) fn staging_path(&self) -> PathBuf {
        self.folder.join("staging").join(Uuid::new_v4().simple().to_string())
    }

    fn object_path(&self, key: &str) -> PathBuf {
        self.folder.join("objects").join(hex(&Sha256::digest(key)))
    }

    /// Makes the staged body the object `key` if the condition holds, and announces the upload.
    pub(super) fn commit(
        &self,
        mut staged: Staged,
        key: &str,
        headers: Headers,
        condition: &Condition,
    ) -> Result<Metadata, StoreError> {
        if self.durable && staged.size >= FLUSH_BEFORE_COMMIT {
            staged.file.sync_data()?;
        }
        let mut state = self.state();
        state.check(key, condition)?;
        let now = Timestamp::now();
        // The clock makes the sequencer increase even if the newest objects were deleted before a restart.
        let sequencer = (state.last_sequencer + 1).max(now.as_microsecond().unsigned_abs());
        let metadata = Metadata {
            key: key.to_owned(),
            size: staged.size,
            etag: staged.etag.clone(),
            modified: now,
            sequencer,
            headers,
            checksums: staged.checksums.clone(),
        };
        metadata.append_to(&mut staged.file)?;
        self.sync_file(&staged.path)?;
        fs::rename(&staged.path, self.object_path(key))?;
        state.last_sequencer = sequencer;
        state.objects.insert(key.to_owned(), Summary::from(&metadata));
        state.publish(&self.bucket, &metadata);
        drop(state);
        // Without the lock, so that the syncs of many writers become one. The write is not acknowledged before this
        // returns.
        self.sync_folder(&self.folder.join("objects"))?;
        Ok(metadata)
    }

    /// Makes the content of a file durable.
    pub(super) fn sync_file(&self, file: &Path) -> io::Result<()> {
        if self.durable { File::open(file)?.sync_all() } else { Ok(()) }
    }

    /// Makes creations, renames and removals in a folder durable.
    pub(super) fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.sync_file(folder)
    }

    /// The current object. A reader gets this object completely, even if it is replaced meanwhile.
    pub(super) fn open_object(&self, key: &str) -> Result<(File, Metadata), StoreError> {
        Metadata::open(&self.object_path(key)).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => StoreError::NoSuchKey,
            _ => StoreError::Io(error),
        })
    }

    /// Deletes the keys. Keys that do not exist count as deleted.
    pub(super) fn delete(&self, keys: &[String], condition: &Condition) -> Result<(), StoreError> {
        let mut state = self.state();
        for key in keys {
            state.check(key, condition)?;
        }
        self.remove(&mut state, keys)?;
        drop(state);
        self.sync_folder(&self.folder.join("objects"))?;
        Ok(())
    }

    /// Deletes objects with the tag that are older than its time, and returns their number.
    pub(super) fn expire(&self, now: Timestamp) -> io::Result<usize> {
        let mut state = self.state();
        let expired = state
            .objects
            .iter()
            .filter(|(_, object)| object.expires && now.duration_since(object.modified) > KEPT);
        let expired: Vec<String> = expired.map(|(key, _)| key.clone()).collect();
        self.remove(&mut state, &expired)?;
        Ok(expired.len())
    }

    fn remove(&self, state: &mut State, keys: &[String]) -> io::Result<()> {
        for key in keys {
            match fs::remove_file(self.object_path(key)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => state.objects.remove(key),
            };
        }
        Ok(())
    }
}

impl State {
    fn check(&self, key: &str, condition: &Condition) -> Result<(), StoreError> {
        match (condition, self.objects.get(key)) {
            (Condition::Always, _) | (Condition::Absent, None) | (Condition::Present, Some(_)) => Ok(()),
            (Condition::Matches(etag), Some(found)) if found.etag == *etag => Ok(()),
            (Condition::Matches(_) | Condition::Present, None) => Err(StoreError::NoSuchKey),
            (Condition::Absent | Condition::Matches(_), Some(_)) => Err(StoreError::Precondition),
        }
    }
}

impl From<&Metadata> for Summary {
    fn from(metadata: &Metadata) -> Self {
        Self {
            size: metadata.size,
            etag: metadata.etag.clone(),
            modified: metadata.modified,
            sequencer: metadata.sequencer,
            expires: metadata.headers.tagging.as_deref() == Some(EXPIRES),
        }
    }
}
