//! One record for every background job: what the platform does without a person who waits for it.
//!
//! A job is about one thing (its subject) at one due time. Its id is derived from these, so a job that is repeated has one record.
//! The record says whether there was work, and what came of it. So a job that "succeeds" and does nothing is noticed.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::JobId;
use crate::text::quoting::{one_line, short_line};
use crate::validate::{FieldErrors, MAX_STORED};

/// How many days a record is kept after its job's due time: long enough for five weekly jobs.
pub const KEPT_DAYS: i64 = 35;

/// The longest subject, in bytes.
pub const MAX_SUBJECT: usize = 200;

/// The longest error that is kept, in bytes.
pub const MAX_ERROR: usize = 500;

/// A kind of background job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobKind {
    /// Sends what is due to the executors, once a minute.
    Sweep,
    /// The daily synchronisation of a person's memory.
    MemoryDaily,
    /// The weekly clean-up of a person's memory.
    MemoryWeekly,
    /// Builds the index for searches in memory.
    MemoryIndex,
    /// Builds the map of a theme.
    ThemeIndex,
    /// Describes the files of a theme.
    ThemeEnrichment,
    ThemeImport,
    LogsImport,
    /// Brings the living documents of a project up to date.
    DocsSync,
    AccountImport,
    AccountExport,
    AccountDeletion,
    /// Delivers a notice or a webhook.
    Delivery,
    /// One look of the watchdog.
    Watchdog,
    /// Compares the reports of a watched schedule with its due times.
    Watched,
}

impl JobKind {
    pub const ALL: [Self; 15] = [
        Self::Sweep,
        Self::MemoryDaily,
        Self::MemoryWeekly,
        Self::MemoryIndex,
        Self::ThemeIndex,
        Self::ThemeEnrichment,
        Self::ThemeImport,
        Self::LogsImport,
        Self::DocsSync,
        Self::AccountImport,
        Self::AccountExport,
        Self::AccountDeletion,
        Self::Delivery,
        Self::Watchdog,
        Self::Watched,
    ];

    /// Its name in JSON and in keys.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sweep => "sweep",
            Self::MemoryDaily => "memory_daily",
            Self::MemoryWeekly => "memory_weekly",
            Self::MemoryIndex => "memory_index",
            Self::ThemeIndex => "theme_index",
            Self::ThemeEnrichment => "theme_enrichment",
            Self::ThemeImport => "theme_import",
            Self::LogsImport => "logs_import",
            Self::DocsSync => "docs_sync",
            Self::AccountImport => "account_import",
            Self::AccountExport => "account_export",
            Self::AccountDeletion => "account_deletion",
            Self::Delivery => "delivery",
            Self::Watchdog => "watchdog",
            Self::Watched => "watched",
        }
    }

    /// Its name in sentences.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Sweep => "the sweep",
            Self::MemoryDaily => "the daily synchronisation of memory",
            Self::MemoryWeekly => "the weekly clean-up of memory",
            Self::MemoryIndex => "the index of memory",
            Self::ThemeIndex => "the map of the theme",
            Self::ThemeEnrichment => "the descriptions of the theme's files",
            Self::ThemeImport => "the import of the theme",
            Self::LogsImport => "the import of logs",
            Self::DocsSync => "the synchronisation of documents",
            Self::AccountImport => "the import of the account",
            Self::AccountExport => "the export of the account",
            Self::AccountDeletion => "the deletion of the account",
            Self::Delivery => "the delivery",
            Self::Watchdog => "the watchdog",
            Self::Watched => "the watched schedule",
        }
    }
}

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// It has begun. If its process died, the record keeps this state until the job is tried again.
    Running,
    Succeeded,
    Failed,
    /// Its input had not changed, or there was nothing to do.
    Skipped,
}

