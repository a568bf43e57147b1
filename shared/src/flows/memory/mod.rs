//! Memory: what is learned of conversations, kept, found again and forgotten.
//!
//! - `sources`: the messages of a conversation, wherever it took place
//! - `cards`: cards about work
//! - `sync`: once a day, what the conversations of the day have taught
//! - `tidy`: once a week, what of that stays
//! - `facts`: a person corrects, confirms and deletes facts, and writes the long-term memory
//! - `health`: facts that are there twice, have lost their conversations, or are never used
//! - `index`, `search`, `vectors`: the search
//! - `recall`: what a model is told
//! - `told`, `forgotten`, `traces`: what the writer of a reply was told, and what is not told any more
//! - `outside`: messages of sessions that took place elsewhere
//! - `shown`: days, weeks, and the archive, as JSON and as Markdown
//! - `take`: everything as files
//!
//! `go_on` is what an executor does if the memory of an owner is due.

pub mod cards;
pub mod facts;
pub mod forgotten;
pub mod health;
mod index;
pub mod known;
mod learn;
pub mod outside;
pub mod recall;
pub mod search;
pub mod shown;
mod sources;
pub mod sync;
pub mod take;
pub mod tidy;
pub(crate) mod told;
mod traces;
mod vectors;

use domain::background::dispatch::LEASE;
use domain::background::jobs::{JobKind, Outcome};
use domain::ids::Owner;
use domain::memory::when::{self, Job, Kept};
use jiff::{SignedDuration, Timestamp};

use super::ask;
use super::background::jobs::{self, Due};
use super::background::lease::{ClaimedJob, Interrupted};
use super::schedules;
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::stopped;
use crate::store::Versioned;
use crate::store::memory::{MemoryDue, MemoryKept};

/// How long to wait before what has failed is tried again. It doubles with each failure in a row.
const AGAIN: SignedDuration = SignedDuration::from_mins(15);

/// The longest such time.
const LONGEST_AGAIN: SignedDuration = SignedDuration::from_hours(6);

/// What one synchronisation or clean-up may spend, in micro-dollars.
const MAX_MICROS: i64 = 250_000;

