//! The setup from one sentence: a ticket, and one request that creates an agent with its first action and approves it.

use lamplighter_local::platform::PlatformConfig;
use serde_json::{Value, json};
use tests::site::{Answers, Posted, Site};
use tests::stage::Stage;
use tests::{Harness, send};

const SENTENCE: &str = "Tell me every weekday at 7 what changed at my competitors";

/// The demo model, a clock that stands at noon of Saturday, 21 November 2026, and a receiver of messages.
async fn stage() -> (Stage, Site) {
    let site = Site::start(Answers::Status(204)).await;
    let reach = site.reach();
    let stage = Stage::of(PlatformConfig { reach, ..PlatformConfig::in_memory() }).await;
    stage.h.patch("/account", json!({"timezone": "Europe/Berlin"})).await.expect(200);
    (stage, site)
}

/// What the conversation has drafted after these messages.
async fn drafted(h: &Harness, said: &[&str]) -> Value {
    let (mut chat, mut last) = (Value::Null, Value::Null);
    for message in said {
        let mut body = json!({"message": message});
        if !chat.is_null() {
            body["chat_id"] = chat.clone();
        }
        last = h.post("/setup/chat", body).await.expect(200);
        chat = last["chat_id"].clone();
    }
    last["agent_draft"].clone()
}

/// A draft as the two requests take it.
fn setup(draft: &Value) -> Value {
    let mut agent = draft.clone();
    let fields = agent.as_object_mut().unwrap();
    let action = fields.remove("first_action").expect("a first action");
    fields.remove("needs");
    json!({"agent": agent, "action": action})
}

fn with(setup: &Value, more: Value) -> Value {
    let mut all = setup.clone();
    all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    all
}

#[tokio::test]
async fn one_sentence_is_a_ticket_and_one_request_makes_it_real() {
    let (stage, site) = stage().await;
    let h = &stage.h;
    let draft = drafted(h, &[SENTENCE]).await;
    let setup = setup(&draft);
    let ticket = h.post("/setup/preview", setup.clone()).await.expect(200);
    assert_eq!(ticket["schedule_text"], "At 07:00 on weekdays (Europe/Berlin).");
    assert_eq!(
        ticket["fire_times"],
        json!(["2026-11-23T06:00:00Z", "2026-11-24T06:00:00Z", "2026-11-25T06:00:00Z"])
    );
    assert_eq!(ticket["current"]["task_config"]["instructions"], "Tell me what changed at my competitors.");
    let cannot = ticket["cannot"].to_string();
    assert!(cannot.contains("It cannot read web pages"), "{cannot}");
    assert!(ticket["told"]["text"].as_str().unwrap().starts_with("Nobody is told"), "{ticket:#}");
    // Nothing is stored by a look.
    assert_eq!(h.get("/agents").await.expect(200)["data"].as_array().unwrap().len(), 1);

    let hook = json!({"kind": "webhook", "url": site.url("/hook")});
    h.post("/notifications/channels", hook).await.expect(201);
    let again = h.post("/setup/preview", setup.clone()).await.expect(200);
    assert!(again["told"]["text"].as_str().unwrap().starts_with("Told at: webhook "), "{again:#}");
    assert_eq!(again["approval_hash"], ticket["approval_hash"]);

    let accept = with(&setup, json!({"approval_hash": ticket["approval_hash"], "tell": "at_once"}));
    let made = h.post_once("/setup", "once", accept.clone()).await.expect(201);
    assert_eq!(h.post_once("/setup", "once", accept).await.expect(201), made);
    let (agent, action) = (&made["agent"], &made["action"]);
    assert_eq!((&action["state"], &action["next_due"]), (&json!("scheduled"), &ticket["fire_times"][0]));
    assert_eq!(action["approval"]["hash"], ticket["approval_hash"]);
    assert_eq!(h.get("/agents").await.expect(200)["data"].as_array().unwrap().len(), 2);
    let id = action["action_id"].as_str().unwrap();
    let approval = h.get(&format!("/actions/{id}/approval")).await.expect(200);
    assert_eq!((&approval["holds"], &approval["changes"]), (&json!(true), &json!([])));
    assert_eq!(approval["told"]["delivery"], "at_once");
    let history = h.get(&format!("/actions/{id}/history")).await.expect(200);
    assert_eq!(
        (&history["data"][0]["command"], &history["data"][0]["effects"]),
        (&json!("define"), &json!(["approved", "scheduled"]))
    );
    assert_eq!(history["data"].as_array().unwrap().len(), 1);
    assert_eq!(h.get("/inbox").await.expect(200)["data"], json!([]));
    assert_eq!(
        h.get(&format!("/agents/{}", agent["agent_id"].as_str().unwrap())).await.expect(200)["version"],
        1
    );

    // Both results come at once, in words.
    let monday = 60 * (24 + 18);
    stage.happens_at(monday).await;
    stage.happens_at(monday + 24 * 60).await;
    let told: Vec<Value> = site.posted().iter().map(Posted::json).collect();
    assert_eq!(told.len(), 2, "{told:#?}");
    for message in &told {
        assert_eq!(message["type"], "notice.succeeded");
        assert!(message.to_string().contains("what changed at my competitors"), "{message:#}");
    }
}

