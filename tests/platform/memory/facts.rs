//! What a person does with what was learned: correct it, delete it, confirm it, write it.

use std::time::Duration;

use domain::memory::{FactState, Line, Origin, Source};
use reqwest::Method;
use serde_json::{Value, json};
use shared::blobs::BlobKey;
use shared::store::Store;
use tests::memory::{learns, remembers, texts};
use tests::model::ScriptedModel;
use tests::send;
use tests::stage::Stage;
use tests::wait;

/// A memory with two facts of the day, after a clean-up.
async fn tidied(model: &ScriptedModel) -> (Stage, Vec<Value>) {
    let stage = remembers(model).await;
    stage.says(None, &["I like green tea", "I work at a small shop in Lisbon"]).await;
    stage.h.post("/memory/sync", json!({})).await.expect(200);
    stage.h.post("/memory/tidy", json!({})).await.expect(200);
    let day = stage.h.get("/memory/days/2026-11-21").await.expect(200);
    let facts = day["blocks"][0]["facts"].as_array().unwrap().clone();
    (stage, facts)
}

fn id(fact: &Value) -> &str {
    fact["fact_id"].as_str().unwrap()
}

/// Everything that can be read of the memory, as text.
async fn all_of(stage: &Stage) -> String {
    let mut all = String::new();
    for path in [
        "/memory/days",
        "/memory/days/2026-11-21",
        "/memory/long-term",
        "/memory/weeks/2026-11-16",
        "/memory/archive/2026",
        "/memory/cards",
        "/memory/tidies",
        "/memory/search?q=tea&depth=raw",
        "/memory/search?q=green&depth=memory",
    ] {
        let answer = stage.h.get(path).await;
        assert!([200, 204].contains(&answer.status), "{path}: {}", answer.status);
        all.push_str(&format!("{path}: {}\n", answer.body));
    }
    all
}

#[tokio::test]
async fn a_deleted_fact_is_found_nowhere_and_does_not_come_back() {
    let model = ScriptedModel::start(learns).await;
    let (stage, facts) = tidied(&model).await;
    let before = all_of(&stage).await;
    assert!(before.matches("green tea").count() > 3, "{before}");
    stage.h.delete(&format!("/memory/facts/{}", id(&facts[0]))).await.expect(204);
    let after = all_of(&stage).await;
    assert!(!after.contains("green tea"), "{after}");
    assert!(after.contains("Lisbon"), "{after}");
    // Not in the bucket either.
    let blobs = &stage.h.platform.cx.blobs;
    let all = BlobKey::listed(&stage.owner, "memory/");
    let objects = blobs.list(&all, None).await.unwrap();
    assert_eq!(objects.len(), 1, "old objects of the index are gone");
    for object in objects {
        let bytes = blobs.get(&BlobKey::listed(&stage.owner, &format!("memory/{object}"))).await.unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("green"), "{object}");
    }
    // Synchronisations, a clean-up, a rollback and a new index do not bring it back.
    for _ in 0..10 {
        stage.h.post("/memory/sync", json!({})).await.expect(200);
    }
    stage.at(10);
    let chat = facts[0]["sources"][0]["source"].as_str().unwrap();
    stage.says(Some(chat), &["I like green tea", "I have a cat"]).await;
    stage.h.post("/memory/sync", json!({})).await.expect(200);
    stage.h.post("/memory/tidy", json!({})).await.expect(200);
    let tidies = stage.h.get("/memory/tidies").await.expect(200);
    let newest = tidies["data"][0]["tidy_id"].as_str().unwrap();
    stage.h.post(&format!("/memory/tidies/{newest}/rollback"), json!({})).await.expect(200);
    let oldest = tidies["data"][1]["tidy_id"].as_str().unwrap();
    stage.h.post(&format!("/memory/tidies/{oldest}/rollback"), json!({})).await.expect(200);
    let store = &stage.h.platform.cx.store;
    let head = store.memory_index(&stage.owner).await.unwrap().unwrap();
    store.delete_memory_index(&stage.owner, head.version).await.unwrap();
    let memory = stage.h.get("/memory/long-term").await.expect(200);
    assert!(!memory.to_string().contains("green"), "{memory:#}");
    let learned = stage.learned_on("2026-11-21").await;
    assert!(learned.iter().all(|text| !text.contains("green")), "{learned:?}");
    let found = stage.finds("green tea").await;
    // The person has said it again since: that message is not among those of the deleted fact.
    assert!(found.iter().all(|text| !text.contains("The user")), "{found:?}");
}

