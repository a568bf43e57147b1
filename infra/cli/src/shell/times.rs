//! Times of the API in the person's zone, and times that a person writes.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, ZonedDateTime};
use serde_json::Value;

use super::screen::line;
use super::values::Fields;
use crate::Failure;

/// The zone of an account. Of one that can't be read, UTC.
#[must_use]
pub fn zone(account: &Value) -> TimeZone {
    TimeZone::get(account.text("timezone")).unwrap_or(TimeZone::UTC)
}

/// A time for people, such as `Mon 09:00`. What is more than six days away has its date. A text that is no time is shown as it is.
#[must_use]
pub fn when(text: &str, zone: &TimeZone, now: Timestamp) -> String {
    let Ok(at) = text.parse::<Timestamp>() else { return line(text) };
    let (at, now) = (at.to_zoned_datetime(zone.clone()), now.to_zoned_datetime(zone.clone()));
    let days = at.date().since(now.date()).map_or(i32::MAX, |span| span.get_days());
    let form = match days {
        -6..=6 => "%a %H:%M",
        _ if at.year() == now.year() => "%a %-d %b %H:%M",
        _ => "%-d %b %Y %H:%M",
    };
    at.strftime(form).to_string()
}

/// How long something took, such as `4 s`.
#[must_use]
pub fn between(from: &str, to: &str) -> Option<String> {
    let (from, to) = (from.parse::<Timestamp>().ok()?, to.parse::<Timestamp>().ok()?);
    let seconds = to.duration_since(from).as_secs();
    Some(match seconds {
        ..0 => return None,
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3_600),
    })
}

/// The instant that a person writes: `09:00` (today), `2026-11-25 09:00`, `2026-11-25T09:00:00Z`, or a day. `ends` says whether a
/// day stands for its end.
///
/// # Errors
/// If it is none of these.
pub fn instant(
    text: &str,
    option: &str,
    zone: &TimeZone,
    now: Timestamp,
    ends: bool,
) -> Result<Timestamp, Failure> {
    let text = text.trim();
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    let today = now.to_zoned_datetime(zone.clone()).date();
    // The parser of times also takes the time of a date.
    let time = if text.len() <= "09:00:00".len() { text.parse::<Time>().ok() } else { None };
    let civil = if let Some(time) = time {
        Some(today.to_datetime(time))
    } else if text.len() <= 10 {
        let day = text.parse::<Date>().ok();
        let day = if ends { day.and_then(|day| day.checked_add(1.day()).ok()) } else { day };
        day.map(|day| day.to_datetime(Time::midnight()))
    } else {
        text.parse::<DateTime>().ok()
    };
    let at = civil
        .and_then(|civil| civil.to_zoned_datetime(zone.clone()).ok())
        .map(|zoned: ZonedDateTime| zoned.timestamp());
    at.ok_or_else(|| {
        Failure::Message(format!(
            "{option} must be a time such as `09:00`, `2026-11-25`, `2026-11-25 09:00` or `2026-11-25T09:00:00Z`, is `{text}`"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone() -> TimeZone {
        TimeZone::get("Europe/Berlin").unwrap()
    }

    fn now() -> Timestamp {
        "2026-11-25T22:30:00Z".parse().unwrap()
    }

    #[test]
    fn a_time_is_told_in_the_zone_of_the_person() {
        for (text, told) in [
            ("2026-11-25T22:30:00Z", "Wed 23:30"),
            ("2026-11-25T23:30:00Z", "Thu 00:30"),
            ("2026-12-01T08:00:00Z", "Tue 09:00"),
            ("2026-12-02T08:00:00Z", "Wed 2 Dec 09:00"),
            ("2026-11-19T08:00:00.123456Z", "Thu 09:00"),
            ("2026-11-18T08:00:00Z", "Wed 18 Nov 09:00"),
            ("2025-11-18T08:00:00Z", "18 Nov 2025 09:00"),
            ("2026-07-01T08:00:00Z", "Wed 1 Jul 10:00"),
            ("soon\u{1b}[2J", "soon\\u{1b}[2J"),
            ("", ""),
        ] {
            assert_eq!(when(text, &zone(), now()), told, "{text}");
        }
    }

    #[test]
    fn a_person_writes_times_in_their_zone() {
        let read = |text, ends| instant(text, "--at", &zone(), now(), ends).map(|at| at.to_string());
        for (text, at) in [
            ("2026-11-25T09:00:00Z", "2026-11-25T09:00:00Z"),
            ("2026-11-25T09:00:00+01:00", "2026-11-25T08:00:00Z"),
            ("2026-11-25 09:00", "2026-11-25T08:00:00Z"),
            ("2026-11-25T09:00", "2026-11-25T08:00:00Z"),
            (" 09:00 ", "2026-11-25T08:00:00Z"),
            ("2026-11-25", "2026-11-24T23:00:00Z"),
        ] {
            assert_eq!(read(text, false).unwrap(), at, "{text}");
        }
        assert_eq!(read("2026-11-25", true).unwrap(), "2026-11-25T23:00:00Z");
        // The clock goes forward at two.
        assert_eq!(read("2026-03-29 02:30", false).unwrap(), "2026-03-29T01:30:00Z");
        for text in ["", "soon", "25:00", "2026-13-01", "2026-02-30 09:00", "9999-12-31"] {
            assert!(read(text, true).is_err(), "{text}");
        }
        assert!(read("soon", false).unwrap_err().to_string().contains("--at must be a time"));
    }

    #[test]
    fn durations_have_one_unit() {
        for (to, told) in [("09:00:04", "4 s"), ("09:03:10", "3 min"), ("12:00:00", "3 h")] {
            assert_eq!(between("2026-11-25T09:00:00Z", &format!("2026-11-25T{to}Z")).unwrap(), told);
        }
        assert_eq!(between("2026-11-25T09:00:00Z", "2026-11-25T08:00:00Z"), None);
        assert_eq!(between("", "x"), None);
    }
}
