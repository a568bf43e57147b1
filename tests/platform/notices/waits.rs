//! What people are told of what waits for them outside of a run at rest: after ten minutes, once, and only if it still waits.

use domain::ids::{ActionId, RunId};
use http::Method;
use lamplighter_local::platform::PlatformConfig;
use serde_json::{Value, json};
use tests::model::{Says, ScriptedModel};
use tests::process::take_over;
use tests::site::{Answers, Site};
use tests::stage::Stage;

/// Proposes an asset, once in each turn.
fn proposes(messages: &[Value]) -> Says {
    if messages.last().is_some_and(|message| message["role"] == "tool") {
        return Says::Text("It is ready.".into());
    }
    let brief = json!({"title": "Brief", "description": "d", "asset_type": "document", "content": "Oil."});
    Says::Call("generate_asset", brief)
}

/// A stage with a webhook at this site, and this ceiling of a day.
async fn stage(site: &Site, day_micros: Option<i64>) -> (Stage, ScriptedModel) {
    let model = ScriptedModel::start(proposes).await;
    let mut config = PlatformConfig {
        models: model.config("gpt-5.1"),
        reach: site.reach(),
        ..PlatformConfig::in_memory()
    };
    config.budget.day_micros = day_micros.unwrap_or(config.budget.day_micros);
    config.budget.day_max_micros = config.budget.day_max_micros.max(5_000_000);
    let stage = Stage::of(config).await;
    let hook = json!({"kind": "webhook", "url": site.url("/hook")});
    stage.h.post("/notifications/channels", hook).await.expect(201);
    stage.executors.work().await;
    (stage, model)
}

/// What the site was told: the type and the cause, without the id of a run.
fn said(site: &Site) -> Vec<String> {
    let told = |json: Value| {
        let cause = json["data"]["cause"].as_str().unwrap_or("digest").split(':').next().unwrap().to_owned();
        format!("{} {cause}", json["type"].as_str().unwrap())
    };
    site.posted().iter().map(|posted| told(posted.json())).collect()
}

async fn defined(stage: &Stage) -> ActionId {
    let body = json!({
        "title": "Prices",
        "task_config": {"instructions": "Look", "expected_output": "A report"},
        "schedule": {"every": "24h"},
    });
    let action = stage.h.post(&format!("/agents/{}/actions", stage.agent), body).await.expect(201);
    action["action_id"].as_str().unwrap().parse().unwrap()
}

async fn approve(stage: &Stage, id: ActionId) {
    let action = stage.h.get(&format!("/actions/{id}")).await.expect(200);
    let hash = json!({"approval_hash": action["approval_hash"]});
    stage.h.post(&format!("/actions/{id}/approve"), hash).await.expect(200);
}

async fn change(stage: &Stage, id: ActionId, instructions: &str) {
    let task = json!({"task_config": {"instructions": instructions, "expected_output": "A report"}});
    stage.h.patch(&format!("/actions/{id}"), task).await.expect(200);
}

async fn preferences(stage: &Stage, preferences: Value) {
    let request = stage.h.request(Method::PUT, "/notifications").json(&preferences).build().unwrap();
    stage.h.execute(request).await.unwrap().error_for_status().unwrap();
    stage.executors.work().await;
}

const APPROVAL: &str = "notice.needs_answer approval";

#[tokio::test]
async fn an_approval_that_waits_is_told_once_and_again_after_the_next_change() {
    let site = Site::start(Answers::Status(204)).await;
    let (stage, _model) = stage(&site, None).await;
    let id = defined(&stage).await;
    stage.happens_at(9).await;
    assert_eq!(said(&site), Vec::<String>::new());
    for minute in [10, 11, 14, 60, 500] {
        stage.happens_at(minute).await;
        assert_eq!(said(&site), [APPROVAL], "at {minute}");
    }
    let data = site.posted()[0].json()["data"].clone();
    assert_eq!((&data["title"], &data["count"]), (&json!("Prices"), &json!(1)), "{data:#}");
    assert!(data["url"].as_str().unwrap().ends_with(&format!("/#/actions/{id}")), "{data:#}");

    // What was answered and waits again is a new question: it does not wait for six hours.
    approve(&stage, id).await;
    change(&stage, id, "Look twice").await;
    stage.happens_at(505).await;
    // A change of what is not approved begins nothing new.
    change(&stage, id, "Look three times").await;
    stage.happens_at(511).await;
    assert_eq!(said(&site), [APPROVAL, APPROVAL]);
    stage.happens_at(530).await;
    assert_eq!(said(&site).len(), 2);
}

