//! Due times that passed, came together or came again: each result is recorded once and reported correctly.

use std::time::Duration;

use domain::actions::{ActionState, Decided, Decision, Occurrence, OccurrenceKind, OccurrenceState};
use domain::ids::ActionId;
use jiff::{SignedDuration, Timestamp};
use models::ModelsConfig;
use serde_json::{Value, json};
use shared::edge::extract::Actor;
use shared::flows::actions;
use shared::flows::executor::clock::{self, ClockState};
use shared::flows::executor::wake::wake;
use shared::store::{Once, Store};
use tests::Answer;
use tests::model::{Says, ScriptedModel};
use tests::stage::Stage;
use tokio::time::timeout;

fn minute(minutes: i64) -> Timestamp {
    "2026-11-21T12:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_mins(minutes)
}

/// Approves the current content of an action.
async fn approve(stage: &Stage, id: ActionId) -> Answer {
    let hash = stage.h.get(&format!("/actions/{id}")).await.expect(200)["approval_hash"].clone();
    stage.h.post(&format!("/actions/{id}/approve"), json!({"approval_hash": hash})).await
}

async fn why(stage: &Stage, id: ActionId, minutes: i64) -> Value {
    stage.h.get(&format!("/actions/{id}/why?at={}", minute(minutes))).await.expect(200)
}

#[tokio::test]
async fn an_appointment_that_ran_is_approved_again_with_a_new_time_only() {
    let stage = Stage::with(ModelsConfig::default()).await;
    let id = stage.approved(json!({"schedule": {"at": minute(1)}})).await;
    stage.happens_at(1).await;
    assert_eq!(stage.action(id).await.state, ActionState::Completed);

    stage.at(2);
    let edit = json!({"task_config": {"instructions": "Name the sources, too"}});
    stage.h.patch(&format!("/actions/{id}"), edit).await.expect(200);
    let refused = approve(&stage, id).await.refused(409, "schedule_in_the_past");
    assert!(
        refused["detail"].as_str().unwrap().contains("`schedule.at` is 2026-11-21T12:01:00Z"),
        "{refused}"
    );
    assert_eq!(
        (&refused["current"]["state"], &refused["current"]["next_due"]),
        (&json!("defined"), &Value::Null)
    );
    let told = why(&stage, id, 2).await;
    let sentence = told["sentence"].as_str().unwrap();
    assert!(sentence.contains("Its time, 2026-11-21 12:01, has passed: set a new time"), "{sentence}");

    let schedule = json!({"schedule": {"at": minute(10)}});
    stage.h.post(&format!("/actions/{id}/schedule"), schedule).await.expect(200);
    assert_eq!(approve(&stage, id).await.expect(200)["state"], "scheduled");
    stage.happens_at(10).await;
    assert_eq!(stage.became(id).await, ["1 succeeded", "10 succeeded"]);
}

#[tokio::test]
async fn an_appointment_that_passed_during_a_pause_says_so_when_it_is_approved() {
    let stage = Stage::with(ModelsConfig::default()).await;
    let id = stage.approved(json!({"schedule": {"at": minute(1)}})).await;
    stage.h.post(&format!("/actions/{id}/pause"), json!({})).await.expect(200);
    stage.happens_at(2).await;
    assert_eq!(stage.became(id).await, ["1 skipped paused"]);
    assert_eq!(stage.action(id).await.state, ActionState::Failed);
    let refused = approve(&stage, id).await.refused(409, "schedule_in_the_past");
    assert_eq!(refused["current"]["state"], "failed");
    // It can be run by hand now.
    stage.h.patch(&format!("/actions/{id}"), json!({"schedule": null})).await.expect(200);
    approve(&stage, id).await.expect(200);
    stage.h.post(&format!("/actions/{id}/run"), json!({})).await.expect(202);
    stage.executors.work().await;
    assert_eq!(stage.action(id).await.state, ActionState::Completed);
}

/// If something sets `next_due` back (a clock, an earlier version), a due time that has its record is not decided
/// again, and planning ends.
#[tokio::test]
async fn planning_skips_recorded_due_times() {
    let stage = Stage::with(ModelsConfig::default()).await;
    let id = stage.approved(json!({"schedule": {"every": "1m", "overlap": "queue"}})).await;
    for minutes in 1..=3 {
        stage.happens_at(minutes).await;
    }
    let became = stage.became(id).await;
    assert_eq!(became, ["1 succeeded", "2 succeeded", "3 succeeded"]);

    let cx = &stage.h.platform.cx;
    let read = actions::load(cx, &stage.owner, id).await.unwrap();
    let mut back = read.value.clone();
    back.next_due = Some(minute(1));
    let writes = actions::action_writes(&stage.owner, &read, &back, None, minute(3)).unwrap();
    assert!(cx.store.write_all(writes).await.unwrap().done());

    // Planning ends.
    wake(cx, &stage.owner, id, Timestamp::MAX).await.unwrap();
    assert_eq!(stage.action(id).await.next_due, Some(minute(4)));
    assert_eq!(stage.became(id).await, became);
    stage.happens_at(4).await;
    assert_eq!(stage.became(id).await.last().unwrap(), "4 succeeded");
}

