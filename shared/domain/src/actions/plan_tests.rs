//! Decisions about fire times: tables over overlap, catch-up and state. Deciding in steps gives the same result as deciding at
//! once.

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use super::plan::MAX_QUEUED;
use super::samples::{approved, noon, run, ts};
use super::{
    Action, Command, Decision, DuePlan, ExecutionResult, Occurrence, OccurrenceState, plan_due,
    plan_due_except, transition,
};
use crate::ids::ActionId;

/// "13:00 run, 14:00 missed superseded | next 15:00"
fn words(plan: &DuePlan) -> String {
    let time = |at: Timestamp| at.strftime("%H:%M").to_string();
    let decided: Vec<String> = plan
        .decided
        .iter()
        .map(|decided| {
            let code = |reason: &super::Reason| json!(reason.code).as_str().unwrap().to_owned();
            let words = match &decided.decision {
                Decision::Run { kind, cancels } => {
                    let cancels = if cancels.is_some() { " cancelling" } else { "" };
                    format!("run {}{cancels}", json!(kind).as_str().unwrap())
                }
                Decision::Missed(reason) => format!("missed {}", code(reason)),
                Decision::Skipped(reason) => format!("skipped {}", code(reason)),
                Decision::Held(reason) => format!("held {}", code(reason)),
            };
            format!("{} {words}", time(decided.due_at))
        })
        .collect();
    let next = plan.next_due.map_or("nothing".to_owned(), time);
    format!("{} | next {next}{}", decided.join(", "), if plan.more { ", more" } else { "" })
}

/// An action that is due from noon on. If `live`, one of its runs is live.
fn action(schedule: &Value, live: bool) -> (Action, Option<Occurrence>) {
    let action = approved(schedule);
    if !live {
        return (action, None);
    }
    let action = transition(&action, Command::Run { run: run(1) }, noon()).unwrap();
    let occurrence = Occurrence::manual(&action, run(1), noon());
    (action, Some(occurrence))
}

#[test]
fn decisions_follow_overlap_and_catch_up() {
    let hourly = |overlap: &str, catch_up: &str, max_age: &str| {
        let mut json = json!({"cron": "0 * * * *", "overlap": overlap, "catch_up": catch_up});
        if !max_age.is_empty() {
            json["max_age"] = max_age.into();
        }
        json
    };
    let quarters = |overlap: &str| json!({"cron": "*/2 * * * *", "overlap": overlap});
    let cases = [
        // On time, and up to five minutes late.
        (hourly("skip", "none", ""), false, "12:59", " | next 13:00"),
        (hourly("skip", "none", ""), false, "13:00", "13:00 run scheduled | next 14:00"),
        (hourly("skip", "none", ""), false, "13:04", "13:00 run scheduled | next 14:00"),
        (hourly("skip", "none", ""), false, "13:05", "13:00 missed catch_up_off | next 14:00"),
        (hourly("skip", "latest", ""), false, "13:05", "13:00 run catch_up | next 14:00"),
        // After an outage.
        (
            hourly("skip", "none", ""),
            false,
            "15:00",
            "13:00 missed catch_up_off, 14:00 missed catch_up_off, 15:00 run scheduled | next 16:00",
        ),
        (
            hourly("skip", "latest", ""),
            false,
            "15:30",
            "13:00 missed superseded, 14:00 missed superseded, 15:00 run catch_up | next 16:00",
        ),
        (
            hourly("skip", "latest", ""),
            false,
            "15:00",
            "13:00 missed superseded, 14:00 missed superseded, 15:00 run scheduled | next 16:00",
        ),
        (
            hourly("skip", "latest", "20m"),
            false,
            "15:30",
            "13:00 missed superseded, 14:00 missed superseded, 15:00 missed too_old | next 16:00",
        ),
        (
            hourly("skip", "all", ""),
            false,
            "15:30",
            "13:00 run catch_up, 14:00 run catch_up, 15:00 run catch_up | next 16:00",
        ),
        (
            hourly("skip", "all", "2h"),
            false,
            "15:30",
            "13:00 missed too_old, 14:00 run catch_up, 15:00 run catch_up | next 16:00",
        ),
        (
            hourly("skip", "all", "2h"),
            false,
            "15:00",
            "13:00 run catch_up, 14:00 run catch_up, 15:00 skipped overlap | next 16:00",
        ),
        // While a run is live.
        (hourly("skip", "latest", ""), true, "13:00", "13:00 skipped overlap | next 14:00"),
        (hourly("queue", "latest", ""), true, "13:00", "13:00 run scheduled | next 14:00"),
        (hourly("replace", "latest", ""), true, "13:00", "13:00 run scheduled cancelling | next 14:00"),
        (hourly("skip", "latest", ""), true, "13:30", "13:00 skipped overlap | next 14:00"),
        (hourly("replace", "all", ""), true, "14:30", "13:00 run catch_up, 14:00 run catch_up | next 15:00"),
        // Several on time at once.
        (quarters("skip"), false, "12:04", "12:02 missed superseded, 12:04 run scheduled | next 12:06"),
        (quarters("queue"), false, "12:04", "12:02 run scheduled, 12:04 run scheduled | next 12:06"),
        (quarters("replace"), false, "12:04", "12:02 skipped replaced, 12:04 run scheduled | next 12:06"),
        (
            quarters("replace"),
            true,
            "12:04",
            "12:02 skipped replaced, 12:04 run scheduled cancelling | next 12:06",
        ),
        // Schedules with `at`.
        (json!({"at": "2026-11-21T13:00:00Z"}), false, "12:59", " | next 13:00"),
        (json!({"at": "2026-11-21T13:00:00Z"}), false, "13:00", "13:00 run scheduled | next nothing"),
        (json!({"at": "2026-11-21T13:00:00Z"}), false, "23:00", "13:00 run catch_up | next nothing"),
        (
            json!({"at": "2026-11-21T13:00:00Z", "max_age": "1h"}),
            false,
            "23:00",
            "13:00 missed too_old | next nothing",
        ),
        (
            json!({"cron": "@hourly", "end_at": "2026-11-21T14:30:00Z"}),
            false,
            "14:00",
            "13:00 missed superseded, 14:00 run scheduled | next nothing",
        ),
    ];
    for (schedule, live, at, expected) in cases {
        let (action, occurrence) = action(&schedule, live);
        let now = ts(&format!("2026-11-21T{at}:00Z"));
        let plan = plan_due(&action, now, occurrence.as_ref(), 100);
        assert_eq!(words(&plan), expected, "{schedule} at {at}{}", if live { ", live" } else { "" });
    }
}

