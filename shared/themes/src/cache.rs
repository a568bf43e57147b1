//! The theme indexes that a process keeps in memory.
//!
//! An entry names the files that it indexes: the theme's generation and revision. Each lookup first reads both from the
//! table. So an entry is never used for other files, and it needs no invalidation when files change.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use domain::ids::{ImportId, Owner, ProjectId};
use theme::ThemeIndex;
use theme::answers::Source;
use theme::check::CheckedTheme;
use theme::enrich::Notes;
use theme_edit::{Bytes, Version};
use uuid::Uuid;

/// The most themes that are kept.
const THEMES: usize = 16;
/// The most files that they may have together. A file takes a few kilobytes.
const FILES: usize = 20_000;

/// The files that an index describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThemeVersion {
    pub owner: Owner,
    pub project: ProjectId,
    pub generation: ImportId,
    pub revision: u64,
}

/// An index in memory.
#[derive(Clone)]
pub struct Warm {
    pub version: ThemeVersion,
    pub source: Source,
    pub index: Arc<ThemeIndex>,
}

/// The newest index of each theme. The most recently used one is last. Cheap to clone.
#[derive(Clone, Default)]
pub struct ThemeCache(Arc<Mutex<Vec<Warm>>>);

impl ThemeCache {
    fn entries(&self) -> std::sync::MutexGuard<'_, Vec<Warm>> {
        // The entries are consistent whenever the lock is released, even by a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The index of a theme, of any version. It may serve as the base of a newer one.
    #[must_use]
    pub fn get(&self, owner: &Owner, project: ProjectId) -> Option<Warm> {
        let mut entries = self.entries();
        let at = entries.iter().position(|e| e.version.project == project && e.version.owner == *owner)?;
        let entry = entries.remove(at);
        entries.push(entry.clone());
        Some(entry)
    }

    /// Stores an index, replaces the previous one of its theme, and drops the least recently used ones.
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

/// The most themes, and the most bytes of their files, that are kept for checks. What is kept of a file is a few times as large.
const CHECKED: usize = 4;
const CHECKED_BYTES: u64 = 16 << 20;

/// A theme that was read for checks.
#[derive(Clone, Default)]
pub struct Checked {
    /// The version of the theme when its files were listed.
    pub version: Option<ThemeVersion>,
    /// The SHA-256 of each file.
    pub hashes: BTreeMap<String, String>,
    pub theme: Arc<CheckedTheme>,
    /// How many bytes were read.
    pub bytes: u64,
}

type KeptTheme = ((Owner, ProjectId), Checked);

/// Themes that were read for checks. The most recently used one is last. Cheap to clone.
#[derive(Clone, Default)]
pub struct CheckedCache(Arc<Mutex<Vec<KeptTheme>>>);

impl CheckedCache {
    fn entries(&self) -> std::sync::MutexGuard<'_, Vec<KeptTheme>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was read of a theme last, also if its files have changed since.
    #[must_use]
    pub fn get(&self, owner: &Owner, project: ProjectId) -> Option<Checked> {
        let mut entries = self.entries();
        let at = entries.iter().position(|((known, of), _)| *of == project && known == owner)?;
        entries[at..].rotate_left(1);
        entries.last().map(|(_, checked)| checked.clone())
    }

    /// Keeps a theme, and drops the least recently used ones.
    pub fn put(&self, owner: &Owner, project: ProjectId, checked: Checked) {
        let mut entries = self.entries();
        let place = (owner.clone(), project);
        entries.retain(|(known, _)| *known != place);
        entries.push((place, checked));
        let bytes = |entries: &[KeptTheme]| entries.iter().map(|(_, kept)| kept.bytes).sum::<u64>();
        while entries.len() > CHECKED || entries.len() > 1 && bytes(&entries) > CHECKED_BYTES {
            entries.remove(0);
        }
    }
}

/// The id of a stored object, and the notes in it.
type KeptNotes = (Uuid, Arc<Notes>);

/// The notes of models on recently queried themes, by the object that holds them. Such an object never changes. Cheap
/// to clone.
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

    /// Stores notes, and drops the least recently used ones.
    pub fn put(&self, id: Uuid, notes: Arc<Notes>) {
        let mut entries = self.entries();
        entries.retain(|(known, _)| *known != id);
        entries.push((id, notes));
        let spare = entries.len().saturating_sub(THEMES);
        entries.drain(..spare);
    }
}

/// The last `N` values, one for each key. The newest is last.
pub struct Recent<K, V, const N: usize>(Mutex<VecDeque<(K, V)>>);

