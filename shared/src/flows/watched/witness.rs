//! Schedules that something else runs: declared, changed, reported on, and what became of their due times.
//!
//! Nothing is stored about a due time. Whether a schedule ran, was late or is silent follows from its record, its reports and the time.

use std::iter;
use std::time::Duration;

use domain::ids::{Owner, ReportId, WatchedId};
use domain::text::names;
use domain::validate::FieldErrors;
use domain::watchdog::{Check, Observed, Verdict, judge_watched};
use domain::watched::witness::{
    Expected, MAX_LEDGER, NewReport, NewWatched, Report, ledger, newest, reports_from, reports_until,
};
use domain::watched::{MAX_WATCHED, WatchedPatch, WatchedRecord, WatchedReport, WatchedView, find};
use futures::FutureExt;
use futures::stream::{self, StreamExt, TryStreamExt};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use super::alarms;
use crate::context::{Cx, Data};
use crate::error::{Error, Result};
use crate::flows::background::due;
use crate::flows::page::{self, Page, PageQuery};
use crate::flows::{edit, schedules};
use crate::process::compute::Stop;
use crate::request::caller::IfMatch;
use crate::store::table::Write;
use crate::store::watched::{Named, REPORT_LIFETIME, ReportsBetween};
use crate::store::{DueItem, Once, Tries, Versioned};

/// How long a write is tried while others change the same schedule.
const MAX_RETRY_TIME: Duration = Duration::from_secs(10);

/// How many schedules' reports are read at once.
const AT_ONCE: usize = 16;

/// How many reports are read at first to judge the newest due times.
const FIRST_REPORTS: usize = 20;

/// The most reports that are read to judge the newest due times.
const MAX_NEWEST: usize = 300;

/// The most due times of one answer.
pub const MAX_DUE_TIMES: usize = 500;

/// The most reports that are read for one answer about due times.
const MAX_REPORTS: usize = 5_000;

/// How long before now a ledger begins if nothing else is asked for.
const DEFAULT_LEDGER: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Which due times to answer.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AskedLedger {
    /// Only due times after this time. At most 400 days ago. Default: seven days ago.
    #[param(value_type = Option<String>, format = DateTime)]
    pub from: Option<String>,
    /// Only due times up to this time. Default: now.
    #[param(value_type = Option<String>, format = DateTime)]
    pub to: Option<String>,
}

/// What became of the due times of a watched schedule.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct WatchedLedger {
    /// Oldest first. At most 500.
    pub data: Vec<Expected>,
    /// Send it as `from` to get the due times that follow. It is absent if these are all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_from: Option<Timestamp>,
}

/// # Errors
/// 404 if it does not exist, or is being deleted.
async fn load(data: &Data, owner: &Owner, id: WatchedId) -> Result<Versioned<WatchedRecord>> {
    let found = data.store.watched(owner, id).await?;
    found.filter(|record| !record.value.is_deleted).ok_or(Error::NotFound("watched schedule"))
}

/// # Errors
/// 400 with every invalid field and its limit; 409 if the owner has as many watched schedules as the limit allows, or one with this name.
pub async fn create(cx: &Cx, owner: &Owner, once: &Once, input: NewWatched) -> Result<WatchedView> {
    let schedule = schedules::in_zone_of(cx, owner, None, input.schedule).await?;
    let (id, now) = (WatchedId::from_uuid(cx.clock.uuid()), cx.clock.now());
    let record = NewWatched { schedule, ..input }.into_record(id, now)?;
    // First, so that no schedule is left without a watchdog if the process dies.
    cx.store.follow(owner, now).await?;
    let _lock = cx.locks.lock((owner, "watched")).await;
    let mut tries = Tries::within(MAX_RETRY_TIME);
    loop {
        tries.next().await?;
        match cx.store.create_watched(owner, once, &record, MAX_WATCHED).await? {
            Named::Yes => return Ok(record.view(&[], now)),
            Named::TooMany => {
                let told = format!(
                    "an account has at most {MAX_WATCHED} watched schedules, with paused ones: delete one first"
                );
                return Err(Error::conflict("too_many_watched", told));
            }
            Named::Taken(id) => return Err(taken(&record, id)),
            Named::Raced => {}
        }
    }
}