/// The actions of an agent wait for another approval after a change of the agent. One notice says so, whatever their number.
#[tokio::test]
async fn an_agent_whose_change_withdraws_approvals_is_told_once_with_what_was_changed() {
    let site = Site::start(Answers::Status(204)).await;
    let (stage, _model) = stage(&site, None).await;
    let ids = [defined(&stage).await, defined(&stage).await, defined(&stage).await];
    for id in ids {
        approve(&stage, id).await;
    }
    let agent = format!("/agents/{}", stage.agent);
    let change = async |fields: Value| stage.h.patch(&agent, fields).await.expect(200);
    stage.at(20);
    // What approvals do not bind, and what was changed back, is no question.
    change(json!({"model_tier": "deep"})).await;
    change(json!({"goal": "Sells oil"})).await;
    change(json!({"goal": "A research agent that watches"})).await;
    stage.happens_at(40).await;
    assert_eq!(said(&site), Vec::<String>::new());

    let goal = change(json!({"goal": "Sells oil"})).await;
    assert_eq!(goal["effects"], json!(["approvals_withdrawn"]), "{goal:#}");
    stage.at(41);
    change(json!({"name": "Shop"})).await;
    approve(&stage, ids[0]).await;
    stage.happens_at(49).await;
    assert_eq!(said(&site), Vec::<String>::new());
    for minute in [51, 52, 60, 200] {
        stage.happens_at(minute).await;
        assert_eq!(said(&site), ["notice.needs_answer agent"], "at {minute}");
    }
    let data = site.posted()[0].json()["data"].clone();
    assert_eq!(
        (&data["title"], &data["reason"]),
        (
            &json!("Shop"),
            &json!(
                "The agent has another goal and another name. 2 of its actions run only after you have approved them again."
            )
        ),
        "{data:#}"
    );
    assert!(data["url"].as_str().unwrap().ends_with(&format!("/#{agent}")), "{data:#}");

    // With one action, the notice leads to it.
    for id in ids {
        approve(&stage, id).await;
    }
    stage.h.post(&format!("/actions/{}/cancel", ids[1]), json!({})).await.expect(200);
    stage.h.post(&format!("/actions/{}/dismiss", ids[2]), json!({})).await.expect(200);
    change(json!({"instructions": "Be brief"})).await;
    stage.happens_at(211).await;
    let posted = site.posted();
    assert_eq!(posted.len(), 2, "{:?}", said(&site));
    let data = posted[1].json()["data"].clone();
    assert!(data["url"].as_str().unwrap().ends_with(&format!("/#/actions/{}", ids[0])), "{data:#}");
    // Nothing runs for an archived agent, whatever a person answers.
    change(json!({"instructions": "Be long", "status": "archived"})).await;
    stage.happens_at(230).await;
    assert_eq!(site.posted().len(), 2);
}

