//! The calls of actions that ask no model: what is sent, and what came back.

use base::reach::{Ask, FetchError};
use bytes::Bytes;
use domain::actions::Action;
use domain::http_call::{self, CallAnswer, CallMethod, HttpCall, REPORT_TO, Try};
use domain::notices::channels;
use domain::validate::FieldErrors;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use jiff::Timestamp;
use tokio::time::Instant;

use crate::context::Cx;
use crate::error::{Error, Result};

/// Refuses an address that may not be called.
///
/// # Errors
/// 400 that names `call.url`.
pub fn check(cx: &Cx, action: &Action) -> Result<()> {
    let Some(call) = &action.call else { return Ok(()) };
    call.check_address(&cx.config.reach.policy)
        .map_err(|refused| FieldErrors::one("call.url", refused).into())
}

/// Where the server of a call reports. The key of a call is the id of its run.
fn report_path(key: &str) -> String {
    format!("/runs/{key}/report")
}

/// The request, with a key that is the same in all tries.
///
/// # Errors
/// If a stored header is invalid, which is a bug.
pub fn request(cx: &Cx, call: &HttpCall, key: &str, now: Timestamp) -> Result<Ask> {
    let mut headers = HeaderMap::new();
    let own = call.own_headers();
    let platform = [
        ("user-agent", "Lamplighter".to_owned()),
        ("idempotency-key", key.to_owned()),
        ("webhook-id", key.to_owned()),
        ("webhook-timestamp", now.as_second().to_string()),
    ];
    let report_to = call.report_within().map(|_| (REPORT_TO, cx.config.notices.site.api(&report_path(key))));
    let platform = platform.into_iter().chain(report_to).map(|(name, value)| (name.to_owned(), value));
    // The platform's headers come last, so that no other ones replace them.
    for (name, value) in own.into_iter().chain(platform) {
        let name = HeaderName::try_from(name).map_err(|error| Error::internal(error.to_string()))?;
        let value = HeaderValue::try_from(value).map_err(|error| Error::internal(error.to_string()))?;
        headers.insert(name, value);
    }
    let method = match call.method {
        CallMethod::Post => Method::POST,
        CallMethod::Put => Method::PUT,
        CallMethod::Patch => Method::PATCH,
        CallMethod::Get => Method::GET,
        CallMethod::Delete => Method::DELETE,
    };
    let body = call.body.clone().map(Bytes::from);
    Ok(Ask { method, url: call.url.clone(), headers, body })
}

/// Sends one try.
///
/// # Errors
/// As [`request`].
pub async fn send(cx: &Cx, call: &HttpCall, key: &str) -> Result<(Try, CallAnswer)> {
    let (at, began) = (cx.clock.now(), Instant::now());
    let sent = match call.check_address(&cx.config.reach.policy) {
        Err(refused) => Err((format!("call.url {refused}"), CallAnswer::Refused)),
        Ok(()) => {
            let sent = cx.caller().send_once(request(cx, call, key, at)?, http_call::MAX_ANSWER).await;
            sent.map_err(|error| {
                let answer = match &error {
                    FetchError::TimedOut { .. } | FetchError::Failed { .. } => CallAnswer::None,
                    _ => CallAnswer::Refused,
                };
                // The message shows at most scheme, host and port.
                (error.to_string(), answer)
            })
        }
    };
    let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(match sent {
        Ok(answer) => {
            let wait = answer.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
            let retry_after = wait.and_then(|value| channels::retry_after(value, cx.clock.now()));
            let code = answer.status.as_u16();
            let text = http_call::beginning(&answer.body);
            let tried = Try { at, took_ms, status: Some(code), error: None, answer: text };
            (tried, CallAnswer::Status { code, retry_after })
        }
        Err((error, answer)) => {
            (Try { at, took_ms, status: None, error: Some(error), answer: String::new() }, answer)
        }
    })
}
