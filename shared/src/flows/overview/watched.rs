//! The due times of a day of schedules that something else runs.

use domain::ids::{Owner, WatchedId};
use domain::watched::witness::{Expected, ExpectedState};
use domain::watched::{MAX_WATCHED, WatchedRecord};
use futures::stream::{self, StreamExt, TryStreamExt};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use super::AT_ONCE;
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::watched::witness;
use crate::process::compute::Stop;

/// The most due times of one schedule.
const MAX_OF_SCHEDULE: usize = 100;

/// The most due times of an answer.
const MAX_ITEMS: usize = 500;

/// A due time of a schedule that something else runs.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct WatchedDue {
    /// The due time.
    pub at: Timestamp,
    pub watched_id: WatchedId,
    pub name: String,
    /// As in `GET /watched/{watched_id}/ledger`. Absent for what is still to come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<ExpectedState>,
    /// When the report came that counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported_at: Option<Timestamp>,
    /// The link of this report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// The reason for the state, in a sentence.
    #[schema(example = "No report came within 30 minutes after the due time.")]
    pub text: String,
}

/// The due times of a day, sorted by time, and whether these are all.
///
/// # Errors
/// If the table does not answer, or if the computation takes too long.
pub(super) async fn of_day(
    cx: &Cx,
    owner: &Owner,
    (from, to): (Timestamp, Timestamp),
    now: Timestamp,
) -> Result<(Vec<WatchedDue>, bool)> {
    let records = cx.store.all_watched(owner, MAX_WATCHED + 1).await?;
    let mut complete = records.len() <= MAX_WATCHED;
    if records.is_empty() {
        return Ok((Vec::new(), complete));
    }
    // A ledger has what is after its beginning, and up to its end.
    let instant = SignedDuration::from_nanos(1);
    let (after, last) = (from.checked_sub(instant).unwrap_or(from), to.checked_sub(instant).unwrap_or(to));
    let past = stream::iter(records).map(async |record| {
        // The newest ones of the past are nearest to now.
        let ledger = match after < now {
            true => Some(witness::newest_between(cx, owner, &record, (after, last), MAX_OF_SCHEDULE).await?),
            false => None,
        };
        Ok::<_, Error>((record, ledger))
    });
    let past: Vec<_> = past.buffered(AT_ONCE).try_collect().await?;
    let compute = move |stop: &Stop| {
        let mut all = Vec::new();
        let mut is_whole = true;
        for (record, ledger) in past {
            stop.check()?;
            let (expected, is_all) = ledger.unwrap_or((Vec::new(), true));
            is_whole &= is_all;
            all.extend(expected.into_iter().map(|expected| of(&record, expected)));
            let mut coming = 0;
            let mut next = record.watched.next_due(now.max(after));
            while let Some(at) = next.filter(|at| *at <= last) {
                if coming == MAX_OF_SCHEDULE {
                    is_whole = false;
                    break;
                }
                coming += 1;
                all.push(to_come(&record, at));
                next = record.watched.next_due(at);
            }
        }
        Ok((all, is_whole))
    };
    let (mut all, is_whole) = cx.compute.answers.run(compute).await?;
    complete &= is_whole;
    if all.len() > MAX_ITEMS {
        all.sort_by_key(|item| now.duration_since(item.at).abs());
        all.truncate(MAX_ITEMS);
        complete = false;
    }
    all.sort_by_key(|item| (item.at, item.watched_id));
    Ok((all, complete))
}

fn of(record: &WatchedRecord, expected: Expected) -> WatchedDue {
    let Expected { due, state, report, why, .. } = expected;
    let (reported_at, link) = report.map_or((None, None), |report| (Some(report.at), report.link));
    WatchedDue {
        at: due,
        watched_id: record.watched.watched_id,
        name: record.watched.name.clone(),
        state: Some(state),
        reported_at,
        link,
        text: why,
    }
}

fn to_come(record: &WatchedRecord, at: Timestamp) -> WatchedDue {
    WatchedDue {
        at,
        watched_id: record.watched.watched_id,
        name: record.watched.name.clone(),
        state: None,
        reported_at: None,
        link: None,
        text: "Due.".to_owned(),
    }
}
