//! What a person has deleted or corrected is shown, told and taken along nowhere, however it was said.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::Method;
use serde_json::{Value, json};
use shared::flows::archive::{self, ArchiveLimits};
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

/// The memory does not know what the writer of an outside reply was told. If its session said what is deleted, its words decide.
#[tokio::test]
async fn replies_of_an_outside_session_do_not_repeat_what_was_deleted() {
    let model = ScriptedModel::start(learns).await;
    let stage = remembers(&model).await;
    let message = |id: &str, role: &str, text: &str| json!({"id": id, "role": role, "text": text});
    let add = async |messages: Value| {
        let path = "/memory/sessions/laptop/messages";
        stage.h.post(path, json!({"messages": messages})).await.expect(200);
    };
    add(json!([
        message("1", "user", "I keep an umbrella in the blue tin"),
        message("2", "assistant", "So your umbrella stays dry."),
        message("3", "user", "I like green tea"),
        message("4", "assistant", "Kettles whistle."),
    ]))
    .await;
    stage.h.post("/memory/sync", json!({})).await.expect(200);
    let facts = learned(&stage, "2026-11-21").await;
    stage.clock.set("2026-11-22T10:00:00Z".parse().unwrap());
    add(json!([
        message("5", "assistant", "The umbrella dries."),
        message("6", "user", "Is an umbrella heavy?")
    ]))
    .await;
    stage.h.post("/memory/sync", json!({})).await.expect(200);
    let found = finds(&stage, "umbrella").await;
    for text in ["So your umbrella stays dry.", "The umbrella dries.", "Is an umbrella heavy?"] {
        assert!(found.iter().any(|one| one == text), "{text}: {found:?}");
    }
    forgets(&stage, &facts["The user keep an umbrella in the blue tin"]).await;

    assert_eq!(finds(&stage, "umbrella").await, ["Is an umbrella heavy?"]);
    assert_eq!(finds(&stage, "whistle").await, ["Kettles whistle."]);
    let zip = stage.h.request(Method::GET, "/memory/export").send().await.unwrap().bytes().await.unwrap();
    let limits = ArchiveLimits {
        entries: 500,
        entry_bytes: 1 << 20,
        total_bytes: 1 << 24,
        path_bytes: 200,
        ratio: None,
    };
    let files = archive::read(&zip, &limits).unwrap();
    let session = files.into_iter().find(|file| file.path == "sessions/laptop.jsonl").unwrap();
    let session = String::from_utf8(session.bytes).unwrap();
    assert!(session.contains("whistle") && session.contains("Is an umbrella heavy?"), "{session}");
    assert!(!session.contains("umbrella stays") && !session.contains("umbrella dries"), "{session}");
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

/// Learns, and calls a conversation what was said first.
fn names_it_by_its_beginning(request: &[Value]) -> Says {
    match learns(request) {
        Says::Call("save_facts", arguments) => {
            let question = request.last().unwrap()["content"].as_str().unwrap_or_default();
            let first = question.lines().find_map(|line| line.strip_prefix("> ")).unwrap_or_default();
            Says::Call("save_facts", json!({"title": first.to_lowercase(), "facts": arguments["facts"]}))
        }
        other => other,
    }
}

#[tokio::test]
async fn a_deletion_reaches_titles_cards_notebooks_and_summaries() {
    let model = ScriptedModel::start(names_it_by_its_beginning).await;
    let stage = remembers(&model).await;
    // Its title is cut before the words of the fact.
    let long = "On many evenings of the last winter I was told by my sister, and by her friends too, that the umbrella is kept \
                in that blue tin";
    let one = stage.says(None, &["I keep an umbrella in the blue tin", "I like green tea"]).await;
    let other =
        stage.says(None, &["I have two cats", "By the way, my umbrella is kept in that blue tin."]).await;
    let cut = stage.says(None, &[long, "I live in Lisbon"]).await;
    let apart = stage.says(None, &["My umbrella is red", "I walk a lot"]).await;
    // A conversation so long that a summary replaces its beginning.
    let said = |n: usize| match n {
        0 => json!({"role": "user", "content": "My umbrella is kept in the blue tin."}),
        _ => {
            json!({"role": if n.is_multiple_of(2) { "user" } else { "assistant" }, "content": format!("Number {n} is about oil")})
        }
    };
    let agent = &stage.agent;
    let many = stage.h.post(&format!("/agents/{agent}/chats"), json!({"title": "Oil"})).await.expect(201);
    let many = many["chat_id"].as_str().unwrap().to_owned();
    for first in [0, 70, 140] {
        let messages: Vec<Value> = (first..first + 70).map(said).collect();
        stage.h.post(&format!("/chats/{many}/messages"), json!({"messages": messages})).await.expect(201);
    }
    stage.says(Some(&many), &["What is the price of oil?"]).await;
    let summary = async || stage.h.get(&format!("/chats/{many}")).await.expect(200)["summary"].clone();
    assert!(summary().await.is_object());
    let action = stage.approved(json!({})).await;
    let notebook = format!("/actions/{action}/notebook");
    let text = "Oil is dear.\nThe umbrella is kept in the blue tin.\nAsk again on Monday.";
    for text in [text, "Oil is cheap.\nThe umbrella is kept in the blue tin.\nAsk again on Monday."] {
        send(stage.h.request(Method::PUT, &notebook).json(&json!({"text": text}))).await.expect(200);
    }
    // A reply that a client has brought, as a conversation of another program has it.
    let brought = json!({"messages": [
        {"role": "user", "content": "Did I say that the umbrella is kept in the blue tin?"},
        {"role": "assistant", "content": "A blue tin with an umbrella, how nice."},
    ]});
    let elsewhere =
        stage.h.post(&format!("/agents/{agent}/chats"), json!({"title": "Tin"})).await.expect(201);
    let elsewhere = elsewhere["chat_id"].as_str().unwrap().to_owned();
    stage.h.post(&format!("/chats/{elsewhere}/messages"), brought).await.expect(201);
    for title in ["Found the umbrella, which was kept in the blue tin", "Bought a blue umbrella"] {
        stage.h.post("/memory/cards", json!({"title": title})).await.expect(201);
    }
    stage.h.post("/memory/sync", json!({})).await.expect(200);
    let facts = learned(&stage, "2026-11-21").await;
    // A turn is told the card.
    let asked = stage.says(None, &["Was the umbrella found, which was kept somewhere?", "I like jam"]).await;
    let recalled = async || {
        let chat = stage.h.get(&format!("/chats/{asked}")).await.expect(200);
        let runs: BTreeSet<&str> =
            chat["messages"].as_array().unwrap().iter().filter_map(|said| said["run_id"].as_str()).collect();
        let mut all = String::new();
        for run in runs {
            all.push_str(&stage.h.get(&format!("/runs/{run}")).await.expect(200)["recalled"].to_string());
        }
        all
    };
    assert!(recalled().await.contains("Found the umbrella"), "{asked}: {}", recalled().await);

    forgets(&stage, &facts["The user keep an umbrella in the blue tin"]).await;
    assert!(!recalled().await.contains("Found the umbrella"), "{}", recalled().await);
    let found =
        stage.h.get("/memory/search?q=umbrella+tin&depth=raw&limit=100").await.expect(200).to_string();
    assert!(!found.contains("how nice"), "{found}");
    for (chat, title) in [
        (&one, "Conversation"),
        (&other, "I have two cats"),
        (&cut, "Conversation"),
        (&apart, "My umbrella is red"),
        (&many, "Oil"),
    ] {
        assert_eq!(stage.h.get(&format!("/chats/{chat}")).await.expect(200)["title"], *title);
    }
    // Those of the days: of each conversation that says the fact, whatever it says first.
    let day = stage.h.get("/memory/days/2026-11-21").await.expect(200);
    let titles: BTreeMap<&str, &str> = day["blocks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| (block["source"].as_str().unwrap(), block["title"].as_str().unwrap()))
        .collect();
    for (chat, title) in [
        (&one, "Conversation"),
        (&other, "Conversation"),
        (&cut, "Conversation"),
        (&apart, "my umbrella is red"),
    ] {
        assert_eq!(titles[chat.as_str()], title, "{titles:?}");
    }
    let cards = stage.h.get("/memory/cards").await.expect(200);
    let left: Vec<&Value> = cards["data"].as_array().unwrap().iter().map(|card| &card["title"]).collect();
    assert_eq!(left, ["Bought a blue umbrella"]);
    let notes = stage.h.get(&notebook).await.expect(200);
    assert_eq!(notes["text"], "Oil is cheap.\nAsk again on Monday.");
    let versions = stage.h.get(&format!("{notebook}/versions")).await.expect(200);
    let texts: Vec<&Value> = versions["data"].as_array().unwrap().iter().map(|one| &one["text"]).collect();
    let cheap = "Oil is cheap.\nAsk again on Monday.";
    assert_eq!(texts, [cheap, cheap, "Oil is dear.\nAsk again on Monday."], "{versions:#}");
    assert!(summary().await.is_null());
    // The conversations go on, and a summary is written anew.
    let before = model.sent().len();
    stage.says(Some(&many), &["And now?"]).await;
    stage.says(Some(&other), &["And now?"]).await;
    assert!(summary().await.is_object());
    for request in &model.sent()[before..] {
        assert!(!request.to_string().contains("umbrella is kept"), "{request:#}");
    }
    assert!(newest(&model).contains("The person has deleted this."), "{}", newest(&model));
    // For the person, they stay as they were.
    let chat = stage.h.get(&format!("/chats/{other}")).await.expect(200);
    assert!(chat["messages"].to_string().contains("my umbrella is kept in that blue tin"), "{chat:#}");
}

#[tokio::test]
async fn the_same_words_elsewhere_are_corrected_too() {
    let model = ScriptedModel::start(learns).await;
    let stage = remembers(&model).await;
    stage.says(None, &["I work at the harbour office", "I live in Lisbon"]).await;
    stage.says(None, &["By the way, the harbour office is where I work.", "I like tea"]).await;
    stage.says(None, &["I work at the town library now, and not at the harbour office", "I like jam"]).await;
    stage.h.post("/memory/sync", json!({})).await.expect(200);
    let facts = learned(&stage, "2026-11-21").await;
    let path = format!(
        "/memory/facts/{}/correct",
        facts["The user work at the harbour office"]["fact_id"].as_str().unwrap()
    );
    stage.h.post(&path, json!({"text": "The user works at the town library"})).await.expect(200);
    let found = stage.h.get("/memory/search?depth=raw&q=harbour+office").await.expect(200);
    let until = |text: &str| {
        let mut hits = found["hits"].as_array().unwrap().iter();
        hits.find(|hit| hit["text"] == text).unwrap_or_else(|| panic!("{text}: {found:#}"))["until"].clone()
    };
    assert_eq!(until("I work at the harbour office"), "2026-11-21");
    assert_eq!(until("By the way, the harbour office is where I work."), "2026-11-21");
    assert!(until("I work at the town library now, and not at the harbour office").is_null());
}

#[tokio::test]
async fn a_run_that_has_waited_is_not_told_as_true_what_was_corrected_meanwhile() {
    let model = ScriptedModel::start(asks_once).await;
    let stage = remembers(&model).await;
    let put = writes(&stage, "- The user keeps bees in Sintra\n- The user likes tea\n").await;
    let action = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    stage.happens_at(60).await;
    assert!(newest(&model).contains("keeps bees in Sintra"));
    let asked = model.sent().len();
    let fact = put["sections"][0]["lines"][0]["facts"][0]["fact_id"].as_str().unwrap();
    let right = json!({"text": "The user keeps goats in Sintra"});
    stage.h.post(&format!("/memory/facts/{fact}/correct"), right).await.expect(200);
    stage.h.post(&format!("/actions/{action}/resume"), json!({"message": "Week 47"})).await.expect(200);
    stage.executors.work().await;
    let later = &model.sent()[asked..];
    assert!(!later.is_empty());
    for request in later {
        assert!(!request.to_string().contains("bees"), "{request:#}");
        assert!(request.to_string().contains("likes tea"), "{request:#}");
    }
}
