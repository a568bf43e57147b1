//! What was last seen together: of each document, the version and the text that were the same here and there.
//!
//! It is kept for each working tree, server and project, in the folder of git.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::files::Local;
use super::git::Repository;
use super::kept;
use crate::Failure;

/// A version of a document. A document that was deleted and created again counts its versions anew, so the time belongs to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    pub version: u64,
    pub written_at: String,
    /// Of the text without marks.
    pub sha256: String,
}

/// What was seen of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// It was the same here and there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<Version>,
    /// It was shown in a conflict. A merged text replaces this version and no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Version>,
}

/// The file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Content {
    /// By server and project.
    places: BTreeMap<String, BTreeMap<String, Seen>>,
}

/// What was seen of one project. Only one process at a time has it.
pub struct State {
    path: PathBuf,
    place: String,
    content: Content,
    _lock: File,
}

impl State {
    /// # Errors
    /// If the folder can't be used.
    pub fn open(repository: &Repository, place: String) -> Result<Self, Failure> {
        let dir = repository.own_dir()?;
        let mut lock = File::options();
        let lock = lock.write(true).create(true).truncate(false).mode(0o600).open(dir.join("docs.lock"))?;
        lock.lock()?;
        let path = dir.join("docs.json");
        let content = kept::read(&path);
        Ok(Self { path, place, content, _lock: lock })
    }

    #[must_use]
    pub fn seen(&self, name: &str) -> Seen {
        self.all().and_then(|all| all.get(name)).cloned().unwrap_or_default()
    }

    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.all().into_iter().flat_map(BTreeMap::keys)
    }

    fn all(&self) -> Option<&BTreeMap<String, Seen>> {
        self.content.places.get(&self.place)
    }

    /// Remembers what was seen. `None` if the document is neither here nor there.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn remember(&mut self, name: &str, seen: Option<Seen>) -> Result<(), Failure> {
        let all = self.content.places.entry(self.place.clone()).or_default();
        let before = match seen.clone() {
            Some(seen) => all.insert(name.to_owned(), seen),
            None => all.remove(name),
        };
        if before == seen { Ok(()) } else { kept::write(&self.path, &self.content) }
    }
}

/// How a file and the stored document compare with what was last seen together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    Same,
    ChangedHere,
    ChangedThere,
    Both,
    OnlyHere,
    OnlyThere,
    DeletedHere,
    DeletedThere,
    /// Deleted on both sides.
    Nowhere,
    /// The file can't be a document.
    Unusable,
}

impl Compared {
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::ChangedHere => "changed_here",
            Self::ChangedThere => "changed_there",
            Self::Both => "conflict",
            Self::OnlyHere => "only_here",
            Self::OnlyThere => "only_there",
            Self::DeletedHere => "deleted_here",
            Self::DeletedThere => "deleted_there",
            Self::Nowhere => "nowhere",
            Self::Unusable => "unusable",
        }
    }

    #[must_use]
    pub fn words(self) -> String {
        match self {
            Self::Both => "changed on both sides".to_owned(),
            other => other.code().replace('_', " "),
        }
    }
}

/// Compares the texts. `there` and `together` are hashes.
#[must_use]
pub fn compare(here: &Local, there: Option<&str>, together: Option<&str>) -> Compared {
    let here = match here {
        Local::Unusable(_) => return Compared::Unusable,
        Local::Absent => None,
        Local::Text { sha256, .. } => Some(sha256.as_str()),
    };
    match (here, there) {
        (Some(here), Some(there)) if here == there => Compared::Same,
        (Some(_), Some(there)) if together == Some(there) => Compared::ChangedHere,
        (Some(here), Some(_)) if together == Some(here) => Compared::ChangedThere,
        (Some(_), Some(_)) => Compared::Both,
        (None, Some(_)) if together.is_some() => Compared::DeletedHere,
        (None, Some(_)) => Compared::OnlyThere,
        (None, None) => Compared::Nowhere,
        (Some(_), None) if together.is_some() => Compared::DeletedThere,
        (Some(_), None) => Compared::OnlyHere,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_compared_with_what_was_seen_together() {
        let text =
            |text: &str| Local::Text { text: text.to_owned(), sha256: text.to_owned(), whole: String::new() };
        for (here, there, together, expected) in [
            (text("a"), Some("a"), None, Compared::Same),
            (text("a"), Some("a"), Some("b"), Compared::Same),
            (text("a"), Some("b"), Some("b"), Compared::ChangedHere),
            (text("a"), Some("b"), Some("a"), Compared::ChangedThere),
            (text("a"), Some("b"), Some("c"), Compared::Both),
            (text("a"), Some("b"), None, Compared::Both),
            (text("a"), None, None, Compared::OnlyHere),
            (text("a"), None, Some("a"), Compared::DeletedThere),
            (Local::Absent, Some("a"), None, Compared::OnlyThere),
            (Local::Absent, Some("b"), Some("a"), Compared::DeletedHere),
            (Local::Absent, None, Some("a"), Compared::Nowhere),
            (Local::Unusable(String::new()), Some("a"), Some("a"), Compared::Unusable),
        ] {
            assert_eq!(compare(&here, there, together), expected, "{here:?} {there:?} {together:?}");
        }
    }
}
