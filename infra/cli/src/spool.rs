//! The spool: payloads of hooks that no server has accepted yet, one file each.
//!
//! A record is either complete or absent, because it is written under a hidden name and then renamed. Its name contains its
//! position, its id, its length and its checksum: `0000000007.<uuid>.<bytes>.<crc32>`. Writers need no lock. A sender holds
//! `.lock`, and removes a record after the server has accepted it. If it crashes in between, the record is sent again with the
//! same id, and the server recognises it.
//!
//! An accepted record is never discarded. If it is damaged, or if the server will always refuse it, it moves to `rejected/` with
//! the reason next to it. If the spool has [`MAX_RECORDS`] or [`MAX_BYTES`], new records are refused, and each adds a line to
//! `lost`, so that the loss is visible.
//!
//! Nothing is synced to the disk, because that would take several milliseconds per hook. A crash of a program loses nothing; a
//! power failure may lose the last seconds.

use std::fs::{DirBuilder, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use fs_err as fs;
use fs_err::OpenOptions;
use fs_err::os::unix::fs::OpenOptionsExt;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The maximum number of records, including rejected ones: weeks of work. Each record costs every hook about two
/// microseconds.
pub const MAX_RECORDS: usize = 3_000;

/// The maximum size in bytes, including rejected records.
pub const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The longest payload that the server accepts, in bytes: `MAX_BODY_BYTES` of `shared/src/request/limits.rs`. A test compares the two.
pub const MAX_PAYLOAD: usize = 4_400_000;

/// Writing a file takes milliseconds. A hidden file this old has no writer any more.
const ABANDONED: Duration = Duration::from_secs(600);

/// The maximum size of `lost`, in bytes.
const MAX_LOST: u64 = 1024 * 1024;

/// A position has this many digits, so that names sort.
const PLACE_DIGITS: usize = 10;

const LOCK: &str = ".lock";
const LOST: &str = "lost";
const REJECTED: &str = "rejected";

/// The records for one server.
#[derive(Clone, Debug)]
pub struct Spool {
    dir: PathBuf,
}

/// The payload of a hook, with its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub id: Uuid,
    pub session: Option<String>,
    pub project: Option<String>,
    /// The payload as it was read.
    pub body: Vec<u8>,
}

/// The first line of a record's file; the rest is the body.
#[derive(Deserialize, Serialize)]
struct Head {
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
}

/// A file of the spool. The names sort in the order of arrival.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpoolFile {
    name: String,
    place: u64,
    bytes: u64,
}

/// Why a record can't be kept.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    #[error("the spool is full")]
    Full,
    #[error("the payload has more than {MAX_PAYLOAD} bytes")]
    TooLong,
    #[error("failed to write the spool: {0}")]
    Io(#[from] io::Error),
}

/// The number of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub waiting: usize,
    pub rejected: usize,
    pub lost: usize,
}

/// The lock of the sender. Dropping it releases it.
pub struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // An explicit unlock, because a process that is just being started may briefly have a copy of the descriptor.
        drop(self.0.unlock());
    }
}

impl Record {
    #[must_use]
    pub fn new(session: Option<String>, project: Option<String>, body: Vec<u8>) -> Self {
        Self { id: Uuid::now_v7(), session, project, body }
    }

    /// When the hook happened (RFC 3339). The id contains the time, so this is correct even after weeks.
    #[must_use]
    pub fn at(&self) -> Option<String> {
        let (seconds, nanos) = self.id.get_timestamp()?.to_unix();
        let at = Timestamp::new(seconds.try_into().ok()?, nanos.try_into().ok()?).ok()?;
        Some(format!("{at:.3}"))
    }

    fn to_bytes(&self) -> Vec<u8> {
        let head = Head { session: self.session.clone(), project: self.project.clone() };
        let mut bytes = serde_json::to_vec(&head).expect("texts become JSON");
        bytes.push(b'\n');
        bytes.extend_from_slice(&self.body);
        bytes
    }

    fn from_bytes(id: Uuid, bytes: &[u8]) -> Option<Self> {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let head: Head = serde_json::from_slice(&bytes[..end]).ok()?;
        Some(Self { id, session: head.session, project: head.project, body: bytes[end + 1..].to_vec() })
    }
}

impl SpoolFile {
    /// Reads only the parts of the name that every hook needs. With thousands of records, each nanosecond counts.
    fn parse(name: String) -> Option<Self> {
        let mut parts = name.split('.');
        let place = parts.next().filter(|place| place.len() == PLACE_DIGITS)?.parse().ok()?;
        let bytes = parts.nth(1)?.parse().ok()?;
        let whole = parts.next().is_some_and(|checksum| checksum.len() == 8) && parts.next().is_none();
        whole.then_some(Self { place, bytes, name })
    }

