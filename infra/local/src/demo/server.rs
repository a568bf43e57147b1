//! The demo's HTTP interface: `POST /v1/messages`, streamed or whole. It refuses what the real API would refuse.

use std::collections::HashSet;
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures::stream::{self, StreamExt};
use models::strict;
use serde_json::{Value, json};

use super::ask::Ask;
use super::reply::DemoReply;
use super::rules;
use crate::engines::ports::guarded;
use crate::served::Served;

/// The most cached prefixes. When there are more, all are forgotten.
const MAX_CACHED: usize = 4_096;

#[derive(Debug, Clone, Copy, Default)]
pub struct DemoSettings {
    /// A pause after each word of a streamed answer.
    pub delay_per_word: Duration,
}

/// A demo model that answers on a loopback port until it is dropped.
///
/// Its address contains a secret that is made at each start, and it refuses requests of web pages, so only this process
/// can use it.
#[derive(Debug)]
pub struct DemoModel {
    served: Served,
    secret: String,
}

impl DemoModel {
    /// Starts on a free loopback port.
    ///
    /// # Errors
    /// If there is no free port.
    pub async fn start(settings: DemoSettings) -> io::Result<Self> {
        let secret = domain::hex(&rand::random::<[u8; 16]>());
        let state = Demo { settings, cached: Arc::default() };
        let app = Router::new().route(&format!("/{secret}/v1/messages"), post(messages)).with_state(state);
        let served = Served::on_loopback(guarded(app.into())).await?;
        Ok(Self { served, secret })
    }

    /// The base address without `/v1`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/{}", self.served.address, self.secret)
    }
}

#[derive(Clone)]
struct Demo {
    settings: DemoSettings,
    /// Hashes of the prefixes that were marked before.
    cached: Arc<Mutex<HashSet<u64>>>,
}

async fn messages(State(demo): State<Demo>, headers: HeaderMap, body: Bytes) -> Response {
    // Clients send their key in either header.
    if !headers.contains_key("x-api-key") && !headers.contains_key(header::AUTHORIZATION) {
        return refuse(StatusCode::UNAUTHORIZED, "authentication_error", "x-api-key header is required");
    }
    if !headers.contains_key("anthropic-version") {
        return refuse(
            StatusCode::BAD_REQUEST,
            "invalid_request_error",
            "anthropic-version: header is required",
        );
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    if let Err(message) = strict::check(&body) {
        return refuse(StatusCode::BAD_REQUEST, "invalid_request_error", &message);
    }
    let input = demo.count_input(&body);
    let reply = Reply::new(&body, rules::answer(&Ask::read(&body)));
    if body["stream"] != true {
        return axum::Json(reply.whole(input)).into_response();
    }
    let delay = demo.settings.delay_per_word;
    let frames = stream::iter(reply.frames(input)).then(move |frame| async move {
        if !delay.is_zero() && frame["type"] == "content_block_delta" {
            tokio::time::sleep(delay).await;
        }
        Ok::<_, Infallible>(format!(
            "event: {}\ndata: {frame}\n\n",
            frame["type"].as_str().unwrap_or_default()
        ))
    });
    ([(header::CONTENT_TYPE, "text/event-stream; charset=utf-8")], Body::from_stream(frames)).into_response()
}

fn refuse(status: StatusCode, kind: &str, message: &str) -> Response {
    let error = json!({"type": kind, "message": message});
    (status, axum::Json(json!({"type": "error", "error": error, "request_id": "req_demo"}))).into_response()
}

impl Demo {
    /// The input part of the usage. A prefix that was marked before is read from the cache, a newly marked one is
    /// written to it, and the rest is uncached.
    fn count_input(&self, body: &Value) -> Value {
        let mut hasher = DefaultHasher::new();
        let (mut bytes, mut read, mut marked) = (0, 0, 0);
        let (mut minutes, mut hour) = (0, 0);
        let mut cached = self.cached.lock().expect("nothing panics while it is held");
        if cached.len() > MAX_CACHED {
            cached.clear();
        }
        body["model"].as_str().hash(&mut hasher);
        for (role, block) in blocks(body) {
            let mut plain = block.clone();
            let mark = plain.as_object_mut().and_then(|block| block.remove("cache_control"));
            let text = plain.to_string();
            (role, &text).hash(&mut hasher);
            bytes += text.len();
            let Some(mark) = mark else { continue };
            let new = cached.insert(hasher.finish());
            let span = tokens(bytes) - marked;
            marked = tokens(bytes);
            match (new, mark["ttl"] == "1h") {
                // Everything before a known prefix is also known, independent of its marks.
                (false, _) => (read, minutes, hour) = (marked, 0, 0),
                (true, true) => hour += span,
                (true, false) => minutes += span,
            }
        }
        json!({
            "input_tokens": tokens(bytes) - marked,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": minutes + hour,
            "cache_creation": {"ephemeral_5m_input_tokens": minutes, "ephemeral_1h_input_tokens": hour},
            "output_tokens": 1,
        })
    }
}

/// The parts of a prefix, in order.
fn blocks(body: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let tools = list(&body["tools"]).iter().map(|tool| ("tools", tool));
    let system = list(&body["system"]).iter().map(|block| ("system", block));
    let messages = list(&body["messages"]).iter().flat_map(|message| {
        let role = message["role"].as_str().unwrap_or_default();
        list(&message["content"]).iter().map(move |block| (role, block))
    });
    tools.chain(system).chain(messages).filter(|(_, block)| !block.is_null())
}

/// The items of a list, or a single value as a list of one.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice)
}

