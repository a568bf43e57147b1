//! A schedule as an English sentence.

use jiff::Timestamp;
use jiff::civil::{DateTime, Weekday};
use jiff::tz::TimeZone;

use super::{Cron, Schedule, Timing};

/// The English names of the months, January first.
pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// `time_of_days`: what is said of an `every` of whole days that has no `start_at`.
pub(super) fn sentence(schedule: &Schedule, time_of_days: &str) -> String {
    let local = |instant: jiff::Timestamp| wall(schedule.time_zone().to_datetime(instant));
    let mut text = match schedule.timing() {
        Timing::At(moment) => {
            let when = moment.instant(schedule.time_zone()).map_or_else(|| moment.to_string(), local);
            format!("Once, on {when}")
        }
        Timing::Every(length) => format!("Every {}{time_of_days}", without_one(&length.words())),
        Timing::Cron(cron) => cron_words(cron),
    };
    if let Some(start) = schedule.starts() {
        text.push_str(&format!(", from {}", local(start)));
    }
    if let Some(end) = schedule.ends() {
        text.push_str(&format!(", until {}", local(end)));
    }
    text.push_str(&format!(" ({}).", schedule.timezone()));
    text
}

/// When an `every` of whole days runs that counts from `anchor`: " at 14:03", and of whole weeks " on Saturday at 14:03". Without an anchor,
/// it will count from its approval. Empty for other schedules.
pub(super) fn time_of_days(schedule: &Schedule, anchor: Option<Timestamp>) -> String {
    let Timing::Every(length) = schedule.timing() else { return String::new() };
    let Some(days) = length.calendar_days().filter(|_| schedule.starts().is_none()) else {
        return String::new();
    };
    let Some(local) = anchor.map(|anchor| schedule.time_zone().to_datetime(anchor)) else {
        return ", at the time of the approval".to_owned();
    };
    let day = match days % 7 {
        0 => format!(" on {}", weekday(local.weekday())),
        _ => String::new(),
    };
    format!("{day} at {:02}:{:02}", local.hour(), local.minute())
}

fn weekday(day: Weekday) -> &'static str {
    WEEKDAYS[usize::try_from(day.to_sunday_zero_offset()).unwrap_or_default()]
}

/// A moment as a person in this zone says it: "Wednesday, 25 November 2026, 14:31 (Europe/Berlin, UTC+01:00)". The offset tells the
/// two hours apart that have the same name when the clock is set back.
#[must_use]
pub fn moment_in_words(at: Timestamp, zone: &TimeZone) -> String {
    let local = at.to_zoned_datetime(zone.clone());
    let weekday = weekday(local.weekday());
    let month = MONTHS[usize::try_from(local.month() - 1).unwrap_or_default()];
    format!(
        "{weekday}, {} {month} {}, {} ({}, UTC{})",
        local.day(),
        local.year(),
        local.strftime("%H:%M"),
        zone.iana_name().unwrap_or("UTC"),
        local.strftime("%:z"),
    )
}

fn wall(at: DateTime) -> String {
    let seconds = if at.second() == 0 { String::new() } else { format!(":{:02}", at.second()) };
    format!(
        "{} {} {} at {:02}:{:02}{seconds}",
        at.day(),
        MONTHS[usize::try_from(at.month() - 1).unwrap_or_default()],
        at.year(),
        at.hour(),
        at.minute()
    )
}

/// "1 hour" becomes "hour", for "every hour". "1 hour 30 minutes" is unchanged.
fn without_one(words: &str) -> String {
    match words.strip_prefix("1 ") {
        Some(unit) if !unit.contains(' ') => unit.to_owned(),
        _ => words.to_owned(),
    }
}

fn cron_words(cron: &Cron) -> String {
    let mut text = clock(cron);
    if let Some(days) = days(cron) {
        text.push(' ');
        text.push_str(&days);
    }
    let months = cron.months();
    if months.len() < 12 {
        let names = spans(&months, |month| MONTHS[usize::from(month) - 1].to_owned());
        text.push_str(&format!(" in {names}"));
    }
    text
}

fn clock(cron: &Cron) -> String {
    let (minutes, hours) = (cron.minutes(), cron.hours());
    let padded = |minute: &u8| format!(":{minute:02}");
    let every_minutes = step(&minutes, 60);
    match (minutes.as_slice(), hours.as_slice()) {
        (_, hours) if hours.len() == 24 => match (every_minutes, minutes.as_slice()) {
            (Some(1), _) => "Every minute".to_owned(),
            (_, [0]) => "Every hour".to_owned(),
            (Some(step), _) if minutes.len() > 1 => format!("Every {step} minutes"),
            (_, minutes) => {
                format!("Every hour at {}", list(&minutes.iter().map(padded).collect::<Vec<_>>()))
            }
        },
        ([0], hours) if hours.len() > 3 && step(hours, 24).is_some() => {
            format!("Every {} hours from midnight", step(hours, 24).unwrap_or(1))
        }
        (minutes, hours) if minutes.len() * hours.len() <= 6 => {
            let times: Vec<String> = hours
                .iter()
                .flat_map(|hour| minutes.iter().map(move |minute| format!("{hour:02}:{minute:02}")))
                .collect();
            format!("At {}", list(&times))
        }
        (minutes, hours) => {
            let hours = spans(hours, |hour| hour.to_string());
            match every_minutes {
                Some(1) => format!("Every minute of the hours {hours}"),
                Some(step) => format!("Every {step} minutes in the hours {hours}"),
                None => {
                    format!(
                        "At {} in the hours {hours}",
                        list(&minutes.iter().map(padded).collect::<Vec<_>>())
                    )
                }
            }
        }
    }
}