#[test]
fn catch_up_also_decides_overtaken_times_of_the_last_five_minutes() {
    let minutes = |overlap: &str, catch_up: &str, max_age: Option<&str>| {
        let mut json = json!({"cron": "* * * * *", "overlap": overlap, "catch_up": catch_up});
        if let Some(max_age) = max_age {
            json["max_age"] = max_age.into();
        }
        json
    };
    let cases = [
        (
            minutes("skip", "none", None),
            "12:01 missed catch_up_off, 12:02 missed catch_up_off, 12:03 run scheduled",
        ),
        (
            minutes("skip", "latest", None),
            "12:01 missed superseded, 12:02 missed superseded, 12:03 run scheduled",
        ),
        (minutes("skip", "all", None), "12:01 run catch_up, 12:02 run catch_up, 12:03 skipped overlap"),
        (
            minutes("skip", "all", Some("1m")),
            "12:01 missed too_old, 12:02 missed too_old, 12:03 run scheduled",
        ),
        (minutes("queue", "none", None), "12:01 run scheduled, 12:02 run scheduled, 12:03 run scheduled"),
        (minutes("queue", "latest", None), "12:01 run scheduled, 12:02 run scheduled, 12:03 run scheduled"),
        (
            minutes("queue", "latest", Some("1m")),
            "12:01 missed too_old, 12:02 missed too_old, 12:03 run scheduled",
        ),
        (
            minutes("replace", "none", None),
            "12:01 skipped replaced, 12:02 skipped replaced, 12:03 run scheduled",
        ),
        (
            minutes("replace", "latest", None),
            "12:01 skipped replaced, 12:02 skipped replaced, 12:03 run scheduled",
        ),
        (
            minutes("replace", "all", None),
            "12:01 run catch_up, 12:02 run catch_up, 12:03 run scheduled cancelling",
        ),
        (json!({"at": "2026-11-21T12:01:00Z", "max_age": "1m"}), "12:01 missed too_old"),
        (json!({"at": "2026-11-21T12:01:00Z", "max_age": "3m"}), "12:01 run scheduled"),
    ];
    for (schedule, expected) in cases {
        let plan = plan_due(&approved(&schedule), ts("2026-11-21T12:03:30Z"), None, 100);
        let words = words(&plan);
        assert_eq!(words.split(" | ").next(), Some(expected), "{schedule}");
    }
}

