//! The stored record of an import of log files.
//!
//! An interrupted import can continue. The names of its segments are computed from the import. So if a log already
//! exists, its segments show whether this import has made it.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::{ImportId, ProjectId};

/// The largest accepted archive, in bytes.
pub const MAX_ARCHIVE_BYTES: u64 = 128 * 1024 * 1024;

/// The most bytes of the archive's files together, inflated.
pub const MAX_INFLATED_BYTES: u64 = 512 * 1024 * 1024;

/// After this time without progress an import counts as abandoned. It is longer than the retries of its upload.
pub const GIVEN_UP: SignedDuration = SignedDuration::from_hours(3);

/// After this time without progress of the request that contained the archive, another process takes the import over.
pub const HELD: SignedDuration = SignedDuration::from_secs(30);

/// An import of log files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogImport {
    pub import_id: ImportId,
    /// The project of new sessions.
    pub project_id: ProjectId,
    pub state: LogImportState,
    /// The size of the archive, in bytes.
    pub archive_bytes: u64,
    pub report: ImportReport,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// The request that contained the archive works on the import until this time, and extends it while it works. After
    /// that, any process that is notified of the archive takes over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_until: Option<Timestamp>,
}

/// The state of an import of logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogImportState {
    /// Waits for the upload, or for its turn.
    Waiting,
    /// Its logs are being made. The counts show the progress.
    Running,
    Done,
    /// The logs that were made before the failure exist.
    Failed,
}

impl LogImportState {
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::Failed)
    }
}

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImportReport {
    /// How many logs were made.
    pub logs: u64,
    /// How many lines they have.
    pub entries: u64,
    /// How many lines were skipped because they are not entries.
    pub corrupt_lines: u64,
    /// How many logs already existed and were not changed.
    pub skipped_logs: u64,
    /// Their paths, up to 100.
    pub skipped: Vec<String>,
    /// How many files do not belong to the layout, or repeat the content of other files.
    pub ignored_files: u64,
}

impl LogImport {
    /// Whether the import has not ended, but nobody works on it any more.
    #[must_use]
    pub fn is_given_up(&self, now: Timestamp) -> bool {
        !self.state.is_final() && self.updated_at + GIVEN_UP < now
    }

    /// Whether the request that has brought the archive is still working on it.
    #[must_use]
    pub fn is_held(&self, now: Timestamp) -> bool {
        !self.state.is_final() && self.held_until.is_some_and(|until| until > now)
    }

    /// The import after its end. `failed` is the reason if it failed.
    #[must_use]
    pub fn ended(self, failed: Option<String>) -> Self {
        let state = if failed.is_some() { LogImportState::Failed } else { LogImportState::Done };
        Self { state, reason: failed, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_read_back_and_two_are_ends() {
        for (state, text, is_final) in [
            (LogImportState::Waiting, "\"waiting\"", false),
            (LogImportState::Running, "\"running\"", false),
            (LogImportState::Done, "\"done\"", true),
            (LogImportState::Failed, "\"failed\"", true),
        ] {
            assert_eq!(serde_json::to_string(&state).unwrap(), text);
            assert_eq!(serde_json::from_str::<LogImportState>(text).unwrap(), state);
            assert_eq!(state.is_final(), is_final);
        }
    }

    #[test]
    fn an_import_without_progress_is_abandoned() {
        let at = Timestamp::from_second(1_000_000).unwrap();
        let running = LogImport {
            import_id: ImportId::NONE,
            project_id: ProjectId::DEFAULT,
            state: LogImportState::Running,
            archive_bytes: 1,
            report: ImportReport::default(),
            reason: None,
            created_at: at,
            updated_at: at,
            held_until: Some(at + HELD),
        };
        assert!(running.is_held(at) && !running.is_held(at + HELD));
        assert!(!running.clone().ended(None).is_held(at));
        let late = at + GIVEN_UP + SignedDuration::from_secs(1);
        assert!(running.is_given_up(late) && !running.is_given_up(at + GIVEN_UP));
        assert!(!running.clone().ended(None).is_given_up(late));
        let failed = running.ended(Some("the archive is gone".to_owned()));
        assert_eq!(
            (failed.state, failed.reason.as_deref()),
            (LogImportState::Failed, Some("the archive is gone"))
        );
    }
}
