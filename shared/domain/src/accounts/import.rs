//! The import of an account: what an export of another account has becomes part of an empty one.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::plans::Plan;

/// The largest archive, in bytes. S3 accepts no larger upload in one request.
pub const MAX_ARCHIVE: u64 = 5_000_000_000;

/// The most bytes that an archive may have inflated: all records and objects together.
#[must_use]
pub const fn most_inflated(plan: Plan) -> u64 {
    match plan {
        Plan::Starter => 1_000_000_000,
        Plan::Pro => 10_000_000_000,
        Plan::Team => 25_000_000_000,
        Plan::Agency | Plan::Unlimited => 50_000_000_000,
    }
}

/// How long an import waits for its archive.
pub const UPLOAD_WITHIN: SignedDuration = SignedDuration::from_hours(1);

/// How often an import is begun again without any progress in between.
pub const MAX_ATTEMPTS: u32 = 5;

/// The most notes of an import.
pub const MAX_NOTES: usize = 50;

/// What an archive is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = AccountImportFormat)]
pub enum ImportFormat {
    /// The export of an account.
    #[default]
    Account,
    /// The files of OpenClaw: its memory, sessions, cards and jobs. `GET /memory/export` writes them too.
    OpenClaw,
}

impl ImportFormat {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How far an import has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccountImportState {
    /// The archive has not been uploaded.
    Waiting,
    /// The archive is checked, and nothing is written until all of it is valid. Then its contents are written.
    Running,
    /// Everything is written.
    Done,
    /// `error` says why.
    Failed,
}

/// What of an archive has been written. An executor that takes an import over continues here. Of the files of OpenClaw, `lines` are whole
/// files, and `objects` are the messages of the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    pub objects: u64,
    pub lines: u64,
}

/// An import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AccountImport {
    /// What the archive is.
    #[serde(default, skip_serializing_if = "ImportFormat::is_default")]
    pub format: ImportFormat,
    /// How far the import has come.
    pub state: AccountImportState,
    /// When the import was requested.
    pub requested_at: Timestamp,
    /// When the import was done, or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// The size of the archive in bytes.
    pub bytes: u64,
    /// How many things were written, by kind, such as `agents` and `messages`. What the platform stores for itself is not counted.
    #[serde(default)]
    pub records: BTreeMap<String, u64>,
    /// How many objects were written.
    #[serde(default)]
    pub objects: u64,
    /// How many things were left out, by kind: what had not ended, what only mattered to the other deployment, what needs an
    /// object that the archive does not have, and what exists here already. Objects that no record names are `objects`.
    #[serde(default)]
    pub left_out: BTreeMap<String, u64>,
    /// What was left out and why: the first 50 sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Why the import failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default)]
    #[schema(ignore)]
    pub position: Position,
    #[serde(default)]
    #[schema(ignore)]
    pub attempts: u32,
}

impl AccountImport {
    #[must_use]
    pub fn new(bytes: u64, now: Timestamp) -> Self {
        Self {
            format: ImportFormat::default(),
            state: AccountImportState::Waiting,
            requested_at: now,
            finished_at: None,
            bytes,
            records: BTreeMap::new(),
            objects: 0,
            left_out: BTreeMap::new(),
            notes: Vec::new(),
            error: None,
            position: Position::default(),
            attempts: 0,
        }
    }

    /// Begins or continues the import. `false` if it was begun too often without progress; then it has failed.
    pub fn begin(&mut self, now: Timestamp) -> bool {
        if self.attempts >= MAX_ATTEMPTS {
            self.fail("the import was interrupted too often", now);
            return false;
        }
        self.state = AccountImportState::Running;
        self.attempts += 1;
        true
    }

    /// Notes progress.
    pub fn advance(&mut self, objects: u64, lines: u64) {
        self.position.objects = self.position.objects.saturating_add(objects);
        self.position.lines = self.position.lines.saturating_add(lines);
        self.attempts = 1;
    }

    /// Adds a note, unless there are enough.
    pub fn note(&mut self, note: String) {
        if self.notes.len() < MAX_NOTES {
            self.notes.push(note);
        }
    }

    pub fn finish(&mut self, now: Timestamp) {
        (self.state, self.finished_at) = (AccountImportState::Done, Some(now));
    }

    pub fn fail(&mut self, error: &str, now: Timestamp) {
        self.state = AccountImportState::Failed;
        (self.error, self.finished_at) = (Some(error.to_owned()), Some(now));
    }

    /// Whether nothing more happens.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self.state, AccountImportState::Done | AccountImportState::Failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_fails_if_it_is_interrupted_without_progress() {
        let mut import = AccountImport::new(7, Timestamp::UNIX_EPOCH);
        for round in 0..3 {
            for _ in 0..MAX_ATTEMPTS - 1 {
                assert!(import.begin(Timestamp::UNIX_EPOCH), "{round}");
            }
            import.advance(0, 3);
        }
        assert_eq!(import.position, Position { objects: 0, lines: 9 });
        for _ in 1..MAX_ATTEMPTS {
            assert!(import.begin(Timestamp::UNIX_EPOCH));
        }
        assert!(!import.begin(Timestamp::UNIX_EPOCH));
        assert!(import.has_ended() && import.error.is_some());
    }

    #[test]
    fn an_import_has_a_format_and_few_notes() {
        let mut import = AccountImport::new(7, Timestamp::UNIX_EPOCH);
        let stored = serde_json::to_value(&import).unwrap();
        assert!(stored.get("format").is_none() && stored.get("notes").is_none(), "{stored}");
        (0..MAX_NOTES + 9).for_each(|n| import.note(n.to_string()));
        import.format = ImportFormat::OpenClaw;
        let stored = serde_json::to_value(&import).unwrap();
        assert_eq!(
            (&stored["format"], stored["notes"].as_array().unwrap().len()),
            (&"openclaw".into(), MAX_NOTES)
        );
        assert_eq!(serde_json::from_value::<AccountImport>(stored).unwrap(), import);
    }
}