#[tokio::test]
async fn nobody_is_told_of_what_was_answered_within_ten_minutes() {
    let site = Site::start(Answers::Status(204)).await;
    let (stage, _model) = stage(&site, None).await;
    let ids = [defined(&stage).await, defined(&stage).await, defined(&stage).await, defined(&stage).await];
    stage.at(5);
    approve(&stage, ids[0]).await;
    stage.h.post(&format!("/actions/{}/dismiss", ids[1]), json!({})).await.expect(200);
    stage.h.delete(&format!("/actions/{}", ids[2])).await.expect(204);
    stage.happens_at(11).await;
    assert_eq!(said(&site), [APPROVAL], "only one of four still waits");
    // Whoever cancels an action wants it not to run.
    stage.h.post(&format!("/actions/{}/cancel", ids[0]), json!({})).await.expect(200);
    stage.happens_at(30).await;
    assert_eq!(said(&site).len(), 1);
    assert!(stage.h.platform.cx.store.all_happened(&stage.owner).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_is_answered_before_its_message_is_not_said_any_more() {
    let site = Site::start(Answers::Status(204)).await;
    let (stage, _model) = stage(&site, None).await;
    preferences(&stage, json!({"quiet_hours": {"from": "12:05", "to": "14:00"}})).await;
    let (answered, waits) = (defined(&stage).await, defined(&stage).await);
    stage.happens_at(15).await;
    assert_eq!(said(&site), Vec::<String>::new(), "it is quiet");
    stage.at(60);
    approve(&stage, answered).await;
    stage.happens_at(120).await;
    assert_eq!(said(&site), [APPROVAL]);
    assert_eq!(site.posted()[0].json()["data"]["action_id"], json!(waits));

    // The same for the digest of the next morning.
    preferences(&stage, json!({"kinds": {"needs_answer": "digest", "succeeded": "off"}})).await;
    let late = defined(&stage).await;
    stage.happens_at(140).await;
    approve(&stage, late).await;
    stage.h.post(&format!("/actions/{answered}/pause"), json!({})).await.expect(200);
    stage.h.post(&format!("/actions/{late}/pause"), json!({})).await.expect(200);
    stage.happens_at(20 * 60 + 1).await;
    assert_eq!(said(&site), [APPROVAL], "nothing is left for a digest");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_stopped_at_a_ceiling_is_told_and_its_proposals_are_told() {
    let site = Site::start(Answers::Status(204)).await;
    let (stage, _model) = stage(&site, Some(1_000)).await;
    let chat = format!("/agents/{}/chat", stage.agent);
    let view = stage.h.post(&chat, json!({"message": "Write a brief"})).await.expect(200);
    assert_eq!(view["state"], "waiting", "{view:#}");
    let run = view["run_id"].as_str().unwrap();
    stage.happens_at(9).await;
    assert_eq!(said(&site), Vec::<String>::new());
    stage.happens_at(11).await;
    assert_eq!(said(&site), ["notice.needs_answer turn"]);
    let data = site.posted()[0].json()["data"].clone();
    assert_eq!(data["title"], "Watch", "{data:#}");
    assert!(data["url"].as_str().unwrap().ends_with(&format!("/#/runs/{run}")), "{data:#}");
    assert!(data["reason"].as_str().unwrap().contains("today's ceiling of 1000"), "{data:#}");

    let card = &view["cards"][0];
    let raise = json!({"hash": card["hash"], "raise_by_micros": 2_000_000});
    stage.h.post(&format!("/runs/{run}/calls/1.0/approve"), raise).await.expect(200);
    take_over(&stage, run.parse::<RunId>().unwrap()).await;
    let view = stage.h.get(&format!("/runs/{run}")).await.expect(200);
    assert_eq!(view["proposals"].as_array().unwrap().len(), 1, "{view:#}");
    stage.happens_at(20).await;
    assert_eq!(said(&site).len(), 1);
    stage.happens_at(22).await;
    stage.happens_at(60).await;
    assert_eq!(said(&site), ["notice.needs_answer turn", "notice.needs_answer proposals"]);

    // What is accepted in time is not told.
    let view = stage.h.post(&chat, json!({"message": "Write another brief"})).await.expect(200);
    let proposal = json!({"proposal_id": view["proposals"][0]["proposal_id"]});
    stage.h.post(&format!("/agents/{}/assets", stage.agent), proposal).await.expect(201);
    stage.happens_at(80).await;
    assert_eq!(said(&site).len(), 2);
}
