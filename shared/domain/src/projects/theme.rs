//! The stored state of a project's theme: its files, the state of its map, and imports.
//!
//! The files are the source of truth, and the map is computed from them. Each change of a file increments the theme's
//! `revision`, and the map records the revision that it was computed from. So it is always possible to tell whether the
//! map is current, whichever process died.
//!
//! An import writes all files into a new *generation* and then switches the theme to it in one step. Nobody sees a mix
//! of two themes.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::ImportId;
use crate::lease::Lease;
use crate::theme::blob;
use crate::theme::index::{MAX_FILES, MAX_THEME_BYTES};
use crate::theme::path::{FileKind, check_path};
use crate::validate::{FieldErrors, MAX_STORED};

/// The largest file of a theme, in bytes.
pub const MAX_FILE_BYTES: usize = 16 * 1024 * 1024;
/// The largest archive to import, in bytes.
pub const MAX_ARCHIVE_BYTES: u64 = 128 * 1024 * 1024;
/// Changes within this time are indexed together.
pub const DEBOUNCE: SignedDuration = SignedDuration::from_secs(5);
/// How long an indexer may be silent before another may take over.
pub const LEASE: SignedDuration = SignedDuration::from_secs(60);

/// A file of a theme, without its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThemeFile {
    pub path: String,
    /// SHA-256 of the content, hexadecimal.
    pub sha256: String,
    pub bytes: u64,
    /// Increases with each change of the content. A path never reuses a version, even after a deletion.
    pub version: u64,
    pub updated_at: Timestamp,
}

impl ThemeFile {
    /// The first half of the hash. The index stores this half.
    #[must_use]
    pub fn half_hash(&self) -> [u8; 16] {
        let mut half = [0; 16];
        for (at, byte) in half.iter_mut().enumerate() {
            let digits = self.sha256.get(2 * at..2 * at + 2).unwrap_or_default();
            *byte = u8::from_str_radix(digits, 16).unwrap_or_default();
        }
        half
    }
}

impl ThemeFile {
    /// Checks the limits of every file, wherever it comes from.
    ///
    /// # Errors
    /// Every invalid field with its limit.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        if let Err(error) = check_path(&self.path) {
            errors.add("path", error.to_string());
        }
        errors.sha256("sha256", &self.sha256);
        errors.most("bytes", self.bytes, MAX_FILE_BYTES as u64);
        errors.into_result(())
    }
}

/// The state of a project's theme.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThemeState {
    /// The import that the files came from. Nil before the first import.
    pub generation: ImportId,
    /// Increases with each change of a file.
    pub revision: u64,
    pub files: u64,
    pub bytes: u64,
    pub map: Option<StoredMap>,
    /// Why a revision could not be indexed. The next revision is tried again.
    pub failure: Option<MapFailure>,
    /// Who may write the map. The fence distinguishes a late writer from the one that took over.
    pub lease: Option<Lease<u64>>,
    /// The fence of the newest lease.
    pub fence: u64,
}

/// The stored map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredMap {
    pub revision: u64,
    /// SHA-256 of the blob, hexadecimal. It is the blob's name.
    pub sha256: String,
    /// The layout version of the blob.
    pub layout: u16,
    pub files: u64,
    /// How many places could not be parsed.
    pub degraded: u64,
    pub indexed_at: Timestamp,
    pub took_ms: u64,
}

/// Why a revision could not be indexed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapFailure {
    pub revision: u64,
    pub reason: String,
}

/// The state of the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MapPhase {
    /// There are no files.
    Empty,
    /// Files have changed. The map will be updated within seconds.
    Pending,
    Indexing,
    Ready,
    /// The current files cannot be indexed; `reason` says why.
    Failed,
}

