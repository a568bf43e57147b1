//! The ledgers of actions and agents: every change, who made it, what it did, and how it is reverted.

use base::clock::{Clock, ManualClock};
use jiff::SignedDuration;
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use shared::config::AuthConfig;
use tests::everything::scanned;
use tests::things::Caller;
use tests::{Answer, Harness, made, send};

async fn still(auth: AuthConfig) -> (Harness, ManualClock) {
    let clock = ManualClock::at("2026-11-21T12:00:00Z".parse().unwrap());
    let config = PlatformConfig {
        auth,
        clock: Clock::Manual(clock.clone()),
        automatic: false,
        ..PlatformConfig::in_memory()
    };
    (Harness::with(config).await, clock)
}

fn report() -> Value {
    json!({
        "title": "Report", "schedule": {"cron": "0 9 * * *"},
        "task_config": {"instructions": "Compare the prices", "expected_output": "A page"},
    })
}

/// The path of a new action of a new agent, and the path of the agent.
async fn defined(h: &Harness) -> (String, String) {
    let agent = h.agent().await;
    let action = h.post(&format!("/agents/{agent}/actions"), report()).await.expect(201);
    (format!("/actions/{}", action["action_id"].as_str().unwrap()), format!("/agents/{agent}"))
}

async fn approve(h: &Harness, action: &str) -> Value {
    let hash = h.get(action).await.expect(200)["approval_hash"].clone();
    h.post(&format!("{action}/approve"), json!({ "approval_hash": hash })).await.expect(200)
}

async fn history(h: &Harness, of: &str) -> Vec<Value> {
    h.get(&format!("{of}/history")).await.expect(200)["data"].as_array().unwrap().clone()
}

/// The commands with the fields that they set and their effects, newest first.
fn told(history: &[Value]) -> Vec<String> {
    let list = |values: &Value, name: Option<&str>| {
        let values = values.as_array().unwrap().iter();
        let texts = values.map(|value| name.map_or(value, |name| &value[name]).as_str().unwrap());
        texts.collect::<Vec<_>>().join(" ")
    };
    let line = |entry: &Value| {
        let (fields, effects) = (list(&entry["changes"], Some("field")), list(&entry["effects"], None));
        format!("{} | {fields} | {effects}", entry["command"].as_str().unwrap())
    };
    history.iter().map(line).collect()
}

async fn revert(h: &Harness, of: &str, version: u64) -> Answer {
    send(h.request(Method::POST, &format!("{of}/history/{version}/revert"))).await
}

#[tokio::test]
async fn every_command_is_in_the_history_of_its_action() {
    let (h, clock) = still(AuthConfig::Off).await;
    let (action, _) = defined(&h).await;
    let command = async |name: &str, body: Value| {
        clock.set(clock.now() + SignedDuration::from_mins(1));
        h.post(&format!("{action}/{name}"), body).await.expect(200)
    };
    assert_eq!(approve(&h, &action).await["effects"], json!(["approved", "scheduled"]));
    assert_eq!(command("pause", json!({})).await["effects"], json!(["paused"]));
    // The same command again changes nothing.
    assert_eq!(command("pause", json!({})).await["effects"], json!([]));
    assert_eq!(command("resume", json!({})).await["effects"], json!(["resumed"]));
    let body = json!({"title": "Prices", "task_config": {"instructions": "Compare all prices"}});
    let changed = h.patch(&action, body).await.expect(200);
    assert_eq!(changed["effects"], json!(["approval_withdrawn", "unscheduled"]));
    assert_eq!(h.get(&action).await.expect(200).get("effects"), None);
    let set = command("schedule", json!({"schedule": {"every": "1h"}})).await;
    assert_eq!(set["effects"], json!([]));
    approve(&h, &action).await;
    let set = command("schedule", json!({"schedule": {"every": "2h"}})).await;
    assert_eq!(set["effects"], json!(["approval_withdrawn", "unscheduled"]));
    approve(&h, &action).await;
    assert_eq!(command("cancel", json!({})).await["effects"], json!(["approval_withdrawn", "unscheduled"]));
    command("complete", json!({})).await;
    command("dismiss", json!({})).await;

    let changes = history(&h, &action).await;
    assert_eq!(
        told(&changes),
        [
            "dismiss |  | dismissed",
            "complete |  | completed",
            "cancel |  | approval_withdrawn unscheduled",
            "approve |  | approved scheduled",
            "schedule | schedule | approval_withdrawn unscheduled",
            "approve |  | approved scheduled",
            "schedule | schedule | ",
            "change | title task_config.instructions | approval_withdrawn unscheduled",
            "resume |  | resumed",
            "pause |  | paused",
            "approve |  | approved scheduled",
            "define | title priority task_config.instructions task_config.expected_output schedule model_tier budget | ",
        ]
    );
    let change = &changes[7];
    assert_eq!((&change["by"], &change["at"]), (&json!({"kind": "person"}), &json!("2026-11-21T12:03:00Z")));
    assert_eq!(change["version"], changed["version"]);
    assert_eq!(
        change["changes"][1],
        json!({
            "field": "task_config.instructions", "before": "Compare the prices", "after": "Compare all prices",
        })
    );
    let versions: Vec<u64> = changes.iter().map(|change| change["version"].as_u64().unwrap()).collect();
    assert!(versions.is_sorted_by(|newer, older| newer > older), "{versions:?}");

    let page = h.get(&format!("{action}/history?limit=2")).await.expect(200);
    let cursor = page["next_cursor"].as_str().unwrap();
    let next = h.get(&format!("{action}/history?limit=2&cursor={cursor}")).await.expect(200);
    assert_eq!(next["data"], json!([changes[2], changes[3]]));
}

