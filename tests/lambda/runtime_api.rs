//! The part of Lambda's Runtime API that a function uses: it requests the next invocation and posts the result.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use tokio::sync::{mpsc, oneshot};

use crate::reply::{Failure, Posted, Reply};

/// An invocation on its way to the function.
struct Invocation {
    request_id: String,
    payload: Bytes,
    remaining: Duration,
}

/// The state that the server and its owner share.
struct Exchange {
    /// Locked while a poll waits: a runtime polls once at a time.
    next: tokio::sync::Mutex<mpsc::UnboundedReceiver<Invocation>>,
    waiting: Mutex<HashMap<String, oneshot::Sender<Reply>>>,
}

impl Exchange {
    fn answer(&self, request_id: &str, reply: Reply) -> StatusCode {
        match self.waiting.lock().unwrap().remove(request_id) {
            // Nobody waits after the end of the test.
            Some(waiting) => {
                let _ = waiting.send(reply);
                StatusCode::ACCEPTED
            }
            None => StatusCode::BAD_REQUEST,
        }
    }
}

/// A Runtime API for one function.
pub struct RuntimeApi {
    pub address: SocketAddr,
    invocations: mpsc::UnboundedSender<Invocation>,
    exchange: Arc<Exchange>,
    server: tokio::task::JoinHandle<()>,
}

impl Drop for RuntimeApi {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl RuntimeApi {
    pub async fn start() -> Self {
        let (invocations, next) = mpsc::unbounded_channel();
        let exchange = Arc::new(Exchange { next: next.into(), waiting: Mutex::default() });
        let app = Router::new()
            .route("/2020-01-01/extension/register", post(register))
            .route("/2020-01-01/extension/event/next", get(no_event))
            .route("/2018-06-01/runtime/invocation/next", get(next_invocation))
            .route("/2018-06-01/runtime/invocation/{request_id}/response", post(response))
            .route("/2018-06-01/runtime/invocation/{request_id}/error", post(error))
            .with_state(Arc::clone(&exchange));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, invocations, exchange, server }
    }

    /// Queues an invocation that must end within `remaining`, and waits for its result.
    pub async fn invoke(&self, payload: Bytes, remaining: Duration) -> Reply {
        let request_id = uuid::Uuid::now_v7().to_string();
        let (reply, replied) = oneshot::channel();
        self.exchange.waiting.lock().unwrap().insert(request_id.clone(), reply);
        self.invocations.send(Invocation { request_id, payload, remaining }).unwrap();
        replied.await.unwrap()
    }
}

async fn next_invocation(State(exchange): State<Arc<Exchange>>) -> impl IntoResponse {
    let Invocation { request_id, payload, remaining } =
        exchange.next.lock().await.recv().await.expect("the test holds the sender");
    let deadline = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + remaining;
    let headers = [
        ("content-type", "application/json".to_owned()),
        ("lambda-runtime-aws-request-id", request_id),
        ("lambda-runtime-deadline-ms", deadline.as_millis().to_string()),
        (
            "lambda-runtime-invoked-function-arn",
            "arn:aws:lambda:us-east-1:000000000000:function:lamplighter".to_owned(),
        ),
        (
            "lambda-runtime-trace-id",
            "Root=1-69208f10-0a1b2c3d4e5f60718293a40d;Parent=0a1b2c3d4e5f6071;Sampled=0".to_owned(),
        ),
    ];
    (headers, payload)
}

/// Only a function with an extension learns that its environment ends.
async fn register() -> impl IntoResponse {
    ([("lambda-extension-identifier", "00000000-0000-4000-8000-000000000001")], "{}")
}

async fn no_event() -> StatusCode {
    std::future::pending().await
}

async fn response(
    State(exchange): State<Arc<Exchange>>,
    Path(request_id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> StatusCode {
    // The test reads the body while it arrives. The function gets its response after everything was read.
    let (read, all_read) = oneshot::channel();
    let status = exchange.answer(&request_id, Reply::Response(Posted::new(headers, body, read)));
    let _ = all_read.await;
    status
}

async fn error(
    State(exchange): State<Arc<Exchange>>,
    Path(request_id): Path<String>,
    body: Bytes,
) -> StatusCode {
    // The runtime sends no content type.
    let failure: Failure = serde_json::from_slice(&body).expect("a failure is JSON");
    exchange.answer(&request_id, Reply::Error(failure))
}
