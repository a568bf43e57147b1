//! A watched schedule as it is stored and shown. The rules are in [`witness`].

pub mod witness;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::{ReportId, WatchedId};
use crate::schedule::{Schedule, ScheduleInput};
use crate::text::names;
use crate::validate::FieldErrors;
use crate::watched::witness::{
    Expected, ExpectedState, NewWatched, Report, Standing, Watched, WatchedState, newest, standing,
};

/// The most watched schedules of an owner, with paused ones.
pub const MAX_WATCHED: usize = 200;

/// How many names an error lists.
const MAX_NAMED: usize = 20;

/// A watched schedule as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedRecord {
    pub watched: Watched,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// The version for clients. It counts the changes that people make. A report does not change the record.
    pub edition: u64,
    /// Its reports are being deleted. For clients it does not exist any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_deleted: bool,
}

/// A change of a watched schedule. Omitted fields keep their values.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WatchedPatch {
    /// 1 to 100 characters on one line.
    #[schema(min_length = 1, max_length = 100)]
    pub name: Option<String>,
    /// It counts from now on. Due times of the past stay. Without a time zone: the account's.
    pub schedule: Option<ScheduleInput>,
    /// 1 to 1,440. It also holds for due times of the past.
    #[schema(minimum = 1, maximum = 1_440)]
    pub grace_minutes: Option<u16>,
    /// It also holds for due times of the past.
    pub expects_result: Option<bool>,
    /// While it is paused, nothing is due.
    pub paused: Option<bool>,
}

/// A report as it is stored and shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WatchedReport {
    /// It begins with the time of the report.
    pub report_id: ReportId,
    #[serde(flatten)]
    pub report: Report,
}

/// A watched schedule as clients see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct WatchedView {
    pub watched_id: WatchedId,
    pub name: String,
    /// The schedule that counts, or counted before the pause.
    pub schedule: ScheduleInput,
    /// The schedule as a sentence.
    #[schema(example = "At 03:00 every day (Europe/Berlin).")]
    pub schedule_text: String,
    /// How many minutes after a due time its report is not yet late.
    pub grace_minutes: u16,
    /// Whether a success must have a summary or a link.
    pub expects_result: bool,
    /// Whether nothing is due.
    pub paused: bool,
    /// How it is now. A failure counts as soon as it is reported, also before the first due time, until a success follows.
    pub state: WatchedState,
    /// The reason for the state, in a sentence.
    #[schema(example = "It reported a failure with exit code 3 10 minutes after the due time.")]
    pub why: String,
    /// When it is due next. Absent while it is paused, and after the end of its schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_due: Option<Timestamp>,
    /// The newest due time whose report is awaited. Absent if none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_since: Option<Timestamp>,
    /// The newest due time whose outcome is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Expected>,
    /// The newest report, whether or not it belongs to a due time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_report: Option<WatchedReport>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Send it in `If-Match`. A report does not change it.
    pub version: u64,
}

impl NewWatched {
    /// # Errors
    /// Every invalid field, with its limit.
    pub fn into_record(self, watched_id: WatchedId, now: Timestamp) -> Result<WatchedRecord, FieldErrors> {
        let watched = self.validate(watched_id, now)?;
        Ok(WatchedRecord { watched, created_at: now, updated_at: now, edition: 1, is_deleted: false })
    }
}

impl WatchedRecord {
    /// The record with `patch` applied.
    ///
    /// # Errors
    /// Every invalid field, with its limit.
    pub fn patched(self, patch: WatchedPatch, now: Timestamp) -> Result<Self, FieldErrors> {
        let mut errors = FieldErrors::default();
        let was_paused = self.watched.schedule().is_none();
        let mut watched = self.watched;
        let mut apply = |of: &mut Watched, changed: Result<Watched, FieldErrors>| match changed {
            Ok(changed) => *of = changed,
            Err(wrong) => {
                errors.nest("", Err::<(), _>(wrong));
            }
        };
        if let Some(name) = &patch.name {
            let changed = watched.clone().renamed(name);
            apply(&mut watched, changed);
        }
        if let Some(minutes) = patch.grace_minutes {
            let changed = watched.clone().with_grace(minutes);
            apply(&mut watched, changed);
        }
        if let Some(expects_result) = patch.expects_result {
            watched.expects_result = expects_result;
        }
        let is_rescheduled = patch.schedule.is_some();
        if let Some(schedule) = patch.schedule {
            let changed = watched.clone().rescheduled(schedule, now);
            apply(&mut watched, changed);
        }
        if is_rescheduled && watched.schedule().is_some() && watched.next_due(now).is_none() {
            errors.add("schedule", "must have a due time that is still to come");
        }
        let watched = match patch.paused.unwrap_or(was_paused) {
            true => watched.paused(now),
            false => watched.resumed(now),
        };
        errors.into_result(Self { watched, updated_at: now, edition: self.edition + 1, ..self })
    }