/// Does what is due for the memory of an owner, and says when to look again.
///
/// # Errors
/// If the table or the bucket does not answer. Then it stays due.
pub(crate) async fn go_on(cx: &Cx, owner: &Owner, deadline: Timestamp) -> Result<()> {
    let Some(due) = cx.store.memory_due(owner).await? else { return Ok(()) };
    let zone = schedules::zone_of(cx, owner, None).await?;
    let mut found = cx.store.memory_kept(owner).await?;
    begin(&mut found.value, &due.value, &zone);
    let due_jobs = when::due(&kept(&found.value), cx.clock.now(), &zone);
    // A clean-up makes them too.
    let only_vectors = found.value.vectors != vectors::choice(cx, owner).await?
        && !due_jobs.iter().any(|job| matches!(job, Job::Tidy(_)));
    let works: Vec<Work> =
        due_jobs.into_iter().map(Work::Job).chain(only_vectors.then_some(Work::Vectors)).collect();
    let Some(first) = works.first() else { return rest(cx, owner, due, found, &zone).await };
    tracing::info!(works = works.len(), first = ?first, "memory is due");
    let Some(mut claimed) = ClaimedJob::claim(cx, owner, found, deadline).await? else { return Ok(()) };
    // If this executor dies, another one begins again after that.
    cx.store.set_memory_due(owner, &due.value, deadline.max(cx.clock.now()) + LEASE).await?;
    for work in works {
        let mut tally = Outcome::default();
        let record = match work.record(&zone) {
            Some((kind, due)) => Some(jobs::begin(cx, owner, kind, "", Due::At(due)).await),
            None => None,
        };
        let done = match work {
            Work::Job(Job::Sync(date)) => {
                sync::day(cx, owner, &mut claimed, (date, &zone), &mut tally).await.map(drop)
            }
            Work::Job(Job::Tidy(monday)) => {
                match tidy::week(cx, owner, &mut claimed, monday, &mut tally).await {
                    Ok(_) => vectors::weekly(cx, owner, &mut claimed).await.map_err(Unfinished::Interrupted),
                    Err(error) => Err(error),
                }
            }
            Work::Vectors => vectors::weekly(cx, owner, &mut claimed).await.map_err(Unfinished::Interrupted),
        };
        if let Some(record) = record {
            match &done {
                Ok(()) => record.end(Outcome { skipped: tally.work_found == 0, ..tally }).await,
                Err(Unfinished::Interrupted(Interrupted::Failed(error))) => record.fail(tally, error).await,
                Err(Unfinished::Interrupted(_)) => record.cut_off(&tally).await,
                Err(
                    Unfinished::Unusable { reason }
                    | Unfinished::Failed { reason, .. }
                    | Unfinished::TooDear { reason, .. },
                ) => record.end(Outcome { error: Some(reason.clone()), ..tally }).await,
            }
        }
        let now = cx.clock.now();
        match done {
            Ok(()) => {
                if let Work::Job(job) = work {
                    let next = kept(&claimed.job).after(job);
                    (claimed.job.daily, claimed.job.weekly) = (next.daily, next.weekly);
                }
                (claimed.job.failure, claimed.job.failures) = (None, 0);
                if !claimed.give_back().await? {
                    return Ok(());
                }
            }
            Err(Unfinished::Interrupted(Interrupted::Lost)) => return Ok(()),
            // Another executor continues at once.
            Err(Unfinished::Interrupted(Interrupted::TimeUp | Interrupted::Stopping)) => {
                return Ok(cx.store.set_memory_due(owner, &due.value, now).await?);
            }
            // A failure of a model never looks like success: nothing is marked as done, and it is tried again.
            Err(unfinished) => {
                let (reason, again_at) = match unfinished {
                    Unfinished::Interrupted(Interrupted::Failed(error)) => return Err(error),
                    Unfinished::Interrupted(_) => return Ok(()),
                    Unfinished::Unusable { reason } => (reason, None),
                    Unfinished::Failed { reason, again_at } | Unfinished::TooDear { reason, again_at } => {
                        (reason, again_at)
                    }
                };
                tracing::warn!(reason, "memory could not be brought up to date");
                let failures = claimed.job.failures;
                let pause = (AGAIN * (1 << failures.min(6) as i32)).min(LONGEST_AGAIN);
                let again_at = again_at.unwrap_or(now + pause).clamp(now + AGAIN, now + LONGEST_AGAIN);
                (claimed.job.failure, claimed.job.failures) = (Some(reason), failures.saturating_add(1));
                if claimed.give_back().await? {
                    cx.store.set_memory_due(owner, &due.value, again_at).await?;
                }
                return Ok(());
            }
        }
    }
    // What has come meanwhile decides when to look again.
    let Some(due) = cx.store.memory_due(owner).await? else { return Ok(()) };
    let found = cx.store.memory_kept(owner).await?;
    rest(cx, owner, due, found, &zone).await
}

/// What an executor does for a memory.
#[derive(Clone, Copy, Debug)]
enum Work {
    Job(Job),
    /// The person has chosen another provider of vectors.
    Vectors,
}

impl Work {
    /// The kind and the due time of its record. Vectors that the person has asked for have none: they are no appointment, and searches
    /// work without them.
    fn record(self, zone: &jiff::tz::TimeZone) -> Option<(JobKind, Timestamp)> {
        match self {
            Self::Job(job @ Job::Sync(_)) => Some((JobKind::MemoryDaily, job.at(zone))),
            Self::Job(job @ Job::Tidy(_)) => Some((JobKind::MemoryWeekly, job.at(zone))),
            Self::Vectors => None,
        }
    }
}

