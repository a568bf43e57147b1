//! The complete matrix of states and commands, each rule by itself, and the states that no sequence of commands can reach.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::samples::{approved, briefing, defined, in_state, noon, run, schedule, ts};
use super::{
    Action, ActionPatch, ActionState, Briefing, Command, DuePlan, ExecutionResult, Refused, ValidPatch,
    approval_hash, plan_due, plan_due_except, transition,
};
use crate::tools::ToolSpecForHash;

fn patch(value: serde_json::Value) -> ValidPatch {
    serde_json::from_value::<ActionPatch>(value).unwrap().validate().unwrap()
}

/// "in_progress, live run, due 2026-11-22T09:00:00Z"
fn words(action: &Action) -> String {
    let mut words = action.state.as_str().to_owned();
    if action.approval.is_none() {
        words.push_str(", not approved");
    }
    if let Some(run) = action.live_run {
        words.push_str(&format!(", live {}", run.uuid().as_u128()));
    }
    if action.queued > 0 {
        words.push_str(&format!(", {} queued", action.queued));
    }
    if let Some(due) = action.next_due {
        words.push_str(&format!(", due {due}"));
    }
    words
}

#[test]
fn queued_runs_are_forgotten_one_by_one() {
    let check = |value: Value, next_due: Option<Timestamp>, ends: ActionState| {
        let mut action = approved(&value);
        (action.queued, action.next_due) = (2, next_due);
        let unqueued =
            |action: &Action, left| transition(action, Command::Unqueued { left }, noon()).unwrap();
        let one = unqueued(&action, 1);
        assert_eq!((one.queued, one.state, one.version), (1, ActionState::Scheduled, action.version + 1));
        assert_eq!(unqueued(&one, 1), one);
        let none = unqueued(&one, 0);
        assert_eq!((none.queued, none.state), (0, ends), "{value}");
        // The count never grows.
        assert_eq!(unqueued(&none, 5), none);
    };
    let hourly = json!({"every": "1h"});
    check(hourly.clone(), Some(noon()), ActionState::Scheduled);
    check(hourly, None, ActionState::Completed);
    check(json!({"at": "2026-11-21T13:00:00Z"}), None, ActionState::Failed);
}

#[test]
fn every_state_answers_every_command() {
    let (title, instructions) =
        (patch(json!({"title": "Another"})), patch(json!({"task_config": {"instructions": "Else"}})));
    let (daily, hourly) = (schedule(json!({"cron": "0 9 * * *"})), schedule(json!({"every": "1h"})));
    let briefing = briefing();
    let mut report = String::new();
    for state in ActionState::ALL {
        let action = in_state(state);
        let hash = approval_hash(&action, &briefing);
        let approval = action.approval.as_ref().map_or("none", |approval| &approval.hash);
        let plan = plan_due(&action, ts("2026-11-22T09:01:00Z"), None, 10);
        let commands = [
            ("approve", Command::Approve { hash: &hash, briefing: &briefing }),
            ("approve, stale", Command::Approve { hash: "stale", briefing: &briefing }),
            ("schedule, same", Command::Schedule { schedule: &daily, briefing: &briefing }),
            ("schedule, other", Command::Schedule { schedule: &hourly, briefing: &briefing }),
            ("run", Command::Run { run: run(2) }),
            ("pause", Command::Pause),
            ("resume", Command::Resume),
            ("cancel", Command::Cancel),
            ("dismiss", Command::Dismiss),
            ("complete", Command::Complete),
            ("edit title", Command::Patch { patch: &title }),
            ("edit instructions", Command::Patch { patch: &instructions }),
            ("planned", Command::Planned { plan: &plan }),
            ("started, live", Command::OccurrenceStarted { run: run(1), approval_hash: approval }),
            ("started, other", Command::OccurrenceStarted { run: run(2), approval_hash: approval }),
            ("started, drifted", Command::OccurrenceStarted { run: run(1), approval_hash: "old" }),
            ("unqueued", Command::Unqueued { left: 0 }),
            ("succeeded", Command::OccurrenceEnded { run: run(1), outcome: ExecutionResult::Succeeded }),
            ("failed", Command::OccurrenceEnded { run: run(1), outcome: ExecutionResult::Failed }),
            ("cancelled", Command::OccurrenceEnded { run: run(1), outcome: ExecutionResult::Cancelled }),
            ("waiting", Command::OccurrenceEnded { run: run(1), outcome: ExecutionResult::Waiting }),
            ("unknown", Command::OccurrenceEnded { run: run(1), outcome: ExecutionResult::Unknown }),
            ("drifted", Command::OccurrenceEnded { run: run(1), outcome: ExecutionResult::Drifted }),
            ("ended, other run", Command::OccurrenceEnded { run: run(2), outcome: ExecutionResult::Failed }),
        ];
        report.push_str(&format!("{}\n", words(&action)));
        for (name, command) in commands {
            let now = ts("2026-11-22T09:01:00Z");
            let after = match transition(&action, command, now) {
                Ok(next) if next == action => "unchanged".to_owned(),
                Ok(next) => {
                    assert_eq!((next.version, next.updated_at), (action.version + 1, now));
                    check(&next);
                    words(&next)
                }
                Err(refused) => {
                    assert_eq!(refused.state(), state);
                    format!("refused, {}", refused.code())
                }
            };
            report.push_str(&format!("    {name:18} {after}\n"));
        }
    }
    insta::assert_snapshot!(report);
}

