//! The pre-flight: what would make a run fail is said twelve hours and five minutes before, and costs nothing.

use domain::actions::ActionState;
use domain::ids::ActionId;
use jiff::{SignedDuration, Timestamp};
use lamplighter_local::platform::PlatformConfig;
use serde_json::{Value, json};
use shared::flows::executor::sweep::sweep;
use shared::flows::executor::wake::wake;
use tests::bus;
use tests::made::settle;
use tests::model::{Says, ScriptedModel};
use tests::stage::{Stage, noon};

/// Minutes after noon: twelve hours and five minutes before the first due time, and the due time.
const EARLY: i64 = 12 * 60;
const SHORTLY: i64 = 24 * 60 - 5;
const DUE: i64 = 24 * 60;

/// A model with a known price: 10 dollars for a million tokens of output.
const PRICED: &str = "gpt-5.1";

fn writes(messages: &[Value]) -> Says {
    match messages.last().unwrap()["role"].as_str() {
        Some("tool") => Says::Text("It is done.".into()),
        _ => Says::Call("save_output", json!({"title": "Report", "content": "Lamp oil is dear."})),
    }
}

fn minute(minutes: i64) -> Timestamp {
    noon() + SignedDuration::from_mins(minutes)
}

async fn daily() -> (ScriptedModel, Stage, ActionId) {
    let model = ScriptedModel::start(writes).await;
    let stage = Stage::with(model.config("scripted")).await;
    let id = stage.approved(json!({"schedule": {"every": "24h"}})).await;
    (model, stage, id)
}

async fn read(stage: &Stage, id: ActionId) -> Value {
    stage.h.get(&format!("/actions/{id}")).await.expect(200)
}

