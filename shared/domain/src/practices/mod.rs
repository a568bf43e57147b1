//! Practices: habits that a person tracks day by day.
//!
//! A check-in says whether a practice was done on a day. [`Practice`] also has a mark of each check-in ([`Marks`]), so its streaks
//! are computed from one record, however long its history is. Days are calendar days, and a mark names no time zone: after a
//! change of the zone or of the target, the history counts as it is.

mod marks;
mod streak;
#[cfg(test)]
mod streak_tests;

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::PracticeId;
use crate::schedule::timezone_named;
use crate::text::names;
use crate::validate::FieldErrors;

pub use marks::{DaySet, Marks};
pub use streak::{Streak, StreakUnit};

/// The longest name, in characters.
pub const MAX_NAME: usize = 120;
/// The longest description or note, in characters.
pub const MAX_TEXT: usize = 1_000;
/// The most practices of an owner, with archived ones.
pub const MAX_PRACTICES: usize = 100;
/// How many days ago the day of a check-in may be.
pub const MAX_DAYS_AGO: i32 = 366;
/// How many days [`PracticeView`] shows, with today.
pub const LAST_DAYS: i32 = 14;
/// How many notes a practice's record has. Today is among the days of the newest three check-ins, even if the zone has changed and
/// check-ins are of days that have not begun here: the dates of two zones differ by at most two days.
const MAX_NOTES: usize = 3;

/// A day of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum PracticeDay {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

impl PracticeDay {
    pub const ALL: [Self; 7] = [Self::Mon, Self::Tue, Self::Wed, Self::Thu, Self::Fri, Self::Sat, Self::Sun];

    #[must_use]
    pub fn of(day: Weekday) -> Self {
        Self::ALL[usize::from(day.to_monday_zero_offset().unsigned_abs()) % 7]
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Mon => "Monday",
            Self::Tue => "Tuesday",
            Self::Wed => "Wednesday",
            Self::Thu => "Thursday",
            Self::Fri => "Friday",
            Self::Sat => "Saturday",
            Self::Sun => "Sunday",
        }
    }
}

/// How often a practice should be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case", try_from = "TargetFields")]
pub enum Target {
    /// On each of these days of the week. A streak counts days.
    Days {
        /// At least one.
        #[schema(value_type = Vec<PracticeDay>, min_items = 1, max_items = 7, example = json!(["mon", "wed", "fri"]))]
        days: BTreeSet<PracticeDay>,
    },
    /// On any days, this many times in a week from Monday to Sunday. A streak counts weeks.
    TimesAWeek {
        /// 1 to 7.
        #[schema(minimum = 1, maximum = 7, example = 3)]
        times: u8,
    },
}

/// A target as it arrives. So an error about a field has the path of the field.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetFields {
    kind: TargetKind,
    days: Option<BTreeSet<PracticeDay>>,
    times: Option<i64>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TargetKind {
    Days,
    TimesAWeek,
}

impl TryFrom<TargetFields> for Target {
    type Error = String;

    /// The errors have the words of serde, which the readers of input put into plain words.
    fn try_from(fields: TargetFields) -> Result<Self, String> {
        match fields {
            TargetFields { kind: TargetKind::Days, days, times: None } => {
                let days = days.unwrap_or_else(|| PracticeDay::ALL.into());
                if days.is_empty() {
                    return Err("must name at least one of mon, tue, wed, thu, fri, sat, sun".to_owned());
                }
                Ok(Self::Days { days })
            }
            TargetFields { kind: TargetKind::TimesAWeek, days: None, times } => {
                let times = times.ok_or("missing field `times`")?;
                match u8::try_from(times) {
                    Ok(times @ 1..=7) => Ok(Self::TimesAWeek { times }),
                    _ => Err(format!("must have 1 to 7 `times`, has {times}")),
                }
            }
            TargetFields { kind: TargetKind::Days, .. } => {
                Err("unknown field `times`, expected `kind` or `days`".to_owned())
            }
            TargetFields { kind: TargetKind::TimesAWeek, .. } => {
                Err("unknown field `days`, expected `kind` or `times`".to_owned())
            }
        }
    }
}

impl Default for Target {
    fn default() -> Self {
        Self::Days { days: PracticeDay::ALL.into() }
    }
}

