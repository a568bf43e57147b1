//! Fire times: tables for clock changes, and comparison with a search through every minute.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;

use super::{Cron, Schedule};
use crate::ids::ActionId;

fn schedule(value: serde_json::Value) -> Schedule {
    serde_json::from_value(value).unwrap()
}

fn ts(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// The first fire times after the local `from`, as local times with their offsets.
fn local_fires(json: serde_json::Value, from: &str, count: usize) -> Vec<String> {
    let schedule = schedule(json);
    let zone = schedule.time_zone().clone();
    let from = zone.to_timestamp(from.parse::<DateTime>().unwrap()).unwrap();
    schedule
        .fire_times(from, from, count)
        .into_iter()
        .map(|fire| {
            let zoned = fire.to_zoned_datetime(zone.clone());
            format!("{} {}", zoned.strftime("%Y-%m-%d %H:%M"), zoned.offset())
        })
        .collect()
}

#[test]
fn a_wall_time_happens_once_on_the_days_when_the_clock_changes() {
    let cases: [(&str, &str, &str, &[&str]); 13] = [
        // 23:00 does not exist, or exists twice.
        (
            "America/Nuuk",
            "0 23 * * *",
            "2027-03-26T12:00",
            &["2027-03-26 23:00 -02", "2027-03-28 00:00 -01", "2027-03-28 23:00 -01"],
        ),
        ("Africa/Cairo", "0 23 * * *", "2026-10-28T23:30", &["2026-10-29 23:00 +03", "2026-10-30 23:00 +02"]),
        ("Asia/Beirut", "0 23 * * *", "2026-10-23T23:30", &["2026-10-24 23:00 +03", "2026-10-25 23:00 +02"]),
        (
            "America/Santiago",
            "0 23 * * *",
            "2026-04-03T23:30",
            &["2026-04-04 23:00 -03", "2026-04-05 23:00 -04"],
        ),
        // 02:30 in Berlin and New York.
        (
            "Europe/Berlin",
            "30 2 * * *",
            "2026-03-28T12:00",
            &["2026-03-29 03:00 +02", "2026-03-30 02:30 +02"],
        ),
        (
            "Europe/Berlin",
            "30 2 * * *",
            "2026-10-24T12:00",
            &["2026-10-25 02:30 +02", "2026-10-26 02:30 +01"],
        ),
        (
            "America/New_York",
            "30 2 * * *",
            "2026-03-07T12:00",
            &["2026-03-08 03:00 -04", "2026-03-09 02:30 -04"],
        ),
        (
            "America/New_York",
            "30 1 * * *",
            "2026-10-31T12:00",
            &["2026-11-01 01:30 -04", "2026-11-02 01:30 -05"],
        ),
        // A change of half an hour.
        (
            "Australia/Lord_Howe",
            "15 2 * * *",
            "2026-10-03T12:00",
            &["2026-10-04 02:30 +11", "2026-10-05 02:15 +11"],
        ),
        (
            "Australia/Lord_Howe",
            "45 1 * * *",
            "2026-04-04T12:00",
            &["2026-04-05 01:45 +11", "2026-04-06 01:45 +10:30"],
        ),
        // Several times in one gap fire once. If the clock then shows one of these times, it is the same fire.
        (
            "Europe/Berlin",
            "0,20,40 2,3 29 3 *",
            "2026-03-28T12:00",
            &["2026-03-29 03:00 +02", "2026-03-29 03:20 +02", "2026-03-29 03:40 +02", "2027-03-29 02:00 +02"],
        ),
        // Midnight does not exist.
        ("Africa/Cairo", "@daily", "2027-04-29T12:00", &["2027-04-30 01:00 +03", "2027-05-01 00:00 +03"]),
        // A day that was skipped completely.
        (
            "Pacific/Apia",
            "0 9 * * *",
            "2011-12-29T08:00",
            &["2011-12-29 09:00 -10", "2011-12-31 00:00 +14", "2011-12-31 09:00 +14"],
        ),
    ];
    for (zone, cron, from, expected) in cases {
        let fires = local_fires(json!({"cron": cron, "timezone": zone}), from, expected.len());
        assert_eq!(fires, expected, "{cron} in {zone}");
    }
}

/// A day is a calendar day: the clock shows the same time before and after it was changed. 24 hours are 24 hours.
#[test]
fn every_day_is_at_the_same_time_of_the_clock_and_every_24_hours_is_not() {
    let every =
        |every: &str, start: &str, zone: &str| json!({"every": every, "start_at": start, "timezone": zone});
    let cases: [(serde_json::Value, &str, &[&str]); 13] = [
        (
            every("1d", "2026-10-23T09:00", "Europe/Berlin"),
            "2026-10-23T09:30",
            &["2026-10-24 09:00 +02", "2026-10-25 09:00 +01", "2026-10-26 09:00 +01"],
        ),
        (
            every("24h", "2026-10-23T09:00", "Europe/Berlin"),
            "2026-10-23T09:30",
            &["2026-10-24 09:00 +02", "2026-10-25 08:00 +01", "2026-10-26 08:00 +01"],
        ),
        (
            every("2 days", "2026-03-27T09:00", "Europe/Berlin"),
            "2026-03-26T09:30",
            &["2026-03-27 09:00 +01", "2026-03-29 09:00 +02", "2026-03-31 09:00 +02"],
        ),
        (
            every("P1W", "2026-03-02T09:00", "America/New_York"),
            "2026-03-02T09:00",
            &["2026-03-09 09:00 -04", "2026-03-16 09:00 -04"],
        ),
        // A day and a half is 36 hours.
        (
            every("1d 12h", "2026-10-24T09:00", "Europe/Berlin"),
            "2026-10-24T09:00",
            &["2026-10-25 20:00 +01", "2026-10-27 08:00 +01"],
        ),
        // The southern hemisphere: the clock is set forward in October, and back in April.
        (
            every("1d", "2026-10-02T09:00", "Australia/Sydney"),
            "2026-10-03T09:00",
            &["2026-10-04 09:00 +11", "2026-10-05 09:00 +11"],
        ),
        (
            every("1d", "2026-04-01T02:30", "Australia/Sydney"),
            "2026-04-04T12:00",
            &["2026-04-05 02:30 +11", "2026-04-06 02:30 +10"],
        ),
        // 23:00 does not exist, or exists twice.
        (
            every("1d", "2027-03-01T23:00", "America/Nuuk"),
            "2027-03-26T12:00",
            &["2027-03-26 23:00 -02", "2027-03-28 00:00 -01", "2027-03-28 23:00 -01"],
        ),
        (
            every("1d", "2026-10-01T23:00", "Africa/Cairo"),
            "2026-10-28T23:30",
            &["2026-10-29 23:00 +03", "2026-10-30 23:00 +02"],
        ),
        (
            every("1d", "2026-10-01T23:00", "Asia/Beirut"),
            "2026-10-23T23:30",
            &["2026-10-24 23:00 +03", "2026-10-25 23:00 +02"],
        ),
        (
            every("1d", "2026-04-01T23:00", "America/Santiago"),
            "2026-04-03T23:30",
            &["2026-04-04 23:00 -03", "2026-04-05 23:00 -04"],
        ),
        // It begins in the second pass of the repeated hour.
        (
            every("1d", "2026-10-25T02:30:00+01:00", "Europe/Berlin"),
            "2026-10-24T12:00",
            &["2026-10-25 02:30 +01", "2026-10-26 02:30 +01"],
        ),
        // A day that was skipped completely.
        (
            every("1d", "2011-12-28T00:00", "Pacific/Apia"),
            "2011-12-28T12:00",
            &["2011-12-29 00:00 -10", "2011-12-31 00:00 +14", "2012-01-01 00:00 +14"],
        ),
    ];
    for (json, from, expected) in cases {
        assert_eq!(local_fires(json.clone(), from, expected.len()), expected, "{json}");
    }
    // Without `start_at`, it counts from the anchor.
    let daily = schedule(json!({"every": "1d", "timezone": "Europe/Berlin"}));
    let (anchor, after) = (ts("2026-03-01T08:00:00Z"), ts("2026-07-01T12:00:00Z"));
    assert_eq!(daily.next_after(anchor, after), Some(ts("2026-07-02T07:00:00Z")));
    assert_eq!(daily.next_after(anchor, anchor), Some(ts("2026-03-02T08:00:00Z")));
    assert_eq!(daily.next_after(anchor, ts("2020-01-01T00:00:00Z")), Some(ts("2026-03-02T08:00:00Z")));
    // A month of days, of which one has 23 hours.
    assert_eq!(daily.count(anchor, anchor, ts("2026-03-31T07:00:00Z")), 30);
    assert_eq!(daily.count(anchor, anchor, ts("2026-03-31T06:59:59Z")), 29);
}

#[test]
fn an_interval_goes_by_the_clock_as_it_runs() {
    let cases: [(&str, &str, &str, &[&str]); 4] = [
        (
            "Europe/Berlin",
            "*/30 * * * *",
            "2026-03-29T01:00",
            &["2026-03-29 01:30 +01", "2026-03-29 03:00 +02", "2026-03-29 03:30 +02"],
        ),
        (
            "Europe/Berlin",
            "15 * * * *",
            "2026-03-29T01:00",
            &["2026-03-29 01:15 +01", "2026-03-29 03:15 +02"],
        ),
        (
            "Europe/Berlin",
            "15 * * * *",
            "2026-10-25T01:30",
            &["2026-10-25 02:15 +02", "2026-10-25 02:15 +01", "2026-10-25 03:15 +01"],
        ),
        (
            "Australia/Lord_Howe",
            "*/20 * * * *",
            "2026-04-05T01:20",
            &["2026-04-05 01:40 +11", "2026-04-05 01:40 +10:30", "2026-04-05 02:00 +10:30"],
        ),
    ];
    for (zone, cron, from, expected) in cases {
        let fires = local_fires(json!({"cron": cron, "timezone": zone}), from, expected.len());
        assert_eq!(fires, expected, "{cron} in {zone}");
    }
}

#[test]
fn crons_mean_what_they_say() {
    let cases: [(&str, &[&str]); 16] = [
        ("0 9 * * MON-FRI", &["2026-11-23 09:00", "2026-11-24 09:00"]),
        ("*/25 * * * *", &["2026-11-21 12:25", "2026-11-21 12:50", "2026-11-21 13:00"]),
        (
            "5/20 8-18/4 * * *",
            &["2026-11-21 12:05", "2026-11-21 12:25", "2026-11-21 12:45", "2026-11-21 16:05"],
        ),
        ("0 0 L * *", &["2026-11-30 00:00", "2026-12-31 00:00", "2027-01-31 00:00", "2027-02-28 00:00"]),
        ("0 0 1,l 2 *", &["2027-02-01 00:00", "2027-02-28 00:00", "2028-02-01 00:00", "2028-02-29 00:00"]),
        ("0 0 13 * 5", &["2026-11-27 00:00", "2026-12-04 00:00", "2026-12-11 00:00", "2026-12-13 00:00"]),
        ("0 0 */2 * mon", &["2026-11-23 00:00", "2026-12-07 00:00", "2026-12-21 00:00", "2027-01-11 00:00"]),
        ("0 0 31 * *", &["2026-12-31 00:00", "2027-01-31 00:00", "2027-03-31 00:00"]),
        ("0 0 29 2 *", &["2028-02-29 00:00", "2032-02-29 00:00"]),
        ("0 0 29 FEB */7", &["2032-02-29 00:00", "2060-02-29 00:00"]),
        ("0 0 * * 7", &["2026-11-22 00:00", "2026-11-29 00:00"]),
        ("0 0 * * sat-SUN", &["2026-11-22 00:00", "2026-11-28 00:00", "2026-11-29 00:00"]),
        ("0 0 31 2 sun", &["2027-02-07 00:00", "2027-02-14 00:00"]),
        ("@hourly", &["2026-11-21 13:00", "2026-11-21 14:00"]),
        ("@weekly", &["2026-11-22 00:00", "2026-11-29 00:00"]),
        ("@yearly", &["2027-01-01 00:00", "2028-01-01 00:00"]),
    ];
    for (cron, expected) in cases {
        let fires: Vec<String> = local_fires(json!({"cron": cron}), "2026-11-21T12:00", expected.len())
            .into_iter()
            .map(|fire| fire.trim_end_matches(" +00").to_owned())
            .collect();
        assert_eq!(fires, expected, "{cron}");
    }
}

#[test]
fn once_and_every_and_bounds() {
    let cases: [(serde_json::Value, &[&str]); 8] = [
        (json!({"at": "2026-12-01T09:00", "timezone": "Europe/Berlin"}), &["2026-12-01T08:00:00Z"]),
        (json!({"at": "2026-12-01T09:00:00.25-05:00"}), &["2026-12-01T14:00:00.25Z"]),
        (json!({"at": "2026-11-21T12:00:00Z"}), &[]),
        (json!({"at": "2027-03-28T02:30", "timezone": "Europe/Berlin"}), &["2027-03-28T01:00:00Z"]),
        (
            json!({"every": "1h 30m"}),
            &["2026-11-21T12:20:00Z", "2026-11-21T13:50:00Z", "2026-11-21T15:20:00Z"],
        ),
        (
            json!({"every": "PT15M", "start_at": "2026-11-21T13:00:00Z", "end_at": "2026-11-21T13:30:00Z"}),
            &["2026-11-21T13:00:00Z", "2026-11-21T13:15:00Z", "2026-11-21T13:30:00Z"],
        ),
        (
            json!({"cron": "0 9 * * *", "start_at": "2026-11-23T09:00", "end_at": "2026-11-24T09:00"}),
            &["2026-11-23T09:00:00Z", "2026-11-24T09:00:00Z"],
        ),
        (json!({"cron": "0 9 * * *", "end_at": "2026-11-22T08:59"}), &[]),
    ];
    for (json, expected) in cases {
        let fires =
            schedule(json.clone()).fire_times(ts("2026-11-21T10:50:00Z"), ts("2026-11-21T12:00:00Z"), 3);
        let expected: Vec<Timestamp> = expected.iter().map(|text| ts(text)).collect();
        assert_eq!(fires, expected, "{json}");
    }
}

#[test]
fn the_ends_of_the_calendar_end_the_fire_times() {
    for json in [
        json!({"every": "1m"}),
        json!({"every": "1d"}),
        json!({"every": "366d"}),
        json!({"cron": "* * * * *"}),
        json!({"cron": "0 0 29 2 *"}),
    ] {
        let schedule = schedule(json);
        assert_eq!(schedule.next_after(Timestamp::UNIX_EPOCH, Timestamp::MAX), None);
        assert!(schedule.next_after(Timestamp::MIN, Timestamp::MIN).is_some());
    }
}

const ZONES: [&str; 12] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Nuuk",
    "Africa/Cairo",
    "Asia/Beirut",
    "America/Santiago",
    "Africa/Casablanca",
    "Asia/Kathmandu",
    "Antarctica/Troll",
    "Pacific/Chatham",
];

