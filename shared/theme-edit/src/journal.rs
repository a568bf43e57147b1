//! What a run did, entry by entry, and the form in which a draft is stored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use theme::text::LineRange;
use utoipa::ToSchema;

use crate::version::Version;

/// One change of one file. A call that changes several files has one entry for each, with the same number of the edit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Entry {
    /// The number of the edit, from 1.
    pub edit: u64,
    /// Who made it: the run, or the name that [`crate::Draft::written_by_another`] was given.
    pub by: String,
    /// The file.
    pub path: String,
    /// What happened to it.
    pub change: Change,
    /// Its version before. `None` if there was no file.
    #[schema(value_type = Option<String>)]
    pub before: Option<Version>,
    /// Its version after. `None` if there is no file.
    #[schema(value_type = Option<String>)]
    pub after: Option<Version>,
    /// The lines of the new file that differ.
    pub lines: Vec<LineRange>,
}

/// What happened to a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[schema(as = EditedHow)]
pub enum Change {
    /// It was made.
    Created,
    /// Its text changed.
    Edited,
    /// It was deleted.
    Deleted,
    /// It has this path since it was renamed.
    MovedFrom {
        /// The path before.
        from: String,
    },
    /// It left this path when it was renamed.
    MovedTo {
        /// The new path.
        to: String,
    },
    /// These edits were taken back.
    Undone {
        /// The numbers of the edits.
        edits: Vec<u64>,
    },
    /// Somebody else wrote it.
    Outside,
    /// The theme below the draft changed, and the file was merged with it or taken from it.
    Rebased,
}

/// A draft as it is stored. The bytes are stored apart, by version: see [`crate::Draft::contents`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoredDraft {
    /// The name of the run.
    pub run: String,
    /// The number of the last edit.
    pub edits: u64,
    /// The version in the theme below, of each file that the draft changed or the run read. `None` if there was no file.
    #[schema(value_type = BTreeMap<String, Option<String>>)]
    pub base: BTreeMap<String, Option<Version>>,
    /// The version in the draft, of each file that differs. `None` if it was deleted.
    #[schema(value_type = BTreeMap<String, Option<String>>)]
    pub files: BTreeMap<String, Option<Version>>,
    /// The path in the theme below of each file that was renamed, by its new path.
    pub origins: BTreeMap<String, String>,
    /// The version of each file that the run read or wrote last.
    #[schema(value_type = BTreeMap<String, String>)]
    pub seen: BTreeMap<String, Version>,
    /// All entries, in order.
    pub journal: Vec<Entry>,
}

/// Why a stored draft can't be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The theme below has other versions. Load the draft over the theme that it was made for, and then rebase it.
    #[error("the theme changed below the draft in {}: load the draft over the theme it was made for, then rebase it", .paths.join(", "))]
    BaseChanged { paths: Vec<String> },
    /// The bytes of a file of the draft are missing.
    #[error("the bytes of {path} (version {}) are missing", .version.short())]
    Missing { path: String, version: Version },
    /// The journal does not lead to the stored files.
    #[error("the journal of {path} does not lead to its stored version")]
    Broken { path: String },
}

/// The version of each file after all entries, for the files that the journal names.
///
/// # Errors
/// An entry does not begin where the entry before it ended.
pub fn replayed(journal: &[Entry]) -> Result<BTreeMap<&str, Option<Version>>, LoadError> {
    let mut files: BTreeMap<&str, Option<Version>> = BTreeMap::new();
    for entry in journal {
        let known = files.insert(&entry.path, entry.after);
        if known.is_some_and(|known| known != entry.before) {
            return Err(LoadError::Broken { path: entry.path.clone() });
        }
    }
    Ok(files)
}
