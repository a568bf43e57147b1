//! A web site whose answer the test sets.

#![allow(clippy::unwrap_used, reason = "a test's helpers panic as its body does")]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LOCATION, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use domain::reach::Policy;
use serde_json::Value;
use shared::config::ReachConfig;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// What the site answers.
#[derive(Clone, Debug)]
pub enum Answers {
    /// 200 with this content type and body. With an `ETag` it answers 304 to a request that has it.
    Page(&'static str, String, Option<&'static str>),
    Status(u16),
    /// This status, and the seconds that a client is to wait.
    RetryAfter(u16, u32),
    /// 200 with the headers of the request, each on a line.
    Echoes,
    /// This status, after so long.
    StatusAfter(Duration, u16),
    RedirectsTo(String),
    /// It waits for so long, and then redirects to this place.
    RedirectsAfter(Duration, String),
    /// It accepts the request and never answers.
    Hangs,
    /// It announces this many bytes and sends zeros until the client goes away.
    Endless(u64),
    /// It sends zeros without an end, and announces nothing.
    Drips,
}

struct Shared {
    answers: Mutex<Answers>,
    /// The paths and `If-None-Match` headers of all requests.
    asked: Mutex<Vec<(String, Option<String>)>>,
    /// When they came.
    received: Mutex<Vec<Instant>>,
    /// Their headers and bodies.
    posted: Mutex<Vec<Posted>>,
}

/// The headers and the body of a request.
#[derive(Clone, Debug)]
pub struct Posted {
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Posted {
    /// # Panics
    /// If the body is not JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// # Panics
    /// If the header is not there.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }
}

/// A site that runs until it is dropped.
pub struct Site {
    address: std::net::SocketAddr,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

impl Site {
    /// # Panics
    /// If no port is free.
    pub async fn start(answers: Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            answers: Mutex::new(answers),
            asked: Mutex::default(),
            received: Mutex::default(),
            posted: Mutex::default(),
        });
        let app = Router::new().fallback(answer).with_state(shared.clone());
        let server = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, shared, server }
    }

    /// From now on it answers this.
    ///
    /// # Panics
    /// If a handler has panicked.
    pub fn answers(&self, answers: Answers) {
        *self.shared.answers.lock().unwrap() = answers;
    }

    /// From now on it answers this text.
    pub fn says(&self, text: &str) {
        self.answers(Answers::Page("text/plain", text.to_owned(), None));
    }

    /// The path and the `If-None-Match` of each request so far.
    ///
    /// # Panics
    /// If a handler has panicked.
    #[must_use]
    pub fn asked(&self) -> Vec<(String, Option<String>)> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// When each request came, oldest first.
    ///
    /// # Panics
    /// If a handler has panicked.
    #[must_use]
    pub fn received(&self) -> Vec<Instant> {
        self.shared.received.lock().unwrap().clone()
    }

    /// The headers and the body of each request so far.
    ///
    /// # Panics
    /// If a handler has panicked.
    #[must_use]
    pub fn posted(&self) -> Vec<Posted> {
        self.shared.posted.lock().unwrap().clone()
    }

    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What a platform may reach that may reach this site.
    ///
    /// # Panics
    /// Never: the address of the site is a host.
    #[must_use]
    pub fn reach(&self) -> ReachConfig {
        let allowed_hosts = vec![self.address.to_string().parse().unwrap()];
        ReachConfig { policy: Policy { allowed_hosts, ..Policy::default() }.into(), ..ReachConfig::default() }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn answer(State(site): State<Arc<Shared>>, request: Request) -> Response {
    site.received.lock().unwrap().push(Instant::now());
    let known = request.headers().get(IF_NONE_MATCH).map(|known| known.to_str().unwrap().to_owned());
    site.asked.lock().unwrap().push((request.uri().to_string(), known.clone()));
    let headers = request.headers().clone();
    let body = to_bytes(request.into_body(), 1 << 20).await.unwrap();
    site.posted.lock().unwrap().push(Posted { headers: headers.clone(), body });
    let answers = site.answers.lock().unwrap().clone();
    match answers {
        Answers::Page(_, _, Some(etag)) if known.as_deref() == Some(etag) => {
            StatusCode::NOT_MODIFIED.into_response()
        }
        Answers::Page(content_type, body, etag) => {
            let mut response = ([(CONTENT_TYPE, content_type)], body).into_response();
            if let Some(etag) = etag {
                response.headers_mut().insert(ETAG, HeaderValue::from_static(etag));
            }
            response
        }
        Answers::Echoes => {
            let line =
                |(name, value): (&HeaderName, &HeaderValue)| format!("{name}: {}\n", value.to_str().unwrap());
            headers.iter().map(line).collect::<String>().into_response()
        }
        Answers::Status(status) => StatusCode::from_u16(status).unwrap().into_response(),
        Answers::RetryAfter(status, seconds) => {
            (StatusCode::from_u16(status).unwrap(), [(RETRY_AFTER, seconds.to_string())]).into_response()
        }
        Answers::StatusAfter(wait, status) => {
            tokio::time::sleep(wait).await;
            StatusCode::from_u16(status).unwrap().into_response()
        }
        Answers::RedirectsTo(to) => (StatusCode::FOUND, [(LOCATION, to)]).into_response(),
        Answers::RedirectsAfter(wait, to) => {
            tokio::time::sleep(wait).await;
            (StatusCode::FOUND, [(LOCATION, to)]).into_response()
        }
        Answers::Hangs => std::future::pending().await,
        Answers::Endless(bytes) => ([(CONTENT_LENGTH, bytes.to_string())], zeros()).into_response(),
        Answers::Drips => zeros().into_response(),
    }
}

fn zeros() -> Body {
    let piece = || Ok::<_, std::io::Error>(axum::body::Bytes::from_static(&[b'0'; 16 * 1024]));
    Body::from_stream(futures::stream::repeat_with(piece))
}