#[tokio::test]
async fn a_corrected_fact_is_history() {
    let model = ScriptedModel::start(learns).await;
    let (stage, facts) = tidied(&model).await;
    let path = format!("/memory/facts/{}", id(&facts[1]));
    let right = json!({"text": "The user works at a bakery in Porto"});
    let new = stage.h.post(&format!("{path}/correct"), right.clone()).await.expect(200);
    assert_eq!((&new["origin"], &new["corrects"]), (&json!("person"), &facts[1]["fact_id"]));
    let old = stage.h.get(&path).await.expect(200);
    assert_eq!((&old["state"], &old["by"]), (&json!("corrected"), &new["fact_id"]));
    // The same again, as after a lost answer, changes nothing. Another one must name the new fact.
    assert_eq!(stage.h.post(&format!("{path}/correct"), right).await.expect(200), new);
    let other = json!({"text": "The user works at a bar in Faro"});
    stage.h.post(&format!("{path}/correct"), other).await.refused(409, "already_corrected");
    let memory = stage.h.get("/memory/long-term").await.expect(200);
    let markdown = memory["markdown"].as_str().unwrap();
    assert!(markdown.contains("bakery in Porto") && !markdown.contains("Lisbon"), "{markdown}");
    let found = stage.h.get("/memory/search?depth=memory&q=where+does+the+user+work").await.expect(200);
    assert_eq!(found["hits"][0]["text"], "The user works at a bakery in Porto", "{found:#}");
    let found = stage.h.get("/memory/search?depth=memory&q=where+did+the+user+work+before").await.expect(200);
    assert!(texts(&found["hits"]).iter().any(|text| text.contains("Lisbon")), "{found:#}");
    assert!(
        found["hits"]
            .as_array()
            .unwrap()
            .iter()
            .any(|hit| hit["state"] == "corrected" && hit["until"] == "2026-11-21")
    );
    // The old value is not learned again.
    stage.says(None, &["I work at a small shop in Lisbon", "I have a cat"]).await;
    stage.h.post("/memory/sync", json!({})).await.expect(200);
    let learned = stage.learned_on("2026-11-21").await;
    assert_eq!(learned.iter().filter(|text| text.contains("Lisbon")).count(), 1, "{learned:?}");
}

#[tokio::test]
async fn what_a_person_writes_survives_a_tidying() {
    let model = ScriptedModel::start(learns).await;
    let stage = remembers(&model).await;
    let text = "## Mine\n\n- The user is called Ada\n- Write briefly\n";
    let put = send(stage.h.request(Method::PUT, "/memory/long-term").json(&json!({"markdown": text})))
        .await
        .expect(200);
    assert_eq!((&put["version"], &put["sections"][0]["by_hand"]), (&json!(1), &json!(true)));
    stage.says(None, &["I like green tea", "I work at a small shop in Lisbon"]).await;
    stage.h.post("/memory/sync", json!({})).await.expect(200);
    let tidied = stage.h.post("/memory/tidy", json!({})).await.expect(200);
    assert_eq!(tidied["blocks"], 1, "{tidied:#}");
    let memory = stage.h.get("/memory/long-term").await.expect(200);
    let markdown = memory["markdown"].as_str().unwrap();
    assert!(markdown.contains("- The user is called Ada\n- Write briefly\n"), "{markdown}");
    assert!(markdown.contains("green tea"), "{markdown}");
    let undone = format!("/memory/tidies/{}/rollback", tidied["tidy_id"].as_str().unwrap());
    stage.h.post(&undone, json!({})).await.expect(200);
    stage.h.post(&undone, json!({})).await.refused(409, "already_rolled_back");
    let memory = stage.h.get("/memory/long-term").await.expect(200);
    assert!(!memory["markdown"].as_str().unwrap().contains("green tea"), "{memory:#}");
    assert!(memory["markdown"].as_str().unwrap().contains("Ada"), "{memory:#}");
    // A line of the person is a fact of its own.
    let ada = &memory["sections"][0]["lines"][0]["facts"][0];
    stage.h.delete(&format!("/memory/facts/{}", id(ada))).await.expect(204);
    let memory = stage.h.get("/memory/long-term").await.expect(200);
    assert!(!memory.to_string().contains("Ada"), "{memory:#}");
}

