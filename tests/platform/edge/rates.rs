//! Rate limits: by owner or address, across processes, at the edges of a minute.

use std::sync::Arc;

use aws_lambda_events::apigw::{ApiGatewayProxyRequestContext, ApiGatewayRequestAuthorizer};
use axum::body::Body;
use base::clock::{Clock, ManualClock};
use domain::accounts::rates::{RateLimits, RouteClass};
use domain::ids::Owner;
use futures::future::join_all;
use http::{Request, Response, StatusCode};
use jiff::{SignedDuration, Timestamp};
use lambda_http::request::RequestContext;
use lamplighter_local::handler::Handler;
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use shared::Cx;
use shared::config::{AuthConfig, Config};
use shared::edge::rates;
use shared::process::used_up::UsedUp;
use shared::store::Store;
use tests::{Answer, Harness, send};

const NOON: &str = "2026-11-21T12:00:00Z";

/// A platform that needs keys, with these limits, at noon.
async fn limited(limits: &str) -> (Harness, ManualClock) {
    let clock = ManualClock::at(NOON.parse().unwrap());
    let mut config = PlatformConfig::in_memory();
    config.auth = AuthConfig::On(None);
    config.rates = RateLimits::parse(limits).unwrap();
    config.clock = Clock::Manual(clock.clone());
    (Harness::with(config).await, clock)
}

async fn get(h: &Harness, path: &str, key: &str) -> Answer {
    send(h.request(Method::GET, path).bearer_auth(key)).await
}

fn told(answer: &Answer) -> [&str; 4] {
    ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset", "ratelimit-policy"]
        .map(|name| answer.headers[name].to_str().unwrap())
}

#[tokio::test]
async fn answers_tell_what_is_left_and_when_it_begins_again() {
    let (h, clock) = limited("others=2").await;
    let (me, you) = (h.key_of("me").await, h.key_of("you").await);
    clock.set(clock.now() + SignedDuration::from_millis(14_300));
    let first = get(&h, "/agents", &me).await;
    assert_eq!(told(&first), ["2", "1", "46", "2;w=60"]);
    first.expect(200);
    // An answer with an error counts and tells, too.
    let second = get(&h, "/nowhere", &me).await;
    assert_eq!(told(&second), ["2", "0", "46", "2;w=60"]);
    second.refused(404, "not_found");
    for _ in 0..3 {
        let third = get(&h, "/assets", &me).await;
        assert_eq!(told(&third), ["2", "0", "46", "2;w=60"]);
        assert_eq!(third.headers["retry-after"], "46");
        let problem = third.refused(429, "too_many_requests");
        assert_eq!(problem["retryable"], true);
        let detail =
            "a caller may make 2 requests of the class `others` in a minute; try again in 46 seconds";
        assert_eq!(problem["detail"], detail);
    }
    // Other owners have windows of their own.
    get(&h, "/agents", &you).await.expect(200);
    // As long as the window lasts, and not longer.
    clock.set(NOON.parse::<Timestamp>().unwrap() + SignedDuration::from_millis(59_999));
    get(&h, "/agents", &me).await.refused(429, "too_many_requests");
    clock.set(clock.now() + SignedDuration::from_millis(1));
    assert_eq!(told(&get(&h, "/agents", &me).await), ["2", "1", "60", "2;w=60"]);
}

#[tokio::test]
async fn classes_count_separately_and_monitors_are_free() {
    let (h, _) = limited("others=1,turns=1").await;
    let me = h.key_of("me").await;
    get(&h, "/agents", &me).await.expect(200);
    get(&h, "/agents", &me).await.refused(429, "too_many_requests");
    for _ in 0..3 {
        for path in ["/health", "/openapi.json"] {
            let answer = get(&h, path, &me).await;
            assert!(!answer.headers.contains_key("ratelimit-limit"), "{path}");
            answer.expect(200);
        }
        let docs = h.request(Method::GET, "/docs").bearer_auth(&me).send().await.unwrap();
        assert!(docs.status() == 303 && !docs.headers().contains_key("ratelimit-limit"));
        let preflight =
            h.request(Method::OPTIONS, "/agents").header("origin", "https://app.example").send().await;
        assert_ne!(preflight.unwrap().status(), StatusCode::TOO_MANY_REQUESTS);
    }
    let hook =
        json!({"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Read", "tool_use_id": "1"});
    for _ in 0..100 {
        send(h.request(Method::POST, "/context/hooks").bearer_auth(&me).json(&hook)).await.expect(200);
    }
    // OpenAI clients read the error in their form.
    let completion = || {
        let body = json!({"model": "agt_1", "messages": [{"role": "user", "content": "Hello"}]});
        send(h.request(Method::POST, "/v1/chat/completions").bearer_auth(&me).json(&body))
    };
    completion().await.refused(404, "not_found");
    let refused = completion().await.refused(429, "too_many_requests");
    assert_eq!(refused["error"]["type"], "rate_limit_error");
}

