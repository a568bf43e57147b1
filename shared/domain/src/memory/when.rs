//! When memory is kept: a synchronisation every day at 23:00, and a clean-up every Sunday at 22:00, in the person's time zone.
//!
//! If the clock never shows such a time, it comes at the first instant after the gap. If the clock shows it twice, it comes at the
//! first. What was done is kept by date, so a call that comes early, late or twice does nothing twice.

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde::{Deserialize, Serialize};

use crate::schedule::first_instant;

/// The hour of the daily synchronisation.
pub const DAILY_HOUR: i8 = 23;
/// The hour of the weekly clean-up, on Sunday. It comes before the synchronisation of that day.
pub const WEEKLY_HOUR: i8 = 22;
/// The most weeks that [`due`] names at once. It names the others when these are done.
pub const MAX_WEEKS: usize = 8;

/// What was done last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Kept {
    /// The date of the last synchronisation.
    pub daily: Option<Date>,
    /// The Monday of the last week that was tidied.
    pub weekly: Option<Date>,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "job", content = "date", rename_all = "snake_case")]
pub enum Job {
    /// The synchronisation of this date, and of all dates before it that had none.
    Sync(Date),
    /// The clean-up of the week that begins with this Monday.
    Tidy(Date),
}

impl Job {
    /// When it is due.
    #[must_use]
    pub fn at(self, zone: &TimeZone) -> Timestamp {
        match self {
            Self::Sync(date) => instant(zone, date, DAILY_HOUR),
            Self::Tidy(monday) => instant(zone, sunday_of(monday), WEEKLY_HOUR),
        }
    }
}

impl Kept {
    /// After this job.
    #[must_use]
    pub fn after(self, job: Job) -> Self {
        match job {
            Job::Sync(date) => Self { daily: self.daily.max(Some(date)), ..self },
            Job::Tidy(monday) => Self { weekly: self.weekly.max(Some(monday)), ..self },
        }
    }
}

/// The Monday of the week of a date.
#[must_use]
pub fn monday_of(date: Date) -> Date {
    date.saturating_sub(i32::from(date.weekday().since(Weekday::Monday)).days())
}

fn sunday_of(date: Date) -> Date {
    monday_of(date).saturating_add(6.days())
}

fn instant(zone: &TimeZone, date: Date, hour: i8) -> Timestamp {
    first_instant(zone, date.at(hour, 0, 0, 0)).unwrap_or(Timestamp::MAX)
}

/// The newest of the dates from `newest` down, `days` apart, whose job has come. The local date alone does not say it: after the clock
/// was set back, it shows a date again.
fn last(now: Timestamp, newest: Date, days: i32, due: impl Fn(Date) -> Timestamp) -> Date {
    let mut date = newest;
    // The clock of a zone was never moved by more than a day, so two steps are the most.
    for _ in 0..8 {
        if due(date) <= now {
            break;
        }
        date = date.saturating_sub(days.days());
    }
    date
}

/// A date that no clock of this zone has passed.
fn ahead(now: Timestamp, zone: &TimeZone) -> Date {
    zone.to_datetime(now).date().saturating_add(2.days())
}

/// The date of the latest 23:00 that has come.
#[must_use]
pub fn last_daily(now: Timestamp, zone: &TimeZone) -> Date {
    last(now, ahead(now, zone), 1, |date| Job::Sync(date).at(zone))
}

/// The Monday of the latest week whose Sunday, 22:00, has come.
#[must_use]
pub fn last_weekly(now: Timestamp, zone: &TimeZone) -> Date {
    last(now, monday_of(ahead(now, zone)), 7, |monday| Job::Tidy(monday).at(zone))
}

/// The earliest time after `now` at which a synchronisation or a clean-up comes.
#[must_use]
pub fn next_due(now: Timestamp, zone: &TimeZone) -> Timestamp {
    let daily = Job::Sync(last_daily(now, zone).saturating_add(1.day()));
    let weekly = Job::Tidy(last_weekly(now, zone).saturating_add(7.days()));
    daily.at(zone).min(weekly.at(zone))
}

