//! The files of documents at the top of a working tree.
//!
//! A link is never followed: it could lead out of the repository.

use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use fs_err as fs;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::marks::without_marks;
use crate::Failure;
use crate::spool::write_private;

/// The longest file that is read, in bytes. The longest document is much shorter.
const MAX_FILE: u64 = 1024 * 1024;

/// A document as a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Local {
    Absent,
    Text {
        /// As it is stored: without the marks.
        text: String,
        sha256: String,
        /// Of the whole file, so that a change is seen before it is replaced.
        whole: String,
    },
    /// It can't be a document, with the reason.
    Unusable(String),
}

/// Whether the text is the name of a document. The platform has the same rule. A server may answer with any name, and this one becomes
/// a path.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=100).contains(&text.len())
        && !["commits", "hook", "sync"].contains(&text)
        && text.bytes().all(is_plain)
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
}

/// Whether a file with this name is a text and nothing else. A file with another name may be a program or the settings of one.
#[must_use]
pub fn is_plain_text(name: &str) -> bool {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    ending.is_some_and(|ending| ["md", "markdown", "txt"].contains(&ending.as_str()))
}

/// The file of a document.
#[must_use]
pub fn read(root: &Path, name: &str) -> Local {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::open(root.join(name), flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Local::Absent,
        Err(Errno::LOOP) => return Local::Unusable("it is a link, and links are not followed".to_owned()),
        Err(error) => return Local::Unusable(io::Error::from(error).to_string()),
    };
    let mut text = String::new();
    match file.metadata() {
        Ok(data) if !data.is_file() => return Local::Unusable("it is not a file".to_owned()),
        Ok(_) => {}
        Err(error) => return Local::Unusable(error.to_string()),
    }
    match file.take(MAX_FILE + 1).read_to_string(&mut text) {
        Ok(read) if read as u64 > MAX_FILE => Local::Unusable(format!("it has more than {MAX_FILE} bytes")),
        Ok(_) => {
            let whole = sha256(&text);
            let text = without_marks(&text);
            Local::Text { sha256: sha256(&text), text, whole }
        }
        Err(error) => Local::Unusable(error.to_string()),
    }
}

/// The names of Markdown files.
///
/// # Errors
/// If the folder can't be read.
pub fn markdown(root: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        if let Ok(name) = entry.file_name().into_string()
            && is_name(&name)
            && name.ends_with(".md")
            && entry.file_type()?.is_file()
        {
            names.push(name);
        }
    }
    Ok(names)
}

/// Replaces the file that was read, or creates it. `before` is what was read: if it is not that any more, nothing is written.
///
/// # Errors
/// If it has changed meanwhile, or can't be written.
pub fn write(root: &Path, name: &str, before: &Local, text: &str) -> Result<(), Failure> {
    let path = root.join(name);
    let mut new = tempfile::Builder::new();
    // As for any other new file.
    let mut new = new.prefix(".lamplighter-").permissions(Permissions::from_mode(0o666)).tempfile_in(root)?;
    new.write_all(text.as_bytes())?;
    let changed =
        || Failure::Message(format!("{name} has changed while it was pulled; nothing was overwritten"));
    match before {
        Local::Absent => {
            new.persist_noclobber(&path).map_err(|error| match error.error.kind() {
                io::ErrorKind::AlreadyExists => changed(),
                _ => error.error.into(),
            })?;
        }
        _ if read(root, name) != *before => return Err(changed()),
        // A link that takes the place of the file now is replaced, and not followed.
        _ => {
            let mode = fs::symlink_metadata(&path)?.permissions().mode();
            new.as_file().set_permissions(Permissions::from_mode(mode & 0o777))?;
            new.persist(&path).map_err(|error| error.error)?;
        }
    }
    Ok(())
}

fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The text without its marks from a document of the API.
#[must_use]
pub fn stored(content: &str) -> (String, String) {
    let text = without_marks(content);
    let hash = sha256(&text);
    (text, hash)
}

/// Files of a conflict: the texts beside the person's own one.
pub struct ConflictFiles {
    dir: PathBuf,
}

impl ConflictFiles {
    #[must_use]
    pub const fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Writes the texts that are there, and returns their paths by their roles.
    ///
    /// # Errors
    /// If one can't be written.
    pub fn write(
        &self,
        name: &str,
        texts: &[(&'static str, &str)],
    ) -> Result<BTreeMap<&'static str, PathBuf>, Failure> {
        self.remove(name);
        let mut paths = BTreeMap::new();
        for (role, text) in texts {
            let path = self.path(name, role);
            write_private(&path, text.as_bytes())?;
            paths.insert(*role, path);
        }
        Ok(paths)
    }

    /// Removes what an earlier conflict has left.
    pub fn remove(&self, name: &str) {
        for role in ["theirs", "base"] {
            drop(std::fs::remove_file(self.path(name, role)));
        }
    }

    fn path(&self, name: &str, role: &str) -> PathBuf {
        // Editors recognise the format by the ending.
        let (stem, ending) = name.rsplit_once('.').unwrap_or((name, "txt"));
        self.dir.join(format!("{stem}.{role}.{ending}"))
    }
}
