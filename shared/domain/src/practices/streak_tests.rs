use std::collections::BTreeSet;

use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::schedule::zone_or_utc;

/// Monday.
const MONDAY: Date = date(2026, 11, 23);

fn target(value: Value) -> Target {
    serde_json::from_value(value).unwrap()
}

fn set(days: impl IntoIterator<Item = Date>) -> DaySet {
    let mut set = DaySet::default();
    days.into_iter().for_each(|day| set.insert(day));
    set
}

fn of(target: &Target, done: &DaySet, today: Date) -> (u32, u32) {
    let streak = streak::streak(target, done, today, &TimeZone::UTC);
    assert_eq!(streak.as_of, today);
    (streak.current, streak.longest)
}

/// Days of the weeks from 23 November 2026 on: `x` is a day on which it was done.
fn weeks(text: &str) -> DaySet {
    let marks = text.chars().filter(|mark| *mark != ' ');
    set(marks.enumerate().filter(|(_, mark)| *mark == 'x').map(|(n, _)| MONDAY + (n as i32).days()))
}

#[test]
fn days_in_a_row_are_a_streak() {
    let every = Target::default();
    let weekdays = target(json!({"kind": "days", "days": ["mon", "tue", "wed", "thu", "fri"]}));
    let sundays = target(json!({"kind": "days", "days": ["sun"]}));
    for (target, days, today, expected) in [
        (&every, "", 0, (0, 0)),
        // Today is not over.
        (&every, "xxx.", 3, (3, 3)),
        (&every, "xxx..", 4, (0, 3)),
        (&every, "xxxx", 3, (4, 4)),
        (&every, "x.xx", 3, (2, 2)),
        (&every, "xxx.x", 4, (1, 3)),
        // Days after today do not count: the zone has changed.
        (&every, "xxxx", 1, (2, 2)),
        (&every, "..xx", 1, (0, 0)),
        // A day that is not due neither counts nor breaks.
        (&weekdays, "xxxxx.. xx", 8, (7, 7)),
        (&weekdays, "xxxxxxx xx", 8, (7, 7)),
        (&weekdays, "xxxxx..", 6, (5, 5)),
        (&weekdays, "xxxxx.. .", 7, (5, 5)),
        (&weekdays, "xxxxx.. ..", 8, (0, 5)),
        (&weekdays, "xxxx.xx x", 7, (1, 4)),
        (&weekdays, ".....xx", 6, (0, 0)),
        (&sundays, "......x ......x .......", 20, (2, 2)),
        (&sundays, "......x ......x ....... .", 21, (0, 2)),
        (&sundays, "......x xxxxxx. ......x", 20, (1, 1)),
    ] {
        let today = MONDAY + today.days();
        assert_eq!(of(target, &weeks(days), today), expected, "{days} with {target:?} on {today}");
    }
}

#[test]
fn weeks_in_a_row_are_a_streak() {
    let three = target(json!({"kind": "times_a_week", "times": 3}));
    let seven = target(json!({"kind": "times_a_week", "times": 7}));
    for (target, days, today, expected) in [
        (&three, "", 0, (0, 0)),
        (&three, "xx.....", 6, (0, 0)),
        (&three, "xxx....", 2, (1, 1)),
        // The week of today is not over.
        (&three, "xxx.... .......", 13, (1, 1)),
        (&three, "xxx.... ....... .", 14, (0, 1)),
        (&three, "xxx.... ....xxx xx.....", 20, (2, 2)),
        (&three, "xxx.... ....xxx xxx....", 16, (3, 3)),
        (&three, "xxx.... ....xxx xxx....", 15, (2, 2)),
        // From Sunday to Monday is another week.
        (&three, "......x xx.....", 8, (0, 0)),
        (&three, "xxxxxxx x...... xxx....", 20, (1, 1)),
        (&seven, "xxxxxxx xxxxxx.", 13, (1, 1)),
        (&seven, "xxxxxxx xxxxxxx", 13, (2, 2)),
    ] {
        let today = MONDAY + today.days();
        assert_eq!(of(target, &weeks(days), today), expected, "{days} with {target:?} on {today}");
        assert_eq!(streak::streak(target, &weeks(days), today, &TimeZone::UTC).unit, StreakUnit::Weeks);
    }
}

