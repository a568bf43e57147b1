//! Invalid input: sends many requests to each route, each with one error. No response may be a 5xx, end the connection,
//! or take long.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::StreamExt;
use lamplighter_local::platform::PlatformConfig;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use reqwest::Method;
use serde_json::{Value, json};
use shared::config::BudgetConfig;
use tests::Harness;
use tests::openapi::{Ids, OpenApi, Route, junk, spoiled};
use tests::things::Caller;

/// The number of requests per route, and the minimum in total.
const EACH: usize = 90;
const LEAST: usize = 7_900;

const AT_ONCE: usize = 8;

/// Longer than any response may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A request that is ready to be sent.
struct Bad {
    name: String,
    method: Method,
    path: String,
    headers: Vec<(&'static str, Vec<u8>)>,
    body: Vec<u8>,
}

pub async fn attack(seed: u64) -> Vec<String> {
    let budget = BudgetConfig { day_micros: i64::MAX / 2, ..BudgetConfig::default() };
    let start = async || Harness::with(PlatformConfig { budget, ..PlatformConfig::in_memory() }).await;
    let api = OpenApi::new(start().await.get("/openapi.json").await.expect(200));
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut statuses, mut wrong, mut slowest) = (BTreeMap::<u16, usize>::new(), Vec::new(), Vec::new());
    for route in api.routes() {
        // A new platform: requests change the settings of the account and delete things.
        let h = start().await;
        let caller = Caller { h: &h, key: None };
        let ids = caller.things("oil").await;
        let bad: Vec<Bad> = (0..EACH).map(|_| bad(&mut rng, &api, &route, &ids)).collect();
        let answers: Vec<_> = futures::stream::iter(bad)
            .map(async |bad| {
                let began = Instant::now();
                let sent = tokio::time::timeout(PATIENCE, send(&h, &bad)).await;
                (bad, sent, began.elapsed())
            })
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        for (bad, sent, took) in answers {
            let what = || {
                let body = String::from_utf8_lossy(&bad.body);
                let headers: Vec<_> =
                    bad.headers.iter().map(|(name, value)| (name, String::from_utf8_lossy(value))).collect();
                format!("{} {:.200} {headers:?} {:.200}", bad.name, bad.path, body)
            };
            match sent {
                Err(_) => wrong.push(format!("no answer in {PATIENCE:?}: {}", what())),
                Ok(Err(error)) => wrong.push(format!("{error}: {}", what())),
                Ok(Ok((status, text))) => {
                    *statuses.entry(status).or_default() += 1;
                    if status >= 500 {
                        wrong.push(format!("{status} {text:.200}: {}", what()));
                    }
                }
            }
            slowest.push((took, bad.name));
        }
    }
    let requests = slowest.len();
    slowest.sort();
    println!("{requests} bad inputs over {} routes; statuses {statuses:?}", api.routes().len());
    for (took, name) in slowest.iter().rev().take(3) {
        println!("  {:.0} ms {name}", took.as_secs_f64() * 1e3);
    }
    if requests < LEAST {
        wrong.push(format!("only {requests} requests, {LEAST} are wanted"));
    }
    wrong
}

async fn send(h: &Harness, bad: &Bad) -> Result<(u16, String), String> {
    let mut request = h.request(bad.method.clone(), &bad.path);
    for (name, value) in &bad.headers {
        request = request.header(*name, value.as_slice());
    }
    // A request that HTTP cannot express was not sent. It counts as refused by the client.
    let Ok(request) = request.body(bad.body.clone()).build() else { return Ok((0, String::new())) };
    let answer = h.execute(request).await.map_err(|error| error.to_string())?;
    let status = answer.status().as_u16();
    let text = answer.text().await.map_err(|error| error.to_string())?;
    Ok((status, text))
}