    /// Whether a record that comes from outside is one that the platform would have written.
    ///
    /// # Errors
    /// Every invalid field.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        errors.nest("watched", self.watched.check());
        errors.time("created_at", self.created_at);
        errors.time("updated_at", self.updated_at);
        errors.into_result(())
    }

    /// The record for clients. `reports` are the newest ones, newest first.
    #[must_use]
    pub fn view(&self, reports: &[WatchedReport], now: Timestamp) -> WatchedView {
        let watched = &self.watched;
        let plain: Vec<Report> = reports.iter().map(|report| report.report.clone()).collect();
        let mut newest = newest(watched, &plain, now);
        let Standing { state, why } = standing(watched, &newest, plain.first(), now);
        let waits = |expected: &Expected| expected.state == ExpectedState::Waiting;
        let waiting_since = newest.last().filter(|expected| waits(expected)).map(|expected| expected.due);
        newest.retain(|expected| !waits(expected));
        let schedule = watched.last_schedule();
        WatchedView {
            watched_id: watched.watched_id,
            name: watched.name.clone(),
            schedule: schedule.map(plainly).unwrap_or_default(),
            schedule_text: schedule.map(Schedule::describe).unwrap_or_default(),
            grace_minutes: watched.grace_minutes,
            expects_result: watched.expects_result,
            paused: watched.schedule().is_none(),
            state,
            why,
            next_due: watched.next_due(now),
            waiting_since,
            last: newest.pop(),
            last_report: reports.first().cloned(),
            created_at: self.created_at,
            updated_at: self.updated_at,
            version: self.edition,
        }
    }
}

/// The schedule without what has no meaning here, so that a client can send back what it has read.
fn plainly(schedule: &Schedule) -> ScheduleInput {
    ScheduleInput {
        overlap: None,
        catch_up: None,
        max_age: None,
        jitter: None,
        ..ScheduleInput::from(schedule.clone())
    }
}

impl WatchedReport {
    /// Whether a report that comes from outside is one that the platform would have written.
    ///
    /// # Errors
    /// Every invalid field.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        errors.time("at", self.report.at);
        errors.nest("", self.report.check());
        errors.into_result(())
    }
}

/// The watched schedule other than `id` that has this name.
#[must_use]
pub fn namesake(all: &[WatchedRecord], id: WatchedId, name: &str) -> Option<WatchedId> {
    let others = all.iter().map(|record| &record.watched).filter(|watched| watched.watched_id != id);
    let mut same = others.filter(|watched| names::is_same(&watched.name, name));
    same.next().map(|watched| watched.watched_id)
}