/// The invariants of every action.
fn check(action: &Action) {
    use ActionState::{InProgress, NeedsApproval, Paused, Scheduled};
    let words = words(action);
    let alive = matches!(action.state, Scheduled | Paused | InProgress | NeedsApproval);
    if action.next_due.is_some() {
        assert!(
            alive && action.schedule.is_some() && action.approval.is_some() && action.anchor.is_some(),
            "{words}"
        );
    }
    if action.queued > 0 {
        assert!(alive && action.approval.is_some(), "{words}");
    }
    assert!(alive || action.live_run.is_none(), "{words}");
    assert!(!action.paused || action.state == NeedsApproval, "{words}");
    match action.state {
        Scheduled | Paused => {
            assert!(action.approval.is_some(), "{words}");
            assert!(action.next_due.is_some() || action.live_run.is_some() || action.queued > 0, "{words}");
        }
        InProgress => assert!(action.live_run.is_some(), "{words}"),
        NeedsApproval => assert!(action.approval.is_some(), "{words}"),
        _ => {}
    }
}

/// A pause stays in effect after the live run has asked a person.
#[test]
fn a_pause_outlives_a_question() {
    fn then(action: &Action, command: Command<'_>) -> Action {
        transition(action, command, noon()).unwrap()
    }
    let ended = |outcome| Command::OccurrenceEnded { run: run(1), outcome };
    let running = then(&in_state(ActionState::Scheduled), Command::Run { run: run(1) });
    let paused = then(&running, Command::Pause);
    assert_eq!((paused.state, paused.live_run), (ActionState::Paused, Some(run(1))));

    let asks = then(&paused, ended(ExecutionResult::Waiting));
    assert_eq!((asks.state, asks.live_run), (ActionState::NeedsApproval, Some(run(1))));
    let answered = then(&asks, Command::Resume);
    assert_eq!((answered.state, answered.live_run), (ActionState::Paused, Some(run(1))));
    let hash = &answered.approval.as_ref().unwrap().hash;
    let works = then(&answered, Command::OccurrenceStarted { run: run(1), approval_hash: hash });
    for outcome in [ExecutionResult::Succeeded, ExecutionResult::Failed, ExecutionResult::Cancelled] {
        assert_eq!(then(&works, ended(outcome)).state, ActionState::Paused, "{outcome:?}");
    }
    // The run may ask more than once, and may be cancelled while it asks.
    let asks = then(&works, ended(ExecutionResult::Waiting));
    assert_eq!(then(&asks, Command::Cancel).state, ActionState::Paused);
    // A person may also be asked after the run.
    for outcome in [ExecutionResult::Unknown, ExecutionResult::Drifted] {
        let asks = then(&paused, ended(outcome));
        let hash = approval_hash(&asks, &briefing());
        let approved = then(&asks, Command::Approve { hash: &hash, briefing: &briefing() });
        assert_eq!(approved.state, ActionState::Paused, "{outcome:?}");
        // If nothing runs, "resume" resumes the schedule.
        assert_eq!(then(&asks, Command::Resume).state, ActionState::Scheduled, "{outcome:?}");
    }
    // Resumed before the question, it is not paused after it.
    let resumed = then(&paused, Command::Resume);
    let asks = then(&resumed, ended(ExecutionResult::Waiting));
    assert_eq!(then(&asks, Command::Resume).state, ActionState::InProgress);
}

