//! No one sees another's data: every route of the catalog, called by a stranger with the ids of somebody else's things.

use std::collections::BTreeMap;

use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use shared::config::AuthConfig;
use tests::{Answer, Harness, send};

/// Routes that name nobody's things: lists and makers of one's own, and what is public.
const WITHOUT_IDS: &[&str] = &[
    "GET /health",
    "GET /openapi.json",
    "POST /setup/chat",
    "GET /agents",
    "POST /agents",
    "GET /assets",
    "GET /actions",
    "POST /schedules/preview",
    "GET /account/api-keys",
    "POST /account/api-keys",
    "GET /usage",
    "POST /context/hooks",
    "GET /context/hooks/rejected",
    "GET /context/logs",
    "GET /context/export",
    "POST /context/import",
    // An agent of this name is another one for each owner, and its log is empty: `context_logs.rs` looks.
    "GET /context/logs/{agent_id}",
    "POST /context/logs/{agent_id}",
    "GET /projects",
    "POST /projects",
    "POST /mcp",
    "GET /mcp",
    "DELETE /mcp",
];

/// A body that each POST and PATCH takes, so that nothing but the owner is in the way.
fn body(route: &str, ids: &BTreeMap<&str, String>) -> Value {
    match route {
        "PATCH /agents/{agent_id}" | "PATCH /projects/{project_id}" => json!({"name": "stolen"}),
        "POST /agents/{agent_id}/chat" => json!({"message": "hello"}),
        "POST /agents/{agent_id}/assets" => json!({"title": "t", "content": "c"}),
        "POST /agents/{agent_id}/actions" => json!({
            "title": "t", "description": "d", "priority": "low",
            "task_config": {"instructions": "i", "expected_output": "o"}
        }),
        "PATCH /assets/{asset_id}" | "PATCH /actions/{action_id}" => json!({"title": "stolen"}),
        "POST /chats/{chat_id}/messages" => json!({"messages": [{"role": "user", "content": "hello"}]}),
        "POST /actions/{action_id}/approve" => json!({"approval_hash": ids["approval_hash"]}),
        "POST /actions/{action_id}/schedule" => json!({"schedule": {"every": "1h"}}),
        "POST /actions/{action_id}/messages" => json!({"content": "hello"}),
        "POST /projects/{project_id}/lookup"
        | "POST /projects/{project_id}/scout"
        | "POST /projects/{project_id}/gate" => json!({"request": "cart"}),
        "POST /projects/{project_id}/import" => json!({"bytes": 5}),
        "PATCH /projects/{project_id}/files/{path}" => json!({"path": "assets/stolen.css"}),
        _ => json!({}),
    }
}

async fn call(h: &Harness, key: &str, method: Method, path: &str, body: Value) -> Answer {
    let mut request = h.request(method.clone(), path).bearer_auth(key).header("accept", "application/json");
    if method != Method::GET && method != Method::DELETE {
        request = request.json(&body);
    }
    send(request).await
}

async fn key_of(h: &Harness, owner: &str) -> String {
    let owner = domain::ids::Owner::new(owner).unwrap();
    let input = serde_json::from_value(json!({"name": "test"})).unwrap();
    shared::flows::api_keys::create(&h.platform.cx, &owner, input).await.unwrap().api_key
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_strangers_call_finds_nothing_on_any_route() {
    let mut config = PlatformConfig::in_memory();
    config.auth = AuthConfig::On(None);
    let h = Harness::with(config).await;
    let (mine, theirs) = (key_of(&h, "me").await, key_of(&h, "you").await);
    let ids = things(&h, &mine).await;

    let document: Value = serde_json::from_str(catalog::OPENAPI_JSON).unwrap();
    let (mut tried, mut uncovered) = (0, Vec::new());
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let route = format!("{} {path}", method.to_uppercase());
            let method: Method = method.to_uppercase().parse().unwrap();
            if WITHOUT_IDS.contains(&route.as_str()) {
                continue;
            }
            let filled = ids.iter().fold(path.clone(), |p, (name, id)| p.replace(&format!("{{{name}}}"), id));
            if filled == *path || filled.contains('{') {
                uncovered.push(route);
                continue;
            }
            let query = match route.rsplit('/').next().unwrap_or_default() {
                "why" => "?at=2026-11-21T09:00:00Z",
                "graph" => "?path=assets/a.css",
                "grep" => "?q=cart",
                _ => "",
            };
            let filled = format!("{filled}{query}");
            let body = body(&route, &ids);
            call(&h, &theirs, method.clone(), &filled, body.clone()).await.refused(404, "not_found");
            let nobody = send(h.request(method, &filled).json(&body)).await;
            nobody.refused(401, "unauthenticated");
            tried += 1;
        }
    }
    assert!(uncovered.is_empty(), "give these routes an id here, or list them as without: {uncovered:?}");
    assert!(tried >= 35, "{tried} routes were tried");

    // The stranger's own lists are empty, and everything is still there for its owner.
    for list in ["/agents", "/assets", "/actions"] {
        assert_eq!(
            call(&h, &theirs, Method::GET, list, Value::Null).await.expect(200)["data"],
            json!([]),
            "{list}"
        );
    }
    for path in [
        "/agents/{agent_id}",
        "/assets/{asset_id}",
        "/actions/{action_id}",
        "/chats/{chat_id}",
        "/proposals/{proposal_id}",
        "/runs/{run_id}",
        "/projects/{project_id}",
        "/projects/{project_id}/files/{path}",
    ] {
        let filled = ids.iter().fold(path.to_owned(), |p, (name, id)| p.replace(&format!("{{{name}}}"), id));
        call(&h, &mine, Method::GET, &filled, Value::Null).await.expect(200);
    }
}

/// One of each thing, and its id by the name it has in paths.
async fn things(h: &Harness, key: &str) -> BTreeMap<&'static str, String> {
    let post = |path: String, body: Value| async move { call(h, key, Method::POST, &path, body).await };
    let agent =
        text(&post("/agents".into(), json!({"name": "a", "goal": "g"})).await.expect(201)["agent_id"]);
    let turn = post(format!("/agents/{agent}/chat"), json!({"message": "Write a brief about oil"}))
        .await
        .expect(200);
    let asset =
        post(format!("/agents/{agent}/assets"), json!({"title": "t", "content": "c"})).await.expect(201);
    let action =
        post(format!("/agents/{agent}/actions"), body("POST /agents/{agent_id}/actions", &BTreeMap::new()))
            .await
            .expect(201);
    let api_key = post("/account/api-keys".into(), json!({"name": "k"})).await.expect(201);
    let project = post("/projects".into(), json!({"name": "p"})).await.expect(201);
    let import = post(format!("/projects/{}/import", text(&project["project_id"])), json!({"bytes": 5}));
    let import = import.await.expect(202);
    let file = format!("/projects/{}/files/assets/a.css", text(&project["project_id"]));
    call(h, key, Method::PUT, &file, json!({})).await.expect(201);
    BTreeMap::from([
        ("path", "assets/a.css".to_owned()),
        ("import_id", text(&import["import_id"])),
        ("agent_id", agent),
        ("chat_id", text(&turn["chat_id"])),
        ("run_id", text(&turn["run_id"])),
        ("proposal_id", text(&turn["proposals"][0]["proposal_id"])),
        ("asset_id", text(&asset["asset_id"])),
        ("action_id", text(&action["action_id"])),
        ("approval_hash", text(&action["approval_hash"])),
        ("key_id", text(&api_key["key_id"])),
        ("project_id", text(&project["project_id"])),
        ("version", "1".to_owned()),
    ])
}
