//! Rows of looks, and what each kind of fact says.

use jiff::ToSpan;
use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::background::jobs::{JobRun, Outcome};
use crate::ceilings::CeilingOf;
use crate::ids::{ActionId, WatchedId};
use crate::watched::witness::{self, NewWatched, Report, Watched};

fn at(hours: i64) -> Timestamp {
    Timestamp::from_second(1_795_251_600 + hours * 3_600).unwrap()
}

fn wrong(hours: i64) -> Observed {
    Observed::anomaly(Check::QueueAge, "executor", &format!("wrong at {hours}"), "mend it", at(hours))
}

fn fine() -> Observed {
    Observed::fine(Check::QueueAge, "executor")
}

/// What a row of looks says. `x`: an anomaly, `.`: fine, `?`: unknown, `-`: off.
fn said(row: &str, settings: CheckSettings) -> String {
    let mut counter = Counter::default();
    row.chars()
        .enumerate()
        .map(|(n, sign)| {
            let hours = 2 * i64::try_from(n).unwrap();
            let observed = match sign {
                'x' => wrong(hours),
                '.' => fine(),
                '?' => Observed::unknown(Check::QueueAge, "executor"),
                _ => Observed::off(Check::QueueAge, "executor"),
            };
            let (next, say) = look(std::mem::take(&mut counter), &observed, at(hours), settings);
            counter = next;
            match say {
                None => ' ',
                Some(Say::Alert { .. }) => 'A',
                Some(Say::Recovery { .. }) => 'R',
            }
        })
        .collect()
}

#[test]
fn the_second_anomaly_in_a_row_alerts_once_and_its_end_is_said_once() {
    let two = CheckSettings::default();
    for (row, expected) in [
        ("x", " "),
        ("xx", " A"),
        ("xxxxx", " A   "),
        ("x.x.x.", "      "),
        (".x.xx..", "    AR "),
        ("xx.xx.", " AR AR"),
        ("xx..", " AR "),
        // A look that could not see counts nothing and resets nothing.
        ("x?x", "  A"),
        ("x??.", "    "),
        ("xx??x?.", " A    R"),
        ("??", "  "),
        // Nobody expects anything of it any more.
        ("xx-.", " A  "),
        ("x-x", "   "),
        ("xx-xx", " A  A"),
    ] {
        assert_eq!(said(row, two), expected, "{row}");
    }
    assert_eq!(said("x.xx", CheckSettings { hits: 1, ..two }), "ARA ");
    assert_eq!(said("xxxxx.", CheckSettings { hits: 5, ..two }), "    AR");
    assert_eq!(said("xxxx.", CheckSettings { enabled: false, ..two }), "     ");
}

#[test]
fn an_alert_names_what_is_needed() {
    let two = CheckSettings::default();
    let mut counter = Counter::default();
    for hours in [0, 2] {
        (counter, _) = look(counter, &wrong(hours), at(hours), CheckSettings { hits: 4, ..two });
    }
    (counter, _) = look(counter, &wrong(4), at(4), CheckSettings { hits: 4, ..two });
    let (counter, say) = look(counter, &wrong(6), at(6), two);
    let say = serde_json::to_value(say.unwrap()).unwrap();
    let last3 = [6, 4, 2].map(|n| json!({"at": at(n).to_string(), "text": format!("wrong at {n}")}));
    assert_eq!(
        say,
        json!({
            "say": "alert", "check": "queue_age", "item": "executor", "what": "wrong at 6", "remedy": "mend it",
            "count": 4, "since": at(0).to_string(),
            "last3": last3,
        })
    );
    let (after, say) = look(counter.clone(), &fine(), at(8), two);
    let expected = Say::Recovery {
        check: Check::QueueAge,
        item: "executor".to_owned(),
        count: 4,
        since: at(0),
        alerted_at: at(6),
    };
    assert_eq!(say, Some(expected));
    assert_eq!((after.anomalies, after.alerted_at, after.since), (0, None, None));
    assert_eq!(after.last3, counter.last3, "they stay for the page");
    assert!(after.is_idle(at(8)) && !counter.is_idle(at(8)));
    let json = serde_json::to_string(&counter).unwrap();
    assert_eq!(serde_json::from_str::<Counter>(&json).unwrap(), counter);
}