#[test]
fn approval_and_schedule_make_it_due_in_either_order() {
    let daily = json!({"cron": "0 9 * * *"});
    let first_approved = approved(&json!(null));
    assert_eq!(words(&first_approved), "defined");
    let parsed = schedule(daily.clone());
    let then_scheduled =
        transition(&first_approved, Command::Schedule { schedule: &parsed, briefing: &briefing() }, noon())
            .unwrap();
    let first_scheduled = approved(&daily);
    for action in [&then_scheduled, &first_scheduled] {
        assert_eq!(words(action), "scheduled, due 2026-11-22T09:00:00Z");
        assert_eq!(action.anchor, Some(noon()));
        // In both cases, the approval matches the current content.
        assert_eq!(action.approval.as_ref().unwrap().hash, approval_hash(action, &briefing()));
    }
}

#[test]
fn an_approval_covers_a_first_schedule_only_while_its_tools_are_the_same() {
    let changed = ToolSpecForHash { name: "save_output".into(), schema: json!({"type": "object", "x": 1}) };
    let changed = Briefing { tools: vec![changed], ..briefing() };
    let parsed = schedule(json!({"cron": "0 9 * * *"}));
    let command = Command::Schedule { schedule: &parsed, briefing: &changed };
    let action = transition(&approved(&json!(null)), command, noon()).unwrap();
    assert_eq!(words(&action), "defined, not approved");
}

#[test]
fn a_stale_approval_is_refused_with_both_hashes() {
    let action = defined(&json!({"every": "1h"}));
    let refused =
        transition(&action, Command::Approve { hash: "0123", briefing: &briefing() }, noon()).unwrap_err();
    let current = approval_hash(&action, &briefing());
    assert_eq!(
        refused.to_string(),
        format!("the action has changed: the approval is for 0123, and it is now {}…", &current[..12])
    );
    let state = ActionState::Defined;
    assert_eq!(refused, Refused::ApprovalMismatch { state, given: "0123".into(), current });
}

#[test]
fn an_at_time_is_due_if_it_is_in_the_future_or_less_than_five_minutes_ago() {
    for (at, expected) in [
        ("2026-11-21T12:00:01Z", Ok("scheduled, due 2026-11-21T12:00:01Z")),
        ("2026-11-21T12:00:00Z", Ok("scheduled, due 2026-11-21T12:00:00Z")),
        ("2026-11-21T11:55:01Z", Ok("scheduled, due 2026-11-21T11:55:01Z")),
        ("2026-11-21T11:55:00Z", Err("schedule_in_the_past")),
    ] {
        let action = defined(&json!({"at": at}));
        let hash = approval_hash(&action, &briefing());
        let answer = transition(&action, Command::Approve { hash: &hash, briefing: &briefing() }, noon());
        let answer = answer.as_ref().map(words).map_err(Refused::code);
        assert_eq!(answer.as_ref().map(String::as_str).map_err(|code| *code), expected, "{at}");
    }
}

