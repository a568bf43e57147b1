//! Answers that a client has already.

use jiff::SignedDuration;
use models::ModelsConfig;
use reqwest::Method;
use serde_json::{Value, json};
use tests::stage::{Stage, noon};
use tests::{Answer, send};

async fn ask(stage: &Stage, path: &str, tag: &str) -> Answer {
    send(stage.h.request(Method::GET, path).header("if-none-match", tag)).await
}

fn tag(answer: &Answer) -> String {
    answer.headers["etag"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_answer_that_is_the_same_is_304_without_a_body() {
    let stage = Stage::with(ModelsConfig::default()).await;
    stage.approved(json!({"schedule": {"cron": "0 20 * * *"}})).await;
    for path in ["/inbox", "/day", "/runs", "/search?q=report", "/agents", "/actions", "/usage", "/models"] {
        let first = stage.h.get(path).await;
        let held = tag(&first);
        assert!(held.starts_with("W/\"") && first.status == 200, "{path}: {held}");
        assert_eq!(first.headers["cache-control"], "private, no-cache");
        let again = ask(&stage, path, &held).await;
        assert_eq!((again.status, &again.body), (304, &Value::String(String::new())), "{path}");
        assert_eq!(tag(&again), held);
        for other in ["\"x\"", "W/\"0\"", "3"] {
            assert_eq!(ask(&stage, path, other).await.status, 200, "{path} {other}");
        }
    }
}

#[tokio::test]
async fn a_change_is_told_and_the_time_alone_is_none() {
    let stage = Stage::with(ModelsConfig::default()).await;
    let (inbox, day) = (tag(&stage.h.get("/inbox").await), tag(&stage.h.get("/day").await));
    stage.clock.set(noon() + SignedDuration::from_secs(30));
    assert_eq!(
        (ask(&stage, "/inbox", &inbox).await.status, ask(&stage, "/day", &day).await.status),
        (304, 304)
    );
    let id = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    assert_eq!(ask(&stage, "/inbox", &inbox).await.status, 304, "nothing waits");
    let changed = ask(&stage, "/day", &day).await;
    assert_eq!((changed.status, changed.body["data"].as_array().map(Vec::len)), (200, Some(11)));
    let day = tag(&changed);
    stage.h.post(&format!("/actions/{id}/run"), json!({})).await.expect(202);
    let live = ask(&stage, "/inbox", &inbox).await;
    assert_eq!((live.status, &live.body["live"]), (200, &json!(1)));
    assert_eq!(ask(&stage, "/day", &day).await.status, 200);
}

/// A version is no hash of the answer: an agent's counts change, and its version does not.
#[tokio::test]
async fn what_has_a_version_is_always_sent() {
    let stage = Stage::with(ModelsConfig::default()).await;
    let id = stage.approved(json!({})).await;
    for path in [format!("/agents/{}", stage.agent), format!("/actions/{id}"), "/account".to_owned()] {
        let held = tag(&stage.h.get(&path).await);
        assert!(held.starts_with('"'), "{path}: {held}");
        for held in [&*held, "*"] {
            assert_eq!(ask(&stage, &path, held).await.status, 200, "{path} {held}");
        }
    }
    // Other methods, errors and streams are left as they are.
    let missing = ask(&stage, "/agents/agt_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c", "*").await;
    assert_eq!((missing.status, missing.headers.get("etag")), (404, None));
    let made = stage.h.post("/schedules/preview", json!({"schedule": {"every": "1h"}})).await;
    assert_eq!((made.status, made.headers.get("etag")), (200, None));
}