impl<K, V, const N: usize> Default for Recent<K, V, N> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: PartialEq, V: Clone, const N: usize> Recent<K, V, N> {
    #[must_use]
    pub fn get(&self, key: &K) -> Option<V> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone())
    }

    /// Keeps a value in place of the one that the key had, and drops the oldest ones.
    pub fn put(&self, key: K, value: V) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|(known, _)| *known != key);
        entries.push_back((key, value));
        while entries.len() > N {
            entries.pop_front();
        }
    }
}

/// The most bytes of contents that are kept. A common theme has half of them.
const CONTENTS_BYTES: usize = 16 << 20;
/// A longer content is not kept.
const CONTENT_BYTES: usize = 1 << 20;

/// The contents of files that edits and searches have read, by owner and version, so that the next call neither fetches nor hashes them
/// again. Cheap to clone.
#[derive(Clone, Default)]
pub struct ContentCache(Arc<Mutex<Contents>>);

#[derive(Default)]
struct Contents {
    /// When each was used last.
    known: HashMap<(Owner, Version), (u64, Bytes)>,
    uses: u64,
    bytes: usize,
}

impl ContentCache {
    fn contents(&self) -> std::sync::MutexGuard<'_, Contents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[must_use]
    pub fn get(&self, owner: &Owner, version: Version) -> Option<Bytes> {
        let mut contents = self.contents();
        contents.uses += 1;
        let now = contents.uses;
        let (used, bytes) = contents.known.get_mut(&(owner.clone(), version))?;
        *used = now;
        Some(bytes.clone())
    }

    /// Keeps a content that has this version. If there are too many bytes, the half that was not used for longest is dropped.
    pub fn put(&self, owner: &Owner, version: Version, bytes: Bytes) {
        if bytes.len() > CONTENT_BYTES {
            return;
        }
        let mut contents = self.contents();
        contents.uses += 1;
        let now = contents.uses;
        let length = bytes.len();
        let before = contents.known.insert((owner.clone(), version), (now, bytes));
        contents.bytes += length;
        contents.bytes -= before.map_or(0, |(_, bytes)| bytes.len());
        if contents.bytes > CONTENTS_BYTES {
            let mut uses: Vec<u64> = contents.known.values().map(|(used, _)| *used).collect();
            let middle = uses.len() / 2;
            let median = *uses.select_nth_unstable(middle).1;
            contents.known.retain(|_, (used, _)| *used >= median);
            contents.bytes = contents.known.values().map(|(_, bytes)| bytes.len()).sum();
        }
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
    fn notes_are_cached_until_others_replace_them() {
        let (cache, id) = (NotesCache::default(), |n: u128| Uuid::from_u128(n));
        (0..16).for_each(|n| cache.put(id(n), Arc::default()));
        assert!(cache.get(id(0)).is_some());
        cache.put(id(16), Arc::default());
        cache.put(id(16), Arc::default());
        let there: Vec<bool> = [0, 1, 2, 16].map(|n| cache.get(id(n)).is_some()).to_vec();
        assert_eq!(there, [true, false, true, true]);
    }

    #[test]
    fn the_oldest_of_the_recent_values_is_dropped() {
        let recent = Recent::<u32, &str, 2>::default();
        recent.put(1, "a");
        recent.put(2, "b");
        recent.put(1, "c");
        recent.put(3, "d");
        assert_eq!([1, 2, 3].map(|key| recent.get(&key)), [Some("c"), None, Some("d")]);
    }

    #[test]
    fn contents_are_kept_within_bounds_and_for_their_owner() {
        let cache = ContentCache::default();
        let (me, you) = (Owner::new("me").unwrap(), Owner::new("you").unwrap());
        let content = || Bytes::from(vec![0; CONTENT_BYTES]);
        let version = |n: u8| Version::of(&[n]);
        for n in 0..40 {
            cache.put(&me, version(n), content());
            assert!(cache.get(&me, version(0)).is_some(), "what is used stays");
            assert!(cache.contents().bytes <= CONTENTS_BYTES);
        }
        assert!(cache.get(&me, version(39)).is_some() && cache.get(&me, version(1)).is_none());
        assert!(cache.get(&you, version(39)).is_none());
        cache.put(&you, version(50), Bytes::from(vec![0; CONTENT_BYTES + 1]));
        assert!(cache.get(&you, version(50)).is_none());
        cache.put(&me, version(39), content());
        let sum: usize = cache.contents().known.values().map(|(_, bytes)| bytes.len()).sum();
        assert_eq!(cache.contents().bytes, sum);
    }

    #[test]
    fn the_least_recently_used_entry_is_dropped() {
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