#[test]
fn a_repeated_look_changes_nothing() {
    let two = CheckSettings::default();
    let (first, _) = look(Counter::default(), &wrong(0), at(0), two);
    assert_eq!(look(first.clone(), &wrong(0), at(0), two), (first.clone(), None));
    let (second, say) = look(first, &wrong(2), at(2), two);
    assert!(say.is_some());
    // The repeated look may see something else, and an earlier one may come late.
    for (observed, hours) in [(fine(), 2), (wrong(2), 2), (fine(), 0), (wrong(0), -4)] {
        assert_eq!(look(second.clone(), &observed, at(hours), two), (second.clone(), None));
    }
    // A clock that was a year ahead and is right again does not silence the watchdog for a year.
    let (ahead, _) = look(second, &fine(), at(24 * 365), two);
    let (back, _) = look(ahead, &wrong(4), at(4), two);
    assert!(look(back, &wrong(6), at(6), two).1.is_some());
}

#[test]
fn a_snooze_holds_the_alert_back_and_not_the_recovery() {
    let two = CheckSettings::default();
    let mut counter = Counter { snoozed_until: Some(at(7)), ..Counter::default() };
    let mut alerts = Vec::new();
    for hours in [0, 2, 4, 6, 8, 10] {
        let say;
        (counter, say) = look(counter, &wrong(hours), at(hours), two);
        alerts.extend(say.map(|_| hours));
    }
    assert_eq!(alerts, [8]);
    counter.snoozed_until = Some(at(100));
    assert!(!Counter { anomalies: 0, ..counter.clone() }.is_idle(at(50)));
    assert!(matches!(look(counter, &fine(), at(12), two).1, Some(Say::Recovery { count: 6, .. })));
}