fn tokens(bytes: usize) -> usize {
    bytes.div_ceil(4)
}

/// An answer, cut to the requested length.
struct Reply {
    id: String,
    model: Value,
    text: String,
    /// The tool's name, and its input as JSON.
    call: Option<(String, String)>,
    stop: &'static str,
    output_tokens: usize,
}

impl Reply {
    fn new(body: &Value, answer: DemoReply) -> Self {
        let limit =
            body["max_tokens"].as_u64().and_then(|max| usize::try_from(max).ok()).unwrap_or(usize::MAX);
        let mut left = limit.saturating_mul(4);
        let mut cut = |mut text: String| {
            let whole = text.len() <= left;
            text.truncate(text.floor_char_boundary(left));
            left -= text.len();
            (text, whole)
        };
        let (text, mut whole) = cut(answer.text);
        let call = answer.call.filter(|_| whole).map(|(name, input)| {
            let (json, fits) = cut(input.to_string());
            whole = fits;
            (name, json)
        });
        let output = text.len() + call.as_ref().map_or(0, |(name, json)| name.len() + json.len());
        let mut hasher = DefaultHasher::new();
        body.to_string().hash(&mut hasher);
        Self {
            id: format!("{:016x}", hasher.finish()),
            model: body["model"].clone(),
            stop: match (whole, &call) {
                (false, _) => "max_tokens",
                (true, Some(_)) => "tool_use",
                (true, None) => "end_turn",
            },
            text,
            call,
            output_tokens: tokens(output).clamp(1, limit),
        }
    }

    fn message(&self, content: Vec<Value>, stop: Value, usage: Value) -> Value {
        json!({
            "id": format!("msg_demo_{}", self.id), "type": "message", "role": "assistant", "model": self.model,
            "content": content, "stop_reason": stop, "stop_sequence": null, "usage": usage,
        })
    }

    fn call_block(&self, name: &str, input: Value) -> Value {
        json!({"type": "tool_use", "id": format!("toolu_demo_{}", self.id), "name": name, "input": input})
    }

    fn whole(&self, mut usage: Value) -> Value {
        usage["output_tokens"] = self.output_tokens.into();
        let mut content = Vec::new();
        if !self.text.is_empty() {
            content.push(json!({"type": "text", "text": self.text}));
        }
        // A call that is cut off can't be written as JSON.
        if let Some((name, json)) = &self.call
            && let Ok(input) = serde_json::from_str(json)
        {
            content.push(self.call_block(name, input));
        }
        self.message(content, self.stop.into(), usage)
    }

    fn frames(&self, usage: Value) -> Vec<Value> {
        let mut frames =
            vec![json!({"type": "message_start", "message": self.message(Vec::new(), Value::Null, usage)})];
        let mut block = |index: usize, block: Value, deltas: Vec<Value>| {
            frames.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
            if index == 0 {
                frames.push(json!({"type": "ping"}));
            }
            let deltas = deltas.into_iter();
            frames.extend(
                deltas.map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})),
            );
            frames.push(json!({"type": "content_block_stop", "index": index}));
        };
        let mut index = 0;
        if !self.text.is_empty() {
            let deltas =
                pieces(&self.text).map(|piece| json!({"type": "text_delta", "text": piece})).collect();
            block(index, json!({"type": "text", "text": ""}), deltas);
            index += 1;
        }
        if let Some((name, json)) = &self.call {
            let deltas = pieces(json)
                .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
                .collect();
            block(index, self.call_block(name, json!({})), deltas);
        }
        frames.push(json!({
            "type": "message_delta", "delta": {"stop_reason": self.stop, "stop_sequence": null},
            "usage": {"output_tokens": self.output_tokens},
        }));
        frames.push(json!({"type": "message_stop"}));
        frames
    }
}

/// Words, each with the space after it.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ')
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
