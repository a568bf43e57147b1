//! A bus that keeps what it is told.

#![allow(clippy::unwrap_used, reason = "a test's helpers panic as its body does")]

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use serde_json::Value;
use shared::Cx;
use shared::config::{AwsConfig, Config};
use tokio::net::TcpListener;

/// The context with a bus of its own, and the bodies of the calls of EventBridge that this bus gets and accepts.
///
/// # Panics
/// If no port is free.
pub async fn kept(cx: &Cx) -> (Cx, Arc<Mutex<Vec<Value>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let keep = told.clone();
    let put = post(async move |body: Bytes| {
        keep.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
        (
            [("content-type", "application/x-amz-json-1.1")],
            r#"{"FailedEntryCount":0,"Entries":[{"EventId":"1"}]}"#,
        )
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/", put)).await.unwrap() });
    let mut config = Config::clone(&cx.config);
    config.aws = AwsConfig { eventbridge_endpoint: Some(url), http: None, ..config.aws };
    let there = Cx::new(config, cx.clock.clone()).unwrap();
    (cx.with(|parts| parts.bus = there.bus.clone()), told)
}
