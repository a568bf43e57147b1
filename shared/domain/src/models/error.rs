//! How a call of a model can fail, and which failures should be retried.
//!
//! Providers answer with text that may quote the prompt or the key, so that text is never kept. An error holds a kind,
//! a status, and at most the provider's short error code.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::request::Provider;

/// The longest wait that a provider may ask for. If it asks for more, the call fails at once.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(120);

/// Why a call of a model failed. The message follows "failed to get an answer from the model: …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    #[error("the provider's rate limit is reached")]
    RateLimited { retry_after: Option<Duration> },
    #[error("the provider is overloaded")]
    Overloaded { retry_after: Option<Duration> },
    #[error("the provider has an internal error (HTTP status {status})")]
    Server { status: u16, retry_after: Option<Duration> },
    /// The provider reported a timeout itself.
    #[error("the provider ran out of time")]
    ProviderTimeout { retry_after: Option<Duration> },
    #[error("{} in time", .0.what())]
    Timeout(TimeoutPhase),
    /// `at` is the address up to its port. Paths and keys are not shown.
    #[error("the provider could not be reached at {at}")]
    Connection { at: String },
    #[error("the connection was lost in the middle of the answer")]
    ConnectionLost,
    #[error("the answer ended before it was complete")]
    Truncated,
    #[error("the answer is not in the format of the provider")]
    Malformed,
    #[error("the conversation is larger than the model's context")]
    ContextTooLarge,
    #[error("the request is larger than the provider accepts")]
    RequestTooLarge,
    #[error("the provider rejected the request as invalid{}", suffix(.code.as_deref()))]
    InvalidRequest { code: Option<String> },
    #[error("the provider does not accept the API key")]
    Authentication,
    #[error("the provider does not permit this request with the API key")]
    Permission,
    #[error("the provider's quota is used up, or its bill is not paid")]
    Quota,
    #[error("the provider does not know the model, or the address is wrong")]
    NotFound,
    /// The provider's own safety check refused.
    #[error("the provider refused to answer this")]
    Refused,
    /// Nothing was sent: the request cannot be expressed in the provider's format.
    #[error("the request is not valid: {0}")]
    Unsendable(Unsendable),
    #[error("the provider answered with the unexpected HTTP status {status}")]
    Unexpected { status: u16 },
    /// The address of an owner's server leads to a place that must not be reached. `why` names no path and no key.
    #[error("the server is not called: {why}")]
    AddressRefused { why: String },
    /// No provider is configured for this call.
    #[error("no model is configured")]
    NotConfigured,
}

/// What did not happen in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeoutPhase {
    /// The answer did not begin.
    FirstByte,
    /// The answer stopped in the middle.
    Idle,
    /// The answer, including all retries, did not finish.
    Deadline,
}

impl TimeoutPhase {
    const fn what(self) -> &'static str {
        match self {
            Self::FirstByte => "the provider did not begin to answer",
            Self::Idle => "the provider stopped in the middle of the answer",
            Self::Deadline => "the answer was not complete",
        }
    }
}

/// Why a request cannot be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsendable {
    #[error("it has no message")]
    NoMessages,
    #[error("its first message is not the user's")]
    FirstMessageNotUser,
    #[error("a tool call has no result in the message after it")]
    UnansweredToolUse,
    #[error("a tool result answers no call of the message before it")]
    UnmatchedToolResult,
    #[error("the user calls a tool, or the assistant answers a call")]
    WrongRole,
    #[error("the maximum reply length is 0 tokens")]
    NoOutput,
}

fn suffix(code: Option<&str>) -> String {
    code.map_or_else(String::new, |code| format!(" ({code})"))
}

impl ModelError {
    /// Whether a call that failed with this error before any of its reply arrived may have been billed: it was sent,
    /// and it is unknown what the provider did with it.
    #[must_use]
    pub const fn may_be_billed(&self) -> bool {
        matches!(
            self,
            Self::ProviderTimeout { .. }
                | Self::Timeout(_)
                | Self::ConnectionLost
                | Self::Truncated
                | Self::Malformed
        )
    }

