//! The watchdog: what is wrong is said once, and so is its end, whatever comes twice or dies.

use domain::background::jobs::{JobKind, JobRun, Outcome};
use domain::ids::Owner;
use domain::watchdog::look_at;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use shared::flows::executor::route;
use shared::flows::watched::watchdog;
use shared::store::DueItem;
use tests::memory::{learns, remembers};
use tests::model::ScriptedModel;
use tests::stage::Stage;

const LOOK: SignedDuration = SignedDuration::from_hours(2);

/// A stage with one person whom the watchdog knows.
async fn known(model: &ScriptedModel) -> Stage {
    let stage = remembers(model).await;
    stage.says(None, &["I like green tea", "I work at a small shop in Lisbon"]).await;
    // An executor works for the person, so the person is looked at from now on.
    stage.moves_to("2026-11-21T22:01:00Z").await;
    stage
}

/// One call of the timer, and the work of the executors.
async fn look(stage: &Stage) -> usize {
    let cx = &stage.h.platform.cx;
    let sent = watchdog::send(cx, cx.clock.now() + SignedDuration::from_mins(15)).await.unwrap();
    assert_eq!(sent.refused, 0);
    stage.executors.work().await;
    sent.owners
}

/// Stores how the newest job of this kind ended.
async fn job(stage: &Stage, owner: &Owner, due: Timestamp, error: Option<&str>) {
    let job = JobRun::begin(None, JobKind::AccountExport, "exp_1", due, due);
    let outcome =
        Outcome { work_found: 1, artefacts: 1, error: error.map(str::to_owned), ..Outcome::default() };
    let store = &stage.h.platform.cx.store;
    assert!(store.save_job_run(owner, &job.end(outcome, due), 0).await.unwrap().done());
}

async fn alerts(stage: &Stage) -> Vec<Value> {
    stage.h.get("/watchdog/alerts").await.expect(200)["data"].as_array().unwrap().clone()
}

#[tokio::test]
async fn the_second_look_alerts_once_and_the_end_is_said_once() {
    let model = ScriptedModel::start(learns).await;
    let stage = known(&model).await;
    let (store, owner) = (&stage.h.platform.cx.store, &stage.owner);
    let began: Timestamp = "2026-11-21T22:20:00Z".parse().unwrap();
    stage.clock.set(began);
    assert_eq!(look(&stage).await, 1);
    // Nothing is wrong, so nothing was written.
    let before = store.watchdog(owner).await.unwrap().unwrap();
    assert_eq!(before.value.counters, []);
    assert_eq!(before.version, 1);

    job(&stage, owner, began, Some("object_missing: the archive is gone")).await;
    for looks in 1..=4 {
        stage.clock.set(began + LOOK * looks);
        // The timer comes twice, and so does its message.
        look(&stage).await;
        look(&stage).await;
        let cx = &stage.h.platform.cx;
        let again = DueItem { due_at: Some(look_at(cx.clock.now())), ..DueItem::watchdog(owner) };
        route::process(cx, &again, cx.clock.now() + LOOK).await.unwrap();
        let said = alerts(&stage).await;
        assert_eq!(said.len(), usize::from(looks > 1), "look {looks}: {said:#?}");
    }
    let said = alerts(&stage).await.remove(0);
    assert_eq!(
        (&said["say"], &said["check"], &said["count"]),
        (&json!("alert"), &json!("job_failed"), &json!(2))
    );
    assert_eq!(said["item"], "account_export");
    assert!(said["what"].as_str().unwrap().contains("the archive is gone"), "{said:#}");
    let seen = stage.h.get("/watchdog").await.expect(200);
    assert_eq!(
        (&seen["counters"][0]["anomalies"], &seen["counters"].as_array().unwrap().len()),
        (&json!(4), &1)
    );
    // When it was made, and not the time for which it was planned: the platform may have been started in between.
    assert_eq!(seen["looked_at"], json!(began + LOOK * 4));
    assert!(look_at(began + LOOK * 4) < began + LOOK * 4);
    assert_eq!(seen["next_look"], json!(look_at(began + LOOK * 4) + LOOK));

    job(&stage, owner, began + LOOK * 4, None).await;
    for looks in 5..8 {
        stage.clock.set(began + LOOK * looks);
        look(&stage).await;
        assert_eq!(alerts(&stage).await.len(), 2);
    }
    assert_eq!(alerts(&stage).await[0]["say"], "recovery");
}

#[tokio::test]
async fn settings_switch_a_check_off_and_say_after_how_many_looks_it_alerts() {
    let model = ScriptedModel::start(learns).await;
    let stage = known(&model).await;
    let h = &stage.h;
    assert_eq!(h.get("/watchdog/settings").await.expect(200), json!({"checks": {}}));
    let put = async |body: Value| {
        tests::send(h.request(reqwest::Method::PUT, "/watchdog/settings").json(&body)).await
    };
    for wrong in [0, 6] {
        let refused =
            put(json!({"checks": {"job_failed": {"hits": wrong}}})).await.refused(400, "invalid_input");
        assert_eq!(refused["errors"][0]["field"], "checks.job_failed.hits");
    }
    put(json!({"checks": {"job_failed": {"hits": 1}}})).await.expect(200);
    let began: Timestamp = "2026-11-21T22:20:00Z".parse().unwrap();
    job(&stage, &stage.owner, began, Some("gone")).await;
    stage.clock.set(began);
    look(&stage).await;
    assert_eq!(alerts(&stage).await.len(), 1);
    put(json!({"checks": {"job_failed": {"enabled": false}}})).await.expect(200);
    stage.clock.set(began + LOOK);
    look(&stage).await;
    assert_eq!(alerts(&stage).await.len(), 1);
    assert_eq!(h.get("/watchdog").await.expect(200)["counters"][0]["anomalies"], 0);
}

#[tokio::test]
async fn a_missed_synchronisation_is_run_and_an_account_that_is_stopped_or_deleted_is_left_alone() {
    let model = ScriptedModel::start(learns).await;
    let stage = known(&model).await;
    let cx = &stage.h.platform.cx;
    stage.clock.set("2026-11-22T12:00:00Z".parse().unwrap());
    stage.says(None, &["I like coffee", "I have two cats"]).await;
    // The mark that memory is due is lost for the sweep: its time lies far ahead.
    let due = cx.store.memory_due(&stage.owner).await.unwrap().unwrap();
    let far = cx.clock.now() + SignedDuration::from_hours(24 * 30);
    cx.store.set_memory_due(&stage.owner, &due.value, far).await.unwrap();
    stage.clock.set("2026-11-23T02:16:00Z".parse().unwrap());
    stage.h.post("/account/stop", json!({})).await.expect(200);
    look(&stage).await;
    assert_eq!(cx.store.watchdog(&stage.owner).await.unwrap().unwrap().value.counters, []);
    stage.h.post("/account/start", json!({})).await.expect(200);
    assert_eq!(stage.learned_on("2026-11-22").await.len(), 0);
    stage.clock.set("2026-11-23T04:16:00Z".parse().unwrap());
    look(&stage).await;
    stage.executors.work().await;
    assert_eq!(stage.learned_on("2026-11-22").await.len(), 2, "the first look that sees it runs it");

    stage.h.delete(&format!("/account?confirm={}", stage.owner)).await.expect(202);
    stage.executors.work().await;
    stage.clock.set("2026-11-23T06:16:00Z".parse().unwrap());
    assert_eq!(look(&stage).await, 0, "who is deleted is not in the index any more");
    assert_eq!(cx.store.watchdog(&stage.owner).await.unwrap(), None);
}
