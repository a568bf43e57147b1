//! Owners can't see each other's data: a stranger calls every route of the catalog with the ids of another owner.

use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use shared::config::AuthConfig;
use tests::things::{self, Caller};
use tests::{Harness, send};

/// Routes without the id of a thing: lists, routes that create something, and public routes.
const WITHOUT_IDS: &[&str] = &[
    "GET /",
    "GET /docs",
    "GET /console/{file}",
    "GET /health",
    "GET /openapi.json",
    "POST /setup/chat",
    "GET /agents",
    "POST /agents",
    "POST /setup",
    "POST /setup/preview",
    "GET /assets",
    "GET /actions",
    "POST /schedules/preview",
    "GET /account/api-keys",
    "POST /account/api-keys",
    // The name of a provider is no id of an owner: `provider_keys.rs` looks.
    "GET /account/provider-keys",
    "PUT /account/provider-keys/{provider}",
    "DELETE /account/provider-keys/{provider}",
    "GET /account/secrets",
    "PUT /account/secrets/{name}",
    "DELETE /account/secrets/{name}",
    "GET /account/servers",
    "PUT /account/servers/{name}",
    "DELETE /account/servers/{name}",
    "GET /usage",
    "GET /account",
    "PATCH /account",
    // It needs the name of the caller's own account: `deletion.rs` looks.
    "DELETE /account",
    "POST /account/export",
    // `export.rs` looks.
    "GET /account/exports/{export_id}",
    "POST /account/import",
    "POST /account/stop",
    "POST /account/start",
    "GET /account/import",
    // Whoever knows the id may read it.
    "GET /receipts/{receipt_id}",
    // Whoever has got an e-mail may unsubscribe.
    "POST /unsubscribe/{token}",
    "GET /unsubscribe/{token}",
    // And answer what it asks.
    "GET /answers/{token}",
    "POST /answers/{token}",
    // GitHub has no credentials but the token and the signature: `living/hook.rs` looks.
    "POST /hooks/github/{token}",
    // Nor has Telegram: `replies.rs` looks.
    "POST /hooks/telegram/{token}",
    "GET /limits",
    "GET /models",
    // It changes the caller's own choice: see `models.rs`.
    "PUT /models/settings",
    "POST /context/hooks",
    "GET /context/hooks/rejected",
    "GET /context/logs",
    "GET /context/export",
    "POST /context/import",
    // An agent with this name is another one for each owner, and its log is empty: see `context_logs.rs`.
    "GET /context/logs/{agent_id}",
    "POST /context/logs/{agent_id}",
    // Sessions belong to one owner each, whatever their names: see the test below.
    "GET /context/recall",
    "GET /projects",
    "POST /projects",
    "POST /mcp",
    // The body names the agent: `completions.rs` looks.
    "POST /v1/chat/completions",
    "GET /v1/models",
    // Their answers are empty for a stranger: `overview.rs` looks.
    "GET /inbox",
    "GET /day",
    "GET /jobs",
    "GET /watchdog",
    "GET /watchdog/alerts",
    "GET /watchdog/settings",
    "PUT /watchdog/settings",
    "GET /runs",
    "GET /search",
    // They show the caller's own memory, which is empty for a stranger: see below.
    "GET /memory/days",
    "GET /memory/long-term",
    "PUT /memory/long-term",
    "GET /memory/archive/{year}",
    "GET /memory/export",
    "GET /memory/health",
    "GET /memory/search",
    "GET /memory/cards",
    "POST /memory/cards",
    "GET /memory/tidies",
    "POST /memory/sync",
    "POST /memory/tidy",
    // The same name is another session for each owner: see the test below.
    "POST /memory/sessions/{session_id}/messages",
    // A day exists for everybody, with nothing in it for a stranger: `memory/isolation.rs` looks.
    "GET /memory/days/{date}",
    "GET /memory/weeks/{monday}",
    // The list of a stranger is empty: see below.
    "GET /practices",
    "POST /practices",
    "GET /watched",
    "POST /watched",
    "GET /jobs",
    "GET /notifications",
    "PUT /notifications",
    "GET /notifications/channels",
    "POST /notifications/channels",
    "GET /deliveries",
    "GET /outbox",
    "GET /mcp",
    "DELETE /mcp",
];

