//! The search over names and titles.

use models::ModelsConfig;
use serde_json::{Value, json};
use tests::stage::Stage;
use tests::{made, things};

async fn found(stage: &Stage, query: &str) -> Vec<String> {
    let hits = stage.h.get(&format!("/search?q={query}")).await.expect(200);
    assert_eq!(hits["complete"], true);
    let told = |hit: &Value| format!("{} {}", hit["kind"].as_str().unwrap(), hit["title"].as_str().unwrap());
    hits["data"].as_array().unwrap().iter().map(told).collect()
}

#[tokio::test]
async fn every_kind_is_found_by_its_name() {
    let stage = Stage::with(ModelsConfig::default()).await;
    let all = things::Caller { h: &stage.h, key: None };
    let ids = all.things("Lämp Öl").await;
    stage
        .h
        .post(&format!("/agents/{}/chats", ids["agent_id"]), json!({"title": "About lämp öl"}))
        .await
        .expect(201);
    let hits = stage.h.get("/search?q=%C3%96L").await.expect(200);
    let kinds: Vec<&Value> = hits["data"].as_array().unwrap().iter().map(|hit| &hit["kind"]).collect();
    for kind in ["agent", "action", "asset", "chat", "practice", "project"] {
        assert!(kinds.contains(&&json!(kind)), "{kind}: {hits:#}");
    }
    for hit in hits["data"].as_array().unwrap() {
        let of = hit["kind"].as_str().unwrap();
        assert_eq!(hit["agent_id"].is_string(), !matches!(of, "agent" | "practice" | "project"), "{hit:#}");
        let path = format!("/{of}s/{}", hit["id"].as_str().unwrap());
        stage.h.get(&path).await.expect(200);
    }
    // All words must be there. What begins with the query comes first.
    assert_eq!(found(&stage, "%C3%B6l+about+l%C3%A4mp").await.len(), 2);
    assert_eq!(found(&stage, "ABOUT").await[0], "chat About lämp öl");
    assert_eq!(found(&stage, "nothing").await, [""; 0]);
    assert_eq!(found(&stage, "%25").await, [""; 0]);
}

#[tokio::test]
async fn of_many_the_first_twenty_are_shown() {
    let stage = Stage::with(ModelsConfig::default()).await;
    let drafts = made::drafts(&stage.h, &stage.agent, 21).await;
    let hits = stage.h.get("/search?q=dRAFT").await.expect(200);
    let data = hits["data"].as_array().unwrap();
    assert_eq!((data.len(), &hits["complete"]), (20, &json!(false)));
    assert_eq!(data[0]["agent_id"], json!(stage.agent));
    stage.h.delete(&format!("/actions/{}", drafts[0])).await.expect(204);
    let hits = stage.h.get("/search?q=draft").await.expect(200);
    assert_eq!((hits["data"].as_array().unwrap().len(), &hits["complete"]), (20, &json!(true)));
}

#[tokio::test]
async fn a_query_has_1_to_200_characters() {
    let stage = Stage::with(ModelsConfig::default()).await;
    for query in ["".to_owned(), "?q=".to_owned(), "?q=%20%20".to_owned(), format!("?q={}", "a".repeat(201))]
    {
        let refused = stage.h.get(&format!("/search{query}")).await.refused(400, "invalid_input");
        assert_eq!(refused["errors"][0]["field"], "q", "{refused:#}");
    }
    for query in ["%00", "%F0%9F%92%A1", "%27%20OR%201%3D1", "..%2F..%2Fetc", "%FF"] {
        stage.h.get(&format!("/search?q={query}")).await.expect(200);
    }
}