/// The record of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobRun {
    /// The job. A job that is tried again has the same id.
    pub job_id: JobId,
    pub kind: JobKind,
    /// What it worked on: an id. At most 200 bytes.
    #[schema(max_length = 200, example = "prj_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c")]
    pub subject: String,
    /// When it was due. For a job that somebody has asked for: when that was.
    pub due: Timestamp,
    /// When it began, or was last tried again.
    pub started_at: Timestamp,
    /// When it ended. Without it, it has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    pub state: JobState,
    /// How many items there were to work on.
    #[serde(default)]
    pub work_found: u64,
    /// How many things it has written.
    #[serde(default)]
    pub artefacts: u64,
    /// What its calls of models cost, in micro-dollars, in all tries.
    #[serde(default)]
    pub cost_micros: i64,
    /// Why it failed, on one line. At most 500 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 500, example = "object_missing: the archive is gone")]
    pub error: Option<String>,
}

/// What came of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// How many items there were to work on.
    pub work_found: u64,
    /// How many things it has written.
    pub artefacts: u64,
    /// What this try cost, in micro-dollars.
    pub cost_micros: i64,
    /// Why it failed.
    pub error: Option<String>,
    /// Its input had not changed, or there was nothing to do.
    pub skipped: bool,
}

impl JobRun {
    /// The record when a job begins. `before` is the record that is stored under its id.
    ///
    /// A repeated message about a job that has succeeded changes nothing: the second try would find nothing to do, and the record
    /// would look like a success without work. A job that is tried again keeps what it has cost.
    #[must_use]
    pub fn begin(before: Option<Self>, kind: JobKind, subject: &str, due: Timestamp, now: Timestamp) -> Self {
        let subject = short_line(subject, MAX_SUBJECT);
        match before {
            Some(before) if before.state == JobState::Succeeded => before,
            before => Self {
                job_id: JobId::of(kind.as_str(), &subject, due),
                kind,
                subject,
                due,
                started_at: now,
                ended_at: None,
                state: JobState::Running,
                work_found: 0,
                artefacts: 0,
                cost_micros: before.map_or(0, |before| before.cost_micros),
                error: None,
            },
        }
    }

    /// The record when a job has ended. The end of a job that has succeeded before changes nothing but the costs.
    #[must_use]
    pub fn end(self, outcome: Outcome, now: Timestamp) -> Self {
        let most = i64::try_from(MAX_STORED).unwrap_or(i64::MAX);
        let cost_micros = self.cost_micros.saturating_add(outcome.cost_micros.max(0)).min(most);
        if self.state == JobState::Succeeded {
            return Self { cost_micros, ..self };
        }
        let state = match (&outcome.error, outcome.skipped) {
            (Some(_), _) => JobState::Failed,
            (None, true) => JobState::Skipped,
            (None, false) => JobState::Succeeded,
        };
        Self {
            // A clock that was set back does not make an end before the beginning.
            ended_at: Some(now.max(self.started_at)),
            state,
            work_found: outcome.work_found.min(MAX_STORED),
            artefacts: outcome.artefacts.min(MAX_STORED),
            cost_micros,
            error: outcome.error.map(|error| short_line(&error, MAX_ERROR)),
            ..self
        }
    }

    /// The record when a try has stopped because its time was over, and another one goes on. It pays for what this try cost.
    #[must_use]
    pub fn cut_off(self, cost_micros: i64) -> Self {
        let most = i64::try_from(MAX_STORED).unwrap_or(i64::MAX);
        Self { cost_micros: self.cost_micros.saturating_add(cost_micros.max(0)).min(most), ..self }
    }

    /// It says that it succeeded and has written nothing, although there was work.
    #[must_use]
    pub fn is_empty_success(&self) -> bool {
        self.state == JobState::Succeeded && self.work_found > 0 && self.artefacts == 0
    }

    /// From when on the record may be deleted.
    #[must_use]
    pub fn kept_until(&self) -> Timestamp {
        let kept = SignedDuration::from_hours(24 * KEPT_DAYS);
        // A job that began long after its due time is kept as long as others.
        self.due.max(self.started_at).saturating_add(kept).unwrap_or(Timestamp::MAX)
    }

