//! Running actions: a due time comes, the executor runs it, and its output exists.

use std::time::Duration;

use base::clock::Clock;
use lamplighter_local::platform::PlatformConfig;
use serde_json::{Value, json};
use tests::{Harness, wait};

/// A platform on which a minute passes in two seconds.
async fn fast() -> Harness {
    let mut config = PlatformConfig::in_memory();
    config.clock = Clock::scaled(30);
    Harness::with(config).await
}

async fn define(h: &Harness, agent: &str, body: Value) -> Value {
    let mut action = json!({
        "title": "Lamp oil report", "description": "A short report", "priority": "high",
        "task_config": {"instructions": "Write a report about lamp oil", "expected_output": "A report about lamp oil"}
    });
    action.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
    h.post(&format!("/agents/{agent}/actions"), action).await.expect(201)
}

async fn approve(h: &Harness, action: &Value) -> Value {
    let path = format!("/actions/{}/approve", action["action_id"].as_str().unwrap());
    h.post(&path, json!({"approval_hash": action["approval_hash"]})).await.expect(200)
}

/// Waits until the action is in this state.
async fn until(h: &Harness, action: &Value, state: &str) -> Value {
    let path = format!("/actions/{}", action["action_id"].as_str().unwrap());
    wait::until(&format!("the action is {state}"), async || h.get(&path).await.expect(200)["state"] == state)
        .await;
    h.get(&path).await.expect(200)
}

#[tokio::test]
async fn an_approved_action_runs_at_its_time_and_its_output_is_there() {
    let h = fast().await;
    let agent = h.agent().await;
    let at = h.platform.cx.clock.now() + jiff::SignedDuration::from_secs(60);
    let action = define(&h, &agent, json!({"schedule": {"at": at.to_string()}})).await;
    assert_eq!(action["state"], "defined");
    let action = approve(&h, &action).await;
    assert_eq!(action["state"], "scheduled");
    until(&h, &action, "completed").await;

    let path = format!("/actions/{}", action["action_id"].as_str().unwrap());
    let runs = h.get(&format!("{path}/runs")).await.expect(200);
    let run = &runs["data"][0];
    assert_eq!(
        (runs["data"].as_array().unwrap().len(), run["state"].as_str()),
        (1, Some("succeeded")),
        "{runs:#}"
    );
    assert!(run["score"].as_i64().is_some_and(|score| score > 0), "{run:#}");
    let run_id = run["run_id"].as_str().unwrap();
    let outputs = h.get(&format!("{path}/runs/{run_id}/outputs")).await.expect(200);
    let asset = outputs["data"][0]["asset_id"].as_str().unwrap().to_owned();
    let content = h.get(&format!("/assets/{asset}/content")).await.expect(200);
    assert!(content.as_str().unwrap().contains("lamp oil"), "{content:#}");

    let record = h.get(&format!("/runs/{run_id}")).await.expect(200);
    assert_eq!((&record["state"], &record["kind"]), (&json!("completed"), &json!("action")));
    let why = h.get(&format!("{path}/why?at={}", run["due_at"].as_str().unwrap())).await.expect(200);
    assert_eq!(why["run_id"], run_id, "{why:#}");
    let metrics = h.get(&format!("/agents/{agent}")).await.expect(200)["metrics"].clone();
    assert_eq!((&metrics["actions_completed"], &metrics["assets"]), (&json!(1), &json!(1)));
    assert_eq!(metrics["cost_micros"], record["cost_micros"]);
}

#[tokio::test]
async fn a_recurring_action_runs_again_and_again() {
    let h = fast().await;
    let agent = h.agent().await;
    let action = define(&h, &agent, json!({"schedule": {"every": "1m"}})).await;
    approve(&h, &action).await;
    let path = format!("/actions/{}/runs", action["action_id"].as_str().unwrap());
    loop {
        let runs = h.get(&path).await.expect(200);
        let succeeded =
            runs["data"].as_array().unwrap().iter().filter(|run| run["state"] == "succeeded").count();
        if succeeded >= 3 {
            let mut due: Vec<&str> =
                runs["data"].as_array().unwrap().iter().map(|run| run["due_at"].as_str().unwrap()).collect();
            due.sort_unstable();
            let count = due.len();
            due.dedup();
            assert_eq!(due.len(), count, "one occurrence for each due time");
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn an_action_runs_now_once() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let action = define(&h, &agent, json!({})).await;
    let path = format!("/actions/{}", action["action_id"].as_str().unwrap());
    h.post(&format!("{path}/run"), json!({})).await.refused(409, "not_approved");
    approve(&h, &action).await;
    let started = h.post_once(&format!("{path}/run"), "now", json!({})).await;
    let location = started.headers["location"].to_str().unwrap().to_owned();
    let started = started.expect(202);
    assert_eq!(h.post_once(&format!("{path}/run"), "now", json!({})).await.expect(202), started);
    let request =
        h.request(reqwest::Method::GET, &format!("{location}/events")).header("accept", "text/event-stream");
    let events = tests::send(request).await;
    let events = events.body.as_str().unwrap();
    assert!(
        events.contains("event: run.started") && events.trim_end().contains("event: run.completed"),
        "{events}"
    );
    let runs = h.get(&format!("{path}/runs")).await.expect(200);
    assert_eq!(runs["data"].as_array().unwrap().len(), 1);
    assert_eq!(runs["data"][0]["kind"], "manual");
}
