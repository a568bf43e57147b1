//! A model with the Chat Completions format. It answers a chat in two pieces, does a task with one output, and accepts
//! every output.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::routing::post;
use axum::{Json, Router};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// The output of a task.
pub const OUTPUT: &str = "# Lamp oil\n\nThe price has not moved.\n";

/// The `Authorization` of each request.
type Keys = Arc<Mutex<Vec<String>>>;

/// The running model.
pub struct FakeModel {
    address: SocketAddr,
    gate: Arc<Semaphore>,
    keys: Keys,
    server: tokio::task::JoinHandle<()>,
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl FakeModel {
    pub async fn start() -> Self {
        let gate = Arc::new(Semaphore::new(Semaphore::MAX_PERMITS));
        let keys = Keys::default();
        let app = Router::new()
            .route("/v1/chat/completions", post(complete))
            .with_state((Arc::clone(&gate), keys.clone()));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, gate, keys, server }
    }

    /// For `LAMPLIGHTER_MODEL_URL`.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The `Authorization` of each request so far. Empty for a request without one.
    pub fn keys(&self) -> Vec<String> {
        self.keys.lock().unwrap().clone()
    }

    /// Stops every reply after its first piece, until [`FakeModel::release`].
    pub fn hold(&self) {
        self.gate.forget_permits(Semaphore::MAX_PERMITS);
    }

    /// Continues the stopped replies and all later ones.
    pub fn release(&self) {
        self.gate.add_permits(Semaphore::MAX_PERMITS / 2);
    }
}

async fn complete(
    State((gate, keys)): State<(Arc<Semaphore>, Keys)>,
    headers: HeaderMap,
    Json(request): Json<Value>,
) -> impl IntoResponse {
    let key = headers.get("authorization").map(|key| key.to_str().unwrap().to_owned());
    keys.lock().unwrap().push(key.unwrap_or_default());
    let [first, second] = reply(&request);
    let end = if second["tool_calls"].is_array() { "tool_calls" } else { "stop" };
    let data = |value: Value| Ok::<_, Infallible>(format!("data: {value}\n\n"));
    let piece = move |delta: Value| data(json!({"model": "fake", "choices": [{"index": 0, "delta": delta}]}));
    let rest = async move {
        gate.acquire().await.expect("the gate is never closed").forget();
        futures::stream::iter([
            piece(second),
            data(json!({"model": "fake", "choices": [{"index": 0, "delta": {}, "finish_reason": end}]})),
            data(
                json!({"model": "fake", "choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 5}}),
            ),
            Ok("data: [DONE]\n\n".to_owned()),
        ])
    };
    let frames = futures::stream::iter([piece(first)]).chain(futures::stream::once(rest).flatten());
    ([("content-type", "text/event-stream")], Body::from_stream(frames))
}

/// The two pieces of the answer to a request.
fn reply(request: &Value) -> [Value; 2] {
    let messages = request["messages"].as_array().unwrap();
    let system = messages[0]["content"].as_str().unwrap_or_default();
    let text = |first: &str, second: &str| [json!({"content": first}), json!({"content": second})];
    if system.contains("<lamplighter:check>") {
        return text("{\"score\": 90, ", "\"meets\": true, \"missing\": []}");
    }
    let done = messages.last().is_some_and(|message| message["role"] == "tool");
    let said = |text: &str| {
        messages.iter().any(|message| message["content"].as_str().is_some_and(|c| c.contains(text)))
    };
    if said("Ask first") && !said("The person answered") && !done && system.contains("<lamplighter:run>") {
        let function =
            json!({"name": "ask_person", "arguments": json!({"question": "Which oil?"}).to_string()});
        let call = json!({"index": 0, "id": "call_1", "type": "function", "function": function});
        return [json!({"content": "I ask."}), json!({"tool_calls": [call]})];
    }
    if system.contains("<lamplighter:run>") && !done {
        let arguments = json!({"title": "Lamp oil", "content": OUTPUT}).to_string();
        let function = json!({"name": "save_output", "arguments": arguments});
        let call = json!({"index": 0, "id": "call_1", "type": "function", "function": function});
        return [json!({"content": "I save it."}), json!({"tool_calls": [call]})];
    }
    text("The lamp ", "is lit.")
}
