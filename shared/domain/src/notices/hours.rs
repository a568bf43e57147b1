//! Quiet hours, and the time of the digest, in the person's time zone.
//!
//! A time that the clock never shows is the first instant after the gap. A time that it shows twice is the first.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use super::{NoticeKind, Preferences, QuietHours};
use crate::schedule::first_instant;

/// How many quiet hours may follow each other without a break between them, such as around a date that a zone has left out.
const CHAINED: usize = 8;

/// When the quiet hours end, if this is in them. They begin at `from` and are over at `to`.
#[must_use]
pub fn quiet_until(hours: QuietHours, zone: &TimeZone, at: Timestamp) -> Option<Timestamp> {
    let today = zone.to_datetime(at).date();
    let is_over_midnight = hours.to <= hours.from;
    let nights = today.saturating_sub(2.days()).series(1.day()).take(4);
    let of_night = |date: Date| {
        let end = if is_over_midnight { date.checked_add(1.day()).ok()? } else { date };
        let begin = first_instant(zone, date.to_datetime(hours.from.time()))?;
        let end = first_instant(zone, end.to_datetime(hours.to.time()))?;
        (begin <= at && at < end).then_some(end)
    };
    nights.filter_map(of_night).max()
}

/// The first time from `at` on at which a notice of this kind may be sent.
#[must_use]
pub fn may_be_sent(kind: NoticeKind, preferences: &Preferences, zone: &TimeZone, at: Timestamp) -> Timestamp {
    let mut at = preferences.snoozed_until.map_or(at, |until| at.max(until));
    let Some(hours) = preferences.quiet_hours else { return at };
    if preferences.urgent_in_quiet_hours && kind.is_urgent() {
        return at;
    }
    for _ in 0..CHAINED {
        match quiet_until(hours, zone, at) {
            Some(end) => at = end,
            None => break,
        }
    }
    at
}

/// When the digest of a date is sent. Quiet hours do not delay it, because the person has chosen its time. A snooze does.
#[must_use]
pub fn digest_time(date: Date, preferences: &Preferences, zone: &TimeZone) -> Timestamp {
    let at = first_instant(zone, date.to_datetime(preferences.digest_at.time())).unwrap_or(Timestamp::MAX);
    preferences.snoozed_until.map_or(at, |until| at.max(until))
}

