//! Web pages of other origins: configured origins may call, others may not.

use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::json;
use shared::config::CorsConfig;
use tests::{Harness, send};

const PAGE: &str = "https://app.example.com";

async fn with_pages() -> Harness {
    let origins = ["http://localhost:3000", PAGE].map(|origin| origin.parse().unwrap()).to_vec();
    Harness::with(PlatformConfig { cors: CorsConfig { origins }, ..PlatformConfig::in_memory() }).await
}

fn listed(headers: &HeaderMap, name: &str) -> Vec<String> {
    let text = headers[name].to_str().unwrap().to_ascii_lowercase();
    text.split(',').map(|each| each.trim().to_owned()).collect()
}

/// The preflight of a POST with a key.
async fn preflight(h: &Harness, origin: &str) -> tests::Answer {
    let asking = h.request(Method::OPTIONS, "/agents").header("origin", origin);
    let asking = asking.header("access-control-request-method", "POST");
    send(asking.header("access-control-request-headers", "authorization,content-type,idempotency-key")).await
}

#[tokio::test]
async fn a_configured_page_may_call_and_read_what_it_needs() {
    let h = with_pages().await;
    let told = preflight(&h, PAGE).await;
    assert_eq!((told.status, &told.headers["access-control-allow-origin"]), (200, &PAGE.parse().unwrap()));
    for method in ["get", "post", "put", "patch", "delete"] {
        assert!(
            listed(&told.headers, "access-control-allow-methods").contains(&method.to_owned()),
            "{method}"
        );
    }
    for header in ["authorization", "content-type", "idempotency-key", "if-match", "last-event-id"] {
        assert!(
            listed(&told.headers, "access-control-allow-headers").contains(&header.to_owned()),
            "{header}"
        );
    }
    assert!(!told.headers.contains_key("access-control-allow-credentials"));

    let input = json!({"name": "Watch", "goal": "An agent"});
    let made = send(h.request(Method::POST, "/agents").header("origin", PAGE).json(&input)).await;
    assert_eq!((made.status, &made.headers["access-control-allow-origin"]), (201, &PAGE.parse().unwrap()));
    for header in ["etag", "location", "retry-after", "x-request-id"] {
        assert!(
            listed(&made.headers, "access-control-expose-headers").contains(&header.to_owned()),
            "{header}"
        );
    }
    assert!(listed(&made.headers, "vary").contains(&"origin".to_owned()));
    // Pages can also read refusals.
    let missing = send(h.request(Method::GET, "/agents/agt_nothing").header("origin", PAGE)).await;
    assert_eq!(
        (missing.status, &missing.headers["access-control-allow-origin"]),
        (404, &PAGE.parse().unwrap())
    );
}

/// Uploads go to the bucket, to an address that the API has signed.
#[tokio::test]
async fn a_configured_page_may_upload() {
    let h = with_pages().await;
    let begun = h.post("/context/import", json!({"bytes": 3})).await.expect(202);
    let (url, client) = (begun["upload"]["url"].as_str().unwrap(), tests::client());
    let asked = |origin: &'static str| {
        let asking = client.request(Method::OPTIONS, url).header("origin", origin);
        let asking = asking.header("access-control-request-method", "PUT");
        send(asking.header("access-control-request-headers", "content-type,x-amz-checksum-sha256"))
    };
    let told = asked(PAGE).await;
    assert_eq!((told.status, &told.headers["access-control-allow-origin"]), (200, &PAGE.parse().unwrap()));
    assert!(listed(&told.headers, "access-control-allow-methods").contains(&"put".to_owned()));
    assert_eq!(
        listed(&told.headers, "access-control-allow-headers"),
        ["content-type", "x-amz-checksum-sha256"]
    );
    let other = asked("https://other.example.com").await;
    assert!(!other.headers.contains_key("access-control-allow-origin"));
    let upload = client.put(url).header("origin", PAGE).header("content-type", "application/zip").body("zip");
    let stored = send(upload).await;
    assert_eq!(
        (stored.status, &stored.headers["access-control-allow-origin"]),
        (200, &PAGE.parse().unwrap())
    );
    assert!(listed(&stored.headers, "access-control-expose-headers").contains(&"etag".to_owned()));
}

#[tokio::test]
async fn other_pages_get_no_permission() {
    let h = with_pages().await;
    for origin in [
        "https://other.example.com",
        "https://app.example.com.evil.example",
        "http://app.example.com",
        "null",
    ] {
        let told = preflight(&h, origin).await;
        assert!(!told.headers.contains_key("access-control-allow-origin"), "{origin}");
        let read = send(h.request(Method::GET, "/agents").header("origin", origin)).await;
        assert!(!read.headers.contains_key("access-control-allow-origin"), "{origin}");
    }
    // By default no origin is allowed.
    let h = Harness::start().await;
    let told = preflight(&h, PAGE).await;
    assert!(told.status >= 400 && !told.headers.contains_key("access-control-allow-origin"));
}
