//! The end of a Lambda environment. Runs in progress are released at once, so that another process continues them
//! without waiting for the end of their leases.
//!
//! Lambda sends SIGTERM only to environments with an extension. So the function registers one that subscribes to no event.

use std::time::Duration;

use http::Request;
use lambda_runtime_api_client::{BoxError, Client, body::Body};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{sleep, timeout};

use crate::context::Cx;

const NAME: &str = "lamplighter-put-down";

/// How long the registration may take. A platform without extensions must not delay the start.
const REGISTER: Duration = Duration::from_millis(500);

/// How much time there is to release runs. Lambda kills the environment 500 ms after the signal.
const PUT_DOWN: Duration = Duration::from_millis(400);

/// Releases runs when the environment is about to end.
pub async fn watch(cx: Cx) {
    let registered = timeout(REGISTER, register()).await;
    if !matches!(registered, Ok(Ok(()))) {
        tracing::debug!("the extension was not registered; the environment may end without a signal");
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

/// Registers an extension without events, and reports that it is ready.
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
    // This call reports that the extension is ready. It never returns, because there are no events.
    tokio::spawn(async move { drop(client.call(next).await) });
    Ok(())
}