impl Target {
    /// The target in words, such as "every day" or "3 times a week".
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Self::Days { days } if days.len() == 7 => "every day".to_owned(),
            Self::Days { days } => {
                let names: Vec<&str> = days.iter().map(|day| day.name()).collect();
                match names.split_last() {
                    Some((last, rest)) if !rest.is_empty() => {
                        format!("every {} and {last}", rest.join(", "))
                    }
                    _ => format!("every {}", names.join("")),
                }
            }
            Self::TimesAWeek { times: 1 } => "once a week".to_owned(),
            Self::TimesAWeek { times } => format!("{times} times a week"),
        }
    }
}

/// Whether a person works on a practice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PracticeStatus {
    #[default]
    Active,
    /// It is kept for reading. It is not due, and takes no check-ins.
    Archived,
}

/// A practice as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Practice {
    pub practice_id: PracticeId,
    pub name: String,
    pub description: String,
    pub target: Target,
    /// Absent: the zone of the account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    pub status: PracticeStatus,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// The version for clients. It counts the changes that people make, and not the check-ins: a check-in must not make an edit fail.
    pub edition: u64,
    /// A mark of each check-in.
    #[serde(default)]
    pub marks: Marks,
    /// Its check-ins are being deleted. For clients it does not exist any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_deleted: bool,
}

/// The fields of a new practice.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[schema(example = json!({
    "name": "Read for twenty minutes", "target": {"kind": "days", "days": ["mon", "tue", "wed", "thu", "fri"]},
}))]
pub struct NewPractice {
    /// 1 to 120 characters.
    #[serde(default)]
    #[schema(required = true, min_length = 1, max_length = 120)]
    pub name: String,
    /// Up to 1,000 characters.
    #[serde(default)]
    #[schema(max_length = 1_000)]
    pub description: String,
    /// Default: every day.
    #[serde(default)]
    pub target: Option<Target>,
    /// The zone in which its days begin and end: an IANA name. Default: the zone of the account.
    #[serde(default)]
    #[schema(example = "Europe/Berlin")]
    pub timezone: Option<String>,
}

/// A change of a practice. Omitted fields keep their values.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
pub struct PracticePatch {
    /// 1 to 120 characters.
    #[schema(min_length = 1, max_length = 120)]
    pub name: Option<String>,
    /// Up to 1,000 characters.
    #[schema(max_length = 1_000)]
    pub description: Option<String>,
    /// The streaks are computed again from all check-ins, as if this had always been the target.
    pub target: Option<Target>,
    /// An IANA name. An empty text: the zone of the account. The days of earlier check-ins stay the same.
    #[schema(example = "Europe/Berlin")]
    pub timezone: Option<String>,
    pub status: Option<PracticeStatus>,
}

/// Whether a practice was done on a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CheckIn {
    #[schema(value_type = String, format = Date, example = "2026-11-26")]
    pub date: Date,
    /// `false`: it was deliberately not done. This does not count.
    pub done: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub note: String,
    /// When the person said it.
    pub checked_at: Timestamp,
}

/// A new check-in. It replaces an earlier one of the same day.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[schema(example = json!({"note": "Two chapters"}))]
pub struct NewCheckIn {
    /// The day, such as `2026-11-26`: not in the future, and at most 366 days ago. Default: today, in the zone of the practice.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = Date)]
    pub date: Option<String>,
    /// `false`: it was deliberately not done. Default: `true`.
    #[serde(default)]
    #[schema(default = true)]
    pub done: Option<bool>,
    /// Up to 1,000 characters.
    #[serde(default)]
    #[schema(max_length = 1_000)]
    pub note: String,
}

/// A practice as clients see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct PracticeView {
    pub practice_id: PracticeId,
    pub name: String,
    pub description: String,
    pub target: Target,
    /// The target in words.
    #[schema(example = "every Monday, Wednesday and Friday")]
    pub target_text: String,
    /// Its own zone. Absent: the zone of the account.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "Europe/Berlin")]
    pub timezone: Option<String>,
    pub status: PracticeStatus,
    pub streak: Streak,
    pub today: PracticeToday,
    /// The last 14 days, oldest first. The last one is today.
    pub last_days: Vec<PracticeDate>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Send it in `If-Match`. A check-in does not change it.
    pub version: u64,
}

