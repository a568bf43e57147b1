//! A fake of Anthropic's Messages API. A test writes its answers, and they are streamed as server-sent events.

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// One part of the model's answer.
#[derive(Clone, Debug)]
pub enum Block {
    Text(String),
    /// A tool call.
    Call {
        tool: String,
        input: Value,
    },
    /// A block that arrives whole, such as a search by the provider.
    Whole(Value),
}

type Script = Box<dyn Fn(&Value) -> Vec<Block> + Send + Sync>;

struct Shared {
    script: Script,
    asked: Mutex<Vec<Value>>,
}

/// A model that listens until it is dropped.
pub struct FakeAnthropic {
    pub url: String,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

impl FakeAnthropic {
    /// A model that answers each request's body as the script defines.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn start(script: impl Fn(&Value) -> Vec<Block> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it has an address"));
        let shared = Arc::new(Shared { script: Box::new(script), asked: Mutex::default() });
        let app = Router::new().route("/v1/messages", post(answer)).with_state(shared.clone());
        let server = tokio::spawn(async move { axum::serve(listener, app).await.expect("it serves") });
        Self { url, shared, server }
    }

    /// The bodies of the requests since the last call, oldest first.
    #[must_use]
    pub fn asked(&self) -> Vec<Value> {
        std::mem::take(&mut *self.shared.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for FakeAnthropic {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn answer(State(shared): State<Arc<Shared>>, Json(body): Json<Value>) -> Response {
    let blocks = (shared.script)(&body);
    shared.asked.lock().unwrap_or_else(PoisonError::into_inner).push(body.clone());
    let calls = blocks.iter().any(|block| matches!(block, Block::Call { .. }));
    let mut events = vec![event(
        "message_start",
        json!({"message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 10, "output_tokens": 1},
        }}),
    )];
    for (index, block) in blocks.iter().enumerate() {
        let (start, delta) = match block {
            Block::Whole(block) => {
                events.push(event("content_block_start", json!({"index": index, "content_block": block})));
                events.push(event("content_block_stop", json!({"index": index})));
                continue;
            }
            Block::Text(text) => {
                (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": text}))
            }
            Block::Call { tool, input } => (
                json!({"type": "tool_use", "id": format!("toolu_{}", uuid()), "name": tool, "input": {}}),
                json!({"type": "input_json_delta", "partial_json": input.to_string()}),
            ),
        };
        events.push(event("content_block_start", json!({"index": index, "content_block": start})));
        events.push(event("content_block_delta", json!({"index": index, "delta": delta})));
        events.push(event("content_block_stop", json!({"index": index})));
    }
    let stop = if calls { "tool_use" } else { "end_turn" };
    let delta = json!({"stop_reason": stop, "stop_sequence": null});
    let searches =
        blocks.iter().filter(|block| matches!(block, Block::Whole(block) if block["name"] == "web_search"));
    let usage = match searches.count() {
        0 => json!({"output_tokens": 5}),
        searches => json!({"output_tokens": 5, "server_tool_use": {"web_search_requests": searches}}),
    };
    events.push(event("message_delta", json!({"delta": delta, "usage": usage})));
    events.push(event("message_stop", json!({})));
    ([(CONTENT_TYPE, "text/event-stream")], events.concat()).into_response()
}

/// The id of a call is unique across all sessions.
fn uuid() -> String {
    format!("{:032x}", rand::random::<u128>())
}

fn event(kind: &str, mut data: Value) -> String {
    data["type"] = json!(kind);
    format!("event: {kind}\ndata: {data}\n\n")
}
