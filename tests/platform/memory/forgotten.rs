//! What a person has deleted or corrected is shown, told and taken along nowhere, however it was said.

use std::collections::BTreeMap;

use reqwest::Method;
use serde_json::{Value, json};
use tests::archives::exported;
use tests::memory::{facts_in, learns, remembers};
use tests::model::{Says, ScriptedModel};
use tests::send;
use tests::stage::Stage;

/// Replaces the long-term memory.
async fn writes(stage: &Stage, markdown: &str) -> Value {
    let put = stage.h.request(Method::PUT, "/memory/long-term").json(&json!({"markdown": markdown}));
    send(put).await.expect(200)
}

async fn forgets(stage: &Stage, fact: &Value) {
    stage.h.delete(&format!("/memory/facts/{}", fact["fact_id"].as_str().unwrap())).await.expect(204);
}

/// A message in a new conversation. Returns the run.
async fn asks(stage: &Stage, message: &str) -> Value {
    stage.h.post(&format!("/agents/{}/chat", stage.agent), json!({"message": message})).await.expect(200)
}

/// The newest request to the model.
fn newest(model: &ScriptedModel) -> String {
    model.sent().last().unwrap()["messages"].to_string()
}

/// What a search finds that has all the words.
async fn finds(stage: &Stage, words: &str) -> Vec<String> {
    let mut found = stage.finds(words).await;
    found.retain(|text| words.split(' ').all(|word| text.contains(word)));
    found
}

/// The facts of a day, by their texts.
async fn learned(stage: &Stage, date: &str) -> BTreeMap<String, Value> {
    let day = stage.h.get(&format!("/memory/days/{date}")).await.expect(200);
    let facts = day["blocks"].as_array().unwrap().iter().flat_map(|block| block["facts"].as_array().unwrap());
    facts.map(|fact| (fact["text"].as_str().unwrap().to_owned(), fact.clone())).collect()
}

#[tokio::test]
async fn an_export_does_not_say_what_runs_were_told_of_a_deleted_fact() {
    let model = ScriptedModel::start(learns).await;
    let stage = remembers(&model).await;
    let put = writes(&stage, "- The user keeps bees in Sintra\n- The user likes tea\n").await;
    let run = asks(&stage, "What should I plant?").await;
    assert!(newest(&model).contains("keeps bees in Sintra"));
    let before = exported(&stage.h.platform.cx, &stage.owner).await;
    assert!(String::from_utf8_lossy(&before["records.jsonl"]).contains("keeps bees in Sintra"));
    forgets(&stage, &put["sections"][0]["lines"][0]["facts"][0]).await;
    for (path, bytes) in exported(&stage.h.platform.cx, &stage.owner).await {
        assert!(!String::from_utf8_lossy(&bytes).contains("bees"), "{path}");
    }
    let run = stage.h.get(&format!("/runs/{}", run["run_id"].as_str().unwrap())).await.expect(200);
    assert!(run.to_string().contains("likes tea") && !run.to_string().contains("bees"), "{run:#}");
}

/// Asks which week, and then writes about it.
fn asks_once(messages: &[Value]) -> Says {
    let said = |wanted: &str| messages.iter().any(|message| message.to_string().contains(wanted));
    match (said("The person answered: "), said("saved as")) {
        (false, _) => Says::Call("ask_person", json!({"question": "Which week?"})),
        (true, false) => Says::Call("save_output", json!({"title": "Report", "content": "Week 47"})),
        (true, true) => Says::Text("It is done.".into()),
    }
}

#[tokio::test]
async fn a_run_that_has_waited_is_not_told_what_was_deleted_meanwhile() {
    let model = ScriptedModel::start(asks_once).await;
    let stage = remembers(&model).await;
    let put = writes(&stage, "- The user keeps bees in Sintra\n- The user likes tea\n").await;
    let action = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    stage.happens_at(60).await;
    assert!(newest(&model).contains("keeps bees in Sintra"));
    let asked = model.sent().len();
    forgets(&stage, &put["sections"][0]["lines"][0]["facts"][0]).await;
    stage.h.post(&format!("/actions/{action}/resume"), json!({"message": "Week 47"})).await.expect(200);
    stage.executors.work().await;
    let later = &model.sent()[asked..];
    assert!(!later.is_empty());
    for request in later {
        assert!(!request.to_string().contains("bees"), "{request:#}");
        assert!(request.to_string().contains("likes tea"), "{request:#}");
    }
}

/// Learns, and calls the conversation what the person has said first.
fn names_it(request: &[Value]) -> Says {
    match learns(request) {
        Says::Call("save_facts", arguments) => {
            let first = facts_in(request.last().unwrap()["content"].as_str().unwrap_or_default());
            let title = first[0]["text"].as_str().unwrap().replace("The user ", "");
            Says::Call("save_facts", json!({"title": title, "facts": arguments["facts"]}))
        }
        other => other,
    }
}

