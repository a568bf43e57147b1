//! Tools that the provider of a model runs: who gets them, what they cost, and what becomes of what they find.

use lamplighter_local::platform::PlatformConfig;
use serde_json::{Value, json};
use shared::models::{Addresses, ModelsConfig};
use tests::Harness;
use tests::anthropic::{Block, FakeAnthropic};

/// A search by the provider, with its result.
fn searched(id: &str) -> [Block; 2] {
    let search =
        json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": "lamp oil"}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": id,
        "content": [{"type": "web_search_result", "url": "https://example.com", "title": "Oil", "encrypted_content": "Eq"}]});
    [Block::Whole(search), Block::Whole(found)]
}

/// The kinds of the provider's tools in a request.
fn offered(asked: &Value) -> Vec<String> {
    let tools = asked["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().filter_map(|tool| tool["type"].as_str().map(str::to_owned)).collect()
}

async fn start() -> (Harness, FakeAnthropic) {
    let model = FakeAnthropic::start(|asked| {
        let mut blocks = Vec::new();
        if offered(asked).contains(&"web_search_20250305".to_owned()) {
            blocks.extend(searched("srvtoolu_1"));
            blocks.extend(searched("srvtoolu_2"));
        }
        blocks.push(Block::Text("It costs 3 euros.".to_owned()));
        blocks
    })
    .await;
    let models = ModelsConfig {
        anthropic_key: Some("sk-ant-test".to_owned()),
        addresses: Addresses { anthropic: model.url.clone(), ..Addresses::default() },
        ..ModelsConfig::default()
    };
    (Harness::with(PlatformConfig { models, ..PlatformConfig::in_memory() }).await, model)
}

#[tokio::test]
async fn an_agent_searches_in_chats_and_each_search_is_paid_for() {
    let (h, model) = start().await;
    let new =
        json!({"name": "Watch", "goal": "Watch prices", "provider_tools": ["code_execution", "web_search"]});
    let created = h.post("/agents", new).await.expect(201);
    assert_eq!(created["provider_tools"], json!(["web_search", "code_execution"]));
    let agent = created["agent_id"].as_str().unwrap();
    let path = format!("/agents/{agent}/chat");
    let view = h.post(&path, json!({"message": "What does oil cost?"})).await.expect(200);
    assert_eq!(view["message"], "It costs 3 euros.");
    assert_eq!(offered(&model.asked()[0]), ["web_search_20250305", "code_execution_20250825"]);
    let run = h.get(&format!("/runs/{}", view["run_id"].as_str().unwrap())).await.expect(200);
    assert_eq!(run["usage"]["web_searches"], 2, "{run:#}");
    let cost = run["cost_micros"].as_i64().unwrap();
    assert!((20_000..21_000).contains(&cost), "two searches, and a few tokens: {cost}");
    let today = h.get("/usage").await.expect(200);
    assert_eq!(today["spent_micros"], cost, "{today:#}");

    // What was found is sent back as it came.
    let chat = view["chat_id"].as_str().unwrap();
    h.post(&path, json!({"message": "Sure?", "chat_id": chat})).await.expect(200);
    let said = model.asked()[0]["messages"][1]["content"].clone();
    let kinds: Vec<&str> =
        said.as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap()).collect();
    let search = ["server_tool_use", "web_search_tool_result"];
    assert_eq!(kinds, [&search[..], &search, &["text"]].concat());
    assert_eq!(said[1]["content"][0]["encrypted_content"], "Eq");

    // Without them, the agent doesn't search.
    h.patch(&format!("/agents/{agent}"), json!({"provider_tools": []})).await.expect(200);
    h.post(&path, json!({"message": "And now?"})).await.expect(200);
    assert_eq!(offered(&model.asked()[0]), Vec::<String>::new());
}

#[tokio::test]
async fn nothing_searches_where_nobody_reads() {
    let (h, model) = start().await;
    let new = json!({"name": "Watch", "goal": "Watch prices", "provider_tools": ["web_search"]});
    let agent = h.post("/agents", new).await.expect(201)["agent_id"].as_str().unwrap().to_owned();
    let define =
        json!({"title": "Report", "task_config": {"instructions": "Do it", "expected_output": "A page"}});
    let action = h.post(&format!("/agents/{agent}/actions"), define).await.expect(201);
    let action = action["action_id"].as_str().unwrap();
    let hash = h.get(&format!("/actions/{action}")).await.expect(200)["approval_hash"].clone();
    h.post(&format!("/actions/{action}/approve"), json!({"approval_hash": hash})).await.expect(200);
    h.post(&format!("/actions/{action}/run"), json!({})).await.expect(202);
    let mut asked = Vec::new();
    for _ in 0..200 {
        asked.extend(model.asked());
        if !asked.is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(!asked.is_empty() && asked.iter().all(|asked| offered(asked).is_empty()), "{asked:#?}");
}

#[tokio::test]
async fn a_search_is_reserved_for_and_unknown_tools_are_refused() {
    let (h, model) = start().await;
    let tools = json!({"name": "Watch", "goal": "Watch", "provider_tools": ["web_search"], "budget": {"per_run_micros": 40_000}});
    let agent = h.post("/agents", tools).await.expect(201)["agent_id"].as_str().unwrap().to_owned();
    let path = format!("/agents/{agent}/chat");
    // Five searches cost 50,000 micro-dollars, without a token.
    let view = h.post(&path, json!({"message": "Look"})).await.expect(200);
    assert_eq!(view["state"], "waiting", "{view:#}");
    assert_eq!(model.asked().len(), 0);
    h.patch(&format!("/agents/{agent}"), json!({"provider_tools": []})).await.expect(200);
    h.post(&path, json!({"message": "Say it then"})).await.expect(200);

    for wrong in [json!(["browse"]), json!("web_search"), json!([7])] {
        let new = json!({"name": "A", "goal": "G", "provider_tools": wrong});
        let refused = h.post("/agents", new).await.refused(400, "invalid_input");
        let field = refused["errors"][0]["field"].as_str().unwrap();
        assert!(field.starts_with("provider_tools"), "{refused:#}");
    }
    let models = h.get("/models").await.expect(200);
    let of = |name: &str| {
        let models = models["models"].as_array().unwrap();
        models
            .iter()
            .find(|model| model["model"] == name)
            .map(|model| model["price"]["web_search_micros"].clone())
    };
    assert_eq!(of("anthropic/claude-sonnet-5-5"), Some(json!(10_000)));
    assert_eq!(of("bedrock/us.anthropic.claude-sonnet-5-5").unwrap_or_default(), Value::Null);
}
