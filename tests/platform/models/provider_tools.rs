//! Tools that the provider of a model runs: who gets them, what they cost, and what becomes of what they find.

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{OriginalUri, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use lamplighter_local::platform::PlatformConfig;
use models::{Addresses, ModelsConfig, strict};
use serde_json::{Value, json};
use tests::Harness;
use tests::anthropic::{Block, FakeAnthropic};
use tokio::net::TcpListener;

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
    loop {
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

/// The requests that xAI has received: the path and the body.
type Asked = Arc<Mutex<Vec<(String, Value)>>>;

/// xAI's answers: through the Responses API a reply with two searches, an opened page and code, otherwise a text.
async fn xai(
    State(asked): State<Asked>,
    OriginalUri(path): OriginalUri,
    Json(body): Json<Value>,
) -> Response {
    asked.lock().unwrap_or_else(PoisonError::into_inner).push((path.to_string(), body.clone()));
    let stream = |events: &[Value]| {
        let events: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        ([("content-type", "text/event-stream")], events + "data: [DONE]\n\n").into_response()
    };
    if path.path() == "/v1/chat/completions" {
        let choice = json!({"index": 0, "delta": {"content": "I can't look."}, "finish_reason": "stop"});
        let usage = json!({"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20});
        return stream(&[json!({"model": body["model"], "choices": [choice], "usage": usage})]);
    }
    if let Err(message) = strict::check_xai(&body) {
        let error = json!({"code": "Client specified an invalid argument", "error": message});
        return (StatusCode::BAD_REQUEST, Json(error)).into_response();
    }
    let search = |kind: &str| json!({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": kind}});
    let code = json!({"type": "code_interpreter_call", "id": "ci_1", "status": "completed", "name": "code_execution"});
    let thought = json!({"type": "reasoning", "id": "rs_1", "status": "completed", "summary": []});
    let text = json!({"type": "message", "content": [{"type": "output_text", "text": "It costs 3 euros."}]});
    let mut events = vec![json!({"type": "response.created", "response": {"model": body["model"]}})];
    let items = [thought, search("search"), search("search"), search("open_page"), code, text];
    for (place, item) in items.into_iter().enumerate() {
        if item["type"] == "message" {
            let delta = item["content"][0]["text"].clone();
            events.push(json!({"type": "response.output_text.delta", "output_index": place, "delta": delta}));
        }
        events.push(json!({"type": "response.output_item.done", "output_index": place, "item": item}));
    }
    // One of the searches has failed, so it is not billed.
    let usage = json!({"input_tokens": 100, "output_tokens": 10, "num_server_side_tools_used": 3,
        "server_side_tool_usage_details": {"web_search_calls": 2, "code_interpreter_calls": 1}});
    events.push(json!({"type": "response.completed", "response": {"model": body["model"], "usage": usage}}));
    stream(&events)
}

#[tokio::test]
async fn xai_searches_runs_code_and_is_paid_for_what_succeeded() {
    let asked = Asked::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let app = Router::new().route("/v1/{*path}", post(xai)).with_state(asked.clone());
    let server = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let models = ModelsConfig {
        xai_key: Some("xai-test".to_owned()),
        addresses: Addresses { xai: url, ..Addresses::default() },
        ..ModelsConfig::default()
    };
    let h = Harness::with(PlatformConfig { models, ..PlatformConfig::in_memory() }).await;
    let last = || asked.lock().unwrap_or_else(PoisonError::into_inner).last().cloned().unwrap();

    let both = json!(["web_search", "code_execution"]);
    let new = json!({"name": "Watch", "goal": "Watch prices", "provider_tools": both});
    let agent = h.post("/agents", new).await.expect(201)["agent_id"].as_str().unwrap().to_owned();
    let path = format!("/agents/{agent}/chat");
    let view = h.post(&path, json!({"message": "What does oil cost?"})).await.expect(200);
    assert_eq!(view["message"], "It costs 3 euros.", "{view:#}");
    let (at, body) = last();
    assert_eq!((at.as_str(), body["model"].as_str()), ("/v1/responses", Some("grok-4.3")));
    let kinds = offered(&body);
    assert_eq!(kinds[..2], ["web_search", "code_interpreter"]);
    assert!(kinds.len() > 2 && kinds[2..].iter().all(|kind| kind == "function"), "{kinds:?}");
    let run = h.get(&format!("/runs/{}", view["run_id"].as_str().unwrap())).await.expect(200);
    let used = (&run["usage"]["web_searches"], &run["usage"]["code_runs"]);
    assert_eq!(used, (&json!(2), &json!(1)), "{run:#}");
    // Three uses at 5,000 micro-dollars, 100 tokens at 1.25 and 10 at 2.5.
    assert_eq!(run["cost_micros"], 15_150);

    // Only what was said is sent back.
    let chat = &view["chat_id"];
    let view = h.post(&path, json!({"message": "Sure?", "chat_id": chat})).await.expect(200);
    assert_eq!(view["state"], "completed", "{view:#}");
    let (_, body) = last();
    let input = body["input"].as_array().unwrap();
    let roles: Vec<Option<&str>> = input.iter().map(|item| item["role"].as_str()).collect();
    assert_eq!(roles[..3], [Some("system"), Some("user"), Some("assistant")], "{input:#?}");
    assert!(roles[3..].iter().all(|role| *role == Some("user")), "{input:#?}");
    assert_eq!(input[2]["content"], "It costs 3 euros.");

    // Without the tools, the agent uses the other format.
    h.patch(&format!("/agents/{agent}"), json!({"provider_tools": []})).await.expect(200);
    let view = h.post(&path, json!({"message": "And now?", "chat_id": chat})).await.expect(200);
    assert_eq!(view["message"], "I can't look.", "{view:#}");
    assert_eq!(last().0, "/v1/chat/completions");

    // Five uses of each tool cost 50,000 micro-dollars, without a token.
    let low =
        json!({"name": "Low", "goal": "Watch", "provider_tools": both, "budget": {"per_run_micros": 50_000}});
    let agent = h.post("/agents", low).await.expect(201)["agent_id"].as_str().unwrap().to_owned();
    let view = h.post(&format!("/agents/{agent}/chat"), json!({"message": "Look"})).await.expect(200);
    assert_eq!(view["state"], "waiting", "{view:#}");
    assert_eq!(last().0, "/v1/chat/completions");

    let models = h.get("/models").await.expect(200);
    let prices = |name: &str| {
        let rows = models["models"].as_array().unwrap();
        let row = rows.iter().find(|model| model["model"] == name).unwrap();
        [&row["price"]["web_search_micros"], &row["price"]["code_execution_micros"]].map(Value::as_i64)
    };
    assert_eq!(prices("xai/grok-4.3"), [Some(5_000); 2]);
    assert_eq!(prices("xai/grok-code-fast-1"), [None; 2]);
    server.abort();
}