#[tokio::test]
async fn a_replay_counts_and_a_refused_request_leaves_its_key_free() {
    let (h, clock) = limited("others=2").await;
    let me = h.key_of("me").await;
    let create = |key: &'static str| {
        let agent = json!({"name": "Watch", "goal": "Watch"});
        send(h.request(Method::POST, "/agents").bearer_auth(&me).header("idempotency-key", key).json(&agent))
    };
    let made = create("a").await.expect(201);
    let again = create("a").await;
    assert_eq!((again.headers["idempotent-replayed"].to_str().unwrap(), told(&again)[1]), ("true", "0"));
    create("b").await.refused(429, "too_many_requests");
    clock.set(clock.now() + SignedDuration::from_secs(60));
    assert_ne!(create("b").await.expect(201)["agent_id"], made["agent_id"]);
}

/// A request as API Gateway hands it over.
fn from_gateway(path: &str, owner: Option<&str>, address: &str, headers: &[(&str, &str)]) -> Request<Body> {
    let mut context = ApiGatewayProxyRequestContext::default();
    context.identity.source_ip = Some(address.to_owned());
    if let Some(owner) = owner {
        let fields = [("owner".to_owned(), json!(owner)), ("scope".to_owned(), json!("admin"))];
        let mut authorizer = ApiGatewayRequestAuthorizer::default();
        authorizer.fields = fields.into_iter().collect();
        context.authorizer = authorizer;
    }
    let mut request = Request::get(path).extension(RequestContext::ApiGatewayV1(context));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::empty()).unwrap()
}

/// The functions as on Lambda, in a process of their own that shares the platform's table.
fn function(cx: &Cx) -> Handler {
    let cx = cx.with(|parts| parts.used_up = UsedUp::default());
    shared::edge::app::app(cx, catalog::router(), None).into()
}