/// A day of a practice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct PracticeDate {
    #[schema(value_type = String, format = Date, example = "2026-11-26")]
    pub date: Date,
    /// Whether it is a day on which the practice should be done. With `times_a_week`: whether the week needed more on that day. No day
    /// is due before the practice was created or first checked in.
    pub due: bool,
    /// `null`: there is no check-in.
    #[schema(required = true)]
    pub done: Option<bool>,
}

/// Today, in the zone of the practice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct PracticeToday {
    #[serde(flatten)]
    pub day: PracticeDate,
    /// The note of today's check-in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Reads a day as the platform writes it: `2026-11-26`.
///
/// # Errors
/// What is wrong, as a predicate.
pub fn day_named(text: &str) -> Result<Date, &'static str> {
    let told = "must be a day such as 2026-11-26, in the years 1970 to 9000";
    match text.parse::<Date>() {
        // The parser also accepts other forms, such as 20261126.
        Ok(day) if day.to_string() == text && (1970..=9000).contains(&day.year()) => Ok(day),
        _ => Err(told),
    }
}

/// The calendar day at this time in this zone.
#[must_use]
pub fn today(now: Timestamp, zone: &TimeZone) -> Date {
    zone.to_datetime(now).date()
}

impl NewPractice {
    /// # Errors
    /// Every invalid field with its limit.
    pub fn into_practice(self, practice_id: PracticeId, now: Timestamp) -> Result<Practice, FieldErrors> {
        Practice {
            practice_id,
            name: names::canonical(&self.name),
            description: self.description.trim().to_owned(),
            target: self.target.unwrap_or_default(),
            timezone: self.timezone.filter(|name| !name.trim().is_empty()),
            status: PracticeStatus::Active,
            created_at: now,
            updated_at: now,
            edition: 1,
            marks: Marks::default(),
            is_deleted: false,
        }
        .validated()
    }
}

impl NewCheckIn {
    /// The check-in, with the day of `now` in the practice's zone as the default.
    ///
    /// # Errors
    /// Every invalid field with its limit.
    pub fn into_check_in(self, now: Timestamp, zone: &TimeZone) -> Result<CheckIn, FieldErrors> {
        let mut errors = FieldErrors::default();
        let today = today(now, zone);
        let first = today.saturating_sub(MAX_DAYS_AGO.days());
        let date = match self.date.as_deref().map(day_named) {
            None => today,
            Some(Ok(date)) if date > today => {
                let zone = zone.iana_name().unwrap_or("UTC");
                errors.add("date", format!("must not be after today, which is {today} in {zone}; is {date}"));
                date
            }
            Some(Ok(date)) if date < first => {
                let told = format!("must be at most {MAX_DAYS_AGO} days ago, from {first} on; is {date}");
                errors.add("date", told);
                date
            }
            Some(Ok(date)) => date,
            Some(Err(told)) => {
                errors.add("date", told);
                today
            }
        };
        let note = self.note.trim().to_owned();
        errors.length("note", &note, 0, MAX_TEXT);
        errors.into_result(CheckIn { date, done: self.done.unwrap_or(true), note, checked_at: now })
    }
}

impl CheckIn {
    /// Checks the limits of every check-in, wherever it comes from.
    ///
    /// # Errors
    /// Every invalid field with its limit.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        if let Err(told) = day_named(&self.date.to_string()) {
            errors.add("date", told);
        }
        errors.length("note", &self.note, 0, MAX_TEXT);
        errors.time("checked_at", self.checked_at);
        errors.into_result(())
    }
}

impl Practice {
    /// The practice with `patch` applied.
    ///
    /// # Errors
    /// Every invalid field with its limit.
    pub fn patched(self, patch: PracticePatch, now: Timestamp) -> Result<Self, FieldErrors> {
        let trimmed = |new: Option<String>, old: String| new.map_or(old, |text| text.trim().to_owned());
        Self {
            name: patch.name.map_or(self.name, |name| names::canonical(&name)),
            description: trimmed(patch.description, self.description),
            target: patch.target.unwrap_or(self.target),
            timezone: patch.timezone.or(self.timezone).filter(|name| !name.trim().is_empty()),
            status: patch.status.unwrap_or(self.status),
            updated_at: now,
            edition: self.edition.saturating_add(1),
            ..self
        }
        .validated()
    }

    fn validated(mut self) -> Result<Self, FieldErrors> {
        self.check()?;
        // As the time zone database spells it.
        self.timezone = self.timezone.and_then(|name| timezone_named(&name).ok());
        Ok(self)
    }

