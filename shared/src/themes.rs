//! The indexes that a process keeps warm.
//!
//! An entry says of which files it is the index: generation and revision of the theme. Whoever asks reads those anew, so
//! an entry is never used for other files than its own, and nothing has to be told when files change.

use std::sync::{Arc, Mutex, PoisonError};

use domain::ids::{ImportId, Owner, ProjectId};
use domain::theme::ThemeIndex;
use domain::theme::enrich::Notes;
use uuid::Uuid;

/// How many themes are kept at most.
const THEMES: usize = 16;
/// How many files they may have together: a file takes a few kilobytes.
const FILES: usize = 20_000;

/// Which files an index is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThemeVersion {
    pub owner: Owner,
    pub project: ProjectId,
    pub generation: ImportId,
    pub revision: u64,
}

/// Where an index comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The stored map, which is that of the files as they are.
    Map,
    /// The files themselves, read for this answer: the map does not have them yet.
    Scout,
}

/// An index in memory.
#[derive(Clone)]
pub struct Warm {
    pub version: ThemeVersion,
    pub source: Source,
    pub index: Arc<ThemeIndex>,
}

/// The newest entry of each theme, the one that was used last at the end. Cheap to clone.
#[derive(Clone, Default)]
pub struct ThemeCache(Arc<Mutex<Vec<Warm>>>);

impl ThemeCache {
    fn entries(&self) -> std::sync::MutexGuard<'_, Vec<Warm>> {
        // Entries are whole whenever the lock is let go, also by a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of a theme, of whatever version: an index to go on from.
    #[must_use]
    pub fn get(&self, owner: &Owner, project: ProjectId) -> Option<Warm> {
        let mut entries = self.entries();
        let at = entries.iter().position(|e| e.version.project == project && e.version.owner == *owner)?;
        let entry = entries.remove(at);
        entries.push(entry.clone());
        Some(entry)
    }

    /// Keeps an index, in the place of any other of its theme, and lets go of what was not used for longest.
    pub fn put(&self, warm: Warm) {
        let mut entries = self.entries();
        let of = |e: &Warm| (e.version.owner.clone(), e.version.project);
        entries.retain(|entry| of(entry) != of(&warm));
        entries.push(warm);
        while entries.len() > THEMES
            || entries.len() > 1 && entries.iter().map(|entry| entry.index.len()).sum::<usize>() > FILES
        {
            entries.remove(0);
        }
    }
}

/// An object, and the notes in it.
type KeptNotes = (Uuid, Arc<Notes>);

/// What models wrote of the themes that were asked about last, by the object it is in, which never changes. Cheap to clone.
#[derive(Clone, Default)]
pub struct NotesCache(Arc<Mutex<Vec<KeptNotes>>>);

impl NotesCache {
    fn entries(&self) -> std::sync::MutexGuard<'_, Vec<KeptNotes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[must_use]
    pub fn get(&self, id: Uuid) -> Option<Arc<Notes>> {
        let mut entries = self.entries();
        let at = entries.iter().position(|(known, _)| *known == id)?;
        entries[at..].rotate_left(1);
        entries.last().map(|(_, notes)| notes.clone())
    }

    /// Keeps notes, and lets go of those that were not used for longest.
    pub fn put(&self, id: Uuid, notes: Arc<Notes>) {
        let mut entries = self.entries();
        entries.retain(|(known, _)| *known != id);
        entries.push((id, notes));
        let spare = entries.len().saturating_sub(THEMES);
        entries.drain(..spare);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warm(project: u128, revision: u64, files: usize) -> Warm {
        let files = (0..files).map(|n| (format!("assets/{n}.svg"), ""));
        Warm {
            version: ThemeVersion {
                owner: Owner::new("me").unwrap(),
                project: ProjectId::from_uuid(uuid::Uuid::from_u128(project)),
                generation: ImportId::NONE,
                revision,
            },
            source: Source::Map,
            index: Arc::new(ThemeIndex::build(files).unwrap()),
        }
    }

    #[test]
    fn notes_are_had_again_until_others_push_them_out() {
        let (cache, id) = (NotesCache::default(), |n: u128| Uuid::from_u128(n));
        (0..16).for_each(|n| cache.put(id(n), Arc::default()));
        assert!(cache.get(id(0)).is_some());
        cache.put(id(16), Arc::default());
        cache.put(id(16), Arc::default());
        let there: Vec<bool> = [0, 1, 2, 16].map(|n| cache.get(id(n)).is_some()).to_vec();
        assert_eq!(there, [true, false, true, true]);
    }

    #[test]
    fn what_was_not_used_for_longest_goes() {
        let cache = ThemeCache::default();
        let me = Owner::new("me").unwrap();
        let get = |project: u128| {
            let found = cache.get(&me, ProjectId::from_uuid(uuid::Uuid::from_u128(project)));
            found.map(|warm| warm.version.revision)
        };
        (0..16).for_each(|project| cache.put(warm(project, 1, 1)));
        cache.put(warm(3, 2, 1));
        assert_eq!((get(0), get(3)), (Some(1), Some(2)));
        cache.put(warm(16, 1, 1));
        assert_eq!((get(0), get(1), get(16)), (Some(1), None, Some(1)));
        cache.put(warm(17, 1, 9_999));
        cache.put(warm(18, 1, 9_999));
        assert_eq!((get(17), get(18), get(2)), (Some(1), Some(1), None));
        let you = Owner::new("you").unwrap();
        assert!(cache.get(&you, ProjectId::from_uuid(uuid::Uuid::from_u128(17))).is_none());
    }
}
