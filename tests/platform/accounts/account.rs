//! API keys, usage, and authentication.

use std::sync::Arc;

use base::clock::{Clock, ManualClock};
use jiff::SignedDuration;
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use shared::config::{AuthConfig, Given, JwtConfig, JwtKeys};
use tests::made;
use tests::{Answer, Harness, send};

/// A token for `someone`, signed with the secret below. It expires in 2100.
const JWT: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIiwiYXVkIjoibGFtcGxpZ2h0ZXIiLCJzdWIiOiJzb21lb25lIiwiZXhwIjo0MTAyNDQ0ODAwfQ.nsaUUZp8YPqOJM9ydTCTkiuY0dt_sIkmDXoGg7ele4Q";

async fn guarded(clock: Clock) -> Harness {
    let keys = JwtKeys::Hs256 { secret: b"a secret that only tests know".to_vec() };
    let (issuer, audience) = ("https://issuer.example".to_owned(), "lamplighter".to_owned());
    let auth = AuthConfig::On(Some(Arc::new(JwtConfig { issuer, audience: Given::Text(audience), keys })));
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
    assert!(made::reserve(cx, &owner, now, 900, 10_000_000).await);
    made::settle(cx, &owner, now, 900, 250).await;
    assert!(made::reserve(cx, &owner, now, 50, 10_000_000).await);
    let usage = h.get("/usage").await.expect(200);
    assert_eq!((&usage["spent_micros"], &usage["committed_micros"]), (&json!(250), &json!(300)));
}

#[tokio::test]
async fn a_months_usage_is_that_of_its_runs() {
    let clock = ManualClock::at("2026-11-30T23:59:00Z".parse().unwrap());
    let manual = Clock::Manual(clock.clone());
    let h = Harness::with(PlatformConfig { clock: manual, ..PlatformConfig::in_memory() }).await;
    let agents = [h.agent().await, h.agent().await];
    let mut runs = Vec::new();
    for (agent, minutes) in [(&agents[0], 0), (&agents[1], 0), (&agents[0], 2)] {
        clock.set(clock.now() + SignedDuration::from_mins(minutes));
        let turn = h.post(&format!("/agents/{agent}/chat"), json!({"message": "Hello"})).await.expect(200);
        let run = format!("/runs/{}", turn["run_id"].as_str().unwrap());
        runs.push(h.get(&run).await.expect(200));
    }
    let sum = |runs: &[&Value], of: &dyn Fn(&Value) -> i64| runs.iter().map(|run| of(run)).sum::<i64>();
    let check = |used: &Value, runs: &[&Value]| {
        assert_eq!(used["cost_micros"], sum(runs, &|run| run["cost_micros"].as_i64().unwrap()), "{used:#}");
        assert!(used["cost_micros"].as_i64() > Some(0) && used["calls"].as_u64() >= Some(runs.len() as u64));
        for (field, parts) in [
            ("input_tokens", &["input_tokens"][..]),
            ("cache_read_tokens", &["cache_read_tokens"]),
            ("cache_write_tokens", &["cache_write_5m_tokens", "cache_write_1h_tokens"]),
            ("output_tokens", &["output_tokens"]),
        ] {
            let of = |run: &Value| parts.iter().map(|part| run["usage"][part].as_i64().unwrap()).sum();
            assert_eq!(used[field], sum(runs, &of), "{field}: {used:#}");
        }
    };
    let november = h.get("/usage?month=2026-11").await.expect(200)["month"].clone();
    check(&november["total"], &[&runs[0], &runs[1]]);
    assert_eq!(november["by_day"].as_array().unwrap().len(), 1);
    assert_eq!(november["by_day"][0]["date"], "2026-11-30");
    assert_eq!(november["by_model"].as_array().unwrap().len(), 1);
    for (agent, run) in agents.iter().zip(&runs) {
        let by_agent = november["by_agent"].as_array().unwrap();
        let entry = by_agent.iter().find(|entry| entry["agent_id"] == agent.as_str()).unwrap();
        check(entry, &[run]);
        let of = |field: &str| entry[field].as_f64().unwrap();
        let input = of("input_tokens") + of("cache_read_tokens") + of("cache_write_tokens");
        assert!((of("cache_hit_ratio") - of("cache_read_tokens") / input).abs() < 1e-9, "{entry:#}");
    }
    let december = h.get("/usage?month=2026-12").await.expect(200);
    check(&december["month"]["total"], &[&runs[2]]);
    assert_eq!(december["date"], "2026-12-01");
    assert_eq!(december["spent_micros"], runs[2]["cost_micros"]);
    let october = h.get("/usage?month=2026-10").await.expect(200)["month"].clone();
    assert_eq!((&october["total"]["calls"], &october["by_agent"]), (&json!(0), &json!([])));
    assert!(h.get("/usage").await.expect(200).get("month").is_none());
    let problem = h.get("/usage?month=2026-13").await.refused(400, "invalid_input");
    assert_eq!(problem["errors"][0]["field"], "month");
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
