//! Actions without a model: one request when they are due.

use std::time::Duration;

use domain::ids::ActionId;
use lamplighter_local::platform::PlatformConfig;
use serde_json::{Value, json};
use tests::site::{Answers, Site};
use tests::stage::{Stage, noon};

async fn stage(site: &Site) -> Stage {
    Stage::of(PlatformConfig { reach: site.reach(), ..PlatformConfig::in_memory() }).await
}

fn call(site: &Site) -> Value {
    json!({"url": site.url("/hook"), "body": {"reason": "daily"}, "headers": {"X-Team": "shop"}})
}

async fn define(stage: &Stage, body: Value) -> Value {
    let mut all = json!({"title": "Rebuild", "schedule": {"every": "1h"}});
    all.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
    stage.h.post(&format!("/agents/{}/actions", stage.agent), all).await.expect(201)
}

async fn approved(stage: &Stage, body: Value) -> ActionId {
    let action = define(stage, body).await;
    let id = action["action_id"].as_str().unwrap();
    let hash = json!({"approval_hash": action["approval_hash"]});
    stage.h.post(&format!("/actions/{id}/approve"), hash).await.expect(200);
    id.parse().unwrap()
}

async fn newest_run(stage: &Stage, id: ActionId) -> Value {
    let run = stage.occurrences(id).await.last().unwrap().run_id;
    stage.h.get(&format!("/runs/{run}")).await.expect(200)
}

#[tokio::test]
async fn a_call_is_sent_once_for_each_due_time_and_its_answer_is_shown() {
    let site = Site::start(Answers::Page("text/plain", "queued".to_owned(), None)).await;
    let stage = stage(&site).await;
    let id = approved(&stage, json!({"call": call(&site)})).await;
    let approval = stage.h.get(&format!("/actions/{id}/approval")).await.expect(200);
    assert!(approval["warnings"][0].as_str().unwrap().contains(&site.url("/hook")), "{approval:#}");
    assert!(site.posted().is_empty(), "nothing is sent before it is due");
    stage.happens_at(60).await;
    stage.happens_at(60).await;
    stage.happens_at(120).await;
    assert_eq!(stage.became(id).await, ["60 succeeded", "120 succeeded"]);
    let posted = site.posted();
    assert_eq!(posted.len(), 2);
    assert_eq!(posted[0].json(), json!({"reason": "daily"}));
    let run = newest_run(&stage, id).await;
    let key = run["run_id"].as_str().unwrap();
    for (name, value) in [
        ("content-type", "application/json"),
        ("x-team", "shop"),
        ("idempotency-key", key),
        ("webhook-id", key),
        ("user-agent", "Lamplighter"),
    ] {
        assert_eq!(posted[1].header(name), value, "{name}");
    }
    assert_ne!(posted[0].header("webhook-id"), key);
    assert_eq!((&run["state"], &run["cost_micros"]), (&json!("completed"), &json!(0)), "{run:#}");
    assert_eq!((&run["call"]["attempts"], &run["call"]["key"]), (&json!(1), &json!(key)), "{run:#}");
    let tried = &run["call"]["tries"][0];
    assert_eq!((&tried["status"], &tried["answer"]), (&json!(200), &json!("queued")), "{run:#}");
    assert!(run["tainted"].is_object(), "the server has written the answer: {run:#}");
}

#[tokio::test]
async fn a_server_that_fails_is_tried_again_with_the_same_key() {
    let site = Site::start(Answers::Status(500)).await;
    let stage = stage(&site).await;
    let id = approved(&stage, json!({"call": call(&site)})).await;
    stage.happens_at(60).await;
    assert_eq!(stage.became(id).await, ["60 due retrying"]);
    assert_eq!(newest_run(&stage, id).await["call"]["tries"][0]["status"], 500);
    stage.happens_at(70).await;
    stage.happens_at(80).await;
    assert_eq!(stage.became(id).await, ["60 failed error"]);
    let keys: Vec<String> = site.posted().iter().map(|p| p.header("idempotency-key").to_owned()).collect();
    assert_eq!(keys.len(), 3);
    assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    let run = newest_run(&stage, id).await;
    assert_eq!(
        (&run["error"]["code"], &run["call"]["attempts"]),
        (&json!("call_failed"), &json!(3)),
        "{run:#}"
    );

    // The server works again.
    site.answers(Answers::Status(204));
    stage.happens_at(120).await;
    assert_eq!(stage.became(id).await[1], "120 succeeded");
}

