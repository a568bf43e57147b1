//! One request over HTTP and its streamed answer, under time limits.

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use domain::models::error::{TimeoutPhase, Unsendable, classify};
use domain::models::{Block, HttpFailure, ModelError, ModelEvent, ModelRequest, Provider, Role, Usage};
use domain::reach::Policy;
use futures::future;
use futures::stream::{self, BoxStream, Stream, StreamExt, TryStreamExt};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::{Map, Value};
use sse_stream::SseByteStream;
use tokio::time::{Instant, timeout_at};

use super::EventStream;
use super::aws::{self, Signer};
use super::retry::Retry;
use base::aws_keys::AwsKeys;
use base::reach;

/// The most bytes of an error's body that are read.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// The most bytes of a list of models that are read.
const MAX_LIST_BYTES: usize = 1024 * 1024;

/// The most bytes of an answer that are read. A longer answer counts as broken off. The longest reply that a run
/// requests has 16,000 tokens, which are at most a few megabytes with their frames. Ten runs share an executor's
/// memory.
const MAX_ANSWER_BYTES: usize = 8 * 1024 * 1024;

/// Time limits.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub connect: Duration,
    /// The longest time until the answer's headers arrive.
    pub first_byte: Duration,
    /// The longest time between two pieces of the answer. Providers send pings while a model thinks.
    pub idle: Duration,
    /// For the whole answer, with all tries.
    pub deadline: Duration,
    pub retry: Retry,
}

impl Default for Limits {
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
    headers: HeaderMap,
    /// Signs each request, for AWS.
    signer: Option<Arc<Signer>>,
    limits: Limits,
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
            limits: Limits::default(),
            client: Arc::default(),
            guarded: None,
        })
    }

    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
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
    pub(super) async fn first_model(&self) -> Result<String, ModelError> {
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

fn sooner(deadline: Instant, limit: Duration, phase: TimeoutPhase) -> (Instant, TimeoutPhase) {
    let until = Instant::now() + limit;
    if until < deadline { (until, phase) } else { (deadline, TimeoutPhase::Deadline) }
}

/// The request that a codec has encoded.
#[derive(Debug, Clone)]
pub(super) struct Call {
    /// The path below the endpoint's base.
    pub path: Cow<'static, str>,
    /// A header that only this call has.
    pub header: Option<(&'static str, &'static str)>,
    pub body: Value,
}

/// How an answer is cut into events.
#[derive(Debug, Clone, Copy)]
pub enum Framing {
    ServerSentEvents,
    /// `application/vnd.amazon.eventstream`. The data of an event is JSON, as `aws.rs` describes.
    EventStream,
}

/// The reading half of a codec. Each try begins with a clone.
pub trait Decode: Clone + Send + Sync + 'static {
    /// How the answer is cut into events.
    const FRAMING: Framing = Framing::ServerSentEvents;

    /// Handles the data of one event. Nothing is read after a `Finished`.
    ///
    /// # Errors
    /// An error that the provider reports in the middle of its answer, or [`ModelError::Malformed`].
    fn data(&mut self, data: &str) -> Result<Vec<ModelEvent>, ModelError>;

    /// Handles the end of an answer without a `Finished`.
    ///
    /// # Errors
    /// [`ModelError::Truncated`], unless the format allows it.
    fn end(&mut self) -> Result<Vec<ModelEvent>, ModelError>;
}

/// The whole call: encodes, sends, retries, reads.
pub(super) fn stream<D: Decode>(
    endpoint: Endpoint,
    provider: Provider,
    call: Result<Call, ModelError>,
    decoder: D,
) -> EventStream {
    let tries =
        Tries { endpoint, provider, call: Some(call), decoder, deadline: None, failures: 0, failed: None };
    stream::unfold(Some(tries), |tries| async move {
        let mut tries = tries?;
        match tries.next().await {
            Ok(Try::Lost(reported)) => {
                Some((Ok(stream::iter([Ok(ModelEvent::TryLost(reported))]).boxed()), Some(tries)))
            }
            Ok(Try::Opened(events)) => Some((Ok(events), None)),
            Err(error) => Some((Err(error), None)),
        }
    })
    .try_flatten()
    .boxed()
}

/// The tries of one call.
struct Tries<D> {
    endpoint: Endpoint,
    provider: Provider,
    call: Option<Result<Call, ModelError>>,
    decoder: D,
    deadline: Option<Instant>,
    failures: u32,
    /// Why the last try failed, if the pause after it has not begun yet.
    failed: Option<ModelError>,
}

/// The result of a try.
enum Try {
    Opened(EventStream),
    /// The try failed and may have been billed, and another one follows. The usage is what the provider had reported.
    Lost(Usage),
}

