//! The stored state of a project's theme: its files, the state of its map, and imports.
//!
//! The files are the source of truth, and the map is computed from them. Each change of a file increments the theme's
//! `revision`, and the map records the revision that it was computed from. So it is always possible to tell whether the
//! map is current, whichever process died.
//!
//! An import writes all files into a new *generation* and then switches the theme to it in one step. Nobody sees a mix
//! of two themes.

use std::fmt::Display;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::background::lease::Lease;
use crate::ids::ImportId;
use crate::validate::{FieldErrors, MAX_STORED};

/// The largest file of a theme, in bytes.
pub const MAX_FILE_BYTES: usize = 16 * 1024 * 1024;
/// The largest archive to import, in bytes.
pub const MAX_ARCHIVE_BYTES: u64 = 128 * 1024 * 1024;
/// The layout version of current maps. A map with another version is computed again. The crate `shared` does not compile if this
/// is not the version that the index writes.
pub const MAP_LAYOUT: u16 = 4;
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
    /// Checks the limits of every file, wherever it comes from. Which paths a theme may have is not known here: `path` says
    /// whether this file's path is allowed.
    ///
    /// # Errors
    /// Every invalid field with its limit.
    pub fn check<E: Display>(&self, path: Result<(), E>) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        if let Err(error) = path {
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
    /// Checks the limits of every theme, wherever its files come from. A theme has at most `max_files` files, with `max_bytes`
    /// bytes in total.
    ///
    /// # Errors
    /// Every invalid field with its limit.
    pub fn check(&self, max_files: u64, max_bytes: u64) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        errors.most("files", self.files, max_files);
        errors.most("bytes", self.bytes, max_bytes);
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
        self.map.as_ref().is_some_and(|map| map.revision == self.revision && map.layout == MAP_LAYOUT)
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn map(revision: u64) -> StoredMap {
        StoredMap {
            revision,
            sha256: "00".into(),
            layout: MAP_LAYOUT,
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
            state.check(0, 0).unwrap_err().to_string(),
            "revision: must be 0 to 1000000000000, is 18446744073709551615; \
             fence: must be 0 to 1000000000000, is 18446744073709551615"
        );
        let highest = ThemeState { revision: MAX_STORED, fence: MAX_STORED, ..ThemeState::default() };
        assert!(highest.check(0, 0).is_ok());
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