fn days(cron: &Cron) -> Option<String> {
    let (days, weekdays) = (cron.days(), cron.weekdays());
    let mut of_month = (!days.is_empty()).then(|| {
        format!(
            "day{} {} of the month",
            if days.len() == 1 { "" } else { "s" },
            spans(&days, |day| day.to_string())
        )
    });
    if cron.last_day() {
        let last = "the last day of the month".to_owned();
        of_month = Some(of_month.map_or_else(|| last.clone(), |days| format!("{days} and {last}")));
    }
    let of_week = match weekdays.as_slice() {
        [1, 2, 3, 4, 5] => "weekdays".to_owned(),
        [0, 6] => "weekends".to_owned(),
        // The week begins on Monday here.
        weekdays => {
            let from_monday: Vec<u8> = weekdays.iter().map(|day| (day + 6) % 7).collect();
            let mut sorted = from_monday;
            sorted.sort_unstable();
            spans(&sorted, |day| WEEKDAYS[usize::from((day + 1) % 7)].to_owned())
        }
    };
    let all_days = days.len() == 31;
    match (all_days, weekdays.len() == 7, of_month) {
        (true, true, _) => None,
        (true, false, _) if cron.both_days() => Some(format!("on {of_week}")),
        (_, true, Some(of_month)) if cron.both_days() => Some(format!("on {of_month}")),
        (_, _, Some(of_month)) if cron.both_days() => Some(format!("on {of_week}, if it is {of_month}")),
        (_, _, Some(of_month)) => Some(format!("on {of_month} and on {of_week}")),
        (_, _, None) => Some(format!("on {of_week}")),
    }
}

/// The step of values that are evenly spaced from 0 through the whole range.
fn step(values: &[u8], range: u8) -> Option<u8> {
    let [0, second, ..] = values else { return None };
    let even = range.is_multiple_of(*second)
        && values.len() == usize::from(range / second)
        && values.windows(2).all(|pair| pair[1] - pair[0] == *second);
    even.then_some(*second)
}

/// "Monday to Wednesday and Friday": three or more neighbouring values become a range.
fn spans(values: &[u8], name: impl Fn(u8) -> String) -> String {
    let mut parts = Vec::new();
    for run in values.chunk_by(|a, b| a + 1 == *b) {
        match run {
            [first, _, .., last] => parts.push(format!("{} to {}", name(*first), name(*last))),
            few => parts.extend(few.iter().map(|value| name(*value))),
        }
    }
    list(&parts)
}

fn list(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each day of a year, and the moments around each change of the clock. The other side are the formats of `jiff`.
    #[test]
    fn every_day_of_a_year_is_told_in_twelve_zones() {
        let (start, end): (Timestamp, Timestamp) =
            ("2026-11-21T12:00:00Z".parse().unwrap(), "2027-11-21T12:00:00Z".parse().unwrap());
        for name in [
            "Europe/Berlin",
            "Europe/Dublin",
            "America/New_York",
            "America/St_Johns",
            "America/Santiago",
            "Africa/Casablanca",
            "Africa/Cairo",
            "Asia/Beirut",
            "Australia/Lord_Howe",
            "Asia/Kathmandu",
            "Asia/Tokyo",
            "UTC",
        ] {
            let zone = TimeZone::get(name).unwrap();
            let hours = (0..365 * 8).map(|n| start + jiff::SignedDuration::from_mins(180 * n));
            let changes = zone.following(start).map(|change| change.timestamp());
            let changes = changes.take_while(|change| *change < end);
            let seconds =
                changes.flat_map(|change| [-1, 0, 1].map(|n| change + jiff::SignedDuration::from_secs(n)));
            let format = format!("%A, %-d %B %Y, %H:%M ({name}, UTC%:z)");
            for at in hours.chain(seconds) {
                let expected = at.to_zoned_datetime(zone.clone()).strftime(&format).to_string();
                assert_eq!(moment_in_words(at, &zone), expected);
            }
        }
    }

    #[test]
    fn a_moment_is_told_in_the_zone_of_the_person() {
        let told = |at: &str, zone: &str| {
            moment_in_words(at.parse().expect("an instant"), &TimeZone::get(zone).expect("a zone"))
        };
        for (at, zone, expected) in [
            (
                "2026-11-25T13:31:59Z",
                "Europe/Berlin",
                "Wednesday, 25 November 2026, 14:31 (Europe/Berlin, UTC+01:00)",
            ),
            (
                "2026-11-30T23:30:00Z",
                "Asia/Kathmandu",
                "Tuesday, 1 December 2026, 05:15 (Asia/Kathmandu, UTC+05:45)",
            ),
            (
                "2027-01-01T04:00:00Z",
                "America/New_York",
                "Thursday, 31 December 2026, 23:00 (America/New_York, UTC-05:00)",
            ),
            ("2026-03-01T00:00:00Z", "UTC", "Sunday, 1 March 2026, 00:00 (UTC, UTC+00:00)"),
            // The clock is set forward at 02:00, and back at 03:00.
            (
                "2026-03-29T00:59:00Z",
                "Europe/Berlin",
                "Sunday, 29 March 2026, 01:59 (Europe/Berlin, UTC+01:00)",
            ),
            (
                "2026-03-29T01:00:00Z",
                "Europe/Berlin",
                "Sunday, 29 March 2026, 03:00 (Europe/Berlin, UTC+02:00)",
            ),
            (
                "2026-10-25T00:30:00Z",
                "Europe/Berlin",
                "Sunday, 25 October 2026, 02:30 (Europe/Berlin, UTC+02:00)",
            ),
            (
                "2026-10-25T01:30:00Z",
                "Europe/Berlin",
                "Sunday, 25 October 2026, 02:30 (Europe/Berlin, UTC+01:00)",
            ),
        ] {
            assert_eq!(told(at, zone), expected);
        }
    }
}