/// The date of the first digest after this.
#[must_use]
pub fn next_digest(preferences: &Preferences, zone: &TimeZone, at: Timestamp) -> Date {
    let today = zone.to_datetime(at).date();
    let unsnoozed = Preferences { snoozed_until: None, ..preferences.clone() };
    let mut dates = today.saturating_sub(2.days()).series(1.day()).take(6);
    dates.find(|date| digest_time(*date, &unsnoozed, zone) > at).unwrap_or(today)
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use jiff::civil::DateTime;

    use super::*;
    use crate::schedule::zone_or_utc;

    fn quiet(from: &str, to: &str) -> QuietHours {
        QuietHours { from: from.parse().unwrap(), to: to.parse().unwrap() }
    }

    fn at(zone: &TimeZone, wall: &str) -> Timestamp {
        zone.to_timestamp(wall.parse::<DateTime>().unwrap()).unwrap()
    }

    #[test]
    fn quiet_hours_go_over_midnight_and_over_clock_changes() {
        for (zone, from, to, now, expected) in [
            ("UTC", "22:00", "07:00", "2026-11-22T21:59:59", None),
            ("UTC", "22:00", "07:00", "2026-11-22T22:00:00", Some("2026-11-23T07:00")),
            ("UTC", "22:00", "07:00", "2026-11-23T06:59:59", Some("2026-11-23T07:00")),
            ("UTC", "22:00", "07:00", "2026-11-23T07:00:00", None),
            ("UTC", "12:00", "13:00", "2026-11-22T12:30:00", Some("2026-11-22T13:00")),
            ("UTC", "12:00", "13:00", "2026-11-22T22:30:00", None),
            ("UTC", "00:00", "23:59", "2026-11-22T00:00:00", Some("2026-11-22T23:59")),
            // 02:00 to 03:00 does not exist: the hours end with the gap, or begin with its end.
            ("Europe/Berlin", "22:00", "02:30", "2026-03-29T01:59:59", Some("2026-03-29T03:00")),
            ("Europe/Berlin", "22:00", "02:30", "2026-03-29T03:00:00", None),
            ("Europe/Berlin", "02:30", "06:00", "2026-03-29T03:00:00", Some("2026-03-29T06:00")),
            ("Europe/Berlin", "02:15", "02:45", "2026-03-29T03:00:00", None),
            // 02:00 to 03:00 exists twice: the first counts.
            ("Europe/Berlin", "22:00", "02:30", "2026-10-25T02:29:59", Some("2026-10-25T02:30")),
            ("America/Santiago", "22:00", "00:30", "2026-09-05T23:00:00", Some("2026-09-06T01:00")),
            // Friday did not exist.
            ("Pacific/Apia", "22:00", "07:00", "2011-12-29T23:00:00", Some("2011-12-31T07:00")),
        ] {
            let named = zone;
            let zone = zone_or_utc(zone);
            let preferences = Preferences { quiet_hours: Some(quiet(from, to)), ..Preferences::default() };
            let now_at = at(&zone, now);
            let sent = may_be_sent(NoticeKind::Failed, &preferences, &zone, now_at);
            let expected = expected.map_or(now_at, |wall| at(&zone, wall));
            assert_eq!(sent, expected, "{named} {from} to {to} at {now}");
        }
        // In the second hour of the same name, the quiet hours are over.
        let berlin = zone_or_utc("Europe/Berlin");
        let second = at(&berlin, "2026-10-25T02:10") + SignedDuration::from_hours(1);
        assert_eq!(quiet_until(quiet("22:00", "02:30"), &berlin, second), None);
    }

    #[test]
    fn a_switch_lets_urgent_notices_through_and_a_snooze_lets_nothing_through() {
        let zone = TimeZone::UTC;
        let night = at(&zone, "2026-11-22T23:00");
        let morning = at(&zone, "2026-11-23T07:00");
        let mut preferences =
            Preferences { quiet_hours: Some(quiet("22:00", "07:00")), ..Preferences::default() };
        let sent = |preferences: &Preferences, kind| may_be_sent(kind, preferences, &zone, night);
        assert_eq!(sent(&preferences, NoticeKind::NeedsAnswer), morning);
        preferences.urgent_in_quiet_hours = true;
        for (kind, expected) in [
            (NoticeKind::NeedsAnswer, night),
            (NoticeKind::Watchdog, night),
            (NoticeKind::Failed, morning),
            (NoticeKind::Budget, morning),
        ] {
            assert_eq!(sent(&preferences, kind), expected, "{kind}");
        }
        // A snooze that ends in quiet hours.
        let snoozed = at(&zone, "2026-11-24T01:00");
        preferences.snoozed_until = Some(snoozed);
        assert_eq!(sent(&preferences, NoticeKind::NeedsAnswer), snoozed);
        assert_eq!(sent(&preferences, NoticeKind::Failed), at(&zone, "2026-11-24T07:00"));
        assert_eq!(digest_time(jiff::civil::date(2026, 11, 23), &preferences, &zone), snoozed);
    }

    #[test]
    fn every_date_has_one_digest() {
        for zone in ["UTC", "Europe/Berlin", "Africa/Cairo", "Pacific/Apia", "America/Nuuk"] {
            let zone = zone_or_utc(zone);
            for time in ["08:00", "00:00", "02:30", "23:30"] {
                let preferences = Preferences { digest_at: time.parse().unwrap(), ..Preferences::default() };
                let mut now = at(&zone, "2011-06-01T12:00");
                let mut last = next_digest(&preferences, &zone, now);
                for _ in 0..800 {
                    now += SignedDuration::from_hours(12);
                    let next = next_digest(&preferences, &zone, now);
                    let sent = digest_time(next, &preferences, &zone);
                    assert!(next >= last && sent > now, "{time} {now}");
                    assert!(sent.duration_since(now) <= SignedDuration::from_hours(26), "{time} {now}");
                    last = next;
                }
            }
        }
    }

    #[test]
    fn the_ends_of_the_calendar_do_not_panic() {
        let preferences =
            Preferences { quiet_hours: Some(quiet("22:00", "07:00")), ..Preferences::default() };
        for zone in ["UTC", "Pacific/Kiritimati"].map(zone_or_utc) {
            for now in [Timestamp::MIN, Timestamp::MAX] {
                assert!(may_be_sent(NoticeKind::Failed, &preferences, &zone, now) >= now);
                let _ = next_digest(&preferences, &zone, now);
            }
        }
    }
}