#[tokio::test]
async fn a_strangers_call_finds_nothing_on_any_route() {
    let mut config = PlatformConfig::in_memory();
    config.auth = AuthConfig::On(None);
    let h = Harness::with(config).await;
    let (mine, theirs) = (h.key_of("me").await, h.key_of("you").await);
    let (me, you) = (Caller { h: &h, key: Some(&mine) }, Caller { h: &h, key: Some(&theirs) });
    let ids = me.things("oil").await;

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
                "graph" | "outline" => "?path=assets/a.css",
                "grep" => "?q=cart",
                _ => "",
            };
            let filled = format!("{filled}{query}");
            let body = things::body(&route, &ids);
            you.call(method.clone(), &filled, body.clone()).await.refused(404, "not_found");
            let nobody = send(h.request(method, &filled).json(&body)).await;
            nobody.refused(401, "unauthenticated");
            tried += 1;
        }
    }
    assert!(uncovered.is_empty(), "give these routes an id here, or list them as without: {uncovered:?}");
    assert!(tried >= 35, "{tried} routes were tried");

    // The stranger's own lists are empty, and everything still exists for its owner.
    for list in
        ["/agents", "/assets", "/actions", "/practices", "/watched", "/notifications/channels", "/deliveries"]
    {
        assert_eq!(you.call(Method::GET, list, Value::Null).await.expect(200)["data"], json!([]), "{list}");
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
        "/practices/{practice_id}",
        "/practices/{practice_id}/check-ins/{date}",
        "/watched/{watched_id}",
    ] {
        let filled = ids.iter().fold(path.to_owned(), |p, (name, id)| p.replace(&format!("{{{name}}}"), id));
        me.call(Method::GET, &filled, Value::Null).await.expect(200);
    }
}

/// A stranger has the names and ids of everything in a memory, and reaches nothing of it.
#[tokio::test]
async fn a_memory_belongs_to_one_owner() {
    let mut config = PlatformConfig::in_memory();
    config.auth = AuthConfig::On(None);
    let h = Harness::with(config).await;
    let (mine, theirs) = (h.key_of("me").await, h.key_of("you").await);
    let (me, you) = (Caller { h: &h, key: Some(&mine) }, Caller { h: &h, key: Some(&theirs) });
    let card = me.call(Method::POST, "/memory/cards", json!({"title": "Secret plan"})).await.expect(201);
    let said = json!({"messages": [{"id": "1", "role": "user", "text": "My secret plan"}]});
    me.call(Method::POST, "/memory/sessions/s1/messages", said).await.expect(200);
    let markdown = json!({"markdown": "- The user has a secret plan.\n"});
    let written = me.call(Method::PUT, "/memory/long-term", markdown).await.expect(200);
    let fact = written["sections"][0]["lines"][0]["facts"][0]["fact_id"].as_str().unwrap().to_owned();
    let card = format!("/memory/cards/{}", card["card_id"].as_str().unwrap());
    for path in [card.clone(), format!("/memory/facts/{fact}"), "/memory/sessions/s1".to_owned()] {
        you.call(Method::DELETE, &path, Value::Null).await.refused(404, "not_found");
    }
    // The same name is a session of the stranger's own.
    let theirs = json!({"messages": [{"id": "1", "role": "user", "text": "Nothing"}]});
    let stored = you.call(Method::POST, "/memory/sessions/s1/messages", theirs).await.expect(200);
    assert_eq!(stored, json!({"stored": 1, "known": 0}));
    let everything = async |caller: &Caller<'_>| {
        let mut all = String::new();
        for path in [
            "/memory/days",
            "/memory/long-term",
            "/memory/archive/2026",
            "/memory/cards",
            "/memory/tidies",
            "/memory/search?q=secret+plan&depth=raw",
        ] {
            all.push_str(&caller.call(Method::GET, path, Value::Null).await.expect(200).to_string());
        }
        all.to_lowercase()
    };
    assert!(!everything(&you).await.contains("secret"), "{}", everything(&you).await);
    assert!(everything(&me).await.matches("secret plan").count() >= 4, "{}", everything(&me).await);
    // Its owner can delete it, once.
    me.call(Method::DELETE, &card, Value::Null).await.expect(204);
    me.call(Method::DELETE, &card, Value::Null).await.refused(404, "not_found");
    let cards = "/memory/search?q=secret+plan&depth=cards";
    assert_eq!(me.call(Method::GET, cards, Value::Null).await.expect(200)["hits"], json!([]));
}

/// A session and an agent may have the same names for two owners.
#[tokio::test]
async fn nobody_recalls_what_anothers_agents_did() {
    let mut config = PlatformConfig::in_memory();
    config.auth = AuthConfig::On(None);
    let h = Harness::with(config).await;
    let (mine, theirs) = (h.key_of("me").await, h.key_of("you").await);
    let (me, you) = (Caller { h: &h, key: Some(&mine) }, Caller { h: &h, key: Some(&theirs) });
    for (caller, session) in [(&me, "s1"), (&me, "s2"), (&you, "s2")] {
        let asked = json!({
            "session_id": session, "hook_event_name": "PreToolUse", "tool_name": "Task", "tool_use_id": "call-1",
            "tool_input": {"subagent_type": "the-architect", "description": "Design", "prompt": "AgentId: arch-auth\nSecret plan"},
        });
        caller.call(Method::POST, "/context/hooks", asked).await.expect(200);
    }
    let recall = async |caller: &Caller<'_>| {
        let path = "/context/recall?session=s2&agent_type=the-architect";
        caller.call(Method::GET, path, Value::Null).await.expect(200)["context"].clone()
    };
    assert!(recall(&me).await.as_str().unwrap().contains("Secret plan"));
    assert_eq!(recall(&you).await, Value::Null);
}
