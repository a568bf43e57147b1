//! The daily synchronisation: what it learns, once for each state of a conversation, at 23:00 of the person's day.

use reqwest::Method;
use serde_json::json;
use tests::memory::{learns, remembers};
use tests::model::{Says, ScriptedModel};

#[tokio::test]
async fn a_day_is_learned_at_23_hours_of_the_person() {
    let model = ScriptedModel::start(learns).await;
    let stage = remembers(&model).await;
    let chat = stage.says(None, &["I like green tea", "I work at a small shop in Lisbon"]).await;
    stage.moves_to("2026-11-21T21:59:00Z").await;
    assert_eq!(stage.learned_on("2026-11-21").await, [""; 0], "it is 22:59 in Berlin");
    stage.moves_to("2026-11-21T22:01:00Z").await;
    let learned = stage.learned_on("2026-11-21").await;
    assert_eq!(learned, ["The user like green tea", "The user work at a small shop in Lisbon"]);

    let day = stage.h.get("/memory/days/2026-11-21").await.expect(200);
    let fact = &day["blocks"][0]["facts"][0];
    assert_eq!(fact["sources"][0]["source"], json!(chat));
    assert_eq!(fact["sources"][0]["message_ids"].as_array().unwrap().len(), 1);
    assert_eq!((&fact["state"], &fact["origin"]), (&json!("current"), &json!("conversation")));
    let days = stage.h.get("/memory/days").await.expect(200);
    assert_eq!(days["synced"], "2026-11-21");
    assert_eq!(days["data"][0], json!({"date": "2026-11-21", "blocks": 1, "facts": 2, "archived": false}));
    let asked = stage.h.request(Method::GET, "/memory/days/2026-11-21").header("accept", "text/markdown");
    let answer = asked.send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/markdown; charset=utf-8");
    let markdown = answer.text().await.unwrap();
    assert!(markdown.contains("The user like green tea"), "{markdown}");
}

#[tokio::test]
async fn the_same_state_of_a_conversation_is_learned_once() {
    let model = ScriptedModel::start(learns).await;
    let stage = remembers(&model).await;
    let chat = stage.says(None, &["I like green tea", "I work at a small shop in Lisbon"]).await;
    let first = stage.h.post("/memory/sync", json!({})).await.expect(200);
    assert_eq!((&first["result"], &first["sources"][0]["facts"]), (&json!("written"), &json!(2)));
    let asked = model.asked();
    for _ in 0..10 {
        let again = stage.h.post("/memory/sync", json!({})).await.expect(200);
        assert_eq!(again["result"], "skipped", "{again:#}");
    }
    assert_eq!(model.asked(), asked, "no model is asked again");
    // New words of the person make a new block, and what is known is not learned twice.
    stage.says(Some(&chat), &["I like green tea", "I moved to Porto in May"]).await;
    let more = stage.h.post("/memory/sync", json!({})).await.expect(200);
    assert_eq!(more["sources"][0]["facts"], 1, "{more:#}");
    let learned = stage.learned_on("2026-11-21").await;
    assert_eq!(learned.len(), 3, "{learned:?}");
}

#[tokio::test]
async fn a_conversation_of_one_message_is_left_out() {
    let model = ScriptedModel::start(learns).await;
    let stage = remembers(&model).await;
    let chat = stage.says(None, &["I like green tea"]).await;
    let synced = stage.h.post("/memory/sync", json!({})).await.expect(200);
    assert_eq!(synced["sources"], json!([{"source": chat, "skipped": "too_few_messages", "facts": 0}]));
}

#[tokio::test]
async fn a_failure_of_the_model_never_looks_like_success() {
    let model = ScriptedModel::start(learns).await;
    let stage = remembers(&model).await;
    stage.says(None, &["I like green tea", "I work at a small shop in Lisbon"]).await;
    // As often as a synchronisation asks.
    model.refuses([0; 4]);
    stage.moves_to("2026-11-21T22:01:00Z").await;
    let days = stage.h.get("/memory/days").await.expect(200);
    assert!(days["failure"].is_string(), "{days:#}");
    assert_ne!(days["synced"], "2026-11-21");
    assert_eq!(stage.learned_on("2026-11-21").await.len(), 0);
    // It is tried again by itself.
    stage.moves_to("2026-11-21T23:30:00Z").await;
    assert_eq!(stage.learned_on("2026-11-21").await.len(), 2);
    let days = stage.h.get("/memory/days").await.expect(200);
    assert_eq!((&days["synced"], &days["failure"]), (&json!("2026-11-21"), &json!(null)));
}

