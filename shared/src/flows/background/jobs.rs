//! The records of background jobs: each job has one, which is written before its work begins and after it has ended.
//!
//! The work decides itself whether there is a job, so a look that finds nothing due leaves no record. A record that can't be written
//! keeps no work from being done. A process that is killed leaves the record as `running`, and the next try goes on in it.
//!
//! Runs of actions are no jobs: they have their occurrences. Neither is the deletion of an account: it leaves no record in the account, and
//! its receipt is the record.

use domain::background::jobs::{JobKind, JobRun, JobState, Outcome};
use domain::ids::Owner;
use futures::FutureExt;
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::context::Data;
use crate::error::{Error, Result};
use crate::flows::page::{self, Page, PageQuery};
use crate::process::metrics::{self, Work};
use crate::store::keys::sortable;
use crate::store::{Tries, Versioned};

/// How many of the newest records are searched for a try that was cut off.
const NEWEST: usize = 20;

/// When a job was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    At(Timestamp),
    /// Something has changed, and the work knows no due time. It is now, or that of the try that was cut off.
    Changed,
}

/// A job that has begun.
#[must_use = "the record says `running` until it is told how the job has ended"]
pub struct Begun<'a> {
    data: &'a Data,
    owner: &'a Owner,
    job: JobRun,
    /// The version of the stored record. 0 if it could not be written.
    version: u64,
    /// Whether an earlier try has failed.
    has_failed: bool,
}

/// Notes that a job begins.
pub async fn begin<'a>(
    data: &'a Data,
    owner: &'a Owner,
    kind: JobKind,
    subject: &str,
    due: Due,
) -> Begun<'a> {
    let now = data.clock.now();
    match try_begin(data, owner, kind, subject, due).await {
        Ok((Versioned { value: job, version }, has_failed)) => {
            Begun { data, owner, job, version, has_failed }
        }
        Err(error) => {
            warn(&error);
            let due = if let Due::At(due) = due { due } else { now };
            Begun {
                data,
                owner,
                job: JobRun::begin(None, kind, subject, due, now),
                version: 0,
                has_failed: false,
            }
        }
    }
}

/// The stored record, and whether an earlier try has failed.
async fn try_begin(
    data: &Data,
    owner: &Owner,
    kind: JobKind,
    subject: &str,
    due: Due,
) -> Result<(Versioned<JobRun>, bool)> {
    let now = data.clock.now();
    let due = match due {
        Due::At(due) => due,
        Due::Changed => {
            let newest = data.store.job_runs(owner, None, NEWEST).await?.items;
            let mut jobs = newest.into_iter().map(|(_, found)| found.value);
            let cut_off =
                jobs.find(|job| (job.kind, job.state) == (kind, JobState::Running) && job.subject == subject);
            cut_off.map_or(now, |job| job.due)
        }
    };
    let job = JobRun::begin(None, kind, subject, due, now);
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let found = data.store.job_run(owner, due, job.job_id).await?;
        let version = found.as_ref().map_or(0, |found| found.version);
        let before = found.map(|found| found.value);
        let has_failed = before.as_ref().is_some_and(|before| before.state == JobState::Failed);
        let value = JobRun::begin(before.clone(), kind, subject, due, now);
        if before.as_ref() == Some(&value) {
            return Ok((Versioned { value, version }, has_failed));
        }
        if data.store.save_job_run(owner, &value, version).await?.done() {
            return Ok((Versioned { value, version: version + 1 }, has_failed));
        }
    }
}

impl Begun<'_> {
    /// Notes how the job has ended. A failure counts once for its record: some jobs are tried again later.
    pub async fn end(self, outcome: Outcome) {
        let (now, has_failed) = (self.data.clock.now(), self.has_failed);
        let state = self.save(|job| job.end(outcome.clone(), now)).await;
        if state == Some(JobState::Failed) && !has_failed {
            metrics::failed(Work::Job, now);
        }
    }

    /// Notes that the work has failed with this error. It is tried again at once, in the same record, so this is no failure for good: what
    /// fails each time becomes a dead letter.
    pub async fn fail(self, outcome: Outcome, error: &Error) {
        let now = self.data.clock.now();
        // The causes are for the log. People are told what they may know.
        let error = Some(format!("{}: {}", error.code(), error.detail()));
        let outcome = Outcome { error, ..outcome };
        self.save(|job| job.end(outcome.clone(), now)).await;
    }

    /// Notes what a try has cost that was cut off. Another one goes on in the record.
    pub async fn cut_off(self, outcome: &Outcome) {
        if outcome.cost_micros > 0 {
            self.save(|job| job.cut_off(outcome.cost_micros)).await;
        }
    }

    /// Returns the state that was written, if anything was.
    async fn save(self, change: impl Fn(JobRun) -> JobRun) -> Option<JobState> {
        self.try_save(change).await.inspect_err(warn).ok().flatten()
    }

    async fn try_save(mut self, change: impl Fn(JobRun) -> JobRun) -> Result<Option<JobState>> {
        let was_written = self.version > 0;
        let mut tries = Tries::default();
        loop {
            tries.next().await?;
            let next = change(self.job.clone());
            if was_written && next == self.job {
                return Ok(None);
            }
            if self.data.store.save_job_run(self.owner, &next, self.version).await?.done() {
                return Ok(Some(next.state));
            }
            // Another try has begun or ended meanwhile.
            match self.data.store.job_run(self.owner, self.job.due, self.job.job_id).await? {
                Some(found) => (self.job, self.version) = (found.value, found.version),
                // The account was deleted. Nothing may come back into it.
                None if was_written => return Ok(None),
                None => self.version = 0,
            }
        }
    }
}

/// Which jobs.
#[derive(Clone, Copy, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AskedJobs {
    /// Only jobs of this kind.
    pub kind: Option<JobKind>,
    /// Only jobs in this state.
    pub state: Option<JobState>,
}

/// The records of an owner's jobs, newest due time first.
///
/// # Errors
/// 400 if `limit` or `cursor` is invalid.
pub async fn list(data: &Data, owner: &Owner, asked: AskedJobs, query: &PageQuery) -> Result<Page<JobRun>> {
    let read = |after: Option<String>, limit| {
        async move { data.store.job_runs(owner, after.as_deref(), limit).await }.boxed()
    };
    let is_asked_for = |job: &JobRun| {
        asked.kind.is_none_or(|kind| kind == job.kind) && asked.state.is_none_or(|state| state == job.state)
    };
    let found = page::filtered(owner, "jobs", query, read, is_asked_for).await?;
    Ok(found.map(|record| record.value))
}

/// The records of jobs that were due from `from` on and before `to`: the newest ones, at most `most`, oldest first. Also whether these are
/// all.
///
/// # Errors
/// If the table does not answer.
pub async fn between(
    data: &Data,
    owner: &Owner,
    (from, to): (Timestamp, Timestamp),
    most: usize,
) -> Result<(Vec<JobRun>, bool)> {
    let end = sortable(to);
    let found = data.store.job_runs(owner, Some(&end), most + 1).await?;
    let mut jobs: Vec<JobRun> = found.items.into_iter().map(|(_, found)| found.value).collect();
    jobs.retain(|job| job.due >= from);
    let complete = jobs.len() <= most;
    jobs.truncate(most);
    jobs.reverse();
    Ok((jobs, complete))
}

fn warn(error: &Error) {
    tracing::warn!(cause = %error.causes(), "the record of a job could not be written; its work is not affected");
}