    /// Whether the same request may succeed when retried.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::Overloaded { .. }
            | Self::Server { .. }
            | Self::ProviderTimeout { .. }
            | Self::Timeout(TimeoutPhase::FirstByte | TimeoutPhase::Idle)
            | Self::Connection { .. }
            | Self::ConnectionLost
            | Self::Truncated => true,
            Self::Timeout(TimeoutPhase::Deadline)
            | Self::Malformed
            | Self::ContextTooLarge
            | Self::RequestTooLarge
            | Self::InvalidRequest { .. }
            | Self::Authentication
            | Self::Permission
            | Self::Quota
            | Self::NotFound
            | Self::Refused
            | Self::Unsendable(_)
            | Self::Unexpected { .. }
            | Self::AddressRefused { .. }
            | Self::NotConfigured => false,
        }
    }

    /// Whether another provider may answer the same request.
    #[must_use]
    pub const fn may_work_elsewhere(&self) -> bool {
        match self {
            Self::Authentication
            | Self::Permission
            | Self::Quota
            | Self::NotFound
            | Self::Malformed
            | Self::AddressRefused { .. }
            | Self::Unexpected { .. } => true,
            error => error.is_retryable(),
        }
    }

    /// Whether other models behind the same address, with the same key, would fail too.
    #[must_use]
    pub const fn concerns_endpoint(&self) -> bool {
        matches!(
            self,
            Self::Authentication
                | Self::Permission
                | Self::Quota
                | Self::Timeout(_)
                | Self::Connection { .. }
                | Self::AddressRefused { .. }
                | Self::Unexpected { .. }
        )
    }

    /// How long the provider asks the client to wait.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after }
            | Self::Overloaded { retry_after }
            | Self::Server { retry_after, .. }
            | Self::ProviderTimeout { retry_after } => *retry_after,
            _ => None,
        }
    }
}

/// An answer with an error status, and its relevant headers.
#[derive(Debug, Clone, Copy, Default)]
pub struct HttpFailure<'a> {
    pub status: u16,
    /// `retry-after`: seconds (may be a fraction), or an HTTP date.
    pub retry_after: Option<&'a str>,
    /// `retry-after-ms`. It takes precedence over `retry-after`.
    pub retry_after_ms: Option<&'a str>,
    /// `x-amzn-errortype`: the name of the error, at AWS. An address may follow it.
    pub error_type: Option<&'a str>,
    /// `x-should-retry`: `true` or `false`. It overrides the status.
    pub should_retry: Option<&'a str>,
    pub body: &'a [u8],
}

impl HttpFailure<'_> {
    fn wait(&self, now: Timestamp) -> Option<Duration> {
        let millis = self.retry_after_ms.and_then(|text| seconds(text, 1_000.0));
        millis.or_else(|| {
            let text = self.retry_after?;
            seconds(text, 1.0).or_else(|| {
                let at = jiff::fmt::rfc2822::parse(text.trim()).ok()?.timestamp();
                Some(Duration::try_from(at.duration_since(now)).unwrap_or(Duration::ZERO))
            })
        })
    }
}

fn seconds(text: &str, per_second: f64) -> Option<Duration> {
    let number: f64 = text.trim().parse().ok()?;
    Duration::try_from_secs_f64(number / per_second).ok()
}

/// Classifies an error answer. `now` is needed when `retry-after` is a date.
#[must_use]
pub fn classify(provider: Provider, failure: &HttpFailure<'_>, now: Timestamp) -> ModelError {
    let body = serde_json::from_slice::<Value>(failure.body).unwrap_or(Value::Null);
    let mut said = ErrorBody::from_body(&body);
    if let Some(name) = failure.error_type {
        said.kind = aws_name(name);
    }
    let retry_after = failure.wait(now).or(said.retry_after);
    let status = failure.status;
    let error = by_message(&said, status, retry_after)
        .unwrap_or_else(|| by_status(provider, &said, status, retry_after));
    match (failure.should_retry.map(str::trim), error.is_retryable()) {
        (Some("true"), false) => ModelError::Server { status, retry_after },
        // A rate limit that waiting does not end is a quota.
        (Some("false"), true) if status == 429 => ModelError::Quota,
        (Some("false"), true) => ModelError::Unexpected { status },
        _ => error,
    }
}

