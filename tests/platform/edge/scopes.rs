//! Scopes of API keys: what a key may do, on every route and for every tool, and when it was last used.

use aws_sdk_dynamodb::types::AttributeValue;
use base::clock::{Clock, ManualClock};
use domain::accounts::scopes::Scope;
use domain::ids::{ApiKeyId, Owner};
use jiff::SignedDuration;
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use shared::config::AuthConfig;
use shared::edge::extract::Caller;
use shared::flows::accounts::api_keys;
use shared::store::{Once, keys};
use tests::things;
use tests::{Harness, send};

/// The routes that need `admin`.
const ADMIN: &[&str] = &[
    "PATCH /account",
    "DELETE /account",
    "POST /account/export",
    "GET /account/exports/{export_id}",
    "POST /account/import",
    "POST /account/stop",
    "POST /account/start",
    "GET /account/import",
    "GET /account/api-keys",
    "POST /account/api-keys",
    "DELETE /account/api-keys/{key_id}",
    "GET /account/provider-keys",
    "PUT /account/provider-keys/{provider}",
    "DELETE /account/provider-keys/{provider}",
    "GET /account/secrets",
    "PUT /account/secrets/{name}",
    "DELETE /account/secrets/{name}",
    "GET /account/servers",
    "PUT /account/servers/{name}",
    "DELETE /account/servers/{name}",
];

/// The routes that only read, although their method is not GET: each tool of MCP has its own scope.
const READS: &[&str] = &["POST /mcp", "DELETE /mcp"];

async fn guarded(clock: Clock) -> Harness {
    Harness::with(PlatformConfig { auth: AuthConfig::On(None), clock, ..PlatformConfig::in_memory() }).await
}

/// A new route that is not a GET is refused to a key that may only read. A new route of the account must be listed
/// above.
#[tokio::test]
async fn every_route_needs_a_scope() {
    let h = guarded(Clock::System).await;
    let reader = h.key_with("me", json!({"name": "reader", "scopes": ["read"]})).await;
    let writer = h.key_with("me", json!({"name": "writer", "scopes": ["write"]})).await;
    let admin = h.key_of("me").await;
    let agent = json!({"name": "Mine", "goal": "An agent"});
    let all = things::Caller { h: &h, key: Some(&admin) };
    let made = all.call(Method::POST, "/agents", agent).await.expect(201);

    let document: Value = serde_json::from_str(catalog::OPENAPI_JSON).unwrap();
    let mut tried = [0; 3];
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if operation["security"] == json!([{}]) {
                assert!(operation.get("x-required-scope").is_none(), "{method} {path}");
                continue;
            }
            let route = format!("{} {path}", method.to_uppercase());
            let needed = match method.as_str() {
                _ if ADMIN.contains(&route.as_str()) => Scope::Admin,
                _ if READS.contains(&route.as_str()) => Scope::Read,
                "get" => Scope::Read,
                _ => Scope::Write,
            };
            assert_eq!(operation["x-required-scope"], needed.name(), "{route}");
            tried[needed as usize] += 1;
            let method: Method = method.to_uppercase().parse().unwrap();
            let filled = path.split('/').map(|part| if part.starts_with('{') { "x" } else { part });
            let filled = filled.collect::<Vec<_>>().join("/");
            for (key, held) in [(&reader, Scope::Read), (&writer, Scope::Write)] {
                let caller = things::Caller { h: &h, key: Some(key) };
                let answer = caller.call(method.clone(), &filled, json!({})).await;
                if held >= needed {
                    assert_ne!(answer.status, 403, "{route} with {held}: {:#}", answer.body);
                    continue;
                }
                let problem = answer.refused(403, "scope_missing");
                assert_eq!(problem["current"], json!({"needed": needed, "held": held}), "{route}");
                let named = format!("needs the scope `{needed}`");
                assert!(problem["detail"].as_str().unwrap().contains(&named), "{problem:#}");
                if path.starts_with("/v1/") {
                    assert_eq!(problem["error"]["type"], "permission_error", "{problem:#}");
                }
            }
        }
    }
    assert!(tried[0] >= 40 && tried[1] >= 45 && tried[2] == ADMIN.len(), "{tried:?}");
    assert_eq!(all.call(Method::GET, "/agents", Value::Null).await.expect(200)["data"], json!([made]));
}

