//! Taking edits back.

use std::collections::{BTreeMap, BTreeSet};

use super::{CallOutcome, Draft, Outcome};
use crate::error::EditError;
use crate::journal::{Change, Entry};
use crate::tree::File;
use crate::version::Version;

/// The edits to take back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undo<'a> {
    /// One edit, with all files that it changed.
    Edit(u64),
    /// All edits of a file, and of the files that it was renamed from or to.
    File(&'a str),
    /// All edits of this run.
    All,
}

/// The version that each file gets again. `None` if there was no file.
type Goals = Vec<(String, Option<Version>)>;

impl Draft {
    /// Takes edits back. The journal keeps them, and the undoing is an edit of its own, so it can be undone, too.
    ///
    /// # Errors
    /// The files are not as the edits left them: somebody else wrote them, or a later edit of this run did.
    pub fn undo(&mut self, what: Undo) -> Result<Outcome, EditError> {
        let (edits, goals) = match what {
            Undo::Edit(edit) => (vec![edit], self.goals_of_edit(edit)?),
            Undo::File(path) => self.goals_of_paths(Some(self.linked(path)))?,
            Undo::All => self.goals_of_paths(None)?,
        };
        let mut wanted: Vec<(String, Option<File>)> = Vec::new();
        for (path, goal) in goals {
            let file = match goal {
                None => None,
                Some(version) => Some(self.known(&path, version)?),
            };
            wanted.push((path, file));
        }
        self.edits += 1;
        let edit = self.edits;
        let mut files = Vec::new();
        for (path, file) in wanted {
            if self.file(&path).map(|file| file.version) == file.as_ref().map(|file| file.version) {
                continue;
            }
            let run = self.run.clone();
            files.push(self.set(edit, &run, &path, file, Change::Undone { edits: edits.clone() }, None));
            match self.file(&path).map(|file| file.version) {
                Some(version) => self.seen.insert(path, version),
                None => self.seen.remove(&path),
            };
        }
        self.origins.retain(|path, _| matches!(self.files.get(path), Some(Some(_))));
        if files.is_empty() {
            self.edits -= 1;
            return Err(EditError::NothingToUndo);
        }
        Ok(Outcome { edit: Some(edit), files, calls: vec![CallOutcome::default()], mentions: Vec::new() })
    }

    fn known(&self, path: &str, version: Version) -> Result<File, EditError> {
        if let Some(bytes) = self.content(version) {
            return Ok(File { version, bytes: Some(bytes) });
        }
        let mut listed = self.base.0.values().chain(self.files.values().flatten());
        if listed.any(|file| file.version == version) {
            return Ok(File::listed(version));
        }
        Err(EditError::NotLoaded { paths: vec![path.to_owned()] })
    }

    /// The version that each file of an edit had before it.
    fn goals_of_edit(&self, edit: u64) -> Result<Goals, EditError> {
        let entries: Vec<(usize, &Entry)> =
            self.journal.iter().enumerate().filter(|(_, entry)| entry.edit == edit).collect();
        if entries.is_empty() || entries.iter().any(|(_, entry)| entry.by != self.run) {
            return Err(EditError::NoSuchEdit { edit });
        }
        for (index, entry) in &entries {
            if self.file(&entry.path).map(|file| file.version) == entry.after {
                continue;
            }
            let later = self.journal[index + 1..].iter().filter(|later| later.path == entry.path);
            let later: Vec<&Entry> = later.collect();
            let is_undone =
                |later: &&&Entry| matches!(&later.change, Change::Undone { edits } if edits.contains(&edit));
            if later.iter().any(|later| is_undone(&later)) {
                return Err(EditError::AlreadyUndone { edit });
            }
            let path = entry.path.clone();
            if let Some(other) = later.iter().rev().find(|later| later.by != self.run) {
                return Err(EditError::LaterWrite { path, by: other.by.clone() });
            }
            let later = later.last().map_or(edit, |later| later.edit);
            return Err(EditError::LaterEdit { path, edit, later });
        }
        Ok(entries.into_iter().map(|(_, entry)| (entry.path.clone(), entry.before)).collect())
    }

    /// The paths that a file had, as far as this run renamed it.
    fn linked(&self, path: &str) -> BTreeSet<String> {
        let mut paths = BTreeSet::from([path.to_owned()]);
        // Backwards, a rename leads from the new path to the old one; forwards, from the old one to the new one.
        for is_backwards in [true, false, true] {
            let mut follow = |entry: &Entry| {
                if entry.by == self.run
                    && let Change::MovedFrom { from } = &entry.change
                    && (paths.contains(&entry.path) || paths.contains(from))
                {
                    paths.extend([entry.path.clone(), from.clone()]);
                }
            };
            if is_backwards {
                self.journal.iter().rev().for_each(&mut follow);
            } else {
                self.journal.iter().for_each(&mut follow);
            }
        }
        paths
    }

    /// The edits of this run at these paths, or at all, and the version of each path before the first of them.
    fn goals_of_paths(&self, paths: Option<BTreeSet<String>>) -> Result<(Vec<u64>, Goals), EditError> {
        let is_meant = |path: &str| paths.as_ref().is_none_or(|paths| paths.contains(path));
        let mut goals: BTreeMap<String, Option<Version>> = BTreeMap::new();
        let mut edits = BTreeSet::new();
        for entry in self.journal.iter().filter(|entry| is_meant(&entry.path)) {
            if entry.by == self.run {
                edits.insert(entry.edit);
                goals.entry(entry.path.clone()).or_insert(entry.before);
            } else if goals.contains_key(&entry.path) {
                return Err(EditError::LaterWrite { path: entry.path.clone(), by: entry.by.clone() });
            }
        }
        if goals.is_empty() {
            return Err(EditError::NothingToUndo);
        }
        Ok((edits.into_iter().collect(), goals.into_iter().collect()))
    }
}