#[test]
fn only_edits_of_approved_fields_withdraw_the_approval() {
    let cases = [
        (json!({"priority": "high"}), true),
        (json!({"title": "New"}), false),
        (json!({"description": "New"}), false),
        (json!({"task_config": {"instructions": "Write the report"}, "grants": ["save_output"]}), true),
        (json!({"task_config": {"instructions": "New"}}), false),
        (json!({"task_config": {"expected_output": "New"}}), false),
        (json!({"schedule": {"every": "1h"}}), false),
        (json!({"schedule": null}), false),
        (json!({"grants": []}), false),
        (json!({"model_tier": "deep"}), false),
        (json!({"budget": {"per_run_micros": 5}}), false),
        (json!({"budget": {"per_month_micros": 5}}), false),
        (json!({"budget": {}}), true),
    ];
    for (change, stays) in cases {
        let before = in_state(ActionState::Scheduled);
        let after = transition(&before, Command::Patch { patch: &patch(change.clone()) }, noon()).unwrap();
        let expected = if stays { words(&before) } else { "defined, not approved".to_owned() };
        assert_eq!(words(&after), expected, "{change}");
        let same_hash = approval_hash(&before, &briefing()) == approval_hash(&after, &briefing());
        assert_eq!(same_hash, stays, "{change}");
    }
}

#[test]
fn a_decided_at_time_needs_a_new_time() {
    let minutes = |minutes| noon() + SignedDuration::from_mins(minutes);
    let at = json!({"at": minutes(1)});
    let approve = |action: &Action, now| {
        let hash = approval_hash(action, &briefing());
        transition(action, Command::Approve { hash: &hash, briefing: &briefing() }, now)
    };
    let edited = |action: &Action, change: Value| {
        transition(action, Command::Patch { patch: &patch(change) }, minutes(3)).unwrap()
    };
    let planned = |action: &Action| {
        let plan = plan_due(action, minutes(2), None, 10);
        transition(action, Command::Planned { plan: &plan }, minutes(2)).unwrap()
    };
    let ran = {
        let live = planned(&approved(&at));
        let run = live.live_run.unwrap();
        transition(&live, Command::OccurrenceEnded { run, outcome: ExecutionResult::Succeeded }, minutes(2))
            .unwrap()
    };
    assert_eq!(words(&ran), "completed");
    let skipped = planned(&transition(&approved(&at), Command::Pause, noon()).unwrap());
    assert_eq!(words(&skipped), "failed");
    let said = "`schedule.at` is 2026-11-21T12:01:00Z, which has passed or was already decided: set a new time, \
                or remove the schedule (`schedule: null`), approve the action and run it now";
    for action in [&ran, &skipped] {
        // Less than five minutes late, with and without a change.
        for asked in [action.clone(), edited(action, json!({"task_config": {"instructions": "Else"}}))] {
            let refused = approve(&asked, minutes(4)).unwrap_err();
            assert_eq!((refused.code(), refused.to_string()), ("schedule_in_the_past", said.to_owned()));
        }
        let moved = edited(action, json!({"schedule": {"at": minutes(10)}}));
        assert_eq!(words(&approve(&moved, minutes(4)).unwrap()), "scheduled, due 2026-11-21T12:10:00Z");
        let by_hand = approve(&edited(action, json!({"schedule": null})), minutes(4)).unwrap();
        assert_eq!(words(&by_hand), "defined");
        assert!(transition(&by_hand, Command::Run { run: run(3) }, minutes(4)).is_ok());
    }
    // An action that a person has completed becomes due again by an approval.
    let done = transition(&approved(&json!({"cron": "0 9 * * *"})), Command::Complete, noon()).unwrap();
    assert_eq!(words(&approve(&done, noon()).unwrap()), "scheduled, due 2026-11-22T09:00:00Z");
    // The time of the schedule has passed, and a run by hand is live. A second approval of the same content does not disturb it.
    let by_hand = transition(&ran, Command::Run { run: run(3) }, minutes(4)).unwrap();
    assert_eq!(approve(&by_hand, minutes(4)).unwrap(), by_hand);
}