/// The watched schedule with this id, or with this name, whatever the case of its letters.
///
/// # Errors
/// A sentence that names what there is.
pub fn find(all: &[WatchedRecord], named: &str) -> Result<WatchedId, String> {
    let wanted = named.trim().to_lowercase();
    let is_id = |record: &&WatchedRecord| record.watched.watched_id.to_string() == wanted;
    let is_name = |record: &&WatchedRecord| names::is_same(&record.watched.name, named);
    let list = |records: &mut dyn Iterator<Item = &WatchedRecord>| {
        let row =
            |record: &WatchedRecord| format!("{:?} ({})", record.watched.name, record.watched.watched_id);
        records.take(MAX_NAMED).map(row).collect::<Vec<_>>().join(", ")
    };
    if let Some(found) = all.iter().find(is_id) {
        return Ok(found.watched.watched_id);
    }
    let by_name: Vec<&WatchedRecord> = all.iter().filter(is_name).collect();
    match by_name.as_slice() {
        [one] => Ok(one.watched.watched_id),
        [] if all.is_empty() => Err("there are no watched schedules".to_owned()),
        [] => Err(format!(
            "there is no watched schedule with the id or the name {named:?}; there are: {}",
            list(&mut all.iter())
        )),
        several => {
            let told = list(&mut several.iter().copied());
            Err(format!("several watched schedules have this name: {told}; name one by its id"))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;

    fn ts(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn record(name: &str, id: u128, now: &str) -> WatchedRecord {
        let new = json!({"name": name, "schedule": {"cron": "0 9 * * *"}});
        let new: NewWatched = serde_json::from_value(new).unwrap();
        new.into_record(WatchedId::from_uuid(Uuid::from_u128(id)), ts(now)).unwrap()
    }

    fn patched(record: &WatchedRecord, patch: Value, now: &str) -> Result<WatchedRecord, FieldErrors> {
        record.clone().patched(serde_json::from_value(patch).unwrap(), ts(now))
    }

    #[test]
    fn what_a_patch_leaves_out_stays() {
        let before = record("Backup", 1, "2026-11-20T00:00:00Z");
        let now = "2026-11-21T00:00:00Z";
        let paused = patched(&before, json!({"paused": true}), now).unwrap();
        assert_eq!(paused.edition, 2);
        let later = "2026-11-22T00:00:00Z";
        // A new schedule does not end the pause.
        let moved = patched(&paused, json!({"schedule": {"cron": "0 10 * * *"}}), later).unwrap();
        let view = moved.view(&[], ts(later));
        assert!(view.paused && view.next_due.is_none());
        assert_eq!(view.schedule.cron.as_deref(), Some("0 10 * * *"));
        let resumed = patched(&moved, json!({"paused": false, "name": "Nightly"}), later).unwrap();
        let view = resumed.view(&[], ts(later));
        assert_eq!(view.next_due, Some(ts("2026-11-22T10:00:00Z")));
        assert_eq!((view.name.as_str(), view.grace_minutes, view.paused), ("Nightly", 30, false));
    }

    #[test]
    fn a_view_can_be_sent_back() {
        let before = record("Backup", 1, "2026-11-20T00:00:00Z");
        let now = "2026-11-21T00:00:00Z";
        let schedule = serde_json::to_value(before.view(&[], ts(now)).schedule).unwrap();
        let after = patched(&before, json!({ "schedule": schedule }), now).unwrap();
        assert_eq!(after.watched, before.watched);
    }

    #[test]
    fn all_invalid_fields_of_a_patch_are_named() {
        let before = record("Backup", 1, "2026-11-20T00:00:00Z");
        let now = "2026-11-21T00:00:00Z";
        let patch = json!({"name": "a\nb", "grace_minutes": 0, "schedule": {"at": "2020-01-01T00:00:00Z"}});
        let told = patched(&before, patch, now).unwrap_err().to_string();
        for field in ["name", "grace_minutes", "schedule"] {
            assert!(told.contains(field), "{told}");
        }
        let told = patched(&before, json!({"schedule": {"every": "1h", "jitter": "1m"}}), now).unwrap_err();
        assert!(told.to_string().contains("schedule.jitter"), "{told}");
    }

    #[test]
    fn one_is_found_by_its_id_or_its_name() {
        let now = "2026-11-20T00:00:00Z";
        let all = [record("Backup", 1, now), record("Mirror", 2, now), record("mirror", 3, now)];
        let id = |at: usize| all[at].watched.watched_id;
        assert_eq!(find(&all, " BACKUP "), Ok(id(0)));
        assert_eq!(find(&all, &id(2).to_string()), Ok(id(2)));
        assert!(find(&all, "mirror").unwrap_err().contains(&id(1).to_string()));
        assert!(find(&all, "nothing").unwrap_err().contains("\"Backup\""));
        assert_eq!(find(&[], "x"), Err("there are no watched schedules".to_owned()));
    }

    #[test]
    fn a_namesake_is_another_one_with_the_same_name() {
        let now = "2026-11-20T00:00:00Z";
        let all = [record("Backup", 1, now), record("Straße", 2, now)];
        let id = |at: usize| all[at].watched.watched_id;
        assert_eq!(namesake(&all, id(1), " bACKUP "), Some(id(0)));
        assert_eq!(namesake(&all, id(0), "BACKUP"), None, "its own name in other letters");
        assert_eq!(namesake(&all, id(0), "STRASSE"), None);
        assert_eq!(namesake(&all, id(0), "Back up"), None);
    }

    #[test]
    fn a_record_and_a_report_read_back() {
        let now = ts("2026-11-20T00:00:00Z");
        let record = record("Backup", 1, "2026-11-20T00:00:00Z");
        let json = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<WatchedRecord>(&json).unwrap(), record);
        record.check().unwrap();
        let report = Report { at: now, ok: true, summary: "s".to_owned(), link: None, exit_code: Some(0) };
        let stored =
            WatchedReport { report_id: ReportId::from_uuid(Uuid::from_u128(7)), report: report.clone() };
        let json = serde_json::to_string(&stored).unwrap();
        assert_eq!(serde_json::from_str::<WatchedReport>(&json).unwrap(), stored);
        stored.check().unwrap();
        let long =
            WatchedReport { report: Report { summary: "x".repeat(501), ..report.clone() }, ..stored.clone() };
        assert!(long.check().is_err());
        let link = Some("javascript:alert(1)".to_owned());
        assert!(WatchedReport { report: Report { link, ..report }, ..stored }.check().is_err());
    }
}