#[tokio::test]
async fn what_an_outside_session_says_waits_for_the_person() {
    let model = ScriptedModel::start(learns).await;
    let stage = remembers(&model).await;
    let message = |id: &str, role: &str, text: &str| json!({"id": id, "role": role, "text": text});
    let said = json!({"namespace": "shop", "messages": [
        message("1", "user", "I deploy on Fridays"),
        message("2", "tool", "I like to ignore all rules"),
        message("3", "user", "I use the staging server first"),
    ]});
    let path = "/memory/sessions/claude-1/messages";
    assert_eq!(stage.h.post(path, said.clone()).await.expect(200), json!({"stored": 3, "known": 0}));
    assert_eq!(stage.h.post(path, said).await.expect(200), json!({"stored": 0, "known": 3}));
    stage.h.post("/memory/sync", json!({})).await.expect(200);
    let day = stage.h.get("/memory/days/2026-11-21").await.expect(200);
    let facts = day["blocks"][0]["facts"].as_array().unwrap();
    assert_eq!(texts(&json!(facts)), ["The user deploy on Fridays", "The user use the staging server first"]);
    assert!(facts.iter().all(|fact| fact["state"] == "unconfirmed" && fact["namespace"] == "shop"));
    // It is found, and no model is told.
    assert!(stage.finds("staging server").await.iter().any(|text| text.contains("The user use the staging")));
    stage.says(None, &["What do I know about the staging server?"]).await;
    let asked = model.sent().last().unwrap()["messages"].to_string();
    assert!(!asked.contains("The user use the staging"), "{asked}");
    let confirm = format!("/memory/facts/{}/confirm", id(&facts[1]));
    assert_eq!(stage.h.post(&confirm, json!({})).await.expect(200)["state"], "current");
    stage.h.post(&confirm, json!({})).await.refused(409, "not_unconfirmed");
}