/// The name of a schedule is how `watch wrap` and agents call it, so no two have the same.
fn taken(record: &WatchedRecord, id: WatchedId) -> Error {
    let told = format!("{id} is called {:?}, too: choose another name", record.watched.name);
    Error::conflict_with("name_taken", told, &json!({ "watched_id": id }))
}

/// # Errors
/// 404 if it does not exist.
pub async fn read(cx: &Cx, owner: &Owner, id: WatchedId) -> Result<WatchedView> {
    view(cx, owner, load(cx, owner, id).await?.value).await
}

async fn view(cx: &Cx, owner: &Owner, record: WatchedRecord) -> Result<WatchedView> {
    views(cx, owner, vec![record]).await?.pop().ok_or_else(|| Error::internal("a view was lost"))
}

/// Newest first.
///
/// # Errors
/// 400 if `limit` or `cursor` is invalid.
pub async fn list(cx: &Cx, owner: &Owner, query: &PageQuery) -> Result<Page<WatchedView>> {
    let read = |after: Option<String>, limit| {
        async move { cx.store.watched_schedules(owner, after.as_deref(), limit).await }.boxed()
    };
    let found = page::filtered(owner, "watched", query, read, |record| !record.is_deleted).await?;
    let Page { data, next_cursor, has_more } = found;
    let records = data.into_iter().map(|record| record.value).collect();
    Ok(Page { data: views(cx, owner, records).await?, next_cursor, has_more })
}

/// The schedules with what is newest about them. They keep their order.
///
/// # Errors
/// If the table does not answer, or if the computation takes too long.
pub async fn views(cx: &Cx, owner: &Owner, records: Vec<WatchedRecord>) -> Result<Vec<WatchedView>> {
    let now = cx.clock.now();
    let with_reports = with_newest_reports(cx, owner, records).await?;
    // Where schedules fire is computed off the threads that serve requests.
    let compute = move |stop: &Stop| {
        let view = |(record, reports): (WatchedRecord, Vec<WatchedReport>)| {
            stop.check()?;
            Ok(record.view(&reports, now))
        };
        with_reports.into_iter().map(view).collect()
    };
    cx.compute.answers.run(compute).await
}

/// The schedules with the reports that judge their newest due times, newest first. They keep their order.
///
/// # Errors
/// If the table does not answer, or if the computation takes too long.
pub async fn with_newest_reports(
    cx: &Cx,
    owner: &Owner,
    records: Vec<WatchedRecord>,
) -> Result<Vec<(WatchedRecord, Vec<WatchedReport>)>> {
    let now = cx.clock.now();
    let compute = move |stop: &Stop| {
        let since = |record: WatchedRecord| {
            stop.check()?;
            let first = newest(&record.watched, &[], now).first().map(|expected| expected.due);
            let before = first.and_then(|due| due.checked_sub(SignedDuration::from_nanos(1)).ok());
            let since = reports_from(&record.watched, before.unwrap_or(now));
            Ok((record, since))
        };
        records.into_iter().map(since).collect::<std::result::Result<Vec<_>, _>>()
    };
    let records = cx.compute.answers.run(compute).await?;
    let read = stream::iter(records).map(async |(record, since)| {
        let reports = newest_reports(cx, owner, record.watched.watched_id, since).await?;
        Ok::<_, Error>((record, reports))
    });
    read.buffered(AT_ONCE).try_collect().await
}