impl ThemeState {
    /// Checks the limits of every theme, wherever its files come from.
    ///
    /// # Errors
    /// Every invalid field with its limit.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        errors.most("files", self.files, MAX_FILES as u64);
        errors.most("bytes", self.bytes, MAX_THEME_BYTES as u64);
        errors.most("revision", self.revision, MAX_STORED);
        errors.most("fence", self.fence, MAX_STORED);
        if let Some(map) = &self.map {
            errors.sha256("map.sha256", &map.sha256);
        }
        errors.into_result(())
    }

    /// Whether the stored map belongs to the current files.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.map.as_ref().is_some_and(|map| map.revision == self.revision && map.layout == blob::VERSION)
    }

    /// Whether an indexer has nothing to do.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let failed = self.failure.as_ref().is_some_and(|failure| failure.revision == self.revision);
        self.is_current() || failed || self.revision == 0
    }

    #[must_use]
    pub fn is_leased(&self, now: Timestamp) -> bool {
        self.lease.is_some_and(|lease| !lease.is_over(now))
    }

    #[must_use]
    pub fn phase(&self, now: Timestamp) -> MapPhase {
        if self.is_current() {
            MapPhase::Ready
        } else if self.is_leased(now) {
            MapPhase::Indexing
        } else if self.is_settled() && self.revision > 0 {
            MapPhase::Failed
        } else if self.revision > 0 {
            MapPhase::Pending
        } else {
            MapPhase::Empty
        }
    }

    /// Takes or renews the lease. To renew it, pass the holder's `fence`.
    #[must_use]
    pub fn leased(mut self, fence: Option<u64>, now: Timestamp) -> (Self, u64) {
        let fence = fence.unwrap_or(self.fence.saturating_add(1));
        self.fence = fence;
        self.lease = Some(Lease::take(fence, now, LEASE));
        (self, fence)
    }

    /// Whether the holder still has the lease, so nobody took over.
    #[must_use]
    pub fn is_held_by(&self, fence: u64) -> bool {
        self.lease.is_some_and(|lease| lease.is_held_by(fence))
    }

    #[must_use]
    pub fn released(mut self) -> Self {
        self.lease = None;
        self
    }

    /// Stores a new map. This also ends the lease if no file has changed since indexing began.
    #[must_use]
    pub fn mapped(mut self, map: StoredMap) -> Self {
        if map.revision == self.revision {
            self.lease = None;
        }
        self.failure = None;
        self.map = Some(map);
        self
    }

    /// Stores why `revision` could not be indexed.
    #[must_use]
    pub fn failed(mut self, revision: u64, reason: String) -> Self {
        self.lease = None;
        self.failure = Some(MapFailure { revision, reason });
        self
    }
}

/// An import of a whole theme.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Import {
    pub import_id: ImportId,
    pub state: ImportState,
    /// Size of the archive, in bytes.
    pub archive_bytes: u64,
    /// How many files were imported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// How many entries were left out because they are not theme files (hidden files, system folders).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<u64>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The state of an import of a theme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImportState {
    /// Waits for the upload, or for its turn.
    Waiting,
    Done,
    Failed,
    /// A newer import finished first.
    Superseded,
}

impl ImportState {
    #[must_use]
    pub fn is_final(self) -> bool {
        self != Self::Waiting
    }
}

/// A theme needs this file to show any page.
pub const LAYOUT: &str = "layout/theme.liquid";

/// The largest number of entries that an error names.
const NAMED: usize = 3;

/// Why an archive cannot be imported as a theme. The message follows "the archive".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTheme {
    #[error(
        "has no files of a theme: expected {LAYOUT} and files in folders such as sections/, snippets/, templates/ and assets/, \
         at the top or within one folder; found {found}"
    )]
    None { found: String },
    #[error("has more than one theme: {}; import one of them", folders.join(", "))]
    Many { folders: Vec<String> },
}

