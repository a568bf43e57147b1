//! The folders whose project file a person has trusted.
//!
//! A project file decides who gets prompts and keys only after the person has trusted its folder. What was trusted is the
//! content of the file (and of the key file that it names) in this folder, without links and `..` in its path. So a file that
//! changes, a folder that is moved, and a link from another folder are not trusted.
//!
//! The list is a file of the person's own configuration: `~/.config/lamplighter/trusted.json`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::Failure;
use crate::output::shown;
use crate::spool::private_dir;

/// The version of the list's format.
const VERSION: u32 = 1;

/// A hash of everything that a project file says.
#[derive(Clone, Debug, Default)]
pub struct Fingerprint(Sha256);

impl Fingerprint {
    /// Adds the text of a file.
    pub fn add(&mut self, text: &str) {
        // The length separates the texts.
        self.0.update((text.len() as u64).to_be_bytes());
        self.0.update(text);
    }

    pub fn hex(&self) -> String {
        self.0.clone().finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Whether a folder is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Trusted,
    /// It was trusted with another content.
    Changed,
    Unknown,
}

/// Why the list can't be used. Nothing is trusted then.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("failed to read {}: {cause}", shown(path))]
    Unreadable { path: PathBuf, cause: String },
    #[error(
        "failed to read {}: its format has version {version}, and this program knows {VERSION}",
        shown(path)
    )]
    Version { path: PathBuf, version: u32 },
    #[error("{} is not used, because others can write it ({mode:04o}); its mode must be 600", shown(path))]
    Writable { path: PathBuf, mode: u32 },
    #[error("the path of the folder is not UTF-8: {}", shown(.0))]
    NotText(PathBuf),
}

/// The content of the file.
#[derive(Deserialize, Serialize)]
pub struct List {
    version: u32,
    /// By their paths.
    pub folders: BTreeMap<String, Entry>,
}

#[derive(Deserialize, Serialize)]
pub struct Entry {
    /// For a person who reads the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// In hexadecimal digits.
    pub sha256: String,
}

impl Default for List {
    fn default() -> Self {
        Self { version: VERSION, folders: BTreeMap::new() }
    }
}

/// The file with the list.
pub struct TrustFile {
    path: PathBuf,
}

impl TrustFile {
    /// The list in the person's own folder of settings.
    #[must_use]
    pub fn in_folder(settings: &Path) -> Self {
        Self { path: settings.join("trusted.json") }
    }

    /// Whether the folder is trusted with this content.
    ///
    /// # Errors
    /// If the list can't be used.
    pub fn state(&self, folder: &Path, content: &Fingerprint) -> Result<State, TrustError> {
        let list = self.read()?;
        Ok(match folder.to_str().and_then(|folder| list.folders.get(folder)) {
            None => State::Unknown,
            Some(entry) if entry.sha256 == content.hex() => State::Trusted,
            Some(_) => State::Changed,
        })
    }

    pub fn read(&self) -> Result<List, TrustError> {
        let path = || self.path.clone();
        let unreadable = |cause: String| TrustError::Unreadable { path: path(), cause };
        let mode = match fs::metadata(&self.path) {
            Ok(data) => data.permissions().mode() & 0o777,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(List::default()),
            Err(error) => return Err(unreadable(error.to_string())),
        };
        if mode & 0o022 != 0 {
            return Err(TrustError::Writable { path: path(), mode });
        }
        let bytes = fs::read(&self.path).map_err(|error| unreadable(error.to_string()))?;
        let list: List = serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
        if list.version == VERSION {
            Ok(list)
        } else {
            Err(TrustError::Version { path: path(), version: list.version })
        }
    }

    /// Changes the list. Concurrent changes are all kept, and a reader sees the old list or the new one.
    pub fn change<T>(&self, change: impl FnOnce(&mut List) -> T) -> Result<T, Failure> {
        let dir = self.path.parent().unwrap_or(Path::new("."));
        private_dir(dir)?;
        let mut lock = File::options();
        let lock =
            lock.write(true).create(true).truncate(false).mode(0o600).open(dir.join(".trusted.lock"))?;
        lock.lock()?;
        let mut list = self.read()?;
        let done = change(&mut list);
        // A temporary file has the mode 600.
        let mut new = tempfile::NamedTempFile::new_in(dir)?;
        serde_json::to_writer_pretty(&mut new, &list).map_err(io::Error::from)?;
        new.write_all(b"\n")?;
        // If the file is a link, the link stays.
        let target = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        new.persist(target).map_err(|error| error.error)?;
        Ok(done)
    }
}

impl From<TrustError> for Failure {
    fn from(error: TrustError) -> Self {
        Self::Message(error.to_string())
    }
}