impl<D: Decode> Tries<D> {
    async fn next(&mut self) -> Result<Try, ModelError> {
        let limits = self.endpoint.limits;
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + limits.deadline);
        let tries = async {
            loop {
                if let Some(error) = self.failed.take() {
                    limits.retry.wait_or_fail(self.failures, error).await?;
                }
                let call = match &self.call {
                    Some(Ok(call)) => call,
                    _ => return Err(self.call.take().and_then(Result::err).unwrap_or(ModelError::Truncated)),
                };
                let (endpoint, provider, decoder) = (&self.endpoint, self.provider, self.decoder.clone());
                let mut seen = Vec::new();
                let error = match open(endpoint, provider, call, decoder, deadline, &mut seen).await {
                    Ok(events) => return Ok(Try::Opened(events)),
                    Err(error) => error,
                };
                self.failures += 1;
                if limits.retry.pause(self.failures, &error, 0.0).is_none() {
                    // A reply that has begun is billed, even if it fails. Its events say what it used.
                    let events = seen.into_iter().map(Ok).chain([Err(error)]);
                    return Ok(Try::Opened(stream::iter(events).boxed()));
                }
                let lost = !seen.is_empty() || error.may_be_billed();
                self.failed = Some(error);
                if lost {
                    let reported = seen.into_iter().rev().find_map(|event| match event {
                        ModelEvent::Usage(usage) => Some(usage),
                        _ => None,
                    });
                    return Ok(Try::Lost(reported.unwrap_or_default()));
                }
            }
        };
        timeout_at(deadline, tries).await.unwrap_or(Err(ModelError::Timeout(TimeoutPhase::Deadline)))
    }
}

/// One try, until the first event that a caller would notice. A failure before that can be retried; then `seen` has the
/// events before it.
async fn open<D: Decode>(
    endpoint: &Endpoint,
    provider: Provider,
    call: &Call,
    decoder: D,
    deadline: Instant,
    seen: &mut Vec<ModelEvent>,
) -> Result<EventStream, ModelError> {
    let url = format!("{}{}", endpoint.base, call.path);
    let body = serde_json::to_vec(&call.body).expect("a JSON value always serializes");
    let mut headers = endpoint.headers.clone();
    headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some((name, value)) = call.header {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if let Some(signer) = &endpoint.signer {
        signer.sign(&url, &mut headers, &body, SystemTime::now())?;
    }
    let request = endpoint.request(Method::POST, &url)?.headers(headers).body(body);
    let answer = endpoint.send(request, provider, deadline).await?;
    let mut left = MAX_ANSWER_BYTES;
    let bytes = answer.bytes_stream().take_while(move |chunk| {
        let read = chunk.as_ref().map_or(0, Bytes::len);
        let fits = read <= left;
        left = left.saturating_sub(read);
        future::ready(fits)
    });
    let events = frames(D::FRAMING, bytes.map_err(|_| ModelError::ConnectionLost));
    let reading = Reading {
        events,
        decoder,
        ready: VecDeque::new(),
        idle: endpoint.limits.idle,
        deadline,
        over: false,
    };
    let mut events = stream::unfold(reading, Reading::next).boxed();
    while let Some(event) = events.next().await {
        let event = event?;
        let unnoticed = matches!(event, ModelEvent::Started { .. } | ModelEvent::Usage(_));
        seen.push(event);
        if !unnoticed {
            break;
        }
    }
    Ok(stream::iter(std::mem::take(seen).into_iter().map(Ok)).chain(events).boxed())
}

/// Cuts an answer into the data of its events.
pub fn frames(
    framing: Framing,
    bytes: impl Stream<Item = Result<Bytes, ModelError>> + Send + 'static,
) -> BoxStream<'static, Result<String, ModelError>> {
    match framing {
        Framing::ServerSentEvents => SseByteStream::new(bytes)
            .map_ok(|event| event.data.unwrap_or_default())
            .map_err(|_| ModelError::ConnectionLost)
            .boxed(),
        Framing::EventStream => aws::events(bytes).boxed(),
    }
}

/// An answer that is being read.
struct Reading<D> {
    /// The data of each event.
    events: BoxStream<'static, Result<String, ModelError>>,
    decoder: D,
    ready: VecDeque<ModelEvent>,
    idle: Duration,
    deadline: Instant,
    over: bool,
}