/// A repeated request with an `Idempotency-Key` gets no stored answer that its credentials may not have.
#[tokio::test]
async fn a_replay_needs_the_scope_too() {
    let h = guarded(Clock::System).await;
    let reader = h.key_with("me", json!({"name": "reader", "scopes": ["read"]})).await;
    let admin = h.key_of("me").await;
    let make = |key: &str| {
        let request = h.request(Method::POST, "/agents").bearer_auth(key).header("idempotency-key", "k");
        send(request.json(&json!({"name": "Mine", "goal": "An agent"})))
    };
    make(&admin).await.expect(201);
    make(&reader).await.refused(403, "scope_missing");
    assert_eq!(make(&admin).await.headers["idempotent-replayed"], "true");
}

#[tokio::test]
async fn each_tool_of_mcp_needs_its_own_scope() {
    let h = guarded(Clock::System).await;
    let reader = h.key_with("me", json!({"name": "reader", "scopes": ["read"]})).await;
    let writer = h.key_with("me", json!({"name": "writer", "scopes": ["write"]})).await;
    let ask = async |key: &str, method: &str, params: Value| {
        let request = h.request(Method::POST, "/mcp").bearer_auth(key);
        let request = request.header("accept", "application/json, text/event-stream");
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        send(request.json(&message)).await.expect(200)["result"].clone()
    };
    let mut read_only = 0;
    let tools = ask(&writer, "tools/list", json!({})).await["tools"].clone();
    for tool in tools.as_array().unwrap() {
        let reads = tool["annotations"]["readOnlyHint"] == true;
        read_only += usize::from(reads);
        let call = json!({"name": tool["name"], "arguments": {"unknown": 1}});
        let result = ask(&reader, "tools/call", call).await;
        let text = result["content"][0]["text"].as_str().unwrap();
        assert_eq!(!text.starts_with("scope_missing: "), reads, "{}: {text}", tool["name"]);
        assert_eq!(text.contains("needs the scope `write`"), !reads, "{}: {text}", tool["name"]);
    }
    let offered = ask(&reader, "tools/list", json!({})).await["tools"].clone();
    let offered = offered.as_array().unwrap();
    assert!(offered.iter().all(|tool| tool["annotations"]["readOnlyHint"] == true));
    assert_eq!(offered.len(), read_only);
    assert!(read_only >= 15 && tools.as_array().unwrap().len() > read_only);

    // The instructions and the prompts do not name a tool that the key may not call.
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    for (key, names_it, prompts) in [(&reader, false, 0), (&writer, true, 4)] {
        let told = ask(key, "initialize", hello.clone()).await["instructions"].clone();
        let told = told.as_str().unwrap();
        assert_eq!(
            (told.contains("parse_mode"), told.contains("read_context")),
            (names_it, !names_it),
            "{told}"
        );
        let listed = ask(key, "prompts/list", json!({})).await["prompts"].clone();
        assert_eq!(listed.as_array().unwrap().len(), prompts);
    }

    let plan = json!({"name": "parse_mode", "arguments": {"prompt": "PLAN a lamp"}});
    assert_eq!(ask(&reader, "tools/call", plan.clone()).await["isError"], true);
    let read = json!({"name": "read_context", "arguments": {}});
    let nothing = ask(&reader, "tools/call", read.clone()).await;
    assert!(!nothing.to_string().contains("a lamp"), "{nothing:#}");
    assert_eq!(ask(&writer, "tools/call", plan).await["isError"], false);
    let kept = ask(&reader, "tools/call", read).await;
    assert!(kept.to_string().contains("a lamp"), "{kept:#}");
}

#[tokio::test]
async fn a_key_never_makes_a_key_that_may_do_more() {
    let h = guarded(Clock::System).await;
    let key = h.key_of("me").await;
    let caller = things::Caller { h: &h, key: Some(&key) };
    let make = async |input: Value| caller.call(Method::POST, "/account/api-keys", input).await;
    for (given, scopes) in [
        (json!({}), json!(["read", "write", "admin"])),
        (json!({"scopes": null}), json!(["read", "write", "admin"])),
        (json!({"scopes": ["admin"]}), json!(["read", "write", "admin"])),
        (json!({"scopes": ["write"]}), json!(["read", "write"])),
        (json!({"scopes": ["read", "write"]}), json!(["read", "write"])),
        (json!({"scopes": ["read", "read"]}), json!(["read"])),
    ] {
        let mut input = given.clone();
        input["name"] = "test".into();
        assert_eq!(make(input).await.expect(201)["scopes"], scopes, "{given}");
    }
    for (scopes, field) in [
        (json!([]), "scopes"),
        (json!(["read", "read", "read", "read"]), "scopes"),
        (json!(["read", "root"]), "scopes[1]"),
        (json!("read"), "scopes"),
    ] {
        let problem = make(json!({"name": "n", "scopes": scopes})).await.refused(400, "invalid_input");
        assert_eq!(problem["errors"][0]["field"], field, "{problem:#}");
    }
    let made = make(json!({"name": "writer", "scopes": ["write"]})).await.expect(201);
    let writer = things::Caller { h: &h, key: made["api_key"].as_str() };
    let input = json!({"name": "n", "scopes": ["read"]});
    writer.call(Method::POST, "/account/api-keys", input).await.refused(403, "scope_missing");

    // The flow checks it once more, so that no other route opens a way.
    let owner = Owner::new("me").unwrap();
    let caller = Caller { owner, scope: Scope::Write, key: None };
    for (scopes, allowed) in [(json!(["write"]), true), (json!(["admin"]), false), (Value::Null, false)] {
        let input = serde_json::from_value(json!({"name": "n", "scopes": scopes})).unwrap();
        let made = api_keys::create(&h.platform.cx, &caller, &Once::none(), input).await;
        assert_eq!(
            made.map(|_| ()).map_err(|error| error.code()),
            if allowed { Ok(()) } else { Err("scope_missing") }
        );
    }
}