#[test]
fn a_streak_crosses_years_and_leap_days() {
    let every = Target::default();
    let thousand = (0..1_000).map(|n| date(2023, 12, 1) + n.days());
    let today = date(2023, 12, 1) + 999.days();
    assert_eq!(of(&every, &set(thousand.clone()), today), (1_000, 1_000));
    assert_eq!(of(&every, &set(thousand.clone()), today + 1.day()), (1_000, 1_000));
    assert_eq!(of(&every, &set(thousand.clone()), today + 2.days()), (0, 1_000));
    let leap = date(2024, 2, 29);
    assert_eq!(of(&every, &set(thousand.filter(|day| *day != leap)), today), (909, 909));
    let weekly = target(json!({"kind": "times_a_week", "times": 1}));
    // 52 or 53 weeks a year make no difference.
    let mondays = set((0..300).map(|n| date(2020, 1, 6) + (7 * n).days()));
    assert_eq!(of(&weekly, &mondays, date(2020, 1, 6) + (7 * 299).days()), (300, 300));
}

#[test]
fn a_day_that_the_zone_never_had_breaks_no_streak() {
    // Samoa went from Thursday, 29 December 2011, to Saturday, 31 December.
    let (every, apia) = (Target::default(), zone_or_utc("Pacific/Apia"));
    let days = set([28, 29, 31].map(|day| date(2011, 12, day)));
    let streak = |zone: &TimeZone| streak::streak(&every, &days, date(2011, 12, 31), zone).current;
    assert_eq!((streak(&apia), streak(&TimeZone::UTC)), (3, 1));
}

#[test]
fn today_is_the_day_of_the_zone_when_clocks_change() {
    let berlin = zone_or_utc("Europe/Berlin");
    for (now, day) in [
        // The clock goes from 03:00 to 02:00, so this day has 25 hours.
        ("2026-10-24T21:59:59Z", "2026-10-24"),
        ("2026-10-24T22:00:00Z", "2026-10-25"),
        ("2026-10-25T22:59:59Z", "2026-10-25"),
        ("2026-10-25T23:00:00Z", "2026-10-26"),
        // From 02:00 to 03:00: 23 hours.
        ("2026-03-28T23:00:00Z", "2026-03-29"),
        ("2026-03-29T21:59:59Z", "2026-03-29"),
        ("2026-03-29T22:00:00Z", "2026-03-30"),
    ] {
        assert_eq!(today(now.parse().unwrap(), &berlin).to_string(), day, "{now}");
    }
    // Midnight itself does not exist on this day.
    let sao_paulo = zone_or_utc("America/Sao_Paulo");
    let streak = streak::streak(
        &Target::default(),
        &set([date(2017, 10, 14), date(2017, 10, 16)]),
        date(2017, 10, 16),
        &sao_paulo,
    );
    assert_eq!(streak.current, 1, "15 October 2017 began at 01:00, and was missed");
}