/// All fire times in a window, found by checking every minute: the times that the clock shows, the times that it
/// skipped, and the times that it shows again.
fn by_walking(cron: &Cron, zone: &TimeZone, from: Timestamp, minutes: i32) -> Vec<Timestamp> {
    let minute = SignedDuration::from_mins(1);
    let mut fires = Vec::new();
    let mut latest = zone.to_datetime(from - SignedDuration::from_hours(26));
    let mut instant = from - SignedDuration::from_hours(26);
    let mut previous = latest;
    while instant < from + minute * minutes {
        instant += minute;
        let wall = zone.to_datetime(instant);
        let mut skipped = previous + minute;
        let mut jumped_over_match = false;
        while skipped < wall {
            jumped_over_match |= cron.matches(skipped);
            skipped += minute;
        }
        let first_time = wall > latest;
        let fires_now = if cron.is_interval() {
            cron.matches(wall)
        } else {
            (first_time && cron.matches(wall)) || jumped_over_match
        };
        if fires_now && instant > from {
            fires.push(instant);
        }
        previous = wall;
        latest = latest.max(wall);
    }
    fires
}

/// Any valid text of a field, including lists, ranges and steps.
fn field(least: u8, most: u8) -> impl Strategy<Value = String> {
    let item = prop_oneof![
        2 => Just("*".to_owned()),
        2 => (least..=most).prop_map(|n| n.to_string()),
        1 => (least..=most, least..=most).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        1 => (1..=most).prop_map(|step| format!("*/{step}")),
        1 => (least..=most, 1..=most).prop_map(|(a, step)| format!("{a}/{step}")),
    ];
    prop::collection::vec(item, 1..3).prop_map(|items| items.join(","))
}

