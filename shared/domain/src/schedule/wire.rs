//! A schedule as JSON: flat, as people write it.

use std::borrow::Cow;

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use utoipa::openapi::{RefOr, Schema};

use super::{CatchUp, Cron, Length, Moment, Overlap, Schedule, Timing, zone};
use crate::validate::FieldErrors;

const MINUTE: i64 = 60;
const DAY: i64 = 86_400;

/// The times at which an action is due, before they are checked. Exactly one of `at`, `every` and `cron`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Schedule, examples(
    json!({"cron": "0 9 * * MON-FRI", "timezone": "Europe/Berlin"}),
    json!({"at": "2026-12-01T09:00", "timezone": "America/New_York"}),
    json!({"every": "15m", "overlap": "skip", "catch_up": "latest", "max_age": "1h", "jitter": "30s"}),
))]
pub struct ScheduleInput {
    /// Once: an RFC 3339 instant, or a date and time in `timezone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "2026-12-01T09:00")]
    pub at: Option<String>,
    /// Repeatedly: a length of time from one minute to 366 days. It counts from `start_at` if that is given, otherwise from the moment at
    /// which the action became due. Whole days and weeks (`1d`, `1w`) are calendar days in `timezone`, at the same time of the clock. Anything
    /// else is elapsed time: `24h` is 24 hours, also when the clock changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "1h 30m")]
    pub every: Option<String>,
    /// Minute, hour, day of month, month and day of week. Lists, ranges, steps, names (`JAN`, `MON`), 0 and 7 for
    /// Sunday, `L` for the last day of the month, `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`. If both days
    /// are restricted, either one matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "0 9 * * MON-FRI")]
    pub cron: Option<String>,
    /// An IANA name. Default: the account's time zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "Europe/Berlin")]
    pub timezone: Option<String>,
    /// What happens to a fire time while an earlier run is live. Default: `skip`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Overlap>,
    /// What happens to fire times that are found late, after an outage. Default: `latest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catch_up: Option<CatchUp>,
    /// How late a fire time may still be caught up, from one minute to 366 days. Default: one day for `latest`, seven
    /// days for `all`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "1d")]
    pub max_age: Option<String>,
    /// No fire time is before this. `every` counts from it. Not allowed with `at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<String>,
    /// No fire time is after this. A fire time at exactly this instant counts. Not allowed with `at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_at: Option<String>,
    /// Spreads the load: each fire is delayed by up to this long (at most 24 hours, and never past the next fire time).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "30s")]
    pub jitter: Option<String>,
}

impl ScheduleInput {
    /// The schedule in the zone with this name, if it names none.
    #[must_use]
    pub fn or_in(self, zone: &str) -> Self {
        Self { timezone: self.timezone.or_else(|| Some(zone.to_owned())), ..self }
    }

    /// Without a zone, UTC.
    ///
    /// # Errors
    /// Every invalid field, with its limit.
    pub fn validate(self) -> Result<Schedule, FieldErrors> {
        let mut errors = FieldErrors::default();
        let zone = match &self.timezone {
            Some(name) => keep(&mut errors, "timezone", zone::parse(name)),
            None => Some(TimeZone::UTC),
        };
        let timing = self.timing(&mut errors);
        let once = self.at.is_some();
        let start_at =
            self.start_at.as_deref().and_then(|text| keep(&mut errors, "start_at", Moment::parse(text)));
        let end_at = self.end_at.as_deref().and_then(|text| keep(&mut errors, "end_at", Moment::parse(text)));
        for (field, given) in [("start_at", start_at.is_some()), ("end_at", end_at.is_some())] {
            if once && given {
                errors.add(field, "must not be given together with `at`");
            }
        }
        let catch_up = self.catch_up.unwrap_or_default();
        let max_age = self.max_age.or_else(|| match catch_up {
            CatchUp::None => None,
            CatchUp::Latest => Some("1d".to_owned()),
            CatchUp::All => Some("7d".to_owned()),
        });
        let max_age = max_age
            .and_then(|text| keep(&mut errors, "max_age", bounded(&text, MINUTE..=366 * DAY, "1m", "366d")));
        let jitter =
            self.jitter.and_then(|text| keep(&mut errors, "jitter", bounded(&text, 0..=DAY, "0s", "24h")));
        let (Some(zone), Some(timing)) = (zone, timing) else { return Err(errors) };
        let overlap = self.overlap.unwrap_or_default();
        let schedule = Schedule { timing, zone, overlap, catch_up, max_age, start_at, end_at, jitter };
        if let (Some(start), Some(end)) = (schedule.starts(), schedule.ends()) {
            if end < start {
                errors.add("end_at", "must not be before `start_at`");
            } else if schedule.next_after(start, start - jiff::SignedDuration::from_secs(1)).is_none() {
                errors.add("end_at", "must leave at least one fire time after `start_at`");
            }
        }
        errors.into_result(schedule)
    }

    fn timing(&self, errors: &mut FieldErrors) -> Option<Timing> {
        match (&self.at, &self.every, &self.cron) {
            (Some(at), None, None) => keep(errors, "at", Moment::parse(at)).map(Timing::At),
            (None, Some(every), None) => {
                keep(errors, "every", bounded(every, MINUTE..=366 * DAY, "1m", "366d")).map(Timing::Every)
            }
            (None, None, Some(cron)) => keep(errors, "cron", Cron::parse(cron)).map(Timing::Cron),
            _ => {
                errors.add("", "must have exactly one of `at`, `every` and `cron`");
                None
            }
        }
    }
}

fn keep<T>(errors: &mut FieldErrors, field: &str, result: Result<T, String>) -> Option<T> {
    result.map_err(|message| errors.add(field, message)).ok()
}

fn bounded(
    text: &str,
    limits: std::ops::RangeInclusive<i64>,
    least: &str,
    most: &str,
) -> Result<Length, String> {
    let length = Length::parse(text)?;
    if limits.contains(&length.seconds()) {
        Ok(length)
    } else {
        Err(format!("must be {least} to {most}, is {length}"))
    }
}

impl TryFrom<ScheduleInput> for Schedule {
    type Error = FieldErrors;
    fn try_from(input: ScheduleInput) -> Result<Self, FieldErrors> {
        input.validate()
    }
}

/// With all defaults filled in.
impl From<Schedule> for ScheduleInput {
    fn from(schedule: Schedule) -> Self {
        let timezone = Some(schedule.timezone().to_owned());
        let mut input = Self {
            timezone,
            overlap: Some(schedule.overlap),
            catch_up: Some(schedule.catch_up),
            max_age: schedule.max_age.map(|length| length.to_string()),
            start_at: schedule.start_at.map(|moment| moment.to_string()),
            end_at: schedule.end_at.map(|moment| moment.to_string()),
            jitter: schedule.jitter.map(|length| length.to_string()),
            ..Self::default()
        };
        match schedule.timing {
            Timing::At(moment) => input.at = Some(moment.to_string()),
            Timing::Every(length) => input.every = Some(length.to_string()),
            Timing::Cron(cron) => input.cron = Some(cron.to_string()),
        }
        input
    }
}

impl utoipa::PartialSchema for Schedule {
    fn schema() -> RefOr<Schema> {
        ScheduleInput::schema()
    }
}

impl utoipa::ToSchema for Schedule {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Schedule")
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        ScheduleInput::schemas(schemas);
    }
}