/// The reports since a time, newest first, and some that are older.
async fn newest_reports(
    data: &Data,
    owner: &Owner,
    id: WatchedId,
    since: Timestamp,
) -> Result<Vec<WatchedReport>> {
    let (mut reports, mut before, mut limit) = (Vec::new(), None::<String>, FIRST_REPORTS);
    loop {
        let found = data.store.watched_reports(owner, id, before.as_deref(), limit).await?;
        reports.extend(found.items.into_iter().map(|(_, report)| report.value));
        before = found.last;
        let is_enough = reports.last().is_none_or(|oldest: &WatchedReport| oldest.report.at < since);
        if before.is_none() || is_enough || reports.len() >= MAX_NEWEST {
            return Ok(reports);
        }
        limit = MAX_NEWEST - reports.len();
    }
}

/// # Errors
/// 404; 400 with every invalid field; 409 if `If-Match` is not the current version, or if another schedule has the new name.
pub async fn change(
    cx: &Cx,
    owner: &Owner,
    id: WatchedId,
    if_match: Option<IfMatch>,
    mut patch: WatchedPatch,
) -> Result<WatchedView> {
    if let Some(schedule) = patch.schedule.take() {
        patch.schedule = Some(schedules::in_zone_of(cx, owner, None, schedule).await?);
    }
    let _lock = cx.locks.lock((owner, id)).await;
    let mut tries = Tries::within(MAX_RETRY_TIME);
    loop {
        tries.next().await?;
        let current = load(cx, owner, id).await?;
        check_version(cx, owner, if_match, &current.value).await?;
        let before = current.value.watched.name.clone();
        let record = current.value.patched(patch.clone(), cx.clock.now())?;
        let is_done = if names::is_same(&before, &record.watched.name) {
            cx.store.replace_watched(owner, &record, current.version).await?.done()
        } else {
            match cx.store.rename_watched(owner, &record, current.version).await? {
                Named::Taken(id) => return Err(taken(&record, id)),
                named => named == Named::Yes,
            }
        };
        if is_done {
            return view(cx, owner, record).await;
        }
    }
}

async fn check_version(
    cx: &Cx,
    owner: &Owner,
    if_match: Option<IfMatch>,
    current: &WatchedRecord,
) -> Result<()> {
    let shown = async { view(cx, owner, current.clone()).await };
    edit::check_read(if_match, current.edition, shown).await
}

/// Deletes a watched schedule and all its reports. The record first says that it is deleted, so that no report is added any more, and is
/// deleted last, so that the reports can be found as long as there are any. If a call was interrupted, the next one continues.
///
/// # Errors
/// 404 if it does not exist; 409 if `If-Match` is not the current version.
pub async fn delete(cx: &Cx, owner: &Owner, id: WatchedId, if_match: Option<IfMatch>) -> Result<()> {
    let mut tries = Tries::within(MAX_RETRY_TIME);
    loop {
        tries.next().await?;
        let found = cx.store.watched(owner, id).await?.ok_or(Error::NotFound("watched schedule"))?;
        if found.value.is_deleted {
            break;
        }
        check_version(cx, owner, if_match, &found.value).await?;
        let deleted = WatchedRecord { is_deleted: true, ..found.value };
        if cx.store.replace_watched(owner, &deleted, found.version).await?.done() {
            break;
        }
    }
    Ok(cx.store.delete_watched(owner, id).await?)
}

/// Takes a report. A failure is told at once, and so is a success that ends it. Neither a pause nor the stop of the account refuses it: the thing ran all the same.
///
/// # Errors
/// 404 if the schedule does not exist; 400 with every invalid field and its limit.
pub async fn report(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    id: WatchedId,
    input: NewReport,
) -> Result<WatchedReport> {
    let report_id = ReportId::from_uuid(cx.clock.uuid());
    let report = WatchedReport { report_id, report: input.validate(cx.clock.now())? };
    let mut tries = Tries::within(MAX_RETRY_TIME);
    loop {
        tries.next().await?;
        let current = load(cx, owner, id).await?;
        let said = said(cx, owner, &current.value, &report).await?;
        let says_something = !said.is_empty();
        if cx.store.report_watched(owner, once, (id, current.version), &report, said).await?.done() {
            if says_something {
                due::dispatch(cx, &DueItem::notices(owner)).await;
            }
            return Ok(report);
        }
    }
}