/// A command without borrowed data.
#[derive(Debug, Clone)]
enum Step {
    Approve { stale: bool },
    Schedule(usize),
    Run,
    Simple(usize),
    Patch(usize),
    Plan,
    Start { live: bool },
    End { live: bool, outcome: usize },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => prop::bool::weighted(0.2).prop_map(|stale| Step::Approve { stale }),
        2 => (0..6usize).prop_map(Step::Schedule),
        2 => Just(Step::Run),
        3 => (0..5usize).prop_map(Step::Simple),
        1 => (0..4usize).prop_map(Step::Patch),
        4 => Just(Step::Plan),
        3 => prop::bool::weighted(0.8).prop_map(|live| Step::Start { live }),
        3 => (prop::bool::weighted(0.9), 0..6usize).prop_map(|(live, outcome)| Step::End { live, outcome }),
    ]
}

fn perform(action: &Action, step: &Step, now: Timestamp) -> Result<Action, Refused> {
    let briefing = briefing();
    let hash = approval_hash(action, &briefing);
    let approval = action.approval.as_ref().map_or("none", |approval| &approval.hash);
    let live = |live: bool| if live { action.live_run.unwrap_or(run(7)) } else { run(8) };
    let schedules = [
        json!({"cron": "*/20 * * * *", "overlap": "queue"}),
        json!({"every": "30m", "overlap": "replace", "catch_up": "all"}),
        json!({"at": now + SignedDuration::from_mins(30)}),
        json!({"at": now - SignedDuration::from_mins(3)}),
        json!({"cron": "*/2 * * * *", "jitter": "1m", "catch_up": "none"}),
        json!({"every": "20m", "end_at": now + SignedDuration::from_hours(1)}),
    ];
    let command = match step {
        Step::Approve { stale: true } => Command::Approve { hash: "stale", briefing: &briefing },
        Step::Approve { stale: false } => Command::Approve { hash: &hash, briefing: &briefing },
        Step::Schedule(n) => {
            let schedule = schedule(schedules[*n].clone());
            return transition(action, Command::Schedule { schedule: &schedule, briefing: &briefing }, now);
        }
        Step::Run => Command::Run { run: run(u128::from(now.as_second().unsigned_abs())) },
        Step::Simple(n) => {
            [Command::Pause, Command::Resume, Command::Cancel, Command::Dismiss, Command::Complete][*n]
        }
        Step::Patch(n) => {
            let changes = [
                json!({"title": now.to_string()}),
                json!({"task_config": {"instructions": now.to_string()}}),
                json!({"schedule": null}),
                json!({"schedule": {"cron": "@hourly"}}),
            ];
            return transition(action, Command::Patch { patch: &patch(changes[*n].clone()) }, now);
        }
        Step::Plan => {
            let plan = plan_due(action, now, None, 3);
            return transition(action, Command::Planned { plan: &plan }, now);
        }
        Step::Start { live: is_live } => {
            Command::OccurrenceStarted { run: live(*is_live), approval_hash: approval }
        }
        Step::End { live: is_live, outcome } => {
            use ExecutionResult::{Cancelled, Drifted, Failed, Succeeded, Unknown, Waiting};
            let outcome = [Succeeded, Failed, Cancelled, Waiting, Unknown, Drifted][*outcome];
            Command::OccurrenceEnded { run: live(*is_live), outcome }
        }
    };
    transition(action, command, now)
}

