//! A provider's address, its key, and one request to it.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use base::aws_keys::AwsKeys;
use base::reach;
use domain::models::error::{TimeoutPhase, classify};
use domain::models::{HttpFailure, ModelError, Provider};
use domain::reach::Policy;
use futures::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::sooner;
use crate::aws::Signer;
use crate::retry::Retry;

/// The most bytes of an error's body that are read.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// The most bytes of a list of models that are read.
const MAX_LIST_BYTES: usize = 1024 * 1024;

/// Time limits.
#[derive(Debug, Clone, Copy)]
pub struct ModelLimits {
    pub connect: Duration,
    /// The longest time until the answer's headers arrive.
    pub first_byte: Duration,
    /// The longest time between two pieces of the answer. Providers send pings while a model thinks.
    pub idle: Duration,
    /// For the whole answer, with all tries.
    pub deadline: Duration,
    pub retry: Retry,
}

impl Default for ModelLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(60),
            idle: Duration::from_secs(120),
            deadline: Duration::from_secs(14 * 60),
            retry: Retry::default(),
        }
    }
}

/// A provider's address and key. The HTTP client and its trust roots are created with the first call.
#[derive(Clone)]
pub struct Endpoint {
    base: Arc<str>,
    pub(super) headers: HeaderMap,
    /// Signs each request, for AWS.
    signer: Option<Arc<Signer>>,
    pub(crate) limits: ModelLimits,
    client: Arc<OnceLock<reqwest::Client>>,
    /// Judges the address of an owner's server, and connects to what it has judged.
    guarded: Option<Guarded>,
}

/// The hosts that may be reached, and the client for them.
#[derive(Clone)]
struct Guarded {
    policy: Arc<Policy>,
    client: Arc<OnceLock<reach::Client>>,
}

/// Why an endpoint is invalid. The message follows "failed to set up the model: …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEndpoint {
    #[error("the address must begin with http:// or https:// and have a host")]
    Address,
    #[error("the key contains a character that HTTP headers do not allow")]
    Key,
    #[error("the region must be the name of an AWS region, such as eu-west-1")]
    Region,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("base", &self.base).finish_non_exhaustive()
    }
}

impl Endpoint {
    /// An endpoint that receives its key as `x-api-key`. `base` has no slash at its end.
    ///
    /// # Errors
    /// [`InvalidEndpoint`]
    pub fn anthropic(base: &str, key: &str) -> Result<Self, InvalidEndpoint> {
        let version = (HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01"));
        Self::new(base, [version, (HeaderName::from_static("x-api-key"), secret(key)?)])
    }

    /// An endpoint that receives its key, if it has one, as a bearer token. `base` usually ends in `/v1`.
    ///
    /// # Errors
    /// [`InvalidEndpoint`]
    pub fn bearer(base: &str, key: Option<&str>) -> Result<Self, InvalidEndpoint> {
        let key = key.map(|key| secret(&format!("Bearer {key}"))).transpose()?;
        Self::new(base, key.map(|key| (http::header::AUTHORIZATION, key)))
    }

    /// A base address that takes its key as `x-goog-api-key`.
    ///
    /// # Errors
    /// [`InvalidEndpoint`]
    pub fn google(base: &str, key: &str) -> Result<Self, InvalidEndpoint> {
        Self::new(base, [(HeaderName::from_static("x-goog-api-key"), secret(key)?)])
    }

    /// Amazon Bedrock in a region, called with these AWS credentials. `base` replaces AWS's own address.
    ///
    /// # Errors
    /// [`InvalidEndpoint`]
    pub fn bedrock(region: &str, base: Option<&str>, keys: &AwsKeys) -> Result<Self, InvalidEndpoint> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if region.is_empty() || !region.bytes().all(plain) {
            return Err(InvalidEndpoint::Region);
        }
        let own = || format!("https://bedrock-runtime.{region}.amazonaws.com");
        let endpoint = Self::new(&base.map_or_else(own, str::to_owned), [])?;
        Ok(Self { signer: Some(Arc::new(Signer::new("bedrock", region, keys))), ..endpoint })
    }

