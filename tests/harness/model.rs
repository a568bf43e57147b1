//! A model with answers that a test defines: an OpenAI-compatible server on a free port.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use domain::models::price_list::{SetPrice, SetRates};
use domain::models::prices::{self, Rates};
use domain::models::{ModelId, ModelRef, PriceList, ServerName, Vendor};
use models::{ModelsConfig, ServerConfig};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

/// The model's next answer.
#[derive(Clone, Debug)]
pub enum Says {
    Text(String),
    /// What it thinks, and what it says.
    Thought(String, String),
    Call(&'static str, Value),
    /// Several calls in one reply.
    Calls(Vec<(&'static str, Value)>),
    /// A call whose arguments are cut off where the reply reached its limit.
    CutCall(&'static str, &'static str),
    /// It refuses the request as invalid.
    Refuses,
}

/// Computes the answer from the messages of a request.
pub type Script = fn(&[Value]) -> Says;

/// A model server that runs until it is dropped.
pub struct ScriptedModel {
    address: std::net::SocketAddr,
    shared: Arc<Shared>,
    asked: watch::Receiver<usize>,
    server: JoinHandle<()>,
}

struct Shared {
    script: Script,
    /// Each request for work takes one permit.
    permits: Semaphore,
    asked: watch::Sender<usize>,
    output_tokens: AtomicUsize,
    /// The longest conversation that it accepts, in bytes.
    context: AtomicUsize,
    /// How long it thinks about a request for work, in milliseconds.
    thinks_ms: AtomicUsize,
    /// The `retry-after` seconds of each refusal. One request for work is refused per entry.
    refusals: Mutex<VecDeque<u64>>,
    /// The bodies of the requests for work.
    sent: Mutex<Vec<Value>>,
    /// Their `Authorization` headers.
    keys: Mutex<Vec<String>>,
    /// When each request came, also for a check.
    received: Mutex<Vec<Instant>>,
    /// What it answers to the next checks.
    verdicts: Mutex<VecDeque<String>>,
    /// What it answers when it is asked to sort the next messages to the theme agent.
    sorts: Mutex<VecDeque<String>>,
    /// The status of its list of models, and how often it was asked for it.
    list_status: AtomicU16,
    listed: AtomicUsize,
}

impl ScriptedModel {
    /// A model that answers at once.
    pub async fn start(script: Script) -> Self {
        let model = Self::held(script).await;
        model.allow(Semaphore::MAX_PERMITS);
        model
    }

    /// A model that answers requests for work only as often as [`Self::allow`] permits.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn held(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        let (sender, asked) = watch::channel(0);
        let shared = Arc::new(Shared {
            script,
            permits: Semaphore::new(0),
            asked: sender,
            output_tokens: AtomicUsize::new(10),
            context: AtomicUsize::new(usize::MAX),
            thinks_ms: AtomicUsize::new(0),
            refusals: Mutex::default(),
            sent: Mutex::default(),
            keys: Mutex::default(),
            received: Mutex::default(),
            verdicts: Mutex::default(),
            sorts: Mutex::default(),
            list_status: AtomicU16::new(200),
            listed: AtomicUsize::new(0),
        });
        let app = Router::new()
            .route("/chat/completions", post(complete))
            .route("/models", get(list))
            .with_state(shared.clone());
        let server = tokio::spawn(async move { axum::serve(listener, app).await.expect("it serves") });
        Self { address, shared, asked, server }
    }

    pub fn allow(&self, answers: usize) {
        self.shared.permits.add_permits(answers);
    }

    /// From now on it answers with this status when it is asked for its list of models.
    pub fn lists(&self, status: u16) {
        self.shared.list_status.store(status, Ordering::Relaxed);
    }

    /// How often it was asked for its list of models.
    #[must_use]
    pub fn listed(&self) -> usize {
        self.shared.listed.load(Ordering::Relaxed)
    }

    /// Sets the number of output tokens that it reports per answer.
    pub fn costs(&self, output_tokens: usize) {
        self.shared.output_tokens.store(output_tokens, Ordering::Relaxed);
    }

    /// From now on it refuses requests for work whose messages have more bytes.
    pub fn has_context(&self, bytes: usize) {
        self.shared.context.store(bytes, Ordering::Relaxed);
    }

    /// From now on it takes this long for each request for work.
    pub fn takes(&self, time: std::time::Duration) {
        self.shared.thinks_ms.store(time.as_millis() as usize, Ordering::Relaxed);
    }

    /// Refuses the next requests for work with a rate limit, one request per entry. An entry is the `retry-after` in
    /// seconds; 0 sends none.
    pub fn refuses(&self, retry_after: impl IntoIterator<Item = u64>) {
        self.shared.refusals.lock().unwrap_or_else(PoisonError::into_inner).extend(retry_after);
    }

    /// From now on it refuses nothing.
    pub fn forgives(&self) {
        self.shared.refusals.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Answers the next checks with these, in order. After that every output is good.
    pub fn finds<'a>(&self, verdicts: impl IntoIterator<Item = &'a str>) {
        let verdicts = verdicts.into_iter().map(str::to_owned);
        self.shared.verdicts.lock().unwrap_or_else(PoisonError::into_inner).extend(verdicts);
    }

    /// Answers with these when it is asked to sort the next messages to the theme agent. After that it says nothing that can be used. Such
    /// requests are no requests for work.
    pub fn sorts<'a>(&self, answers: impl IntoIterator<Item = &'a str>) {
        let answers = answers.into_iter().map(str::to_owned);
        self.shared.sorts.lock().unwrap_or_else(PoisonError::into_inner).extend(answers);
    }

    /// How many verdicts were not requested.
    #[must_use]
    pub fn verdicts_left(&self) -> usize {
        self.shared.verdicts.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The requests for work, oldest first.
    #[must_use]
    pub fn sent(&self) -> Vec<Value> {
        self.shared.sent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The `Authorization` headers of the requests for work, oldest first.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        self.shared.keys.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// When each request came, oldest first. Requests for a check are among them.
    #[must_use]
    pub fn received(&self) -> Vec<Instant> {
        self.shared.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many requests for work it has received.
    #[must_use]
    pub fn asked(&self) -> usize {
        *self.asked.borrow()
    }

    /// Waits until it has received `times` requests for work.
    ///
    /// # Panics
    /// If the model has stopped.
    pub async fn asked_times(&self, times: usize) {
        self.asked.clone().wait_for(|asked| *asked >= times).await.expect("the model is there");
    }

    /// The configuration that uses this server as the model `model`. A known model has its known price, and another one costs nothing.
    ///
    /// # Panics
    /// If the price is invalid.
    #[must_use]
    pub fn config(&self, model: &str) -> ModelsConfig {
        let reference =
            ModelRef { vendor: Vendor::Server(ServerName::COMPATIBLE), model: ModelId::new(model) };
        let mut config = self.server();
        if let Some(price) = prices::price(&reference.model) {
            let Rates { input, cache_read, cache_write_5m, output, .. } = price.rates;
            let rates = SetRates {
                input,
                output,
                cache_read: Some(cache_read),
                cache_write: Some(cache_write_5m),
                max_input_tokens: Some(price.max_input),
                max_output_tokens: Some(price.max_output),
            };
            config.prices.set(&reference, SetPrice::Rates(rates)).expect("a price");
        }
        ModelsConfig { forced: Some(reference), ..config }
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The configuration that has this server beside other providers. It costs nothing.
    #[must_use]
    pub fn server(&self) -> ModelsConfig {
        free_server(ServerConfig::at(self.url()))
    }
}

/// The configuration with one server, `compatible`, whose models cost nothing.
///
/// # Panics
/// Never.
#[must_use]
pub fn free_server(server: ServerConfig) -> ModelsConfig {
    ModelsConfig {
        servers: [(ServerName::COMPATIBLE, server)].into(),
        prices: PriceList::parse(r#"{"compatible/*": "free"}"#).expect("a price"),
        ..ModelsConfig::default()
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn list(State(model): State<Arc<Shared>>) -> Response {
    model.listed.fetch_add(1, Ordering::Relaxed);
    let status = StatusCode::from_u16(model.list_status.load(Ordering::Relaxed)).expect("a status");
    let body = match status.is_success() {
        true => json!({"object": "list", "data": [{"id": "scripted", "object": "model"}]}),
        false => json!({"error": {"message": "no", "type": "error"}}),
    };
    (status, Json(body)).into_response()
}

/// The delta of a reply with these calls, and why it ends.
fn calling(calls: Vec<(&'static str, Value)>) -> (Value, &'static str) {
    let call = |(at, (name, arguments)): (usize, (&str, Value))| {
        let function = json!({"name": name, "arguments": arguments.to_string()});
        json!({"index": at, "id": format!("call_{}", at + 1), "type": "function", "function": function})
    };
    let calls: Vec<Value> = calls.into_iter().enumerate().map(call).collect();
    (json!({"role": "assistant", "content": null, "tool_calls": calls}), "tool_calls")
}

async fn complete(State(model): State<Arc<Shared>>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    model.received.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
    let first = body["messages"][0]["content"].as_str().unwrap_or_default();
    let is_check = first.contains("lamplighter:check");
    let says = if first.starts_with("You sort one request of a merchant") {
        let answer = model.sorts.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        Says::Text(answer.unwrap_or_else(|| "I can't tell.".to_owned()))
    } else if !is_check {
        model.sent.lock().unwrap_or_else(PoisonError::into_inner).push(body.clone());
        let key = headers.get("authorization").and_then(|key| key.to_str().ok()).unwrap_or_default();
        model.keys.lock().unwrap_or_else(PoisonError::into_inner).push(key.to_owned());
        model.asked.send_modify(|asked| *asked += 1);
        if body["messages"].to_string().len() > model.context.load(Ordering::Relaxed) {
            let error = json!({"error": {
                "message": "This model's maximum context length is 10 tokens.", "type": "invalid_request_error",
                "param": "messages", "code": "context_length_exceeded",
            }});
            return (StatusCode::BAD_REQUEST, Json(error)).into_response();
        }
        if let Some(seconds) = model.refusals.lock().unwrap_or_else(PoisonError::into_inner).pop_front() {
            let error = Json(json!({"error": {"message": "slow down", "type": "rate_limit_error"}}));
            let mut response = (StatusCode::TOO_MANY_REQUESTS, error).into_response();
            if seconds > 0 {
                response.headers_mut().insert(RETRY_AFTER, seconds.into());
            }
            return response;
        }
        model.permits.acquire().await.expect("it is never closed").forget();
        let thinks = std::time::Duration::from_millis(model.thinks_ms.load(Ordering::Relaxed) as u64);
        tokio::time::sleep(thinks).await;
        (model.script)(body["messages"].as_array().map_or(&[], Vec::as_slice))
    } else {
        let verdict = model.verdicts.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let good = || json!({"score": 90, "meets": true, "missing": []}).to_string();
        Says::Text(verdict.unwrap_or_else(good))
    };
    let (delta, finish) = match says {
        Says::Text(text) => (json!({"role": "assistant", "content": text}), "stop"),
        Says::Thought(thought, text) => {
            (json!({"role": "assistant", "reasoning_content": thought, "content": text}), "stop")
        }
        Says::Refuses => {
            let error = json!({"error": {"message": "no", "type": "invalid_request_error"}});
            return (StatusCode::BAD_REQUEST, Json(error)).into_response();
        }
        Says::Call(name, arguments) => calling(vec![(name, arguments)]),
        Says::Calls(calls) => calling(calls),
        Says::CutCall(name, arguments) => {
            let function = json!({"name": name, "arguments": arguments});
            let call = json!({"index": 0, "id": "call_1", "type": "function", "function": function});
            (json!({"role": "assistant", "content": null, "tool_calls": [call]}), "length")
        }
    };
    let chunk = |choices: Value, usage: Value| {
        let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 0, "model": body["model"],
            "choices": choices, "usage": usage});
        format!("data: {chunk}\n\n")
    };
    let output = model.output_tokens.load(Ordering::Relaxed);
    let usage = json!({"prompt_tokens": 10, "completion_tokens": output, "total_tokens": 10 + output});
    let frames = [
        chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]), Value::Null),
        chunk(json!([{"index": 0, "delta": {}, "finish_reason": finish}]), Value::Null),
        chunk(json!([]), usage),
        "data: [DONE]\n\n".to_owned(),
    ];
    ([(CONTENT_TYPE, "text/event-stream")], frames.concat()).into_response()
}