/// The due times that a plan decides. A series of held due times goes on from where the action has counted.
fn newly_decided(action: &Action, plan: &DuePlan) -> Vec<Timestamp> {
    let Some(held) = plan.held else { return plan.decided.iter().map(|decided| decided.due_at).collect() };
    let (schedule, anchor) = (action.schedule.as_ref().unwrap(), action.anchor.unwrap());
    let earlier = action.held.filter(|earlier| earlier.first_due_at == held.first_due_at);
    let first = match earlier {
        Some(earlier) => schedule.next_after(anchor, earlier.last_due_at),
        None => Some(held.first_due_at),
    };
    let fires = std::iter::successors(first, |last| schedule.next_after(anchor, *last));
    let fires: Vec<Timestamp> = fires.take_while(|due_at| *due_at <= held.last_due_at).collect();
    assert_eq!(earlier.map_or(0, |earlier| earlier.times) as usize + fires.len(), held.times as usize);
    fires
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_commands_reaches_an_impossible_action(steps in prop::collection::vec((step(), 0i64..3_000), 1..40)) {
        let mut action = defined(&json!({"every": "1h"}));
        let mut now = noon();
        for (step, seconds) in steps {
            now += SignedDuration::from_secs(seconds);
            match perform(&action, &step, now) {
                Ok(next) => {
                    check(&next);
                    let changed = Action { version: action.version, updated_at: action.updated_at, ..next.clone() } != action;
                    prop_assert_eq!(next.version, action.version + u64::from(changed));
                    // Storing and loading does not change the action.
                    let stored: Action = serde_json::from_value(serde_json::to_value(&next).unwrap()).unwrap();
                    prop_assert_eq!(&stored, &next);
                    action = next;
                }
                Err(refused) => prop_assert_eq!(refused.state(), action.state),
            }
        }
    }

    /// For every action and every clock: planning ends, no due time is decided twice, and the next due time in the index is in the
    /// future.
    #[test]
    fn planning_ends_and_leaves_nothing_due(
        steps in prop::collection::vec((step(), -4_000i64..4_000), 1..40),
        limit in 1usize..6,
    ) {
        let mut action = defined(&json!({"every": "1h"}));
        let mut now = noon();
        let mut recorded = BTreeSet::new();
        for (step, seconds) in steps {
            now += SignedDuration::from_secs(seconds);
            if let (Ok(next), false) = (perform(&action, &step, now), matches!(step, Step::Plan)) {
                action = next;
            }
            let mut rounds = 0;
            loop {
                rounds += 1;
                prop_assert!(rounds < 2_000, "planning does not end: {:?}", action);
                let mut plan = plan_due(&action, now, None, limit);
                if plan.decided.iter().any(|decided| recorded.contains(&decided.due_at)) {
                    plan = plan_due_except(&action, now, None, limit, &recorded);
                }
                if plan.changes_nothing(&action) {
                    break;
                }
                for due_at in newly_decided(&action, &plan) {
                    prop_assert!(recorded.insert(due_at), "{} was decided twice", due_at);
                }
                action = transition(&action, Command::Planned { plan: &plan }, now).unwrap();
                check(&action);
            }
            if let (Some(schedule), Some(due)) = (&action.schedule, action.next_due) {
                prop_assert!(schedule.wake_at(action.id, due) > now, "{:?} at {}", action, now);
            }
        }
    }

    /// If no clock is set back, no decided time becomes due again.
    #[test]
    fn decided_times_do_not_become_due_again(steps in prop::collection::vec((step(), 0i64..400), 1..60)) {
        let mut action = defined(&json!({"every": "1h"}));
        let mut now = noon();
        let mut recorded = BTreeSet::new();
        for (step, seconds) in steps {
            now += SignedDuration::from_secs(seconds);
            if matches!(step, Step::Plan) {
                let plan = plan_due(&action, now, None, 50);
                for due_at in newly_decided(&action, &plan) {
                    prop_assert!(recorded.insert(due_at), "{} was decided twice", due_at);
                }
                if !plan.changes_nothing(&action) {
                    action = transition(&action, Command::Planned { plan: &plan }, now).unwrap();
                }
            } else if let Ok(next) = perform(&action, &step, now) {
                action = next;
            }
        }
    }

    #[test]
    fn a_second_complete_or_dismiss_changes_nothing(state in prop::sample::select(&ActionState::ALL[..]), dismiss: bool) {
        let command = if dismiss { Command::Dismiss } else { Command::Complete };
        if let Ok(once) = transition(&in_state(state), command, noon()) {
            let twice = transition(&once, command, noon() + SignedDuration::from_secs(1)).unwrap();
            prop_assert_eq!(twice, once);
        }
    }
}
