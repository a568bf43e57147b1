//! The data folder of the engines. Only one process at a time can use it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

pub(super) const LOCK_FILE: &str = "lamplighter.lock";

/// The key that encrypts stored provider keys.
pub(super) const MASTER_KEY_FILE: &str = "master.key";

/// A data folder that only this process may use, until the value is dropped.
///
/// The lock belongs to the open file. The system releases it when the process ends for any reason, so a lock file that a killed
/// process left has no effect.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    _lock: File,
}

/// Why a data folder can't be used. Each message is one line and follows "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    #[error(
        "use the data folder {path}: {} holds it; stop that process, or choose another folder",
        Holder(*pid),
        path = path.display()
    )]
    Held { path: PathBuf, pid: Option<u32> },
    #[error("use the data folder {}: it is not a folder", path.display())]
    NotAFolder { path: PathBuf },
    #[error("use the data folder {}: it can't be {action}: {source}", path.display())]
    Inaccessible { path: PathBuf, action: &'static str, source: io::Error },
}

struct Holder(Option<u32>);

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(pid) => write!(f, "process {pid}"),
            None => f.write_str("another process"),
        }
    }
}

impl DataDir {
    /// Opens the folder, creating it (and the folders above it) if it is absent, and locks it.
    pub fn open(path: &Path) -> Result<Self, DataDirError> {
        let inaccessible =
            |action| move |source| DataDirError::Inaccessible { path: path.to_owned(), action, source };
        match fs::metadata(path) {
            Ok(found) if !found.is_dir() => return Err(DataDirError::NotAFolder { path: path.to_owned() }),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(path).map_err(inaccessible("created"))?;
            }
            Err(error) => return Err(inaccessible("read")(error)),
        }
        fs::read_dir(path).map_err(inaccessible("read"))?;
        tighten(path).map_err(inaccessible("closed to others"))?;

        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path.join(LOCK_FILE))
            .map_err(inaccessible("written"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // The process id is only for the message.
                let pid = lock.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
                return Err(DataDirError::Held { path: path.to_owned(), pid });
            }
            Err(TryLockError::Error(source)) => return Err(inaccessible("locked")(source)),
        }
        write_pid(&mut lock).map_err(inaccessible("written"))?;
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Removes the access rights of others from the folder and from our files in it, because an older version left them
/// open. Other files in the folder are not changed.
fn tighten(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("table.sqlite")
            || ["bucket", "dead-letters", LOCK_FILE, MASTER_KEY_FILE].contains(&&*name)
        {
            close_to_others(&entry.path(), true)?;
        }
    }
    close_to_others(folder, false)
}

/// Removes the rights of everybody but the owner. With `inside`, also from everything in a folder.
fn close_to_others(path: &Path, inside: bool) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let found = fs::symlink_metadata(path)?;
    if found.is_symlink() {
        return Ok(());
    }
    let mode = found.permissions().mode();
    if mode & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o700))?;
    }
    if inside && found.is_dir() {
        for entry in fs::read_dir(path)? {
            close_to_others(&entry?.path(), true)?;
        }
    }
    Ok(())
}

fn write_pid(lock: &mut File) -> io::Result<()> {
    lock.set_len(0)?;
    lock.rewind()?;
    writeln!(lock, "{}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_is_refused_and_told_who_holds_it() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("deep/data");
        let first = DataDir::open(&path).unwrap();
        assert_eq!(first.path(), path);
        let refusal = DataDir::open(&path).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            format!(
                "use the data folder {}: process {} holds it; stop that process, or choose another folder",
                path.display(),
                std::process::id()
            )
        );
        drop(first);
        DataDir::open(&path).unwrap();
    }

    #[test]
    fn a_leftover_lock_file_does_not_block() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(LOCK_FILE), "999999999999 is longer than any process id\n").unwrap();
        let held = DataDir::open(folder.path()).unwrap();
        let pid = fs::read_to_string(folder.path().join(LOCK_FILE)).unwrap();
        assert_eq!(pid, format!("{}\n", std::process::id()));
        drop(held);
    }

    #[test]
    fn what_is_not_a_folder_is_refused_in_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let not_a_folder = DataDir::open(&file).unwrap_err();
        assert_eq!(
            not_a_folder.to_string(),
            format!("use the data folder {}: it is not a folder", file.display())
        );
        let under_a_file = DataDir::open(&file.join("below")).unwrap_err();
        assert!(matches!(under_a_file, DataDirError::Inaccessible { action: "read", .. }), "{under_a_file}");
        assert_eq!(under_a_file.to_string().lines().count(), 1);
    }
}
