//! Reports and due times: tables, clock changes, changed and paused schedules, and properties.

use jiff::ToSpan;
use jiff::civil::DateTime;
use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use super::*;
use crate::schedule::zone_or_utc;

const ID: WatchedId = WatchedId::from_uuid(Uuid::from_u128(7));

fn ts(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn watched(schedule: Value, grace: u16, expects_result: bool, now: Timestamp) -> Watched {
    let new = json!({"name": "backup", "schedule": schedule, "grace_minutes": grace, "expects_result": expects_result});
    serde_json::from_value::<NewWatched>(new).unwrap().validate(ID, now).unwrap()
}

fn ok(at: Timestamp) -> Report {
    Report { at, ok: true, summary: "done".to_owned(), link: None, exit_code: None }
}

fn failed(at: Timestamp) -> Report {
    Report { ok: false, exit_code: Some(3), ..ok(at) }
}

fn empty(at: Timestamp) -> Report {
    Report { summary: String::new(), ..ok(at) }
}

/// "22 09:00 ran"
fn words(ledger: &[Expected]) -> Vec<String> {
    let word = |expected: &Expected| {
        let state = serde_json::to_value(expected.state).unwrap();
        format!("{} {}", expected.due.strftime("%d %H:%M"), state.as_str().unwrap())
    };
    ledger.iter().map(word).collect()
}

#[test]
fn each_state_has_its_reason() {
    let begin = ts("2026-11-20T12:00:00Z");
    let watched = watched(json!({"cron": "0 9 * * *"}), 30, true, begin);
    let day = |hour: &str| ts(&format!("2026-11-21T{hour}:00Z"));
    let now = ts("2026-11-22T08:00:00Z");
    for (reports, now, state, why) in [
        (vec![], day("09:00"), "waiting", "A report is expected within 30 minutes."),
        (vec![], day("09:30"), "waiting", "A report is expected within 30 minutes."),
        (vec![], day("09:31"), "silent", "No report came within 30 minutes after the due time."),
        (vec![ok(day("09:30"))], now, "ran", "It reported 30 minutes after the due time."),
        (vec![ok(day("08:58"))], now, "ran", "It reported 2 minutes before the due time."),
        (
            vec![ok(day("10:45"))],
            now,
            "late",
            "It reported 1 hour 45 minutes after the due time, and 30 minutes are allowed.",
        ),
        (
            vec![failed(day("09:01"))],
            now,
            "failed",
            "It reported a failure with exit code 3 1 minute after the due time.",
        ),
        (
            vec![empty(day("09:00"))],
            now,
            "empty",
            "It reported a success without a summary and without a link 0 seconds after the due time.",
        ),
        // A second try mends it. A failure after a success does not break it.
        (
            vec![failed(day("09:01")), ok(day("09:20"))],
            now,
            "ran",
            "It reported 20 minutes after the due time.",
        ),
        (
            vec![empty(day("09:01")), ok(day("09:20"))],
            now,
            "ran",
            "It reported 20 minutes after the due time.",
        ),
        (
            vec![ok(day("09:01")), failed(day("09:20"))],
            now,
            "ran",
            "It reported 1 minute after the due time.",
        ),
        // The first of two counts.
        (vec![ok(day("09:20")), ok(day("09:02"))], now, "ran", "It reported 2 minutes after the due time."),
    ] {
        let found = ledger(&watched, &reports, begin, now);
        assert_eq!(words(&found), [format!("21 09:00 {state}")], "{reports:?}");
        assert_eq!(found[0].why, why);
        assert_eq!(found[0].reports as usize, reports.len());
    }
}

#[test]
fn a_report_belongs_to_one_due_time() {
    let begin = ts("2026-11-20T12:00:00Z");
    let watched = watched(json!({"cron": "0 9 * * *"}), 30, false, begin);
    let now = ts("2026-11-23T12:00:00Z");
    let said = |reports: &[&str]| {
        let reports: Vec<Report> = reports.iter().map(|at| ok(ts(&format!("2026-11-{at}:00Z")))).collect();
        words(&ledger(&watched, &reports, begin, now)).join(", ")
    };
    assert_eq!(said(&[]), "21 09:00 silent, 22 09:00 silent, 23 09:00 silent");
    // Very late, and the next one is missing: both are seen.
    assert_eq!(said(&["21T22:00"]), "21 09:00 late, 22 09:00 silent, 23 09:00 silent");
    assert_eq!(said(&["21T22:00", "22T09:01"]), "21 09:00 late, 22 09:00 ran, 23 09:00 silent");
    // Late again and again, after one that was early: each is late for its own.
    assert_eq!(
        said(&["21T09:01", "22T04:00", "23T04:00", "23T09:01"]),
        "21 09:00 ran, 22 09:00 ran, 23 09:00 ran"
    );
    assert_eq!(said(&["22T04:00", "23T04:00"]), "21 09:00 late, 22 09:00 late, 23 09:00 silent");
    // Early, and the one before it is served.
    assert_eq!(said(&["21T09:01", "21T22:00"]), "21 09:00 ran, 22 09:00 ran, 23 09:00 silent");
    // Just before the next one, which it is meant for.
    assert_eq!(said(&["22T08:45"]), "21 09:00 silent, 22 09:00 ran, 23 09:00 silent");
    // Before the first due time: at most the grace. What tries out a new schedule is not its first run.
    assert_eq!(said(&["21T08:29"]), "21 09:00 silent, 22 09:00 silent, 23 09:00 silent");
    assert_eq!(said(&["21T08:30"]), "21 09:00 ran, 22 09:00 silent, 23 09:00 silent");
    // One that tries it out does not keep the first run from being seen.
    assert_eq!(said(&["20T12:01", "21T09:01"]), "21 09:00 ran, 22 09:00 silent, 23 09:00 silent");
    // Many for one.
    assert_eq!(
        said(&["21T09:00", "21T09:01", "21T09:02", "23T11:00"]),
        "21 09:00 ran, 22 09:00 silent, 23 09:00 late"
    );
}

#[test]
fn a_grace_longer_than_the_period_is_kept() {
    let begin = ts("2026-11-20T12:00:00Z");
    let watched = watched(json!({"every": "15m"}), 30, false, begin);
    // Each run takes eight minutes: the second half of the period.
    let reports: Vec<Report> = (1..=8).map(|n| ok(begin + (n * 15 + 8).minutes())).collect();
    let found = ledger(&watched, &reports, begin, begin + 129.minutes());
    assert_eq!(found.len(), 8);
    assert!(found.iter().all(|expected| expected.state == ExpectedState::Ran), "{:?}", words(&found));
}

#[test]
fn a_report_right_after_the_declaration_does_not_hide_that_the_first_run_is_missing() {
    for (cron, begin, now) in [
        ("38 * * * *", "2026-11-20T20:34:00Z", "2026-11-20T20:50:00Z"),
        ("0 3 1 * *", "2026-11-20T20:34:00Z", "2026-12-01T04:00:00Z"),
    ] {
        let begin = ts(begin);
        let watched = watched(json!({ "cron": cron }), 1, false, begin);
        let found = ledger(&watched, &[ok(begin + 1.minutes())], begin, ts(now));
        assert_eq!(found.iter().map(|of| of.state).collect::<Vec<_>>(), [ExpectedState::Silent], "{cron}");
    }
    // A long grace does not reach further than half of a period.
    let begin = ts("2026-11-20T12:00:00Z");
    let watched = watched(json!({"every": "1h"}), 1_440, false, begin);
    let seen = |minutes: i64| ledger(&watched, &[ok(begin + minutes.minutes())], begin, begin + 1.hours());
    assert_eq!([29, 30].map(|at| seen(at)[0].state), [ExpectedState::Waiting, ExpectedState::Ran]);
}

#[test]
fn a_single_due_time() {
    let begin = ts("2026-11-20T12:00:00Z");
    let watched = watched(json!({"at": "2026-11-22T09:00"}), 60, false, begin);
    let now = ts("2027-01-01T00:00:00Z");
    for (report, expected) in [
        ("2026-11-22T07:59:00Z", "22 09:00 silent"),
        ("2026-11-22T08:00:00Z", "22 09:00 ran"),
        ("2026-11-22T10:00:00Z", "22 09:00 ran"),
        ("2026-12-20T10:00:00Z", "22 09:00 late"),
    ] {
        assert_eq!(words(&ledger(&watched, &[ok(ts(report))], begin, now)), [expected], "{report}");
    }
    assert_eq!(watched.next_due(now), None);
}

#[test]
fn a_changed_or_paused_schedule_expects_what_was_due_while_it_counted() {
    let begin = ts("2026-11-20T12:00:00Z");
    let before = watched(json!({"cron": "0 9 * * *"}), 30, false, begin);
    let later = json!({"cron": "0 15 * * *"});
    let later: ScheduleInput = serde_json::from_value(later).unwrap();
    let now = ts("2026-11-24T20:00:00Z");
    let said = |watched: &Watched| words(&ledger(watched, &[], begin, now)).join(", ");
    // The change comes after the first due time.
    let changed = before.clone().rescheduled(later.clone(), ts("2026-11-21T12:00:00Z")).unwrap();
    assert_eq!(
        said(&changed),
        "21 09:00 silent, 21 15:00 silent, 22 15:00 silent, 23 15:00 silent, 24 15:00 silent"
    );
    assert_eq!(changed.clone().rescheduled(later, now).unwrap(), changed, "no change is no change");
    // A pause within the grace: nobody expects a report any more. One that came counts.
    let at = ts("2026-11-21T09:10:00Z");
    let paused = before.clone().paused(at);
    assert_eq!((said(&paused).as_str(), paused.schedule(), paused.next_due(now)), ("", None, None));
    assert_eq!(words(&ledger(&paused, &[ok(at + 5.minutes())], begin, now)), ["21 09:00 ran"]);
    let resumed = paused.clone().resumed(ts("2026-11-23T12:00:00Z"));
    assert_eq!(said(&resumed), "24 09:00 silent");
    assert_eq!(resumed.clone().resumed(now), resumed);
    assert_eq!(paused.clone().paused(now), paused);
    // An interval counts on as if there had been no pause.
    let every = watched(json!({"every": "2h"}), 30, false, begin);
    let every = every.paused(begin + 3.hours()).resumed(begin + 5.hours());
    assert_eq!(every.next_due(begin + 5.hours()), Some(begin + 6.hours()));
    // Changes are bounded, and a clock that is set back keeps their order.
    let mut many = before;
    for n in 0..200 {
        let at = begin - n.hours();
        many = many.paused(at).resumed(at);
    }
    assert_eq!(many.eras.len(), MAX_ERAS);
    assert!(many.eras.is_sorted_by_key(|era| era.from));
    let json = serde_json::to_string(&many).unwrap();
    assert_eq!(serde_json::from_str::<Watched>(&json).unwrap(), many);
}

#[test]
fn refusals_name_the_field_and_its_limit() {
    let now = ts("2026-11-20T12:00:00Z");
    let said = |change: Value| {
        let mut new = json!({"name": "a", "schedule": {"cron": "0 9 * * *"}});
        new.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let new: NewWatched = serde_json::from_value(new).unwrap();
        new.validate(ID, now).map_or_else(|errors| errors.to_string(), |_| String::new())
    };
    assert_eq!(said(json!({})), "");
    for (change, expected) in [
        (json!({"name": " "}), "name: must not be blank (1 to 100 characters)"),
        (json!({"name": "a\r\nBcc: b"}), "name: must be one line without control characters"),
        (json!({"grace_minutes": 0}), "grace_minutes: must be 1 to 1440, is 0"),
        (json!({"grace_minutes": 1_441}), "grace_minutes: must be 1 to 1440, is 1441"),
        (
            json!({"schedule": {"every": "1h", "jitter": "30s"}}),
            "schedule.jitter: has no meaning for a schedule that something else runs",
        ),
        (
            json!({"schedule": {"at": "2020-01-01T09:00"}}),
            "schedule: must have a due time that is still to come",
        ),
    ] {
        assert_eq!(said(change.clone()), expected, "{change}");
    }
    let report = |report: Value| {
        let new: NewReport = serde_json::from_value(report).unwrap();
        new.validate(now).map_or_else(|errors| errors.to_string(), |report| format!("ok {}", report.ok))
    };
    let long = |n: usize| format!("https://a.b/{}", "x".repeat(n - 12));
    for (input, expected) in [
        (json!({}), "ok true"),
        (json!({"exit_code": 2}), "ok false"),
        (json!({"ok": false, "exit_code": 0}), "ok false"),
        (json!({"ok": true, "exit_code": 1}), "ok: must not be true if `exit_code` is not 0"),
        (json!({"summary": "é".repeat(250), "link": long(2_000)}), "ok true"),
        (json!({"summary": "é".repeat(251)}), "summary: must be at most 500 bytes, is 502"),
        (json!({"link": long(2_001)}), "link: must be at most 2000 bytes, is 2001"),
        (
            json!({"link": "http://a.b"}),
            "link: must be an address that begins with https:// and has no blanks",
        ),
        (
            json!({"link": "javascript:alert(1)"}),
            "link: must be an address that begins with https:// and has no blanks",
        ),
        (
            json!({"link": "https://a.b/\n"}),
            "link: must be an address that begins with https:// and has no blanks",
        ),
        (json!({"link": "https://u:p@a.b/"}), "link: must not have a user name or a password"),
    ] {
        assert_eq!(report(input.clone()), expected, "{input}");
    }
}

/// The year after these has clock changes by an hour, by half an hour, by two hours, at midnight, or none.
const ZONES: [&str; 8] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Nuuk",
    "Africa/Cairo",
    "Australia/Lord_Howe",
    "Antarctica/Troll",
    "Asia/Kathmandu",
];