#[tokio::test]
async fn a_person_who_says_nothing_costs_nothing() {
    let model = ScriptedModel::start(learns).await;
    let stage = remembers(&model).await;
    stage.says(None, &["Hello", "Bye"]).await;
    stage.moves_to("2026-11-21T22:01:00Z").await;
    // The empty block of the day is archived on Sunday. After that, nothing is due any more.
    stage.moves_to("2026-11-22T21:01:00Z").await;
    stage.moves_to("2026-11-23T22:01:00Z").await;
    let due = stage.h.platform.cx.store.memory_due(&stage.owner).await.unwrap();
    assert_eq!(due, None);
}

/// The platform stands still for days before it has synchronised a memory for the first time.
#[tokio::test]
async fn a_late_first_synchronisation_loses_nothing() {
    let model = ScriptedModel::start(learns).await;
    let stage = remembers(&model).await;
    stage.says(None, &["I like green tea", "I live in Porto"]).await;
    stage.moves_to("2026-11-25T12:00:00Z").await;
    assert_eq!(stage.learned_on("2026-11-24").await.len(), 2);
}

#[tokio::test]
async fn a_message_that_comes_while_memory_is_put_to_rest_wakes_it_up() {
    let model = ScriptedModel::start(learns).await;
    let stage = remembers(&model).await;
    let store = &stage.h.platform.cx.store;
    let chat = stage.says(None, &["Hello", "Bye"]).await;
    // An executor has read the mark, and finds nothing left to do. Now a message comes.
    let read = store.memory_due(&stage.owner).await.unwrap().unwrap();
    stage.says(Some(&chat), &["I like green tea"]).await;
    store.clear_memory_due(&stage.owner, read.version).await.unwrap();
    let kept = store.memory_due(&stage.owner).await.unwrap().expect("the mark is still there");
    assert!(kept.version > read.version, "{kept:?}");
    assert_eq!(kept.value, read.value, "it keeps its time");
    stage.moves_to("2026-11-21T22:01:00Z").await;
    assert_eq!(stage.learned_on("2026-11-21").await, ["The user like green tea"]);
    // The mark that was read last can be deleted.
    let read = store.memory_due(&stage.owner).await.unwrap().unwrap();
    store.clear_memory_due(&stage.owner, read.version).await.unwrap();
    assert_eq!(store.memory_due(&stage.owner).await.unwrap(), None);
}

#[tokio::test]
async fn what_was_said_before_a_long_failure_of_the_model_is_learned_after_it() {
    let model = ScriptedModel::start(learns).await;
    let stage = remembers(&model).await;
    stage.says(None, &["I like green tea", "I work at a small shop in Lisbon"]).await;
    model.refuses([0; 1_000]);
    for time in
        ["2026-11-21T22:01:00Z", "2026-11-22T22:01:00Z", "2026-11-23T22:01:00Z", "2026-11-24T22:01:00Z"]
    {
        stage.moves_to(time).await;
    }
    let days = stage.h.get("/memory/days").await.expect(200);
    assert!(days["failure"].is_string(), "{days:#}");
    model.forgives();
    stage.moves_to("2026-11-25T22:01:00Z").await;
    let learned = stage.learned_on("2026-11-25").await;
    assert_eq!(learned, ["The user like green tea", "The user work at a small shop in Lisbon"]);
}

/// Says nothing usable about one conversation, and learns from the others.
fn trips(request: &[serde_json::Value]) -> Says {
    let is_bad = request.last().is_some_and(|last| last["content"].to_string().contains("tripwire"));
    if is_bad && request[0]["content"].to_string().contains("<lamplighter:memory>") {
        return Says::Call("save_facts", json!({"title": "A talk"}));
    }
    learns(request)
}

#[tokio::test]
async fn a_conversation_that_no_model_can_read_does_not_hold_up_the_others() {
    let model = ScriptedModel::start(trips).await;
    let stage = remembers(&model).await;
    stage.says(None, &["I like a tripwire", "I like two of them"]).await;
    stage.says(None, &["I like green tea", "I work at a small shop in Lisbon"]).await;
    stage.moves_to("2026-11-21T22:01:00Z").await;
    let learned = stage.learned_on("2026-11-21").await;
    assert_eq!(learned, ["The user like green tea", "The user work at a small shop in Lisbon"]);
    let days = stage.h.get("/memory/days").await.expect(200);
    assert!(days["failure"].as_str().unwrap().contains("`facts`"), "{days:#}");
    assert_ne!(days["synced"], "2026-11-21");
}