#[tokio::test]
async fn a_key_that_was_made_before_there_were_scopes_has_all_of_them() {
    let h = guarded(Clock::System).await;
    let key = h.key_of("me").await;
    let caller = things::Caller { h: &h, key: Some(&key) };
    let listed = caller.call(Method::GET, "/account/api-keys", Value::Null).await.expect(200);
    let id: ApiKeyId = listed["data"][0]["key_id"].as_str().unwrap().parse().unwrap();
    let place = keys::api_key(&Owner::new("me").unwrap(), id);
    let (client, table) = h.platform.cx.store.raw();
    let update = client.update_item().table_name(table).update_expression("REMOVE #s, last_used");
    let update = update.expression_attribute_names("#s", "scope");
    let update =
        update.key("pk", AttributeValue::S(place.pk.clone())).key("sk", AttributeValue::S(place.sk.clone()));
    update.send().await.unwrap();
    let listed = caller.call(Method::GET, "/account/api-keys", Value::Null).await.expect(200);
    assert_eq!(listed["data"][0]["scopes"], json!(["read", "write", "admin"]));
}

#[tokio::test]
async fn the_list_of_keys_says_when_a_key_was_last_used() {
    let clock = ManualClock::at("2026-11-21T11:20:30Z".parse().unwrap());
    let h = guarded(Clock::Manual(clock.clone())).await;
    let admin = h.key_of("me").await;
    let used = h.key_with("me", json!({"name": "used"})).await;
    let call = async |key: &str, path: &str| {
        things::Caller { h: &h, key: Some(key) }.call(Method::GET, path, Value::Null).await.expect(200)
    };
    let listed = async || {
        let keys = call(&admin, "/account/api-keys").await["data"].clone();
        keys.as_array().unwrap().iter().find(|key| key["name"] == "used").unwrap().clone()
    };
    assert!(listed().await.get("last_used").is_none());
    call(&used, "/agents").await;
    assert_eq!(listed().await["last_used"], "2026-11-21T11:00:00Z");
    clock.set(clock.now() + SignedDuration::from_hours(26));
    assert_eq!(listed().await["last_used"], "2026-11-21T11:00:00Z");
    call(&used, "/agents").await;
    assert_eq!(listed().await["last_used"], "2026-11-22T13:00:00Z");

    // Wrong secrets are no use of the key.
    clock.set(clock.now() + SignedDuration::from_hours(1));
    let (head, secret) = used.rsplit_once('.').unwrap();
    let wrong = format!("{head}.{}{}", if secret.starts_with('A') { "B" } else { "A" }, &secret[1..]);
    send(h.request(Method::GET, "/agents").bearer_auth(&wrong)).await.refused(401, "unauthenticated");
    assert_eq!(listed().await["last_used"], "2026-11-22T13:00:00Z");

    // A use that is noted while the key is revoked does not bring it back, and an earlier hour changes nothing.
    let (owner, store) = (Owner::new("me").unwrap(), &h.platform.cx.store);
    let id: ApiKeyId = listed().await["key_id"].as_str().unwrap().parse().unwrap();
    store.note_api_key_use(&owner, id, "2026-11-22T12:00:00Z".parse().unwrap()).await.unwrap();
    assert_eq!(listed().await["last_used"], "2026-11-22T13:00:00Z");
    store.delete_api_key(&owner, id).await.unwrap();
    store.note_api_key_use(&owner, id, clock.now()).await.unwrap();
    assert!(store.api_key(&owner, id).await.unwrap().is_none());
}
