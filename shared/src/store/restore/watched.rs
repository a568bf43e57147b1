//! Watched schedules and their reports.

use domain::ids::WatchedId;
use domain::text::names;
use domain::watched::{WatchedRecord, WatchedReport};
use serde_json::Value;

use super::{KeptOrNot, Location, keep, read, valid};
use crate::store::keys;
use crate::store::watched::REPORT_LIFETIME;

pub(super) fn watched(place: &Location<'_>, record: &Value) -> KeptOrNot {
    let mut record: WatchedRecord = read(record)?;
    record.watched.name = names::canonical(&record.watched.name);
    valid(record.check())?;
    keep(keys::watched(place.owner, record.watched.watched_id), &record)
}

pub(super) fn report(place: &Location<'_>, watched: &WatchedId, record: &Value) -> KeptOrNot {
    let report: WatchedReport = read(record)?;
    valid(report.check())?;
    let key = keys::watched_report(place.owner, *watched, report.report_id);
    place.expiring(key, &report, report.report.at, REPORT_LIFETIME)
}
