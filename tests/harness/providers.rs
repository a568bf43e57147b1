//! One server that stands for every model provider. It refuses requests that the provider would refuse, and answers the
//! others with the files of `tests/wire`, streamed or whole. Our clients and the official ones call it.
//!
//! A model whose name contains `limited` is rate-limited. One whose name contains `failing` fails after its first text.

use aws_smithy_eventstream::frame::write_message_to;
use aws_smithy_types::event_stream::{Header, HeaderValue, Message};
use axum::Router;
use axum::body::Bytes;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use models::strict;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The server. It runs until it is dropped. The key of every provider is `key`; AWS's access key id is `AKIDKEY`.
pub struct Providers {
    pub url: String,
    server: JoinHandle<()>,
}

impl Providers {
    /// # Panics
    /// If no port is free.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it has an address"));
        let app = Router::new()
            .route("/v1/{*path}", post(by_body))
            .route("/v1beta/{*path}", post(google))
            .route("/model/{*path}", post(bedrock));
        let server = tokio::spawn(async move { axum::serve(listener, app).await.expect("it serves") });
        Self { url, server }
    }
}

impl Drop for Providers {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// A provider's answers.
struct Answers {
    whole: &'static str,
    streamed: &'static str,
    limited: Value,
    /// What a stream says when it fails, and after which text.
    failing: (&'static str, Value),
}

fn answer(model: &str, stream: bool, answers: &Answers) -> Response {
    if model.contains("limited") {
        let headers = [("content-type", "application/json"), ("retry-after", "7")];
        return (StatusCode::TOO_MANY_REQUESTS, headers, answers.limited.to_string()).into_response();
    }
    if !stream {
        return ([("content-type", "application/json")], answers.whole).into_response();
    }
    let mut events = answers.streamed.to_owned();
    if model.contains("failing") {
        let (after, error) = &answers.failing;
        let place = events.find(after).expect("the answer has this text");
        events.truncate(place + events[place..].find("\n\n").expect("an event ends") + 2);
        let kind = error["type"].as_str().map(|kind| format!("event: {kind}\n")).unwrap_or_default();
        events.push_str(&format!("{kind}data: {error}\n\n"));
    }
    ([("content-type", "text/event-stream")], events).into_response()
}

fn refuse(status: StatusCode, body: &Value) -> Response {
    (status, [("content-type", "application/json")], body.to_string()).into_response()
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Anthropic and OpenAI: the body says the model, and whether to stream.
async fn by_body(Path(path): Path<String>, headers: HeaderMap, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let model = body["model"].as_str().unwrap_or_default();
    let stream = body["stream"] == true;
    if path == "messages" {
        let error = |kind: &str, message: &str| json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"});
        // Our client sends the key in a header of its own, and the official one as a bearer token.
        let has_key = text(&headers, "x-api-key") == "key" || text(&headers, "authorization") == "Bearer key";
        if !has_key {
            return refuse(StatusCode::UNAUTHORIZED, &error("authentication_error", "invalid x-api-key"));
        }
        let fault = match text(&headers, "anthropic-version") {
            "2023-06-01" | "2026-10-21" => strict::check(&body).err(),
            _ => Some("anthropic-version: header is required".to_owned()),
        };
        if let Some(message) = fault {
            return refuse(StatusCode::BAD_REQUEST, &error("invalid_request_error", &message));
        }
        let answers = Answers {
            whole: include_str!("../wire/anthropic.json"),
            streamed: include_str!("../wire/anthropic.sse"),
            limited: error("rate_limit_error", "This request would exceed your rate limit."),
            failing: ("Grüße aus", error("overloaded_error", "Overloaded")),
        };
        return answer(model, stream, &answers);
    }
    let error = |kind: &str, code: Option<&str>, message: &str| json!({"error": {"message": message, "type": kind, "param": null, "code": code}});
    if text(&headers, "authorization") != "Bearer key" {
        let error =
            error("invalid_request_error", Some("invalid_api_key"), "Incorrect API key provided: k**.");
        return refuse(StatusCode::UNAUTHORIZED, &error);
    }
    let limited =
        error("requests", Some("rate_limit_exceeded"), "Rate limit reached. Please try again in 7s.");
    let broken = error("server_error", None, "The server had an error while processing your request.");
    match path.as_str() {
        "chat/completions" => answer(
            model,
            stream,
            &Answers {
                whole: include_str!("../wire/chat.json"),
                streamed: include_str!("../wire/chat.sse"),
                limited,
                failing: ("Grüße aus", broken),
            },
        ),
        "responses" => answer(
            model,
            stream,
            &Answers {
                whole: include_str!("../wire/responses.json"),
                streamed: include_str!("../wire/responses.sse"),
                limited,
                failing: (
                    "Grüße aus",
                    json!({"type": "error", "code": "server_error", "message": "m", "param": null, "sequence_number": 14}),
                ),
            },
        ),
        _ => refuse(StatusCode::NOT_FOUND, &error("invalid_request_error", None, "Unknown request URL")),
    }
}

async fn google(Path(path): Path<String>, headers: HeaderMap, body: Bytes) -> Response {
    let error = |code: u16, status: &str, message: &str| json!({"error": {"code": code, "message": message, "status": status}});
    if text(&headers, "x-goog-api-key") != "key" {
        return refuse(StatusCode::BAD_REQUEST, &error(400, "INVALID_ARGUMENT", "API key not valid."));
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (model, method) = path.rsplit_once(':').unwrap_or_default();
    let contents = body["contents"].as_array().is_some_and(|contents| !contents.is_empty());
    let stream = match method {
        "generateContent" if contents => false,
        "streamGenerateContent" if contents => true,
        "generateContent" | "streamGenerateContent" => {
            return refuse(
                StatusCode::BAD_REQUEST,
                &error(400, "INVALID_ARGUMENT", "contents is not specified"),
            );
        }
        _ => return refuse(StatusCode::NOT_FOUND, &error(404, "NOT_FOUND", "m")),
    };
    let answers = Answers {
        whole: include_str!("../wire/google.json"),
        streamed: include_str!("../wire/google.sse"),
        limited: error(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted"),
        failing: ("Grüße aus", error(503, "UNAVAILABLE", "The model is overloaded.")),
    };
    answer(model, stream, &answers)
}

async fn bedrock(Path(path): Path<String>, headers: HeaderMap, body: Bytes) -> Response {
    let refused = |status: StatusCode, kind: &str, message: &str| {
        let headers = [("content-type", "application/json"), ("x-amzn-errortype", kind)];
        (status, headers, json!({ "message": message }).to_string()).into_response()
    };
    if !text(&headers, "authorization").starts_with("AWS4-HMAC-SHA256 Credential=AKIDKEY/") {
        let message = "The security token included in the request is invalid.";
        return refused(StatusCode::FORBIDDEN, "UnrecognizedClientException", message);
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    if let Err(message) = strict::check_converse(&body) {
        return refused(StatusCode::BAD_REQUEST, "ValidationException", &message);
    }
    let (model, operation) = path.rsplit_once('/').unwrap_or_default();
    if model.contains("limited") {
        return refused(StatusCode::TOO_MANY_REQUESTS, "ThrottlingException", "Too many requests");
    }
    if operation == "converse" {
        return ([("content-type", "application/json")], include_str!("../wire/bedrock.json"))
            .into_response();
    }
    let mut frames = Vec::new();
    for line in include_str!("../wire/bedrock.jsonl").lines() {
        let event: Value = serde_json::from_str(line).expect("a frame is JSON");
        let (kind, payload) = event.as_object().and_then(|event| event.iter().next()).expect("one event");
        frame([(":message-type", "event"), (":event-type", kind)], payload, &mut frames);
        if model.contains("failing") && line.contains("Grüße aus") {
            let error = [(":message-type", "exception"), (":exception-type", "serviceUnavailableException")];
            frame(error, &json!({"message": "m"}), &mut frames);
            break;
        }
    }
    ([("content-type", "application/vnd.amazon.eventstream")], frames).into_response()
}

fn frame(headers: [(&'static str, &str); 2], payload: &Value, frames: &mut Vec<u8>) {
    let mut message = Message::new(payload.to_string());
    for (name, value) in headers.into_iter().chain([(":content-type", "application/json")]) {
        message = message.add_header(Header::new(name, HeaderValue::String(value.to_owned().into())));
    }
    write_message_to(&message, frames).expect("a frame is small enough");
}