/// Classifies an error event in the middle of an answer with status 200. `event` is its data.
#[must_use]
pub fn classify_event(provider: Provider, event: &Value) -> ModelError {
    let said = ErrorBody::from_body(event);
    // The types in a stream are the same that otherwise come with a status.
    let status = match said.kind {
        "overloaded_error" => 529,
        "rate_limit_error" => 429,
        "timeout_error" => 504,
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "throttlingException" => 429,
        "modelStreamErrorException" => 424,
        "validationException" => 400,
        "serviceUnavailableException" => 503,
        _ => match said.code {
            "rate_limit_exceeded" | "insufficient_quota" => 429,
            "context_length_exceeded" | "invalid_prompt" => 400,
            _ => said.status.unwrap_or(500),
        },
    };
    let retry_after = said.retry_after;
    by_message(&said, status, retry_after).unwrap_or_else(|| by_status(provider, &said, status, retry_after))
}

/// The error fields of a body. Each format has them in another place.
#[derive(Default)]
struct ErrorBody<'a> {
    kind: &'a str,
    code: &'a str,
    message: String,
    status: Option<u16>,
    /// Google reports in the body how long to wait, and whether a quota of a whole day is used up.
    retry_after: Option<Duration>,
    day_is_used_up: bool,
}

impl<'a> ErrorBody<'a> {
    fn from_body(body: &'a Value) -> Self {
        let text = |value: &'a Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
        // Some endpoints wrap the object in an array of one.
        let body = body.get(0).unwrap_or(body);
        match body.get("error") {
            Some(Value::Object(_)) => {
                let error = &body["error"];
                let status =
                    error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
                Self {
                    kind: text(error, "type"),
                    code: text(error, "code"),
                    message: text(error, "message").to_lowercase(),
                    status,
                    retry_after: retry_delay(error),
                    day_is_used_up: day_is_used_up(error),
                }
            }
            Some(Value::String(message)) => {
                Self { code: text(body, "code"), message: message.to_lowercase(), ..Self::default() }
            }
            _ => Self { message: text(body, "message").to_lowercase(), ..Self::default() },
        }
    }

    /// The provider's code, if it is so short and plain that it cannot contain the prompt or the key.
    fn public_code(&self) -> Option<String> {
        let plain = |code: &&str| {
            (1..=48).contains(&code.len()) && code.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
        };
        [self.code, self.kind].into_iter().find(plain).map(str::to_owned)
    }
}

/// An AWS error's name without its namespace and the address after it.
fn aws_name(name: &str) -> &str {
    let name = name.split(':').next().unwrap_or(name);
    name.rsplit('#').next().unwrap_or(name).trim()
}

/// The details of a Google error that have this type.
fn details<'a>(error: &'a Value, kind: &'static str) -> impl Iterator<Item = &'a Value> {
    let of_kind = move |detail: &&Value| detail["@type"].as_str().is_some_and(|name| name.ends_with(kind));
    error["details"].as_array().into_iter().flatten().filter(of_kind)
}

/// `retryDelay` of a `RetryInfo`, for example `33s`.
fn retry_delay(error: &Value) -> Option<Duration> {
    let delay = details(error, "google.rpc.RetryInfo").find_map(|detail| detail["retryDelay"].as_str())?;
    seconds(delay.strip_suffix('s')?, 1.0)
}

/// Then waiting for some seconds does not help, even if the answer says so.
fn day_is_used_up(error: &Value) -> bool {
    let violations = details(error, "google.rpc.QuotaFailure")
        .flat_map(|detail| detail["violations"].as_array().into_iter().flatten());
    violations.filter_map(|violation| violation["quotaId"].as_str()).any(|quota| quota.contains("PerDay"))
}

