//! A function of each kind whose handlers panic on demand. The real runner runs it.

use std::process::ExitCode;

use axum::Router;
use axum::body::Body;
use futures::FutureExt;
use futures::stream::{self, StreamExt};
use models::Models;
use serde_json::{Value, json};
use shared::Cx;
use shared::runtime::function::{Function, Trigger};

/// Panic messages contain this text; no response or log may contain it.
const SECRET: &str = "a secret word";

fn main() -> ExitCode {
    let trigger = match std::env::var("PANICKING_AS").as_deref() {
        Ok("buffered") => Trigger::Http { routes, streaming: false },
        Ok("streaming") => Trigger::Http { routes, streaming: true },
        Ok("timer") => Trigger::Timer {
            every: std::time::Duration::from_secs(60),
            newest: None,
            handler: |_, invocation| {
                // A timer's event is empty, so the deadline selects the behaviour.
                let long = invocation.deadline > jiff::Timestamp::now() + jiff::SignedDuration::from_secs(60);
                async move {
                    told(if long { "panic" } else { "well" }).await;
                    Ok(json!("well"))
                }
                .boxed()
            },
        },
        Ok("queue") => Trigger::Queue {
            handler: |_, _, message: Value| {
                async move {
                    told(message["do"].as_str().unwrap_or_default()).await;
                    Ok(())
                }
                .boxed()
            },
        },
        Ok("upload") => Trigger::Upload {
            handler: |_, _, uploaded| {
                async move {
                    told(&uploaded.key).await;
                    Ok(())
                }
                .boxed()
            },
        },
        Ok("authorizer") => Trigger::Authorizer {
            handler: |_, event: Value| {
                async move {
                    told(event["do"].as_str().unwrap_or_default()).await;
                    Ok(event)
                }
                .boxed()
            },
        },
        other => panic!("PANICKING_AS is {other:?}"),
    };
    shared::runtime::lambda::run(&Function { name: "panicking", trigger, models: Models::none, areas: &[] })
}

async fn told(what: &str) {
    // Like a slice inside a character, which panics with a message that quotes the text.
    assert!(what != "panic", "{SECRET}");
}

fn routes() -> Router<Cx> {
    use axum::routing::get;
    let broken = || async {
        let pieces = stream::iter(["one", "two"]).map(|piece| {
            assert!(piece != "two", "{SECRET}");
            Ok::<_, std::convert::Infallible>(piece)
        });
        Body::from_stream(pieces)
    };
    Router::new()
        .route("/well", get(|| async { "well" }))
        .route("/panic", get(|| async { told("panic").await }))
        .route("/broken", get(broken))
}
