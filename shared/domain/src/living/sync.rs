//! A synchronisation: a model brings the documents of a project up to date with the commits that wait.
//!
//! There is one at a time for each project. All that it changes is one transaction: the new texts, and the commits that are cleared. So a
//! synchronisation that is killed has changed nothing, and the next try goes on where it was.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::DocName;
use super::checks::Problem;
use crate::ids::{ProjectId, SyncId};
use crate::text::quoting::short_line;

/// How often a synchronisation is begun before it has failed.
pub const MAX_TRIES: u32 = 5;

/// How many problems a record keeps.
const MAX_PROBLEMS: usize = 40;

/// The longest error that is kept, in bytes.
const MAX_ERROR: usize = 500;

/// How far a synchronisation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = DocsSyncState)]
pub enum SyncState {
    /// An executor will begin it, or begin it again.
    Waiting,
    /// An executor works on it.
    Running,
    /// The documents are up to date with the commits that it has taken.
    Succeeded,
    /// The documents and the commits are as they were.
    Failed,
}

/// A synchronisation of a project's documents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = DocsSync)]
pub struct Sync {
    /// The synchronisation.
    pub sync_id: SyncId,
    pub project_id: ProjectId,
    pub state: SyncState,
    /// When somebody has asked for it.
    pub requested_at: Timestamp,
    /// Absent until it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// How many commits it has taken.
    #[serde(default)]
    pub commits: u64,
    /// The documents that it has changed.
    #[serde(default)]
    #[schema(value_type = Vec<String>, example = json!(["ARCHITECTURE.md"]))]
    pub changed: Vec<DocName>,
    /// Parts of long documents that it should have changed, too. It changes at most 16.
    #[serde(default)]
    pub left_out: u64,
    /// What its calls of models have cost, in micro-dollars, in all tries.
    #[serde(default)]
    pub cost_micros: i64,
    /// What was wrong with the texts of the model, if it has failed for that reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
    /// Why it has failed, or why it waits after a try that has failed. At most 500 bytes on one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 500)]
    pub error: Option<String>,
    /// How often it was begun.
    #[serde(default)]
    pub tries: u32,
    /// Until when its executor has it. Another one may go on after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub lease_until: Option<Timestamp>,
    /// The one before has failed, and people were told.
    #[serde(default, skip_serializing_if = "is_false")]
    #[schema(ignore)]
    pub after_failure: bool,
    /// The object with what the tries so far have brought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub draft: Option<Uuid>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

impl Sync {
    /// As people see it: without what only executors need.
    #[must_use]
    pub fn shown(self) -> Self {
        Self { lease_until: None, after_failure: false, draft: None, ..self }
    }

    #[must_use]
    pub const fn asked(sync_id: SyncId, project_id: ProjectId, after_failure: bool, now: Timestamp) -> Self {
        Self {
            sync_id,
            project_id,
            state: SyncState::Waiting,
            requested_at: now,
            ended_at: None,
            commits: 0,
            changed: Vec::new(),
            left_out: 0,
            cost_micros: 0,
            problems: Vec::new(),
            error: None,
            tries: 0,
            lease_until: None,
            after_failure,
            draft: None,
        }
    }

    #[must_use]
    pub const fn has_ended(&self) -> bool {
        matches!(self.state, SyncState::Succeeded | SyncState::Failed)
    }

    /// Whether an executor works on it.
    #[must_use]
    pub fn is_held(&self, now: Timestamp) -> bool {
        self.state == SyncState::Running && self.lease_until.is_some_and(|until| until > now)
    }

    /// Begins it, or begins it again. False if it has ended, or has just failed because it was begun too often.
    pub fn begin(&mut self, now: Timestamp) -> bool {
        if self.has_ended() {
            return false;
        }
        if self.tries >= MAX_TRIES {
            let told = self.error.take();
            let why = told.unwrap_or_else(|| "the process that did it has ended each time".to_owned());
            self.fail(format!("failed {MAX_TRIES} times: {why}"), now);
            return false;
        }
        self.tries += 1;
        self.state = SyncState::Running;
        true
    }

    /// It has brought something, so the tries before it do not count.
    pub const fn goes_on(&mut self, draft: Uuid) {
        (self.draft, self.tries) = (Some(draft), 1);
    }

    /// It waits, because it has just failed and may succeed later.
    pub fn put_off(&mut self, why: &str) {
        self.state = SyncState::Waiting;
        self.error = Some(short_line(why, MAX_ERROR));
    }

    /// Ends it without a change.
    pub fn fail(&mut self, why: impl AsRef<str>, now: Timestamp) {
        (self.state, self.ended_at, self.draft) = (SyncState::Failed, Some(now.max(self.requested_at)), None);
        self.error = Some(short_line(why.as_ref(), MAX_ERROR));
        self.changed.clear();
    }

    /// Ends it because the texts of the model have problems.
    pub fn refuse(&mut self, mut problems: Vec<Problem>, now: Timestamp) {
        let count = problems.len();
        self.fail(format!("the new texts have {count} problem{}", if count == 1 { "" } else { "s" }), now);
        problems.truncate(MAX_PROBLEMS);
        self.problems = problems;
    }

    /// Ends it well.
    pub fn succeed(&mut self, changed: Vec<DocName>, now: Timestamp) {
        (self.state, self.ended_at, self.draft) =
            (SyncState::Succeeded, Some(now.max(self.requested_at)), None);
        (self.changed, self.error) = (changed, None);
        self.problems.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Sync {
        Sync::asked(SyncId::from_uuid(Uuid::nil()), ProjectId::DEFAULT, false, at(0))
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_795_251_600 + seconds).unwrap()
    }

    #[test]
    fn it_is_begun_five_times_at_most() {
        let mut sync = asked();
        for n in 1..=MAX_TRIES {
            assert!(sync.begin(at(1)));
            assert_eq!((sync.tries, sync.state), (n, SyncState::Running));
            sync.lease_until = Some(at(5));
            assert!(sync.is_held(at(4)) && !sync.is_held(at(5)));
        }
        assert!(!sync.begin(at(2)));
        assert_eq!((sync.state, sync.ended_at), (SyncState::Failed, Some(at(2))));
        assert_eq!(
            sync.error.as_deref(),
            Some("failed 5 times: the process that did it has ended each time")
        );
        assert!(!sync.begin(at(3)));
    }

    #[test]
    fn what_has_ended_stays_as_it_is() {
        let mut sync = asked();
        assert!(sync.begin(at(1)));
        sync.succeed(vec!["A.md".parse().unwrap()], at(2));
        assert!(sync.has_ended() && !sync.begin(at(3)));
        assert_eq!((sync.state, sync.ended_at, sync.changed.len()), (SyncState::Succeeded, Some(at(2)), 1));
        let mut sync = asked();
        sync.fail("no\nanswer", at(-5));
        assert_eq!((sync.error.as_deref(), sync.ended_at), (Some("no answer"), Some(at(0))));
    }
}