#[test]
fn a_target_says_what_is_wrong() {
    let read = |value: Value| serde_json::from_value::<Target>(value).map_err(|error| error.to_string());
    assert_eq!(read(json!({"kind": "days"})), Ok(Target::default()));
    for (value, words) in [
        (json!({"kind": "days"}), "every day"),
        (json!({"kind": "days", "days": ["sun"]}), "every Sunday"),
        (json!({"kind": "days", "days": ["fri", "mon", "mon", "wed"]}), "every Monday, Wednesday and Friday"),
        (json!({"kind": "times_a_week", "times": 1}), "once a week"),
        (json!({"kind": "times_a_week", "times": 3}), "3 times a week"),
    ] {
        let target = read(value).unwrap();
        assert_eq!(target.in_words(), words);
        assert_eq!(read(serde_json::to_value(&target).unwrap()), Ok(target));
    }
    for (value, told) in [
        (json!({"kind": "days", "days": []}), "must name at least one of mon, tue, wed, thu, fri, sat, sun"),
        (json!({"kind": "days", "times": 3}), "unknown field `times`, expected `kind` or `days`"),
        (json!({"kind": "times_a_week"}), "missing field `times`"),
        (json!({"kind": "times_a_week", "times": 0}), "must have 1 to 7 `times`, has 0"),
        (json!({"kind": "times_a_week", "times": 8}), "must have 1 to 7 `times`, has 8"),
        (json!({"kind": "times_a_week", "times": -1}), "must have 1 to 7 `times`, has -1"),
        (json!({"kind": "times_a_week", "times": 300}), "must have 1 to 7 `times`, has 300"),
    ] {
        assert_eq!(read(value.clone()), Err(told.to_owned()), "{value}");
    }
}

#[test]
fn days_have_one_form() {
    for good in ["1970-01-01", "2024-02-29", "2026-11-26", "9000-12-31"] {
        assert_eq!(day_named(good).unwrap().to_string(), good);
    }
    for wrong in [
        "",
        "2026-02-30",
        "2026-02-29",
        "2026-13-01",
        "2026-1-1",
        "0000-01-01",
        "1969-12-31",
        "9001-01-01",
        "20261126",
        "+002026-11-26",
        "-009999-01-01",
        "99999-01-01",
        "2026-11-26T00:00",
        "2026-11-26 ",
        "\0",
        "2026-11-26\0",
        "today",
        "２０２６-11-26",
    ] {
        assert!(day_named(wrong).is_err(), "{wrong:?}");
    }
}

fn practice(value: Value) -> Practice {
    let new: NewPractice = serde_json::from_value(value).unwrap();
    new.into_practice(PracticeId::from_uuid(uuid::Uuid::nil()), at("2026-11-20T12:00:00Z")).unwrap()
}

fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

#[test]
fn every_broken_limit_is_named_at_once() {
    let new = NewPractice {
        name: " ".into(),
        description: "d".repeat(MAX_TEXT + 1),
        timezone: Some("Berlin/Europe".into()),
        ..NewPractice::default()
    };
    let errors = new.into_practice(PracticeId::from_uuid(uuid::Uuid::nil()), Timestamp::UNIX_EPOCH);
    let told = errors.unwrap_err().to_string();
    assert!(
        told.starts_with(
            "name: is required (1 to 120 characters); description: must be at most 1000 characters, is 1001; \
             timezone: must be an IANA time zone such as Europe/Berlin"
        ),
        "{told}"
    );
    let made = practice(json!({"name": " Read ", "timezone": "europe/berlin"}));
    assert_eq!((made.name.as_str(), made.timezone.as_deref()), ("Read", Some("Europe/Berlin")));
    let patch = PracticePatch { timezone: Some(String::new()), ..PracticePatch::default() };
    let now = at("2026-11-21T12:00:00Z");
    let patched = made.clone().patched(patch, now).unwrap();
    assert_eq!(patched, Practice { timezone: None, updated_at: now, edition: 2, ..made });
}

