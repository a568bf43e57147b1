//! Three seasons of ninety days with clock changes: in most zones, twice in one, at midnight, and by half an hour.

use domain::schedule::CatchUp::{All, Latest, None as Never};
use domain::schedule::Overlap::{Queue, Replace, Skip};
use jiff::civil::{DateTime, Weekday};
use jiff::{SignedDuration, Timestamp};

use crate::appointments::Timing::{At, Every, Shown, Wall};
use crate::appointments::{Appointment, Timing};
use crate::season::Season;

fn clock(wall: DateTime, hours: &[i8], minutes: &[i8]) -> bool {
    hours.contains(&wall.hour()) && minutes.contains(&wall.minute())
}

/// An hour before midnight. Nuuk skips this hour; Cairo, Beirut and Santiago have it twice.
const LATE: Timing = Wall("0 23 * * *", |wall| clock(wall, &[23], &[0]));
const AT_NIGHT: Timing = Wall("30 2 * * *", |wall| clock(wall, &[2], &[30]));
const TWICE: Timing = Wall("30 2,14 * * *", |wall| clock(wall, &[2, 14], &[30]));
const FOUR: Timing = Wall("0,30 1,2 * * *", |wall| clock(wall, &[1, 2], &[0, 30]));
const MIDNIGHT: Timing = Wall("0 0 * * *", |wall| clock(wall, &[0], &[0]));
const WORKDAYS: Timing = Wall("0 9 * * MON-FRI", |wall| {
    clock(wall, &[9], &[0]) && !matches!(wall.weekday(), Weekday::Saturday | Weekday::Sunday)
});
const MONTHLY: Timing = Wall("0 8 1,L * *", |wall| {
    clock(wall, &[8], &[0]) && (wall.day() == 1 || wall.day() == wall.days_in_month())
});
const HOURLY: Timing = Shown("0 * * * *", |wall| wall.minute() == 0);
const QUARTERS: Timing = Wall("*/15 4 * * *", |wall| clock(wall, &[4], &[0, 15, 30, 45]));

fn utc(text: &str) -> Timestamp {
    text.parse().expect("an instant")
}

/// The seasons, with the given shares of duplicates and kills.
#[must_use]
pub fn seasons(duplicates: f64, killed: f64) -> [Season; 3] {
    let season = |start, outage, zone, once: &[Appointment]| {
        let start = utc(start);
        let outage = (utc(outage), utc(outage) + SignedDuration::from_hours(72));
        let appointments = [&appointments(zone, outage)[..], once].concat();
        Season { start, days: 90, outage, appointments, duplicates, killed, seed: 1 }
    };
    let once = |wall, zone, catch_up| Appointment::new(At(wall), zone, Skip, catch_up);
    [
        // Casablanca's clock changes twice. The outage includes the clock change of most of Europe.
        season(
            "2026-02-01T12:00:00Z",
            "2026-03-27T12:00:00Z",
            "Europe/Berlin",
            &[
                once("2026-03-08T02:30", "America/New_York", Latest),
                once("2026-03-29T02:30", "Europe/Berlin", Never),
                once("2026-03-30T10:00", "Europe/Berlin", Latest),
                once("2026-03-28T10:00", "Europe/Berlin", Latest),
            ],
        ),
        // The outage includes the clock change of North America.
        season(
            "2026-09-20T12:00:00Z",
            "2026-10-31T06:30:00Z",
            "America/New_York",
            &[
                once("2026-10-25T02:30", "Europe/Berlin", Latest),
                once("2026-11-01T01:30", "America/New_York", All),
            ],
        ),
        season(
            "2027-01-15T12:00:00Z",
            "2027-03-12T18:15:00Z",
            "America/New_York",
            &[
                once("2027-03-27T23:00", "America/Nuuk", Latest),
                once("2027-03-13T00:00", "UTC", All).max_age_hours(24),
            ],
        ),
    ]
}

/// The appointments of every season. Some are due only around the outage, in a zone whose clock changes during it.
fn appointments(zone: &'static str, outage: (Timestamp, Timestamp)) -> Vec<Appointment> {
    let day = SignedDuration::from_hours(24);
    let around = |days: i32| (outage.0 - day * days, outage.1 + day * days);
    let (near, wide) = (around(1), around(20));
    vec![
        Appointment::new(LATE, "America/Nuuk", Skip, All),
        Appointment::new(LATE, "Africa/Cairo", Skip, Latest),
        Appointment::new(LATE, "Asia/Beirut", Queue, Never),
        Appointment::new(LATE, "America/Santiago", Replace, All).max_age_hours(30),
        Appointment::new(AT_NIGHT, "Africa/Casablanca", Skip, Latest),
        Appointment::new(AT_NIGHT, "Australia/Lord_Howe", Replace, Latest).max_age_hours(1),
        Appointment::new(TWICE, "Europe/Berlin", Queue, All).max_age_hours(48),
        Appointment::new(FOUR, "America/New_York", Skip, Latest).between(wide.0, near.1),
        Appointment::new(MIDNIGHT, "Asia/Beirut", Skip, All),
        Appointment::new(WORKDAYS, "Asia/Kathmandu", Queue, Latest).jitter_minutes(20),
        Appointment::new(MONTHLY, "Pacific/Auckland", Skip, All),
        Appointment::new(HOURLY, zone, Skip, All).between(near.0, near.1),
        Appointment::new(HOURLY, zone, Queue, Never).between(near.0, near.1),
        Appointment::new(HOURLY, "Australia/Lord_Howe", Replace, Latest).between(near.0, near.1),
        Appointment::new(Every(12), "UTC", Skip, Never),
        Appointment::new(Every(24), "UTC", Queue, All).max_age_hours(36),
        Appointment::new(Every(48), "UTC", Replace, Latest).jitter_minutes(10),
        // The run of a killed executor stays live for longer than the interval between these due times.
        Appointment::new(QUARTERS, "UTC", Skip, Latest).between(wide.0, near.1),
        Appointment::new(QUARTERS, "UTC", Queue, All).between(wide.0, near.1),
        Appointment::new(QUARTERS, "UTC", Replace, Latest).between(wide.0, near.1),
    ]
}