    /// Checks a record that comes from outside, such as from an archive.
    ///
    /// # Errors
    /// Every invalid field, with its limit.
    pub fn validate(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        for (field, text, most) in
            [("subject", Some(&self.subject), MAX_SUBJECT), ("error", self.error.as_ref(), MAX_ERROR)]
        {
            let Some(text) = text else { continue };
            if text.len() > most {
                errors.add(field, format!("must be at most {most} bytes, is {}", text.len()));
            }
            if *one_line(text) != **text {
                errors.add(field, "must be one line without control characters");
            }
        }
        if self.job_id != JobId::of(self.kind.as_str(), &self.subject, self.due) {
            errors.add("job_id", "must be the id of the job with this kind, subject and due time");
        }
        errors.time("due", self.due);
        errors.time("started_at", self.started_at);
        if let Some(ended_at) = self.ended_at {
            errors.time("ended_at", ended_at);
            if ended_at < self.started_at {
                errors.add("ended_at", "must not be before `started_at`");
            }
        }
        if self.ended_at.is_none() != (self.state == JobState::Running) {
            errors.add("ended_at", "must be given exactly if `state` is not `running`");
        }
        if self.error.is_some() != (self.state == JobState::Failed) {
            errors.add("error", "must be given exactly if `state` is `failed`");
        }
        errors.most("work_found", self.work_found, MAX_STORED);
        errors.most("artefacts", self.artefacts, MAX_STORED);
        match u64::try_from(self.cost_micros) {
            Ok(micros) => errors.most("cost_micros", micros, MAX_STORED),
            Err(_) => {
                errors.add("cost_micros", format!("must be 0 to {MAX_STORED}, is {}", self.cost_micros));
            }
        }
        errors.into_result(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_795_251_600 + seconds).unwrap()
    }

    fn begun(before: Option<JobRun>, now: i64) -> JobRun {
        JobRun::begin(before, JobKind::ThemeIndex, "prj_1", at(0), at(now))
    }

    fn failed(error: &str) -> Outcome {
        Outcome { work_found: 3, cost_micros: 7, error: Some(error.to_owned()), ..Outcome::default() }
    }

    #[test]
    fn names_are_their_json() {
        let mut words = BTreeSet::new();
        for kind in JobKind::ALL {
            let json = serde_json::to_value(kind).unwrap();
            assert_eq!(json, kind.as_str());
            assert_eq!(serde_json::from_value::<JobKind>(json).unwrap(), kind);
            words.insert(kind.words());
        }
        assert_eq!(words.len(), 15);
    }

    #[test]
    fn a_repeated_job_has_one_record_and_pays_for_all_tries() {
        let first = begun(None, 5);
        assert_eq!((first.state, first.cost_micros, first.ended_at), (JobState::Running, 0, None));
        let first = first.end(failed("timeout: no\nanswer"), at(9));
        assert_eq!(first.error.as_deref(), Some("timeout: no answer"));
        assert_eq!((first.state, first.ended_at), (JobState::Failed, Some(at(9))));
        let second = begun(Some(first.clone()), 20);
        assert_eq!((second.job_id, second.started_at, second.cost_micros), (first.job_id, at(20), 7));
        assert_eq!(second.error, None);
        let done =
            second.end(Outcome { work_found: 3, artefacts: 2, cost_micros: 5, ..Outcome::default() }, at(30));
        assert_eq!((done.state, done.artefacts, done.cost_micros), (JobState::Succeeded, 2, 12));
        // The message comes once more. Nothing is left to do, and the record still says what was done.
        let again = begun(Some(done.clone()), 60);
        assert_eq!(again, done);
        assert_eq!(again.end(Outcome::default(), at(61)), done);
        for record in [&first, &done] {
            assert_eq!(record.validate(), Ok(()));
            let json = serde_json::to_string(record).unwrap();
            assert_eq!(&serde_json::from_str::<JobRun>(&json).unwrap(), record);
        }
    }

    #[test]
    fn a_try_that_was_cut_off_is_paid_for_and_goes_on_in_its_record() {
        let cut_off = begun(None, 5).cut_off(4);
        assert_eq!((cut_off.state, cut_off.cost_micros, cut_off.ended_at), (JobState::Running, 4, None));
        let again = begun(Some(cut_off), 60);
        assert_eq!((again.started_at, again.cost_micros), (at(60), 4));
        assert_eq!(
            again.end(Outcome { skipped: true, ..Outcome::default() }, at(61)).state,
            JobState::Skipped
        );
    }