/// The codes of what the newest check has found.
async fn found(stage: &Stage, id: ActionId) -> Vec<String> {
    let preflight = read(stage, id).await["preflight"].clone();
    let problems = preflight["problems"].as_array().into_iter().flatten();
    problems.map(|problem| problem["code"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_refused_key_is_said_twelve_hours_before_and_no_token_is_spent() {
    let (model, stage, id) = daily().await;
    model.lists(401);
    stage.happens_at(EARLY - 1).await;
    assert_eq!((model.listed(), found(&stage, id).await.len()), (0, 0));
    stage.happens_at(EARLY).await;
    assert_eq!(found(&stage, id).await, ["model_key_refused"]);
    let action = read(&stage, id).await;
    assert_eq!(action["preflight"]["due_at"], json!(minute(DUE)));
    assert_eq!(action["preflight"]["checked_at"], json!(minute(EARLY)));
    let list = stage.h.get("/actions").await.expect(200);
    assert_eq!(list["data"][0]["preflight"], action["preflight"]);
    let told = stage.h.get(&format!("/actions/{id}/why?at={}", minute(DUE))).await.expect(200);
    let sentence = told["sentence"].as_str().unwrap();
    assert!(sentence.contains("will fail unless this is mended: "), "{sentence}");
    assert!(sentence.contains("does not accept the API key"), "{sentence}");
    // Once for this moment, without a run and without a call.
    for minutes in EARLY + 1..EARLY + 10 {
        stage.happens_at(minutes).await;
    }
    assert_eq!((model.listed(), model.asked(), stage.occurrences(id).await.len()), (1, 0, 0));

    // It is mended, and the second check says so.
    model.lists(200);
    stage.happens_at(SHORTLY).await;
    assert_eq!((model.listed(), found(&stage, id).await.len()), (2, 0));
    stage.happens_at(DUE - 1).await;
    assert_eq!(model.asked(), 0);
    stage.happens_at(DUE).await;
    assert_eq!(stage.became(id).await, ["1440 succeeded"]);
    let [run] = &stage.occurrences(id).await[..] else { panic!("one run") };
    assert_eq!((run.started_at, run.found_late), (Some(minute(DUE)), false));
    // The next one.
    stage.happens_at(DUE + EARLY).await;
    assert_eq!(model.listed(), 3);
}

#[tokio::test]
async fn what_is_not_certain_is_no_problem() {
    let (model, stage, id) = daily().await;
    for status in [500, 503, 404, 403, 429] {
        model.lists(status);
        stage.happens_at(EARLY).await;
        assert_eq!(found(&stage, id).await.len(), 0, "{status}");
    }
    assert_eq!(model.listed(), 1);
    // A key that was refused before still counts as refused if the provider does not answer.
    let (model, stage, id) = daily().await;
    model.lists(401);
    stage.happens_at(EARLY).await;
    model.lists(500);
    stage.happens_at(SHORTLY).await;
    assert_eq!(found(&stage, id).await, ["model_key_refused"]);
}

#[tokio::test]
async fn a_withdrawn_approval_is_said_before_the_run() {
    let (_model, stage, id) = daily().await;
    stage.h.patch(&format!("/agents/{}", stage.agent), json!({"goal": "Sells lamp oil"})).await.expect(200);
    stage.happens_at(EARLY).await;
    assert_eq!(found(&stage, id).await, ["drifted"]);
    let hash = read(&stage, id).await["approval_hash"].clone();
    let approved = stage.h.post(&format!("/actions/{id}/approve"), json!({"approval_hash": hash})).await;
    assert_eq!(approved.expect(200).get("preflight"), None);
    // The other checks are made again, because one of them had found something.
    stage.happens_at(EARLY + 1).await;
    assert_eq!(found(&stage, id).await.len(), 0);
    stage.happens_at(DUE).await;
    assert_eq!(stage.became(id).await, ["1440 succeeded"]);
}

#[tokio::test]
async fn a_ceiling_without_room_is_said_before_the_run() {
    let model = ScriptedModel::start(writes).await;
    let stage =
        Stage::of(PlatformConfig { models: model.config(PRICED), ..PlatformConfig::in_memory() }).await;
    let budget = json!({"per_run_micros": 100_000, "per_month_micros": 50_000});
    let id = stage.approved(json!({"schedule": {"every": "24h"}, "budget": budget})).await;
    stage.happens_at(EARLY).await;
    assert_eq!(found(&stage, id).await.len(), 0);
    stage.happens_at(DUE).await;
    let cost = stage.occurrences(id).await[0].cost_micros;
    assert!(cost > 0);
    let leaves = json!({"budget": {"per_run_micros": 100_000, "per_month_micros": cost + cost / 2}});
    stage.h.patch(&format!("/actions/{id}"), leaves).await.expect(200);
    let hash = read(&stage, id).await["approval_hash"].clone();
    stage.h.post(&format!("/actions/{id}/approve"), json!({"approval_hash": hash})).await.expect(200);
    stage.happens_at(DUE + EARLY).await;
    assert_eq!(found(&stage, id).await, ["ceiling_reached"]);
    let text = read(&stage, id).await["preflight"]["problems"][0]["text"].clone();
    let text = text.as_str().unwrap();
    assert!(text.starts_with("the ceiling of the action's month leaves $"), "{text}");
    // Everything of the account's day is spent as well.
    let cx = &stage.h.platform.cx;
    settle(cx, &stage.owner, minute(DUE + SHORTLY), 0, 1_000_000_000).await;
    stage.happens_at(DUE + SHORTLY).await;
    assert_eq!(found(&stage, id).await, ["ceiling_reached", "ceiling_reached"]);
}

#[tokio::test]
async fn nothing_is_checked_while_nothing_would_run() {
    let (model, stage, id) = daily().await;
    let minutely = stage.approved(json!({"schedule": {"every": "59m"}})).await;
    model.lists(401);
    stage.h.post(&format!("/actions/{id}/pause"), json!({})).await.expect(200);
    stage.happens_at(EARLY).await;
    assert_eq!((model.listed(), found(&stage, id).await.len()), (0, 0));
    stage.h.post(&format!("/actions/{id}/resume"), json!({})).await.expect(200);
    let agent = format!("/agents/{}", stage.agent);
    stage.h.patch(&agent, json!({"status": "paused"})).await.expect(200);
    stage.happens_at(EARLY + 1).await;
    assert_eq!((model.listed(), found(&stage, id).await.len()), (0, 0));
    stage.h.patch(&agent, json!({"status": "active"})).await.expect(200);
    stage.h.post("/account/stop", json!({})).await.expect(200);
    stage.happens_at(SHORTLY).await;
    assert_eq!((model.listed(), found(&stage, id).await.len()), (0, 0));
    assert_eq!(found(&stage, minutely).await.len(), 0);
}

/// Executors die, and messages come twice. Each due time begins in its second all the same, and each check is made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checks_never_delay_or_hasten_a_run() {
    const ACTIONS: usize = 12;
    let model = ScriptedModel::start(writes).await;
    let stage = Stage::with(model.config("scripted")).await;
    model.lists(401);
    let mut ids = Vec::new();
    for _ in 0..ACTIONS {
        ids.push(stage.approved(json!({"schedule": {"every": "24h"}})).await);
    }
    let mut killed = 0;
    for at in [EARLY, SHORTLY] {
        stage.executors.trouble(0.5, 0.5);
        stage.at(at);
        tokio::join!(stage.sweep(), stage.sweep());
        killed += stage.executors.work().await.killed;
        stage.executors.trouble(0.5, 0.0);
        // The lease of a sweep ends after three minutes.
        for minutes in at + 1..=at + 4 {
            stage.happens_at(minutes).await;
        }
        for id in &ids {
            if at == EARLY {
                assert_eq!(found(&stage, *id).await, ["model_key_refused"]);
            }
            assert_eq!(stage.occurrences(*id).await.len(), 0);
        }
    }
    assert!(killed > 0);
    assert_eq!(model.asked(), 0);
    stage.at(DUE);
    stage.sweep().await;
    stage.executors.work().await;
    for id in ids {
        let [run] = &stage.occurrences(id).await[..] else { panic!("one run") };
        assert_eq!((run.started_at, run.found_late), (Some(minute(DUE)), false), "{run:?}");
        assert_eq!(stage.action(id).await.preflight, None);
        assert_eq!(stage.action(id).await.state, ActionState::Scheduled);
    }
}

#[tokio::test]
async fn each_problem_of_a_due_time_and_each_pause_is_one_event_without_texts() {
    let (model, stage, id) = daily().await;
    let (cx, told) = &bus::kept(&stage.h.platform.cx).await;
    let happens = async |minutes: i64| {
        stage.at(minutes);
        sweep(cx, Timestamp::MAX).await.unwrap();
        // Two executors get the message.
        let deadline = cx.clock.now() + SignedDuration::from_mins(15);
        let (one, other) =
            tokio::join!(wake(cx, &stage.owner, id, deadline), wake(cx, &stage.owner, id, deadline));
        one.unwrap();
        other.unwrap();
    };
    model.lists(401);
    model.has_context(10);
    for day in 0..3 {
        for minutes in [EARLY, SHORTLY, DUE] {
            happens(day * DUE + minutes).await;
        }
    }
    assert_eq!(stage.action(id).await.state, ActionState::Paused);
    let told = told.lock().unwrap().clone();
    let entries: Vec<&Value> = told.iter().flat_map(|call| call["Entries"].as_array().unwrap()).collect();
    assert!(entries.iter().all(|entry| entry["Source"] == json!("lamplighter")), "{entries:#?}");
    // The runs themselves are events of their own.
    let alerts = entries.iter().filter(|entry| entry["DetailType"] == json!("action.alert"));
    let details =
        alerts.map(|entry| serde_json::from_str::<Value>(entry["Detail"].as_str().unwrap()).unwrap());
    let base = json!({"owner": "local", "agent_id": stage.agent, "action_id": id});
    let with = |more: Value| {
        let mut detail = base.clone();
        detail.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        detail
    };
    let preflight = |day: i64| {
        with(json!({"alert": "preflight", "codes": "model_key_refused", "due_at": minute(day * DUE)}))
    };
    let paused = with(json!({"alert": "paused", "codes": "conversation_too_large"}));
    assert_eq!(details.collect::<Vec<_>>(), [preflight(1), preflight(2), preflight(3), paused]);
}