fn bad(rng: &mut StdRng, api: &OpenApi, route: &Route, ids: &Ids) -> Bad {
    let mut ids = ids.clone();
    let kind = rng.random_range(0..10);
    if kind == 0 {
        for id in ids.values_mut() {
            if rng.random_bool(0.5) {
                *id = text(rng);
            }
        }
    }
    let mut path = route.filled(|p| ids.get(p.name.as_str()).cloned().unwrap_or_else(|| "lamp".to_owned()));
    let mut query = Vec::new();
    for parameter in route.placed("query") {
        if parameter.is_required || rng.random_bool(0.5) {
            let value = if kind == 1 && rng.random_bool(0.6) {
                text(rng)
            } else {
                let value = api.value(rng, &parameter.schema, &parameter.name, &ids, 0);
                escaped(&value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            };
            query.push(format!("{}={value}", parameter.name));
            if kind == 2 {
                query.push(format!("{}={}", parameter.name, text(rng)));
            }
        }
    }
    if kind == 3 {
        query.push(format!("unknown={}", text(rng)));
    }
    if !query.is_empty() {
        path = format!("{path}?{}", query.join("&"));
    }
    let mut headers = vec![("accept", b"application/json".to_vec())];
    let (media, schema) =
        route.bodies.choose(rng).cloned().unwrap_or(("application/json".to_owned(), json!({})));
    let mut body = if route.bodies.is_empty() {
        Vec::new()
    } else if media == "application/json" {
        let value = api.value(rng, &schema, "", &ids, 0);
        let value = if kind >= 5 { spoiled(rng, value) } else { value };
        value.to_string().into_bytes()
    } else {
        b"PK\x03\x04 or # Context Document".to_vec()
    };
    let mut media = media.into_bytes();
    if kind == 4 {
        match rng.random_range(0..8) {
            0 => media = b"text/plain".to_vec(),
            1 => media = b"application/json; charset=\xff".to_vec(),
            2 => headers.push(("if-match", text(rng).into_bytes())),
            3 => headers.push(("idempotency-key", vec![b'k'; 300])),
            4 => headers.push(("idempotency-key", b"\xc3\xa4".to_vec())),
            5 => headers.push(("last-event-id", text(rng).into_bytes())),
            6 => headers.push(("authorization", b"Bearer \xff".to_vec())),
            _ => body = raw(rng),
        }
    }
    headers.push(("content-type", media));
    Bad { name: route.name(), method: route.method.clone(), path, headers, body }
}

/// A text for a path, a query or a header.
fn text(rng: &mut StdRng) -> String {
    let fixed = [
        "%00",
        "%ff",
        "..%2f..%2fetc",
        "-1",
        "0",
        "1e9",
        "99999999999999999999",
        "null",
        "%F0%9F%92%A1",
        "%0d%0aX:y",
        "agt_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c",
        "AGT_01938F2A7C5E7D3A9B1F4C6D8E0A2B4C",
        "run_",
        "true",
        "%22%27%3B--",
        "-000001-01-01T00:00:00Z",
        "9999-12-31T23:59:59.999999999Z",
        "+023456-01-01",
        "*",
        "{a,b",
        "(a{0,99}){0,99}",
    ];
    match rng.random_range(0..4) {
        0 => "x".repeat(rng.random_range(1..6_000)),
        1 => escaped(&junk(rng).to_string().chars().take(200).collect::<String>()),
        _ => fixed.choose(rng).copied().unwrap_or_default().to_owned(),
    }
}

fn escaped(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' | b':' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02x}"),
        })
        .collect()
}

/// A body that is not JSON, or almost not.
fn raw(rng: &mut StdRng) -> Vec<u8> {
    match rng.random_range(0..9) {
        0 => b"{".to_vec(),
        1 => b"\xff\xfe{}".to_vec(),
        2 => b"\xef\xbb\xbf{}".to_vec(),
        3 => "[".repeat(100_000).into_bytes(),
        4 => br#"{"a": 1e999}"#.to_vec(),
        5 => br#"{"name": "\ud800"}"#.to_vec(),
        6 => br#"{"name": "a", "name": "b"}"#.to_vec(),
        7 => Value::Null.to_string().into_bytes(),
        _ => (0..rng.random_range(0..2_000)).map(|_| rng.random()).collect(),
    }
}
