//! Which models are called, and what an owner can choose.

use lamplighter_local::platform::PlatformConfig;
use models::{Canary, ModelsConfig};
use reqwest::Method;
use serde_json::{Value, json};
use shared::config::AuthConfig;
use tests::things::Caller;
use tests::{Answer, Harness};

fn config() -> ModelsConfig {
    let key = || Some("key".to_owned());
    ModelsConfig { anthropic_key: key(), google_key: key(), ..ModelsConfig::default() }
}

async fn harness(models: ModelsConfig) -> Harness {
    Harness::with(PlatformConfig { models, ..PlatformConfig::in_memory() }).await
}

async fn put(h: &Harness, key: Option<&str>, body: Value) -> Answer {
    Caller { h, key }.call(Method::PUT, "/models/settings", body).await
}

fn first(view: &Value) -> Vec<&str> {
    view["choices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|choice| choice["models"][0]["model"].as_str().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_list_says_what_would_be_called_and_why() {
    let h = harness(config()).await;
    let view = h.get("/models").await.expect(200);
    assert_eq!(
        first(&view),
        ["anthropic/claude-haiku-5-5", "anthropic/claude-sonnet-5-5", "anthropic/claude-opus-5-5"]
    );
    assert_eq!(view["choices"][2]["level"], "tier");
    assert_eq!(
        view["choices"][2]["models"][1]["model"], "google/gemini-4-argon",
        "another provider replaces it"
    );
    assert_eq!(
        view["providers"],
        json!([{"provider": "anthropic", "own_key": false}, {"provider": "google", "own_key": false}])
    );
    let model = |id: &str| {
        view["models"].as_array().unwrap().iter().find(|model| model["model"] == id).unwrap().clone()
    };
    let opus = model("anthropic/claude-opus-5-5");
    assert_eq!((&opus["usable"], &opus["kinds"]), (&json!(true), &json!(["deep"])));
    assert!(opus["price"]["output"].as_u64().unwrap() > opus["price"]["input"].as_u64().unwrap());
    assert_eq!(model("xai/grok-4.3")["usable"], false);
    for (query, level, expected) in [
        ("role=classifier", "locked", "anthropic/claude-haiku-5-5"),
        ("role=specialist&task=trivial", "tier", "anthropic/claude-haiku-5-5"),
        ("task=architectural", "tier", "anthropic/claude-opus-5-5"),
        ("role=review&work=generate", "work", "anthropic/claude-sonnet-5-5"),
        ("role=lead", "role", "anthropic/claude-opus-5-5"),
    ] {
        let view = h.get(&format!("/models?{query}")).await.expect(200);
        assert_eq!(
            (view["choices"][0]["level"].as_str(), first(&view)),
            (Some(level), vec![expected]),
            "{query}"
        );
    }
    h.get("/models?role=king").await.expect(400);
    h.get("/models?colour=red").await.expect(400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_chooses_models() {
    let h = harness(config()).await;
    let put = async |body: Value| put(&h, None, body).await;
    let chosen = put(json!({"models": {"fast": "google/gemini-3.5-flash-lite"}})).await.expect(200);
    assert_eq!(
        first(&chosen),
        ["google/gemini-3.5-flash-lite", "anthropic/claude-sonnet-5-5", "anthropic/claude-opus-5-5"]
    );
    let chosen = put(json!({"max_quality": true})).await.expect(200);
    assert_eq!(first(&chosen), ["anthropic/claude-opus-5-5"; 3]);
    assert_eq!(chosen["choices"][0]["level"], "max_quality");
    let chosen = put(json!({"preferred": "google/gemini-3.8-flash"})).await.expect(200);
    assert_eq!(first(&chosen), ["google/gemini-3.8-flash"; 3]);
    assert_eq!(h.get("/models").await.expect(200)["settings"], chosen["settings"]);
    let classifier = h.get("/models?role=classifier").await.expect(200);
    assert_eq!(first(&classifier), ["anthropic/claude-haiku-5-5"], "steps of the platform keep their model");

    for (body, field, says) in [
        (json!({"preferred": "claude"}), "preferred", "must be a provider, a slash and a model"),
        (json!({"preferred": "xai/grok-4.3"}), "preferred", "usable are: anthropic, google"),
        (json!({"preferred": "anthropic/claude-0"}), "preferred", "without a known price"),
        (json!({"preferred": "demo/demo"}), "preferred", "without a key"),
        (json!({"models": {"deep": "nobody/x"}}), "models.deep", "usable are: anthropic, google"),
        (json!({"models": {"deep": "No body/x"}}), "models.deep", "has no provider"),
    ] {
        let refused = put(body.clone()).await.expect(400);
        let error = &refused["errors"][0];
        assert_eq!(error["field"], field, "{refused:#}");
        assert!(error["message"].as_str().unwrap_or_default().contains(says), "{refused:#}");
    }
    put(json!({"models": {"king": "anthropic/claude-opus-5-5"}})).await.expect(400);
    put(json!({"max_qualty": true})).await.expect(400);
    assert_eq!(h.get("/models").await.expect(200)["settings"], chosen["settings"], "nothing changed");
    let back = put(json!({})).await.expect(200);
    assert_eq!(back["settings"], json!({"max_quality": false, "models": {}}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_choice_of_one_owner_is_not_that_of_another() {
    let config =
        PlatformConfig { models: config(), auth: AuthConfig::On(None), ..PlatformConfig::in_memory() };
    let h = Harness::with(config).await;
    let (one, other) = (h.key_of("one").await, h.key_of("other").await);
    put(&h, Some(&one), json!({"max_quality": true})).await.expect(200);
    for (key, expected) in [(&one, true), (&other, false)] {
        let caller = Caller { h: &h, key: Some(key) };
        let view = caller.call(Method::GET, "/models", Value::Null).await.expect(200);
        assert_eq!(view["settings"]["max_quality"], expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_decides_before_an_owner() {
    let forced = ModelsConfig { forced: Some("anthropic/claude-opus-5".parse().unwrap()), ..config() };
    let h = harness(forced).await;
    let view = put(&h, None, json!({"max_quality": true})).await.expect(200);
    assert_eq!(
        (first(&view), view["choices"][0]["level"].as_str()),
        (vec!["anthropic/claude-opus-5"; 3], Some("forced"))
    );
    assert_eq!(view["choices"][0]["models"].as_array().unwrap().len(), 1);

    let canary = Canary { model: "anthropic/claude-opus-5".parse().unwrap(), percent: 100 };
    let h = harness(ModelsConfig { canary: Some(canary), ..config() }).await;
    let view = h.get("/models").await.expect(200);
    assert_eq!(view["choices"][0]["level"], "tier", "it concerns single runs");
    let expected = json!({"model": "anthropic/claude-opus-5", "percent": 100, "usable": true});
    assert_eq!(view["canary"], expected, "it is named");

    let demo = Harness::start().await;
    let view = demo.get("/models").await.expect(200);
    assert_eq!(first(&view), ["demo/demo-priced"; 3]);
}