fn writes(messages: &[Value]) -> Says {
    match messages.last().unwrap()["role"].as_str() {
        Some("tool") => Says::Text("It is done.".into()),
        _ => Says::Call("save_output", json!({"title": "Report", "content": "Lamp oil is dear."})),
    }
}

#[tokio::test]
async fn minutes_that_come_at_once_are_caught_up_as_the_schedule_says() {
    let cases = [
        ("none", ["2 missed catch_up_off", "4 missed catch_up_off", "6 succeeded"]),
        ("latest", ["2 missed superseded", "4 missed superseded", "6 succeeded"]),
        ("all", ["2 succeeded", "4 succeeded", "6 skipped overlap"]),
    ];
    let model = ScriptedModel::start(writes).await;
    let stage = Stage::with(model.config("scripted")).await;
    let mut ids = Vec::new();
    for (catch_up, _) in &cases {
        // Longer than the platform plans ahead. What it has seen coming is not late.
        ids.push(stage.approved(json!({"schedule": {"every": "2m", "catch_up": catch_up}})).await);
    }
    stage.happens_at(6).await;
    for (id, (catch_up, expected)) in ids.iter().zip(&cases) {
        assert_eq!(stage.became(*id).await, *expected, "{catch_up}");
    }
    let told = why(&stage, ids[0], 2).await;
    assert_eq!((&told["code"], &told["reason_code"]), (&json!("missed"), &json!("catch_up_off")));
    let sentence = told["sentence"].as_str().unwrap();
    assert!(sentence.contains("found 4 min late, and the schedule catches nothing up"), "{sentence}");
}

/// A call that cancels a long queue may be interrupted at any moment. It leaves no run that the action does not count.
#[tokio::test]
async fn a_long_queue_that_is_cancelled_leaves_no_run_behind() {
    const QUEUED: u32 = 190;
    let stage = Stage::with(ModelsConfig::default()).await;
    let id = stage.approved(json!({"schedule": {"every": "1m", "overlap": "queue"}})).await;
    let cx = &stage.h.platform.cx;
    let read = actions::load(cx, &stage.owner, id).await.unwrap();
    stage.at(i64::from(QUEUED) + 1);
    for first in (0..QUEUED).step_by(50) {
        let writes = (first..QUEUED.min(first + 50)).map(|n| {
            let decision = Decision::Run { kind: OccurrenceKind::Scheduled, cancels: None };
            let decided = Decided { due_at: minute(i64::from(n) + 1), decision };
            let occurrence = Occurrence::decided(&read.value, &decided, cx.clock.now());
            Store::create_occurrence(&stage.owner, &occurrence).unwrap()
        });
        assert!(cx.store.write_all(writes.collect()).await.unwrap().done());
    }
    let mut next = read.value.clone();
    (next.queued, next.next_due) = (QUEUED, Some(minute(i64::from(QUEUED) + 2)));
    let writes = actions::action_writes(&stage.owner, &read, &next, None, cx.clock.now()).unwrap();
    assert!(cx.store.write_all(writes).await.unwrap().done());

    let due = async || {
        let (mut due, mut after) = (0, None::<String>);
        loop {
            let store = &stage.h.platform.cx.store;
            let order = shared::store::table::Order::Oldest;
            let found = store.occurrences(&stage.owner, id, after.as_deref(), 100, order).await.unwrap();
            due += found.items.iter().filter(|(_, o)| o.value.state == OccurrenceState::Due).count();
            after = found.last;
            if after.is_none() {
                return due;
            }
        }
    };
    assert_eq!(due().await, QUEUED as usize);
    let mut cut_off = 0;
    for millis in (0..).step_by(23) {
        let patch = serde_json::from_value(json!({"task_config": {"instructions": "Else"}})).unwrap();
        let once = Once::none();
        let change = actions::change(cx, &stage.owner, &once, Actor::Person, id, None, patch);
        let done = timeout(Duration::from_millis(millis), change).await;
        let action = stage.action(id).await;
        let left = due().await;
        assert!(action.queued > 0 || left == 0, "{left} runs are left behind after {millis} ms");
        match done {
            Ok(changed) => {
                changed.unwrap();
                assert_eq!((action.state, left), (ActionState::Defined, 0));
                break;
            }
            Err(_) => cut_off += 1,
        }
    }
    assert!(cut_off > 0);
}

