//! A part of the disk that is kept for deletions. A deletion writes before it frees anything: SQLite writes every change to its
//! log first. Without a reserve, nobody could delete an account on a full disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use rand::RngCore;

const RESERVE_FILE: &str = "reserve";

/// The size of the reserve, in bytes. SQLite's log has four megabytes before it is copied to the table's file. The file can grow
/// by as much, and a transaction of a deletion can add two megabytes to the log.
pub(super) const RESERVE: u64 = 16 << 20;

/// How much more must be free before the reserve is made again, so that it does not take the last room.
const MARGIN: u64 = 1 << 20;

/// The reserve of a data folder: a file without meaning that takes room on the disk.
#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
    held: Mutex<bool>,
}

impl Reserve {
    /// Makes the reserve. If the disk has no room, the reserve is missing, and [`Reserve::hold`] makes it later.
    pub(super) fn open(folder: &Path) -> Self {
        let path = folder.join(RESERVE_FILE);
        let whole = fs::metadata(&path).is_ok_and(|found| found.len() == RESERVE);
        let reserve = Self { path, held: Mutex::new(whole) };
        if !reserve.hold() {
            tracing::error!(
                "the disk has no room for the reserve of {RESERVE} bytes; only deletions are accepted until it has"
            );
        }
        reserve
    }

    /// Whether the reserve is there. If it is missing, this makes it, if the disk has room.
    pub(super) fn hold(&self) -> bool {
        let mut held = self.held();
        if *held {
            return true;
        }
        let Some(folder) = self.path.parent() else { return false };
        if room(folder).is_ok_and(|room| room < RESERVE + MARGIN) {
            return false;
        }
        *held = allocate(&self.path).is_ok();
        if !*held {
            // A part of it would take room and have no use.
            let _ = fs::remove_file(&self.path);
        }
        *held
    }

    /// Gives the room to whoever writes next. `false` if the reserve was not there.
    pub(super) fn release(&self) -> bool {
        let mut held = self.held();
        std::mem::take(&mut *held) && fs::remove_file(&self.path).is_ok()
    }

    fn held(&self) -> MutexGuard<'_, bool> {
        self.held.lock().expect("no code panics while it holds the reserve")
    }
}

/// Makes a file that really takes its room.
fn allocate(path: &Path) -> io::Result<()> {
    let mut file: File = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    if rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, RESERVE).is_ok() {
        return Ok(());
    }
    // The file system can't allocate. Random bytes, because it may store others in less room.
    let mut bytes = vec![0; 1 << 20];
    for _ in 0..RESERVE >> 20 {
        rand::rng().fill_bytes(&mut bytes);
        file.write_all(&bytes)?;
    }
    file.sync_all()
}

/// How many bytes can be written to the disk of this file or folder.
pub(super) fn room(path: &Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(path)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn the_reserve_takes_its_room_and_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(RESERVE_FILE);
        let allocated = || fs::metadata(&path).map(|found| found.blocks() * 512).ok();
        let reserve = Reserve::open(folder.path());
        assert!(allocated().is_some_and(|bytes| bytes >= RESERVE), "{:?}", allocated());
        assert!(reserve.release() && !path.exists());
        assert!(!reserve.release(), "there is nothing to release");
        assert!(reserve.hold());
        assert!(allocated().is_some_and(|bytes| bytes >= RESERVE));
        // A process that was killed while it made the reserve.
        File::options().write(true).open(&path).unwrap().set_len(RESERVE / 2).unwrap();
        assert!(Reserve::open(folder.path()).hold());
        assert!(allocated().is_some_and(|bytes| bytes >= RESERVE));
    }
}
