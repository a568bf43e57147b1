//! Five cron fields: minute (0–59), hour (0–23), day of month (1–31), month (1–12), day of week (0–7, 0 and 7 are Sunday).
//!
//! A field is a list of `*`, `n` and `a-b`. Each may have a step: `*/15`, `8-18/2`, and `5/15`, which runs from 5 to
//! the end of the range. Months and days of the week have names (`JAN`, `MON`, in any case). `L` in the day of month is
//! the last day of the month. `@hourly`, `@daily`, `@weekly`, `@monthly` and `@yearly` fire at the beginning of each
//! hour, day, week (Sunday), month or year.
//!
//! Day of month and day of week follow the classic rule: **if both are restricted, either one matches** (`0 9 13 * FRI`
//! is every 13th *and* every Friday). A field that begins with `*` counts as unrestricted, even with a step. Then both
//! must match (`0 9 */2 * MON` is the Mondays with an odd date).

use std::fmt;

use jiff::civil::{Date, DateTime, DateTimeRound, Time};
use jiff::{RoundMode, ToSpan, Unit};

/// A cron expression, as its text and as sets of bits. It fires at least once in every 60 years.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    text: String,
    minutes: u64,
    hours: u64,
    days: u64,
    last_day: bool,
    months: u64,
    weekdays: u64,
    /// Whether day of month and day of week must both match.
    both_days: bool,
}

/// The longest possible wait: a 29th of February on a given day of the week, across a year like 2100.
const HORIZON_YEARS: i16 = 60;
const ALL_HOURS: u64 = (1 << 24) - 1;

struct Field {
    name: &'static str,
    least: u8,
    most: u8,
    /// The names of the values, beginning with `least`.
    names: &'static [&'static str],
}