/// An edit withdrew the run's approval while it worked. Then the run asks.
#[tokio::test]
async fn a_run_that_asks_after_an_edit_ends_and_leaves_the_action_free() {
    fn asks(_: &[Value]) -> Says {
        Says::Call("ask_person", json!({"question": "Which week?"}))
    }
    let model = ScriptedModel::held(asks).await;
    let stage = Stage::with(model.config("scripted")).await;
    let id = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    let action = format!("/actions/{id}");
    tokio::join!(stage.happens_at(60), async {
        model.asked_times(1).await;
        let edit = json!({"task_config": {"instructions": "Write about this week"}});
        let edited = stage.h.patch(&action, edit).await.expect(200);
        assert_eq!((&edited["state"], &edited["approval"]), (&json!("in_progress"), &Value::Null));
        model.allow(1);
    });
    assert_eq!(stage.became(id).await, ["60 cancelled cancelled"]);
    let ended = stage.h.get(&action).await.expect(200);
    assert_eq!((&ended["state"], &ended["live_run"]), (&json!("defined"), &Value::Null));
    let told = why(&stage, id, 60).await;
    let sentence = told["sentence"].as_str().unwrap();
    assert!(sentence.contains("withdrew its approval") && sentence.contains("Which week?"), "{sentence}");
    let run = stage.occurrences(id).await[0].run_id;
    assert_eq!(stage.h.get(&format!("/runs/{run}")).await.expect(200)["state"], "cancelled");
    stage.h.post(&format!("{action}/resume"), json!({})).await.refused(409, "wrong_state");

    assert_eq!(approve(&stage, id).await.expect(200)["state"], "scheduled");
    model.allow(1);
    stage.happens_at(120).await;
    assert_eq!(stage.became(id).await[1], "120 waiting asked");
}

/// The machine's clock jumps three days ahead, and is set right an hour later.
#[tokio::test]
async fn a_clock_that_jumped_ahead_and_back_plans_again_and_keeps_order() {
    const DAYS: i64 = 3 * 24 * 60;
    let stage = Stage::with(ModelsConfig::default()).await;
    let cx = &stage.h.platform.cx;
    assert_eq!(clock::check(cx).await.unwrap(), ClockState::Fine);
    let id = stage.approved(json!({"schedule": {"every": "12h"}})).await;
    let chat = stage.h.post(&format!("/agents/{}/chats", stage.agent), json!({})).await.expect(201);
    let messages = format!("/chats/{}", chat["chat_id"].as_str().unwrap());
    let say = async |text: &str| {
        let body = json!({"messages": [{"role": "user", "content": text}]});
        assert!(stage.h.post(&format!("{messages}/messages"), body).await.status < 300);
    };
    say("before").await;

    stage.at(DAYS + 5);
    assert_eq!(clock::check(cx).await.unwrap(), ClockState::Fine);
    say("ahead").await;
    stage.happens_at(DAYS + 5).await;
    let ahead = ["720", "1440", "2160", "2880", "3600"].map(|due| format!("{due} missed superseded"));
    assert_eq!(stage.became(id).await[..5], ahead);
    assert_eq!(stage.became(id).await[5], "4320 succeeded");

    stage.at(60);
    assert_eq!(clock::check(cx).await.unwrap(), ClockState::SetBack { actions: 1 });
    assert_eq!(clock::check(cx).await.unwrap(), ClockState::Fine);
    assert_eq!(stage.action(id).await.next_due, Some(minute(720)));
    say("after").await;
    let chat = stage.h.get(&messages).await.expect(200);
    let said: Vec<&Value> = chat["messages"].as_array().unwrap().iter().map(|m| &m["content"]).collect();
    assert_eq!(said, ["before", "ahead", "after"]);

    // By hand it runs now, and not in three days.
    let run = stage.h.post(&format!("/actions/{id}/run"), json!({})).await.expect(202)["run_id"].clone();
    stage.executors.work().await;
    let run = stage.h.get(&format!("/actions/{id}/runs/{}", run.as_str().unwrap())).await.expect(200);
    assert_eq!((&run["state"], &run["due_at"]), (&json!("succeeded"), &json!(minute(60))));

    // Due times that the wrong clock wrote off run at their time. Finished runs do not run again.
    for due in [720, 1_440, 2_160, 2_880, 3_600, 4_320, 5_040] {
        stage.happens_at(due).await;
        assert_eq!(clock::check(cx).await.unwrap(), ClockState::Fine);
    }
    let due: Vec<String> =
        stage.became(id).await.into_iter().filter(|became| !became.starts_with("60 ")).collect();
    let expected = [720, 1_440, 2_160, 2_880, 3_600, 4_320, 5_040].map(|due| format!("{due} succeeded"));
    assert_eq!(due, expected);
}
