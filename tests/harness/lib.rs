//! A separate platform for each test, and a client with clear failure messages.

pub mod anthropic;
pub mod appointments;
pub mod archives;
pub mod bus;
pub mod completions;
pub mod contract;
pub mod events;
pub mod everything;
pub mod executors;
pub mod golden;
pub mod kills;
pub mod living;
pub mod logs;
pub mod made;
pub mod mail;
pub mod mcp;
pub mod memory;
pub mod model;
pub mod openapi;
pub mod process;
pub mod program;
pub mod providers;
pub mod season;
pub mod seasons;
pub mod site;
pub mod skips;
pub mod stage;
pub mod telegram;
pub mod themes;
pub mod things;
pub mod wait;

pub use skips::skipped;

use lamplighter_local::platform::{Platform, PlatformConfig};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::Value;

/// A platform in memory and its client.
pub struct Harness {
    pub platform: Platform,
    client: reqwest::Client,
}

/// The response to a call.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub body: Value,
}

impl Answer {
    /// The body of the response if it has the expected status. Otherwise it panics and shows the body.
    #[track_caller]
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{:#}", self.body);
        self.body
    }

    /// Checks that the response is a problem with this status and code, and returns it.
    #[track_caller]
    pub fn refused(self, status: u16, code: &str) -> Value {
        assert_eq!((self.status, self.body["code"].as_str()), (status, Some(code)), "{:#}", self.body);
        assert_eq!(self.headers["content-type"], "application/problem+json");
        assert_eq!(self.body["request_id"].as_str(), self.headers["x-request-id"].to_str().ok());
        self.body
    }
}

impl Harness {
    /// # Panics
    /// If the platform does not start.
    pub async fn start() -> Self {
        Self::with(PlatformConfig::in_memory()).await
    }

    /// # Panics
    /// If the platform does not start.
    pub async fn with(config: PlatformConfig) -> Self {
        let platform = Platform::start(config).await.expect("the platform starts");
        Self { platform, client: client() }
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.platform.url()))
    }

    /// Sends a request that was built with care.
    ///
    /// # Errors
    /// If the server does not answer.
    pub async fn execute(&self, request: reqwest::Request) -> reqwest::Result<Response> {
        self.client.execute(request).await
    }

    fn json(&self, method: Method, path: &str) -> RequestBuilder {
        self.request(method, path).header("accept", "application/json")
    }

    pub async fn get(&self, path: &str) -> Answer {
        send(self.json(Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        send(self.json(Method::POST, path).json(&body)).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> Answer {
        send(self.json(Method::PATCH, path).json(&body)).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        send(self.json(Method::DELETE, path)).await
    }

    /// A POST with an `Idempotency-Key`.
    pub async fn post_once(&self, path: &str, key: &str, body: Value) -> Answer {
        send(self.json(Method::POST, path).header("idempotency-key", key).json(&body)).await
    }

    /// Creates an agent and returns its id.
    pub async fn agent(&self) -> String {
        let agent = self
            .post("/agents", serde_json::json!({"name": "Watch", "goal": "A research agent that watches"}))
            .await
            .expect(201);
        agent["agent_id"].as_str().expect("an id").to_owned()
    }
}

/// # Panics
/// If the server does not answer, or the OpenAPI document does not describe the answer.
pub async fn send(request: RequestBuilder) -> Answer {
    let (client, request) = request.build_split();
    let request = request.expect("a request is built");
    let (method, path) = (request.method().clone(), request.url().path().to_owned());
    let answer = answer(client.execute(request).await.expect("the server answers")).await;
    contract::check(&method, &path, answer.status, &answer.headers);
    answer
}

async fn answer(response: Response) -> Answer {
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let text = response.text().await.expect("the answer is text");
    let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
    Answer { status, headers, body }
}

/// Uploads an archive to the URL of an import, with the required headers. The client computes the length itself.
///
/// # Panics
/// If `import` is not the response to an import, or if the storage does not answer.
pub async fn put_archive(client: &reqwest::Client, import: &Value, archive: Vec<u8>) -> Response {
    let upload = &import["upload"];
    let mut request = client.put(upload["url"].as_str().expect("an upload has an address"));
    for (name, value) in upload["headers"].as_object().expect("an upload has headers") {
        if name != "content-length" {
            request = request.header(name, value.as_str().expect("a header is a string"));
        }
    }
    request.body(archive).send().await.expect("the storage answers")
}

/// # Panics
/// If the client cannot be built.
#[must_use]
pub fn client() -> reqwest::Client {
    // Loopback needs no certificates. A client that loads the system's trust store would cost each test 10 ms.
    reqwest::Client::builder()
        .tls_backend_preconfigured(base::https::tls())
        // A test sees what a route answers, not where that leads.
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .expect("a client is built")
}