    fn id(&self) -> Option<Uuid> {
        self.name.split('.').nth(1)?.parse().ok()
    }
}

/// The name of a record at a position.
fn name(place: u64, id: Uuid, content: &[u8]) -> String {
    format!("{place:0PLACE_DIGITS$}.{id}.{}.{:08x}", content.len(), crc32fast::hash(content))
}

impl Spool {
    /// The spool for the server that `decider` names, below the state folder. This changes nothing on the disk yet.
    #[must_use]
    pub fn new(state: &Path, decider: &str) -> Self {
        let mut name: String = form_urlencoded::byte_serialize(decider.as_bytes()).collect();
        // File names are limited to 255 bytes.
        if name.len() > 200 {
            name.truncate(200);
            name.push_str(&format!("-{:08x}", crc32fast::hash(decider.as_bytes())));
        }
        Self { dir: state.join("spool").join(name) }
    }

    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Adds a record after all others.
    ///
    /// # Errors
    /// If there is no room, if the payload is too long, or if the disk fails.
    pub fn add(&self, record: &Record) -> Result<(), SpoolError> {
        if record.body.len() > MAX_PAYLOAD {
            return Err(SpoolError::TooLong);
        }
        private_dir(&self.dir)?;
        let content = record.to_bytes();
        let waiting = entries(&self.dir)?;
        let rejected = entries(&self.dir.join(REJECTED))?;
        let bytes: u64 = waiting.iter().chain(&rejected).map(|entry| entry.bytes).sum();
        if waiting.len() + rejected.len() >= MAX_RECORDS || bytes + content.len() as u64 > MAX_BYTES {
            return Err(SpoolError::Full);
        }
        let last = waiting.iter().map(|entry| entry.place).max().unwrap_or(0);
        let name = name(last + 1, record.id, &content);
        let hidden = self.dir.join(format!(".{name}"));
        let written =
            write_private(&hidden, &content).and_then(|()| fs::rename(&hidden, self.dir.join(name)));
        if written.is_err() {
            drop(fs::remove_file(&hidden));
        }
        Ok(written?)
    }

    /// Notes that a payload could not be kept.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn note_loss(&self, reason: &SpoolError, bytes: usize) -> io::Result<()> {
        private_dir(&self.dir)?;
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(self.dir.join(LOST))?;
        if file.metadata()?.len() > MAX_LOST {
            return Ok(());
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        // A single write, so that lines of several programs do not mix.
        file.write_all(format!("{now} {bytes} bytes: {reason}\n").as_bytes())
    }

    /// The waiting records, in order.
    ///
    /// # Errors
    /// If the folder can't be read.
    pub fn waiting(&self) -> io::Result<Vec<SpoolFile>> {
        let mut waiting = entries(&self.dir)?;
        waiting.sort_unstable();
        Ok(waiting)
    }