#[test]
fn a_check_in_is_of_a_day_that_has_begun() {
    let check_in = |date: &str, now: &str| {
        let new = NewCheckIn { date: Some(date.to_owned()), ..NewCheckIn::default() };
        new.into_check_in(at(now), &zone_or_utc("Asia/Tokyo")).map_err(|errors| errors.to_string())
    };
    let now = "2026-11-26T16:00:00Z";
    assert_eq!(check_in("2026-11-27", now).unwrap().date, date(2026, 11, 27), "Tokyo is nine hours ahead");
    assert_eq!(
        check_in("2026-11-28", now).unwrap_err(),
        "date: must not be after today, which is 2026-11-27 in Asia/Tokyo; is 2026-11-28"
    );
    assert!(check_in("2025-11-26", now).is_ok());
    assert_eq!(
        check_in("2025-11-25", now).unwrap_err(),
        "date: must be at most 366 days ago, from 2025-11-26 on; is 2025-11-25"
    );
    let new =
        NewCheckIn { date: Some("2026-02-30".into()), note: "n".repeat(1_001), ..NewCheckIn::default() };
    assert_eq!(
        new.into_check_in(at(now), &TimeZone::UTC).unwrap_err().to_string(),
        "date: must be a day such as 2026-11-26, in the years 1970 to 9000; note: must be at most 1000 characters, is 1001"
    );
    let new = NewCheckIn { done: Some(false), note: " ill ".into(), ..NewCheckIn::default() };
    let made = new.into_check_in(at(now), &TimeZone::UTC).unwrap();
    assert_eq!((made.date, made.done, made.note.as_str()), (date(2026, 11, 26), false, "ill"));
}

#[test]
fn a_view_shows_today_and_the_last_days() {
    let checked = |practice: Practice, day: i8, done: bool, note: &str| {
        let check_in = CheckIn {
            date: date(2026, 11, day),
            done,
            note: note.to_owned(),
            checked_at: Timestamp::UNIX_EPOCH,
        };
        practice.checked_in(&check_in)
    };
    let new = practice(json!({"name": "Read", "target": {"kind": "days", "days": ["thu", "wed", "tue"]}}));
    let view = |practice: &Practice, now: &str| practice.clone().view(at(now), &TimeZone::UTC);
    let thursday = "2026-11-26T12:00:00Z";
    let seen = view(&new, thursday);
    assert_eq!(seen.last_days.len(), 14);
    // It was created on the 20th, so no day before it was missed.
    let due: Vec<String> =
        seen.last_days.iter().filter(|day| day.due).map(|day| day.date.to_string()).collect();
    assert_eq!(due, ["2026-11-24", "2026-11-25", "2026-11-26"]);
    assert_eq!((seen.streak.current, seen.today.day.due, seen.today.day.done), (0, true, None));

    let practice = checked(checked(checked(new, 24, true, ""), 25, true, ""), 26, false, "Ill");
    let seen = view(&practice, thursday);
    assert_eq!((seen.streak.current, seen.streak.longest), (2, 2), "today is not over");
    assert_eq!((seen.today.day.done, seen.today.note.as_deref()), (Some(false), Some("Ill")));
    assert_eq!(seen.last_days.last(), Some(&seen.today.day));
    let tomorrow = view(&practice, "2026-11-27T12:00:00Z");
    assert_eq!((tomorrow.streak.current, tomorrow.today.day.due), (0, false));
    // A check-in before the practice was created makes the days since then due.
    let earlier = checked(practice.clone(), 17, true, "");
    assert_eq!(view(&earlier, thursday).last_days.iter().filter(|day| day.due).count(), 6);
    let patch = PracticePatch { status: Some(PracticeStatus::Archived), ..PracticePatch::default() };
    assert!(!view(&practice.patched(patch, at(thursday)).unwrap(), thursday).today.day.due);
}

#[test]
fn a_week_that_has_enough_needs_no_more() {
    let three = target(json!({"kind": "times_a_week", "times": 2}));
    let done = weeks("x.x.... .x.....");
    let due: Vec<bool> = (0..14).map(|n| streak::is_due(&three, &done, MONDAY + n.days())).collect();
    let expected = "ddd.... ddddddd".chars().filter(|mark| *mark != ' ').map(|mark| mark == 'd');
    assert!(due.iter().copied().eq(expected), "{due:?}");
}

