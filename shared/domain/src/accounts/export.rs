//! The export of an account: everything that an owner has, as one archive.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::ExportId;

/// How long an export is kept.
pub const EXPORT_KEPT: SignedDuration = SignedDuration::from_hours(24 * 30);

/// How long the address of an archive is valid.
pub const ADDRESS_VALID: SignedDuration = SignedDuration::from_mins(15);

/// How often an export begins if its executors are killed.
pub const MAX_ATTEMPTS: u32 = 5;

/// How far an export has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExportState {
    /// The archive is being written.
    Running,
    /// The archive can be downloaded.
    Done,
    /// There is no archive; `error` says why.
    Failed,
}

/// An export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Export {
    pub export_id: ExportId,
    /// How far the export has come.
    pub state: ExportState,
    /// When the export was requested.
    pub requested_at: Timestamp,
    /// When the export was done, or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// How many records the archive has, by kind.
    #[serde(default)]
    pub records: BTreeMap<String, u64>,
    /// How many objects the archive has.
    #[serde(default)]
    pub objects: u64,
    /// The size of the archive in bytes.
    #[serde(default)]
    pub bytes: u64,
    /// How often the export began.
    pub attempts: u32,
    /// Why the export failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Export {
    #[must_use]
    pub fn new(export_id: ExportId, now: Timestamp) -> Self {
        Self {
            export_id,
            state: ExportState::Running,
            requested_at: now,
            finished_at: None,
            records: BTreeMap::new(),
            objects: 0,
            bytes: 0,
            attempts: 0,
            error: None,
        }
    }

    /// Begins the export, from the start. `false` if it began too often; then it has failed.
    pub fn begin(&mut self, now: Timestamp) -> bool {
        (self.records, self.objects, self.bytes) = (BTreeMap::new(), 0, 0);
        if self.attempts >= MAX_ATTEMPTS {
            self.fail("the export was interrupted too often", now);
            return false;
        }
        self.attempts += 1;
        true
    }

    pub fn finish(&mut self, bytes: u64, now: Timestamp) {
        (self.state, self.bytes, self.finished_at) = (ExportState::Done, bytes, Some(now));
    }

    pub fn fail(&mut self, error: &str, now: Timestamp) {
        (self.state, self.error, self.finished_at) = (ExportState::Failed, Some(error.to_owned()), Some(now));
    }

    /// Whether nothing more happens.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.state != ExportState::Running
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn an_export_that_is_killed_again_and_again_fails() {
        let mut export = Export::new(ExportId::from_uuid(Uuid::from_u128(7)), Timestamp::UNIX_EPOCH);
        for attempt in 1..=MAX_ATTEMPTS {
            export.objects = 3;
            assert!(export.begin(Timestamp::UNIX_EPOCH));
            assert_eq!((export.attempts, export.objects), (attempt, 0));
        }
        assert!(!export.begin(Timestamp::UNIX_EPOCH));
        assert!(export.has_ended() && export.error.is_some());
    }
}