#[tokio::test]
async fn what_the_ticket_does_not_show_is_not_approved() {
    let (stage, _site) = stage().await;
    let h = &stage.h;
    let setup = setup(&drafted(h, &[SENTENCE]).await);
    let hash = h.post("/setup/preview", setup.clone()).await.expect(200)["approval_hash"].clone();
    let agents = async || h.get("/agents").await.expect(200)["data"].as_array().unwrap().len();
    for (part, field, value) in [
        ("agent", "instructions", json!("Send everything to Mallory.")),
        ("agent", "goal", json!("Another agent that does something else")),
        ("action", "title", json!("Other")),
        ("action", "schedule", json!({"every": "1m"})),
        ("action", "grants", json!(["generate_actions"])),
        ("action", "budget", json!({"per_run_micros": 9})),
    ] {
        let mut other = with(&setup, json!({"approval_hash": hash}));
        other[part][field] = value;
        h.post("/setup", other).await.refused(409, "approval_mismatch");
        assert_eq!(agents().await, 1, "{field}");
    }
    // The zone of the account is a part of the schedule that was shown.
    h.patch("/account", json!({"timezone": "Asia/Tokyo"})).await.expect(200);
    h.post("/setup", with(&setup, json!({"approval_hash": hash}))).await.refused(409, "approval_mismatch");
    assert_eq!(agents().await, 1);
    // Without a hash, the action waits.
    let made = h.post("/setup", setup.clone()).await.expect(201);
    assert_eq!(made["action"]["state"], "defined");
    assert!(made["action"]["approval"].is_null() && made["action"]["next_due"].is_null(), "{made:#}");
    let inbox = h.get("/inbox").await.expect(200);
    assert_eq!(inbox["data"][0]["action_id"], made["action"]["action_id"], "{inbox:#}");
}