#[tokio::test]
async fn a_definite_answer_ends_the_run_and_a_redirect_is_not_followed() {
    for answers in [Answers::Status(404), Answers::Status(410)] {
        let site = Site::start(answers).await;
        let stage = stage(&site).await;
        let id = approved(&stage, json!({"call": call(&site)})).await;
        stage.happens_at(60).await;
        assert_eq!(stage.became(id).await, ["60 failed error"]);
        assert_eq!(site.posted().len(), 1);
    }
    let site = Site::start(Answers::Status(204)).await;
    let stage = stage(&site).await;
    let id = approved(&stage, json!({"call": call(&site)})).await;
    site.answers(Answers::RedirectsTo(site.url("/inside")));
    stage.happens_at(60).await;
    assert_eq!(stage.became(id).await, ["60 failed error"]);
    assert_eq!(site.asked().len(), 1, "{:?}", site.asked());
    // An answer without an end is cut. Its status counts.
    site.answers(Answers::Drips);
    stage.happens_at(120).await;
    assert_eq!(stage.became(id).await[1], "120 succeeded");
    let answer = newest_run(&stage, id).await["call"]["tries"][0]["answer"].clone();
    assert_eq!(answer.as_str().unwrap().len(), 2_048);
}

/// An executor dies after the server has the request. The next one sends the same key.
#[tokio::test]
async fn a_call_of_a_process_that_died_is_repeated_with_its_key() {
    let site = Site::start(Answers::Hangs).await;
    let stage = stage(&site).await;
    let id = approved(&stage, json!({"call": call(&site)})).await;
    stage.at(60);
    stage.sweep().await;
    let sent = async {
        while site.posted().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        _ = stage.executors.work() => panic!("the server does not answer"),
        () = sent => {}
    }
    site.answers(Answers::Status(204));
    stage.happens_at(80).await;
    assert_eq!(stage.became(id).await, ["60 succeeded"]);
    let keys: Vec<String> = site.posted().iter().map(|p| p.header("webhook-id").to_owned()).collect();
    assert_eq!((keys.len(), &keys[0]), (2, &keys[1]));
    assert_eq!(newest_run(&stage, id).await["call"]["attempts"], 2);
}

#[tokio::test]
async fn what_is_not_approved_stopped_or_deleted_is_not_sent() {
    let site = Site::start(Answers::Status(204)).await;
    let stage = stage(&site).await;
    let id = approved(&stage, json!({"call": call(&site)})).await;
    let other = json!({"url": site.url("/other")});
    let changed = stage.h.patch(&format!("/actions/{id}"), json!({"call": other})).await.expect(200);
    assert_eq!((&changed["state"], &changed["approval"]), (&json!("defined"), &Value::Null), "{changed:#}");
    stage.happens_at(60).await;
    assert!(site.posted().is_empty());
    let hash = json!({"approval_hash": changed["approval_hash"]});
    stage.h.post(&format!("/actions/{id}/approve"), hash).await.expect(200);
    stage.happens_at(180).await;
    assert_eq!(site.asked().last().unwrap().0, "/other");
    let sent = site.asked().len();
    stage.h.delete(&format!("/actions/{id}")).await.expect(204);
    stage.happens_at(300).await;
    assert_eq!(site.asked().len(), sent);
}

#[tokio::test]
async fn a_call_is_refused_with_the_field_that_is_wrong() {
    let site = Site::start(Answers::Status(204)).await;
    let stage = stage(&site).await;
    let path = format!("/agents/{}/actions", stage.agent);
    for url in [
        "http://example.com/",
        "https://127.0.0.1/",
        "https://2130706433/",
        "https://[::1]/",
        "https://user@example.com/",
        "https://169.254.169.254/latest",
        "https://example.com:8443/",
        "https://localhost/",
        "ftp://example.com/",
    ] {
        let body = json!({"title": "Rebuild", "call": {"url": url}});
        let refused = stage.h.post(&path, body).await.expect(400);
        assert!(refused.to_string().contains("call.url"), "{url}: {refused:#}");
    }
    let task = json!({"instructions": "Do it", "expected_output": "A page"});
    let body = json!({"title": "Rebuild", "call": call(&site), "task_config": task});
    let refused = stage.h.post(&path, body).await.expect(400);
    assert!(refused.to_string().contains("task_config.instructions"), "{refused:#}");
    let with_task = stage.approved(json!({})).await;
    let refused =
        stage.h.patch(&format!("/actions/{with_task}"), json!({"call": call(&site)})).await.expect(400);
    assert!(refused.to_string().contains("can't become"), "{refused:#}");
    assert!(site.posted().is_empty());
}

#[tokio::test]
async fn a_rehearsal_shows_the_request_and_sends_nothing() {
    let site = Site::start(Answers::Status(204)).await;
    let stage = stage(&site).await;
    let action = define(&stage, json!({"call": call(&site)})).await;
    let id = action["action_id"].as_str().unwrap();
    let run = stage.h.post(&format!("/actions/{id}/rehearse"), json!({})).await.expect(202);
    stage.clock.set(noon());
    stage.executors.work().await;
    let run = stage.h.get(&format!("/runs/{}", run["run_id"].as_str().unwrap())).await.expect(200);
    assert_eq!(run["state"], "completed", "{run:#}");
    let shown: Value =
        serde_json::from_str(run["rehearsal"]["effects"][0]["arguments"].as_str().unwrap()).unwrap();
    assert_eq!((&shown["method"], &shown["url"]), (&json!("POST"), &json!(site.url("/hook"))), "{shown:#}");
    assert_eq!(shown["headers"]["content-type"], "application/json");
    assert!(site.posted().is_empty());
}