#[test]
fn every_day_of_a_year_is_expected_once() {
    for zone in ZONES {
        let named = zone_or_utc(zone);
        let begin = named.to_timestamp("2026-01-01T12:00".parse::<DateTime>().unwrap()).unwrap();
        let end = named.to_timestamp("2027-01-01T12:00".parse::<DateTime>().unwrap()).unwrap();
        let watched = watched(json!({"cron": "30 2 * * *", "timezone": zone}), 30, false, begin);
        let silent = ledger(&watched, &[], begin, end);
        assert_eq!(silent.len(), 365, "{zone}");
        let reports: Vec<Report> = silent.iter().map(|expected| ok(expected.due + 29.minutes())).collect();
        let ran = ledger(&watched, &reports, begin, end);
        assert!(ran.iter().all(|expected| expected.state == ExpectedState::Ran), "{zone}");
        assert!(ran.iter().all(|expected| expected.reports == 1), "{zone}");
    }
}

#[test]
fn a_long_ledger_is_bounded_and_can_be_read_on() {
    let begin = ts("2026-01-01T00:00:00Z");
    let watched = watched(json!({"every": "1m"}), 5, false, begin);
    let now = begin + 72.hours();
    let (mut from, mut all) = (begin, Vec::new());
    loop {
        let part = ledger(&watched, &[], from, now);
        assert!(part.len() <= MAX_LEDGER);
        let Some(last) = part.last() else { break };
        from = last.due;
        all.extend(part);
    }
    assert_eq!(all.len(), 72 * 60);
    assert!(all.is_sorted_by_key(|expected| expected.due));
    let newest = newest(&watched, &[], now);
    assert_eq!(newest.last().map(|expected| expected.due), Some(now));
}