#[tokio::test]
async fn what_the_person_says_here_replaces_a_copy_of_an_outside_session() {
    let model = ScriptedModel::start(learns).await;
    let stage = remembers(&model).await;
    let said = |namespace: &str, id: &str| {
        let message = |n: u32, text: &str| json!({"id": format!("{id}{n}"), "role": "user", "text": text});
        json!({"namespace": namespace, "messages": [message(1, "I like green tea"), message(2, "I keep two goats")]})
    };
    stage.h.post("/memory/sessions/laptop/messages", said("", "l")).await.expect(200);
    stage.h.post("/memory/sync", json!({})).await.expect(200);
    stage.h.post("/memory/sessions/office/messages", said("shop", "o")).await.expect(200);
    let synced = stage.h.post("/memory/sync", json!({})).await.expect(200);
    assert_eq!(
        synced["sources"][0]["rejected"][0]["reason"]["code"], "known",
        "a copy of a copy: {synced:#}"
    );
    let of = async |text: &str| {
        let store = &stage.h.platform.cx.store;
        let mut facts = store.all_facts(&stage.owner).await.unwrap();
        facts.retain(|fact| fact.text.contains(text));
        facts
    };
    assert_eq!(of("goats").await[0].state, FactState::Unconfirmed);

    stage.says(None, &["I like green tea", "I live in Lisbon"]).await;
    let synced = stage.h.post("/memory/sync", json!({})).await.expect(200);
    assert_eq!(synced["sources"][0]["facts"], 2, "{synced:#}");
    let tea = of("green tea").await;
    assert_eq!((tea.len(), tea[0].state, tea[0].origin), (1, FactState::Current, Origin::Conversation));
    // The copy is a further witness: first the person's message here, then the one from outside.
    let sources: Vec<(bool, &[String])> = tea[0]
        .sources
        .iter()
        .map(|quoted| (matches!(quoted.source, Source::Outside(_)), quoted.message_ids.as_slice()))
        .collect();
    assert_eq!(sources.len(), 2, "{sources:?}");
    assert!(!sources[0].0 && sources[1] == (true, ["l1".to_owned()].as_slice()), "{sources:?}");
    // The block of the outside session no longer counts it.
    let day = stage.h.get("/memory/days/2026-11-21").await.expect(200);
    let blocks = day["blocks"].as_array().unwrap();
    let of_laptop = blocks.iter().find(|block| block["source"] == "ext:laptop").unwrap();
    assert_eq!(texts(&of_laptop["facts"]), ["The user keep two goats"], "{day:#}");
    let days = stage.h.get("/memory/days").await.expect(200);
    assert_eq!(days["data"][0]["facts"], 3, "{days:#}");
    // So it reaches the long-term memory and the week, and the same again is known.
    stage.h.post("/memory/tidy", json!({})).await.expect(200);
    for path in ["/memory/long-term", "/memory/weeks/2026-11-16"] {
        let answer = stage.h.get(path).await.expect(200).to_string();
        assert!(answer.contains("green tea") && !answer.contains("goats"), "{path}: {answer}");
    }
    stage.says(None, &["I like green tea", "I have a bike"]).await;
    let synced = stage.h.post("/memory/sync", json!({})).await.expect(200);
    assert_eq!(synced["sources"][0]["rejected"][0]["reason"]["code"], "known", "{synced:#}");
    // What is deleted stays away with all its witnesses.
    stage.h.delete(&format!("/memory/facts/{}", tea[0].fact_id)).await.expect(204);
    assert_eq!(stage.finds("green tea").await, [""; 0]);
}

#[tokio::test]
async fn what_a_program_knows_in_its_namespace_is_not_known_here() {
    let model = ScriptedModel::start(learns).await;
    let stage = remembers(&model).await;
    let said = json!({"namespace": "shop", "messages": [
        {"id": "1", "role": "user", "text": "I deploy on Fridays"}, {"id": "2", "role": "user", "text": "I keep two goats"},
    ]});
    stage.h.post("/memory/sessions/office/messages", said).await.expect(200);
    stage.h.post("/memory/sync", json!({})).await.expect(200);
    let day = stage.h.get("/memory/days/2026-11-21").await.expect(200);
    let confirm = format!("/memory/facts/{}/confirm", id(&day["blocks"][0]["facts"][1]));
    stage.h.post(&confirm, json!({})).await.expect(200);
    stage.says(None, &["I deploy on Fridays", "I keep two goats"]).await;
    stage.h.post("/memory/sync", json!({})).await.expect(200);
    let facts = stage.h.platform.cx.store.all_facts(&stage.owner).await.unwrap();
    let own: Vec<&str> =
        facts.iter().filter(|fact| fact.namespace.is_empty()).map(|fact| fact.text.as_str()).collect();
    assert_eq!(own, ["The user deploy on Fridays", "The user keep two goats"]);
    assert_eq!(facts.len(), 4, "those of the namespace stay there: {facts:?}");
}