#[test]
fn settings_have_limits() {
    let settings = |text: &str| serde_json::from_str::<WatchdogSettings>(text).unwrap();
    let good = settings(r#"{"checks": {"stale": {"hits": 5}, "queue_age": {"enabled": false}}}"#);
    assert_eq!(good.validate(), Ok(()));
    assert_eq!(good.of(Check::Stale), CheckSettings { enabled: true, hits: 5 });
    assert_eq!(good.of(Check::QueueAge), CheckSettings { enabled: false, hits: 2 });
    assert_eq!(good.of(Check::Heartbeat), CheckSettings::default());
    for hits in [0, 6, 255] {
        let wrong = settings(&format!(r#"{{"checks": {{"stale": {{"hits": {hits}}}}}}}"#));
        let expected = format!("checks.stale.hits: must be 1 to 5, is {hits}");
        assert_eq!(wrong.validate().unwrap_err().to_string(), expected);
    }
    // Unknown fields are refused where bodies are read.
    assert!(serde_json::from_str::<WatchdogSettings>(r#"{"checks": {"x": {}}}"#).is_err());
    for check in Check::ALL {
        assert_eq!(serde_json::to_value(check).unwrap(), check.as_str());
    }
}

#[test]
fn only_what_is_safe_to_repeat_is_healed_and_only_twice() {
    assert_eq!(heal(Check::Stale, "memory_daily:local"), Some(Heal::RunMissedSync));
    assert_eq!(heal(Check::Stale, "memory_daily"), Some(Heal::RunMissedSync));
    assert_eq!(heal(Check::DeadLetters, "executor"), Some(Heal::Redrive));
    for (check, item) in [
        (Check::Stale, "memory_weekly:local"),
        (Check::Stale, "memory_daily_x"),
        (Check::JobFailed, "memory_daily"),
    ] {
        assert_eq!(heal(check, item), None);
    }
    let dead = |hours| Observed::anomaly(Check::DeadLetters, "executor", "3", "", at(hours));
    let mut counter = Counter::default();
    let mut healed = Vec::new();
    for hours in [0, 2, 4, 6] {
        (counter, _) = look(counter, &dead(hours), at(hours), CheckSettings::default());
        healed.extend(heal_now(&counter, &dead(hours)).map(|_| hours));
    }
    assert_eq!(healed, [0, 2]);
    assert_eq!(heal_now(&counter, &Observed::fine(Check::DeadLetters, "executor")), None);
}

/// The checks that see an anomaly, and those that see nothing or are off.
fn verdicts(seen: &[Observed]) -> (Vec<Check>, Vec<Check>) {
    let of = |wanted: fn(&Verdict) -> bool| {
        seen.iter().filter(|seen| wanted(&seen.verdict)).map(|seen| seen.check).collect()
    };
    (of(|v| matches!(v, Verdict::Anomaly { .. })), of(|v| matches!(v, Verdict::Unknown | Verdict::Off)))
}

fn what(seen: &[Observed], check: Check) -> &str {
    let found = seen.iter().find(|seen| seen.check == check).map(|seen| &seen.verdict);
    let Some(Verdict::Anomaly { what, remedy, .. }) = found else { panic!("{found:?}") };
    assert!(remedy.ends_with('.') && !remedy.contains('\n'));
    what
}

#[test]
fn jobs_are_judged_by_their_newest_run_and_their_next_due_time() {
    use Check::{EmptySuccess, JobFailed, Stale};
    let begun = JobRun::begin(None, JobKind::MemoryDaily, "local", at(0), at(0));
    let end = |outcome: Outcome| begun.clone().end(outcome, at(0) + 1.minute());
    let done = end(Outcome { work_found: 2, artefacts: 2, ..Outcome::default() });
    let empty = end(Outcome { work_found: 2, ..Outcome::default() });
    let skipped = end(Outcome { skipped: true, work_found: 2, ..Outcome::default() });
    let failed = end(Outcome { error: Some("timeout: no\r\nanswer".to_owned()), ..Outcome::default() });
    let judged = |last: Option<&JobRun>, next_due: Option<i64>, now: Timestamp| {
        let next_due = next_due.map(at);
        let facts = JobFacts { kind: JobKind::MemoryDaily, subject: "local", last, next_due };
        assert_eq!(facts.item(), "memory_daily:local");
        judge_job(facts, now)
    };
    for (last, next_due, now, anomalies, silent) in [
        (Some(&done), Some(24), at(1), vec![], vec![]),
        (Some(&skipped), Some(24), at(1), vec![], vec![]),
        (None, None, at(1), vec![], vec![]),
        (Some(&done), Some(24), at(26), vec![], vec![]),
        (Some(&done), Some(24), at(26) + 1.second(), vec![Stale], vec![]),
        (None, Some(24), at(26) + 1.second(), vec![Stale], vec![]),
        (Some(&empty), Some(24), at(1), vec![EmptySuccess], vec![]),
        (Some(&failed), Some(24), at(1), vec![JobFailed], vec![EmptySuccess]),
        (Some(&begun), Some(24), at(2), vec![], vec![JobFailed, EmptySuccess]),
        (Some(&begun), Some(24), at(2) + 1.second(), vec![JobFailed], vec![EmptySuccess]),
        (Some(&done), None, at(9_999), vec![], vec![]),
    ] {
        let seen = judged(last, next_due, now);
        assert_eq!(verdicts(&seen), (anomalies, silent), "{last:?} {next_due:?} {now}");
    }
    assert_eq!(
        what(&judged(Some(&failed), None, at(1)), JobFailed),
        "The daily synchronisation of memory has failed: timeout: no  answer"
    );
    assert_eq!(
        what(&judged(Some(&done), Some(24), at(28)), Stale),
        "The daily synchronisation of memory was due 4 hours ago and has not begun."
    );
    assert_eq!(
        what(&judged(Some(&empty), None, at(1)), EmptySuccess),
        "The daily synchronisation of memory succeeded and has written nothing, although it found work: 2."
    );
}

#[test]
fn timers_queues_and_signs_of_life() {
    let now = at(0);
    let enabled = |enabled| verdicts(&[judge_timer("schedule-sweep", enabled, now)]);
    assert_eq!(enabled(Some(true)), (vec![], vec![]));
    assert_eq!(enabled(None), (vec![], vec![Check::TimerDisabled]));
    assert_eq!(enabled(Some(false)), (vec![Check::TimerDisabled], vec![]));
    let queue = |minutes: Option<i64>, dead_letters| {
        let oldest = minutes.map(SignedDuration::from_mins);
        verdicts(&judge_queue(QueueFacts { name: "executor", oldest, dead_letters }, now))
    };
    assert_eq!(queue(Some(0), Some(0)), (vec![], vec![]));
    assert_eq!(queue(Some(30), Some(0)), (vec![], vec![]));
    assert_eq!(queue(Some(31), Some(1)), (vec![Check::QueueAge, Check::DeadLetters], vec![]));
    assert_eq!(queue(None, None), (vec![], vec![Check::QueueAge, Check::DeadLetters]));
    let beat = |minutes: Option<i64>| {
        let last = minutes.map(|minutes| now - minutes.minutes());
        let seen = [judge_heartbeat("The sweep", last, SignedDuration::from_mins(10), now)];
        match &seen[0].verdict {
            Verdict::Anomaly { what, .. } => what.clone(),
            other => format!("{other:?}"),
        }
    };
    assert_eq!(beat(Some(10)), "Fine");
    assert_eq!(beat(Some(-5)), "Fine");
    assert_eq!(beat(Some(11)), "The last sign of life of The sweep was 11 minutes ago.");
    assert_eq!(beat(Some(-60)), "The last sign of life of The sweep lies 1 hour in the future.");
    assert_eq!(beat(None), "The sweep has never given a sign of life.");
}

#[test]
fn a_ceiling_burns_when_it_is_ahead_of_the_time_or_ends_within_a_day() {
    let (begins, ends) = (at(0), at(30 * 24));
    let judged = |ceiling: Option<i64>, spent: i64, last_day: i64, hours: i64| {
        let facts = BudgetFacts {
            of: CeilingOf::Month,
            subject: "",
            ceiling_micros: ceiling,
            spent_micros: spent,
            last_day_micros: last_day,
            begins,
            ends,
        };
        match judge_budget(facts, at(hours)).verdict {
            Verdict::Anomaly { what, .. } => what,
            other => format!("{other:?}"),
        }
    };
    for (ceiling, spent, last_day, hours, expected) in [
        (None, 1_000, 1_000, 24, "Off"),
        (Some(1_000), 0, 0, 24, "Fine"),
        // A tenth of the time is over.
        (Some(1_000), 350, 50, 72, "Fine"),
        (Some(1_000), 351, 50, 72, "Of this month's ceiling, 35 % are spent, and 10 % of its time are over."),
        (Some(1_000), 500, 499, 360, "Fine"),
        (
            Some(1_000),
            500,
            500,
            360,
            "This month's ceiling is reached within a day at this pace: 50 % of it are spent.",
        ),
        // Half a day is left, and half of the day's costs do not reach it.
        (Some(1_000), 900, 199, 708, "Fine"),
        (
            Some(1_000),
            900,
            200,
            708,
            "This month's ceiling is reached within a day at this pace: 90 % of it are spent.",
        ),
        (Some(1_000), 1_000, 0, 708, "This month's ceiling is reached."),
        (Some(1_000), i64::MAX, i64::MAX, 708, "This month's ceiling is reached."),
        (Some(i64::MAX), i64::MAX / 2, i64::MIN, 708, "Fine"),
        // Facts of another month.
        (Some(1_000), 999, 999, -1, "Unknown"),
        (Some(1_000), 999, 999, 720, "Unknown"),
    ] {
        let found = judged(ceiling, spent, last_day, hours);
        assert_eq!(found, expected, "{ceiling:?} {spent} {last_day} {hours}");
    }
}

#[test]
fn actions_are_judged_by_their_rows_and_their_next_time() {
    use Check::{ActionFails, ActionRepeats, ActionWithoutNext, Stale};
    let good = ActionFacts {
        action_id: ActionId::from_uuid(Uuid::from_u128(5)),
        enabled: true,
        paused_by_failures: false,
        is_live: false,
        next: Some(at(5)),
        failures: 0,
        code: None,
        same: 0,
    };
    let all_off = vec![ActionRepeats, ActionWithoutNext, Stale];
    for (facts, now, anomalies, silent) in [
        (good, at(0), vec![], vec![]),
        (ActionFacts { failures: 1, same: 2, ..good }, at(0), vec![], vec![]),
        (ActionFacts { failures: 2, ..good }, at(0), vec![ActionFails], vec![]),
        (ActionFacts { same: 3, ..good }, at(0), vec![ActionRepeats], vec![]),
        (ActionFacts { next: None, ..good }, at(0), vec![ActionWithoutNext], vec![]),
        (ActionFacts { next: None, is_live: true, ..good }, at(0), vec![], vec![]),
        (good, at(7), vec![], vec![]),
        (good, at(8), vec![Stale], vec![]),
        (ActionFacts { is_live: true, ..good }, at(8), vec![], vec![]),
        (
            ActionFacts { enabled: false, paused_by_failures: true, failures: 3, ..good },
            at(8),
            vec![ActionFails],
            all_off.clone(),
        ),
        (
            ActionFacts { enabled: false, failures: 3, same: 9, next: None, ..good },
            at(8),
            vec![],
            std::iter::once(ActionFails).chain(all_off).collect(),
        ),
    ] {
        assert_eq!(verdicts(&judge_action(facts, now)), (anomalies, silent), "{facts:?}");
    }
    let paused = ActionFacts {
        enabled: false,
        paused_by_failures: true,
        failures: 3,
        code: Some("overloaded"),
        ..good
    };
    assert_eq!(
        what(&judge_action(paused, at(0)), ActionFails),
        "The action has failed 3 times in a row: overloaded. It is paused."
    );
}

#[test]
fn a_watched_schedule_is_judged_by_its_newest_known_outcome() {
    let new = json!({"name": "backup", "schedule": {"every": "4h"}, "expects_result": true});
    let new: NewWatched = serde_json::from_value(new).unwrap();
    let watched: Watched = new.validate(WatchedId::from_uuid(Uuid::nil()), at(0)).unwrap();
    let report = |minutes: i64, ok, summary: &str| Report {
        at: at(4) + minutes.minutes(),
        ok,
        summary: summary.to_owned(),
        link: None,
        exit_code: None,
    };
    let judged = |watched: &Watched, reports: &[Report], now: Timestamp| match judge_watched(
        watched,
        &witness::newest(watched, reports, now),
        reports.iter().max_by_key(|report| report.at),
        now,
    )
    .verdict
    {
        Verdict::Anomaly { what, .. } => what.split('.').next().unwrap().to_owned(),
        other => format!("{other:?}"),
    };
    for (reports, now, expected) in [
        (vec![], at(3), "Unknown"),
        (vec![], at(4) + 30.minutes(), "Unknown"),
        (vec![], at(5), "It is silent"),
        (vec![report(5, true, "done")], at(5), "Fine"),
        // The next one is waited for.
        (vec![report(5, true, "done")], at(8), "Fine"),
        (vec![report(5, true, "done")], at(9), "It is silent"),
        (vec![report(45, true, "done")], at(5), "It was late"),
        (vec![report(5, true, " ")], at(5), "It had no result"),
        (vec![report(5, false, "done")], at(5), "It has failed"),
        // Before its first due time, and after a success for the same due time.
        (vec![report(-200, false, "done")], at(1), "It has failed"),
        (vec![report(-200, false, "done")], at(4) + 10.minutes(), "It has failed"),
        (vec![report(-200, false, "done")], at(5), "It is silent"),
        (vec![report(-200, false, "done"), report(-190, true, "done")], at(1), "Fine"),
        (vec![report(-200, false, "done"), report(-190, true, " ")], at(1), "It had no result"),
        (vec![report(5, true, "done"), report(15, false, "done")], at(5), "It has failed"),
        (vec![report(5, true, "done"), report(235, false, "done")], at(8) + 1.minutes(), "It has failed"),
        (vec![report(15, false, "done"), report(25, true, "done")], at(5), "Fine"),
        // It belongs to the next due time.
        (vec![report(5, false, "done"), report(235, true, "done")], at(8) - 1.minutes(), "Fine"),
        // The clock was set back.
        (vec![report(5, false, "done")], at(4), "Unknown"),
    ] {
        assert_eq!(judged(&watched, &reports, now), expected, "{reports:?} {now}");
    }
    assert_eq!(judged(&watched.paused(at(5)), &[], at(6)), "Off");
}

#[test]
fn texts_are_one_line_and_bounded() {
    let seen = Observed::anomaly(Check::Stale, &"é".repeat(300), &"a\r\n".repeat(300), "x\u{2028}y", at(0));
    let Verdict::Anomaly { what, remedy, snapshot } = &seen.verdict else { panic!() };
    assert!(seen.item.len() <= MAX_ITEM && what.len() <= MAX_TEXT && snapshot.text == *what);
    assert!(!what.contains(['\r', '\n']) && remedy == "x y");
}

proptest! {
    /// For any row of looks: alerts and recoveries take turns, an alert comes after at least `hits` anomalies in a row, and the
    /// counter is bounded.
    #[test]
    fn alerts_and_recoveries_take_turns(
        row in proptest::collection::vec((0..4_u8, 0..3_u8), 1..200), hits in 1..=MAX_HITS,
    ) {
        let settings = CheckSettings { enabled: true, hits };
        let mut counter = Counter::default();
        let (mut in_row, mut is_raised, mut hours) = (0_u32, false, 0);
        for (kind, again) in row {
            hours += 2;
            let observed = match kind { 0 => fine(), 1 => Observed::unknown(Check::QueueAge, "executor"), _ => wrong(hours) };
            let (next, say) = look(counter, &observed, at(hours), settings);
            match kind { 0 => in_row = 0, 1 => {} , _ => in_row += 1 }
            match say {
                Some(Say::Alert { count, last3, .. }) => {
                    prop_assert!(!is_raised && count == in_row && in_row >= u32::from(hits));
                    prop_assert!(last3.is_sorted_by(|a, b| a.at > b.at));
                    is_raised = true;
                }
                Some(Say::Recovery { .. }) => {
                    prop_assert!(is_raised && in_row == 0);
                    is_raised = false;
                }
                None => prop_assert!(in_row < u32::from(hits) || is_raised),
            }
            prop_assert_eq!(next.alerted_at.is_some(), is_raised);
            prop_assert!(next.last3.len() <= SNAPSHOTS);
            for _ in 0..again {
                prop_assert_eq!(look(next.clone(), &fine(), at(hours), settings), (next.clone(), None));
            }
            counter = next;
        }
    }
}