    /// # Errors
    /// If the folder can't be read.
    pub fn counts(&self) -> io::Result<Counts> {
        let lost = match fs::read(self.dir.join(LOST)) {
            Ok(lines) => lines.iter().filter(|byte| **byte == b'\n').count(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        let rejected = count(&self.dir.join(REJECTED))?;
        Ok(Counts { waiting: self.waiting()?.len(), rejected, lost })
    }

    /// Takes the lock for sending. `None` while another process has it.
    ///
    /// # Errors
    /// If the lock fails for another reason, for example because nothing was ever added.
    pub fn lock(&self) -> io::Result<Option<Lock>> {
        let path = self.dir.join(LOCK);
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
        let (file, _) = file.into_parts();
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// As [`Self::lock`], but waits for another process to end.
    ///
    /// # Errors
    /// If the lock fails for another reason than time.
    pub fn lock_within(&self, patience: Duration) -> io::Result<Option<Lock>> {
        let until = Instant::now() + patience;
        loop {
            match self.lock()? {
                None if Instant::now() < until => thread::sleep(Duration::from_millis(20)),
                got => return Ok(got),
            }
        }
    }

    /// Reads a record. `None` if the file is damaged.
    ///
    /// # Errors
    /// If the file can't be read.
    pub fn read(&self, entry: &SpoolFile) -> io::Result<Option<Record>> {
        let bytes = fs::read(self.dir.join(&entry.name))?;
        let whole = entry.id().filter(|id| name(entry.place, *id, &bytes) == entry.name);
        Ok(whole.and_then(|id| Record::from_bytes(id, &bytes)))
    }

    /// Removes a record that the server has accepted. Only for the holder of the lock.
    ///
    /// # Errors
    /// If it can't be removed.
    pub fn remove(&self, entry: &SpoolFile, _: &Lock) -> io::Result<()> {
        fs::remove_file(self.dir.join(&entry.name))
    }

    /// Moves a record that will never be accepted to the rejected ones. Only for the holder of the lock.
    ///
    /// # Errors
    /// If it can't be moved.
    pub fn reject(&self, entry: &SpoolFile, reason: &str, _: &Lock) -> io::Result<()> {
        self.put_aside(&entry.name, reason)
    }

    /// Moves the files of killed writers to the rejected ones. Only for the holder of the lock.
    ///
    /// # Errors
    /// If the folder can't be read or the file can't be moved.
    pub fn tidy(&self, _: &Lock) -> io::Result<()> {
        for file in fs::read_dir(&self.dir)? {
            let file = file?;
            let name = file.file_name();
            let Some(name) = name.to_str().filter(|name| name.starts_with('.') && *name != LOCK) else {
                continue;
            };
            let age = file.metadata().and_then(|data| data.modified()).ok().and_then(|at| at.elapsed().ok());
            if age.is_some_and(|age| age > ABANDONED) {
                self.put_aside(name, "its writer was killed")?;
            }
        }
        Ok(())
    }

    fn put_aside(&self, name: &str, reason: &str) -> io::Result<()> {
        let rejected = self.dir.join(REJECTED);
        private_dir(&rejected)?;
        let shown = name.trim_start_matches('.');
        write_private(&rejected.join(format!("{shown}.why")), format!("{reason}\n").as_bytes())?;
        fs::rename(self.dir.join(name), rejected.join(shown))
    }

    /// The newest records that will never be accepted, at most `limit`: their names and the reasons.
    #[must_use]
    pub fn rejections(&self, limit: usize) -> Vec<(String, String)> {
        let files = fs::read_dir(self.dir.join(REJECTED)).into_iter().flatten().flatten();
        let mut reasons: Vec<PathBuf> = files
            .map(|file| file.path())
            .filter(|path| path.extension().is_some_and(|end| end == "why"))
            .collect();
        reasons.sort();
        let newest = reasons.into_iter().rev().take(limit);
        let name = |path: &Path| Some(path.file_stem()?.to_str()?.split('.').next()?.to_owned());
        newest
            .filter_map(|path| Some((name(&path)?, fs::read_to_string(&path).ok()?.trim_end().to_owned())))
            .collect()
    }

    /// The other spools with records: the name of what decides their server, and the number of records.
    #[must_use]
    pub fn others(&self) -> Vec<(String, usize)> {
        let dirs =
            self.dir.parent().and_then(|parent| fs::read_dir(parent).ok()).into_iter().flatten().flatten();
        let mut others: Vec<_> = dirs
            .filter(|dir| dir.path() != self.dir)
            .filter_map(|dir| {
                let waiting = entries(&dir.path()).ok()?.len();
                let name = dir.file_name().into_string().ok()?;
                let decider = form_urlencoded::parse(name.as_bytes()).next()?.0.into_owned();
                (waiting > 0).then_some((decider, waiting))
            })
            .collect();
        others.sort();
        others
    }
}

/// The records of a folder, unordered. None if the folder does not exist.
fn entries(dir: &Path) -> io::Result<Vec<SpoolFile>> {
    let files = match fs::read_dir(dir) {
        Ok(files) => files,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut entries = Vec::new();
    for file in files {
        entries.extend(file?.file_name().into_string().ok().and_then(SpoolFile::parse));
    }
    Ok(entries)
}

/// How many files of a folder are records, not reasons.
fn count(dir: &Path) -> io::Result<usize> {
    match fs::read_dir(dir) {
        Ok(files) => {
            Ok(files.flatten().filter(|file| file.path().extension().is_none_or(|end| end != "why")).count())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

/// Creates a folder that only its owner can access.
pub fn private_dir(dir: &Path) -> io::Result<()> {
    let named = |error: io::Error| {
        io::Error::new(error.kind(), format!("failed to create the folder `{}`: {error}", dir.display()))
    };
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(named)
}

/// Writes a file that only its owner can read. It replaces an existing file.
pub fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_says_when_it_was_made() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.007Z"),
            (951_782_400, "2000-02-29T00:00:00.007Z"),
            (951_868_799, "2000-02-29T23:59:59.007Z"),
            (951_868_800, "2000-03-01T00:00:00.007Z"),
            (1_795_251_600, "2026-11-21T09:00:00.007Z"),
            (1_798_761_599, "2026-12-31T23:59:59.007Z"),
            (4_107_542_400, "2100-03-01T00:00:00.007Z"),
        ] {
            let made = uuid::Timestamp::from_unix(uuid::NoContext, seconds, 7_000_000);
            let record = Record { id: Uuid::new_v7(made), ..Record::new(None, None, Vec::new()) };
            assert_eq!(record.at().as_deref(), Some(expected));
        }
    }
}