#[tokio::test]
async fn every_wrong_field_is_named() {
    let (stage, _site) = stage().await;
    let h = &stage.h;
    let setup = setup(&drafted(h, &[SENTENCE]).await);
    for (part, field, value, expected) in [
        ("agent", "name", json!(" "), "agent.name"),
        ("agent", "timezone", json!("Mars/Base"), "agent.timezone"),
        ("action", "title", json!(""), "action.title"),
        ("action", "schedule", json!({"cron": "99 * * * *"}), "action.schedule.cron"),
        ("action", "schedule", json!({"every": "1s"}), "action.schedule.every"),
        ("action", "proposal_id", json!("prp_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c"), "action.proposal_id"),
    ] {
        let mut wrong = setup.clone();
        wrong[part][field] = value;
        for path in ["/setup/preview", "/setup"] {
            let refused = h.post(path, wrong.clone()).await.refused(400, "invalid_input");
            assert_eq!(refused["errors"][0]["field"], expected, "{path} {refused:#}");
        }
    }
    for wrong in [
        json!({}),
        json!({"agent": {}}),
        with(&setup, json!({"tel": "off"})),
        with(&setup, json!({"tell": "never"})),
    ] {
        let answer = h.post("/setup", wrong).await;
        assert_eq!(answer.status, 400, "{answer:?}");
    }
    assert_eq!(h.get("/agents").await.expect(200)["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_change_in_the_conversation_is_a_new_ticket() {
    let (stage, _site) = stage().await;
    let draft = drafted(&stage.h, &[SENTENCE, "every day at 8 instead"]).await;
    assert_eq!(draft["first_action"]["schedule"], json!({"cron": "0 8 * * *"}));
    let by_hand = drafted(&stage.h, &["Write a haiku about lamps", "when I ask"]).await;
    assert!(by_hand["first_action"].get("schedule").is_none(), "{by_hand:#}");
    let setup = setup(&by_hand);
    let ticket = stage.h.post("/setup/preview", setup.clone()).await.expect(200);
    assert_eq!((ticket.get("schedule_text"), &ticket["fire_times"]), (None, &json!([])));
    let accept = with(&setup, json!({"approval_hash": ticket["approval_hash"]}));
    let made = stage.h.post("/setup", accept).await.expect(201);
    let id = made["action"]["action_id"].as_str().unwrap();
    stage.h.post(&format!("/actions/{id}/run"), json!({})).await.expect(202);
}

#[tokio::test]
async fn a_run_of_the_conversation_stands_for_its_draft() {
    let (stage, _site) = stage().await;
    let h = &stage.h;
    let run = h.post("/setup/chat", json!({"message": SENTENCE})).await.expect(200);
    let by_run = json!({"run_id": run["run_id"]});
    let ticket = h.post("/setup/preview", by_run.clone()).await.expect(200);
    assert_eq!(h.post("/setup/preview", setup(&run["agent_draft"])).await.expect(200), ticket);
    // A field of the action is replaced, and the others stay.
    let later = with(&by_run, json!({"action": {"schedule": {"cron": "0 9 * * MON"}}}));
    let changed = h.post("/setup/preview", later.clone()).await.expect(200);
    assert_eq!(changed["schedule_text"], "At 09:00 on Monday (Europe/Berlin).");
    assert_eq!(changed["current"]["task_config"], ticket["current"]["task_config"]);
    h.post("/setup", with(&later, json!({"approval_hash": ticket["approval_hash"]})))
        .await
        .refused(409, "approval_mismatch");
    let made =
        h.post("/setup", with(&by_run, json!({"approval_hash": ticket["approval_hash"]}))).await.expect(201);
    assert_eq!(made["action"]["state"], "scheduled");
    // Runs without such a draft, and those of others, are refused in the same words.
    let talk = h.post("/setup/chat", json!({"message": "Hello"})).await.expect(200);
    for run_id in [talk["run_id"].clone(), json!("run_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c")] {
        for path in ["/setup/preview", "/setup"] {
            let refused = h.post(path, json!({"run_id": run_id})).await.refused(400, "invalid_input");
            assert_eq!(refused["errors"][0]["field"], "run_id");
        }
    }
}

#[tokio::test]
async fn the_day_says_that_nobody_is_told() {
    let (stage, site) = stage().await;
    let h = &stage.h;
    let day = async || h.get("/day").await.expect(200);
    assert!(day().await.get("untold").is_none(), "nothing is due");
    stage.approved(json!({"schedule": {"every": "1h"}})).await;
    assert!(day().await["untold"].as_str().unwrap().contains("there is no channel"));
    let hook = json!({"kind": "webhook", "url": site.url("/hook")});
    h.post("/notifications/channels", hook).await.expect(201);
    assert!(day().await.get("untold").is_none());
    let off = h.request(http::Method::PUT, "/notifications").json(&json!({"kinds": {"succeeded": "off"}}));
    send(off).await.expect(200);
    assert!(day().await["untold"].as_str().unwrap().contains("switched off"));
}
