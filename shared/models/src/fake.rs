//! A model server for tests. It refuses what the real servers refuse, gives prepared answers, and records its requests.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::stream::{self, StreamExt};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{Endpoint, ModelLimits, Retry, aws, strict};

/// The server's response to one request.
pub enum FakeResponse {
    Refuse {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: String,
    },
    Stream(Vec<Piece>),
    /// Never sends headers.
    Silence,
}

/// One step of a streamed answer.
#[derive(Clone)]
pub enum Piece {
    Bytes(Vec<u8>),
    /// Sends nothing more, and does not end the stream.
    Hang,
    /// The connection breaks.
    Break,
}

pub struct Fake {
    pub address: String,
    state: Shared,
    /// Receives a message whenever an answer's body is dropped before its end.
    pub left: mpsc::UnboundedReceiver<()>,
}

#[derive(Clone)]
struct Shared {
    answers: Arc<Mutex<VecDeque<FakeResponse>>>,
    requests: Arc<Mutex<Vec<(HeaderMap, Value)>>>,
    paths: Arc<Mutex<Vec<String>>>,
    left: mpsc::UnboundedSender<()>,
}

impl Fake {
    pub async fn start(answers: impl IntoIterator<Item = FakeResponse>) -> Self {
        let (sender, left) = mpsc::unbounded_channel();
        let state = Shared {
            answers: Arc::new(Mutex::new(answers.into_iter().collect())),
            requests: Arc::default(),
            paths: Arc::default(),
            left: sender,
        };
        let app = Router::new()
            .route("/v1/{*path}", post(answer))
            .route("/v1beta/{*path}", post(answer))
            .route("/model/{*path}", post(answer))
            .route(
                "/v1/models",
                get(|| async { axum::Json(json!({"data": [{"id": "first:7b"}, {"id": "second"}]})) }),
            )
            .with_state(state.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, state, left }
    }

    pub fn anthropic(&self) -> Endpoint {
        Endpoint::anthropic(&self.address, "key").unwrap().with_limits(limits())
    }

    pub fn openai(&self) -> Endpoint {
        Endpoint::bearer(&format!("{}/v1/", self.address), Some("key")).unwrap().with_limits(limits())
    }

    pub fn google(&self) -> Endpoint {
        Endpoint::google(&self.address, "key").unwrap().with_limits(limits())
    }

    pub fn bedrock(&self) -> Endpoint {
        Endpoint::bedrock("eu-west-1", Some(&self.address), &aws::tests::keys())
            .unwrap()
            .with_limits(limits())
    }

    /// The paths of the requests, as they were sent.
    pub fn paths(&self) -> Vec<String> {
        self.state.paths.lock().unwrap().clone()
    }

    pub fn requests(&self) -> Vec<(HeaderMap, Value)> {
        self.state.requests.lock().unwrap().clone()
    }
}

/// Limits that are too long to matter in tests, except for the pauses, which are short.
pub fn limits() -> ModelLimits {
    let retry = Retry {
        first_pause: Duration::from_millis(1),
        longest_pause: Duration::from_millis(4),
        ..Retry::default()
    };
    ModelLimits { retry, ..ModelLimits::default() }
}

/// A whole answer in one piece.
pub fn whole(text: &str) -> FakeResponse {
    FakeResponse::Stream(vec![Piece::Bytes(text.into())])
}

pub fn refuse(status: u16, headers: &[(&'static str, &str)], body: &str) -> FakeResponse {
    let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    FakeResponse::Refuse { status, headers, body: body.to_owned() }
}

async fn answer(
    State(state): State<Shared>,
    Path(path): Path<String>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap();
    state.paths.lock().unwrap().push(uri.path().to_owned());
    state.requests.lock().unwrap().push((headers.clone(), body.clone()));
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let fault = match path.as_str() {
        "messages" if header("x-api-key") != "key" => {
            Some((401, "authentication_error", "invalid x-api-key".to_owned()))
        }
        "messages" if header("anthropic-version") != "2023-06-01" => {
            Some((400, "invalid_request_error", "anthropic-version: header is required".to_owned()))
        }
        "messages"
            if !body["context_management"].is_null()
                && header("anthropic-beta") != "context-management-2025-06-27" =>
        {
            let message = "context_management: Extra inputs are not permitted".to_owned();
            Some((400, "invalid_request_error", message))
        }
        "messages" => strict::check(&body).err().map(|message| (400, "invalid_request_error", message)),
        "chat/completions" | "responses" | "embeddings" if header("authorization") != "Bearer key" => {
            Some((401, "invalid_request_error", "Incorrect API key provided: k**.".to_owned()))
        }
        "chat/completions" | "responses" | "embeddings" => None,
        path if path.ends_with(":streamGenerateContent") || path.ends_with(":batchEmbedContents") => {
            (header("x-goog-api-key") != "key")
                .then(|| (400, "INVALID_ARGUMENT", "API key not valid.".to_owned()))
        }
        path if path.ends_with("/invoke") => {
            let signed = header("authorization").starts_with("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/");
            (!signed).then(|| (400, "ValidationException", "not signed".to_owned()))
        }
        path if path.ends_with("/converse-stream") => {
            let signed = header("authorization").starts_with("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/");
            let fault =
                if signed { strict::check_converse(&body).err() } else { Some("not signed".to_owned()) };
            fault.map(|message| (400, "ValidationException", message))
        }
        _ => Some((404, "not_found_error", path)),
    };
    if let Some((status, kind, message)) = fault {
        let body =
            json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"});
        return (StatusCode::from_u16(status).unwrap(), axum::Json(body)).into_response();
    }
    let next = state.answers.lock().unwrap().pop_front();
    match next.expect("the test has an answer for every request") {
        FakeResponse::Refuse { status, headers, body } => {
            let mut response = (StatusCode::from_u16(status).unwrap(), body).into_response();
            for (name, value) in headers {
                response.headers_mut().insert(name, value.parse().unwrap());
            }
            response
        }
        FakeResponse::Silence => {
            let _notify = NotifyOnDrop(state.left);
            std::future::pending().await
        }
        FakeResponse::Stream(pieces) => {
            let notify = NotifyOnDrop(state.left);
            let pieces = stream::iter(pieces).then(move |piece| {
                let _held = &notify;
                async move {
                    // Yield, so that the pieces arrive one by one.
                    tokio::task::yield_now().await;
                    match piece {
                        Piece::Bytes(bytes) => Ok(bytes),
                        Piece::Hang => std::future::pending().await,
                        Piece::Break => Err(std::io::Error::other("broken on purpose")),
                    }
                }
            });
            Response::builder()
                .header("content-type", "text/event-stream")
                .body(Body::from_stream(pieces))
                .unwrap()
        }
    }
}

/// Sends a message when it is dropped.
struct NotifyOnDrop(mpsc::UnboundedSender<()>);

impl Drop for NotifyOnDrop {
    fn drop(&mut self) {
        // The test may already be over.
        let _ = self.0.send(());
    }
}
