//! What a function posts for an invocation, and how API Gateway interprets it.

use std::collections::HashMap;

use axum::body::Body;
use axum::http::HeaderMap;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::oneshot;

/// The most bytes that Lambda accepts and returns without streaming.
pub const MOST: usize = 6 * 1024 * 1024;

/// The result of an invocation.
pub enum Reply {
    Response(Posted),
    Error(Failure),
}

/// How a function reports a failure.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    pub error_type: String,
    pub error_message: String,
}

/// A response that is still being posted.
pub struct Posted {
    headers: HeaderMap,
    body: Body,
    /// Dropped when the body has been read. Then the function continues.
    _read: oneshot::Sender<()>,
}

/// The response to an HTTP request.
#[derive(Debug)]
pub struct Http {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// The response of the streaming runner while it arrives.
pub struct Streamed {
    pub status: u16,
    pub headers: HeaderMap,
    pub begun: BytesMut,
    posted: Posted,
}

impl Reply {
    #[track_caller]
    pub fn failure(self) -> Failure {
        match self {
            Self::Error(failure) => failure,
            Self::Response(_) => panic!("the function answered, and did not fail"),
        }
    }

    #[track_caller]
    fn posted(self) -> Posted {
        match self {
            Self::Response(posted) => posted,
            Self::Error(failure) => panic!("the function failed: {failure:?}"),
        }
    }

    /// The JSON that a function returns for an event.
    pub async fn json(self) -> Value {
        let posted = self.posted();
        assert!(!posted.is_streaming());
        serde_json::from_slice(&posted.buffered().await).unwrap()
    }

    /// The response to a request, from either runner.
    pub async fn http(self) -> Http {
        let posted = self.posted();
        if posted.is_streaming() {
            Streamed::read(posted).await.rest().await
        } else {
            Buffered::http(&posted.buffered().await)
        }
    }

    /// The response of the streaming runner, as soon as its status and headers have arrived.
    pub async fn streamed(self) -> Streamed {
        let posted = self.posted();
        assert!(posted.is_streaming());
        Streamed::read(posted).await
    }
}

impl Posted {
    pub fn new(headers: HeaderMap, body: Body, read: oneshot::Sender<()>) -> Self {
        Self { headers, body, _read: read }
    }

    pub fn is_streaming(&self) -> bool {
        let mode = self.headers.get("lambda-runtime-function-response-mode");
        mode.is_some_and(|mode| mode == "streaming")
    }

    async fn chunk(&mut self) -> Option<Bytes> {
        let frame = self.body.frame().await?.unwrap();
        match frame.into_data() {
            Ok(data) => Some(data),
            Err(frame) => {
                let trailers = frame.into_trailers().unwrap();
                assert!(!trailers.contains_key("lambda-runtime-function-error-type"), "{trailers:?}");
                None
            }
        }
    }

    /// A buffered answer. Lambda refuses a longer one.
    async fn buffered(self) -> Bytes {
        let answer = self.rest().await;
        assert!(answer.len() <= MOST, "Lambda takes {MOST} bytes and was given {}", answer.len());
        answer
    }

    async fn rest(mut self) -> Bytes {
        let mut whole = BytesMut::new();
        while let Some(chunk) = self.chunk().await {
            whole.extend_from_slice(&chunk);
        }
        whole.freeze()
    }
}

/// The JSON that a buffered function returns to API Gateway.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Buffered {
    status_code: u16,
    #[serde(default)]
    headers: HashMap<String, String>,
    #[serde(default)]
    multi_value_headers: HashMap<String, Vec<String>>,
    body: Option<String>,
    #[serde(default)]
    is_base64_encoded: bool,
}

fn header_map(pairs: impl IntoIterator<Item = (String, String)>) -> HeaderMap {
    let pairs = pairs.into_iter();
    pairs.map(|(name, value)| (name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap())).collect()
}

impl Buffered {
    fn http(json: &[u8]) -> Http {
        let this: Self = serde_json::from_slice(json).unwrap();
        let multi = this.multi_value_headers.into_iter();
        let multi =
            multi.flat_map(|(name, values)| values.into_iter().map(move |value| (name.clone(), value)));
        let body = this.body.unwrap_or_default();
        let body =
            if this.is_base64_encoded { BASE64_STANDARD.decode(body).unwrap() } else { body.into_bytes() };
        let headers = header_map(multi.chain(this.headers));
        Http { status: this.status_code, headers, body: body.into() }
    }
}

/// The data before a stream's body.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Prelude {
    status_code: u16,
    headers: HashMap<String, String>,
}

fn route_of(headers: &HeaderMap) -> String {
    let location = headers["location"].to_str().unwrap();
    location.strip_prefix("/live").unwrap_or_else(|| panic!("{location} lacks the stage")).to_owned()
}

impl Streamed {
    /// As [`Http::location`].
    #[track_caller]
    pub fn location(&self) -> String {
        route_of(&self.headers)
    }

    const END_OF_PRELUDE: [u8; 8] = [0; 8];

    async fn read(mut posted: Posted) -> Self {
        assert_eq!(posted.headers["content-type"], "application/vnd.awslambda.http-integration-response");
        assert_eq!(posted.headers["transfer-encoding"], "chunked");
        let mut begun = BytesMut::new();
        let end = loop {
            let found = begun.windows(8).position(|window| window == Self::END_OF_PRELUDE);
            if let Some(end) = found {
                break end;
            }
            begun.extend_from_slice(&posted.chunk().await.expect("eight NUL bytes end the prelude"));
        };
        let prelude: Prelude = serde_json::from_slice(&begun.split_to(end)).unwrap();
        let _ = begun.split_to(Self::END_OF_PRELUDE.len());
        Self { status: prelude.status_code, headers: header_map(prelude.headers), begun, posted }
    }

    /// Reads until the body contains this text.
    pub async fn until(&mut self, text: &str) {
        while !String::from_utf8_lossy(&self.begun).contains(text) {
            let chunk = self.posted.chunk().await;
            self.begun.extend_from_slice(
                &chunk.unwrap_or_else(|| panic!("ended without {text}: {:?}", self.begun)),
            );
        }
    }

    pub async fn rest(self) -> Http {
        let Self { status, headers, mut begun, posted } = self;
        begun.extend_from_slice(&posted.rest().await);
        Http { status, headers, body: begun.freeze() }
    }
}

impl Http {
    /// The route that `Location` names. The address begins with the stage, as it does for a client of the API's own domain.
    #[track_caller]
    pub fn location(&self) -> String {
        route_of(&self.headers)
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The JSON of a response with this status.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.headers["content-type"], "application/json");
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The problem of a response with this status and code.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.headers["content-type"], "application/problem+json");
        let problem: Value = serde_json::from_slice(&self.body).unwrap();
        assert_eq!((&problem["code"], &problem["status"]), (&Value::from(code), &Value::from(status)));
        assert_eq!(problem["request_id"].as_str(), self.headers["x-request-id"].to_str().ok());
        problem
    }

    /// The names of the events of a successful stream.
    #[track_caller]
    pub fn events(&self) -> Vec<&str> {
        assert_eq!(self.status, 200, "{}", self.text());
        assert_eq!(self.headers["content-type"], "text/event-stream");
        self.text().lines().filter_map(|line| line.strip_prefix("event: ")).collect()
    }
}