    fn new(
        base: &str,
        headers: impl IntoIterator<Item = (HeaderName, HeaderValue)>,
    ) -> Result<Self, InvalidEndpoint> {
        let url = reqwest::Url::parse(base).map_err(|_| InvalidEndpoint::Address)?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(InvalidEndpoint::Address);
        }
        Ok(Self {
            base: base.trim_end_matches('/').into(),
            headers: headers.into_iter().collect(),
            signer: None,
            limits: ModelLimits::default(),
            client: Arc::default(),
            guarded: None,
        })
    }

    #[must_use]
    pub fn with_limits(self, limits: ModelLimits) -> Self {
        Self { limits, client: Arc::default(), ..self }
    }

    /// The same endpoint, which reaches only what the policy permits: for addresses that people name.
    #[must_use]
    pub fn guarded(self, policy: Arc<Policy>) -> Self {
        Self { guarded: Some(Guarded { policy, client: Arc::default() }), ..self }
    }

    /// Begins a request to an address below the base.
    fn request(&self, method: Method, url: &str) -> Result<reqwest::RequestBuilder, ModelError> {
        let Some(guarded) = &self.guarded else { return Ok(self.client().request(method, url)) };
        let silence = self.limits.first_byte.max(self.limits.idle);
        let client = guarded
            .client
            .get_or_init(|| reach::client(guarded.policy.clone(), self.limits.connect, silence));
        let checked =
            client.check(url).map_err(|refused| ModelError::AddressRefused { why: refused.to_string() })?;
        Ok(client.request(method, &checked))
    }

    /// The base address, for people.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    fn client(&self) -> &reqwest::Client {
        self.client.get_or_init(|| {
            let builder = reqwest::Client::builder()
                .tls_backend_preconfigured(base::https::tls())
                .connect_timeout(self.limits.connect)
                // A redirect would send the key to another server.
                .redirect(reqwest::redirect::Policy::none());
            let builder = if self.is_loopback() { builder.no_proxy() } else { builder };
            builder.build().expect("the client has nothing to read at start")
        })
    }

    /// Whether the server is on this machine. A proxy can't reach it then.
    fn is_loopback(&self) -> bool {
        let url = reqwest::Url::parse(&self.base).expect("the address was parsed when the endpoint was made");
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// The first model that the server lists. It is used if no model was configured.
    pub(crate) async fn first_model(&self) -> Result<String, ModelError> {
        let url = format!("{}/models", self.base);
        let request = self.request(Method::GET, &url)?.headers(self.headers.clone());
        let deadline = Instant::now() + self.limits.first_byte;
        let answer = self.send(request, Provider::OpenAi, deadline).await?;
        // A server may send its list very slowly.
        let list = timeout_at(deadline, read_at_most(answer, MAX_LIST_BYTES)).await;
        let list = list.map_err(|_| ModelError::Timeout(TimeoutPhase::FirstByte))?;
        let list: Value = serde_json::from_slice(&list).map_err(|_| ModelError::Malformed)?;
        let model = list["data"][0]["id"].as_str().ok_or(ModelError::NotFound)?;
        Ok(model.to_owned())
    }

    /// Asks for the list of models, and does not read it.
    pub(crate) async fn list(self, path: &'static str, provider: Provider) -> Result<(), ModelError> {
        let url = format!("{}{path}", self.base);
        let request = self.request(Method::GET, &url)?.headers(self.headers.clone());
        let deadline = Instant::now() + self.limits.first_byte;
        self.send(request, provider, deadline).await.map(|_| ())
    }

    /// Sends a JSON body to a path below the base.
    pub(crate) async fn post(
        &self,
        path: &str,
        header: Option<(&'static str, &'static str)>,
        body: Vec<u8>,
        provider: Provider,
        deadline: Instant,
    ) -> Result<reqwest::Response, ModelError> {
        let url = format!("{}{path}", self.base);
        let mut headers = self.headers.clone();
        headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some((name, value)) = header {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        if let Some(signer) = &self.signer {
            signer.sign(&url, &mut headers, &body, SystemTime::now())?;
        }
        let request = self.request(Method::POST, &url)?.headers(headers).body(body);
        self.send(request, provider, deadline).await
    }

    /// Sends the request. Every status except success is an error.
    async fn send(
        &self,
        request: reqwest::RequestBuilder,
        provider: Provider,
        deadline: Instant,
    ) -> Result<reqwest::Response, ModelError> {
        let (first_byte, phase) = sooner(deadline, self.limits.first_byte, TimeoutPhase::FirstByte);
        let answer = timeout_at(first_byte, request.send())
            .await
            .map_err(|_| ModelError::Timeout(phase))?
            .map_err(|error| transport(&error))?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        // If the body can't be read, the status is enough.
        let body = timeout_at(first_byte, read_at_most(answer, MAX_ERROR_BYTES)).await.unwrap_or_default();
        let failure = HttpFailure {
            status,
            retry_after: header("retry-after"),
            retry_after_ms: header("retry-after-ms"),
            should_retry: header("x-should-retry"),
            error_type: header("x-amzn-errortype"),
            body: &body,
        };
        Err(classify(provider, &failure, jiff::Timestamp::now()))
    }
}

fn secret(text: &str) -> Result<HeaderValue, InvalidEndpoint> {
    let mut value = HeaderValue::from_str(text).map_err(|_| InvalidEndpoint::Key)?;
    value.set_sensitive(true);
    Ok(value)
}

/// The beginning of an answer.
async fn read_at_most(answer: reqwest::Response, limit: usize) -> Vec<u8> {
    let mut body = Vec::new();
    let mut chunks = answer.bytes_stream();
    while let Some(Ok(chunk)) = chunks.next().await {
        body.extend_from_slice(&chunk[..chunk.len().min(limit - body.len())]);
        if body.len() == limit {
            break;
        }
    }
    body
}

fn transport(error: &reqwest::Error) -> ModelError {
    if let Some(refused) = reach::refusal(error) {
        return ModelError::AddressRefused { why: refused.to_string() };
    }
    if !error.is_connect() {
        return ModelError::ConnectionLost;
    }
    let at = error.url().map_or_else(|| "its address".to_owned(), |url| url.origin().ascii_serialization());
    ModelError::Connection { at }
}
