//! What a model is told of memory, and that a search finds what was just written.

use domain::runs::Taint;
use serde_json::json;
use tests::memory::{learns, remembers};
use tests::model::ScriptedModel;

#[tokio::test]
async fn a_turn_is_told_what_matters_and_the_run_shows_it() {
    let model = ScriptedModel::start(learns).await;
    let stage = remembers(&model).await;
    stage.says(None, &["I like green tea", "I work at a small shop in Lisbon"]).await;
    stage.h.post("/memory/sync", json!({})).await.expect(200);
    let chat = format!("/agents/{}/chat", stage.agent);
    let turn = stage.h.post(&chat, json!({"message": "Which tea should I buy?"})).await.expect(200);
    let asked = model.sent().last().unwrap()["messages"].clone();
    let newest = asked.as_array().unwrap().last().unwrap()["content"].as_str().unwrap();
    assert!(
        newest.contains("<lamplighter_memory>") && newest.contains("The user like green tea"),
        "{newest}"
    );
    assert!(newest.ends_with("Which tea should I buy?"), "{newest}");
    let recalled = turn["recalled"].as_array().unwrap();
    assert!(
        recalled.iter().any(|one| one["text"] == "The user like green tea" && one["kind"] == "memory"),
        "{turn:#}"
    );
    // A fact that is deleted since is not shown any more.
    let told = recalled.iter().find(|one| one["text"] == "The user like green tea").unwrap();
    stage.h.delete(&format!("/memory/facts/{}", told["ref"].as_str().unwrap())).await.expect(204);
    let run = stage.h.get(&format!("/runs/{}", turn["run_id"].as_str().unwrap())).await.expect(200);
    assert!(!run.to_string().contains("The user like green tea"), "{run:#}");
    // What was told is not part of the conversation, and is never learned.
    let stored = stage.h.get(&format!("/chats/{}", turn["chat_id"].as_str().unwrap())).await.expect(200);
    assert!(!stored.to_string().contains("lamplighter_memory"), "{stored:#}");
}

#[tokio::test]
async fn a_search_finds_what_was_just_said() {
    let model = ScriptedModel::start(learns).await;
    let stage = remembers(&model).await;
    assert_eq!(stage.finds("marmalade").await, [""; 0]);
    let chat = stage.says(None, &["We ordered forty jars of marmalade from Coimbra"]).await;
    assert_eq!(stage.finds("marmalade").await[0], "We ordered forty jars of marmalade from Coimbra");
    let found = stage.h.get("/memory/search?q=jars+of+marmalade").await.expect(200);
    assert_eq!((&found["stopped_at"], &found["hits"][0]["kind"]), (&json!("raw"), &json!("raw")));
    assert_eq!(found["hits"][0]["session_id"], json!(chat));
    // The index has it, and after a deletion nothing finds it.
    stage.h.delete(&format!("/chats/{chat}")).await.expect(204);
    assert_eq!(stage.finds("marmalade").await, [""; 0]);
}

#[tokio::test]
async fn a_scheduled_run_leaves_a_card() {
    let model = ScriptedModel::start(learns).await;
    let stage = remembers(&model).await;
    stage.approved(json!({"schedule": {"cron": "0 14 * * *", "timezone": "Europe/Berlin"}})).await;
    stage.happens_at(61).await;
    let cards = stage.h.get("/memory/cards?date=2026-11-21").await.expect(200);
    let card = &cards["data"][0];
    assert_eq!((&card["title"], &card["time"]), (&json!("Report"), &json!("14:01")), "{cards:#}");
    assert!(card["source"].as_str().unwrap().starts_with("run_"));
    let new = json!({"title": "Checked the links", "goal": "No dead links", "status": "done"});
    stage.h.post("/memory/cards", new).await.expect(201);
    let found = stage.h.get("/memory/search?q=dead+links").await.expect(200);
    assert_eq!(
        (&found["stopped_at"], &found["hits"][0]["kind"]),
        (&json!("cards"), &json!("card")),
        "{found:#}"
    );
}

#[tokio::test]
async fn an_agent_is_told_what_its_runs_did_unless_strangers_had_a_hand_in_it() {
    let model = ScriptedModel::start(learns).await;
    let stage = remembers(&model).await;
    stage.approved(json!({"schedule": {"cron": "0 14 * * *", "timezone": "Europe/Berlin"}})).await;
    stage.happens_at(61).await;
    let cards = stage.h.get("/memory/cards?date=2026-11-21").await.expect(200);
    let chat = format!("/agents/{}/chat", stage.agent);
    let told = async || {
        let turn = stage.h.post(&chat, json!({"message": "What is in the report about lamp oil?"})).await;
        let recalled = turn.expect(200)["recalled"].as_array().cloned().unwrap_or_default();
        recalled.iter().any(|one| one["ref"] == cards["data"][0]["card_id"])
    };
    assert!(told().await, "{cards:#}");
    let store = &stage.h.platform.cx.store;
    let id = cards["data"][0]["source"].as_str().unwrap().parse().unwrap();
    let found = store.run(&stage.owner, id).await.unwrap().unwrap();
    let mut run = found.value;
    run.tainted = Some(Taint { at: stage.h.platform.cx.clock.now(), step: 1 });
    assert!(store.replace_run(&stage.owner, &run, found.version).await.unwrap().done());
    assert!(!told().await, "its titles may be what strangers want them to be");
}