#[test]
fn the_newest_known_outcome_is_found_at_every_pace() {
    let begin = ts("2024-01-01T00:00:00Z");
    for (cron, now) in [
        ("* * * * *", "2026-11-22T09:00:30Z"),
        ("0 9 * * *", "2026-11-22T09:10:00Z"),
        ("0 9 * * MON", "2026-11-22T09:00:00Z"),
        ("0 0 1 1 *", "2026-12-31T23:59:00Z"),
    ] {
        let watched = watched(json!({"cron": cron}), 30, false, begin);
        let found = newest(&watched, &[], ts(now));
        assert!(found.iter().any(|expected| expected.state == ExpectedState::Silent), "{cron}");
    }
    let young = watched(json!({"cron": "0 9 * * *"}), 30, false, begin);
    assert_eq!(newest(&young, &[], begin + 1.hours()), []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Each report belongs to at most one due time, and a part of a ledger is the same part of the whole.
    #[test]
    fn reports_are_used_once_and_a_part_is_a_part_of_the_whole(
        zone in 0..ZONES.len(), which in 0..5_usize, grace in 1..200_u16, begins in 0..8_000_i64,
        steps in proptest::collection::vec((0..3_u8, 0..2_000_i64), 0..60), from in 0..3_000_i64,
    ) {
        let begin = ts("2026-01-01T00:00:00Z") + begins.hours();
        let (schedule, minutes) = [
            (json!({"cron": "30 2 * * *", "timezone": ZONES[zone]}), 1_440),
            (json!({"cron": "0 9,10,17 * * MON-FRI", "timezone": ZONES[zone]}), 500),
            (json!({"cron": "*/20 * * * *", "timezone": ZONES[zone]}), 20),
            (json!({"every": "90m"}), 90),
            (json!({"every": "7d"}), 10_080),
        ][which].clone();
        let watched = watched(schedule, grace, true, begin);
        let mut at = begin - 1.hours();
        let mut reports = Vec::new();
        for (kind, step) in steps {
            at += SignedDuration::from_secs(step * minutes * 60 / 1_000);
            reports.push(match kind { 0 => ok(at), 1 => empty(at), _ => failed(at) });
        }
        let now = at;
        let whole = ledger(&watched, &reports, begin, now);
        let counted: usize = whole.iter().map(|expected| expected.reports as usize).sum();
        prop_assert!(counted <= reports.len());
        prop_assert!(whole.is_sorted_by(|a, b| a.due < b.due));
        let mut used: Vec<Timestamp> = whole.iter().filter_map(|e| e.report.as_ref()).map(|r| r.at).collect();
        let all = used.len();
        used.sort();
        used.dedup();
        let mut distinct: Vec<Timestamp> = reports.iter().map(|report| report.at).collect();
        distinct.dedup();
        prop_assert!(used.len() == all || distinct.len() < reports.len());
        for expected in &whole {
            let by_grace = expected.due + watched.grace();
            // An unused report within the grace would have been taken.
            if expected.state == ExpectedState::Silent {
                let next = whole.iter().find(|other| other.due > expected.due).map_or(now, |other| other.due);
                let in_time = |r: &&Report| r.ok && r.at >= expected.due && r.at <= by_grace && r.at < next;
                prop_assert!(!reports.iter().any(|r| in_time(&r)), "{expected:?}");
            }
            match expected.state {
                ExpectedState::Waiting => prop_assert!(now <= by_grace && expected.report.is_none()),
                ExpectedState::Silent => prop_assert!(now > by_grace && expected.report.is_none()),
                _ => prop_assert!(expected.report.is_some()),
            }
        }
        let from = (begin + SignedDuration::from_secs(from * minutes * 60 / 100)).min(now);
        let since = reports_from(&watched, from);
        let needed: Vec<Report> = reports.iter().filter(|report| report.at >= since).cloned().collect();
        let part = ledger(&watched, &needed, from, now);
        prop_assert_eq!(part, whole.into_iter().filter(|expected| expected.due > from).collect::<Vec<_>>());
    }

    /// What is decided about a due time changes only for the better as reports come.
    #[test]
    fn time_alone_changes_waiting_to_silent_and_nothing_else(
        minutes in proptest::collection::vec(0..4_000_i64, 0..8), first in 0..4_000_i64, second in 0..4_000_i64,
    ) {
        let begin = ts("2026-03-27T00:00:00Z");
        let watched = watched(json!({"cron": "30 2 * * *", "timezone": "Europe/Berlin"}), 45, false, begin);
        let reports: Vec<Report> = minutes.iter().map(|m| ok(begin + m.minutes())).collect();
        let (a, b) = (first.min(second), first.max(second));
        let seen = |at: i64| ledger(&watched, &reports, begin, begin + at.minutes());
        for (earlier, later) in seen(a).iter().zip(seen(b)) {
            prop_assert_eq!(earlier.due, later.due);
            match earlier.state {
                ExpectedState::Waiting => {}
                ExpectedState::Silent => prop_assert!(matches!(later.state, ExpectedState::Silent | ExpectedState::Late)),
                state => prop_assert_eq!(state, later.state),
            }
        }
    }

    /// No clock, schedule or order of reports makes it panic.
    #[test]
    fn extreme_times_do_not_panic(now in prop::sample::select(vec![Timestamp::MIN, Timestamp::UNIX_EPOCH, Timestamp::MAX])) {
        let begin = ts("2026-01-01T00:00:00Z");
        let watched = watched(json!({"cron": "0 0 29 2 *"}), 1_440, true, begin);
        let reports = [ok(Timestamp::MIN), ok(Timestamp::MAX), failed(begin)];
        prop_assert!(ledger(&watched, &reports, Timestamp::MIN, now).len() <= MAX_LEDGER);
        let _ = (newest(&watched, &reports, now), reports_from(&watched, now), watched.next_due(now));
    }
}