/// The writes that tell the person at once of a report of a failure, and of a success that ends what was wrong.
async fn said(cx: &Cx, owner: &Owner, record: &WatchedRecord, report: &WatchedReport) -> Result<Vec<Write>> {
    let (watched, now) = (&record.watched, cx.clock.now());
    let observed = if report.report.ok {
        let item = watched.watched_id.to_string();
        let found = cx.store.watchdog(owner).await?;
        if !found.is_some_and(|found| found.value.is_wrong(Check::WatchedSchedule, &item)) {
            return Ok(Vec::new());
        }
        match judged(cx, owner, record, report).await {
            Ok(observed) if observed.verdict == Verdict::Fine => observed,
            // It is still wrong in another way, such as late. The looks count that.
            Ok(_) => return Ok(Vec::new()),
            Err(error) => {
                // The next look sees that it is right again.
                tracing::warn!(cause = %error.causes(), "a report could not be judged at once");
                return Ok(Vec::new());
            }
        }
    } else {
        judge_watched(watched, &[], Some(&report.report), now)
    };
    alarms::hear(cx, owner, &observed, (&report.report_id.to_string(), &watched.name)).await
}

/// How a schedule is with a report that is not stored yet.
async fn judged(cx: &Cx, owner: &Owner, record: &WatchedRecord, report: &WatchedReport) -> Result<Observed> {
    let now = cx.clock.now();
    let found = with_newest_reports(cx, owner, vec![record.clone()]).await?;
    let before = found.into_iter().flat_map(|(_, reports)| reports).map(|report| report.report);
    let reports: Vec<Report> = iter::once(report.report.clone()).chain(before).collect();
    let watched = record.watched.clone();
    let judge = move |stop: &Stop| {
        stop.check()?;
        Ok(judge_watched(&watched, &newest(&watched, &reports, now), reports.first(), now))
    };
    cx.compute.answers.run(judge).await
}

/// The id of the watched schedule with this id or name. The inner error is a sentence about what there is.
///
/// # Errors
/// If the table does not answer.
pub async fn named(data: &Data, owner: &Owner, named: &str) -> Result<Result<WatchedId, String>> {
    // An import may bring more than the limit.
    const MAX: usize = 5 * MAX_WATCHED;
    Ok(find(&data.store.all_watched(owner, MAX).await?, named))
}

/// The reports, newest first.
///
/// # Errors
/// 404 if the schedule does not exist; 400 if `limit` or `cursor` is invalid.
pub async fn reports(
    cx: &Cx,
    owner: &Owner,
    id: WatchedId,
    query: &PageQuery,
) -> Result<Page<WatchedReport>> {
    load(cx, owner, id).await?;
    let read = |after: Option<String>, limit| {
        async move { cx.store.watched_reports(owner, id, after.as_deref(), limit).await }.boxed()
    };
    let page = page::filtered(owner, &format!("reports of {id}"), query, read, |_| true).await?;
    Ok(page.map(|report| report.value))
}

/// What became of the due times between two times.
///
/// # Errors
/// 404 if the schedule does not exist; 400 if a time is invalid.
pub async fn ledger_of(cx: &Cx, owner: &Owner, id: WatchedId, asked: &AskedLedger) -> Result<WatchedLedger> {
    let now = cx.clock.now();
    let (from, to) = asked.read(now)?;
    let record = load(cx, owner, id).await?.value;
    due_times(cx, owner, &record, (from, to), MAX_DUE_TIMES).await
}