/// If the queue is full, an executor may process a due time long after a sweep found it. The decision is the one of the time when
/// the sweep found it.
#[test]
fn a_found_due_time_is_decided_as_of_the_time_when_it_was_found() {
    let once = |more: Value| {
        let mut json = json!({"at": "2026-11-21T13:00:00Z", "catch_up": "none"});
        json.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json
    };
    let hourly = |overlap: &str| json!({"cron": "@hourly", "overlap": overlap, "catch_up": "none"});
    // The schedule; when a sweep first found it, and up to when sweeps have looked ahead since; when an executor processes it.
    let cases = [
        // No sweep has found it.
        (once(json!({})), None, "13:04", "13:00 run scheduled"),
        (once(json!({})), None, "13:05", "13:00 missed catch_up_off"),
        // Found before its time: it runs, even if the executor is very late.
        (once(json!({})), Some(("12:59", "13:00")), "13:05", "13:00 run scheduled"),
        (once(json!({})), Some(("12:59", "13:00")), "23:00", "13:00 run scheduled"),
        (once(json!({"max_age": "1m"})), Some(("12:59", "13:00")), "23:00", "13:00 run scheduled"),
        // Found after its time: decided as of the time when it was found.
        (once(json!({})), Some(("13:04", "13:05")), "23:00", "13:00 run scheduled"),
        (once(json!({})), Some(("13:05", "13:06")), "23:00", "13:00 missed catch_up_off"),
        (once(json!({"max_age": "1m"})), Some(("13:02", "13:03")), "23:00", "13:00 missed too_old"),
        // Sweeps have not looked ahead as far as its time, so no sweep has found it.
        (once(json!({})), Some(("12:30", "12:59")), "13:05", "13:00 missed catch_up_off"),
        // The clock of the sweep is ahead of the executor's clock. Nothing is decided as of a time in the future.
        (once(json!({})), Some(("14:00", "14:01")), "13:04", "13:00 run scheduled"),
        // Several due times, each decided as of its own time, as if an executor had processed each of them in time.
        (
            hourly("skip"),
            Some(("12:59", "15:01")),
            "15:30",
            "13:00 run scheduled, 14:00 skipped overlap, 15:00 skipped overlap",
        ),
        (
            hourly("queue"),
            Some(("12:59", "15:01")),
            "15:30",
            "13:00 run scheduled, 14:00 run scheduled, 15:00 run scheduled",
        ),
        (
            hourly("replace"),
            Some(("12:59", "15:01")),
            "15:30",
            "13:00 run scheduled, 14:00 run scheduled cancelling, 15:00 run scheduled cancelling",
        ),
        // Sweeps stopped after 13:00. No sweep has found the later due times.
        (
            hourly("queue"),
            Some(("12:59", "13:01")),
            "15:30",
            "13:00 run scheduled, 14:00 missed catch_up_off, 15:00 missed catch_up_off",
        ),
    ];
    for (schedule, found, now, expected) in cases {
        let time = |at: &str| ts(&format!("2026-11-21T{at}:00Z"));
        let mut action = approved(&schedule);
        (action.found_at, action.found_until) = found.map(|(at, until)| (time(at), time(until))).unzip();
        let (mut decided, mut live) = (Vec::new(), None);
        loop {
            let plan = plan_due(&action, time(now), live.as_ref(), 100);
            assert!(plan.decided.len() <= 100 && decided.len() < 10, "planning must end: {decided:?}");
            action = transition(&action, Command::Planned { plan: &plan }, time(now)).unwrap();
            let began = plan.decided.iter().find(|d| action.live_run == Some(d.run_id(action.id)));
            live = began.map(|began| Occurrence::decided(&action, began, time(now))).or(live);
            decided.extend(words(&plan).split(" | ").next().filter(|w| !w.is_empty()).map(str::to_owned));
            if !plan.more {
                break;
            }
        }
        assert_eq!(decided.join(", "), expected, "{schedule}, found {found:?}, looked at {now}");
        assert_eq!((action.found_at, action.found_until), (None, None), "the next due time is not found yet");
    }
}

#[test]
fn a_reason_says_why_a_time_was_missed() {
    let cases = [
        ("none", "it was found 2 min late, and the schedule catches nothing up"),
        ("latest", "it was found 2 min late, and only the newest due time is caught up"),
    ];
    for (catch_up, expected) in cases {
        let action = approved(&json!({"cron": "* * * * *", "catch_up": catch_up}));
        let plan = plan_due(&action, ts("2026-11-21T12:03:30Z"), None, 100);
        let Decision::Missed(reason) = &plan.decided[0].decision else { panic!("{plan:?}") };
        assert_eq!(reason.text, expected);
    }
}