    #[test]
    fn only_a_success_without_an_artefact_although_there_was_work_is_empty() {
        for (work_found, artefacts, skipped, error, expected) in [
            (3, 0, false, None, true),
            (1, 0, false, None, true),
            (3, 1, false, None, false),
            (0, 0, false, None, false),
            (3, 0, true, None, false),
            (3, 0, false, Some("x".to_owned()), false),
        ] {
            let outcome = Outcome { work_found, artefacts, skipped, error, cost_micros: 0 };
            let job = begun(None, 0).end(outcome.clone(), at(1));
            assert_eq!(job.is_empty_success(), expected, "{outcome:?}");
        }
        assert!(!begun(None, 0).is_empty_success());
    }

    #[test]
    fn refusals_name_the_field_and_its_limit() {
        let good = begun(None, 1).end(failed("x"), at(2));
        let said = |change: fn(&mut JobRun)| {
            let mut job = good.clone();
            change(&mut job);
            job.validate().map_or_else(|errors| errors.to_string(), |()| String::new())
        };
        assert_eq!(said(|_| {}), "");
        for (change, expected) in [
            (
                (|job| job.error = Some("é".repeat(251))) as fn(&mut JobRun),
                "error: must be at most 500 bytes, is 502",
            ),
            (|job| job.error = Some("a\nb".to_owned()), "error: must be one line without control characters"),
            (|job| job.error = None, "error: must be given exactly if `state` is `failed`"),
            (|job| job.ended_at = Some(at(0)), "ended_at: must not be before `started_at`"),
            (|job| job.ended_at = None, "ended_at: must be given exactly if `state` is not `running`"),
            (
                |job| job.subject = "prj_2".to_owned(),
                "job_id: must be the id of the job with this kind, subject and due time",
            ),
            (|job| job.artefacts = MAX_STORED + 1, "artefacts: must be 0 to 1000000000000, is 1000000000001"),
            (|job| job.cost_micros = -1, "cost_micros: must be 0 to 1000000000000, is -1"),
        ] {
            assert_eq!(said(change), expected);
        }
    }

    #[test]
    fn each_part_of_the_key_counts_for_the_id() {
        let ids: BTreeSet<JobId> =
            [("sweep", "", 0), ("sweep", "", 1), ("swee", "p", 0), ("sweep", "a", 0), ("watchdog", "", 0)]
                .map(|(kind, subject, seconds)| JobId::of(kind, subject, at(seconds)))
                .into();
        assert_eq!(ids.len(), 5);
        assert!(JobId::of("z", "z", at(1)) < JobId::of("a", "a", at(2)), "ids sort by their due times");
    }

    #[test]
    fn records_are_kept_for_five_weeks() {
        let late = begun(None, 40 * 86_400);
        assert_eq!(late.kept_until(), at(75 * 86_400));
        assert_eq!(begun(None, -5).kept_until(), at(35 * 86_400));
    }

    proptest! {
        /// Whatever a job says at its end, its record is valid and has one line of a bounded length.
        #[test]
        fn every_record_is_valid(
            subject in "[a-z_0-9é]{0,220}", error in proptest::option::of("\\PC{0,600}|(\r|\n|\u{85}|x){0,600}"),
            work_found: u64, artefacts: u64, cost_micros: i64, skipped: bool, ends in -100..100_i64,
        ) {
            let job = JobRun::begin(None, JobKind::Delivery, &subject, at(0), at(3));
            let job = job.end(Outcome { work_found, artefacts, cost_micros, error, skipped }, at(ends));
            prop_assert_eq!(job.validate(), Ok(()));
            let again = JobRun::begin(Some(job.clone()), JobKind::Delivery, &subject, at(0), at(200));
            prop_assert_eq!(again.job_id, job.job_id);
            prop_assert!(again.cost_micros >= job.cost_micros);
        }
    }
}
