//! API keys, usage, and authentication.

use std::sync::Arc;

use jiff::SignedDuration;
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::json;
use shared::clock::{Clock, ManualClock};
use shared::config::{AuthConfig, JwtConfig, JwtKeys};
use tests::{Answer, Harness, send};

use crate::made;

/// A token for `someone`, signed with the secret below. It expires in 2100.
const JWT: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIiwiYXVkIjoibGFtcGxpZ2h0ZXIiLCJzdWIiOiJzb21lb25lIiwiZXhwIjo0MTAyNDQ0ODAwfQ.nsaUUZp8YPqOJM9ydTCTkiuY0dt_sIkmDXoGg7ele4Q";

async fn guarded(clock: Clock) -> Harness {
    let keys = JwtKeys::Hs256 { secret: b"a secret that only tests know".to_vec() };
    let (issuer, audience) = ("https://issuer.example".to_owned(), "lamplighter".to_owned());
    let auth = AuthConfig::On(Some(Arc::new(JwtConfig { issuer, audience, keys })));
    Harness::with(PlatformConfig { auth, clock, ..PlatformConfig::in_memory() }).await
}

async fn call(h: &Harness, method: Method, path: &str, token: &str) -> Answer {
    send(h.request(method, path).bearer_auth(token)).await
}

#[tokio::test]
async fn a_key_is_shown_once_listed_without_it_and_revoked() {
    let h = Harness::start().await;
    let made = h.post("/account/api-keys", json!({"name": " laptop ", "expires_in_days": 1})).await;
    assert_eq!(made.headers["cache-control"], "no-store");
    let path = made.headers["location"].to_str().unwrap().to_owned();
    let mut made = made.expect(201);
    let key = made["api_key"].take();
    assert!(key.as_str().unwrap().starts_with("llk_"));
    made.as_object_mut().unwrap().remove("api_key");
    assert_eq!(made["name"], "laptop");
    assert!(made["expires_at"].is_string());
    let list = h.get("/account/api-keys").await.expect(200);
    assert_eq!(list, json!({"data": [made], "has_more": false}));
    assert_eq!(h.delete(&path).await.status, 204);
    h.delete(&path).await.refused(404, "not_found");
    assert_eq!(h.get("/account/api-keys").await.expect(200)["data"], json!([]));

    for (body, field) in [
        (json!({"name": " "}), "name"),
        (json!({"name": "n".repeat(101)}), "name"),
        (json!({"name": "n", "expires_in_days": 0}), "expires_in_days"),
        (json!({"name": "n", "expires_in_days": 366}), "expires_in_days"),
    ] {
        let problem = h.post("/account/api-keys", body).await.refused(400, "invalid_input");
        assert_eq!(problem["errors"][0]["field"], field);
    }
    h.delete(&made::foreign(&h).await.api_key).await.refused(404, "not_found");
}

#[tokio::test]
async fn a_repeated_creation_makes_one_key_and_repeats_no_secret() {
    let h = Harness::start().await;
    let make = || h.post_once("/account/api-keys", "k", json!({"name": "once"}));
    let mut first = make().await.expect(201);
    let secret = first.as_object_mut().unwrap().remove("api_key").unwrap();
    let again = make().await;
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!(again.expect(201), first);
    assert_eq!(h.get("/account/api-keys").await.expect(200)["data"], json!([first]));
    assert!(secret.is_string());
}

#[tokio::test]
async fn usage_begins_at_zero_below_its_ceiling() {
    let h = Harness::start().await;
    let cx = &h.platform.cx;
    let usage = h.get("/usage").await.expect(200);
    assert_eq!(
        (&usage["spent_micros"], &usage["committed_micros"], &usage["ceiling_micros"]),
        (&json!(0), &json!(0), &json!(10_000_000))
    );
    let now = cx.clock.now();
    let owner = made::local();
    assert!(cx.store.reserve(&owner, now, 900, 10_000_000).await.unwrap().done());
    cx.store.settle(&owner, now, 900, 250).await.unwrap();
    assert!(cx.store.reserve(&owner, now, 50, 10_000_000).await.unwrap().done());
    let usage = h.get("/usage").await.expect(200);
    assert_eq!((&usage["spent_micros"], &usage["committed_micros"]), (&json!(250), &json!(300)));
}

#[tokio::test]
async fn calls_without_credentials_are_refused() {
    let h = guarded(Clock::System).await;
    for path in ["/health", "/openapi.json"] {
        assert_eq!(h.get(path).await.status, 200, "{path}");
    }
    let refused = h.get("/agents").await;
    assert_eq!(refused.headers["www-authenticate"], "Bearer");
    refused.refused(401, "unauthenticated");
    for wrong in ["", "x", "llk_", "a.b.c", &JWT[..JWT.len() - 2], &"x".repeat(8 * 1024 + 1)] {
        call(&h, Method::GET, "/agents", wrong).await.refused(401, "unauthenticated");
    }
    let basic = h.request(Method::GET, "/agents").basic_auth("me", Some("x"));
    send(basic).await.refused(401, "unauthenticated");

    // A person with a token of the issuer creates a key. The holder of the key is that person.
    let agent = json!({"name": "Mine", "goal": "An agent"});
    let made = send(h.request(Method::POST, "/agents").bearer_auth(JWT).json(&agent)).await.expect(201);
    let key = |name: &str| {
        h.request(Method::POST, "/account/api-keys").bearer_auth(JWT).json(&json!({"name": name}))
    };
    let key = send(key("laptop")).await.expect(201);
    let token = key["api_key"].as_str().unwrap();
    assert_eq!(call(&h, Method::GET, "/agents", token).await.expect(200)["data"], json!([made]));

    // Neither another owner's key nor a key with another secret gives access to the same data.
    let (head, secret) = token.rsplit_once('.').unwrap();
    let other_secret = format!("{head}.{}{}", if secret.starts_with('A') { "B" } else { "A" }, &secret[1..]);
    call(&h, Method::GET, "/agents", &other_secret).await.refused(401, "unauthenticated");
    let revoke = format!("/account/api-keys/{}", key["key_id"].as_str().unwrap());
    assert_eq!(call(&h, Method::DELETE, &revoke, token).await.status, 204);
    call(&h, Method::GET, "/agents", token).await.refused(401, "unauthenticated");
}

#[tokio::test]
async fn an_expired_key_is_refused() {
    let clock = ManualClock::at("2026-11-21T12:00:00Z".parse().unwrap());
    let h = guarded(Clock::Manual(clock.clone())).await;
    let key = json!({"name": "visit", "expires_in_days": 1});
    let key =
        send(h.request(Method::POST, "/account/api-keys").bearer_auth(JWT).json(&key)).await.expect(201);
    let token = key["api_key"].as_str().unwrap();
    let day = SignedDuration::from_hours(24);
    clock.set(clock.now() + day - SignedDuration::from_secs(1));
    call(&h, Method::GET, "/agents", token).await.expect(200);
    clock.set(clock.now() + SignedDuration::from_secs(1));
    let problem = call(&h, Method::GET, "/agents", token).await.refused(401, "unauthenticated");
    assert!(problem["detail"].as_str().unwrap().contains("expired"), "{problem:#}");
    let list = call(&h, Method::GET, "/account/api-keys", JWT).await.expect(200);
    assert_eq!(list["data"], json!([]));
}
