//! A due time is sent to the executors a minute ahead, and starts in its second: never early, never lost, never twice,
//! whatever happens between its lease and its start.

use std::time::Duration;

use domain::actions::{ActionState, OccurrenceState};
use domain::ids::ActionId;
use jiff::{SignedDuration, Timestamp};
use models::ModelsConfig;
use serde_json::{Value, json};
use shared::flows::actions;
use shared::flows::background::due;
use shared::flows::executor::free_leases;
use shared::flows::executor::route;
use shared::store::keys::SHARDS;
use shared::store::{DueEntry, DueItem};
use tests::stage::Stage;

fn minute(minutes: i64) -> Timestamp {
    "2026-11-21T12:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_mins(minutes)
}

/// When the executors of these tests end.
fn deadline() -> Timestamp {
    minute(30)
}

async fn stage() -> Stage {
    Stage::with(ModelsConfig::default()).await
}

/// An appointment at the tenth minute that is never caught up.
async fn at_ten(stage: &Stage) -> ActionId {
    stage.approved(json!({"schedule": {"at": minute(10), "catch_up": "none"}})).await
}

/// Everything in the index that is due by this time.
async fn entries(stage: &Stage, by: Timestamp) -> Vec<DueEntry> {
    let mut entries = Vec::new();
    for shard in 0..SHARDS {
        entries.extend(stage.h.platform.cx.store.due(shard, by, 100).await.unwrap());
    }
    entries
}

/// The sweep has sent it, a minute ahead.
async fn sent_ahead(stage: &Stage) -> ActionId {
    let id = at_ten(stage).await;
    stage.at(9);
    stage.sweep().await;
    assert_eq!(stage.executors.work().await.deliveries, 0, "it is delayed");
    id
}

async fn approve(stage: &Stage, id: ActionId) {
    let hash = stage.h.get(&format!("/actions/{id}")).await.expect(200)["approval_hash"].clone();
    stage.h.post(&format!("/actions/{id}/approve"), json!({"approval_hash": hash})).await.expect(200);
}

#[tokio::test]
async fn an_item_that_was_sent_ahead_runs_at_its_time() {
    let stage = stage().await;
    let id = sent_ahead(&stage).await;
    let seen = stage.h.get(&format!("/actions/{id}")).await.expect(200);
    assert_eq!((&seen["state"], &seen["next_due"]), (&json!("scheduled"), &json!(minute(10))));
    assert!(seen.get("found_at").is_none(), "{seen}");
    // No sweep is needed any more.
    stage.at(10);
    assert_eq!(stage.executors.work().await.deliveries, 1);
    assert_eq!(stage.became(id).await, ["10 succeeded"]);
    assert_eq!(stage.occurrences(id).await[0].started_at, Some(minute(10)));
}