/// Nothing is due now. Looks again when it will be, or never if there is nothing left to do.
async fn rest(
    cx: &Cx,
    owner: &Owner,
    due: Versioned<MemoryDue>,
    found: Versioned<MemoryKept>,
    zone: &jiff::tz::TimeZone,
) -> Result<()> {
    if found.version == 0 {
        // The days before the first conversation are done.
        let _ = cx.store.replace_memory_kept(owner, &found.value, 0).await?;
    }
    let is_done =
        cx.store.active_conversations(owner).await?.is_empty() && !cx.store.has_open_blocks(owner).await?;
    if is_done {
        return Ok(cx.store.clear_memory_due(owner, due.version).await?);
    }
    Ok(cx.store.set_memory_due(owner, &due.value, when::next_due(cx.clock.now(), zone)).await?)
}

/// Nothing was left to do before the mark was made, so the days before it count as synchronised.
fn begin(kept: &mut MemoryKept, due: &MemoryDue, zone: &jiff::tz::TimeZone) {
    kept.daily = kept.daily.max(Some(when::last_daily(due.since, zone)));
    kept.weekly = kept.weekly.max(Some(when::last_weekly(due.since, zone)));
}

/// The synchronisations and clean-ups that were due and are not done, each with its due time.
pub(crate) fn missed(
    due: &MemoryDue,
    mut kept: MemoryKept,
    now: Timestamp,
    zone: &jiff::tz::TimeZone,
) -> Vec<(JobKind, Timestamp)> {
    begin(&mut kept, due, zone);
    let jobs = when::due(&self::kept(&kept), now, zone);
    jobs.into_iter().filter_map(|job| Work::Job(job).record(zone)).collect()
}

fn kept(kept: &MemoryKept) -> Kept {
    Kept { daily: kept.daily, weekly: kept.weekly }
}

/// Why a synchronisation or a clean-up is not done.
#[derive(Debug)]
pub enum Unfinished {
    Interrupted(Interrupted),
    /// A model has answered, and the answer cannot be used. Others may be usable.
    Unusable {
        reason: String,
    },
    /// No model answers.
    Failed {
        reason: String,
        again_at: Option<Timestamp>,
    },
    /// A ceiling does not pay for it.
    TooDear {
        reason: String,
        again_at: Option<Timestamp>,
    },
}

impl<E: Into<Interrupted>> From<E> for Unfinished {
    fn from(error: E) -> Self {
        Self::Interrupted(error.into())
    }
}

impl From<ask::Failure> for Unfinished {
    fn from(failure: ask::Failure) -> Self {
        match failure {
            ask::Failure::Unusable(reason) => Self::Unusable { reason },
            ask::Failure::Stop(stop) => Self::Failed { reason: stop.reason, again_at: stop.again_at },
            ask::Failure::TooDear(stop) => Self::TooDear { reason: stop.reason, again_at: stop.again_at },
            ask::Failure::Failed(error) => Self::Interrupted(Interrupted::Failed(error)),
        }
    }
}

impl Unfinished {
    /// The error of a request that asked for it.
    fn into_error(self) -> Error {
        match self {
            Self::Interrupted(Interrupted::Failed(error)) => error,
            Self::Interrupted(Interrupted::Lost) => Error::conflict(
                "memory_busy",
                "the memory is being brought up to date; try again in a minute",
            ),
            Self::Interrupted(Interrupted::TimeUp | Interrupted::Stopping) => {
                Error::Busy { what: "work on memory" }
            }
            Self::TooDear { reason, .. } => Error::BudgetExceeded { message: reason },
            Self::Unusable { reason } | Self::Failed { reason, .. } => {
                Error::RunFailed { code: "memory_failed".to_owned(), message: reason, retryable: true }
            }
        }
    }
}

/// Claims the memory for a request.
///
/// # Errors
/// 409 if the account is stopped, or if another process works on the memory.
async fn claim<'a>(cx: &'a Cx, owner: &'a Owner, deadline: Timestamp) -> Result<ClaimedJob<'a, MemoryKept>> {
    stopped::check(cx, owner).await?;
    let found = cx.store.memory_kept(owner).await?;
    let claimed = ClaimedJob::claim(cx, owner, found, deadline).await?;
    claimed.ok_or_else(|| Unfinished::Interrupted(Interrupted::Lost).into_error())
}