#[tokio::test]
async fn no_title_says_what_was_deleted() {
    let model = ScriptedModel::start(names_it).await;
    let stage = remembers(&model).await;
    let chat = stage.says(None, &["I have diabetes since 2019", "I live in Lisbon"]).await;
    stage.h.post("/memory/sync", json!({})).await.expect(200);
    let day = stage.h.get("/memory/days/2026-11-21").await.expect(200);
    assert_eq!(day["blocks"][0]["title"], "have diabetes since 2019");
    let facts = learned(&stage, "2026-11-21").await;
    forgets(&stage, &facts["The user have diabetes since 2019"]).await;
    // The conversation goes on, also after it was archived, and the model calls it the same again.
    stage.h.post("/memory/tidy", json!({})).await.expect(200);
    stage.at(24 * 60);
    stage.says(Some(&chat), &["I have two cats"]).await;
    stage.h.post("/memory/sync", json!({})).await.expect(200);
    for date in ["2026-11-21", "2026-11-22"] {
        let day = stage.h.get(&format!("/memory/days/{date}")).await.expect(200);
        assert_eq!(day["blocks"][0]["title"], "Conversation", "{day:#}");
        let text = stage.h.get(&format!("/memory/days/{date}?format=markdown")).await.body;
        assert!(!text.to_string().contains("diabetes"), "{text}");
    }
    let listed = stage.h.get("/memory/archive/2026").await.expect(200);
    assert_eq!(listed["days"][0]["facts"], 1, "{listed:#}");
    // A day of which everything was deleted has taught nothing.
    for fact in learned(&stage, "2026-11-22").await.values() {
        forgets(&stage, fact).await;
    }
    let days = stage.h.get("/memory/days").await.expect(200);
    assert_eq!(days["data"], json!([]), "{days:#}");
}

#[tokio::test]
async fn what_was_said_twice_is_deleted_once() {
    let model = ScriptedModel::start(learns).await;
    let stage = remembers(&model).await;
    stage.says(None, &["I keep an umbrella in the blue tin", "I like green tea"]).await;
    stage.says(None, &["By the way, my umbrella is kept in that blue tin.", "Where is my umbrella?"]).await;
    stage.says(None, &["I keep an umbrella in the blue tin", "I have two cats"]).await;
    stage.h.post("/memory/sync", json!({})).await.expect(200);
    assert!(finds(&stage, "umbrella blue tin").await.len() >= 3);
    let facts = learned(&stage, "2026-11-21").await;
    forgets(&stage, &facts["The user keep an umbrella in the blue tin"]).await;
    assert_eq!(finds(&stage, "umbrella").await, ["Where is my umbrella?"]);
    asks(&stage, "Is it in the blue tin?").await;
    assert!(!newest(&model).contains("an umbrella in the blue"), "{}", newest(&model));

    // A line that was written, taken out and written again are two facts.
    writes(&stage, "- The user is allergic to walnuts\n").await;
    writes(&stage, "- The user likes tea\n").await;
    assert_eq!(finds(&stage, "allergic walnuts").await, [""; 0], "a line that was taken out");
    asks(&stage, "A cake with walnuts?").await;
    assert!(!newest(&model).contains("allergic"));
    let again = writes(&stage, "- The user is allergic to walnuts\n- The user likes tea\n").await;
    assert_eq!(finds(&stage, "allergic walnuts").await, ["The user is allergic to walnuts"]);
    forgets(&stage, &again["sections"][0]["lines"][0]["facts"][0]).await;
    assert_eq!(finds(&stage, "allergic walnuts").await, [""; 0]);
    let store = &stage.h.platform.cx.store;
    let left = store.all_facts(&stage.owner).await.unwrap();
    assert!(left.iter().all(|fact| !fact.text.contains("walnuts")), "{left:?}");
}

#[tokio::test]
async fn a_message_that_was_corrected_is_told_only_of_the_past() {
    let model = ScriptedModel::start(learns).await;
    let stage = remembers(&model).await;
    stage.says(None, &["I work at the harbour office", "I live in Lisbon"]).await;
    stage.h.post("/memory/sync", json!({})).await.expect(200);
    let facts = learned(&stage, "2026-11-21").await;
    let path = format!(
        "/memory/facts/{}/correct",
        facts["The user work at the harbour office"]["fact_id"].as_str().unwrap()
    );
    stage.h.post(&path, json!({"text": "The user works at the town library"})).await.expect(200);
    asks(&stage, "Where do I work?").await;
    let told = newest(&model);
    assert!(told.contains("town library") && !told.contains("harbour"), "{told}");
    let found = stage.h.get("/memory/search?depth=raw&q=where+does+the+user+work").await.expect(200);
    let hits = found["hits"].as_array().unwrap();
    let at = |text: &str| hits.iter().position(|hit| hit["text"] == text).unwrap();
    let old = at("I work at the harbour office");
    assert!(at("The user works at the town library") < old, "{found:#}");
    assert_eq!(hits[old]["until"], "2026-11-21");
    asks(&stage, "At which office did I work before?").await;
    let told = newest(&model);
    assert!(told.contains("harbour office") && !told.contains("town library"), "{told}");
}