pub(super) fn any_cron() -> impl Strategy<Value = String> {
    let day = prop_oneof![4 => field(1, 31), 1 => Just("L".to_owned()), 1 => Just("15,L".to_owned())];
    let weekday = prop_oneof![2 => Just("*".to_owned()), 1 => field(0, 7)];
    let month = prop_oneof![4 => Just("*".to_owned()), 1 => field(1, 12)];
    (field(0, 59), field(0, 23), day, month, weekday)
        .prop_map(|(minute, hour, day, month, weekday)| format!("{minute} {hour} {day} {month} {weekday}"))
        .prop_filter("a day that exists", |cron| Cron::parse(cron).is_ok())
}

/// A minute, preferably within a day of a clock change.
fn any_minute(zone: &str, year: i16, near_change: bool, minutes: i64) -> Timestamp {
    let zone = TimeZone::get(zone).unwrap();
    let start = jiff::civil::date(year, 1, 1).to_zoned_datetime(TimeZone::UTC).unwrap().timestamp();
    let from = match zone.following(start + SignedDuration::from_mins(minutes)).next() {
        Some(change) if near_change => change.timestamp() - SignedDuration::from_mins(minutes % 1_500),
        _ => start + SignedDuration::from_mins(minutes),
    };
    Timestamp::from_second(from.as_second().div_euclid(60) * 60).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn fire_times_agree_with_a_walk_over_every_minute(
        cron in any_cron(),
        zone in prop::sample::select(&ZONES[..]),
        year in 2020i16..2040,
        near_change in prop::bool::weighted(0.8),
        minutes in 0i64..500_000,
    ) {
        let schedule = schedule(json!({"cron": cron, "timezone": zone}));
        let from = any_minute(zone, year, near_change, minutes);
        const WINDOW: i32 = 2_400;
        let walked = by_walking(&Cron::parse(&cron).unwrap(), schedule.time_zone(), from, WINDOW);
        let until = from + SignedDuration::from_mins(1) * WINDOW;
        let computed: Vec<Timestamp> = std::iter::successors(schedule.next_after(from, from), |last| schedule.next_after(from, *last))
            .take_while(|fire| *fire <= until)
            .collect();
        prop_assert_eq!(computed, walked);
    }

    #[test]
    fn fire_times_increase_and_a_preview_is_the_same_as_asking_again_and_again(
        cron in any_cron(),
        zone in prop::sample::select(&ZONES[..]),
        seconds in 1_500_000_000i64..2_500_000_000,
        jitter in 0i64..86_400,
        action: u128,
    ) {
        let schedule = schedule(json!({"cron": cron, "timezone": zone, "jitter": format!("{jitter}s")}));
        let from = Timestamp::from_second(seconds).unwrap();
        let preview = schedule.fire_times(from, from, 20);
        prop_assert!(!preview.is_empty());
        let mut after = from;
        let action = ActionId::from_uuid(Uuid::from_u128(action));
        for fire in &preview {
            prop_assert!(*fire > after);
            prop_assert_eq!(schedule.next_after(from, after), Some(*fire));
            // Every instant in between gives the same fire time.
            let between = *fire - SignedDuration::from_nanos(1);
            prop_assert_eq!(schedule.next_after(from, between.max(after)), Some(*fire));
            after = *fire;
        }
        for pair in preview.windows(2) {
            let wake = schedule.wake_at(action, pair[0]);
            prop_assert!(pair[0] <= wake && wake < pair[1]);
            prop_assert!(wake.duration_since(pair[0]).as_secs() <= jitter);
            prop_assert_eq!(wake, schedule.wake_at(action, pair[0]));
        }
    }

    /// The times of a schedule of days: each shows the anchor's time of the clock, unless that is in a gap, and they are `days` days apart.
    /// A jitter never reaches the next one.
    #[test]
    fn days_keep_the_time_of_the_clock(
        days in 1i32..40,
        zone in prop::sample::select(&ZONES[..]),
        year in 2020i16..2040,
        near_change in prop::bool::weighted(0.8),
        minutes in 0i64..500_000,
        later in 0i64..4_000,
        jitter in 0i64..=86_400,
        action: u128,
    ) {
        let schedule = schedule(json!({"every": format!("{days}d"), "timezone": zone, "jitter": format!("{jitter}s")}));
        let zone = schedule.time_zone();
        let anchor = any_minute(zone.iana_name().unwrap(), year, near_change, minutes);
        let wall = zone.to_datetime(anchor);
        let action = ActionId::from_uuid(Uuid::from_u128(action));
        let mut last = anchor + SignedDuration::from_hours(later);
        for _ in 0..20 {
            let next = schedule.next_after(anchor, last).unwrap();
            prop_assert!(next > last);
            // The first one that is late enough: none of the times of the days between is.
            let local = zone.to_datetime(next);
            let is_first = super::first_instant(zone, local) == Some(next);
            let passed = (local.date() - wall.date()).get_days();
            let nominal = wall.date() + jiff::ToSpan::days(passed - passed.rem_euclid(days));
            let nominal = nominal.to_datetime(wall.time());
            let is_gap = zone.to_ambiguous_timestamp(nominal).is_ambiguous() && zone.to_datetime(super::first_instant(zone, nominal).unwrap()) != nominal;
            prop_assert!(is_first && (local == nominal || is_gap && super::first_instant(zone, nominal) == Some(next)), "{local} {nominal}");
            let after = schedule.next_after(anchor, next).unwrap();
            prop_assert!(schedule.wake_at(action, next) < after);
            // Every instant in between gives the same time.
            prop_assert_eq!(schedule.next_after(anchor, after - SignedDuration::from_nanos(1)), Some(after));
            let least = days - 1;
            let between = zone.to_datetime(after).date() - local.date();
            prop_assert!((least..=days + 1).contains(&between.get_days()), "{local} {after}");
            last = next;
        }
    }

    #[test]
    fn every_is_a_multiple_of_its_length_from_its_anchor(
        length in 60i64..1_000_000,
        anchor in 0i64..2_000_000_000,
        after in -1_000_000i64..2_000_000_000,
    ) {
        let schedule = schedule(json!({"every": format!("{length}s")}));
        let (anchor, after) = (Timestamp::from_second(anchor).unwrap(), Timestamp::from_second(anchor + after).unwrap());
        let next = schedule.next_after(anchor, after).unwrap();
        let elapsed = next.duration_since(anchor).as_secs();
        prop_assert!(next > after && elapsed >= length && elapsed % length == 0);
        prop_assert!(elapsed == length || next.duration_since(after).as_secs() <= length);
    }
}
