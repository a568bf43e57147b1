//! The whole of the memory with the demo model: what a person sees who tries it without a key.

use models::ModelsConfig;
use reqwest::Method;
use serde_json::json;
use tests::memory::texts;
use tests::stage::Stage;

#[tokio::test]
async fn the_demo_model_learns_and_tidies_and_says_what_it_is() {
    let stage = Stage::with(ModelsConfig::default()).await;
    stage.h.patch("/account", json!({"timezone": "Europe/Berlin"})).await.expect(200);
    let said = [
        "I live in Lisbon and work as a nurse.",
        "What is the capital of Peru?",
        "My two cats are Mia and Tom.",
    ];
    stage.says(None, &said).await;
    let synced = stage.h.post("/memory/sync", json!({})).await.expect(200);
    assert_eq!(
        (&synced["result"], &synced["sources"][0]["facts"]),
        (&json!("written"), &json!(2)),
        "{synced:#}"
    );
    assert_eq!(synced["sources"][0].get("rejected"), None, "{synced:#}");
    let date = synced["date"].as_str().unwrap();
    let day = stage.h.get(&format!("/memory/days/{date}")).await.expect(200);
    let block = &day["blocks"][0];
    assert!(block["title"].as_str().unwrap().ends_with("(demo model)"), "{block:#}");
    let learned = ["The user lives in Lisbon and works as a nurse.", "The user's two cats are Mia and Tom."];
    assert_eq!(texts(&block["facts"]), learned);
    assert_eq!(stage.h.post("/memory/sync", json!({})).await.expect(200)["result"], "skipped");

    let tidied = stage.h.post("/memory/tidy", json!({})).await.expect(200);
    assert_eq!((&tidied["blocks"], &tidied["rejected"]), (&json!(1), &json!(0)), "{tidied:#}");
    let long_term = stage.h.get("/memory/long-term").await.expect(200);
    let section = &long_term["sections"][0];
    assert_eq!(
        (&section["title"], texts(&section["lines"]).as_slice()),
        (&json!("Notes of the demo model"), &learned.map(str::to_owned)[..])
    );
    assert_eq!(section["lines"][0]["facts"][0]["fact_id"], block["facts"][0]["fact_id"]);
    let week =
        stage.h.get(&format!("/memory/weeks/{}", tidied["monday"].as_str().unwrap())).await.expect(200);
    assert_eq!(texts(&week["lines"]), learned);

    stage.at(10);
    // A second week keeps the lines of the first.
    stage.says(None, &["I play chess on Sundays.", "I have a brother, Rui."]).await;
    stage.h.post("/memory/sync", json!({})).await.expect(200);
    stage.h.post("/memory/tidy", json!({})).await.expect(200);
    let asked = stage.h.request(Method::GET, "/memory/long-term").header("accept", "text/markdown");
    let markdown = asked.send().await.unwrap().text().await.unwrap();
    for line in
        learned.into_iter().chain(["The user plays chess on Sundays.", "The user has a brother, Rui."])
    {
        assert!(markdown.contains(&format!("- {line}")), "{markdown}");
    }
    assert_eq!(markdown.matches("## ").count(), 1, "{markdown}");
}