async fn status(function: &Handler, request: Request<Body>) -> StatusCode {
    let answer: Response<Body> = function.call(request).await.unwrap();
    answer.status()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_parallel_requests_over_two_processes_exactly_as_many_pass_as_fit() {
    let (h, clock) = limited("others=10").await;
    let processes = [function(&h.platform.cx), function(&h.platform.cx)];
    for (before, expected) in [(9, 1), (0, 10), (10, 0)] {
        clock.set(clock.now() + SignedDuration::from_secs(60));
        for n in 0..before {
            let request = from_gateway("/agents", Some("me"), "192.0.2.1", &[]);
            assert_eq!(status(&processes[n % 2], request).await, StatusCode::OK);
        }
        let calls = (0..64).map(|n| {
            let process = processes[n % 2].clone();
            let request = from_gateway("/agents", Some("me"), "192.0.2.1", &[]);
            tokio::spawn(async move { status(&process, request).await })
        });
        let statuses: Vec<StatusCode> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
        let passed = statuses.iter().filter(|status| **status == StatusCode::OK).count();
        assert_eq!(passed, expected, "{before} before: {statuses:?}");
        let refused = statuses.iter().filter(|status| **status == StatusCode::TOO_MANY_REQUESTS).count();
        assert_eq!(refused, 64 - expected);
    }
}

/// A process whose clock is ahead counts in its own minute, and each minute keeps its limit.
#[tokio::test]
async fn processes_with_different_clocks_keep_the_limit_of_each_minute() {
    let (h, clock) = limited("others=5").await;
    clock.set(clock.now() + SignedDuration::from_millis(59_500));
    let ahead = ManualClock::at(clock.now() + SignedDuration::from_secs(1));
    let cx = |clock: &ManualClock| {
        h.platform.cx.with(|parts| {
            parts.clock = Clock::Manual(clock.clone());
            parts.used_up = UsedUp::default();
        })
    };
    let (one, other) = (cx(&clock), cx(&ahead));
    let mut passed = 0;
    for n in 0..40 {
        let cx = if n % 2 == 0 { &one } else { &other };
        let rate = rates::count(cx, "owner me", RouteClass::Others).await.unwrap();
        passed += usize::from(rate.remaining.is_some());
    }
    assert_eq!(passed, 10);
}

#[tokio::test]
async fn without_credentials_the_address_of_the_gateway_counts_and_no_header() {
    let (h, _) = limited("others=3").await;
    let function = function(&h.platform.cx);
    let unauthenticated = StatusCode::UNAUTHORIZED;
    for (n, expected) in
        [(1, unauthenticated), (2, unauthenticated), (3, unauthenticated), (4, StatusCode::TOO_MANY_REQUESTS)]
    {
        let forged = format!("203.0.113.{n}");
        let headers =
            ["x-forwarded-for", "x-real-ip", "forwarded", "cf-connecting-ip"].map(|name| (name, &*forged));
        let request = from_gateway("/agents", None, "192.0.2.7", &headers);
        assert_eq!(status(&function, request).await, expected, "{n}");
    }
    let other = from_gateway("/agents", None, "192.0.2.8", &[("x-forwarded-for", "192.0.2.7")]);
    assert_eq!(status(&function, other).await, unauthenticated);
    // An IPv6 network is one caller.
    for (n, expected) in
        [(1, unauthenticated), (2, unauthenticated), (3, unauthenticated), (4, StatusCode::TOO_MANY_REQUESTS)]
    {
        let request = from_gateway("/agents", None, &format!("2001:db8::{n}"), &[]);
        assert_eq!(status(&function, request).await, expected, "{n}");
    }
    // Somebody with a key at the same address is not stopped.
    let request = from_gateway("/agents", Some("me"), "192.0.2.7", &[]);
    assert_eq!(status(&function, request).await, StatusCode::OK);
}

#[tokio::test]
async fn who_tries_keys_is_stopped_and_a_good_key_still_works() {
    let (h, _) = limited("others=5").await;
    let me = h.key_of("me").await;
    for n in 0..5 {
        let request = h.request(Method::GET, "/agents").header("x-forwarded-for", format!("203.0.113.{n}"));
        send(request.bearer_auth(format!("llk_guess.{n}"))).await.refused(401, "unauthenticated");
    }
    get(&h, "/agents", "llk_guess.5").await.refused(429, "too_many_requests");
    get(&h, "/agents", &me).await.expect(200);
}

#[tokio::test]
async fn a_table_that_does_not_answer_stops_nobody() {
    let (h, _) = limited("others=1").await;
    let (client, _) = h.platform.cx.store.raw();
    let cx = h.platform.cx.with(|parts| {
        parts.store = Store::new(client.clone(), "missing");
        parts.used_up = UsedUp::default();
    });
    for _ in 0..3 {
        assert_eq!(rates::count(&cx, "owner me", RouteClass::Others).await, None);
    }
}

#[tokio::test]
async fn a_used_up_minute_costs_no_more_writes() {
    let (h, _) = limited("others=2").await;
    let me = rates::by_owner(&Owner::new("me").unwrap());
    let cx = &h.platform.cx;
    let count = async |cx: &Cx| rates::count(cx, &me, RouteClass::Others).await.map(|rate| rate.remaining);
    assert_eq!((count(cx).await, count(cx).await), (Some(Some(1)), Some(Some(0))));
    // A store without a table: an answer without a limit would mean that the process asked it.
    let (client, _) = cx.store.raw();
    let cut_off = cx.with(|parts| parts.store = Store::new(client.clone(), "missing"));
    assert_eq!(count(&cut_off).await, Some(None));
    // Another process learns it from the table with its first write.
    let other = cx.with(|parts| parts.used_up = UsedUp::default());
    assert_eq!(count(&other).await, Some(None));
    let cut_off = other.with(|parts| parts.store = Store::new(client.clone(), "missing"));
    assert_eq!(count(&cut_off).await, Some(None));
}

#[tokio::test]
async fn there_are_no_limits_unless_they_are_configured() {
    let h = Harness::start().await;
    for _ in 0..70 {
        let answer = h.get("/account").await;
        assert!(!answer.headers.contains_key("ratelimit-limit"));
        answer.expect(200);
    }
    let limits = h.get("/limits").await.expect(200);
    assert_eq!(limits["rates"], Value::Array(Vec::new()));
    let config = Config { rates: RateLimits::default(), ..Config::clone(&h.platform.cx.config) };
    let cx = h.platform.cx.with(|parts| parts.config = Arc::new(config));
    let limits = shared::flows::accounts::limits::read(&cx, &Owner::new("me").unwrap()).await.unwrap();
    let rates: Vec<(&str, u32)> =
        limits.rates.iter().map(|rate| (rate.class.name(), rate.per_minute)).collect();
    let expected = [
        ("theme_agent", 10),
        ("streamed_turns", 20),
        ("turns", 30),
        ("mcp", 300),
        ("hooks", 600),
        ("overview", 120),
        ("others", 60),
    ];
    assert_eq!(rates, expected);
}
