//! What a turn and a run are told about the time, and the zone in which a schedule without one is read.

use serde_json::{Value, json};
use tests::model::{Says, ScriptedModel};
use tests::process::followed;
use tests::stage::Stage;

fn works(request: &[Value]) -> Says {
    let system = request[0]["content"].as_str().unwrap_or_default();
    let last = request.last().and_then(|message| message["content"].as_str()).unwrap_or_default();
    let has_result = request.last().is_some_and(|message| message["role"] == "tool");
    match system.contains("<lamplighter:run>") {
        true if last.contains("Ask first") => Says::Call("ask_person", json!({"question": "Which week?"})),
        true if !has_result => Says::Call("save_output", json!({"title": "Oil", "content": "Oil costs 7."})),
        _ => Says::Text("Fine.".into()),
    }
}

/// A platform whose person lives in Berlin.
async fn in_berlin(model: &ScriptedModel) -> Stage {
    let stage = Stage::with(model.config("scripted")).await;
    stage.h.patch("/account", json!({"timezone": "Europe/Berlin"})).await.expect(200);
    stage
}

/// The messages of the newest request for work.
fn newest(model: &ScriptedModel) -> Vec<Value> {
    model.sent().last().unwrap()["messages"].as_array().unwrap().clone()
}

fn text(message: &Value) -> &str {
    message["content"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_turn_is_told_the_time_of_the_person_and_the_cached_prefix_stays() {
    let model = ScriptedModel::start(works).await;
    let stage = in_berlin(&model).await;
    let chat = format!("/agents/{}/chat", stage.agent);
    stage.at(10 * 60 + 59);
    let first = stage.h.post(&chat, json!({"message": "What day is it?"})).await.expect(200);
    let before = newest(&model);
    let asked = text(before.last().unwrap());
    assert!(asked.contains("It is Saturday, 21 November 2026, 23:59 (Europe/Berlin, UTC+01:00)."), "{asked}");
    assert!(asked.ends_with("What day is it?"), "{asked}");

    // Across midnight, only the newest message tells another time. What came before it is the same.
    stage.at(11 * 60 + 1);
    let more = json!({"message": "And now?", "chat_id": first["chat_id"]});
    stage.h.post(&chat, more).await.expect(200);
    let after = newest(&model);
    let asked = text(after.last().unwrap());
    assert!(asked.contains("It is Sunday, 22 November 2026, 00:01 (Europe/Berlin, UTC+01:00)."), "{asked}");
    assert_eq!(before[0], after[0], "the cached prefix");
    let told = |messages: &[Value]| messages.iter().filter(|message| text(message).contains("<now>")).count();
    assert_eq!((told(&before), told(&after)), (1, 1));
    let stored = stage.h.get(&format!("/chats/{}", first["chat_id"].as_str().unwrap())).await.expect(200);
    assert!(!stored.to_string().contains("<now>"), "{stored:#}");

    stage.h.post("/setup/chat", json!({"message": "Remind me tomorrow"})).await.expect(200);
    assert!(text(newest(&model).last().unwrap()).contains("22 November 2026, 00:01"), "a setup conversation");
}

#[tokio::test]
async fn a_run_is_told_when_it_was_due_and_how_late_it_is() {
    let model = ScriptedModel::start(works).await;
    let stage = in_berlin(&model).await;
    let id = stage.approved(json!({"schedule": {"cron": "0 9 * * *"}})).await;
    let task = |model: &ScriptedModel| {
        let sent = model.sent();
        let tasks = sent.iter().filter_map(|request| request["messages"].as_array());
        tasks.map(|messages| text(&messages[1]).to_owned()).next_back().unwrap()
    };
    stage.happens_at(20 * 60 + 3).await;
    let told = task(&model);
    assert!(
        told.starts_with(
            "<now>\nIt is Sunday, 22 November 2026, 09:03 (Europe/Berlin, UTC+01:00). This run was due on Sunday, 22 \
             November 2026, 09:00 (Europe/Berlin, UTC+01:00), and begins 3 min late.\n</now>"
        ),
        "{told}"
    );
    assert!(told.contains("# Task: Report"), "{told}");
    stage.happens_at(44 * 60).await;
    let told = task(&model);
    assert!(told.contains("due on Monday, 23 November 2026, 09:00 (Europe/Berlin, UTC+01:00).\n"), "{told}");
    assert_eq!(stage.occurrences(id).await.len(), 2);

    let by_hand = stage.approved(json!({})).await;
    stage.h.post(&format!("/actions/{by_hand}/run"), json!({})).await.expect(202);
    stage.executors.work().await;
    assert!(task(&model).contains("A person has started this run by hand."), "{}", task(&model));
}

#[tokio::test]
async fn a_run_that_waited_for_days_is_told_the_new_time() {
    let model = ScriptedModel::start(works).await;
    let stage = in_berlin(&model).await;
    let instructions = json!({"instructions": "Ask first", "expected_output": "A report"});
    let id = stage.approved(json!({"schedule": {"every": "1h"}, "task_config": instructions})).await;
    stage.happens_at(60).await;
    stage.at(48 * 60);
    let answer = json!({"message": "The next one"});
    stage.h.post(&format!("/actions/{id}/resume"), answer).await.expect(200);
    stage.executors.work().await;
    let said = newest(&model);
    let answers: Vec<&str> = said.iter().map(text).filter(|said| said.contains("The next one")).collect();
    let now = "It is now Monday, 23 November 2026, 13:00 (Europe/Berlin, UTC+01:00).";
    assert!(answers.iter().any(|said| said.contains(now)), "{said:#?}");
}

#[tokio::test]
async fn a_schedule_without_a_zone_is_in_that_of_the_account() {
    let model = ScriptedModel::start(works).await;
    let stage = Stage::with(model.config("scripted")).await;
    let zone = async |id| {
        let action = stage.h.get(&format!("/actions/{id}")).await.expect(200);
        (action["schedule"]["timezone"].clone(), action["schedule_text"].clone())
    };
    let daily = json!({"schedule": {"cron": "0 9 * * *"}});
    let before = stage.approved(daily.clone()).await;
    stage.h.patch("/account", json!({"timezone": "Asia/Kathmandu"})).await.expect(200);
    let after = stage.approved(daily.clone()).await;
    assert_eq!(zone(before).await, (json!("UTC"), json!("At 09:00 (UTC).")), "an approved schedule stays");
    assert_eq!(zone(after).await, (json!("Asia/Kathmandu"), json!("At 09:00 (Asia/Kathmandu).")));
    stage.h.patch(&format!("/actions/{before}"), daily).await.expect(200);
    assert_eq!(zone(before).await.0, "Asia/Kathmandu", "a new schedule");
    let named = json!({"schedule": {"cron": "0 9 * * *", "timezone": "America/New_York"}});
    let path = format!("/actions/{after}/schedule");
    stage.h.post(&path, named).await.expect(200);
    assert_eq!(zone(after).await.0, "America/New_York");
    stage.h.post(&path, json!({"schedule": {"every": "1h"}})).await.expect(200);
    assert_eq!(zone(after).await, (json!("Asia/Kathmandu"), json!("Every hour (Asia/Kathmandu).")));
    let once = json!({"schedule": {"at": "2026-12-01T09:00"}});
    let preview = stage.h.post("/schedules/preview", once).await.expect(200);
    assert_eq!(preview["fire_times"], json!(["2026-12-01T03:15:00Z"]));
}

/// Proposes a report at nine o'clock, in no zone.
fn proposes(request: &[Value]) -> Says {
    match request.last().is_some_and(|message| message["role"] == "tool") {
        true => Says::Text("It waits for you.".into()),
        false => Says::Call(
            "generate_actions",
            json!({"actions": [{
                "title": "Report", "description": "A report", "priority": "medium",
                "task_config": {"instructions": "Write a report", "expected_output": "A report"},
                "schedule": {"cron": "0 9 * * MON"},
            }]}),
        ),
    }
}

#[tokio::test]
async fn a_proposal_says_its_schedule_in_words_with_the_zone_of_the_agent() {
    let model = ScriptedModel::start(proposes).await;
    let stage = in_berlin(&model).await;
    let chat = format!("/agents/{}/chat", stage.agent);
    let proposed = async |zone: &str| {
        let turn = stage.h.post(&chat, json!({"message": "Every Monday at nine"})).await.expect(200);
        let events = followed(&stage.h, turn["run_id"].as_str().unwrap().parse().unwrap()).await;
        let text = format!("At 09:00 on Monday ({zone}).");
        assert!(events.iter().any(|event| event.data["schedule_text"] == text), "{events:#?}");
        let path = format!("/proposals/{}", turn["proposals"][0]["proposal_id"].as_str().unwrap());
        stage.h.get(&path).await.expect(200)
    };
    let of_account = proposed("Europe/Berlin").await;
    assert_eq!(of_account["schedule_text"], "At 09:00 on Monday (Europe/Berlin).");
    let agent = format!("/agents/{}", stage.agent);
    let refused =
        stage.h.patch(&agent, json!({"timezone": "Asia/Tokio"})).await.refused(400, "invalid_input");
    assert!(refused.to_string().contains("did you mean Asia/Tokyo?"), "{refused:#}");
    let changed = stage.h.patch(&agent, json!({"timezone": "asia/tokyo"})).await.expect(200);
    assert_eq!(changed["timezone"], "Asia/Tokyo");
    let of_agent = proposed("Asia/Tokyo").await;
    assert_eq!(of_agent["schedule_text"], "At 09:00 on Monday (Asia/Tokyo).");
    assert!(newest(&model).iter().any(|message| text(message).contains("21:00 (Asia/Tokyo, UTC+09:00)")));

    // What was proposed is what is defined, whatever the zone is by then.
    stage.h.patch(&agent, json!({"timezone": ""})).await.expect(200);
    let accepted = json!({"proposal_id": of_agent["proposal_id"]});
    let action = stage.h.post(&format!("{agent}/actions"), accepted).await.expect(201);
    assert_eq!(action["schedule_text"], "At 09:00 on Monday (Asia/Tokyo).");
    let id = action["action_id"].as_str().unwrap();
    let hash = json!({"approval_hash": action["approval_hash"]});
    stage.h.post(&format!("/actions/{id}/approve"), hash).await.expect(200);
    proposed("Europe/Berlin").await;
    let view = newest(&model);
    let next = "Next: Monday, 23 November 2026, 09:00 (Asia/Tokyo, UTC+09:00).";
    assert!(view.iter().any(|message| text(message).contains(next)), "{view:#?}");
}

#[tokio::test]
async fn usage_counts_on_the_day_of_the_person() {
    let model = ScriptedModel::start(works).await;
    let stage = in_berlin(&model).await;
    let chat = format!("/agents/{}/chat", stage.agent);
    // 23:59 and 00:01 in Berlin are the same day in UTC.
    for minutes in [10 * 60 + 59, 11 * 60 + 1] {
        stage.at(minutes);
        stage.h.post(&chat, json!({"message": "Hello"})).await.expect(200);
    }
    let usage = stage.h.get("/usage?month=2026-11").await.expect(200);
    let days: Vec<&Value> =
        usage["month"]["by_day"].as_array().unwrap().iter().map(|day| &day["date"]).collect();
    assert_eq!(days, ["2026-11-21", "2026-11-22"]);
}

#[tokio::test]
async fn an_explanation_without_a_schedule_is_in_the_zone_of_the_account() {
    let model = ScriptedModel::start(works).await;
    let stage = in_berlin(&model).await;
    let id = stage.approved(json!({})).await;
    stage.h.post(&format!("/actions/{id}/run"), json!({})).await.expect(202);
    stage.executors.work().await;
    let why = stage.h.get(&format!("/actions/{id}/why")).await.expect(200);
    let sentence = why["sentence"].as_str().unwrap();
    assert!(
        sentence.starts_with("The run that was started by hand at 2026-11-21 13:00 (Europe/Berlin)"),
        "{sentence}"
    );
}