/// What is due, in the order of the due times. So Sunday's clean-up comes before Sunday's synchronisation, and after one of a day
/// before it, which may be late.
///
/// After an outage, one synchronisation covers all days, and has the date of the latest. Each missed week has its own clean-up, oldest
/// first, at most [`MAX_WEEKS`] at once. If nothing was ever done, the latest of both are due.
///
/// A person who moves to a zone where it is an earlier date waits until that date has come. So no date is used twice.
#[must_use]
pub fn due(kept: &Kept, now: Timestamp, zone: &TimeZone) -> Vec<Job> {
    let (daily, weekly) = (last_daily(now, zone), last_weekly(now, zone));
    let first = kept.weekly.map_or(weekly, |last| monday_of(last).saturating_add(7.days()));
    let weeks = first.series(7.days()).take_while(|monday| *monday <= weekly);
    let mut jobs: Vec<Job> = weeks.take(MAX_WEEKS).map(Job::Tidy).collect();
    if kept.daily.is_none_or(|last| daily > last) {
        jobs.push(Job::Sync(daily));
    }
    // A clean-up and a synchronisation at the same instant (both in one gap) keep this order.
    jobs.sort_by_key(|job| job.at(zone));
    jobs
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use jiff::SignedDuration;
    use jiff::civil::{DateTime, date};
    use proptest::prelude::*;

    use super::*;
    use crate::schedule::zone_or_utc;

    /// Zones with a beginning. In the year after it, each of them has something that makes dates difficult.
    const ZONES: [(&str, Date); 13] = [
        ("UTC", date(2026, 1, 1)),
        ("Europe/Berlin", date(2026, 1, 1)),
        // The clock is changed at 23:00 or at midnight.
        ("America/Nuuk", date(2027, 1, 1)),
        ("Asia/Beirut", date(2026, 1, 1)),
        ("Africa/Cairo", date(2026, 1, 1)),
        ("America/Santiago", date(2026, 1, 1)),
        // Dates that never came: 30 December 2011, 31 December 1994, 21 August 1993.
        ("Pacific/Apia", date(2011, 7, 1)),
        ("Pacific/Kiritimati", date(1994, 7, 1)),
        ("Pacific/Kwajalein", date(1993, 1, 1)),
        // Changes of half an hour and of two hours, and a zone with 45 minutes.
        ("Australia/Lord_Howe", date(2026, 1, 1)),
        ("Antarctica/Troll", date(2026, 1, 1)),
        ("Asia/Kathmandu", date(2026, 1, 1)),
        ("Etc/GMT+12", date(2026, 1, 1)),
    ];

    fn at(zone: &TimeZone, wall: &str) -> Timestamp {
        zone.to_timestamp(wall.parse::<DateTime>().unwrap()).unwrap()
    }

    fn local(zone: &TimeZone, at: Timestamp) -> String {
        at.to_zoned_datetime(zone.clone()).strftime("%a %Y-%m-%d %H:%M %:z").to_string()
    }

    #[test]
    fn the_last_times_that_have_come() {
        let zone = zone_or_utc("Europe/Berlin");
        // 2026-11-22 is a Sunday.
        for (now, daily, weekly) in [
            ("2026-11-22T21:59:59", "2026-11-21", "2026-11-09"),
            ("2026-11-22T22:00:00", "2026-11-21", "2026-11-16"),
            ("2026-11-22T22:59:59", "2026-11-21", "2026-11-16"),
            ("2026-11-22T23:00:00", "2026-11-22", "2026-11-16"),
            ("2026-11-23T00:00:00", "2026-11-22", "2026-11-16"),
            ("2026-11-28T23:00:00", "2026-11-28", "2026-11-16"),
            ("2026-12-31T23:30:00", "2026-12-31", "2026-12-21"),
        ] {
            let now_at = at(&zone, now);
            let found = (last_daily(now_at, &zone).to_string(), last_weekly(now_at, &zone).to_string());
            assert_eq!(found, (daily.to_owned(), weekly.to_owned()), "{now}");
        }
        for day in 16..=22 {
            assert_eq!(monday_of(date(2026, 11, day)), date(2026, 11, 16));
        }
        assert_eq!(monday_of(Date::MIN), Date::MIN);
    }

    #[test]
    fn the_next_time_on_days_when_the_clock_changes() {
        for (zone, from, expected) in [
            ("Europe/Berlin", "2026-10-24T23:00", "Sun 2026-10-25 22:00 +01:00"),
            ("Europe/Berlin", "2026-10-25T22:00", "Sun 2026-10-25 23:00 +01:00"),
            ("Europe/Berlin", "2026-10-25T22:59:59.999", "Sun 2026-10-25 23:00 +01:00"),
            ("Europe/Berlin", "2026-10-25T23:00", "Mon 2026-10-26 23:00 +01:00"),
            // 23:00 does not exist, and 22:00 on a Sunday either.
            ("America/Nuuk", "2027-03-27T12:00", "Sun 2027-03-28 00:00 -01:00"),
            ("America/Nuuk", "2027-03-28T00:00", "Sun 2027-03-28 22:00 -01:00"),
            // 23:00 exists twice: the first.
            ("Africa/Cairo", "2026-10-29T12:00", "Thu 2026-10-29 23:00 +03:00"),
            // Friday did not exist. Its synchronisation comes with the first minute of Saturday.
            ("Pacific/Apia", "2011-12-29T12:00", "Thu 2011-12-29 23:00 -10:00"),
            ("Pacific/Apia", "2011-12-29T23:00", "Sat 2011-12-31 00:00 +14:00"),
            ("Pacific/Apia", "2011-12-31T00:00", "Sat 2011-12-31 23:00 +14:00"),
            ("Antarctica/Troll", "2026-10-24T23:00", "Sun 2026-10-25 22:00 +00:00"),
        ] {
            let named = zone;
            let zone = zone_or_utc(zone);
            assert_eq!(local(&zone, next_due(at(&zone, from), &zone)), expected, "{named} {from}");
        }
        // In the second hour of the same name, the first has come.
        let cairo = zone_or_utc("Africa/Cairo");
        let second = at(&cairo, "2026-10-29T23:00") + SignedDuration::from_mins(90);
        assert_eq!(local(&cairo, second), "Thu 2026-10-29 23:30 +02:00");
        assert_eq!(last_daily(second, &cairo), date(2026, 10, 29));
        assert_eq!(local(&cairo, next_due(second, &cairo)), "Fri 2026-10-30 23:00 +02:00");
    }

    #[test]
    fn what_is_due_after_an_outage() {
        let zone = zone_or_utc("Europe/Berlin");
        let due_at = |daily: Option<Date>, weekly: Option<Date>, now: &str| {
            let jobs = due(&Kept { daily, weekly }, at(&zone, now), &zone);
            jobs.iter().map(|job| serde_json::to_string(job).unwrap()).collect::<Vec<_>>().join(" ")
        };
        let sync = |date: &str| format!(r#"{{"job":"sync","date":"{date}"}}"#);
        let tidy = |date: &str| format!(r#"{{"job":"tidy","date":"{date}"}}"#);
        let (day, week) = (Some(date(2026, 11, 21)), Some(date(2026, 11, 9)));
        assert_eq!(due_at(day, week, "2026-11-22T21:59"), "");
        assert_eq!(due_at(day, week, "2026-11-22T22:00"), tidy("2026-11-16"));
        // Both: the clean-up comes first.
        let both = format!("{} {}", tidy("2026-11-16"), sync("2026-11-22"));
        assert_eq!(due_at(day, week, "2026-11-22T23:00"), both);
        assert_eq!(
            due_at(day, week, "2026-11-25T12:00"),
            format!("{} {}", tidy("2026-11-16"), sync("2026-11-24"))
        );
        // A late synchronisation of Saturday is a part of the week that is tidied.
        assert_eq!(
            due_at(Some(date(2026, 11, 20)), week, "2026-11-22T22:30"),
            format!("{} {}", sync("2026-11-21"), tidy("2026-11-16"))
        );
        assert_eq!(
            due_at(Some(date(2026, 11, 6)), Some(date(2026, 10, 26)), "2026-11-24T12:00"),
            [tidy("2026-11-02"), tidy("2026-11-09"), tidy("2026-11-16"), sync("2026-11-23")].join(" ")
        );
        assert_eq!(
            due_at(None, None, "2026-11-25T12:00"),
            format!("{} {}", tidy("2026-11-16"), sync("2026-11-24"))
        );
        // After a year, eight weeks at once.
        let mut kept = Kept { daily: Some(date(2025, 11, 22)), weekly: Some(date(2025, 11, 17)) };
        let now = at(&zone, "2026-11-25T12:00");
        let mut done = Vec::new();
        for calls in 1.. {
            let jobs = due(&kept, now, &zone);
            if jobs.is_empty() {
                assert_eq!(calls, 8);
                break;
            }
            assert!(jobs.len() <= MAX_WEEKS + 1);
            for job in jobs {
                kept = kept.after(job);
                done.push(job);
            }
        }
        let mondays = date(2025, 11, 24).series(7.days()).take(52).map(Job::Tidy);
        assert!(mondays.eq(done.iter().copied().filter(|job| matches!(job, Job::Tidy(_)))));
        assert_eq!(done.iter().filter(|job| **job == Job::Sync(date(2026, 11, 24))).count(), 1);
    }

    #[test]
    fn the_ends_of_the_calendar_do_not_panic() {
        for zone in ["UTC", "Pacific/Kiritimati", "Etc/GMT+12"].map(zone_or_utc) {
            for now in [Timestamp::MIN, Timestamp::MAX] {
                assert!(next_due(now, &zone) >= now);
                for last in [None, Some(Date::MIN), Some(Date::MAX)] {
                    assert!(due(&Kept { daily: last, weekly: last }, now, &zone).len() <= MAX_WEEKS + 1);
                }
            }
        }
    }

    /// Does what is due at `now`, and checks what must hold after it.
    fn call(kept: &mut Kept, now: Timestamp, zone: &TimeZone) -> Result<Vec<Job>, TestCaseError> {
        let jobs = due(kept, now, zone);
        for job in &jobs {
            prop_assert!(job.at(zone) <= now, "{job:?} is early");
            match *job {
                Job::Sync(date) => prop_assert!(kept.daily.is_none_or(|last| last < date), "{date} again"),
                Job::Tidy(monday) => {
                    prop_assert_eq!(monday.weekday(), Weekday::Monday);
                    let follows = kept.weekly.is_none_or(|last| monday == last + 7.days());
                    prop_assert!(follows, "{monday} after {:?}", kept.weekly);
                }
            }
            *kept = kept.after(*job);
        }
        prop_assert!(jobs.len() >= MAX_WEEKS || due(kept, now, zone).is_empty(), "nothing is left");
        Ok(jobs)
    }

    #[test]
    fn every_date_and_every_week_of_a_year_has_its_own() {
        for (name, begin) in ZONES {
            let zone = zone_or_utc(name);
            assert_eq!(zone.iana_name(), Some(name));
            let mut now = at(&zone, &format!("{begin}T12:00"));
            let mut kept =
                Kept { daily: Some(last_daily(now, &zone)), weekly: Some(last_weekly(now, &zone)) };
            let (mut dates, mut weeks) = (Vec::new(), Vec::new());
            while dates.len() < 366 {
                let next = next_due(now, &zone);
                assert!(next > now, "{name}");
                let just_before = next - SignedDuration::from_nanos(1);
                assert_eq!(due(&kept, just_before, &zone), [], "{name} {}", local(&zone, just_before));
                now = next;
                let jobs = call(&mut kept, now, &zone).unwrap();
                assert!(!jobs.is_empty(), "{name} {}", local(&zone, now));
                for job in jobs {
                    assert_eq!(job.at(&zone), now, "{name} {job:?}");
                    match job {
                        Job::Sync(date) => dates.push(date),
                        Job::Tidy(monday) => weeks.push(monday),
                    }
                }
            }
            assert!(begin.series(1.day()).take(366).eq(dates.iter().copied()), "{name}");
            assert!(monday_of(begin).series(7.days()).take(weeks.len()).eq(weeks.iter().copied()), "{name}");
            assert!(weeks.len() >= 52, "{name}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Calls come at the due times, at random times and twice. At times, nothing calls for up to a hundred days.
        #[test]
        fn outages_and_extra_calls_lose_and_repeat_nothing(
            zone in 0..ZONES.len(), steps in proptest::collection::vec((0..10_u8, 0..2_400_i64), 150)
        ) {
            let (name, begin) = ZONES[zone];
            let zone = zone_or_utc(name);
            let mut now = at(&zone, &format!("{begin}T12:00"));
            let mut kept = Kept { daily: Some(last_daily(now, &zone)), weekly: Some(last_weekly(now, &zone)) };
            let (mut dates, mut weeks) = (BTreeSet::new(), BTreeSet::new());
            for (kind, hours) in steps {
                let before = last_daily(now, &zone);
                now = match kind {
                    0 => now + SignedDuration::from_hours(hours),
                    1..=3 => now + SignedDuration::from_mins(hours),
                    4 => now,
                    _ => next_due(now, &zone),
                };
                loop {
                    let jobs = call(&mut kept, now, &zone)?;
                    for job in &jobs {
                        match *job {
                            Job::Sync(date) => {
                                prop_assert!(before < date, "{name}");
                                prop_assert!(dates.insert(date));
                            }
                            Job::Tidy(monday) => prop_assert!(weeks.insert(monday)),
                        }
                    }
                    if jobs.is_empty() {
                        break;
                    }
                }
                prop_assert_eq!(kept.daily, Some(last_daily(now, &zone)), "up to date");
                prop_assert_eq!(kept.weekly, Some(last_weekly(now, &zone)));
            }
            let all = monday_of(begin).series(7.days()).take_while(|monday| Some(*monday) <= kept.weekly);
            prop_assert!(all.eq(weeks.iter().copied()), "every week");
        }

        /// A person travels. No date is used twice, and within three days there is a synchronisation again.
        #[test]
        fn a_new_zone_repeats_nothing_and_skips_nothing(
            steps in proptest::collection::vec((0..4_u8, 0..ZONES.len(), 0..1_500_i64), 100)
        ) {
            let mut zone = TimeZone::UTC;
            let mut now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
            let (mut kept, mut synced) = (Kept::default(), now);
            for (kind, other, minutes) in steps {
                if kind == 0 {
                    zone = zone_or_utc(ZONES[other].0);
                }
                now = (now + SignedDuration::from_mins(minutes)).min(next_due(now, &zone));
                let jobs = call(&mut kept, now, &zone)?;
                if jobs.iter().any(|job| matches!(job, Job::Sync(_))) {
                    synced = now;
                }
                prop_assert!(now.duration_since(synced) <= SignedDuration::from_hours(72));
            }
        }
    }
}