#[test]
fn a_practice_is_found_by_what_people_call_it() {
    let named = |id: u128, name: &str| Practice {
        practice_id: PracticeId::from_uuid(uuid::Uuid::from_u128(id)),
        ..practice(json!({ "name": name }))
    };
    let all = [named(1, "Read"), named(2, "Read aloud"), named(3, "Run"), named(4, "ÜBEN")];
    let found = |text: &str| find(&all, text).map(|practice| practice.practice_id.uuid().as_u128());
    for (text, id) in [("read", 1), (" READ ALOUD ", 2), ("aloud", 2), ("üben", 4)] {
        assert_eq!(found(text), Ok(id), "{text}");
    }
    assert_eq!(found(&all[2].practice_id.to_string()), Ok(3));
    assert!(found("ea").unwrap_err().starts_with("several practices fit: \"Read\" (prc_"));
    assert!(
        found("swim")
            .unwrap_err()
            .starts_with("there is no practice with this name or id; there are \"Read\"")
    );
    assert_eq!(find(&[], "x"), Err("the person has no practices".to_owned()));
}

/// The rules, day by day: what the code does with ranges.
fn by_the_day(target: &Target, done: &BTreeSet<Date>, first: Date, today: Date) -> (u32, u32) {
    let (mut current, mut longest) = (0, 0);
    match target {
        Target::Days { days } => {
            let mut day = first;
            while day <= today {
                if days.contains(&PracticeDay::of(day.weekday())) {
                    if done.contains(&day) {
                        current += 1;
                    } else if day < today {
                        current = 0;
                    }
                    longest = longest.max(current);
                }
                day += 1.day();
            }
        }
        Target::TimesAWeek { times } => {
            let mut monday = first;
            while PracticeDay::of(monday.weekday()) != PracticeDay::Mon {
                monday -= 1.day();
            }
            while monday <= today {
                let week = (0..7).map(|n| monday + n.days()).filter(|day| *day <= today);
                if week.filter(|day| done.contains(day)).count() >= usize::from(*times) {
                    current += 1;
                } else if monday + 6.days() < today {
                    current = 0;
                }
                longest = longest.max(current);
                monday += 7.days();
            }
        }
    }
    (current, longest)
}

proptest! {
    #[test]
    fn streaks_are_those_of_a_count_day_by_day(
        begin in 0_i32..800,
        days in proptest::collection::vec(proptest::bool::weighted(0.8), 0..120),
        targeted in proptest::collection::btree_set(0_usize..7, 1..8),
        times in proptest::option::of(1_u8..8),
        later in -3_i32..12,
    ) {
        let first = date(2023, 12, 1) + begin.days();
        let done: BTreeSet<Date> =
            days.iter().enumerate().filter(|(_, is)| **is).map(|(n, _)| first + (n as i32).days()).collect();
        let today = first + (days.len() as i32 + later).max(0).days();
        let target = match times {
            Some(times) => Target::TimesAWeek { times },
            None => Target::Days { days: targeted.into_iter().map(|n| PracticeDay::ALL[n]).collect() },
        };
        let set = set(done.iter().copied());
        prop_assert_eq!(of(&target, &set, today), by_the_day(&target, &done, first, today));
    }

    #[test]
    fn a_check_in_and_its_deletion_change_one_day(
        days in proptest::collection::vec((0_i32..40, any::<bool>()), 1..40),
    ) {
        let mut practice = practice(json!({"name": "Read"}));
        let mut expected = std::collections::BTreeMap::new();
        for (day, done) in days {
            let date = date(2026, 2, 1) + day.days();
            if expected.remove(&date).is_some() {
                practice = practice.without(date).unwrap();
                prop_assert!(practice.clone().without(date).is_none());
            } else {
                expected.insert(date, done);
                let check_in = CheckIn { date, done, note: "n".into(), checked_at: Timestamp::UNIX_EPOCH };
                practice = practice.checked_in(&check_in);
            }
            for day in 0..40 {
                let date = self::date(2026, 2, 1) + day.days();
                prop_assert_eq!(practice.marks.of(date), expected.get(&date).copied());
            }
            prop_assert!(practice.check().is_ok());
        }
    }
}