#[test]
fn lateness_counts_from_the_end_of_the_jitter() {
    let mut action = approved(&json!({"cron": "@hourly", "jitter": "30m", "max_age": "5m"}));
    action.id = ActionId::from_uuid(Uuid::from_u128(5));
    let wake = action.wake_at(None).unwrap();
    assert!(wake.duration_since(action.next_due.unwrap()) > SignedDuration::from_mins(5));
    assert_eq!(words(&plan_due(&action, wake, None, 10)), "13:00 run scheduled | next 14:00");
}

#[test]
fn a_queue_has_a_limit() {
    let (mut action, live) = action(&json!({"cron": "*/2 * * * *", "overlap": "queue"}), true);
    let check = |action: &Action, expected: &str| {
        let plan = plan_due(action, ts("2026-11-21T12:04:00Z"), live.as_ref(), 100);
        assert_eq!(words(&plan), format!("{expected} | next 12:06"));
        plan
    };
    action.queued = MAX_QUEUED - 1;
    check(&action, "12:02 run scheduled, 12:04 skipped queue_full");
    action.queued = MAX_QUEUED;
    let plan = check(&action, "12:02 skipped queue_full, 12:04 skipped queue_full");
    let Decision::Skipped(reason) = &plan.decided[0].decision else { panic!("{plan:?}") };
    assert_eq!(reason.text, "200 runs were queued already, which is the limit");

    // Catches up ten hours.
    let all = approved(&json!({"cron": "*/2 * * * *", "catch_up": "all"}));
    let plan = plan_due(&all, ts("2026-11-21T22:01:00Z"), None, 1_000);
    let runs = plan.decided.iter().filter(|decided| matches!(decided.decision, Decision::Run { .. }));
    assert_eq!((runs.count(), plan.decided.len()), (201, 300));
    let planned = transition(&all, Command::Planned { plan: &plan }, noon()).unwrap();
    assert_eq!((planned.queued, planned.last_due), (MAX_QUEUED, Some(ts("2026-11-21T22:00:00Z"))));
}

#[test]
fn recorded_times_are_skipped() {
    let action = approved(&json!({"cron": "*/2 * * * *", "overlap": "queue"}));
    let now = ts("2026-11-21T12:06:30Z");
    let recorded = ["12:02", "12:06"].map(|at| ts(&format!("2026-11-21T{at}:00Z"))).into();
    let plan = plan_due_except(&action, now, None, 100, &recorded);
    assert_eq!(words(&plan), "12:04 run scheduled | next 12:08");
    let all = ["12:02", "12:04", "12:06"].map(|at| ts(&format!("2026-11-21T{at}:00Z"))).into();
    let plan = plan_due_except(&action, now, None, 100, &all);
    assert_eq!((words(&plan).as_str(), plan.changes_nothing(&action)), (" | next 12:08", false));
    let planned = transition(&action, Command::Planned { plan: &plan }, now).unwrap();
    assert_eq!(planned.next_due, Some(ts("2026-11-21T12:08:00Z")));
    assert!(plan_due(&planned, now, None, 100).changes_nothing(&planned));
}

#[test]
fn decisions_follow_the_state() {
    let (live, occurrence) = action(&json!({"cron": "@hourly"}), true);
    let scheduled = approved(&json!({"cron": "@hourly"}));
    let then = |action: &Action, command| transition(action, command, noon()).unwrap();
    let waiting = then(&live, Command::OccurrenceEnded { run: run(1), outcome: ExecutionResult::Waiting });
    let asked = then(&live, Command::OccurrenceEnded { run: run(1), outcome: ExecutionResult::Drifted });
    let with_state = |state| occurrence.clone().map(|occurrence| Occurrence { state, ..occurrence });
    let cases = [
        ("paused", then(&scheduled, Command::Pause), None, "13:00 skipped paused | next 14:00"),
        ("waiting", waiting, with_state(OccurrenceState::Waiting), "13:00 held needs_approval | next 14:00"),
        ("asked", asked, None, "13:00 held needs_approval | next 14:00"),
        ("live", live.clone(), None, "13:00 skipped overlap | next 14:00"),
        // The run has ended, but the action is not updated yet.
        ("ended", live.clone(), with_state(OccurrenceState::Succeeded), "13:00 run scheduled | next 14:00"),
        (
            "about to wait",
            live,
            with_state(OccurrenceState::Waiting),
            "13:00 held needs_approval | next 14:00",
        ),
        ("dismissed", then(&scheduled, Command::Dismiss), None, " | next nothing"),
        ("cancelled", then(&scheduled, Command::Cancel), None, " | next nothing"),
    ];
    for (name, action, live, expected) in cases {
        let plan = plan_due(&action, ts("2026-11-21T13:01:00Z"), live.as_ref(), 100);
        assert_eq!(words(&plan), expected, "{name}");
    }
}