/// In lower case. Each OpenAI-compatible server has its own wording for this.
const CONTEXT_TOO_LARGE: &[&str] = &[
    "prompt is too long",
    "this model's maximum context length is",
    "context_length_exceeded",
    "exceed context limit",
    "is longer than the model's context length",
    "input tokens exceed the configured limit",
    "`inputs` tokens + `max_new_tokens` must be",
    "exceeds the available context size",
    "exceeds the maximum number of tokens allowed",
    "requested token count exceeds the model's maximum context length",
    "input is too long for requested model",
    "too many input tokens",
    "input tokens exceeded",
];

/// Classifies by the message if it is more reliable than the status.
fn by_message(said: &ErrorBody<'_>, status: u16, retry_after: Option<Duration>) -> Option<ModelError> {
    let says = |words: &str| said.message.contains(words);
    // A server error or a rate limit stays one, even if it quotes such a text.
    if status >= 500 {
        return None;
    }
    if said.code == "insufficient_quota"
        || said.kind == "insufficient_quota"
        || said.kind == "ServiceQuotaExceededException"
        || (says("exceeded your current quota") && said.retry_after.is_none())
        || said.day_is_used_up
    {
        return Some(ModelError::Quota);
    }
    if said.kind == "rate_limit_error" || said.code == "rate_limit_exceeded" {
        return Some(ModelError::RateLimited { retry_after });
    }
    if status == 429 {
        return None;
    }
    // AWS answers 403 to credentials that it does not know or that have expired.
    if matches!(
        said.kind,
        "UnrecognizedClientException"
            | "InvalidSignatureException"
            | "ExpiredTokenException"
            | "IncompleteSignatureException"
    ) {
        return Some(ModelError::Authentication);
    }
    if said.code == "context_length_exceeded"
        || CONTEXT_TOO_LARGE.iter().any(|words| says(words))
        || (says("input too long:") && says("input tokens, limit is"))
    {
        return Some(ModelError::ContextTooLarge);
    }
    // xAI and Google answer 400 to a bad key.
    if said.code == "invalid_api_key" || says("incorrect api key provided") || says("api key not valid") {
        return Some(ModelError::Authentication);
    }
    if says("reached your specified api usage limits") || says("credit balance is too low") {
        return Some(ModelError::Quota);
    }
    if said.kind == "ValidationException" && says("model identifier is invalid") {
        return Some(ModelError::NotFound);
    }
    if matches!(said.code, "content_filter" | "content_policy_violation") {
        return Some(ModelError::Refused);
    }
    None
}

fn by_status(
    provider: Provider,
    said: &ErrorBody<'_>,
    status: u16,
    retry_after: Option<Duration>,
) -> ModelError {
    match status {
        401 => ModelError::Authentication,
        402 => ModelError::Quota,
        403 => ModelError::Permission,
        404 => ModelError::NotFound,
        408 | 504 => ModelError::ProviderTimeout { retry_after },
        409 => ModelError::Server { status, retry_after },
        413 => ModelError::RequestTooLarge,
        429 => ModelError::RateLimited { retry_after },
        529 => ModelError::Overloaded { retry_after },
        503 if matches!(provider, Provider::OpenAi | Provider::Google | Provider::Bedrock) => {
            ModelError::Overloaded { retry_after }
        }
        // The model behind the service failed.
        424 if provider == Provider::Bedrock => ModelError::Server { status, retry_after },
        500.. => ModelError::Server { status, retry_after },
        400 | 422 => ModelError::InvalidRequest { code: said.public_code() },
        _ => ModelError::Unexpected { status },
    }
}

/// Why work in the background stopped before it finished.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Stop {
    /// Whether no model is configured.
    pub unavailable: bool,
    /// A message for people.
    pub reason: String,
    /// When to retry although nothing has changed. `None`: never.
    pub again_at: Option<Timestamp>,
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