/// The theme's files among an archive's entries, each with its path in the theme.
///
/// The theme is at the top of the archive, or within a folder, as in downloads. A folder with a theme layout wins over one
/// without; among these, the folder nearest to the top wins. Files outside that folder are left out, and so are hidden files
/// and system files.
///
/// # Errors
/// If there is no theme, or if several folders are equally likely.
pub fn theme_paths<'a>(entries: &[&'a str]) -> Result<Vec<Option<&'a str>>, NoTheme> {
    let is_junk = |path: &str| {
        path.split('/').any(|part| part.starts_with('.') || matches!(part, "__MACOSX" | "Thumbs.db"))
    };
    let kept: Vec<&'a str> = entries.iter().copied().filter(|path| !is_junk(path)).collect();
    // Each folder that may contain the theme (with its slash), by rank. The lowest rank wins.
    let mut roots: BTreeMap<(bool, usize), BTreeSet<&str>> = BTreeMap::new();
    for path in &kept {
        for start in std::iter::once(0).chain(path.match_indices('/').map(|(at, _)| at + 1)) {
            let (root, rest) = path.split_at(start);
            if is_of_a_theme(rest) {
                roots.entry((rest != LAYOUT, root.matches('/').count())).or_default().insert(root);
            }
        }
    }
    let Some((_, found)) = roots.into_iter().next() else {
        return Err(NoTheme::None { found: named(&kept, entries.len()) });
    };
    let mut found = found.into_iter();
    match (found.next(), found.len()) {
        (Some(root), 0) => Ok(entries
            .iter()
            .map(|path| if is_junk(path) { None } else { path.strip_prefix(root) })
            .collect()),
        (first, _) => {
            let folders = first.into_iter().chain(found).take(NAMED).map(str::to_owned).collect();
            Err(NoTheme::Many { folders })
        }
    }
}

/// Whether only a theme has such a path. Other folders may also contain settings and translations with these names.
fn is_of_a_theme(path: &str) -> bool {
    !matches!(
        FileKind::of(path),
        FileKind::Other | FileKind::SettingsData | FileKind::Locale | FileKind::SchemaLocale
    )
}

