//! How a call of a model can fail, and which failures are worth another try.
//!
//! Providers answer with text that may quote the prompt or the key, so none of it is kept: an error holds a kind, a status
//! and at most a provider's own short code.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::request::Provider;

/// The longest wait that a provider may ask for; past it, giving up now is kinder than waiting.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(120);

/// Why a call of a model failed. Phrased to follow "failed to get an answer from the model: …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    #[error("the provider's rate limit is reached")]
    RateLimited { retry_after: Option<Duration> },
    #[error("the provider is overloaded")]
    Overloaded { retry_after: Option<Duration> },
    #[error("the provider has a fault of its own (HTTP status {status})")]
    Server { status: u16, retry_after: Option<Duration> },
    /// The provider says so itself.
    #[error("the provider ran out of time")]
    ProviderTimeout { retry_after: Option<Duration> },
    #[error("{} in time", .0.what())]
    Timeout(TimeoutPhase),
    #[error("the provider could not be reached")]
    Connection,
    #[error("the connection was lost in the middle of the answer")]
    ConnectionLost,
    #[error("the answer ended before it was complete")]
    Truncated,
    #[error("the answer is not in the provider's own format")]
    Malformed,
    #[error("the conversation is larger than the model's context")]
    ContextTooLarge,
    #[error("the request is larger than the provider takes")]
    RequestTooLarge,
    #[error("the provider refuses the request as invalid{}", suffix(.code.as_deref()))]
    InvalidRequest { code: Option<String> },
    #[error("the provider does not accept the API key")]
    Authentication,
    #[error("the provider does not permit this with the API key in use")]
    Permission,
    #[error("the provider's quota is used up, or its bill is not paid")]
    Quota,
    #[error("the provider does not know the model, or the address is wrong")]
    NotFound,
    /// The provider's own safety check.
    #[error("the provider declines to answer this")]
    Refused,
    /// Nothing was tried: the request cannot be said in the provider's format.
    #[error("the request is not valid: {0}")]
    Unsendable(Unsendable),
    #[error("the provider answered with the unexpected HTTP status {status}")]
    Unexpected { status: u16 },
    /// No provider is configured that could take the call.
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
    /// The answer, with all the tries it took, did not come to its end.
    Deadline,
}

impl TimeoutPhase {
    const fn what(self) -> &'static str {
        match self {
            Self::FirstByte => "the provider did not begin to answer",
            Self::Idle => "the provider stopped in the middle of the answer and did not go on",
            Self::Deadline => "the answer was not complete",
        }
    }
}

/// What makes a request impossible to send.
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
    #[error("a reply of 0 tokens is asked for")]
    NoOutput,
}

fn suffix(code: Option<&str>) -> String {
    code.map_or_else(String::new, |code| format!(" ({code})"))
}

impl ModelError {
    /// Whether the same request may well succeed on another try.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::Overloaded { .. }
            | Self::Server { .. }
            | Self::ProviderTimeout { .. }
            | Self::Timeout(TimeoutPhase::FirstByte | TimeoutPhase::Idle)
            | Self::Connection
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
            | Self::NotConfigured => false,
        }
    }

    /// How long the provider asks to be left alone.
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

/// An answer whose status says failure, and the headers that matter.
#[derive(Debug, Clone, Copy, Default)]
pub struct HttpFailure<'a> {
    pub status: u16,
    /// `retry-after`: seconds (also a fraction), or an HTTP date.
    pub retry_after: Option<&'a str>,
    /// `retry-after-ms`, which wins.
    pub retry_after_ms: Option<&'a str>,
    /// `x-should-retry`: `true` or `false`, which overrules the status.
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

/// What a failed answer means. `now` is for a `retry-after` that is a date.
#[must_use]
pub fn classify(provider: Provider, failure: &HttpFailure<'_>, now: Timestamp) -> ModelError {
    let body = serde_json::from_slice::<Value>(failure.body).unwrap_or(Value::Null);
    let said = Said::from_body(&body);
    let retry_after = failure.wait(now);
    let status = failure.status;
    let error = by_words(&said, status, retry_after)
        .unwrap_or_else(|| by_status(provider, &said, status, retry_after));
    match (failure.should_retry.map(str::trim), error.is_retryable()) {
        (Some("true"), false) => ModelError::Server { status, retry_after },
        // A rate limit that no waiting lifts is a quota.
        (Some("false"), true) if status == 429 => ModelError::Quota,
        (Some("false"), true) => ModelError::Unexpected { status },
        _ => error,
    }
}

/// What an error event in the middle of an answer of status 200 means. `event` is its data.
#[must_use]
pub fn classify_event(provider: Provider, event: &Value) -> ModelError {
    let said = Said::from_body(event);
    // The types that come in a stream are those that would have come as a status.
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
        _ => said.status.unwrap_or(500),
    };
    by_words(&said, status, None).unwrap_or_else(|| by_status(provider, &said, status, None))
}

/// What a body says, wherever it says it.
#[derive(Default)]
struct Said<'a> {
    kind: &'a str,
    code: &'a str,
    message: String,
    status: Option<u16>,
}

impl<'a> Said<'a> {
    fn from_body(body: &'a Value) -> Self {
        let text = |value: &'a Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
        // Some paths wrap the object in an array of one.
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
                }
            }
            Some(Value::String(message)) => {
                Self { code: text(body, "code"), message: message.to_lowercase(), ..Self::default() }
            }
            _ => Self { message: text(body, "message").to_lowercase(), ..Self::default() },
        }
    }

    /// The provider's code, where it is short and plain enough to hold nothing of the prompt or the key.
    fn public_code(&self) -> Option<String> {
        let plain = |code: &&str| {
            (1..=48).contains(&code.len()) && code.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
        };
        [self.code, self.kind].into_iter().find(plain).map(str::to_owned)
    }
}

/// In lower case. Every server that speaks a borrowed format has its own words for this.
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
];

/// Where the words are surer than the status.
fn by_words(said: &Said<'_>, status: u16, retry_after: Option<Duration>) -> Option<ModelError> {
    let says = |words: &str| said.message.contains(words);
    // A fault of the server or a rate limit is one, whatever it quotes.
    if status >= 500 {
        return None;
    }
    if said.code == "insufficient_quota"
        || said.kind == "insufficient_quota"
        || says("exceeded your current quota")
    {
        return Some(ModelError::Quota);
    }
    if said.kind == "rate_limit_error" || said.code == "rate_limit_exceeded" {
        return Some(ModelError::RateLimited { retry_after });
    }
    if status == 429 {
        return None;
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
    if matches!(said.code, "content_filter" | "content_policy_violation") {
        return Some(ModelError::Refused);
    }
    None
}

fn by_status(provider: Provider, said: &Said<'_>, status: u16, retry_after: Option<Duration>) -> ModelError {
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
        503 if provider == Provider::OpenAi => ModelError::Overloaded { retry_after },
        500.. => ModelError::Server { status, retry_after },
        400 | 422 => ModelError::InvalidRequest { code: said.public_code() },
        _ => ModelError::Unexpected { status },
    }
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