impl<D: Decode> Reading<D> {
    async fn next(mut self) -> Option<(Result<ModelEvent, ModelError>, Self)> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.over |= matches!(event, ModelEvent::Finished { .. });
                return Some((Ok(event), self));
            }
            if self.over {
                return None;
            }
            match self.read().await {
                Ok(events) => self.ready.extend(events),
                Err(error) => {
                    self.over = true;
                    return Some((Err(error), self));
                }
            }
        }
    }

    async fn read(&mut self) -> Result<Vec<ModelEvent>, ModelError> {
        let (until, phase) = sooner(self.deadline, self.idle, TimeoutPhase::Idle);
        match timeout_at(until, self.events.next()).await.map_err(|_| ModelError::Timeout(phase))? {
            Some(data) => {
                let data = data?;
                if data.is_empty() { Ok(Vec::new()) } else { self.decoder.data(&data) }
            }
            None => self.decoder.end(),
        }
    }
}

/// The conversation in a form that every provider accepts: neighbouring messages of the same role are joined, and blank
/// text and other providers' own blocks are removed.
pub(super) fn turns(
    request: &ModelRequest,
    provider: Provider,
) -> Result<Vec<(Role, Vec<&Block>)>, ModelError> {
    let sent = |block: &&Block| match block {
        Block::Text { text } => !text.trim().is_empty(),
        Block::Native { provider: theirs, .. } => *theirs == provider,
        Block::Image(image) => image.data.is_some(),
        Block::ToolUse { .. } | Block::ToolResult { .. } => true,
    };
    let mut turns: Vec<(Role, Vec<&Block>)> = Vec::new();
    for message in &request.messages {
        let blocks = message.content.iter().filter(sent);
        let mut blocks = blocks.peekable();
        if blocks.peek().is_none() {
            continue;
        }
        match turns.last_mut() {
            Some((role, joined)) if *role == message.role => joined.extend(blocks),
            _ => turns.push((message.role, blocks.collect())),
        }
    }
    check(&turns, request.max_output_tokens).map_err(ModelError::Unsendable)?;
    // Tool results must come first in their message.
    for (_, blocks) in &mut turns {
        blocks.sort_by_key(|block| !matches!(block, Block::ToolResult { .. }));
    }
    Ok(turns)
}

/// The number of turns before the newest words of a person. The turns after them belong to the reply that is being written: calls and
/// their results.
pub(super) fn before_newest_words(turns: &[(Role, Vec<&Block>)]) -> usize {
    let is_words = |block: &&Block| !matches!(block, Block::ToolResult { .. });
    turns.iter().rposition(|(role, blocks)| *role == Role::User && blocks.iter().any(is_words)).unwrap_or(0)
}

fn check(turns: &[(Role, Vec<&Block>)], max_output_tokens: u32) -> Result<(), Unsendable> {
    match turns.first() {
        None => return Err(Unsendable::NoMessages),
        Some((Role::Assistant, _)) => return Err(Unsendable::FirstMessageNotUser),
        Some((Role::User, _)) if max_output_tokens == 0 => return Err(Unsendable::NoOutput),
        Some((Role::User, _)) => {}
    }
    let mut open = BTreeSet::new();
    for (role, blocks) in turns {
        let mut called = BTreeSet::new();
        for block in blocks {
            match block {
                Block::Image(_) if *role == Role::Assistant => return Err(Unsendable::WrongRole),
                Block::ToolUse { .. } if *role == Role::User => return Err(Unsendable::WrongRole),
                Block::ToolResult { .. } if *role == Role::Assistant => return Err(Unsendable::WrongRole),
                Block::ToolUse { id, .. } => {
                    called.insert(id.as_str());
                }
                Block::ToolResult { tool_use_id, .. } if !open.remove(tool_use_id.as_str()) => {
                    return Err(Unsendable::UnmatchedToolResult);
                }
                Block::ToolResult { .. } | Block::Text { .. } | Block::Image(_) | Block::Native { .. } => {}
            }
        }
        if !open.is_empty() {
            return Err(Unsendable::UnansweredToolUse);
        }
        open = called;
    }
    if open.is_empty() { Ok(()) } else { Err(Unsendable::UnansweredToolUse) }
}

/// Parses the input of a tool call from its joined pieces. `start` is used if there were none. The error is a reason.
pub(super) fn tool_input(json: &str, start: Value, whole: bool) -> Result<Value, String> {
    if json.trim().is_empty() {
        return match start {
            _ if !whole => Err("the call is cut off".into()),
            Value::Object(_) => Ok(start),
            _ => Ok(Value::Object(Map::new())),
        };
    }
    match serde_json::from_str(json) {
        Ok(Value::Object(input)) => Ok(Value::Object(input)),
        Ok(_) => Err("the arguments are not a JSON object".into()),
        Err(error) if error.is_eof() => Err("the arguments are cut off".into()),
        Err(error) => {
            Err(format!("the arguments are not JSON: line {}, column {}", error.line(), error.column()))
        }
    }
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;