/// Describes the first entries of an archive.
fn named(kept: &[&str], all: usize) -> String {
    if kept.is_empty() {
        return format!("{all} entries, but no visible file");
    }
    let first: Vec<&str> = kept.iter().take(NAMED).copied().collect();
    let more = all - first.len();
    if more == 0 { first.join(", ") } else { format!("{} and {more} more", first.join(", ")) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn map(revision: u64) -> StoredMap {
        StoredMap {
            revision,
            sha256: "00".into(),
            layout: blob::VERSION,
            files: 1,
            degraded: 0,
            indexed_at: Timestamp::UNIX_EPOCH,
            took_ms: 1,
        }
    }

    #[test]
    fn the_highest_numbers_do_not_overflow() {
        let state = ThemeState { revision: u64::MAX, fence: u64::MAX, ..ThemeState::default() };
        assert_eq!(state.clone().leased(None, Timestamp::UNIX_EPOCH).1, u64::MAX);
        assert_eq!(
            state.check().unwrap_err().to_string(),
            "revision: must be 0 to 1000000000000, is 18446744073709551615; \
             fence: must be 0 to 1000000000000, is 18446744073709551615"
        );
        let highest = ThemeState { revision: MAX_STORED, fence: MAX_STORED, ..ThemeState::default() };
        assert!(highest.check().is_ok());
    }

    #[test]
    fn a_theme_is_in_one_phase() {
        let now = Timestamp::from_second(1_000).unwrap();
        let check = |state: ThemeState, phase: MapPhase| assert_eq!(state.phase(now), phase, "{state:?}");
        let changed = ThemeState { revision: 2, files: 1, ..ThemeState::default() };
        check(ThemeState::default(), MapPhase::Empty);
        check(changed.clone(), MapPhase::Pending);
        check(changed.clone().mapped(map(1)), MapPhase::Pending);
        check(changed.clone().mapped(map(2)), MapPhase::Ready);
        check(changed.clone().mapped(StoredMap { layout: 0, ..map(2) }), MapPhase::Pending);
        check(changed.clone().leased(None, now).0, MapPhase::Indexing);
        check(changed.clone().leased(None, now - LEASE).0, MapPhase::Pending);
        check(changed.clone().failed(2, "too large".into()), MapPhase::Failed);
        check(changed.failed(1, "too large".into()), MapPhase::Pending);
    }

    #[test]
    fn a_lease_is_identified_by_its_fence_and_ends_with_a_current_map() {
        let now = Timestamp::UNIX_EPOCH;
        let changed = ThemeState { revision: 2, ..ThemeState::default() };
        let (state, first) = changed.leased(None, now);
        let (renewed, same) = state.clone().leased(Some(first), now + DEBOUNCE);
        assert_eq!((same, renewed.lease.unwrap().until), (first, now + DEBOUNCE + LEASE));
        let (taken, second) = state.leased(None, now);
        assert!(taken.is_held_by(second) && !taken.is_held_by(first));
        assert!(taken.clone().mapped(map(1)).is_held_by(second), "a file has changed since");
        assert!(!taken.clone().mapped(map(2)).is_held_by(second));
        assert!(!taken.released().is_held_by(second));
    }

    #[test]
    fn a_themes_files_are_found_in_any_archive() {
        let check = |entries: &[&str], expected: &[Option<&str>]| {
            assert_eq!(theme_paths(entries).unwrap(), expected);
        };
        check(&["assets/a.css", "README.md"], &[Some("assets/a.css"), Some("README.md")]);
        check(
            &[
                "dawn-main/.github/x",
                "dawn-main/assets/a.css",
                "__MACOSX/dawn-main/._a",
                "dawn-main/README.md",
            ],
            &[None, Some("assets/a.css"), None, Some("README.md")],
        );
        check(&["assets/a.css", "assets/b.css"], &[Some("assets/a.css"), Some("assets/b.css")]);
        // Beside the folder, and deeper down.
        check(&["notes.txt", "my/shop/sections/a.liquid"], &[None, Some("sections/a.liquid")]);
        // The layout distinguishes the theme from folders that only look like one.
        check(
            &["assets/site.css", "theme/layout/theme.liquid", "theme/assets/a.css"],
            &[None, Some("layout/theme.liquid"), Some("assets/a.css")],
        );
        check(
            &["snippets/a.liquid", "old/snippets/a.liquid"],
            &[Some("snippets/a.liquid"), Some("old/snippets/a.liquid")],
        );
    }

    #[test]
    fn an_archive_without_a_theme_says_what_it_has() {
        let check = |entries: &[&str], expected: &str| {
            let error = theme_paths(entries).unwrap_err().to_string();
            assert!(error.ends_with(expected), "{error}");
        };
        check(&[], "found 0 entries, but no visible file");
        check(&[".DS_Store", "__MACOSX/layout/theme.liquid"], "found 2 entries, but no visible file");
        check(&["photo.jpg", "docs/a.txt"], "found photo.jpg, docs/a.txt");
        check(&["1.jpg", "2.jpg", "3.jpg", "4.jpg", "5.jpg"], "found 1.jpg, 2.jpg, 3.jpg and 2 more");
        check(&["config/settings_data.json", "locales/en.json"], "locales/en.json");
        check(&["a/assets/a.css", "b/assets/a.css"], "has more than one theme: a/, b/; import one of them");
    }

    #[test]
    fn states_round_trip() {
        for state in [ImportState::Waiting, ImportState::Done, ImportState::Failed, ImportState::Superseded] {
            let text = serde_json::to_string(&state).unwrap();
            assert_eq!(serde_json::from_str::<ImportState>(&text).unwrap(), state);
        }
        let file = ThemeFile {
            path: "a".into(),
            sha256: "00ff10".to_owned() + &"ab".repeat(29),
            bytes: 1,
            version: 1,
            updated_at: Timestamp::UNIX_EPOCH,
        };
        assert_eq!(file.half_hash()[..4], [0x00, 0xff, 0x10, 0xab]);
    }
}