#[tokio::test]
async fn the_history_names_the_person_the_key_or_the_proposal() {
    let (h, _) = still(AuthConfig::Off).await;
    let agent = h.agent().await;
    let proposal = made::action_proposal(&h, &agent).await;
    let action =
        h.post(&format!("/agents/{agent}/actions"), json!({"proposal_id": proposal})).await.expect(201);
    let action = format!("/actions/{}", action["action_id"].as_str().unwrap());
    let by = history(&h, &action).await[0]["by"].clone();
    assert_eq!(by, json!({"kind": "proposal", "proposal_id": proposal}));
    assert_eq!(history(&h, &format!("/agents/{agent}")).await[0]["by"], json!({"kind": "person"}));

    let (h, _) = still(AuthConfig::On(None)).await;
    let key = h.key_of("me").await;
    let me = Caller { h: &h, key: Some(&key) };
    let new = json!({"name": "Watch", "goal": "A research agent that watches"});
    let agent = me.call(Method::POST, "/agents", new).await.expect(201);
    let agent = format!("/agents/{}", agent["agent_id"].as_str().unwrap());
    let action = me.call(Method::POST, &format!("{agent}/actions"), report()).await.expect(201);
    let keys = me.call(Method::GET, "/account/api-keys", Value::Null).await.expect(200);
    let by = json!({"kind": "api_key", "key_id": keys["data"][0]["key_id"]});
    for of in [agent, format!("/actions/{}", action["action_id"].as_str().unwrap())] {
        let found = me.call(Method::GET, &format!("{of}/history"), Value::Null).await.expect(200);
        assert_eq!(found["data"][0]["by"], by, "{of}");
    }
}

#[tokio::test]
async fn a_change_of_an_action_is_reverted_as_a_change_like_any_other() {
    let (h, _) = still(AuthConfig::Off).await;
    let (action, _) = defined(&h).await;
    let before = h.get(&action).await.expect(200);
    let body = json!({
        "title": "Prices", "description": "d", "priority": "high", "schedule": null, "grants": ["query_assets"],
        "task_config": {"instructions": "Else", "expected_output": "Two pages"}, "model_tier": "deep",
        "budget": {"per_run_micros": 7, "per_month_micros": 70}, "conditions": [{"kind": "names_today"}],
    });
    let version = h.patch(&action, body).await.expect(200)["version"].as_u64().unwrap();
    approve(&h, &action).await;

    let reverted = revert(&h, &action, version).await.expect(200);
    assert_eq!(reverted["effects"], json!(["approval_withdrawn"]));
    for field in
        ["title", "description", "priority", "task_config", "schedule", "grants", "model_tier", "budget"]
    {
        assert_eq!(reverted[field], before[field], "{field}");
    }
    assert_eq!((&reverted["approval_hash"], reverted.get("conditions")), (&before["approval_hash"], None));
    let newest = &history(&h, &action).await[0];
    assert_eq!((&newest["command"], &newest["version"]), (&json!("change"), &reverted["version"]));
    assert_eq!(newest["changes"].as_array().unwrap().len(), 10);

    // Nothing would change, nothing was set, nothing was before, no such change.
    assert_eq!(
        revert(&h, &action, version).await.refused(409, "nothing_to_revert")["current"]["title"],
        "Report"
    );
    revert(&h, &action, version + 1).await.refused(409, "nothing_to_revert");
    revert(&h, &action, 1).await.refused(409, "nothing_to_revert");
    revert(&h, &action, 99).await.refused(404, "not_found");
    // A revert of the revert brings the change back.
    let newest = newest["version"].as_u64().unwrap();
    let stale =
        h.request(Method::POST, &format!("{action}/history/{newest}/revert")).header("if-match", "\"1\"");
    send(stale).await.refused(409, "version_conflict");
    assert_eq!(revert(&h, &action, newest).await.expect(200)["title"], "Prices");
}

#[tokio::test]
async fn the_history_of_an_agent_says_that_approvals_ended() {
    let (h, _) = still(AuthConfig::Off).await;
    let (action, agent) = defined(&h).await;
    approve(&h, &action).await;
    let before = h.get(&agent).await.expect(200);
    let long = "\u{1f56f}".repeat(20_000);
    let changed =
        h.patch(&agent, json!({"instructions": long, "timezone": "Europe/Berlin"})).await.expect(200);
    assert_eq!(changed["effects"], json!(["approvals_withdrawn"]));
    assert_eq!(h.patch(&agent, json!({"status": "paused"})).await.expect(200)["effects"], json!(["paused"]));
    // It has this value already.
    assert_eq!(h.patch(&agent, json!({"status": "paused"})).await.expect(200)["effects"], json!([]));
    let version = changed["version"].as_u64().unwrap();
    let reverted = revert(&h, &agent, version).await.expect(200);
    assert_eq!((&reverted["instructions"], reverted.get("timezone")), (&before["instructions"], None));
    assert_eq!(reverted["withdrawn_approvals"], json!([]));

    let changes = history(&h, &agent).await;
    assert_eq!(
        told(&changes),
        [
            "change | instructions timezone | ",
            "change | status | paused",
            "change | instructions timezone | approvals_withdrawn",
            "create | name goal timeline status model_tier | ",
        ]
    );
    assert_eq!(changes[2]["changes"][0]["after"], json!(long));
    revert(&h, &agent, version).await.refused(409, "nothing_to_revert");
    revert(&h, &agent, 1).await.refused(409, "nothing_to_revert");
    h.delete(&agent).await.expect(204);
    h.get(&format!("{agent}/history")).await.refused(404, "not_found");
    h.get(&format!("{action}/history")).await.refused(404, "not_found");
    let left = scanned(&h.platform.cx, "local").await;
    assert!(!left.keys().any(|(_, sk)| sk.starts_with("CHANGE#")), "{:?}", left.keys());
}
