//! The end of a Lambda's environment. A run that is in progress then is put down at once, and another process goes on with
//! it without waiting for its lease to end.
//!
//! Lambda sends SIGTERM only to an environment with an extension, so the function registers one that listens to no event.

use std::time::Duration;

use http::Request;
use lambda_runtime_api_client::{BoxError, Client, body::Body};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{sleep, timeout};

use crate::context::Cx;

const NAME: &str = "lamplighter-put-down";

/// How long the registration may take: a platform that knows no extensions must not delay the start.
const REGISTER: Duration = Duration::from_millis(500);

/// How long runs have to be put down. Lambda kills the environment 500 ms after the signal.
const PUT_DOWN: Duration = Duration::from_millis(400);

/// Puts runs down when the environment is about to end.
pub async fn watch(cx: Cx) {
    let registered = timeout(REGISTER, register()).await;
    if !matches!(registered, Ok(Ok(()))) {
        tracing::debug!("no extension is registered: the environment may end without a signal");
    }
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return };
    tokio::spawn(async move {
        terminate.recv().await;
        cx.stopping.set();
        let put_down = async {
            while !cx.live.is_empty() {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let in_time = timeout(PUT_DOWN, put_down).await.is_ok();
        tracing::info!(in_time, "the environment ends");
        std::process::exit(0);
    });
}

/// Registers an extension that is told of no event, and says that it is ready.
async fn register() -> Result<(), BoxError> {
    let api = std::env::var("AWS_LAMBDA_RUNTIME_API")?;
    let client = Client::builder().with_endpoint(format!("http://{api}").parse()?).build()?;
    let registration = Request::post("/2020-01-01/extension/register")
        .header("lambda-extension-name", NAME)
        .header("content-type", "application/json")
        .body(Body::from(r#"{"events":[]}"#))?;
    let answer = client.call(registration).await?;
    let id = answer.headers().get("lambda-extension-identifier").ok_or("no identifier")?.clone();
    let next = Request::get("/2020-01-01/extension/event/next")
        .header("lambda-extension-identifier", id)
        .body(Body::empty())?;
    // No event ever comes; the call is what says that the extension is ready.
    tokio::spawn(async move { drop(client.call(next).await) });
    Ok(())
}
