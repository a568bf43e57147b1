//! Due times that come while a person must approve again: one record counts all of them.

use domain::actions::{ActionState, Occurrence};
use domain::ids::ActionId;
use jiff::{SignedDuration, Timestamp};
use models::ModelsConfig;
use serde_json::{Value, json};
use shared::flows::executor::clock::{self, ClockState};
use tests::stage::{Stage, noon};

fn minute(minutes: i64) -> Timestamp {
    noon() + SignedDuration::from_mins(minutes)
}

/// An action of every minute. A change of its agent has withdrawn its approval, and its run of minute 1 has noticed that.
async fn withdrawn(stage: &Stage) -> ActionId {
    let id = stage.approved(json!({"schedule": {"every": "1m"}})).await;
    stage.h.patch(&format!("/agents/{}", stage.agent), json!({"goal": "Sells lamp oil"})).await.expect(200);
    stage.happens_at(1).await;
    assert_eq!(stage.became(id).await, ["1 held drifted"]);
    id
}

/// The only record of held due times.
async fn record(stage: &Stage, id: ActionId) -> Occurrence {
    let occurrences = stage.occurrences(id).await;
    let [_, record] = <[Occurrence; 2]>::try_from(occurrences).expect("the run and one record");
    record
}

async fn counts(stage: &Stage, id: ActionId) -> (u32, Timestamp) {
    let record = record(stage, id).await;
    let covers = record.covers.map_or((1, record.due_at), |covers| (covers.times, covers.last));
    let held = stage.action(id).await.held.unwrap();
    assert_eq!((held.times, held.last_due_at), covers, "the action and the record count the same");
    covers
}

async fn why(stage: &Stage, id: ActionId, minutes: i64) -> Value {
    stage.h.get(&format!("/actions/{id}/why?at={}", minute(minutes))).await.expect(200)
}

async fn approve(stage: &Stage, id: ActionId) {
    let hash = stage.h.get(&format!("/actions/{id}")).await.expect(200)["approval_hash"].clone();
    stage.h.post(&format!("/actions/{id}/approve"), json!({"approval_hash": hash})).await.expect(200);
}

#[tokio::test]
async fn a_week_of_minutes_is_one_record_that_tells_its_count() {
    const WEEK: i64 = 7 * 24 * 60;
    let stage = Stage::with(ModelsConfig::default()).await;
    let id = withdrawn(&stage).await;
    for minutes in 2..=60 {
        stage.happens_at(minutes).await;
    }
    assert_eq!(counts(&stage, id).await, (59, minute(60)));
    // Nothing worked for the rest of the week.
    stage.happens_at(WEEK).await;
    assert_eq!(counts(&stage, id).await, (10_079, minute(WEEK)));

    let words = "held 10,079 times since 2026-11-21 12:02, the last time at 2026-11-28 12:00";
    let read = stage.h.get(&format!("/actions/{id}")).await.expect(200);
    assert_eq!(read["held_text"], words);
    assert_eq!(read["held"]["times"], 10_079);
    let list = stage.h.get("/actions").await.expect(200);
    assert_eq!(list["data"][0]["held_text"], words);
    let runs = stage.h.get(&format!("/actions/{id}/runs")).await.expect(200);
    let newest = &runs["data"][0];
    assert_eq!((&newest["due_times"], &newest["last_due_at"]), (&json!(10_079), &json!(minute(WEEK))));
    // The record speaks for each of its due times, and for the next one.
    for minutes in [2, 30, WEEK, WEEK + 1] {
        let told = why(&stage, id, minutes).await;
        let sentence = told["sentence"].as_str().unwrap();
        assert_eq!(told["code"], "held", "{sentence}");
        assert!(sentence.contains(words), "{sentence}");
        assert!(sentence.contains("the agent or a tool has changed since"), "{sentence}");
    }

    // Nothing is caught up after the approval. A new series has a new record.
    approve(&stage, id).await;
    assert_eq!(stage.action(id).await.held, None);
    stage.happens_at(WEEK + 1).await;
    let next = WEEK + 1;
    let became =
        ["1 held drifted".to_owned(), "2 held needs_approval".to_owned(), format!("{next} succeeded")];
    assert_eq!(stage.became(id).await, became);
}

#[tokio::test]
async fn a_year_of_minutes_is_one_record() {
    const YEAR: i64 = 365 * 24 * 60;
    let stage = Stage::with(ModelsConfig::default()).await;
    let id = withdrawn(&stage).await;
    stage.happens_at(YEAR).await;
    assert_eq!(counts(&stage, id).await, (u32::try_from(YEAR).unwrap() - 1, minute(YEAR)));
}

#[tokio::test]
async fn executors_that_meet_or_die_count_each_due_time_once() {
    let stage = Stage::with(ModelsConfig::default()).await;
    let id = withdrawn(&stage).await;
    stage.executors.trouble(0.5, 0.4);
    let mut killed = 0;
    for minutes in 2..=80 {
        stage.at(minutes);
        tokio::join!(stage.sweep(), stage.sweep());
        killed += stage.executors.work().await.killed;
    }
    stage.executors.trouble(0.0, 0.0);
    stage.happens_at(90).await;
    assert!(killed > 0);
    assert_eq!(counts(&stage, id).await, (89, minute(90)));
}

/// The clock jumps a day ahead and is set right.
#[tokio::test]
async fn due_times_that_come_again_are_counted_once() {
    const DAY: i64 = 24 * 60;
    let stage = Stage::with(ModelsConfig::default()).await;
    let cx = &stage.h.platform.cx;
    assert_eq!(clock::check(cx).await.unwrap(), ClockState::Fine);
    let id = withdrawn(&stage).await;
    stage.happens_at(5).await;
    assert_eq!(counts(&stage, id).await, (4, minute(5)));
    stage.at(DAY);
    assert_eq!(clock::check(cx).await.unwrap(), ClockState::Fine);
    stage.happens_at(DAY).await;
    assert_eq!(counts(&stage, id).await, (1_439, minute(DAY)));

    stage.at(6);
    assert_eq!(clock::check(cx).await.unwrap(), ClockState::SetBack { actions: 1 });
    // Minute 6 has come.
    assert_eq!(counts(&stage, id).await, (5, minute(6)));
    let told = why(&stage, id, 60).await;
    assert!(told["sentence"].as_str().unwrap().contains("will be held"), "{told}");
    for minutes in 7..=9 {
        stage.happens_at(minutes).await;
    }
    assert_eq!(counts(&stage, id).await, (8, minute(9)));
    // The due times that the wrong clock has counted run after the approval.
    approve(&stage, id).await;
    assert_eq!(stage.action(id).await.state, ActionState::Scheduled);
    stage.happens_at(10).await;
    let became = ["1 held drifted", "2 held needs_approval", "10 succeeded"];
    assert_eq!(stage.became(id).await, became);
}
