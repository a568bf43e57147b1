//! Equal failures in a row: the third one pauses the action, and says why.

use domain::actions::{ActionState, ReasonCode};
use domain::ids::ActionId;
use jiff::SignedDuration;
use serde_json::{Value, json};
use tests::executors::LEASE;
use tests::model::{Says, ScriptedModel};
use tests::stage::{Stage, noon};

const ANY: usize = 10_000_000;

fn writes(messages: &[Value]) -> Says {
    match messages.last().unwrap()["role"].as_str() {
        Some("tool") => Says::Text("It is done.".into()),
        _ => Says::Call("save_output", json!({"title": "Report", "content": "Lamp oil is dear."})),
    }
}

/// Each request is refused as too large.
fn breaks(model: &ScriptedModel) {
    model.has_context(10);
}

/// Each output is rejected: the first one and two revisions.
fn rejects(model: &ScriptedModel) {
    model.has_context(ANY);
    model.finds([r#"{"score": 10, "meets": false, "missing": ["prices"]}"#; 3]);
}

fn works(model: &ScriptedModel) {
    model.has_context(ANY);
}

async fn stage() -> (ScriptedModel, Stage, ActionId) {
    let model = ScriptedModel::start(writes).await;
    let stage = Stage::with(model.config("scripted")).await;
    let id = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    (model, stage, id)
}

/// What the due time of this hour became.
async fn hour(stage: &Stage, id: ActionId, hour: i64) -> String {
    stage.happens_at(hour * 60).await;
    let due = noon() + SignedDuration::from_hours(hour);
    let occurrences = stage.occurrences(id).await;
    occurrences.iter().find(|one| one.due_at == due).unwrap().state.as_str().to_owned()
}

async fn times(stage: &Stage, id: ActionId) -> u32 {
    stage.action(id).await.failures.map_or(0, |failures| failures.times)
}

async fn pauses(stage: &Stage, id: ActionId) -> Vec<Value> {
    let history = stage.h.get(&format!("/actions/{id}/history")).await.expect(200);
    let entries = history["data"].as_array().unwrap().iter();
    entries.filter(|entry| entry["command"] == "pause").cloned().collect()
}

#[tokio::test]
async fn the_third_equal_failure_pauses_the_action_and_says_why() {
    let (model, stage, id) = stage().await;
    breaks(&model);
    for n in 1..=2 {
        assert_eq!(hour(&stage, id, n).await, "failed");
        assert_eq!(
            (stage.action(id).await.state, times(&stage, id).await),
            (ActionState::Scheduled, n as u32)
        );
    }
    // By hand it fails, too, which does not count.
    stage.h.post(&format!("/actions/{id}/run"), json!({})).await.expect(202);
    stage.executors.work().await;
    assert_eq!(times(&stage, id).await, 2);
    assert_eq!(hour(&stage, id, 3).await, "failed");

    let read = stage.h.get(&format!("/actions/{id}")).await.expect(200);
    assert_eq!((&read["state"], &read["failures"]["times"]), (&json!("paused"), &json!(3)));
    assert_eq!(read["failures"]["code"], "conversation_too_large");
    let because =
        "after three failures with the same cause: the conversation is larger than the model's context";
    assert_eq!(read["paused_because"], json!({"code": "equal_failures", "text": because}));
    let list = stage.h.get("/actions?state=paused").await.expect(200);
    assert_eq!(list["data"][0]["paused_because"], read["paused_because"]);
    let [entry] = &pauses(&stage, id).await[..] else { panic!("one entry of the history") };
    assert_eq!((&entry["by"], &entry["effects"]), (&json!({"kind": "platform"}), &json!(["paused"])));
    assert_eq!(entry["version"], read["version"]);

    // Later due times are skipped, and say why.
    assert_eq!(hour(&stage, id, 4).await, "skipped");
    for n in [4, 5] {
        let at = noon() + SignedDuration::from_hours(n);
        let told = stage.h.get(&format!("/actions/{id}/why?at={at}")).await.expect(200);
        let sentence = told["sentence"].as_str().unwrap();
        assert!(sentence.contains(because), "{sentence}");
        assert_eq!(sentence.contains("Resume it when you have mended the cause."), n == 5, "{sentence}");
    }
    assert_eq!(stage.occurrences(id).await.last().unwrap().reason_code, Some(ReasonCode::Paused));

    // A resume begins anew.
    works(&model);
    stage.h.post(&format!("/actions/{id}/resume"), json!({})).await.expect(200);
    let action = stage.action(id).await;
    assert_eq!((action.state, action.failures, action.paused_because), (ActionState::Scheduled, None, None));
    assert_eq!(hour(&stage, id, 5).await, "succeeded");
}

#[tokio::test]
async fn failures_that_alternate_and_successes_between_never_pause() {
    let (model, stage, id) = stage().await;
    for n in 0..4 {
        breaks(&model);
        assert_eq!(hour(&stage, id, 4 * n + 1).await, "failed");
        rejects(&model);
        assert_eq!(hour(&stage, id, 4 * n + 2).await, "failed");
        assert_eq!(times(&stage, id).await, 1);
        rejects(&model);
        assert_eq!(hour(&stage, id, 4 * n + 3).await, "failed");
        assert_eq!(times(&stage, id).await, 2);
        if n % 2 == 0 {
            works(&model);
            assert_eq!(hour(&stage, id, 4 * n + 4).await, "succeeded");
            assert_eq!(times(&stage, id).await, 0);
        }
    }
    assert_eq!((stage.action(id).await.state, pauses(&stage, id).await.len()), (ActionState::Scheduled, 0));
}

#[tokio::test]
async fn an_appointment_that_fails_is_over_and_not_paused() {
    let (model, stage, _) = stage().await;
    breaks(&model);
    let due = noon() + SignedDuration::from_mins(1);
    let id = stage.approved(json!({"schedule": {"at": due.to_string()}})).await;
    stage.happens_at(1).await;
    let action = stage.action(id).await;
    assert_eq!((action.state, action.paused_because), (ActionState::Failed, None));
}

/// The pause, its reason and its entry are stored with the end of the run, whenever an executor dies.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn executors_that_die_count_each_failure_once() {
    const ACTIONS: usize = 12;
    let model = ScriptedModel::start(writes).await;
    let stage = Stage::with(model.config("scripted")).await;
    breaks(&model);
    let mut ids = Vec::new();
    for _ in 0..ACTIONS {
        ids.push(stage.approved(json!({"schedule": {"every": "24h"}})).await);
    }
    let mut killed = 0;
    for day in 1..=3 {
        stage.at(day * 24 * 60);
        for round in 0..8 {
            let share = [0.4, 0.2].get(round).copied().unwrap_or(0.0);
            stage.executors.trouble(0.2, share);
            tokio::join!(stage.sweep(), stage.sweep());
            killed += stage.executors.work().await.killed;
            stage.clock.set(stage.clock.now() + LEASE);
        }
        for id in &ids {
            let failures = stage.action(*id).await.failures.unwrap();
            let runs = stage.occurrences(*id).await;
            // Executors that were killed three times end a run, too, with another error.
            let equal = runs.iter().rev().take_while(|run| run.error_code == runs.last().unwrap().error_code);
            assert_eq!(failures.times as usize, equal.count(), "{runs:?}");
        }
    }
    assert!(killed > 0);
    let mut paused = 0;
    for id in ids {
        let action = stage.action(id).await;
        let is_paused = action.state == ActionState::Paused;
        assert_eq!(is_paused, action.failures.as_ref().unwrap().times == 3);
        assert_eq!(pauses(&stage, id).await.len(), usize::from(is_paused));
        paused += usize::from(is_paused);
    }
    assert!(paused > 0);
}