    /// Checks the limits of every practice, wherever it comes from.
    ///
    /// # Errors
    /// Every invalid field with its limit.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        names::check(&mut errors, &self.name, MAX_NAME);
        errors.length("description", &self.description, 0, MAX_TEXT);
        if let Some(Err(message)) = self.timezone.as_deref().map(timezone_named) {
            errors.add("timezone", message);
        }
        errors.time("created_at", self.created_at);
        errors.time("updated_at", self.updated_at);
        errors.nest("marks", self.marks.check());
        errors.into_result(())
    }

    /// The practice with this check-in. It replaces an earlier one of the same day.
    #[must_use]
    pub fn checked_in(mut self, check_in: &CheckIn) -> Self {
        self.marks.set(check_in.date, check_in.done, &check_in.note);
        self
    }

    /// The practice without the check-in of a day. `None` if that day has none.
    #[must_use]
    pub fn without(mut self, day: Date) -> Option<Self> {
        self.marks.of(day)?;
        self.marks.clear(day);
        Some(self)
    }

    /// What clients see at this time. `zone` is the zone of the account, for a practice without a zone of its own.
    #[must_use]
    pub fn view(self, now: Timestamp, zone: &TimeZone) -> PracticeView {
        let zone = self.zone(zone);
        let today = today(now, &zone);
        let streak = streak::streak(&self.target, &self.marks.done, today, &zone);
        // A day without a check-in is not missed if the practice did not exist.
        let created = self::today(self.created_at, &zone);
        let begins = self.marks.first().map_or(created, |first| first.min(created));
        let day = |date: Date| PracticeDate {
            date,
            due: date >= begins && streak::is_due(&self.target, &self.marks.done, date),
            done: self.marks.of(date),
        };
        let last_days = (0..LAST_DAYS).rev().map(|ago| day(today.saturating_sub(ago.days()))).collect();
        let mut of_today = day(today);
        of_today.due &= self.status == PracticeStatus::Active;
        PracticeView {
            streak,
            today: PracticeToday { day: of_today, note: self.marks.note(today).map(str::to_owned) },
            last_days,
            practice_id: self.practice_id,
            name: self.name,
            description: self.description,
            target_text: self.target.in_words(),
            target: self.target,
            timezone: self.timezone,
            status: self.status,
            created_at: self.created_at,
            updated_at: self.updated_at,
            version: self.edition,
        }
    }

    /// Its own zone, or that of the account.
    #[must_use]
    pub fn zone(&self, account: &TimeZone) -> TimeZone {
        self.timezone.as_deref().map_or_else(|| account.clone(), crate::schedule::zone_or_utc)
    }
}

/// Finds the practice that a person or a model means: by its id, by its whole name, or by a part of the name if only one practice has
/// it. Case does not matter.
///
/// # Errors
/// A sentence with the names of the practices that fit, or of all.
pub fn find<'a>(practices: &'a [Practice], named: &str) -> Result<&'a Practice, String> {
    /// How many names a sentence has.
    const MAX_NAMED: usize = 20;
    let wanted = names::folded(named);
    let fits = |fit: &dyn Fn(&Practice) -> bool| -> Vec<&'a Practice> {
        practices.iter().filter(|practice| fit(practice)).collect()
    };
    let by_id = fits(&|practice| practice.practice_id.to_string() == wanted);
    let whole = fits(&|practice| names::folded(&practice.name) == wanted);
    let part = fits(&|practice| names::folded(&practice.name).contains(&wanted));
    let list = |practices: &[&Practice]| {
        let rows: BTreeMap<String, &str> = practices
            .iter()
            .take(MAX_NAMED)
            .map(|practice| (practice.practice_id.to_string(), practice.name.as_str()))
            .collect();
        let rows: Vec<String> = rows.into_iter().map(|(id, name)| format!("{name:?} ({id})")).collect();
        rows.join(", ")
    };
    for found in [by_id, whole, part] {
        match found.as_slice() {
            [] => {}
            [one] => return Ok(one),
            several => return Err(format!("several practices fit: {}; name one by its id", list(several))),
        }
    }
    let all: Vec<&Practice> = practices.iter().collect();
    Err(match all.is_empty() {
        true => "the person has no practices".to_owned(),
        false => format!("there is no practice with this name or id; there are {}", list(&all)),
    })
}