#[test]
fn a_plan_at_its_limit_says_that_there_is_more() {
    let action = approved(&json!({"cron": "*/20 * * * *", "catch_up": "none"}));
    let now = ts("2026-11-21T13:10:00Z");
    for (limit, expected) in [
        (0, "12:20 missed catch_up_off | next 12:40, more"),
        (2, "12:20 missed catch_up_off, 12:40 missed catch_up_off | next 13:00, more"),
        (3, "12:20 missed catch_up_off, 12:40 missed catch_up_off, 13:00 missed catch_up_off | next 13:20"),
    ] {
        assert_eq!(words(&plan_due(&action, now, None, limit)), expected, "limit {limit}");
    }
}

#[test]
fn jitter_delays_the_decision_but_not_the_due_time() {
    let mut action = approved(&json!({"cron": "@hourly", "jitter": "30m"}));
    action.id = ActionId::from_uuid(Uuid::from_u128(5));
    let due = action.next_due.unwrap();
    let wake = action.wake_at(None).unwrap();
    assert!(wake > due);
    let before = plan_due(&action, wake - SignedDuration::from_secs(1), None, 10);
    assert_eq!((before.decided.len(), before.wake_at), (0, Some(wake)));
    let plan = plan_due(&action, wake, None, 10);
    assert_eq!(words(&plan), "13:00 run scheduled | next 14:00");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn deciding_in_steps_equals_deciding_at_once(
        overlap in prop::sample::select(&["skip", "queue", "replace"][..]),
        catch_up in prop::sample::select(&["none", "latest", "all"][..]),
        max_age in 60i64..20_000,
        cron in prop::sample::select(&["*/2 * * * *", "*/10 * * * *", "7 * * * *", "0 9,15 * * *"][..]),
        jitter in 0i64..900,
        hours in 0i64..30,
        seconds in 0i64..3_600,
        live: bool,
        paused: bool,
        limit in 1usize..6,
    ) {
        let schedule = json!({
            "cron": cron, "overlap": overlap, "catch_up": catch_up,
            "max_age": format!("{max_age}s"), "jitter": format!("{jitter}s"),
        });
        let (mut stepped, mut occurrence) = action(&schedule, live);
        if paused {
            stepped = transition(&stepped, Command::Pause, noon()).unwrap();
        }
        let now = noon() + SignedDuration::from_secs(hours * 3_600 + seconds);
        let at_once = plan_due(&stepped, now, occurrence.as_ref(), usize::MAX);
        let expected_action = match at_once.decided.is_empty() {
            true => stepped.clone(),
            false => transition(&stepped, Command::Planned { plan: &at_once }, now).unwrap(),
        };
        let anchor = stepped.anchor.unwrap();
        let schedule = stepped.schedule.clone().unwrap();
        let fires: Vec<Timestamp> = std::iter::successors(schedule.next_after(anchor, anchor), |last| schedule.next_after(anchor, *last))
            .take_while(|fire| schedule.wake_at(stepped.id, *fire) <= now)
            .collect();
        let due: Vec<Timestamp> = at_once.decided.iter().map(|decided| decided.due_at).collect();
        match at_once.held {
            Some(held) => {
                let covered = (held.times as usize, Some(held.first_due_at), Some(held.last_due_at));
                prop_assert_eq!(covered, (fires.len(), fires.first().copied(), fires.last().copied()));
            }
            None => prop_assert_eq!(due, fires, "each fire time is decided exactly once, in order"),
        }

        let mut decided = Vec::new();
        loop {
            let plan = plan_due(&stepped, now, occurrence.as_ref(), limit);
            prop_assert!(plan.decided.len() <= limit);
            if !plan.decided.is_empty() {
                stepped = transition(&stepped, Command::Planned { plan: &plan }, now).unwrap();
            }
            for one in &plan.decided {
                if stepped.live_run == Some(one.run_id(stepped.id)) {
                    occurrence = Some(Occurrence::decided(&stepped, one, now));
                }
            }
            let DuePlan { decided: some, next_due, wake_at, more, held } = plan;
            decided.extend(some);
            if !more {
                prop_assert_eq!(DuePlan { decided, next_due, wake_at, more, held }, at_once);
                break;
            }
        }
        let versionless = |action: Action| Action { version: 0, ..action };
        prop_assert_eq!(versionless(stepped), versionless(expected_action));
    }
}