impl AskedLedger {
    fn read(&self, now: Timestamp) -> Result<(Timestamp, Timestamp), FieldErrors> {
        let mut errors = FieldErrors::default();
        let mut time = |field: &str, text: Option<&str>, otherwise: Timestamp| match text.map(str::parse) {
            None => otherwise,
            Some(Ok(time)) => time,
            Some(Err(_)) => {
                errors.add(field, "must be a time such as 2026-11-26T03:00:00Z");
                otherwise
            }
        };
        let to = time("to", self.to.as_deref(), now);
        let from = time("from", self.from.as_deref(), to.min(now).checked_sub(DEFAULT_LEDGER).unwrap_or(to));
        let oldest = now.checked_sub(REPORT_LIFETIME).unwrap_or(Timestamp::MIN);
        if self.from.is_some() && from < oldest {
            errors.add("from", "must be at most 400 days ago: reports are kept so long");
        } else if from > to {
            errors.add("from", format!("must not be after `to`, which is {to}; is {from}"));
        }
        errors.into_result((from.max(oldest), to))
    }
}

/// What became of the due times after `from` and up to `to`, as far as they have come. At most `most`.
///
/// # Errors
/// If the table does not answer, or if the computation takes too long.
pub async fn due_times(
    cx: &Cx,
    owner: &Owner,
    record: &WatchedRecord,
    (from, to): (Timestamp, Timestamp),
    most: usize,
) -> Result<WatchedLedger> {
    let (now, watched) = (cx.clock.now(), record.watched.clone());
    let most = most.min(MAX_LEDGER);
    // Which due times there are shows which reports are needed.
    let compute = move |stop: &Stop| {
        let mut all = ledger(&watched, &[], from, now);
        all.retain(|expected| expected.due <= to);
        stop.check()?;
        let is_cut = all.len() > most;
        all.truncate(most);
        // Of the last due time, or of one before which the schedule was changed or paused.
        let end = if is_cut { all.last().map_or(to, |last| last.due) } else { to };
        let between = ReportsBetween {
            from: reports_from(&watched, from),
            until: reports_until(&watched, end.min(now)),
        };
        Ok((watched, end, is_cut, between))
    };
    let (watched, mut end, mut is_cut, between) = cx.compute.answers.run(compute).await?;
    let found = cx.store.watched_reports_between(owner, watched.watched_id, between, MAX_REPORTS).await?;
    let (reports, are_all) = found;
    let compute = move |stop: &Stop| {
        let plain: Vec<Report> = reports.into_iter().map(|report| report.report).collect();
        let mut data = ledger(&watched, &plain, from, now);
        stop.check()?;
        if let (false, Some(last)) = (are_all, plain.last()) {
            // Only due times whose reports were all read, and at least one, so that each answer gets further.
            let whole =
                data.iter().filter(|expected| reports_until(&watched, expected.due) <= last.at).count();
            if let Some(last) = data.get(whole.saturating_sub(1)).filter(|last| last.due < end) {
                (end, is_cut) = (last.due, true);
            }
        }
        data.retain(|expected| expected.due <= end);
        Ok(WatchedLedger { data, next_from: is_cut.then_some(end) })
    };
    cx.compute.answers.run(compute).await
}

/// The newest due times after `from` and up to `to`, as far as they have come, oldest first. At most `most`, and whether these are all.
///
/// # Errors
/// If the table does not answer, or if the computation takes too long.
pub async fn newest_between(
    cx: &Cx,
    owner: &Owner,
    record: &WatchedRecord,
    (from, to): (Timestamp, Timestamp),
    most: usize,
) -> Result<(Vec<Expected>, bool)> {
    let (now, watched) = (cx.clock.now(), record.watched.clone());
    let compute = move |stop: &Stop| {
        stop.check()?;
        if !watched.was_due(from, to.min(now)) {
            return Ok(None);
        }
        let mut all = ledger(&watched, &[], from, now);
        all.retain(|expected| expected.due <= to);
        let left_out = all.len().saturating_sub(most);
        let last = left_out.checked_sub(1).and_then(|last| all.get(last));
        Ok(Some(last.map(|last| last.due)))
    };
    let Some(begin) = cx.compute.answers.run(compute).await? else { return Ok((Vec::new(), true)) };
    let found = due_times(cx, owner, record, (begin.unwrap_or(from), to), MAX_LEDGER).await?;
    Ok((found.data, begin.is_none() && found.next_from.is_none()))
}