#[tokio::test]
async fn the_executor_waits_if_a_message_comes_early() {
    let stage = stage().await;
    let id = at_ten(&stage).await;
    let cx = stage.h.platform.cx.clone();
    let item = DueItem { due_at: Some(minute(10)), ..DueItem::action(&stage.owner, id) };
    stage.clock.set(minute(10) - SignedDuration::from_millis(400));
    let waits = tokio::spawn({
        let (cx, item) = (cx.clone(), item.clone());
        async move { route::process(&cx, &item, deadline()).await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    stage.clock.set(minute(10) - SignedDuration::from_millis(1));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!waits.is_finished());
    assert_eq!(stage.became(id).await, [""; 0]);
    stage.at(10);
    waits.await.unwrap().unwrap();
    assert_eq!(stage.became(id).await, ["10 succeeded"]);
    assert!(stage.occurrences(id).await[0].started_at.unwrap() >= minute(10));
}

/// The clock of an executor is far behind the sweep's. The executor does not wait for minutes; the queue does.
#[tokio::test]
async fn a_message_that_comes_much_too_early_goes_back() {
    let stage = stage().await;
    let id = at_ten(&stage).await;
    stage.at(9);
    let item = DueItem { due_at: Some(minute(10)), ..DueItem::action(&stage.owner, id) };
    route::process(&stage.h.platform.cx, &item, deadline()).await.unwrap();
    assert_eq!(stage.became(id).await, [""; 0]);
    assert_eq!(stage.h.platform.engines().queue("scheduled-executor").unwrap().depth().delayed, 1);
    stage.at(10);
    stage.executors.work().await;
    assert_eq!(stage.became(id).await, ["10 succeeded"]);
}

#[tokio::test]
async fn changes_between_lease_and_start_count() {
    let stage = stage().await;
    // Paused.
    let id = sent_ahead(&stage).await;
    stage.h.post(&format!("/actions/{id}/pause"), json!({})).await.expect(200);
    stage.happens_at(10).await;
    assert_eq!(stage.became(id).await, ["10 skipped paused"]);

    for (change, then) in [("cancel", ActionState::Defined), ("dismiss", ActionState::Dismissed)] {
        stage.at(0);
        let id = sent_ahead(&stage).await;
        stage.h.post(&format!("/actions/{id}/{change}"), json!({})).await.expect(200);
        stage.happens_at(10).await;
        assert_eq!((stage.became(id).await, stage.action(id).await.state), (vec![], then), "{change}");
    }

    // Edited, so that the approval is withdrawn.
    stage.at(0);
    let id = sent_ahead(&stage).await;
    let edit = json!({"task_config": {"instructions": "Something else"}});
    stage.h.patch(&format!("/actions/{id}"), edit).await.expect(200);
    stage.happens_at(10).await;
    assert_eq!((stage.became(id).await, stage.action(id).await.state), (vec![], ActionState::Defined));

    // Moved to a later time, and approved again.
    stage.at(0);
    let id = sent_ahead(&stage).await;
    stage.h.patch(&format!("/actions/{id}"), json!({"schedule": {"at": minute(20)}})).await.expect(200);
    approve(&stage, id).await;
    stage.happens_at(10).await;
    assert_eq!(stage.became(id).await, [""; 0]);
    stage.happens_at(19).await;
    stage.at(20);
    stage.executors.work().await;
    assert_eq!(stage.became(id).await, ["20 succeeded"]);
}

#[tokio::test]
async fn a_run_by_hand_starts_at_once_while_a_due_time_is_in_the_queue() {
    let stage = stage().await;
    let id = sent_ahead(&stage).await;
    stage.h.post(&format!("/actions/{id}/run"), json!({})).await.expect(202);
    assert_eq!(stage.executors.work().await.deliveries, 1);
    assert_eq!(stage.became(id).await, ["9 succeeded"]);
    stage.at(10);
    stage.executors.work().await;
    assert_eq!(stage.became(id).await, ["9 succeeded", "10 succeeded"]);
}

/// The sweep has already looked when the action becomes due. The approval then sends it.
#[tokio::test]
async fn an_action_approved_within_the_last_minute_starts_on_time() {
    let stage = stage().await;
    stage.at(10);
    stage.sweep().await;
    let in_20_s = minute(10) + SignedDuration::from_secs(20);
    let id = stage.approved(json!({"schedule": {"at": in_20_s}})).await;
    // Leased: a sweep does not send it again.
    stage.sweep().await;
    assert_eq!(stage.h.platform.engines().queue("scheduled-executor").unwrap().depth().delayed, 1);
    stage.clock.set(in_20_s);
    stage.executors.work().await;
    assert_eq!(stage.occurrences(id).await[0].started_at, Some(in_20_s));

    // Resumed, and moved by an edit: the same.
    let times = [40, 50].map(|seconds| minute(10) + SignedDuration::from_secs(seconds));
    let id = stage.approved(json!({"schedule": {"at": times[0]}})).await;
    stage.h.patch(&format!("/actions/{id}"), json!({"schedule": {"at": times[1]}})).await.expect(200);
    approve(&stage, id).await;
    stage.clock.set(times[0]);
    stage.executors.work().await;
    assert_eq!(stage.became(id).await, [""; 0]);
    stage.clock.set(times[1]);
    stage.executors.work().await;
    assert_eq!(stage.occurrences(id).await[0].started_at, Some(times[1]));
}

/// A sweep dies between lease and send, and so does the next one. The due time is found three minutes later and runs
/// once. It is not missed although its schedule catches nothing up, because it was found in time.
#[tokio::test]
async fn a_sweep_that_dies_between_lease_and_send_loses_nothing() {
    let stage = stage().await;
    let id = at_ten(&stage).await;
    let cx = &stage.h.platform.cx;
    for (minutes, found) in [(9, 1), (12, 1)] {
        stage.at(minutes);
        let due = entries(&stage, minute(minutes + 1)).await;
        assert_eq!(due::lease(cx, due).await.len(), found);
        stage.sweep().await;
        assert_eq!(stage.executors.work().await.deliveries, 0);
    }
    stage.at(15);
    stage.sweep().await;
    stage.at(16);
    stage.executors.work().await;
    assert_eq!(stage.became(id).await, ["10 succeeded"]);
}

#[tokio::test]
async fn an_executor_that_dies_while_it_waits_loses_nothing() {
    let stage = stage().await;
    let id = sent_ahead(&stage).await;
    let queue = stage.h.platform.engines().queue("scheduled-executor").unwrap();
    stage.clock.set(minute(10) - SignedDuration::from_millis(300));
    let (cx, item) = (
        stage.h.platform.cx.clone(),
        DueItem { due_at: Some(minute(10)), ..DueItem::action(&stage.owner, id) },
    );
    let waits = tokio::spawn(async move { route::process(&cx, &item, deadline()).await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    waits.abort();
    assert!(waits.await.unwrap_err().is_cancelled());
    // Its message is lost, too, which SQS never does.
    stage.at(10);
    for message in queue.receive(10, Duration::ZERO).await {
        queue.delete(message.receipt).unwrap();
    }
    stage.happens_at(11).await;
    assert_eq!(stage.became(id).await, [""; 0]);
    stage.happens_at(13).await;
    assert_eq!(stage.became(id).await, ["10 succeeded"]);
}

/// The same item again and again, at once and later.
#[tokio::test]
async fn duplicates_start_one_run() {
    let stage = stage().await;
    let id = sent_ahead(&stage).await;
    let item = DueItem { due_at: Some(minute(10)), ..DueItem::action(&stage.owner, id) };
    stage.at(10);
    let cx = &stage.h.platform.cx;
    let looks = (0..8).map(|_| route::process(cx, &item, deadline()));
    for looked in futures::future::join_all(looks).await {
        looked.unwrap();
    }
    stage.executors.work().await;
    assert_eq!(stage.became(id).await, ["10 succeeded"]);
    assert_eq!(stage.occurrences(id).await[0].fence, 1);
}

/// No executor is free for ten minutes, while sweeps continue. The result of each due time is the same as if an
/// executor had come at its time, before the earlier run had begun.
#[tokio::test]
async fn a_full_queue_makes_no_due_time_missed() {
    let stage = stage().await;
    let every_minute = |more: Value| {
        let mut schedule = json!({"every": "1m", "catch_up": "none"});
        schedule.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"schedule": schedule})
    };
    let once = at_ten(&stage).await;
    let skip = stage.approved(every_minute(json!({"overlap": "skip"}))).await;
    let queue = stage.approved(every_minute(json!({"overlap": "queue"}))).await;
    let replace = stage.approved(every_minute(json!({"overlap": "replace"}))).await;
    for minutes in 0..=20 {
        stage.at(minutes);
        stage.sweep().await;
    }
    stage.executors.work().await;
    assert_eq!(stage.became(once).await, ["10 succeeded"]);
    let told = |state: &str, minutes: std::ops::RangeInclusive<i64>| -> Vec<String> {
        minutes.map(|minute| format!("{minute} {state}")).collect()
    };
    let skipped = [told("succeeded", 1..=1), told("skipped overlap", 2..=20)].concat();
    assert_eq!(stage.became(skip).await, skipped);
    assert_eq!(stage.became(queue).await, told("succeeded", 1..=20));
    let replaced = [told("cancelled replaced", 1..=19), told("succeeded", 20..=20)].concat();
    assert_eq!(stage.became(replace).await, replaced);

    // Nothing sweeps for twenty minutes. Nobody has seen these due times come, except for the next one, so they are
    // late.
    stage.at(40);
    stage.sweep().await;
    stage.executors.work().await;
    let missed = told("missed catch_up_off", 22..=39);
    let became = stage.became(skip).await;
    assert_eq!(became[21..became.len() - 1], missed);
    assert_eq!(
        (became[20].as_str(), became.last().unwrap().as_str()),
        ("21 succeeded", "40 skipped overlap")
    );
}

/// The local queue ends with its process. The next start sends its items at their time, and not after the lease.
#[tokio::test]
async fn a_restart_sends_queued_items_again() {
    let stage = stage().await;
    let id = sent_ahead(&stage).await;
    let queue = stage.h.platform.engines().queue("scheduled-executor").unwrap();
    let cx = &stage.h.platform.cx;
    assert_eq!(entries(&stage, minute(12)).await, []);
    free_leases::of_previous_process(cx).await.unwrap();
    stage.at(10);
    for message in queue.receive(10, Duration::ZERO).await {
        queue.delete(message.receipt).unwrap();
    }
    stage.sweep().await;
    stage.executors.work().await;
    assert_eq!(stage.became(id).await, ["10 succeeded"]);
    let found = actions::load(cx, &stage.owner, id).await.unwrap().value;
    assert_eq!((found.found_at, found.found_until), (None, None), "it is decided about");
    assert_eq!(stage.occurrences(id).await[0].state, OccurrenceState::Succeeded);
}

/// The process dies after it has found a due time, and the next one starts two due times later. Nobody watched in the meantime, so
/// `catch_up` decides about all of them, and the newest one runs.
#[tokio::test]
async fn a_restart_catches_up_the_newest_due_time() {
    for (catch_up, expected) in [
        ("latest", ["2 succeeded", "4 missed superseded", "6 missed superseded", "8 succeeded"]),
        ("none", ["2 succeeded", "4 missed catch_up_off", "6 missed catch_up_off", "8 succeeded"]),
    ] {
        let stage = stage().await;
        let id = stage.approved(json!({"schedule": {"every": "2m", "catch_up": catch_up}})).await;
        for minutes in 0..=3 {
            stage.happens_at(minutes).await;
        }
        // The due time at the fourth minute was found, and its message ends with the process.
        let found = actions::load(&stage.h.platform.cx, &stage.owner, id).await.unwrap().value;
        assert!(found.found_until >= Some(minute(4)), "{found:?}");
        let queue = stage.h.platform.engines().queue("scheduled-executor").unwrap();
        stage.clock.set(minute(8) + SignedDuration::from_secs(10));
        for message in queue.receive(10, Duration::ZERO).await {
            queue.delete(message.receipt).unwrap();
        }
        free_leases::of_previous_process(&stage.h.platform.cx).await.unwrap();
        stage.sweep().await;
        for _ in 0..4 {
            stage.executors.work().await;
            stage.sweep().await;
        }
        assert_eq!(stage.became(id).await, expected, "{catch_up}");
        let why = stage.h.get(&format!("/actions/{id}/why?at={}", minute(8))).await.expect(200);
        let why = why["sentence"].as_str().unwrap();
        assert!(why.contains("It began 10 s late, because it was found late."), "{catch_up}: {why}");
    }
}