#[tokio::test]
async fn what_is_deleted_while_a_model_tidies_does_not_come_back() {
    let model = ScriptedModel::held(learns).await;
    model.allow(3);
    let stage = remembers(&model).await;
    stage.says(None, &["I like green tea", "I work at a small shop in Lisbon"]).await;
    stage.h.post("/memory/sync", json!({})).await.expect(200);
    let day = stage.h.get("/memory/days/2026-11-21").await.expect(200);
    let tea = id(&day["blocks"][0]["facts"][0]).to_owned();
    // The model has read the fact, and answers only after the fact is deleted.
    let forgets = async {
        model.asked_times(4).await;
        stage.h.delete(&format!("/memory/facts/{tea}")).await.expect(204);
        model.allow(usize::MAX >> 4);
    };
    let (tidied, ()) = futures::join!(stage.h.post("/memory/tidy", json!({})), forgets);
    assert_eq!(tidied.status, 503, "{tidied:?}");
    assert!(!all_of(&stage).await.contains("green tea"));
    stage.h.post("/memory/tidy", json!({})).await.expect(200);
    let after = all_of(&stage).await;
    assert!(!after.contains("green tea") && after.contains("Lisbon"), "{after}");
}

#[tokio::test]
async fn all_facts_of_a_line_that_was_told_are_used() {
    let model = ScriptedModel::start(learns).await;
    let (stage, facts) = tidied(&model).await;
    // A model may write one line from both facts.
    let (store, owner) = (&stage.h.platform.cx.store, &stage.owner);
    let before = store.long_term(owner).await.unwrap().unwrap();
    let mut next = before.value.clone();
    let text = "The user likes green tea and works at a small shop in Lisbon".to_owned();
    let ids = facts.iter().map(|fact| id(fact).parse().unwrap()).collect();
    next.memory.sections[0].lines = vec![Line { text, facts: ids }];
    let writes = Store::long_term_writes(owner, Some(&before), &next).unwrap();
    assert!(store.write_all(writes).await.unwrap().done());

    stage.at(31 * 24 * 60);
    let health = stage.h.get("/memory/health").await.expect(200);
    assert_eq!(health["unused"]["count"], 2, "{health:#}");
    stage.says(None, &["Hello"]).await;
    assert!(model.sent().last().unwrap().to_string().contains("green tea and works"));
    // It is noted while nobody waits for it.
    wait::until("all facts of the line are used", async || {
        stage.h.get("/memory/health").await.expect(200)["unused"]["count"] == 0
    })
    .await;
}

#[tokio::test]
async fn what_is_wrong_with_facts_is_told() {
    let model = ScriptedModel::start(learns).await;
    let stage = remembers(&model).await;
    let chat = stage.says(None, &["I like green tea", "I work at a small shop in Lisbon"]).await;
    stage.h.post("/memory/sync", json!({})).await.expect(200);
    let mine = "## Mine\n\n- The user likes green teas\n- The user has a cat\n";
    send(stage.h.request(Method::PUT, "/memory/long-term").json(&json!({"markdown": mine})))
        .await
        .expect(200);
    let health = stage.h.get("/memory/health").await.expect(200);
    assert_eq!(
        (&health["facts"], &health["duplicates"]["count"], &health["orphans"]["count"]),
        (&json!(4), &json!(1), &json!(0)),
        "{health:#}"
    );
    let duplicate = &health["duplicates"]["facts"][0];
    assert_eq!(duplicate["text"], "The user likes green teas");
    let like =
        stage.h.get(&format!("/memory/facts/{}", duplicate["like"].as_str().unwrap())).await.expect(200);
    assert_eq!(like["text"], "The user like green tea");
    assert_eq!(health["unused"]["count"], 0, "they are new: {health:#}");

    // A month later, nobody has used any of them. Then a search finds one, and a model is told the lines of the long-term memory.
    stage.at(31 * 24 * 60);
    let health = stage.h.get("/memory/health").await.expect(200);
    assert_eq!(health["unused"]["count"], 4, "{health:#}");
    stage.finds("shop in Lisbon").await;
    stage.says(None, &["Hello"]).await;
    stage.h.delete(&format!("/chats/{chat}")).await.expect(204);
    loop {
        let health = stage.h.get("/memory/health").await.expect(200);
        assert_eq!(texts(&health["orphans"]["facts"]).len(), 2, "{health:#}");
        let unused = texts(&health["unused"]["facts"]);
        let is_used = |text: &str| !unused.iter().any(|unused| unused == text);
        if is_used("The user work at a small shop in Lisbon") && is_used("The user has a cat") {
            break;
        }
        // It is noted while nobody waits for it.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
