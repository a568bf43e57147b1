//! Streaks: how many due days or weeks in a row a practice was done.
//!
//! Only days up to today count. Today, and the week of today, never break a streak, because they are not over.

use jiff::civil::{Date, Weekday, date};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, ToSpan};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{DaySet, PracticeDay, Target};

/// What a streak counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreakUnit {
    /// Due days on which it was done.
    Days,
    /// Weeks from Monday to Sunday in which it was done often enough.
    Weeks,
}

/// How many due days or weeks in a row a practice was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Streak {
    /// The streak that goes on. A due day or a week that is not over does not break it.
    pub current: u32,
    /// The longest streak up to today.
    pub longest: u32,
    pub unit: StreakUnit,
    /// Today, in the zone of the practice.
    #[schema(value_type = String, format = Date, example = "2026-11-26")]
    pub as_of: Date,
}

/// Whether a practice should be done on a day.
pub(super) fn is_due(target: &Target, done: &DaySet, day: Date) -> bool {
    match target {
        Target::Days { days } => days.contains(&PracticeDay::of(day.weekday())),
        Target::TimesAWeek { times } => {
            let so_far = i32::from(day.weekday().since(Weekday::Monday));
            let count = (1..=so_far).filter(|ago| done.has(day.saturating_sub(ago.days()))).count();
            count < usize::from(*times)
        }
    }
}

/// The streaks as of today.
pub(super) fn streak(target: &Target, done: &DaySet, today: Date, zone: &TimeZone) -> Streak {
    let days = done.iter().take_while(|day| *day <= today);
    let (current, longest, unit) = match target {
        Target::Days { .. } => {
            let due: Vec<Date> = days.filter(|day| is_due(target, done, *day)).collect();
            let breaks = |from: Date, to: Date| has_missed_day(target, done, (from, to), zone);
            let (last, longest) = chains(&due, |earlier, later| !breaks(*earlier, *later));
            let goes_on = due.last().is_some_and(|newest| !breaks(*newest, today));
            (if goes_on { last } else { 0 }, longest, StreakUnit::Days)
        }
        Target::TimesAWeek { times } => {
            let mut weeks: Vec<(i64, u8)> = Vec::new();
            for day in days {
                match weeks.last_mut() {
                    Some((week, count)) if *week == week_of(day) => *count += 1,
                    _ => weeks.push((week_of(day), 1)),
                }
            }
            weeks.retain(|(_, count)| count >= times);
            let (last, longest) = chains(&weeks, |(earlier, _), (later, _)| later - earlier == 1);
            let goes_on = weeks.last().is_some_and(|(newest, _)| week_of(today) - newest <= 1);
            (if goes_on { last } else { 0 }, longest, StreakUnit::Weeks)
        }
    };
    Streak { current, longest, unit, as_of: today }
}

/// The lengths of the last chain and of the longest one.
fn chains<T>(entries: &[T], continues: impl Fn(&T, &T) -> bool) -> (u32, u32) {
    let (mut last, mut longest) = (0_u32, 0);
    for (n, entry) in entries.iter().enumerate() {
        last = if n > 0 && continues(&entries[n - 1], entry) { last + 1 } else { 1 };
        longest = longest.max(last);
    }
    (last, longest)
}

/// Whether a day between these two was due and is over. A day that the zone never had does not count: some places have skipped one when
/// they moved to the other side of the date line.
fn has_missed_day(target: &Target, done: &DaySet, (after, before): (Date, Date), zone: &TimeZone) -> bool {
    let between = after.series(1.day()).skip(1).take_while(|day| *day < before);
    between.filter(|day| is_due(target, done, *day)).any(|day| exists(day, zone))
}

fn exists(day: Date, zone: &TimeZone) -> bool {
    day.to_zoned_datetime(zone.clone()).map_or(true, |begins| begins.date() == day)
}

/// The number of a week. A week begins on Monday.
fn week_of(day: Date) -> i64 {
    const MONDAY: Date = date(1970, 1, 5);
    let days = day.duration_since(MONDAY).as_secs().div_euclid(SignedDuration::from_hours(24).as_secs());
    days.div_euclid(7)
}