const MINUTE: Field = Field { name: "minute", least: 0, most: 59, names: &[] };
const HOUR: Field = Field { name: "hour", least: 0, most: 23, names: &[] };
const DAY: Field = Field { name: "day of month", least: 1, most: 31, names: &[] };
const MONTH: Field = Field {
    name: "month",
    least: 1,
    most: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
const WEEKDAY: Field = Field {
    name: "day of week",
    least: 0,
    most: 7,
    names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
};

impl Cron {
    /// # Errors
    /// What is wrong. The message follows the name of a field.
    pub fn parse(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let text = words.join(" ");
        if text.len() > 256 {
            return Err(format!("must be at most 256 characters, is {}", text.len()));
        }
        let expanded = match text.to_ascii_lowercase().as_str() {
            "@hourly" => "0 * * * *",
            "@daily" | "@midnight" => "0 0 * * *",
            "@weekly" => "0 0 * * 0",
            "@monthly" => "0 0 1 * *",
            "@yearly" | "@annually" => "0 0 1 1 *",
            other if other.starts_with('@') => {
                return Err(format!(
                    "must be five fields or one of @hourly, @daily, @weekly, @monthly and @yearly, is {text:?}"
                ));
            }
            _ => text.as_str(),
        };
        let fields: Vec<&str> = expanded.split(' ').filter(|field| !field.is_empty()).collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            return Err(format!(
                "must have five fields (minute, hour, day of month, month, day of week), has {}",
                fields.len()
            ));
        };
        let (numbered_days, last_day): (Vec<&str>, Vec<&str>) =
            day.split(',').partition(|item| !item.eq_ignore_ascii_case("l"));
        let weekdays = WEEKDAY.parse(weekday)?;
        let cron = Self {
            minutes: MINUTE.parse(minute)?,
            hours: HOUR.parse(hour)?,
            days: if numbered_days.is_empty() { 0 } else { DAY.parse(&numbered_days.join(","))? },
            last_day: !last_day.is_empty(),
            months: MONTH.parse(month)?,
            weekdays: (weekdays | weekdays >> 7) & 0x7f,
            both_days: day.starts_with('*') || weekday.starts_with('*'),
            text,
        };
        if cron.can_fire() {
            Ok(cron)
        } else {
            Err("must name a day that exists in one of its months".to_owned())
        }
    }

    /// Whether it fires in every hour. Then it is an interval and not an appointment.
    #[must_use]
    pub const fn is_interval(&self) -> bool {
        self.hours == ALL_HOURS
    }

    /// The first matching minute that does not begin before `from`. `None` only at the end of the calendar.
    #[must_use]
    pub fn at_or_after(&self, from: DateTime) -> Option<DateTime> {
        let to_next_minute = DateTimeRound::new().smallest(Unit::Minute).mode(RoundMode::Ceil);
        let minute = from.round(to_next_minute).ok()?;
        let last_year = minute.year().checked_add(HORIZON_YEARS)?;
        let (mut date, mut earliest) = (minute.date(), minute.time());
        while date.year() <= last_year {
            if !has(self.months, date.month()) {
                date = date.last_of_month().checked_add(1.day()).ok()?;
            } else {
                if self.runs_on(date)
                    && let Some(time) = self.time_at_or_after(earliest)
                {
                    return Some(date.to_datetime(time));
                }
                date = date.tomorrow().ok()?;
            }
            earliest = Time::midnight();
        }
        None
    }

    /// Whether it fires at the wall time `at`. Seconds are ignored.
    #[must_use]
    pub fn matches(&self, at: DateTime) -> bool {
        has(self.minutes, at.minute())
            && has(self.hours, at.hour())
            && has(self.months, at.month())
            && self.runs_on(at.date())
    }

    fn runs_on(&self, date: Date) -> bool {
        let day = has(self.days, date.day()) || self.last_day && date.day() == date.days_in_month();
        let weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        if self.both_days { day && weekday } else { day || weekday }
    }

    fn time_at_or_after(&self, from: Time) -> Option<Time> {
        let (hour, minute) = (from.hour(), from.minute());
        if has(self.hours, hour)
            && let Some(minute) = lowest(self.minutes, minute)
        {
            return Some(Time::constant(hour, minute, 0, 0));
        }
        let hour = lowest(self.hours, hour + 1)?;
        Some(Time::constant(hour, lowest(self.minutes, 0)?, 0, 0))
    }

    /// Whether one of its days exists in one of its months. If so, it fires on every day of the week at some time.
    fn can_fire(&self) -> bool {
        const LONGEST: [i8; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let some_day = |month: u8| {
            self.last_day || lowest(self.days, 0).is_some_and(|day| day <= LONGEST[usize::from(month) - 1])
        };
        !self.both_days || (1..=12).any(|month| has(self.months, month) && some_day(month))
    }

    pub(super) fn minutes(&self) -> Vec<u8> {
        values(self.minutes)
    }

    pub(super) fn hours(&self) -> Vec<u8> {
        values(self.hours)
    }

    pub(super) fn days(&self) -> Vec<u8> {
        values(self.days)
    }

    pub(super) fn months(&self) -> Vec<u8> {
        values(self.months)
    }

    pub(super) fn weekdays(&self) -> Vec<u8> {
        values(self.weekdays)
    }

    pub(super) const fn last_day(&self) -> bool {
        self.last_day
    }

    pub(super) const fn both_days(&self) -> bool {
        self.both_days
    }
}

/// As it was written, with single spaces.
impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Field {
    fn parse(&self, text: &str) -> Result<u64, String> {
        text.split(',').try_fold(0, |bits, item| Ok(bits | self.item(item)?))
    }

    fn item(&self, item: &str) -> Result<u64, String> {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(self.step(step)?)),
            None => (item, None),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (self.least, self.most),
            Some((first, last)) => (self.value(first)?, self.value(last)?),
            None => {
                let value = self.value(range)?;
                (value, if step.is_some() { self.most } else { value })
            }
        };
        // "SAT-SUN": Sunday may be the last day of a range as well as the first.
        let last = if self.most == WEEKDAY.most && last == 0 && first > 0 { 7 } else { last };
        if first > last {
            return Err(self.wrong(&format!("has the range {range:?}, which ends before it begins")));
        }
        Ok((first..=last).step_by(usize::from(step.unwrap_or(1))).fold(0, |bits, value| bits | 1 << value))
    }

    fn step(&self, text: &str) -> Result<u8, String> {
        number(text)
            .filter(|step| (1..=self.most).contains(step))
            .ok_or_else(|| self.wrong(&format!("must have a step of 1 to {}, has {text:?}", self.most)))
    }

    fn value(&self, text: &str) -> Result<u8, String> {
        let named = self.names.iter().zip(self.least..).find(|(name, _)| name.eq_ignore_ascii_case(text));
        named
            .map(|(_, value)| value)
            .or_else(|| number(text).filter(|value| (self.least..=self.most).contains(value)))
            .ok_or_else(|| {
                let names = match self.names {
                    [first, .., last] => format!(" or {} to {}", first.to_uppercase(), last.to_uppercase()),
                    _ => String::new(),
                };
                self.wrong(&format!("must be {} to {}{names}, is {text:?}", self.least, self.most))
            })
    }

    fn wrong(&self, what: &str) -> String {
        format!("the {} {what}", self.name)
    }
}

/// One or two digits, without sign or spaces.
fn number(text: &str) -> Option<u8> {
    let digits = matches!(text.len(), 1 | 2) && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

fn has(bits: u64, value: impl TryInto<u32>) -> bool {
    value.try_into().is_ok_and(|value| bits >> value & 1 == 1)
}

/// The lowest value of the set that is not below `from`.
fn lowest(bits: u64, from: impl TryInto<u32>) -> Option<i8> {
    let from = from.try_into().ok()?;
    let rest = bits.checked_shr(from)?;
    if rest == 0 { None } else { i8::try_from(from + rest.trailing_zeros()).ok() }
}

fn values(bits: u64) -> Vec<u8> {
    (0..64u8).filter(|value| has(bits, *value)).collect()
}
